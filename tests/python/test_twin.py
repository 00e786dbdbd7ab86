"""The twin of a disk: estimators against what is known, blind calibration, and what does not fit."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import headstack as hs
from conftest import Headstack, lacks, slow
from headstack.catalogue.system import load_system
from headstack.cli.predict.twin import draw_calibration
from headstack.twin.device import Answers, Requests, SimulatedDevice
from headstack.twin.families import array, disk
from headstack.twin.families.disk_draws import draw
from headstack.twin.families.disk_fit import Fit, smoothing
from headstack.twin.families.disk_model import rising
from headstack.twin.fitting import order
from headstack.twin.learning import Calibration, learn, load_answers, save_answers
from headstack.twin.learnt import Learnt, Residual
from headstack.twin.model_files import render_files
from headstack.twin.probes import queue, read_buffer, rotation, seeks, tracks, write_cache, zones
from headstack.twin.session import OutOfTimeError, Session, places


def session_of(name: str, **given: float) -> Session:
    return Session(SimulatedDevice(load_system(name).system, 7), **given)  # type: ignore[arg-type]


def test_no_bound_of_a_seek_is_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where chance moves the shortest seek by more than it takes, its lower bound is 0."""
    monkeypatch.setattr(tracks, "command_ns", lambda session, turn: None)
    found = SimpleNamespace(
        turn=SimpleNamespace(period_ns=8.3e6, sd_ns=1.0, rpm=7200.0),
        disk=SimpleNamespace(
            seek_ns=np.array([1e5, 9e6]), command_ns=2e5, read_hit_ns=1e5, queue={"depth": 1}, buffer={}
        ),
        seek_sd_ns=np.array([5.26e5, 1e5]),
        others=[],
        session=SimpleNamespace(runs_of=lambda name: []),
    )
    points = disk._values(cast("Fit", found))["seek.points"]
    assert (points.low, points.high) == ("0.000ms", "9.364ms")


@pytest.mark.parametrize("name", ["cheetah-9lp", "cheetah-x15-36lp", "travelstar-7k100-100gb", "wd-red-plus-4tb"])
def test_the_turn_is_found_to_a_millionth(name: str) -> None:
    session = session_of(name)
    rotation.ask(session)
    found = rotation.learn(session)
    assert found is not None
    true = load_system(name).system["drive"]["disk"]["mechanics"]["rpm"]
    assert abs(found.rpm / true - 1) < 1e-6


def test_the_turn_survives_a_late_clock() -> None:
    """20 us of jitter on completions, as a socket has, leave 20 millionths."""
    session = session_of("spinpoint-f1-1tb")
    rotation.ask(session)
    (asked,) = session.runs_of(rotation.TEST)
    late = np.abs(np.random.default_rng(3).normal(0, 20_000, len(asked.requests))).astype(np.int64)
    answers = Answers(asked.answers.issued_ns, asked.answers.completed_ns + late)
    found = rotation.rotation_from_repeats(asked.requests, answers)
    assert found is not None
    assert abs(found.rpm / 7200 - 1) < 20e-6
    assert found.sd_ns / found.period_ns < 5e-6


def test_nothing_turns_where_responses_are_drawn_at_random() -> None:
    random = np.random.default_rng(5)
    chosen = places(random, 400, 10**12)
    requests = Requests.reads(np.concatenate([chosen, chosen]))
    done = np.cumsum(random.gamma(4, 3e6, len(requests))).astype(np.int64)
    assert rotation.rotation_from_repeats(requests, Answers(done - 10_000_000, done)) is None


def test_rates_fall_from_the_rim_inwards_as_the_sheet_says() -> None:
    session = session_of("spinpoint-f1-1tb")
    zones.ask(session, 6)
    rates = zones.learn(session)
    assert rates.bytes_per_s[0] == pytest.approx(118e6, rel=0.04)
    assert rates.bytes_per_s[-1] == pytest.approx(55e6, rel=0.06)
    capacity = session.device.capacity_bytes
    # Half of the bytes lie in the outer two fifths of the radius or so, and there and back is the same place.
    share = rates.share_of_radius(np.array([0, capacity / 2, capacity]), capacity)
    assert share[0] == 0
    assert 0.35 < share[1] < 0.48
    assert share[2] == pytest.approx(1)
    assert rates.at_radius(share, capacity)[1] == pytest.approx(capacity / 2, rel=0.01)


