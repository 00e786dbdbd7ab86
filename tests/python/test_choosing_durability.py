"""Durability of a choice, compared with published tables and a simulation of the chain."""

from __future__ import annotations

import doctest
import itertools
import math
import random

import pytest

import headstack as hs
from headstack import _native
from headstack.choice import durability
from headstack.choice.answer import Durability
from headstack.choice.durability import (
    YEAR_H,
    afr_percent,
    bits_per_error,
    durability_of,
    format_durability,
    loss_a_year,
    mean_time_to_loss_years,
    meets_unreadable,
    unreadable_a_year,
)

CHAINS = [
    (2, 1, 24, 8.00e5, 1.25e-6),
    (8, 1, 24, 2.86e4, 3.5e-5),
    (8, 2, 24, 1.15e8, 8.7e-9),
    (12, 2, 48, 7.33e6, 1.36e-7),
    (12, 3, 48, 9.84e9, 1.0e-10),
    (20, 3, 156, 2.95e7, 3.4e-8),
]
"""Drives, failures survived, hours of a rebuild, years to loss, loss a year: exact, at 1.5 % a drive."""


@pytest.mark.parametrize(("drives", "survives", "rebuild_h", "years", "loss"), CHAINS)
def test_the_chain_meets_the_exact_table(
    drives: int, survives: int, rebuild_h: float, years: float, loss: float
) -> None:
    assert mean_time_to_loss_years(drives, survives, 1.5, rebuild_h) == pytest.approx(years, rel=0.01)
    # The table has two digits of it.
    assert loss_a_year(drives, survives, 1.5, rebuild_h) == pytest.approx(loss, rel=0.025)


def test_the_chain_is_that_of_a_simulation() -> None:
    """Where failures and rebuilds are as frequent, so that no approximation holds."""
    drives, survives, rebuild_h, percent = 4, 2, 2000.0, 90.0
    failing_h = -math.log(1 - percent / 100) / YEAR_H
    draw = random.Random(11)
    times = []
    for _ in range(20_000):
        now_h, failed = 0.0, 0
        while failed <= survives:
            fails, repairs = (drives - failed) * failing_h, 1 / rebuild_h if failed else 0.0
            now_h += draw.expovariate(fails + repairs)
            failed += 1 if draw.random() < fails / (fails + repairs) else -1
        times.append(now_h / YEAR_H)
    mean = sum(times) / len(times)
    error = math.sqrt(sum((time - mean) ** 2 for time in times)) / len(times)
    assert abs(mean_time_to_loss_years(drives, survives, percent, rebuild_h) - mean) < 3.5 * error
    assert error / mean < 0.01


@pytest.mark.parametrize(
    ("drives", "tb", "bits", "share"),
    [
        (3, 2, 1e14, 0.38),
        (3, 2, 1e15, 0.047),
        (7, 2, 1e14, 0.67),
        (7, 2, 1e15, 0.106),
        (7, 16, 1e14, 0.9999),
        (7, 16, 1e15, 0.59),
        (7, 16, 1e17, 0.009),
        (11, 24, 1e15, 0.88),
        (7, 30.72, 1e17, 0.017),
    ],
)
def test_unreadable_sectors_are_those_of_the_table(drives: int, tb: float, bits: float, share: float) -> None:
    assert meets_unreadable(drives * tb * 1e12, bits) == pytest.approx(share, rel=0.02)


def test_a_rebuild_of_raid_5_meets_what_nothing_repairs_and_raid_6_seldom_does() -> None:
    five = unreadable_a_year(8, 1, 1.5, 29, 16e12, 1e15)
    assert five == pytest.approx(0.072, rel=0.02)
    six = unreadable_a_year(8, 2, 1.5, 29, 16e12, 1e15)
    # Another drive fails during a rebuild: 7 drives, 29 h.
    assert six / five == pytest.approx(7 * 0.0151 * 29 / YEAR_H * 0.536 / 0.592, rel=0.02)
    assert unreadable_a_year(8, 0, 1.5, 29, 16e12, 1e15) == 0
    assert unreadable_a_year(8, 1, 1.5, 29, 16e12, math.inf) == 0
    assert unreadable_a_year(8, 1, 1.5, 29, 16e12, 1e15, groups=3) == pytest.approx(3 * five)
    # A stripe of 8+1 reads eight drives' worth though there are 24; of double parity few stripes are critical.
    wide = meets_unreadable(8 * 16e12, 1e15)
    assert unreadable_a_year(24, 1, 1.5, 2, 16e12, 1e15, width=9) == pytest.approx(24 * 0.01511 * wide, rel=0.01)
    share = unreadable_a_year(24, 2, 1.5, 2, 16e12, 1e15, width=10) / unreadable_a_year(24, 2, 1.5, 2, 16e12, 1e15)
    assert share == pytest.approx(meets_unreadable(8 * 9 / 23 * 16e12, 1e15) / meets_unreadable(22 * 16e12, 1e15))


