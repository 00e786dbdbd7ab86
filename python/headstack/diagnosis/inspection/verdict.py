"""``judge``: whether a device is about to fail, with the reasons, and the summary for a warranty claim.

The figures are from Pinheiro, Weber and Barroso, "Failure Trends in a Large Disk Drive Population", FAST 2007 (odds of
failure within 60 days of a first event, relative to drives without the event), and from Backblaze's article on SMART
statistics, 2016 (five attributes). Replacing a drive with two kinds of damage is headstack's own policy.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from headstack.diagnosis.inspection.catalogued import entry_of, shingled
from headstack.diagnosis.inspection.model import Attribute, Inspection, NvmeHealth, SelfTest
from headstack.diagnosis.inspection.raw import REMAINING_LIFE, decode
from headstack.io.counts import counted

Verdict: TypeAlias = Literal["pass", "watch", "replace", "unknown"]
PASS: Literal["pass"] = "pass"
WATCH: Literal["watch"] = "watch"
REPLACE: Literal["replace"] = "replace"
UNKNOWN: Literal["unknown"] = "unknown"

BACKBLAZE = "76.7 % of failed and 4.2 % of working drives have one of 5, 187, 188, 197, 198 above 0 (Backblaze)"
SILENT_FAILURES = (
    "drives also fail without signs: 56 % of failed drives showed none of the four strong signs, 36 % none at all "
    "(Google, FAST'07)"
)

ENDURANCE_WATCH_PERCENT = 90


@dataclass(frozen=True, slots=True)
class Sign:
    """An attribute whose count predicts failure."""

    damage: str
    """Kind of damage; several signs of one kind count once."""
    names: re.Pattern[str]
    """Vendors' names of the attribute; an attribute with this number and another name has another meaning."""
    odds: str


