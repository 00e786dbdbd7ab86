"""Readers of the mechanics of disks: seeks, rotation, heads and the rates of their media."""

from __future__ import annotations

import re
from collections.abc import Callable

from headstack.catalogue.sheets import figures
from headstack.catalogue.sheets.performance import KeyValues, directed, rate_to

OUTER = "media.sustained_outer_rate"


def seek(which: str) -> Callable[[str, str], KeyValues]:
    """Returns a reader of typical seek times; maxima over all drives are not used."""

    def read(label: str, value: str) -> KeyValues:
        if re.search(r"\bmax(imum)?\b", label) and (which != "full_stroke" or "full" in label):
            return {}
        has_unit = figures.unit_of(label, value, figures.TIMES_NS) is not None
        if not has_unit and re.search(r"\d\s*(?:[a-rt-z]|m?w\b)", value):
            # Another unit than one of time.
            return {}
        typical = re.split(r"(?i)\(?typ(?:ical)?\.?\)?", value)[0] if re.search(r"(?i)\btyp.*\bmax", value) else value
        unit = "" if figures.unit_of("", typical, figures.TIMES_NS) else figures.unit_of(label, value, figures.TIMES_NS)
        first, second = figures.times_ms(label, f"{typical} {unit or ''}")
        reads, writes = directed(label, value, [time for time in (first, second) if time is not None])
        return {
            f"seek.{direction}_{which}": None if time is None else f"{time:g}ms"
            for direction, time in (("read", reads), ("write", writes))
        }

    return read


def turn(label: str, value: str) -> KeyValues:
    """Reads half a revolution, which a disk's data sheet calls its latency."""
    if not re.search(r"\bms(ec)?\b", f"{label} {value.lower()}") or re.search(r"read|write", label):
        return {}
    return {"?half_turn_ms": figures.times_ms(label, value)[0]}


def speed(label: str, value: str) -> KeyValues:
    """Reads the spindle speed."""
    rpm = next(iter(figures.numbers(re.sub(r"(?i)-?\s*rpm.*", "", value))), None)
    # "5400 RPM class" is a product class, not a speed.
    return {"spindle.speed": f"{rpm:g}rpm" if rpm is not None and 1000 <= rpm <= 30000 else None}


def disks_and_heads(label: str, value: str) -> KeyValues:
    """Reads a line with the numbers of heads and of platters."""
    first, second = figures.pair(value)
    heads_first = label.find("head") < min(at for at in (label.find("dis"), label.find("platter")) if at >= 0)
    heads, disks = (first, second) if heads_first else (second, first)
    return {
        "geometry.heads": None if heads is None else int(heads),
        "geometry.platters": None if disks is None else int(disks),
    }


def raw_rate(label: str, value: str) -> KeyValues:
    """Reads the rate of the bits under the head. It includes gaps, servo data and error correction, so it is 20 to 50 %
    above the sustained rate of user data. Makers write it in bits; a rate in bytes may be either, and is not used.

    >>> raw_rate("internal data rate", "506-753 Mbits/sec")
    {'media.raw_inner_rate': '506Mb/s', 'media.raw_outer_rate': '753Mb/s'}
    """
    unit = figures.rate_unit(value) or figures.rate_unit(label)
    if unit is None or not figures.is_in_bits(label, value):
        return {}
    ends = [f"{end * unit * 8 / 1e6:g}Mb/s" for end in _ends(value)]
    return {
        "media.raw_inner_rate": ends[0] if len(ends) == 2 else None,
        "media.raw_outer_rate": ends[-1] if ends else None,
    }


def _ends(value: str) -> tuple[float, ...]:
    """Returns both ends of a range, or the only number."""
    single = figures.first(value)
    return figures.span(value) or (() if single is None else (single,))


def transfer(label: str, value: str) -> KeyValues:
    """Reads a rate of transfers from the media: sustained unless the label says otherwise."""
    if re.search(r"size", label):
        return {}
    if figures.rate_unit(label) is None and not figures.RATE.search(value) and not re.search("rate|speed", label):
        return {}
    return rate_to(OUTER)(label, value)


def overhead(label: str, value: str) -> KeyValues:
    """Reads the time of the controller for a command."""
    time = figures.times_ms(label, value)[0]
    return {"overheads.command": None if time is None else f"{time:g}ms"}