@pytest.mark.parametrize("name", ["cheetah-9lp", "spinpoint-f1-1tb", "wd-red-plus-4tb"])
def test_tracks_are_told_by_the_angles_of_their_blocks(name: str) -> None:
    """To a thousandth, with the skew of a turn between one and the next, in a second or two of the device."""
    session = session_of(name)
    rotation.ask(session)
    turn = rotation.learn(session)
    assert turn is not None
    zones.ask(session, 6)
    rates, before_s = zones.learn(session), session.device_s
    tracks.ask(session, rates, turn)
    found = tracks.learn(session, rates, turn)
    assert session.device_s - before_s < 2.5
    geometry = load_system(name).system["drive"]["disk"]["geometry"]
    held = [zone["sectors_per_track"] * geometry["physical_sector_bytes"] for zone in geometry["zones"]]
    for size, skew in zip(found.bytes, found.skew_turns, strict=True):
        nearest = int(np.argmin(np.abs(np.array(held) - size)))
        assert size == pytest.approx(held[nearest], rel=1e-3)
        zone = geometry["zones"][nearest]
        assert min(abs(skew - zone[f"{kind}_skew_turns"]) for kind in ("track", "cylinder")) < 0.003
    # A block that comes past sooner than a command takes is missed.
    tracks.ask_gaps(session, found, turn)
    command_ns = tracks.command_ns(session, turn)
    true_ns = load_system(name).system["drive"]["disk"]["overheads"]["read_miss_ns"]["after_read"]
    assert command_ns is not None
    assert command_ns == pytest.approx(true_ns, abs=1.2e5)


def test_what_does_not_lie_on_tracks_is_taken_for_usual() -> None:
    session = session_of("spinpoint-f1-1tb")
    rates, turn = zones.Rates(np.array([0.0, 1e12]), np.array([1e8, 5e7])), rotation.Rotation(8e6, 1.0, 1.0)
    random = np.random.default_rng(2)
    requests = Requests.reads(np.arange(28, dtype=np.uint64) * np.uint64(1 << 18))
    done = np.cumsum(random.uniform(1e6, 9e6, 28)).astype(np.int64)
    assert tracks.track_from_angles(requests, Answers(done - 5_000_000, done), turn) is None
    found = tracks.learn(session, rates, turn)
    assert found.bytes.tolist() == pytest.approx([8.8e5, 4.4e5])


def test_a_slow_disk_stays_within_its_time() -> None:
    """Reads of which one takes 20 ms alone: probes divide what is left among them."""
    system = json.loads(json.dumps(load_system("cheetah-9lp").system))
    mechanics = system["drive"]["disk"]["mechanics"]
    mechanics["rpm"] = 3400.0
    mechanics["seek"] = {"points": [[at, 2 * time] for at, time in mechanics["seek"]["points"]]}
    session = Session(SimulatedDevice(system, 3))
    disk.probes(session)
    assert 90 < session.device_s < 120
    tests = {one.test for one in session.runs}
    assert {queue.name(64), read_buffer.LONG, write_cache.MIX} <= tests
    short = Session(SimulatedDevice(system, 3), budget_s=60)
    disk.probes(short)
    assert short.device_s < 63


def test_the_order_of_service_tells_firmware_apart() -> None:
    """Who is overtaken, and how far apart those lie that follow each other: where all times are the same, too."""
    requests = Requests.reads(places(np.random.default_rng(4), 600, 10**9), depth=16)
    done = np.arange(1, 601, dtype=np.int64) * 1_000_000
    first = order(requests, Answers(done - 16_000_000, done))[0]
    by_place = done.copy()
    for start in range(0, 600, 16):
        rows = np.arange(start, min(start + 16, 600))
        by_place[rows[np.argsort(requests.offsets[rows])]] = done[rows]
    sorted_ = order(requests, Answers(by_place - 16_000_000, by_place))[0]
    times, overtaken, upwards, apart = slice(0, 8), slice(8, 16), slice(16, 18), slice(18, 21)
    assert first[times] == pytest.approx(sorted_[times])
    assert (first[overtaken] == 0).all()
    assert 0.3 < sorted_[overtaken][0] < 0.5
    assert sorted_[overtaken][5:].tolist() == [0, 0, 0]
    assert sorted_[upwards][0] > 0.9 > 0.6 > first[upwards][0]
    assert (sorted_[apart] < first[apart] - 0.5).all()