LEVELS = [
    ("jbod", 3, 1, (1, 3, 0)),
    ("concat", 3, 1, (1, 3, 0)),
    ("raid0", 1, 1, (1, 1, 0)),
    ("raid1", 3, 1, (1, 3, 2)),
    ("raid10", 8, 1, (4, 2, 1)),
    ("raid10", 5, 1, (5, 2, 1)),
    ("raid5", 3, 1, (1, 3, 1)),
    ("raid5", 8, 2, (2, 4, 1)),
    ("raid50", 8, 2, (2, 4, 1)),
    ("raid6", 8, 1, (1, 8, 2)),
    ("raid60", 60, 5, (5, 12, 2)),
    ("4+2", 12, 1, (2, 6, 2)),
    ("8+3", 22, 1, (2, 11, 3)),
    ("raidz1", 2, 1, (1, 2, 1)),
    ("raidz2", 8, 1, (1, 8, 2)),
    ("raidz3", 11, 1, (1, 11, 3)),
    ("draid2:8d:1s", 24, 1, (1, 24, 2)),
]


@pytest.mark.parametrize(("level", "drives", "spans", "expected"), LEVELS)
def test_levels_are_groups(level: str, drives: int, spans: int, expected: tuple[int, int, int]) -> None:
    found = _native.Level(level).redundancy(drives, spans)
    assert (found.groups, found.members, found.survives) == expected


def test_every_level_of_the_catalogue_is_known() -> None:
    assert {level.name for level in _native.levels()} == {level for level, *_ in LEVELS} - {"8+3"}
    told = "Redundancy(groups=1, members=24, survives=2, width=10, spares=1)"
    assert repr(_native.Level("draid2:8d:1s").redundancy(24)) == told


@pytest.mark.parametrize(
    ("level", "drives", "kind"),
    [
        ("raid5", 4, "raid5"),
        ("raid6", 5, "raid6"),
        ("4+2", 6, "4+2"),
        ("raid1", 3, "raid1"),
        ("raid10", 4, "raid10"),
        ("raid10", 5, "raid10"),
    ],
)
def test_what_is_survived_is_what_the_model_survives(level: str, drives: int, kind: str) -> None:
    """As many drives as are said may fail, whichever they are; of one more, some set loses data."""

    def loses(failed: tuple[int, ...]) -> bool:
        fail = "+".join(f"d{drive}@0s" for drive in failed)
        options = {"drives": drives, "level": level, "fail": fail, "requests": 200, "warm_up": 0, "depth": 1}
        (row,) = hs.run("nearline-12-raid6", **options)  # type: ignore[arg-type]
        return bool(row["data_loss"]) or bool(row["errors"])

    survives = _native.Level(kind).redundancy(drives).survives
    assert not any(loses(failed) for failed in itertools.combinations(range(drives), survives))
    assert any(loses(failed) for failed in itertools.combinations(range(drives), survives + 1))


@pytest.mark.parametrize(
    ("level", "drives", "spans", "message"),
    [
        ("raid7", 8, 1, "level: 'raid7'; allowed: jbod"),
        ("raid50", 8, 1, "raid50: 1 span; must be 2 or more"),
        ("raid5", 8, 3, "raid5: 8 drives in 3 spans"),
        ("raid5", 2, 1, "raid5: 2 drives in 1 spans; spans must have equal numbers of drives, 3 or more"),
        ("raid10", 1, 1, "raid10: 1 drives; must be 2 or more"),
        ("raid10", 8, 2, "raid10: 2 spans; only raid5"),
        ("4+2", 8, 1, r"4\+2: 8 drives; must be a multiple of 6"),
        ("draid2:8d:1s", 10, 1, "draid2:8d:1s: 10 drives; must be 11 or more"),
        ("raidz2", 2, 1, "raidz2: 2 drives; must be 3 or more"),
        ("raid1", 1, 1, "raid1: 1 drives; must be 2 or more"),
        ("raid0", 0, 1, "raid0: 0 drives in 1 spans; must be 1 or more of each"),
    ],
)
def test_what_cannot_be_is_refused(level: str, drives: int, spans: int, message: str) -> None:
    with pytest.raises(hs.InputError, match=message):
        _native.Level(level).redundancy(drives, spans)


