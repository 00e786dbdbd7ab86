"""SNIA's performance test specification: the rule of the steady state, the course of its tests, and their reports."""

import csv
import importlib.util
import io
import json
import math
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headstack as hs
from conftest import Headstack
from headstack.measurement.access import Access
from headstack.measurement.tests.pts.outcomes import FIELDS, Outcome, Settings
from headstack.measurement.tests.pts.plans import PLANS, Point
from headstack.measurement.tests.pts.steady import Window, last_window, steady_state
from headstack.measurement.tests.pts.testing import Report, pts

# The rule.


def test_the_rule_judges_range_and_slope_of_five_rounds() -> None:
    # Average 100; range 110 - 90, at the limit; -2 * 4 + 10 - 2 + 2 * 10 = 20, by 10: the line rises by 2 a round.
    window = steady_state([104, 90, 98, 98, 110])
    assert window is not None
    assert (window.first, window.last, window.mean) == (1, 5, 100)
    assert window.range_share == pytest.approx(0.20)
    assert window.slope == pytest.approx(2)
    assert window.slope_share == pytest.approx(0.08)
    assert window.intercept == pytest.approx(94)
    # The same in another order: 2 * 10 + 2 - 2 + 2 * 10 = 40, by 10: 16 %, and steady no more.
    window = last_window([90, 98, 104, 98, 110])
    assert window is not None
    assert (round(window.slope, 9), round(window.slope_share, 9), window.is_steady) == (4, 0.16, False)


def line(slope: float, mean: float = 1000) -> list[float]:
    return [mean + slope * place for place in (-2, -1, 0, 1, 2)]


@pytest.mark.parametrize(
    ("values", "is_steady"),
    [
        (line(25), True),  # 4 times 25 are 10 % of 1000
        (line(-25), True),
        (line(25.1), False),
        (line(-25.1), False),
        ([900, 1100, 1000, 1100, 900], True),  # a range of 20 %, no slope
        ([899, 1100, 1001, 1100, 900], False),
        ([900, 1100, 1000, 1000, 1000], True),  # slope +10 a round
        ([1100, 1100, 1000, 900, 900], False),  # the range is kept, the slope of -60 is not
        ([7, 7, 7, 7, 7], True),
        ([0, 0, 0, 0, 0], False),
        ([1e-9] * 5, True),
        ([1e12, 1.1e12, 1.05e12, 1.1e12, 1e12], True),
    ],
)
def test_limits_are_kept_when_they_are_met(values: list[float], is_steady: bool) -> None:
    assert (steady_state(values) is not None) is is_steady


def test_fewer_than_five_rounds_are_never_steady() -> None:
    for count in range(5):
        assert steady_state([100.0] * count) is None
        assert last_window([100.0] * count) is None


def test_the_first_steady_window_counts() -> None:
    falling = [3000, 2000, 1500, 1200, 1050, 1000, 990, 1000, 980, 1010, 500, 500, 500, 500, 500]
    window = steady_state(falling)
    assert window is not None
    # 1050 to 980: range 7 %, slope -14.2 a round. 1200 to 1000 have a range of 20.1 %.
    assert (window.first, window.values) == (5, (1050, 1000, 990, 1000, 980))
    assert window.slope == pytest.approx(-14)
    assert window.intercept + 7 * window.slope == pytest.approx(1004)


def test_the_line_is_that_of_least_squares() -> None:
    dice = random.Random(1)
    for _ in range(200):
        values = tuple(dice.uniform(500, 1500) for _ in range(5))
        window = Window(dice.randrange(1, 20), values)

        def squares(slope: float, intercept: float, window: Window = window) -> float:
            return sum(
                (value - slope * number - intercept) ** 2 for number, value in enumerate(window.values, window.first)
            )

        best = squares(window.slope, window.intercept)
        for change in (-0.5, 0.5):
            assert squares(window.slope + change, window.intercept) > best
            assert squares(window.slope, window.intercept + change) > best


# The tests.