def test_a_curve_is_smoothed_within_its_error_and_never_falls() -> None:
    true = 1e6 + 12e6 * np.sqrt(seeks.Distances(2e6).shares)
    noise = np.random.default_rng(1).normal(0, 1e5, 15)
    smooth, covariance = smoothing(true + noise, 1e5)
    assert np.sqrt(np.mean((smooth - true) ** 2)) < np.sqrt(np.mean(noise**2))
    assert (np.sqrt(np.diag(covariance)) < 1e5).all()
    assert rising(np.array([1.0, 3.0, 2.0, 4.0])).tolist() == [1.0, 2.5, 2.5, 4.0]


@pytest.fixture(scope="module")
def blind() -> tuple[dict[str, Any], object, Session]:
    """A hidden disk, and what was learnt of it."""
    hidden = draw(np.random.default_rng(20_261))
    session = Session(SimulatedDevice(hidden, 11), seed=3)
    disk.probes(session)
    return hidden, disk.learn(session), session


def test_a_hidden_disk_is_known_within_the_budget(blind) -> None:  # type: ignore[no-untyped-def]
    hidden, learnt, session = blind
    assert learnt.fits, learnt.why
    assert session.device_s < 120
    random = np.random.default_rng(8)
    for depth, size in ((1, 8192), (32, 16384)):
        rates = []
        for system in (hidden, learnt.best):
            device = SimulatedDevice(system, 5)
            rates.append(device.ask(queue.reads(device.capacity_bytes, size, depth, 4000)(random)).per_s)
        # Hidden disks of all eras come out within 2 % on average and 6 % at worst.
        assert abs(rates[1] / rates[0] - 1) < 0.06, (depth, rates)


