"""``durability_of``: expected data loss of arrays by a birth-death chain, and of sectors by the data sheet's bound.

No result is more accurate than the given failure rates: rates of models differ by a factor of fifty within one fleet
and year. Results are exact for their inputs; ``format_durability`` prints one significant digit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from headstack._native import InputError, Level, VolumeType
from headstack.catalogue.drive import Drive
from headstack.choice.answer import Durability

YEAR_H = 8766.0
"""Hours per year of 365.25 days."""

CLASSES = ("disk", "flash", "volume")
"""Classes of drives for which failure rates can be given."""

DISK_AFR_PERCENT = 1.57
"""Measured: 4,372 failures of 298,054 HDDs of Backblaze in 2024; 1.01 to 1.7 in 2021 to 2023, models 0.2 to 11."""
FLASH_AFR_PERCENT = 1.0
"""Measured: about 1 of Backblaze's boot drives in the middle of 2023, below 1 in 2022. Others: 0.2 to 1."""
OTHER_VOLUME_AFR_PERCENT = 0.2
"""Assumed for volumes without a known figure of their provider: the upper bound of Amazon's range."""

DISK_BITS_PER_ERROR = 1e15
"""Assumed bits per unreadable sector of disks whose file states none: typical of data sheets of nearline and SAS disks;
desktop disks have 1e14."""
FLASH_BITS_PER_ERROR = 1e17
"""Assumed for SSDs: data-centre drives, by their data sheets; consumer drives 1e15 to 1e16."""


def afr_percent(drive: Drive, overrides: Mapping[str, float] | None = None) -> tuple[float, str]:
    """Returns the annualized failure rate of this model in percent, and its origin.

    ``overrides`` apply by the drive's name, then by its class (``disk``, ``flash``, ``volume``). Otherwise it is the
    rate of the class in the field: data sheets state 20 to 33 % of it, so their rate is reported but not used. Raises
    ``InputError`` for an impossible rate.

    >>> afr_percent(Drive.load("exos-x18-18tb"), {"disk": 0.9})
    (0.9, 'stated by the caller for disk')
    """
    rates = dict(overrides or {})
    for name, percent in rates.items():
        _checked_afr(percent, f"afr: {name}")
    of_class = _class_of(drive)
    for key in (drive.name, of_class):
        if key in rates:
            return rates[key], f"stated by the caller for {key}"
    percent, source = _field_rate(drive, of_class)
    sheet = _sheet_rate(drive)
    return percent, f"{source}; {sheet}" if sheet else source


def bits_per_error(drive: Drive) -> tuple[float, str]:
    """Returns the bits read per unreadable sector, and the origin; infinite for cloud volumes.

    >>> bits_per_error(Drive.load("exos-x18-18tb"))[0]
    1000000000000000.0
    """
    for value in drive.stated:
        if value["key"] == "reliability.bits_per_error":
            return float(
                value["value"]
            ), f"worst case of the data sheet, from the drive's file ({value['source'] or 'yours'})"
    match _class_of(drive):
        case "volume":
            return math.inf, "assumed: the provider repairs unreadable sectors"
        case "flash":
            return FLASH_BITS_PER_ERROR, "assumed, typical of data sheets of data-centre SSDs"
    return DISK_BITS_PER_ERROR, "assumed, typical of data sheets of nearline HDDs"


def mean_time_to_loss_years(drives: int, survives: int, afr_percent: float, rebuild_h: float) -> float:
    """Returns the mean time until more drives of a RAID group fail than it survives, by the exact birth-death chain;
    drives are rebuilt one at a time.

    >>> f"{mean_time_to_loss_years(2, 1, 1.5, 24):.2e}"
    '8.00e+05'
    """
    failing_h = _failing_h(drives, survives, afr_percent, rebuild_h)
    # Mean time from i failed drives to i + 1: its own rate, and the return from each earlier repair.
    total_h = step_h = 0.0
    for failed in range(survives + 1):
        rate_h = (drives - failed) * failing_h
        step_h = (1 + step_h / rebuild_h) / rate_h if failed else 1 / rate_h
        total_h += step_h
    return total_h / YEAR_H