def test_the_plans_are_those_of_the_specification() -> None:
    [iops] = PLANS["iops"]
    assert len(iops.points) == 56
    assert len(set(iops.points)) == 56
    assert iops.points[0] == Point(1 << 20, 100, True)
    assert (iops.tracked.block, iops.tracked.mix, iops.rounds_max) == ("4 KiB", "0/100", 25)
    assert [plan.tracked.block for plan in PLANS["throughput"]] == ["1024 KiB", "128 KiB"]
    [latency] = PLANS["latency"]
    assert (len(latency.points), latency.depth) == (9, 1)
    [wsat] = PLANS["wsat"]
    assert (wsat.group, wsat.capacities_max, wsat.preconditioned) == (30, 4.0, False)


def figures(iops: float) -> dict[str, Any]:
    names = ("mb_per_s", "mean_ms", "p50_ms", "p99_ms", "p999_ms", "max_ms", "requests", "errors")
    return {"iops": iops, **dict.fromkeys(names, 1)}


def test_averages_are_those_of_the_window() -> None:
    [plan] = PLANS["wsat"]
    values = [3000.0, 2000.0, 1010.0, 1000.0, 990.0, 1000.0, 1000.0, 1.0]
    single = Outcome(replace(plan, group=1), [[figures(value)] for value in values])
    assert single.steady is not None
    assert (single.steady.first, single.mean(plan.tracked, "iops")) == (3, 1000)
    # Half-hours: rounds 61 to 210 of the window 3 to 7.
    grouped = Outcome(plan, [[figures(value)] for value in values for _ in range(30)])
    assert grouped.values == values
    assert len(grouped.window_rounds()) == 150
    assert grouped.mean(plan.tracked, "iops") == 1000


def test_a_short_run_of_all_tests_says_what_it_is(headstack: Headstack, tmp_path: Path) -> None:
    table, picture = tmp_path / "rounds.csv", tmp_path / "pts.png"
    columns = tmp_path / "rounds.parquet"
    outputs = ["--csv", str(table), "--parquet", str(columns), "--json", "-"]
    if importlib.util.find_spec("matplotlib") is not None:
        outputs += ["--plot", str(picture)]
    code, out, _ = headstack(
        "measure", "pts", "null:200us", "--capacity", "0.0005%", "--round-time", "5ms", "--rounds", "6",
        "--purge", "none", "-q", *outputs,
    )  # fmt: skip
    assert code == 0
    report = json.loads(out)
    assert [test["name"] for test in report["tests"]] == [
        "iops",
        "throughput 1024 KiB",
        "throughput 128 KiB",
        "latency",
        "wsat",
    ]
    assert not report["conforms"]
    assert len(report["deviations"]) == 5
    assert report["capacity_bytes"] == 5 << 20
    for test in report["tests"]:
        rounds = len(test["rounds"])
        assert rounds <= 6
        assert test["is_steady"] or rounds == 6 or test["written_bytes"] >= 20 << 20
        window = test["window"]
        if window is not None:
            steady = window["range_share"] <= 0.2 and window["slope_share"] <= 0.1
            assert steady == test["is_steady"]
            assert math.isclose(window["mean"], sum(test["values"][window["first"] - 1 : window["last"]]) / 5)
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert len(rows) == sum(len(test["rounds"]) * len(test["averages"]) for test in report["tests"])
    assert {row["random"] for row in rows if row["test"].startswith("throughput")} == {"False"}
    with duckdb.connect() as connection:
        kinds = connection.read_parquet(str(columns))
        assert kinds.columns == list(rows[0]) == [field.name for field in FIELDS]
        assert {
            "in_window": "BOOLEAN",
            "block_bytes": "UBIGINT",
            "test": "VARCHAR",
            "p99_ms": "DOUBLE",
        }.items() <= dict(zip(kinds.columns, map(str, kinds.types), strict=True)).items()
        [total] = connection.sql(f"select sum(requests)::bigint from '{columns}'").fetchall()
    assert total == (sum(int(row["requests"]) for row in rows),)
    if picture.exists():
        assert picture.read_bytes()[:4] == b"\x89PNG"


