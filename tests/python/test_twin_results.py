"""The twin of a drive of which only fio's results are known."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import headstack as hs
from conftest import SHARED, Headstack, lacks
from headstack.catalogue.system import load_system
from headstack.twin import fio_results, published
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
