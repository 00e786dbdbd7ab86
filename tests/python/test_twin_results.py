"""The twin of a drive of which only fio's results are known."""

from __future__ import annotations

import copy
import csv
import json
from pathlib import Path

import numpy as np
import pytest

import headstack as hs
from conftest import SHARED, Headstack, lacks
from headstack.catalogue.system import load_system
from headstack.twin import cell_checks, fio_results, published
from headstack.twin.learnt import Residual

FIO = SHARED / "validation/fio-systems.csv"


def job(point: fio_results.Point, **stated: object) -> dict[str, object]:
    """A job of fio's JSON that saw this point, of which submission took 2 us."""
    times = {"50.000000": point.p50_s, "95.000000": point.p95_s, "99.000000": point.p99_s}
    seen = {
        "iops": point.rate,
        "runtime": 60_000,
        "slat_ns": {"mean": 2000.0},
        "lat_ns": {"min": 1e9 * point.least_s, "mean": 1e9 * point.depth / point.rate, "max": 2e9 * point.p99_s},
        "clat_ns": {"percentile": {name: round(1e9 * time) - 2000 for name, time in times.items()}},
    }
    options = {"rw": f"rand{point.kind}", "iodepth": str(point.depth), "bs": "4k"}
    return {"job options": options, point.kind: seen | stated}


def written(path: Path, jobs: list[dict[str, object]]) -> str:
    path.write_text("fio: a note\n" + json.dumps({"global options": {"ioengine": "libaio"}, "jobs": jobs}))
    return str(path)


def test_results_are_read_as_fio_writes_them(tmp_path: Path) -> None:
    point = fio_results.Point("read", 4, 4096, 1000.0, 0.003, 0.006, 0.009, 0.001)
    (found,) = fio_results.load([written(tmp_path / "a.json", [job(point)])])
    assert found.logarithms == pytest.approx(point.logarithms)
    assert (found.kind, found.depth, found.size_bytes, found.stalls) == ("read", 4, 4096, 0)


def test_a_stall_is_no_part_of_a_rate(tmp_path: Path) -> None:
    """30 of 60 s without an answer, at a depth of 4: half of the rate, and four requests of 30 s."""
    point = fio_results.Point("read", 4, 4096, 500.0, 0.004, 0.004, 0.004, 0.004)
    mean_s = (4 * 30 + 29_996 * 0.004) / 30_000
    stalled = job(point, lat_ns={"min": 4e6, "mean": 1e9 * mean_s, "max": 30e9})
    (found,) = fio_results.load([written(tmp_path / "a.json", [stalled])])
    assert found.stalls == 1
    assert found.rate == pytest.approx(1000.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "contains no fio JSON"),
        ('{"jobs": []}', "no results of random reads or writes"),
        ('{"jobs": [{"job options": {"rw": "randread"}, "read": {}}]}', "'clat_ns' is missing"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(hs.InputError, match=words):
        fio_results.load([str(path)])


def test_a_drive_unlike_its_sheet_is_known_from_two_depths(headstack: Headstack, tmp_path: Path) -> None:
    """Another command time, flash and limit than the sheet's: the depths between are foretold."""
    sheet = load_system("pm883-480gb").system
    true = copy.deepcopy(sheet)
    controller, timing = true["drive"]["ssd"]["controller"], true["drive"]["ssd"]["timing"]
    controller |= {"command_ns": 40_000, "command_interval_ns": 18_000, "write_interval_ns": 22_000}
    timing["read_ns"] = 80_000
    points = [
        published.simulated(true, kind, depth, 4096, seed=5)
        for kind, depths in (("read", (1, 2, 4, 8, 32)), ("write", (1, 8, 32)))
        for depth in depths
    ]
    path, twin = written(tmp_path / "fio.json", list(map(job, points))), tmp_path / "twin.toml"
    out = headstack(
        "measure", "twin", "results", path, "--sheet", "pm883-480gb", "--host", "direct", "-o", str(twin)
    ).stdout
    assert "mean error of the 4 held-out depths:" in out
    found = load_system(twin).system
    model = [published.simulated(found, point.kind, point.depth, 4096, seed=9) for point in points]
    off = np.array([abs(one.logarithms - point.logarithms) for one, point in zip(model, points, strict=True)])
    assert off[:, 0].max() < 0.05, off
    assert off[:, 3].mean() < 0.12, off
    assert "Twin of fio.json" in twin.read_text()


def test_what_is_left_lies_between_the_depths_beside() -> None:
    left = {("read", 1): Residual(0.0, 0.1, 0.4, 9), ("read", 4): Residual(0.0, 0.3, 0.0, 9)}
    found = published.Published({}, "direct", left)
    between = found.between("read", 2)
    assert between is not None
    assert [between.p50, between.p99] == pytest.approx([0.2, 0.2])
    assert found.between("read", 8) is None
    assert found.between("write", 2) is None


def test_a_real_drive_is_near_between_its_depths(headstack: Headstack, tmp_path: Path) -> None:
    """One drive that is nowhere fitted to; a bound over what was found (rates 2.0 %)."""
    if not FIO.is_file():
        lacks("data", f"no validation data: {FIO}")
    name = "HPMICROSERVERG8/SATA300/SAMSUNGPM833"
    twin = tmp_path / "twin.toml"
    headstack(
        "measure",
        "twin",
        "results",
        str(FIO),
        "--system",
        name,
        "--sheet",
        "pm883-480gb",
        "--host",
        "direct",
        "-o",
        str(twin),
    )
    points = [point for point in fio_results.load([str(FIO)], name) if point.depth in (2, 4, 8, 16)]
    assert len(points) == 8
    model = [published.simulated(load_system(twin).system, one.kind, one.depth, 4096) for one in points]
    off = [abs(one.logarithms - point.logarithms) for one, point in zip(model, points, strict=True)]
    assert np.mean([one[0] for one in off]) < 0.04


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("measure", "twin", "/no/such/disk", "-o", "t.toml"), "/no/such/disk: no such file or device"),
        (("measure", "twin", "validate", "--devices", "0"), "--devices: 0 is out of range"),
    ],
)
def test_what_cannot_be_calibrated_is_refused_in_a_line(
    command: tuple[str, ...], words: str, headstack: Headstack
) -> None:
    done = headstack(*command)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert words in done.stderr