def test_a_file_is_no_device_and_is_written_only_with_a_word(headstack: Headstack, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(2 << 20))
    arguments = ("measure", "pts", str(path), "--test", "throughput", "--round-time", "10ms", "--rounds", "5")
    code, _, err = headstack(*arguments, "--buffered", "-q")
    assert (code, "overwrite" in err) == (2, True)
    assert not any(path.read_bytes())
    code, out, _ = headstack(*arguments, "--buffered", "-q", "--overwrite")
    assert code == 0
    contents = path.read_bytes()
    assert all(contents[at : at + 512].strip(b"\0") for at in range(0, 2 << 20, 512))
    for words in ("was not purged", "is a file, not a device", "page cache", "not 60 s", "at most 5 rounds"):
        assert words in out


def test_the_capacity_that_is_not_used_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(4 << 20))
    settings = Settings(tests=("throughput", "wsat"), capacity_percent=50, round_ns=10_000_000, rounds_max=5)
    report = pts(path, settings, Access(overwrite=True, buffered=True, threads=2))
    assert report.capacity_bytes == 2 << 20
    assert any("50 %" in words for words in report.deviations)
    contents = path.read_bytes()
    assert not any(contents[2 << 20 :])
    assert all(contents[at : at + 512].strip(b"\0") for at in range(0, 2 << 20, 512))


def test_ctrl_c_keeps_whole_rounds(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    command = "import sys; from headstack.cli.main import main; main(sys.argv[1:])"
    arguments = ["measure", "pts", "null:1ms", "--purge", "none", "--test", "wsat", "--round-time", "200ms"]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *arguments, "--json", str(path)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    lines = []
    for text in process.stderr:
        lines.append(text)
        if "round 4" in text:
            break
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "complete rounds are kept: stopped by hand" in err
    report = json.loads(path.read_text())
    assert report["ended_early"] == "stopped by hand"
    assert len(report["tests"][0]["rounds"]) == 3


def test_what_cannot_be_tested_is_one_line(headstack: Headstack, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(bytes(1 << 19))
    for arguments, complaint in [
        (("null", "--test", "iops,speed"), "allowed: iops, throughput, latency, wsat"),
        (("null", "--purge", "magic"), "blkdiscard, format, none"),
        (("null", "--purge", "format"), "NVMe"),
        (("null", "--capacity", "0%"), "capacity"),
        (("null", "--capacity", "101"), "capacity"),
        (("null", "--active-range", "-1"), "active-range"),
        (("null", "--round-time", "0s"), "above 0"),
        (("null", "--rounds", "0"), "above 0"),
        (("null", "--threads", "64"), "cannot share"),
        (("null", "--depth", "0"), "cannot share"),
        ((str(small), "--overwrite", "--buffered"), "1 MiB"),
        (("null", "--json", "-", "--csv", "-"), "named twice"),
        (("null", "--plot", "picture.txt"), "picture format; allowed: png, svg, pdf"),
    ]:
        code, out, err = headstack("measure", "pts", *arguments, "-q")
        assert (code, out) == (2, ""), arguments
        assert complaint in err, arguments
        assert err.count("\n") == 1


def test_the_settings_of_the_specification_deviate_in_nothing() -> None:
    assert Settings().deviations() == []
    assert Settings(active_range_percent=75, rounds_max=25).deviations() == []
    report = Report("/dev/sdx", {}, Settings(), 1 << 40)
    assert report.figures()["conforms"]


def test_a_device_is_purged_when_it_is_named(loop_device: tuple[str, Path]) -> None:
    device, backing = loop_device
    # Write saturation is not preconditioned: what a single measurement of 1 ms leaves untouched, the purge has emptied.
    settings = Settings(tests=("wsat",), round_ns=1_000_000, rounds_max=1)
    with pytest.raises(hs.InputError, match="--destroy"):
        pts(device, settings)
    assert backing.read_bytes().count(b"\0" * 4096) == 0
    report = pts(device, settings, Access(destroy=(device,)))
    assert report.ended_early is None
    assert not any("purged" in words for words in report.deviations)
    subprocess.run(["sync", device], check=True)
    contents = backing.read_bytes()
    blocks = [contents[at : at + 4096] for at in range(0, len(contents), 4096)]
    assert sum(not any(block) for block in blocks) > len(blocks) / 2