def loss_a_year(drives: int, survives: int, afr_percent: float, rebuild_h: float, groups: int = 1) -> float:
    """Returns the probability that within a year some RAID group of ``drives`` drives loses more of them than it
    survives.

    Failures are independent, rates constant, and a spare is always available: otherwise ``rebuild_h`` must include the
    time until it is replaced.

    >>> f"{loss_a_year(8, 2, 1.5, 24):.1e}"
    '8.7e-09'
    """
    if groups < 1:
        raise InputError(f"{groups}; must be 1 or more", key="groups")
    return -math.expm1(-groups / mean_time_to_loss_years(drives, survives, afr_percent, rebuild_h))


def meets_unreadable(read_bytes: float, bits_per_error: float) -> float:
    """Returns the probability of an unreadable sector when this many bytes are read.

    >>> f"{meets_unreadable(7 * 16e12, 1e15):.0%}"
    '59%'
    """
    if bits_per_error <= 1:
        raise InputError(f"{bits_per_error:g}; must be above 1", key="bits_per_error")
    return -math.expm1(read_bytes * 8 * math.log1p(-1 / bits_per_error))


def unreadable_a_year(
    drives: int,
    survives: int,
    afr_percent: float,
    rebuild_h: float,
    capacity_bytes: float,
    bits_per_error: float,
    groups: int = 1,
    width: int | None = None,
) -> float:
    """Returns the expected number of rebuilds per year that meet an unreadable sector without remaining redundancy.

    These are the rebuilds of groups with as many failed drives as they survive. Such a rebuild counts completely,
    though a part of it may have been done with redundancy: with the data sheet's worst case, it is a bound. A level
    without redundancy rebuilds nothing. ``width`` is that of declustered stripes (dRAID), few of which are critical.

    >>> round(unreadable_a_year(8, 1, 1.5, 29, 16e12, 1e15), 3)
    0.072
    """
    failing_h = _failing_h(drives, survives, afr_percent, rebuild_h)
    if survives == 0:
        return 0.0
    # Shares of the time with 0, 1 … failed drives, of a chain that is renewed instead of lost.
    shares = [1.0]
    for failed in range(survives):
        shares.append(shares[-1] * (drives - failed) * failing_h * rebuild_h)
    rebuilds = shares[survives - 1] / math.fsum(shares) * (drives - survives + 1) * failing_h * YEAR_H
    stripe = drives if width is None else width
    # The stripes of the last failed drive that also include the other failed ones.
    critical = math.prod((stripe - other) / (drives - other) for other in range(1, survives))
    read_bytes = (stripe - survives) * capacity_bytes * critical
    return groups * rebuilds * meets_unreadable(read_bytes, bits_per_error)


def durability_of(
    level: str,
    drives: int,
    spans: int,
    drive: Drive,
    rebuild: tuple[float, str],
    overrides: Mapping[str, float] | None = None,
) -> Durability:
    """Returns the durability of drives of one model in a level; ``rebuild`` is the time in hours and its origin.

    >>> durability_of("raid6", 12, 1, Drive.load("exos-x16-16tb"), (29, "assumed")).afr_percent
    1.57
    """
    percent, source = afr_percent(drive, overrides)
    rebuild_h, rebuild_source = rebuild
    redundancy = Level(level).redundancy(drives, spans)
    bits, bits_source = bits_per_error(drive)
    group = (redundancy.members, redundancy.survives, percent, rebuild_h)
    unreadable = unreadable_a_year(*group, drive.capacity_bytes, bits, redundancy.groups, redundancy.width)
    loss = loss_a_year(*group, redundancy.groups)
    read = bits_source if math.isinf(bits) else f"one unreadable sector per {bits:.0e} bits, {bits_source}"
    return Durability(percent, source, rebuild_h, f"{rebuild_source}; {read}", loss, unreadable)