SABRENT = SHARED / "validation/measured/sabrent_rocket4plus_fio.csv"


def write_point(depth: int, rate: float, ended_s: float | None = None, jobs: int = 1) -> fio_results.Point:
    """Writes at a steady rate."""
    took_s = depth * jobs / rate
    return fio_results.Point(
        "write", depth, 4096, rate, took_s, 1.2 * took_s, 2 * took_s, 0.5 * took_s,
        jobs=jobs, runtime_s=60.0, ended_s=ended_s,
    )  # fmt: skip


def test_a_cell_in_another_state_is_named_with_its_two_rates() -> None:
    """80 % of the time at a twentieth of the rate, after 0.5 TB of writes."""
    steady = [
        write_point(depth, rate, 60.0 * number)
        for number, (depth, rate) in enumerate([(1, 100e3), (2, 200e3), (8, 300e3)])
    ]
    slow = fio_results.Point(
        "write", 4, 4096, 72e3, 4 / 300e3, 4 / 15e3, 4 / 12e3, 1e-5, runtime_s=60.0, ended_s=400.0
    )  # fmt: skip
    (change,) = cell_checks.state_changes([*steady, slow])
    text = change.describe()
    assert text.startswith("write, depth 4, 1 job: 72,000/s where depth 2 did 200,000/s and depth 8 did 300,000/s: ")
    assert "300,000/s and 15,000/s for 80% of the time" in text
    assert f"had written {4096 * 60 * 600e3 / 1e9:,.0f} GB before" in text
    levels = cell_checks.levels_of(slow)
    assert levels is not None
    assert levels.slow_share == pytest.approx(0.8)
    assert cell_checks.levels_of(steady[0]) is None


@pytest.mark.parametrize(
    "points",
    [
        # One job is limited by its CPU.
        [write_point(32, 300e3), write_point(2, 520e3, jobs=16)],
        # A processor that sleeps between requests at depth 1.
        [write_point(1, 15_300), write_point(2, 47_000)],
        # Deep queues cost a little.
        [write_point(8, 308e3), write_point(64, 260e3)],
    ],
)
def test_one_state_is_not_taken_for_two(points: list[fio_results.Point]) -> None:
    assert cell_checks.state_changes(points) == []


def test_the_slower_of_two_repeats_is_named() -> None:
    (change,) = cell_checks.state_changes([write_point(8, 300e3, 60.0), write_point(8, 240e3, 120.0)])
    assert "240,000/s where a repeat did 300,000/s" in change.describe()


