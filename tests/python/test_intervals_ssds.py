"""Prediction intervals of SSDs: their classes, their level, the state of the flash, and the tails of writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import SHARED, lacks
from headstack import _native
from headstack.catalogue.drive import Drive
from headstack.results.intervals import calibration
from headstack.results.intervals.calibration import Learnt, Load, Refusal, class_scores
from headstack.results.intervals.described import class_of
from headstack.results.intervals.write_tails import KNEE, WRITE_TAILS
from headstack.results.words import headline

DRIVE = "pm9a3-1920gb"
"""A data-center SSD whose measured sibling has another capacity."""
WRITES = Load("write", 32, 4096, "steady")


def entry(model: str, log_ratio: float = 0.1, **more: Any) -> dict[str, Any]:
    """An entry of the file of scores, with random writes in steady state at two depths."""
    load = {"workload": "writes", "kind": "write", "size_bytes": 4096, "state": "steady", "figure": "rate"}
    cells = [load | {"depth": depth, "log_ratio": log_ratio} for depth in (8, 512)]
    return {"device": model, "cells": cells, **more}


def learnt(*entries: dict[str, Any]) -> Learnt | Refusal:
    return class_scores("data-center-nvme", entries, {}).learnt(WRITES, "rate")


def test_every_ssd_of_the_catalogue_has_a_class() -> None:
    classes: dict[str, set[str]] = {}
    for name in _native.drive_ids():
        drive = Drive.load(name)
        if drive.kind == "ssd":
            classes.setdefault(class_of(drive), set()).add(name)
    assert set(classes) <= set(calibration.CLASSES)
    members = {
        "data-center-nvme": "7450-pro-7680gb",
        "consumer-nvme": "990-pro-2tb",
        "data-center-sata": "5300-pro-1920gb",
        "consumer-sata": "870-evo-1tb",
        "sas-ssd": "ultrastar-ssd800mm-400gb",
        "xpoint": "optane-p4800x-375gb",
    }
    assert all(member in classes[of_class] for of_class, member in members.items())


def test_four_models_support_80_percent_and_two_are_not_enough() -> None:
    four = learnt(*(entry(f"model {number}", 0.05 * number) for number in range(1, 5)))
    assert isinstance(four, Learnt)
    assert (four.devices, four.level) == (4, 0.8)
    assert four.half_width(0.0) == pytest.approx(0.2)
    two = learnt(entry("model 1"), entry("model 2"))
    why = "not known (2 of 9 data-center NVMe SSDs measured with random writes in steady state)"
    assert two == Refusal(why)


def test_units_of_one_model_are_one_device() -> None:
    units = [entry("model 1", 0.3), entry("model 1", 0.1), entry("model 2"), entry("model 3")]
    three = learnt(*units)
    assert isinstance(three, Learnt)
    assert (three.devices, three.level) == (3, 0.75)
    # Every unit counts in the interval.
    assert three.half_width(0.0) == pytest.approx(0.3)
    # A unit to which something was fitted is left out, the other one is not.
    left = learnt(entry("model 1", 0.1), entry("model 1", 0.3, fitted="its rate"), *units[2:])
    assert isinstance(left, Learnt)
    assert left.half_width(0.0) == pytest.approx(0.1)


def test_writes_of_other_states_of_the_flash_are_refused() -> None:
    scores = class_scores("data-center-nvme", [entry(f"model {number}") for number in range(4)], {})
    assert isinstance(scores.learnt(WRITES, "rate"), Learnt)
    assert scores.learnt(WRITES._replace(state="filled"), "rate") == Refusal(
        "data-center NVMe SSDs were measured only with random writes in steady state; add --state steady"
    )


def test_the_answer_of_a_worn_in_ssd_names_its_level_and_its_devices(tmp_path: Path) -> None:
    results = hs.run(DRIVE, read=0, depth=32, state="steady", requests=20_000)
    row = results[0]
    assert row["iops_model_low"] < row["iops"] < row["iops_model_high"]
    assert row["model_level"] == 0.8
    assert row["model_error"].startswith(
        "80 % prediction intervals, learned from 4 data-center NVMe SSDs of 2021 to 2022;"
    )
    assert "no interval of p50, p99: not known (0 of 9 data-center NVMe SSDs" in row["model_error"]
    titles = [column.title for column in results.shown()[0]]
    assert {"IOPS 80 %", "mean 80 %"} <= set(titles)
    assert not [title for title in titles if "90 %" in title]
    assert "(80 %: " in headline(results)
    results.to_json(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())[0]["model_error"]["level"] == 0.8
    (csv_row,) = csv.DictReader(results.to_csv().splitlines())
    assert csv_row["model_level"] == "0.8"


def test_classes_without_enough_models_learn_from_ssds_of_any_class() -> None:
    row = hs.run("pm883-480gb", read=100, depth=4, requests=500)[0]
    assert row["model_error"] == "80 % prediction intervals, learned from 4 SSDs of any class, 2015 to 2021"
    assert row["model_level"] == 0.8
    assert row["p99_model_low_ms"] < row["p99_ms"] < row["p99_model_high_ms"]
    # The own class is used as soon as it has enough models.
    own = hs.run(DRIVE, read=0, depth=32, state="steady", requests=2000)[0]
    assert "data-center NVMe SSDs" in own["model_error"]
    filled = hs.run(DRIVE, read=0, depth=32, requests=2000)[0]
    assert filled["model_error"].startswith(
        "75 % prediction intervals, learned from 3 SSDs of any class, 2015 to 2018; "
    )
    assert filled["model_error"].endswith("measured only with random writes in steady state; add --state steady")


def test_classes_without_enough_models_are_not_known() -> None:
    # One drive measured in another state is no reason to run in that state.
    steady = hs.run("pm883-480gb", read=0, depth=4, state="steady", requests=500)[0]
    assert (
        "not known (0 of 9 data-center SATA SSDs measured with random writes in steady state)" in steady["model_error"]
    )
    volume = hs.run("aws-gp3-500", read=100, depth=4, requests=500)[0]
    assert volume["model_error"].startswith("no interval: not known (0 of 9 volumes measured with random reads)")


def test_runs_with_other_levels_are_headed_by_both() -> None:
    ssd = hs.run(DRIVE, read=0, depth=8, state="steady", requests=2000)
    disk = hs.run("cheetah-x15-36lp", "file-server", depth=4, requests=300)
    both = ssd.and_others(disk)
    assert [row["model_level"] for row in both] == [0.8, 0.9]
    assert "IOPS 80 to 90 %" in [column.title for column in both.shown()[0]]


# The tails of writes.


def test_write_tails_are_two_ranges_with_a_caveat_for_reads() -> None:
    row = hs.run(DRIVE, read=50, rate=20_000, state="steady", requests=4000)[0]
    assert row["model_error"].endswith(f"; {WRITE_TAILS}")
    assert "14 to 330 µs" in row["model_error"]
    assert (
        "0.7 to 13 ms if it collects in bursts (1 of 3), where read p99 is 3 to 10 times as long" in row["model_error"]
    )


@pytest.mark.parametrize(
    "options",
    [
        {"rate": 20_000, "read": 50, "state": "filled"},
        {"rate": 20_000, "read": 100, "state": "steady"},
        {"rate": 20_000, "read": 50, "random": 0, "state": "steady"},
        # Saturated: writes wait for their turn in the queue.
        {"depth": 32, "read": 0, "state": "steady"},
    ],
)
def test_write_tails_are_stated_only_where_they_were_measured(options: dict[str, Any]) -> None:
    assert "write p99" not in hs.run(DRIVE, requests=4000, **options)[0]["model_error"]
    other = hs.run("990-pro-2tb", rate=20_000, read=50, state="steady", requests=4000)
    assert "write p99" not in other[0]["model_error"]


def _probed() -> list[dict[str, Any]]:
    path = SHARED / "validation" / "measured" / "ssdiq_latency_under_load.csv"
    if not path.is_file():
        lacks("data", f"no measurements at {path}")
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["repeat"] == "0"]
    most: dict[str, float] = {}
    for row in rows:
        most[row["device"]] = max(most.get(row["device"], 0.0), float(row["total_writes_per_s"]))
    return [row for row in rows if float(row["total_writes_per_s"]) < KNEE * most[row["device"]]]


def test_measured_write_tails_are_in_the_ranges() -> None:
    rows = _probed()
    assert len(rows) == 45
    p99_us = [float(row["write_99p_us"]) for row in rows]
    assert sum(map(WRITE_TAILS.contains, p99_us)) >= 0.8 * len(rows)
    # The ranges are those of the makers: only Micron's collect in bursts.
    bursts = {row["device"].split()[0] for row, value in zip(rows, p99_us, strict=True) if value > 500}
    assert bursts == {"Micron"}
    assert (len({row["device"].split()[0] for row in rows}), len(bursts)) == (WRITE_TAILS.makers, WRITE_TAILS.in_bursts)
    # No wider than what was measured, rounded to two digits.
    paced = [value for row, value in zip(rows, p99_us, strict=True) if not row["device"].startswith("Micron")]
    late = [value for value in p99_us if value > 500]
    assert (min(paced), max(paced)) == pytest.approx(WRITE_TAILS.paced_us, rel=0.05)
    assert (min(late), max(late)) == pytest.approx(WRITE_TAILS.bursts_us, rel=0.06)


def test_measured_rates_of_worn_in_ssds_are_in_the_intervals_of_the_others() -> None:
    scores = calibration.catalogue_scores()["data-center-nvme"]
    for figure in ("rate", "mean", "p50", "p99"):
        coverage = calibration.leave_one_out(scores, figure, "write")
        assert coverage is not None
        assert coverage.share >= coverage.level == 0.75
    # One is left out: the ranges of the others are not those of a drive that has its own measurements.
    assert len({device.name for device in scores.devices}) == 4