def test_rates_are_of_the_field_unless_they_are_put_in() -> None:
    disk, flash, sheetless = (hs.Drive.load(name) for name in ("mg11-24tb", "870-evo-1tb", "re4-2tb"))
    percent, source = afr_percent(disk)
    assert percent == 1.57
    assert "Backblaze" in source
    assert "2,500,000 h between failures, 0.35 % per year" in source
    assert "its data sheet states 0.35 %" in afr_percent(hs.Drive.load("exos-x18-18tb"))[1]
    assert afr_percent(flash) == (1.0, "measured, rounded: SSDs of Backblaze in 2023")
    assert afr_percent(disk, {"disk": 3, "mg11-24tb": 2.5}) == (2.5, "stated by the caller for mg11-24tb")
    assert afr_percent(sheetless, {"disk": 3, "mg11-24tb": 2.5})[0] == 3
    assert afr_percent(flash, {"disk": 3, "flash": 0.9})[0] == 0.9
    assert afr_percent(hs.Drive.load("aws-io2-500-32k"))[0] == 0.001
    assert afr_percent(hs.Drive.load("aws-gp3-500"))[0] == 0.2
    assert afr_percent(hs.Drive.load("azure-p30"))[1].startswith("assumed")
    with pytest.raises(hs.InputError, match="afr: disk: 100 %; must be above 0 and below 100"):
        afr_percent(disk, {"disk": 100})


def test_bits_of_an_error_are_the_sheets_or_assumed() -> None:
    bits, source = bits_per_error(hs.Drive.load("archive-8tb"))
    assert bits == 1e14
    assert source.startswith("worst case of the data sheet, from the drive's file (")
    assert bits_per_error(hs.Drive.load("870-evo-1tb"))[1].startswith("assumed")
    assert bits_per_error(hs.Drive.load("aws-gp3-500"))[0] == math.inf


def test_one_digit_is_told_with_the_rate_that_was_put_in() -> None:
    def of(loss: float, unreadable: float = 0.0) -> str:
        return format_durability(Durability(1.5, "", 24, "", loss, unreadable))

    assert of(3.49e-5) == "about 1 in 30,000 a year at 1.5 % a drive"
    assert of(1.05e-6) == "about 1 in 1,000,000 a year at 1.5 % a drive"
    assert of(3.4e-12).startswith("about 1 in 3 x 10^11 a year")
    assert of(1.02e-12).startswith("about 1 in 10^12 a year")
    assert of(0.63).startswith("about 60 % a year")
    assert of(1e-6, 0.0716).endswith("; a rebuild loses sectors about once in 10 years at the data sheets' worst case")
    assert of(1e-6, 2.6).endswith("about 3 times a year at the data sheets' worst case")
    found = durability_of("raid6", 12, 1, hs.Drive.load("exos-x16-16tb"), (48, "simulated"), {"disk": 1.5})
    assert found.loss_a_year == pytest.approx(1.36e-7, rel=0.01)
    assert (found.rebuild_h, found.afr_source) == (48, "stated by the caller for disk")
    assert found.rebuild_source.startswith("simulated; ")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((8, 8, 1.5, 24), "survives: 8 of 8 drives; must be 0 to 7"),
        ((8, 1, 0.0, 24), "afr_percent: 0 %; must be above 0 and below 100"),
        ((8, 1, 1.5, 0), "rebuild_h: 0; above 0"),
        ((8, 1, 1.5, 24, 0), "groups: 0; must be 1 or more"),
    ],
)
def test_figures_that_cannot_be_are_refused(asked: tuple[float, ...], message: str) -> None:
    with pytest.raises(hs.InputError, match=message):
        loss_a_year(*asked)  # type: ignore[arg-type]


def test_examples_run() -> None:
    assert doctest.testmod(durability).failed == 0
    assert doctest.testmod(durability).attempted >= 8