def test_results_of_several_jobs_and_their_times_are_read(tmp_path: Path) -> None:
    """Jobs reported together are one cell; separate ones have a part of the rate each."""
    path = tmp_path / "a.json"
    point = write_point(4, 200e3)
    together, apart = job(point), job(point)
    options = together["job options"]
    assert isinstance(options, dict)
    options |= {"numjobs": "8", "group_reporting": ""}
    path.write_text(json.dumps({"timestamp_ms": 5_000, "jobs": [together]}))
    assert isinstance(apart["job options"], dict)
    apart["job options"] |= {"numjobs": "8"}
    other = tmp_path / "b.json"
    other.write_text(json.dumps({"timestamp": 3, "jobs": [apart, job(write_point(1, 50e3))]}))
    found = fio_results.load_all([str(path), str(other)])
    assert [(one.depth, one.jobs, one.outstanding, one.ended_s) for one in found] == [(1, 1, 1, 3.0), (4, 8, 32, 5.0)]


def from_rows(system: str, folder: Path) -> list[str]:
    """The Sabrent's runs as fio's JSON, one file a run."""
    paths = []
    for number, point in enumerate(fio_results.load_all([str(SABRENT)], system)):
        one = job(point)
        options = one["job options"]
        assert isinstance(options, dict)
        options |= {"numjobs": str(point.jobs), "group_reporting": ""}
        one[point.kind] |= {"runtime": 1e3 * point.runtime_s}  # type: ignore[operator]
        one[point.kind]["lat_ns"]["mean"] = 1e9 * point.outstanding / point.rate  # type: ignore[index]
        paths.append(written(folder / f"{number}.json", [one]))
    return paths


@pytest.mark.parametrize(("sector", "slow"), [("512", {4}), ("4096", {16, 32, 64})])
def test_a_cache_that_ran_out_within_a_set_does_not_fool_the_model(
    sector: str, slow: set[int], headstack: Headstack, tmp_path: Path
) -> None:
    """A Sabrent Rocket 4 Plus, with the sheet of a drive with the same controller and flash. The factors of the checks
    were fitted to this set; the model is fitted to outstanding 1 and 32. Bounds over what was found: write rates 14 %
    at most; reads 10 % on average and 30 % at most up to 32."""
    if not SABRENT.is_file():
        lacks("data", f"no validation data: {SABRENT}")
    system, twin = f"SB-RKT4P-2TB/{sector}_sector", tmp_path / "twin.toml"
    paths = from_rows(system, tmp_path) if sector == "512" else [str(SABRENT), "--system", system]
    out = headstack(
        "measure", "twin", "results", *paths, "--sheet", "kc3000-2tb", "--depths", "1,32", "-o", str(twin)
    ).stdout  # fmt: skip
    cells = {int(line.split()[4].rstrip(",")) for line in out.splitlines() if line.startswith("not used: write")}
    assert cells == slow, out
    assert out.count("state changed") >= len(slow)
    model = load_system(twin).system
    runs = [point for point in fio_results.load_all([str(SABRENT)], system) if point.size_bytes == 4096]
    writes = [point for point in runs if (point.kind, point.jobs) == ("write", 1) and point.depth not in slow]
    reads = [point for point in runs if point.kind == "read" and point.depth == 1 and point.jobs <= 32]
    off = {
        kind: [
            abs(np.log(published.simulated(model, kind, point.outstanding, 4096).rate / point.rate)) for point in points
        ]
        for kind, points in (("read", reads), ("write", writes))
    }
    assert max(off["write"]) < 0.2, off
    assert np.mean(off["read"]) < 0.15, off


def test_no_cell_of_a_drive_in_one_state_is_refused() -> None:
    """SATA SSDs that are measured in one state."""
    if not FIO.is_file():
        lacks("data", f"no validation data: {FIO}")
    names = ("SAMSUNG_PM883", "SAMSUNGPM833", "PM833_MZ7LH480HAHQ", "D3-S4610", "INTELD3S4610", "INTEL_D3_S4610")
    with FIO.open(newline="") as file:
        systems = {row["system"] for row in csv.DictReader(file)}
    checked = [system for system in systems if any(name in system for name in names)]
    assert len(checked) >= 8
    for system in checked:
        runs = fio_results.load_all([str(FIO)], system)
        changes = [change.describe() for change in cell_checks.state_changes(runs) if change.point.jobs == 1]
        dependent = [cell.describe() for cell in cell_checks.dependent_reads(runs)]
        assert (changes, dependent) == ([], []), system
