"""Decoder of raw SMART values, whose six bytes are vendor-specific.

It decodes values that smartctl's drive database (or an older version of it) does not know, so that packed values are
not taken for counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headstack.diagnosis.inspection.model import Attribute, Identity
from headstack.io.counts import counted

LOW_16, LOW_32 = 0xFFFF, 0xFFFFFFFF

COMPOSITE_SEAGATE = (1, 7, 195)
"""Error rates: errors in the upper 16 bits, operations in the lower 32 (Seagate; smartmontools' wiki)."""

PACKED_16 = (5, 196)
"""Attributes that smartctl prints as raw16(raw16), where the lowest word is the count."""

REMAINING_LIFE = re.compile(
    r"(?i)media_wearout_indicator|ssd_life_left(_perc)?|wear_leveling_count|remaining_lifetime_perc|remaining_life"
    r"|perc(ent)?_(rated_)?life(time)?_remain\w*|(drive_life|lifetime)_remaining%?"
)
"""Attributes of SSDs whose normalised value is the remaining endurance in percent. Many drives have a minimum of 1,
which means that no endurance remains."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The meaning of a raw value."""

    count: int | None
    """Number of events or units; ``None`` if the value is not a count."""
    text: str
    """Displayed text."""


def is_seagate(identity: Identity) -> bool:
    """Whether Seagate's encodings apply, also to Maxtor's later drives."""
    model, family = (identity.model or "").upper(), (identity.family or "").lower()
    return bool(re.match(r"(SEAGATE |MAXTOR )?ST[M\d]|SEAGATE", model)) or "seagate" in family


def decode(attribute: Attribute, identity: Identity) -> Decoded:
    """Decodes a raw value as a count, or into its components."""
    raw = attribute.raw
    if _is_temperature(attribute):
        return Decoded(None, _temperature(raw))
    if attribute.id in COMPOSITE_SEAGATE and is_seagate(identity):
        return Decoded(None, f"{counted(raw >> 32 & LOW_16, 'error')} in {counted(raw & LOW_32, 'operation')}")
    if attribute.id == 188 and (raw > LOW_16 or is_seagate(identity)):
        timeouts, slow, slower = raw & LOW_16, raw >> 16 & LOW_16, raw >> 32 & LOW_16
        more = f" ({slow:,} above 5 s, {slower:,} above 7.5 s)" if slow or slower else ""
        return Decoded(timeouts, f"{timeouts:,}{more}")
    if attribute.id in (9, 240):
        return _hours(attribute)
    if attribute.id in PACKED_16 and raw > LOW_16:
        return Decoded(raw & LOW_16, f"{raw & LOW_16:,}")
    if raw > LOW_32 and attribute.id not in (241, 242) and "LBA" not in attribute.name:
        return Decoded(None, f"{attribute.raw_text} (packed)")
    return Decoded(raw, f"{raw:,}")


def _is_temperature(attribute: Attribute) -> bool:
    name = attribute.name.lower()
    return "temp" in name or (attribute.id in (190, 194) and "unknown" in name)


def _hours(attribute: Attribute) -> Decoded:
    if re.search(r"(?i)minutes|seconds", attribute.name) and not re.match(r"\d+h", attribute.raw_text):
        hours = attribute.raw // (60 if "inute" in attribute.name else 3600)
    elif match := re.match(r"(\d+)h", attribute.raw_text):
        hours = int(match[1])
    else:
        hours = attribute.raw & LOW_32
        # raw24(raw8): three bytes of hours, with smaller units above; 2^24 hours are 1,915 years.
        hours = hours & 0xFFFFFF if hours > 0xFFFFFF else hours
    return Decoded(hours, f"{hours:,} h")


def _temperature(raw: int) -> str:
    """Formats a temperature from the lowest byte; minimum and maximum are in words or bytes above it."""
    now = raw & 0xFF
    for low, high in ((raw >> 16 & LOW_16, raw >> 32 & LOW_16), (raw >> 16 & 0xFF, raw >> 24 & 0xFF)):
        if 0 < low <= now <= high <= 150:
            return f"{now} °C ({low} to {high})"
    return f"{now} °C"