def test_the_picture_of_a_calibration_is_drawn(blind, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    _, learnt, session = blind
    path = tmp_path / "own.png"
    draw_calibration(Calibration("disk", session, learnt), str(path))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_seek_curve_and_the_settling_of_writes_are_those_of_the_disk() -> None:
    system = json.loads(json.dumps(load_system("cheetah-x15-36lp").system))
    true = system["drive"]["disk"]
    true["buffer"]["write_cache"] = "off"
    true["mechanics"]["write_settle_ns"] = 500_000
    session = Session(SimulatedDevice(system, 5))
    disk.probes(session)
    turn = rotation.learn(session)
    assert turn is not None
    fit = Fit(session, np.random.default_rng(1), turn)
    fit.find_command()
    fit.find_seeks()
    sums = fit.disk.seek_ns + fit.disk.command_ns
    points = np.array(true["mechanics"]["seek"]["points"], float)
    at = fit.disk.distances.shares * true["geometry"]["cylinders"]
    told = np.interp(at, points[:, 0], points[:, 1]) + true["overheads"]["read_miss_ns"]["after_read"]
    assert sums[5:] == pytest.approx(told[5:], rel=0.04)
    assert fit.write_settle_ns() == pytest.approx(500_000, abs=1.2e5)


def test_what_writes_do_not_explain_is_refused() -> None:
    """Shingled drives write at random many times as fast as their arm could, until their media cache is full: their
    reads alone look like those of any disk."""
    residuals = {"reads": Residual(0.02, 0.0, 0.4, 500), "writes": Residual(-1.3, -1.3, -2.0, 500)}
    assert disk.unexplained(residuals, ["reads"], []) == ""
    assert disk.unexplained(residuals, ["reads"], ["writes"]).startswith(
        "writes: mean latency differs from the best model by 267 %"
    )
    residuals["reads"] = Residual(0.12, 0.1, 0.1, 500)
    assert (
        disk.unexplained(residuals, ["reads"], ["writes"]) == "reads: mean latency differs from the best model by 13 %"
    )


def test_what_is_left_unexplained_widens_the_sample(blind) -> None:  # type: ignore[no-untyped-def]
    _, _, session = blind
    turn = rotation.learn(session)
    assert turn is not None
    fit = Fit(session, np.random.default_rng(1), turn)
    fit.find_command()
    fit.find_seeks()
    spreads = []
    for reads_ns, writes_ns in ((0.0, 0.0), (1e6, 5e5)):
        sample = list(fit.sample(reads_ns, writes_ns))
        spreads.append([np.std([one.seek_ns[9] for one in sample]), np.std([one.write_settle_ns for one in sample])])
    assert spreads[0][0] < 2e5
    assert spreads[0][1] == 0
    assert 5e5 < spreads[1][0] < 2e6
    assert spreads[1][1] > 1.5e5


@pytest.mark.parametrize("kind", ["on", "appending", "protected"])
def test_kinds_of_write_caches_are_told_by_a_burst_and_a_flush(kind: str) -> None:
    system = json.loads(json.dumps(load_system("cheetah-x15-36lp").system))
    system["drive"]["disk"]["buffer"]["write_cache"] = kind
    session = Session(SimulatedDevice(system, 5))
    disk.probes(session)
    turn = rotation.learn(session)
    assert turn is not None
    small_ns = float(session.runs_of(write_cache.BURST)[0].answers.response_ns[0])
    kinds = Fit(session, np.random.default_rng(1), turn).kinds_of_cache(small_ns)
    assert kind in kinds
    assert kind == "appending" or "appending" not in kinds
    assert not {"on", "protected"} <= set(kinds)


def test_a_sample_is_of_descriptions_that_run(blind) -> None:  # type: ignore[no-untyped-def]
    _, learnt, _ = blind
    assert len(learnt.sample) == 20
    device = SimulatedDevice(learnt.sample[3])
    assert device.ask(Requests.reads(np.array([0, 1 << 20]))).seconds > 0


def test_a_recorded_calibration_is_not_asked_again(tmp_path: Path) -> None:
    first = session_of("spinpoint-f1-1tb", seed=4)
    rotation.ask(first)
    save_answers(first.runs, tmp_path / "a.npz")

    class Dead(SimulatedDevice):
        def ask(self, requests: Requests, progress: object = None) -> Answers:
            raise AssertionError("asked")

    dead = Dead(load_system("spinpoint-f1-1tb").system)
    again = Session(dead, seed=4, recorded=load_answers(str(tmp_path / "a.npz")))
    rotation.ask(again)
    assert again.runs[0].answers.completed_ns.tolist() == first.runs[0].answers.completed_ns.tolist()
    other = Session(dead, seed=5, recorded=load_answers(str(tmp_path / "a.npz")))
    with pytest.raises(AssertionError, match="asked"):
        rotation.ask(other)
    (tmp_path / "b.npz").write_bytes(b"nothing")
    with pytest.raises(hs.InputError, match="not a file of calibration answers"):
        load_answers(str(tmp_path / "b.npz"))


def test_a_budget_ends_probes() -> None:
    session = session_of("spinpoint-f1-1tb", budget_s=5.0)
    with pytest.raises(OutOfTimeError):
        disk.probes(session)
    assert session.device_s < 15


class Constant:
    """Answers after a time that has nothing to do with what is asked."""

    name, capacity_bytes, block_bytes, may_write = "constant", 10**12, 512, True

    def __init__(self, ns: int) -> None:
        self.ns, self.now = ns, 0

    def ask(self, requests: Requests, progress: object = None) -> Answers:
        issued = self.now + self.ns * (np.arange(len(requests)) // max(1, requests.depth))
        self.now = int(issued[-1]) + self.ns
        return Answers(issued.astype(np.int64), (issued + self.ns).astype(np.int64))

    def rest(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


def test_a_device_of_constant_latency_is_no_disk() -> None:
    with pytest.raises(hs.InputError, match="does not fit: disk: no rotation"):
        learn(Constant(5_000_000), ["disk"])


def test_a_flash_drive_is_no_disk() -> None:
    device = SimulatedDevice(load_system("970-evo-1tb").system)
    with pytest.raises(hs.InputError, match="does not fit: disk"):
        learn(device, ["disk"])


@slow("calibrates a simulated disk from the start; test_a_real_disk_is_learnt_from_half_of_a_recording represents it")
def test_the_command_writes_a_system_for_every_command(tmp_path: Path, headstack: Headstack) -> None:
    found = headstack("measure", "twin", "cheetah-x15-36lp", "-o", "own.toml", "-q")
    assert re.search(r"spindle.speed\s+(14999\.9|15000\.0)\d+rpm\s+15000\.\d+rpm", found.stdout)
    assert "wrote own.sample.json, own.toml, own.answers.npz" in found.stdout
    table = tomllib.loads((tmp_path / "own.toml").read_text())["twin"]
    assert table["class"] == "disk"
    assert table["of"] == "cheetah-x15-36lp"
    assert "still caught" in table["values"]["overheads.command"]["how"]
    assert float(table["values"]["overheads.command"]["low"].removesuffix("ms")) > 0.05
    assert len(json.loads((tmp_path / "own.sample.json").read_text())["systems"]) == 20
    random = ("--size", "8KiB", "--read", "100", "--random", "100")
    rows = headstack("run", "own.toml", "cheetah-x15-36lp", *random, "--csv", "-").stdout
    own, true = (float(row["iops"]) for row in csv.DictReader(rows.splitlines()))
    assert own == pytest.approx(true, rel=0.04)


def test_ctrl_c_keeps_the_answers(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from headstack.cli.main import main; main()",
        "measure",
        "twin",
        "null",
        "-o",
        "own.toml",
    ]
    process = subprocess.Popen([*command, "--family", "volume"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    # The first requests are answered by then, and half a minute of others begins.
    assert any("alone" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    assert process.wait(timeout=60) == 130
    assert "interrupted; measurements are kept in own.answers.npz: add --resume to resume" in said
    kept = load_answers(str(tmp_path / "own.answers.npz"))
    assert kept[0].test.startswith("a first look")
    assert (kept[0].answers.response_ns > 0).all()


def test_an_array_is_written_beside_its_member(tmp_path: Path) -> None:
    drawn = array.draw(np.random.default_rng(3))
    session = Session(SimulatedDevice(drawn))
    for name, text in render_files(Calibration("array", session, Learnt(drawn, {}, [])), "own", "0").items():
        (tmp_path / name).write_text(text)
    own = load_system(tmp_path / "own.toml").system["array"]
    for key in ("members", "controller", "links"):
        assert own[key] == drawn["array"][key]
    for key in ("level", "chunk_bytes", "member_bytes"):
        assert own["groups"][0][key] == drawn["array"]["groups"][0][key]
    assert own["luns"][0]["length_bytes"] == drawn["array"]["luns"][0]["length_bytes"]


def test_the_command_says_what_is_wrong(headstack: Headstack) -> None:
    for words, said in (
        (["cheetah-9lp", "-o", "own.json"], "choose a name that ends with .toml"),
        (["no-such", "-o", "own.toml"], "no-such"),
        (["null:1ms", "-o", "own.toml"], "use null:TIME"),
        (["cheetah-9lp", "-o", "own.toml", "--time", "2s"], "too few; use a longer --time"),
        (["cheetah-9lp", "-o", "own.toml", "--family", "tape"], "disk, flash, array, volume"),
    ):
        failed = headstack("measure", "twin", *words, "-q")
        assert failed.returncode == 2
        assert said in failed.stderr
        assert len(failed.stderr.splitlines()) == 1


VALIDATION = Path(__file__).parents[3] / "shared" / "validation" / "disksim"
SHEET = """name = "Seagate Cheetah 9LP, as its sheet has it"
year = 1998
[capacity]
logical_blocks = 17_783_240
logical_block = "512B"
[geometry]
heads = 12
zone_count = 8
[media]
sustained_outer_rate = "21.8MB/s"
sustained_inner_rate = "14.3MB/s"
[spindle]
speed = "10025rpm"
[seek]
read_track_to_track = "0.83ms"
read_average = "5.4ms"
read_full_stroke = "10.6ms"
[buffer]
size = "1MiB"
segments = 3
[interface]
kind = "scsi"
rate = "80MB/s"
"""


def test_a_real_disk_is_learnt_from_half_of_a_recording(tmp_path: Path, headstack: Headstack) -> None:
    if not VALIDATION.is_dir():
        lacks("data", "no validation data")
    (tmp_path / "sheet.toml").write_text(SHEET)
    trace = str(VALIDATION / "cheetah9LP.trace")
    found = headstack("measure", "twin", "recording", trace, "--sheet", "sheet.toml", "-o", "own.toml")
    (held,) = re.findall(r"held out: 5,000 requests, demerit ([\d.]+) %", found.stdout)
    # Of the sheet alone it is 19 %, of parameters that were extracted from the drive 2.5.
    assert float(held) < 4
    assert hs.Drive.load(tmp_path / "own.toml").kind == "disk"


def test_a_recording_of_another_form_is_refused(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "a.trace").write_text("R Hit 1 8 100.0 200.0\nread 8\n")
    failed = headstack("measure", "twin", "recording", "a.trace", "--sheet", "cheetah-9lp", "-o", "own.toml")
    assert failed.returncode == 2
    assert "a.trace:2: expected R or W" in failed.stderr