def _names(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


SIGNS = {
    5: Sign(
        "reallocated", _names("realloc|retired|remap|bad_bl"), "14 times the odds of failure within 60 days (FAST'07)"
    ),
    187: Sign("uncorrectable", _names("uncorr|unc_"), BACKBLAZE),
    188: Sign("timeouts", _names("timeout"), f"may also be caused by cables and power; {BACKBLAZE}"),
    197: Sign("unreadable", _names("pend|unstable"), "16 times the odds of failure within 60 days (FAST'07)"),
    198: Sign(
        "unreadable", _names("uncorr|offline"), "39 times the odds of failure within 60 days (scan errors, FAST'07)"
    ),
}

DAMAGES = {"reallocated", "uncorrectable", "unreadable"}
"""Kinds of damage; two of them mean replacement, by the policy above."""

CRITICAL_WARNINGS: tuple[tuple[Verdict, str], ...] = (
    (REPLACE, "the spare is below its threshold"),
    (WATCH, "a temperature is outside its thresholds"),
    (REPLACE, "reliability is degraded by media or internal errors"),
    (REPLACE, "the media are read-only"),
    (REPLACE, "the backup of the volatile memory has failed: a power loss loses data"),
    (WATCH, "the persistent memory region is read-only or unreliable"),
)
"""Bits of Critical Warning (NVM Express base specification, SMART / Health log)."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for a verdict."""

    verdict: Verdict
    """Verdict that the finding supports: ``watch``, ``replace``, or ``pass`` for information only."""
    finding: str
    damage: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """The values for a warranty claim; ``None`` if unknown."""

    power_on_hours: int | None
    power_cycles: int | None
    start_stop_cycles: int | None
    load_cycles: int | None
    written_bytes: int | None
    written_of_capacity: float | None
    """Bytes written, divided by the capacity."""
    endurance_used_percent: int | None
    temperature_celsius: int | None
    last_self_test: str | None
    """Kind and status of the last self-test."""
    last_self_test_hours: int | None
    """Power-on hours at the end of the test."""
    shingled: str | None
    """The evidence that the drive is shingled."""
    catalogue_entry: str | None
    """The id of the drive in the catalogue."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reasons and the summary."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    summary: Summary

    def to_dict(self) -> dict[str, object]:
        """Returns the judgement in JSON's form."""
        reasons = [
            {"verdict": reason.verdict, "what": reason.finding, "damage": reason.damage} for reason in self.reasons
        ]
        return {"verdict": self.verdict, "reasons": reasons, "summary": dataclasses.asdict(self.summary)}


def judge(inspection: Inspection) -> Judgement:
    """Returns the verdict on a device."""
    reasons = tuple(_reasons(inspection))
    damages = {reason.damage for reason in reasons} & DAMAGES
    if len(damages) > 1 and not inspection.is_solid_state:
        policy = f"{' and '.join(sorted(damages))} blocks together (headstack's policy: two kinds of damage)"
        reasons = (*reasons, Reason(REPLACE, policy))
    verdict = min((reason.verdict for reason in reasons), key=urgency, default=PASS)
    if verdict == PASS and not _has_health(inspection):
        verdict = UNKNOWN
        reasons = (*reasons, Reason(PASS, "no health data were read"))
    ordered = sorted(reasons, key=lambda reason: urgency(reason.verdict))
    return Judgement(verdict, tuple(ordered), summary(inspection))


def urgency(verdict: Verdict) -> int:
    """Returns the rank of a verdict, the most urgent first."""
    match verdict:
        case "replace":
            return 0
        case "watch":
            return 1
        case "pass":
            return 2
        case "unknown":
            return 3
    assert_never(verdict)


def _has_health(inspection: Inspection) -> bool:
    return bool(
        inspection.attributes
        or inspection.nvme
        or inspection.sas
        or inspection.passed is not None
        or inspection.self_tests
    )


def _reasons(inspection: Inspection) -> Iterator[Reason]:
    if inspection.passed is False:
        yield Reason(REPLACE, "the drive's health self-assessment: FAILED")
    for attribute in inspection.attributes:
        yield from _threshold(attribute, inspection)
        yield from _sign(attribute, inspection)
    if inspection.nvme is not None:
        yield from _nvme(inspection.nvme)
    yield from _endurance(inspection)
    yield from _sas(inspection)
    yield from _self_tests(inspection.self_tests or ())
    if inspection.logged_errors:
        yield Reason(
            PASS, f"{counted(inspection.logged_errors, 'error')} in the ATA error log, including aborted commands"
        )
    identity = inspection.identity
    if identity.interface_max_gbps and identity.interface_now_gbps and not _full_speed(inspection):
        slower = f"{identity.interface_now_gbps:g} of {identity.interface_max_gbps:g} Gb/s"
        yield Reason(PASS, f"the link runs at {slower}: check port and cable")


def _full_speed(inspection: Inspection) -> bool:
    identity = inspection.identity
    return (identity.interface_now_gbps or 0) >= (identity.interface_max_gbps or 0)


def _threshold(attribute: Attribute, inspection: Inspection) -> Iterator[Reason]:
    """Yields reasons for an attribute at or below its threshold, now or in the past."""
    title = f"attribute {attribute.id} {attribute.name}"
    threshold = attribute.threshold or 0
    failing = attribute.when_failed == "now" or _crossed(attribute.value, threshold)
    once = attribute.when_failed == "past" or _crossed(attribute.worst, threshold)
    if failing:
        figures = f"{attribute.value} is at or below its threshold {threshold}"
        if attribute.prefailure:
            yield Reason(REPLACE, f"{title}: {figures}: the drive predicts its failure")
        elif inspection.is_solid_state and REMAINING_LIFE.fullmatch(attribute.name):
            yield Reason(REPLACE, f"{title}: {figures}: the flash is worn")
        else:
            yield Reason(WATCH, f"{title}: {figures}: the end of its design life")
    elif once:
        kind = "a pre-failure attribute" if attribute.prefailure else "an old-age attribute"
        yield Reason(
            WATCH, f"{title}: was {attribute.worst}, at or below its threshold {threshold}, in the past: {kind}"
        )


def _crossed(value: int | None, threshold: int) -> bool:
    # 0, 254 and 255 are not valid normalised values (ATA-3 to ATA8-ACS, SMART), and threshold 0 always passes.
    return threshold > 0 and value is not None and 1 <= value <= 253 and value <= threshold


def _sign(attribute: Attribute, inspection: Inspection) -> Iterator[Reason]:
    if attribute.id == 199 and "crc" in attribute.name.lower():
        count = decode(attribute, inspection.identity).count
        if count:
            yield Reason(
                PASS,
                f"attribute 199 {attribute.name}: {count:,}: transfers were damaged on the cable, not on the medium",
            )
    sign = SIGNS.get(attribute.id)
    if sign is None:
        return
    title = f"attribute {attribute.id} {attribute.name}"
    decoded = decode(attribute, inspection.identity)
    unnamed = "unknown" in attribute.name.lower()
    if not sign.names.search(attribute.name) and not (unnamed and not inspection.is_solid_state):
        if decoded.count:
            yield Reason(PASS, f"{title}: {decoded.text}: this vendor uses the number for another count; not judged")
    elif decoded.count is None:
        yield Reason(PASS, f"{title}: {decoded.text}: unknown encoding; not judged")
    elif decoded.count > 0:
        yield _weighed(f"{title}: {decoded.text}", sign, inspection)


def _weighed(count_text: str, sign: Sign, inspection: Inspection) -> Reason:
    """Returns the reason for a count; for disks it includes published odds, which may not apply to flash."""
    if not inspection.is_solid_state:
        return Reason(WATCH, f"{count_text}: {sign.odds}", sign.damage)
    if sign.damage == "uncorrectable":
        return Reason(WATCH, f"{count_text}: data could not be recovered", sign.damage)
    return Reason(PASS, f"{count_text}: the published odds are for disks; not applied to an SSD")


def _nvme(log: NvmeHealth) -> Iterator[Reason]:
    warning = log.critical_warning or 0
    for bit, (verdict, meaning) in enumerate(CRITICAL_WARNINGS):
        if warning >> bit & 1:
            yield Reason(verdict, f"critical warning bit {bit}: {meaning}")
    if warning >> len(CRITICAL_WARNINGS):
        yield Reason(WATCH, f"critical warning {warning:#04x}: unknown bit")
    spare, least = log.available_spare_percent, log.available_spare_threshold_percent
    if spare is not None and least is not None and spare < least:
        yield Reason(REPLACE, f"available spare {spare} % is below its threshold {least} %")
    if log.media_errors:
        yield Reason(WATCH, f"{log.media_errors:,} media and data integrity errors: data could not be recovered")
    if log.critical_temperature_minutes:
        yield Reason(WATCH, f"{log.critical_temperature_minutes:,} minutes above the critical temperature")


def _endurance(inspection: Inspection) -> Iterator[Reason]:
    used = inspection.endurance_used_percent
    if used is None:
        return
    if used >= 100:
        yield Reason(REPLACE, f"{used} % of the rated endurance is used")
    elif used >= ENDURANCE_WATCH_PERCENT:
        yield Reason(WATCH, f"{used} % of the rated endurance is used")


def _sas(inspection: Inspection) -> Iterator[Reason]:
    log = inspection.sas
    if log is None:
        return
    if log.grown_defects:
        yield _weighed(f"{counted(log.grown_defects, 'block')} in the grown defect list", SIGNS[5], inspection)
    for way, counter in (("read", log.read), ("write", log.write), ("verify", log.verify)):
        if counter is not None and counter.uncorrected:
            yield Reason(
                WATCH, f"{counter.uncorrected:,} uncorrected {way} errors: data were lost or late", "uncorrectable"
            )
    temperature = inspection.temperature_celsius
    if temperature is not None and log.trip_celsius and temperature >= log.trip_celsius:
        yield Reason(WATCH, f"{temperature} °C: at or above the trip temperature, {log.trip_celsius} °C")


def _self_tests(tests: tuple[SelfTest, ...]) -> Iterator[Reason]:
    """Yields reasons from self-tests. Only the newest test of each kind with a result counts."""
    decided: set[str] = set()
    for test in tests:
        if test.passed is None:
            continue
        if test.passed is False:
            when = "" if test.hours is None else f" at {test.hours:,} h"
            failure = f"self-test failed{when}: {test.kind}: {test.status}"
            again = test.kind in decided
            yield Reason(WATCH if again else REPLACE, failure + (", passed since" if again else ""))
            if again:
                return
        decided.add(test.kind)


def summary(inspection: Inspection) -> Summary:
    """Returns the values for a warranty claim."""
    tests = inspection.self_tests
    last = tests[0] if tests else None
    written, capacity = inspection.written_bytes, inspection.identity.capacity_bytes
    entry = entry_of(inspection.identity)
    return Summary(
        power_on_hours=inspection.power_on_hours,
        power_cycles=inspection.power_cycles,
        start_stop_cycles=inspection.start_stop_cycles,
        load_cycles=inspection.load_cycles,
        written_bytes=written,
        written_of_capacity=round(written / capacity, 3) if written is not None and capacity else None,
        endurance_used_percent=inspection.endurance_used_percent,
        temperature_celsius=inspection.temperature_celsius,
        last_self_test=None if last is None else f"{last.kind}: {last.status}",
        last_self_test_hours=None if last is None else last.hours,
        shingled=shingled(inspection),
        catalogue_entry=None if entry is None else entry.id,
    )
