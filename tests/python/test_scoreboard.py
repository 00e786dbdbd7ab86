"""The scoreboard: its format, the errors of measured devices, and intervals learned from other devices."""

from __future__ import annotations

import csv
import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import REPOSITORY, Headstack
from headstack.comparison.scoreboard.board import Scoreboard
from headstack.comparison.scoreboard.measured_device import (
    MeasuredDevice,
    Point,
    read_device,
    read_folder,
    write_device,
)
from headstack.comparison.scoreboard.pages import PAGES, with_tables
from headstack.comparison.scoreboard.scored_devices import error_of
from headstack.comparison.scoreboard.scoring import OPEN_REQUESTS, score
from headstack.comparison.scoreboard.shipped import write_catalogue
from headstack.measurement.measurement import Opened
from headstack.results.intervals import calibration
from headstack.results.intervals.calibration import Cell, ClassScores, Device, Load

DISK = "cheetah-x15-36lp"
FIGURES = {"rate": 100.0, "mean": 10.0, "p50": 9.5, "p95": 18.0, "p99": 25.25, "p99.9": 40.0}
POINTS = (
    Point("randread", FIGURES, 4, 2, 100.0, "4KiB"),
    Point("randrw", {"p99": 3.0}, 1, 1, 70.0, "8KiB", latency_of="reads", offered_iops=250.0, state="steady"),
    Point("randwrite", {"rate": 5000.0}, 16, 1, 0.0, "4KiB", state="fresh", range="0..10GB"),
    Point("file-server", {"rate": 120.0}, 4),
)
DEVICE = MeasuredDevice(
    'A "quoted" model', DISK, "sheet and host", "a test", "CC0-1.0", POINTS, host="ahci", fitted="its overhead"
)


# The format.


def test_a_device_written_and_read_back_is_equal(tmp_path: Path) -> None:
    write_device(DEVICE, tmp_path, "one")
    assert read_device(tmp_path / "one.toml") == replace(DEVICE, folder=tmp_path)
    assert (tmp_path / "one.csv").read_text().splitlines()[0] == (
        "rw,read_percent,block_size,depth,jobs,iops,mean_us,p50_us,p95_us,p99_us,p999_us,"
        "latency_of,offered_iops,state,range"
    )