def format_durability(durability: Durability) -> str:
    """Formats it with one significant digit and its inputs.

    >>> format_durability(Durability(1.5, "stated", 24, "stated", 3.5e-5, 0.0))
    'about 1 in 30,000 a year at 1.5 % a drive'
    """
    loss = f"{_one_in(durability.loss_a_year)} a year at {durability.afr_percent:g} % a drive"
    unreadable = durability.unreadable_a_year
    if unreadable <= 0:
        return loss
    often = f"{_digit(unreadable)} times a year" if unreadable >= 1 else f"once in {_digit(1 / unreadable)} years"
    return f"{loss}; a rebuild loses sectors about {often} at the data sheets' worst case"


def _one_in(probability: float) -> str:
    if probability <= 0:
        return "less than can be computed"
    if probability >= 0.5:
        return f"about {_digit(100 * probability)} %"
    return f"about 1 in {_digit(1 / probability)}"


def _digit(value: float) -> str:
    """Formats one significant digit: 3, 30,000 or 2 x 10^11."""
    power = math.floor(math.log10(value))
    digit = round(value / 10**power)
    if power >= 9:
        digit, power = (1, power + 1) if digit == 10 else (digit, power)
        return f"10^{power}" if digit == 1 else f"{digit} x 10^{power}"
    return f"{digit * 10**power:,}" if power >= 0 else f"{digit * 10.0**power:g}"


def _failing_h(drives: int, survives: int, afr_percent: float, rebuild_h: float) -> float:
    """Returns the failures of a drive per hour; raises for an impossible group."""
    if not 0 <= survives < drives:
        raise InputError(f"{survives} of {drives} drives; must be 0 to {drives - 1}", key="survives")
    if not (rebuild_h > 0 and math.isfinite(rebuild_h)):
        raise InputError(f"{rebuild_h:g}; above 0", key="rebuild_h")
    return -math.log1p(-_checked_afr(afr_percent, "afr_percent") / 100) / YEAR_H


def _checked_afr(percent: float, parameter: str) -> float:
    if not 0 < percent < 100:
        raise InputError(f"{parameter}: {percent:g} %; must be above 0 and below 100")
    return percent


def _class_of(drive: Drive) -> str:
    return {"disk": "disk", "ssd": "flash", "volume": "volume"}[drive.kind]


def _field_rate(drive: Drive, of_class: str) -> tuple[float, str]:
    match of_class:
        case "disk":
            return DISK_AFR_PERCENT, "measured: all HDDs of Backblaze in 2024; models are 0.2 to 11 %"
        case "flash":
            return FLASH_AFR_PERCENT, "measured, rounded: SSDs of Backblaze in 2023"
    stated = {value["key"]: value["value"] for value in drive.stated}
    if (kind := stated.get("volume.type")) and (published := VolumeType(kind).afr_percent):
        return published
    return OTHER_VOLUME_AFR_PERCENT, "assumed: Amazon's figure for gp3, since none of this provider is known"


def _sheet_rate(drive: Drive) -> str:
    """Describes the failure rate of the data sheet; empty if the drive's file has none."""
    stated = {value["key"]: value for value in drive.stated}
    for key in ("reliability.afr_percent", "reliability.mtbf_h"):
        if key not in stated:
            continue
        figure, from_whom = float(stated[key]["value"]), f"from the drive's file ({stated[key]['source'] or 'yours'})"
        if key == "reliability.afr_percent":
            return f"its data sheet states {figure:g} %, {from_whom}"
        percent = -100 * math.expm1(-YEAR_H / figure)
        return f"its data sheet states {figure:,.0f} h between failures, {percent:.2f} % per year, {from_whom}"
    return ""