TOML = """version = 1
device = "Model"
system = "cheetah-x15-36lp"
described = "sheet"
source = "a test"
licence = "CC0-1.0"
"""
HEAD = "rw,read_percent,block_size,depth,jobs,iops,mean_us,p50_us,p95_us,p99_us,p999_us"
ROW = "randread,100,4KiB,4,1,200,,,,,"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 9", "one.toml:1: version: 9: this build reads version 1"),
        ('"sheet"', '"guess"', "one.toml:4: described: 'guess' is unknown; allowed: sheet, short sheet, "),
        ('"sheet"', '"calibrated"', 'one.toml:4: described: a calibrated device needs "fitted"'),
        ('source = "a test"', 'sauce = "a test"', "one.toml:5: sauce: unknown key; allowed: version, device, system"),
        ('source = "a test"', "", "one.toml: source: missing; give who measured the device"),
        ('source = "a test"', "source = 7", "one.toml:5: source: needs a text that is not empty"),
        ('"CC0-1.0"', '"CC0-1.0"\nhost = "warp"', "one.toml:7: host: 'warp' is unknown; allowed: direct"),
        ('"CC0-1.0"', '"CC0-1.0"\nhost = "ahci"', 'one.toml:7: host: a device with a host is described by "sheet and'),
        ("version = 1", "version = ", "one.toml: not valid TOML"),
        ("p999_us", "p42_us", "one.csv:1: p42_us: unknown column; allowed: rw, read_percent"),
        (",p999_us", "", "one.csv:1: p999_us: missing column"),
        ("randread,100", "randomread,100", "one.csv:2: rw: 'randomread' is unknown; allowed: randread, randwrite"),
        ("randread,100", "randread,70", "one.csv:2: read_percent: 70 contradicts randread, which has 100"),
        ("randread,100", "randrw,", "one.csv:2: read_percent: empty; randrw needs the percentage of reads, 0 to 100"),
        ("randread,100", "randrw,170", "one.csv:2: read_percent: '170' is not a number; allowed: 0 to 100, or empty"),
        ("4KiB,4,1", "big,4,1", "one.csv:2: block_size: "),
        ("4KiB,4,1", "4KiB,0,1", "one.csv:2: depth: '0' is not a whole number of at least 1"),
        (",200,", ",-3,", "one.csv:2: iops: '-3' is not a number; allowed: above 0, or empty"),
        (",200,", ",,", "one.csv:2: iops: no figure in this row; give IOPS or a latency"),
        (ROW, "", "one.csv: no measurements; add a row"),
        (ROW, f"{ROW},7", "one.csv:2: 11 columns expected, as in the first line"),
        ("randread,100", "file-server,", "one.csv:2: block_size: file-server has its own; leave the cell empty"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_line_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    table = f"{HEAD}\n{ROW}\n"
    assert old in TOML or old in table
    (tmp_path / "one.toml").write_text(TOML.replace(old, new))
    (tmp_path / "one.csv").write_text(table.replace(old, new))
    with pytest.raises(hs.InputError) as refused:
        read_folder(tmp_path)
    assert f"{tmp_path}/{message}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_device_without_measurements_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hs.InputError, match=r"contains no NAME\.toml with NAME\.csv"):
        read_folder(tmp_path)
    (tmp_path / "one.toml").write_text(TOML)
    with pytest.raises(hs.InputError, match=r"one\.toml: has no measurements; add one\.csv"):
        read_folder(tmp_path)
    # The description of a system next to a device is no device.
    (tmp_path / "one.csv").write_text(f"{HEAD}\n{ROW}\n")
    (tmp_path / "drive.toml").write_text('name = "x"\n')
    assert [device.device for device in read_folder(tmp_path)] == ["Model"]


# Errors.


def simulated(depth: int, factor: float, **figures: float) -> Point:
    """A measurement that the simulation misses by a factor."""
    row = hs.run(DISK, read=100, depth=depth, requests=40_000)[0]
    values = {"rate": row["iops"] / factor, "p99": row["p99_ms"], **figures}
    return Point("randread", values, depth, 1, 100.0, "4KiB")


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a device whose simulated rate is 25 % too high at depth 1, and 20 % too low at depth 4."""
    folder = tmp_path_factory.mktemp("synthetic")
    device = MeasuredDevice("Synthetic", DISK, "sheet", "a test", "CC0-1.0", (simulated(1, 1.25), simulated(4, 0.8)))
    write_device(device, folder, "synthetic")
    return folder


def test_errors_are_those_of_the_construction(synthetic: Path) -> None:
    [scored] = score(read_folder(synthetic))
    assert scored.of_class == "disk"
    cells = calibration.class_scores("disk", [scored.entry], {}).devices[0].cells
    errors = {(cell.load.depth, cell.figure): error_of(cell) for cell in cells}
    assert errors == pytest.approx({(1, "rate"): 0.25, (1, "p99"): 0.0, (4, "rate"): -0.2, (4, "p99"): 0.0}, abs=1e-4)
    assert {(cell.load.kind, cell.load.size_bytes) for cell in cells} == {("read", 4096)}
    assert {"device", "year", "described", "source", "licence"} <= scored.entry.keys()


def test_splits_of_a_depth_over_jobs_are_one_load(synthetic: Path) -> None:
    (device,) = read_folder(synthetic)
    one = device.points[1]
    halves = replace(one, depth=2, jobs=2, figures={"rate": 3 * one.figures["rate"]})
    [scored] = score([replace(device, points=(one, halves))])
    rate = next(cell for cell in scored.entry["cells"] if cell["figure"] == "rate")
    assert rate["depth"] == 4
    assert math.exp(rate["log_ratio"]) == pytest.approx(2 / 0.8, abs=1e-3)


def test_latencies_of_reads_of_a_mix_and_of_an_open_loop_are_their_own(synthetic: Path) -> None:
    (device,) = read_folder(synthetic)
    run = hs.run(DISK, read=50, rate=40, requests=OPEN_REQUESTS)
    whole = run.whole(0)["kinds"]
    latencies = {kind: whole[kind]["latency"] for kind in ("read", "write")}
    means = {kind: latency["sum_ns"] / latency["count"] / 1e6 for kind, latency in latencies.items()}
    assert means["read"] != pytest.approx(means["write"], rel=0.01)
    points = [
        Point("randrw", {"mean": mean}, 1, 1, 50.0, "4KiB", latency_of=f"{kind}s", offered_iops=40.0)
        for kind, mean in means.items()
    ]
    [scored] = score([replace(device, points=tuple(points))])
    assert [(cell["kind"], cell["log_ratio"]) for cell in scored.entry["cells"]] == [
        ("open mix: reads", 0.0),
        ("open mix: writes", 0.0),
    ]


def test_a_load_that_cannot_be_simulated_names_the_device(synthetic: Path) -> None:
    (device,) = read_folder(synthetic)
    point = replace(device.points[0], range="nowhere")
    with pytest.raises(hs.InputError, match="Synthetic: 4KiB randread: "):
        score([replace(device, points=(point,))])


# Intervals from the other devices.


def board_of(log_ratios: list[float], fitted: float | None = None) -> Scoreboard:
    """A class of disks, each with one error of its rate; one may be fitted."""
    load = Load("read", 4, 4096)
    devices = [
        Device(f"disk-{number}", (Cell("reads", load, "rate", log_ratio, 0.0),))
        for number, log_ratio in enumerate(log_ratios)
    ]
    if fitted is not None:
        devices.append(Device("fitted", (Cell("reads", load, "rate", fitted, 0.0),), fitted="all"))
    return Scoreboard({"disk": ClassScores("disk", tuple(devices))})


def test_intervals_of_a_device_come_from_the_others() -> None:
    board = board_of([0.01, -0.02, 0.03, 0.4], fitted=0.2)
    rows = {row["device"]: row for row in board.table_rows()}
    # The interval reaches to the largest error of the other three.
    assert [rows[f"disk-{n}"]["inside"] for n in range(4)] == [True, True, True, False]
    assert rows["disk-3"]["low_percent"] == pytest.approx(100 * math.expm1(-0.03), abs=0.01)
    assert (rows["disk-3"]["models"], rows["disk-3"]["level_percent"]) == (3, 75.0)
    # A fitted device teaches nothing, and has an interval of its own.
    assert rows["fitted"]["inside"]
    assert rows["fitted"]["models"] == 4
    predicted, own = board.summaries()
    assert (predicted.is_fitted, predicted.devices, own.is_fitted, own.devices) == (False, 4, True, 1)
    assert predicted.held["rate"].share == 0.75
    errors = [abs(math.expm1(-log_ratio)) for log_ratio in (0.01, -0.02, 0.03, 0.4)]
    assert predicted.errors["rate"].mean == pytest.approx(sum(errors) / 4)
    assert predicted.errors["rate"].worst == pytest.approx(max(errors))
    assert predicted.errors["rate"].median == pytest.approx(sum(sorted(errors)[1:3]) / 2)


def test_two_devices_have_no_interval() -> None:
    assert {row["inside"] for row in board_of([0.01, 0.02]).table_rows()} == {None}
    assert board_of([0.01, 0.02]).summaries()[0].held == {}


def test_a_folder_joins_the_shipped_devices(synthetic: Path) -> None:
    board = hs.scoreboard([synthetic])
    assert {device.name for _, device in board.devices()} == {"Synthetic"}
    shipped = len(Scoreboard.shipped().classes["disk"].devices)
    assert len(board.classes["disk"].devices) == shipped + 1
    rate = next(row for row in board.table_rows() if (row["depth"], row["figure"]) == (4, "rate"))
    assert rate["models"] >= 9
    assert not rate["inside"]
    alone = hs.scoreboard([synthetic], alone=True)
    assert {row["inside"] for row in alone.table_rows()} == {None}


# What ships.


def test_the_shipped_errors_are_written_as_they_are_read(tmp_path: Path, synthetic: Path) -> None:
    write_catalogue(score(read_folder(synthetic)), tmp_path / "catalogue.json")
    (device,) = calibration.read(tmp_path / "catalogue.json")["disk"].devices
    assert (device.name, device.described, device.source) == ("Synthetic", ("sheet",), "a test")


def test_the_shipped_file_has_ratios_only() -> None:
    contents = json.loads(calibration.CATALOGUE.read_text())
    allowed = {"workload", "kind", "depth", "size_bytes", "state", "figure", "log_ratio"}
    devices = [device for of_class in contents["classes"].values() for device in of_class["devices"]]
    assert {key for device in devices for cell in device["cells"] for key in cell} <= allowed


# The command.


def test_the_command_prints_and_writes_the_errors(headstack: Headstack, tmp_path: Path, synthetic: Path) -> None:
    files = [f"--json={tmp_path}/b.json", f"--csv={tmp_path}/b.csv", f"--html={tmp_path}/b.html"]
    done = headstack("lab", "scoreboard", str(synthetic), *files)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 measured model: 1 predicted; half of the predicted models have a mean error of")
    assert "Synthetic" in done.stdout
    contents = json.loads((tmp_path / "b.json").read_text())
    assert contents["format"] == "headstack scoreboard"
    (summary,) = contents["summaries"]
    assert summary["errors_percent"]["rate"] == {"mean": 22.5, "median": 22.5, "worst": 25.0}
    assert summary["leave_one_out"]["rate"]["level_percent"] == 90.0
    rows = list(csv.DictReader((tmp_path / "b.csv").open()))
    assert [row["error_percent"] for row in rows if row["figure"] == "rate"] == ["25.0", "-20.0"]
    assert "Synthetic" in (tmp_path / "b.html").read_text()


def test_the_command_shows_the_shipped_devices(headstack: Headstack) -> None:
    done = headstack("lab", "scoreboard")
    assert done.returncode == 0, done.stderr
    for device in ("Samsung PM883 480 GB", "Micron 7450 MAX", "8 x 2 TB, md RAID 5"):
        assert device in done.stdout


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_of_a_page_are_current(name: str) -> None:
    page = REPOSITORY / "docs" / name
    text = page.read_text(encoding="utf-8")
    renewed = with_tables(text, PAGES[name](Scoreboard.shipped()))
    if os.environ.get("HEADSTACK_WRITE_DOCS"):
        page.write_text(renewed, encoding="utf-8")
    assert renewed == text or os.environ.get("HEADSTACK_WRITE_DOCS"), (
        "HEADSTACK_WRITE_DOCS=1 pytest tests/python/test_scoreboard.py renews it"
    )


# Measurements for the scoreboard.

QUICK = ("--for", "scoreboard", "--system", "870-evo-1tb", "--requests", "200", "--buffered", "--quiet")
SECRETS = ("S455NY0M123456", "5002538e40a1b2c3", "my-private-host")


def test_measure_writes_both_files_and_reads_only(headstack: Headstack, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(os.urandom(1 << 20))
    before = data.read_bytes()
    done = headstack("measure", str(data), *QUICK, "--folder", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert f"headstack lab scoreboard {tmp_path}/out" in done.stdout
    (device,) = read_folder(tmp_path / "out")
    assert (device.device, device.system, device.described) == ("Samsung SSD 870 EVO 1 TB", "870-evo-1tb", "sheet")
    assert {(point.rw, point.depth) for point in device.points} == {("randread", 2**n) for n in range(6)}
    assert all({"rate", "mean", "p50", "p95", "p99", "p99.9"} == point.figures.keys() for point in device.points)
    assert data.read_bytes() == before
    scored = headstack("lab", "scoreboard", str(tmp_path / "out"), "--quiet")
    assert scored.returncode == 0, scored.stderr
    assert "Samsung SSD 870 EVO 1 TB" in scored.stdout


def test_measure_writes_only_with_permission(headstack: Headstack, tmp_path: Path) -> None:
    options = (*QUICK, "--folder", str(tmp_path / "out"), "--create", "1MiB", "--host", "ahci")
    done = headstack("measure", str(tmp_path / "new"), *options)
    assert done.returncode == 0, done.stderr
    (device,) = read_folder(tmp_path / "out")
    assert {point.rw for point in device.points} == {"randread", "randrw", "randwrite"}
    assert (device.host, device.described) == ("ahci", "sheet and host")


def test_files_for_the_scoreboard_name_no_unit(
    headstack: Headstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target reports a model with a serial number behind it, and its own path and host names it."""
    folder = tmp_path / SECRETS[2]
    folder.mkdir()
    data = folder / SECRETS[0]
    data.write_bytes(os.urandom(1 << 20))
    reported = {"name": "sdz", "model": f"MZ-77E1T0 {SECRETS[0]}", "serial": SECRETS[0], "wwn": SECRETS[1]}
    opened = Opened.__init__

    def with_inquiry(self: Opened, *arguments: Any, **named: Any) -> None:
        opened(self, *arguments, **named)
        self.described[0]["description"]["device"] = reported  # type: ignore[index]

    monkeypatch.setattr(Opened, "__init__", with_inquiry)
    monkeypatch.setattr("socket.gethostname", lambda: SECRETS[2])
    quick = [option for option in QUICK if option not in ("--system", "870-evo-1tb")]
    done = headstack("measure", str(data), *quick, "--folder", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    (device,) = read_folder(tmp_path / "out")
    assert device.system == "870-evo-1tb"
    files = list((tmp_path / "out").iterdir())
    assert sorted(file.suffix for file in files) == [".csv", ".toml"]
    written = "".join(f"{file.name}\n{file.read_text()}" for file in files)
    for secret in (*SECRETS, "sdz", str(tmp_path)):
        assert secret not in written


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--for", "scoreboard"), "the model of the target is not known; name its description with --system"),
        (("--for", "scoreboard", "--system", "nosuch"), "nosuch"),
        (
            ("--system", "870-evo-1tb"),
            "--system: applies only to a measurement for the scoreboard; add --for scoreboard",
        ),
        (("--for", "scoreboard", "--depth", "4"), "--depth: --for scoreboard sets it; remove the option"),
        (("--for", "scoreboards"), "--for: 'scoreboards' is unknown; allowed: scoreboard"),
    ],
)
def test_what_the_scoreboard_cannot_use_is_refused_before_the_measurement(
    headstack: Headstack, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    data = tmp_path / "data"
    data.write_bytes(os.urandom(1 << 16))
    done = headstack("measure", str(data), "--buffered", "--quiet", *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert message in done.stderr
    assert sorted(tmp_path.iterdir()) == [data]
