"""The classic tests: exact figures on targets that answer after a fixed time, whole courses on files and devices."""

import csv
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

import headstack as hs
from conftest import CHEETAH, Attach, Headstack, interrupt
from headstack.measurement.access import Access
from headstack.measurement.tests.classic.crystal import PROFILES
from headstack.measurement.tests.classic.figures import POINTS_MAX, Lun, Profile
from headstack.measurement.tests.classic.fsync import SizeFigures, pair_with_flushes
from headstack.measurement.tests.classic.plateaus import plateaus
from headstack.measurement.tests.classic.zones import Zones
from headstack.results import words
from shapes import differences

MIB = 1 << 20
NULL = "null:1ms"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(32 * MIB))
    return path


@pytest.fixture
def odd_device(attach: Attach, tmp_path: Path) -> str:
    image = tmp_path / "device"
    image.write_bytes(bytes(24 * MIB + 3 * 512))
    return attach(image)


def is_picture(path: Path) -> bool:
    """Whether it is a PNG of some size that is not of one colour."""
    from matplotlib.image import imread

    picture = imread(path)
    return picture.shape[0] > 300 and picture.shape[1] > 300 and float(picture[..., :3].std()) > 0.01


# Zones.


def test_rates_and_access_times_of_a_target_are_its_service_time() -> None:
    [profile] = hs.zones(NULL, positions=16, size="512KiB", accesses=50, depth=2).profiles
    assert [at for at, _ in profile.rates] == sorted(at for at, _ in profile.rates)
    assert len(profile.rates) == 16
    # Two requests of half a MiB each millisecond.
    best = max(rate for _, rate in profile.rates)
    assert 0 < best <= 1.01 * MIB / 1e3
    assert len(profile.accesses) == 50
    assert all(ms >= 1 for _, ms in profile.accesses)
    figures = profile.figures()
    assert figures["megabits_per_s"]["maximum"] == 8 * best
    half_ms = figures["access"]["p50_ms"]
    assert half_ms is not None
    assert half_ms >= 1


def test_positions_are_spread_from_edge_to_edge_and_parts_do_not_overlap(data: Path) -> None:
    test = hs.zones(data, positions=8, size="256KiB", part="64MiB", accesses=20, access_size="512B")
    [profile] = test.profiles
    places = [at for at, _ in profile.rates]
    # 32 MiB hold 8 parts of 4 MiB.
    assert places == [number * 4 * MIB for number in range(8)]
    runs = json.loads(test.to_json())["runs"]
    assert [run["kinds"]["read"]["bytes"] for run in runs[:-1]] == 8 * [4 * MIB - 2 * 256 * 1024]
    assert all(0 <= at < 32 * MIB and at % 512 == 0 for at, _ in profile.accesses)


@pytest.mark.parametrize("positions", [64, 200, 400])
def test_a_simulated_drive_has_the_zones_of_its_description(positions: int) -> None:
    [profile] = hs.zones(CHEETAH, positions=positions, accesses=100).profiles
    zones = hs.Drive.load(CHEETAH).description["geometry"]["zones"]
    found = profile.plateaus
    assert len(found) == len(zones)
    sectors = [zone["sectors_per_track"] for zone in zones]
    # The rate follows the sectors of a track, less what changes of heads and cylinders take.
    for plateau, count in zip(found, sectors, strict=True):
        assert plateau.level / found[0].level == pytest.approx(count / sectors[0], rel=0.02)
    mean_ms = profile.figures()["access"]["mean_ms"]
    assert mean_ms is not None
    assert 4 < mean_ms < 8
    assert len(profile.accesses) == 100


def test_measured_and_simulated_stand_side_by_side(headstack: Headstack, data: Path, tmp_path: Path) -> None:
    done = headstack(
        "measure", "zones", str(data), CHEETAH, "--positions", "8", "--accesses", "20", "-q", "--plot", "zones.png",
        "--csv", "zones.csv", "--json", "zones.json", "--parquet", "zones.parquet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "measured" in done.stdout
    assert "simulated" in done.stdout
    assert is_picture(tmp_path / "zones.png")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "zones.csv").read_text())))
    assert len(rows) == 2 * (8 + 20)
    assert list(rows[0]) == [field.name for field in Zones.fields]
    found = json.loads((tmp_path / "zones.json").read_text())
    assert (found["test"], [one["mode"] for one in found["systems"]]) == ("zones", ["measured", "simulated"])
    assert len(found["runs"]) == 2 * (8 + 1)
    assert (tmp_path / "zones.parquet").stat().st_size > 0


def test_zones_write_only_with_a_word(data: Path, odd_device: str) -> None:
    before = data.read_bytes()
    with pytest.raises(hs.InputError, match="overwrite"):
        hs.zones(data, write=True)
    assert data.read_bytes() == before
    with pytest.raises(hs.InputError, match="destroy"):
        hs.zones(odd_device, write=True)
    [profile] = hs.zones(
        odd_device, Access(destroy=(odd_device,)), positions=4, size="64KiB", accesses=10, write=True
    ).profiles
    assert profile.kind == "write"
    assert len(profile.rates) == 4


def staircase(noise: float, steps: int = 8, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [150 - 10 * (place * steps // 64) + chance.gauss(0, noise) for place in range(64)]


@pytest.mark.parametrize("noise", [0, 0.3, 1, 2])
def test_steps_are_found_in_noise(noise: float) -> None:
    found = plateaus(staircase(noise))
    assert [(plateau.first, plateau.last) for plateau in found] == [(8 * n, 8 * n + 7) for n in range(8)]
    assert [plateau.level for plateau in found] == pytest.approx([150 - 10 * n for n in range(8)], abs=2 * noise)


def test_no_steps_are_found_where_there_are_none() -> None:
    chance = random.Random(2)
    flat = [150 + chance.gauss(0, 2) for _ in range(64)]
    slope = [150 - place + chance.gauss(0, 0.5) for place in range(64)]
    steep = [150.0 - place for place in range(64)]
    assert [plateaus(values) for values in (flat, slope, steep, [], [1.0, 2.0], 64 * [0.0])] == 6 * [[]]
    # A device that is disturbed at the start has no zones there.
    begin = [2400.0, 2400, 2300, 1800, 500, 3000, 600, 2900]
    disturbed = [*begin, *(level + chance.gauss(0, 40) for level in 20 * [3500] + 36 * [3250])]
    assert plateaus(disturbed) == []


def test_small_systems_and_profiles_without_points_are_no_crash() -> None:
    with pytest.raises(hs.InputError, match="is too small"):
        hs.zones(NULL, range="1MiB")
    empty = Profile("x", "measured", "read", 0, 1, [], [])
    assert empty.figures()["mb_per_s"]["outer"] is None


# Latency.


def test_reports_begin_with_what_came_out(data: Path) -> None:
    waited = hs.latency(NULL, count=20, interval="0s")
    half = waited.statistics()["p50_ms"]
    assert half is not None
    answer = waited.report().summary.split("\n\n")[0]
    assert f"20 reads of 4KiB, median {words.time(half)}, max " in answer
    # Of twenty requests nobody knows what one in a hundred takes.
    assert "p99" not in answer
    log = hs.fsync(NULL, sizes=["4KiB"], count=50, limit="50ms").report().summary
    assert re.search(r"4KiB: median \S+ \S+, p99 \S+ \S+; the limit of 50 ms is kept\.", log)
    scores = hs.crystal(NULL, runs=1, time="50ms", pause="0s")
    best = max(scores.scores, key=lambda score: score.best_mb_per_s)
    told = f"{best.test.name} {best.kind} {words.number(best.best_mb_per_s)} MB/s down to "
    assert told in scores.report().summary
    rates = hs.zones(data, positions=4, size="256KiB", part="1MiB", accesses=0)
    assert rates.report().summary.startswith("From the outer to the inner edge: ")


def test_each_request_is_told_as_it_comes_back() -> None:
    heard: list[tuple[int, float]] = []
    test = hs.latency(NULL, count=4, interval="300ms", each=lambda one: heard.append((one.number, time.monotonic())))
    assert [number for number, _ in heard] == [1, 2, 3, 4]
    # They are heard of within a look (50 ms) of coming back, not all in the end.
    assert heard[-1][1] - heard[0][1] > 0.1
    gaps = [b.at_s - a.at_s for a, b in pairwise(test.samples)]
    assert all(gap > 0.3 for gap in gaps)


def test_statistics_are_those_of_the_requests() -> None:
    test = hs.latency(NULL, count=200, interval="0s")
    numbers, times = test.statistics(), [sample.ms for sample in test.samples]
    assert numbers["requests"] == len(times) == 200
    assert (numbers["min_ms"], numbers["max_ms"]) == (min(times), max(times))
    mean = sum(times) / 200
    assert numbers["mean_ms"] == pytest.approx(mean)
    assert numbers["mdev_ms"] == pytest.approx((sum((ms - mean) ** 2 for ms in times) / 200) ** 0.5, rel=1e-3)
    assert min(times) >= 1
    assert numbers["p50_ms"] is not None
    assert numbers["p50_ms"] >= 1
    assert 0 < numbers["iops"] <= 1000
    bins = test.histogram()
    assert sum(count for _, _, count in bins) == 200
    assert all(low < high for low, high, _ in bins)
    assert [bins[n][1] for n in range(len(bins) - 1)] == [low for low, _, _ in bins[1:]]


def test_working_set_sequence_and_size_are_kept(data: Path) -> None:
    test = hs.latency(data, count=8, interval="0s", size="64KiB", range="1MiB..2MiB", sequential=True)
    assert [sample.position_bytes for sample in test.samples] == [MIB + n * 65536 for n in range(8)]
    scattered = hs.latency(data, count=50, interval="0s", range="1MiB..2MiB")
    assert all(MIB <= sample.position_bytes < 2 * MIB for sample in scattered.samples)
    assert len({sample.position_bytes for sample in scattered.samples}) > 30


def test_the_latency_command_prints_a_line_for_each_request(headstack: Headstack, data: Path, tmp_path: Path) -> None:
    done = headstack("measure", "latency", str(data), "-c", "3", "-i", "10ms", "--plot", "l.png", "--json", "l.json")
    assert done.returncode == 0, done.stderr
    assert [line.split("request=")[1].split()[0] for line in done.stdout.splitlines() if "request=" in line] == [
        "1", "2", "3",
    ]  # fmt: skip
    assert "min/avg/max/mdev" in done.stdout
    assert is_picture(tmp_path / "l.png")
    found = json.loads((tmp_path / "l.json").read_text())
    assert [sample["number"] for sample in found["samples"]] == [1, 2, 3]
    rate = headstack("measure", "latency", NULL, "-R", "-w", "300ms")
    assert rate.returncode == 0
    assert "request=" not in rate.stdout
    assert "without pauses" in rate.stdout


def test_ctrl_c_ends_latency_with_its_statistics(tmp_path: Path) -> None:
    command = "import sys; from headstack.cli.main import main; main(sys.argv[1:])"
    arguments = ["measure", "latency", NULL, "-c", "0", "-i", "100ms", "--json", str(tmp_path / "kept.json")]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert "request=1" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "min/avg/max/mdev" in out
    assert "stopped by hand" in err
    assert json.loads((tmp_path / "kept.json").read_text())["ended_early"] == "stopped by hand"


# Writes with flushes.


def test_what_is_measured_is_the_write_and_its_flush() -> None:
    test = hs.fsync(NULL, sizes=["2300B", "8KiB"], count=50, limit="3ms")
    assert [(pairs.size_bytes, len(pairs.response_ns)) for pairs in test.pairs] == [(2560, 50), (8192, 50)]
    for row in test.rows():
        assert list(differences(row, SizeFigures)) == []
        assert row["p50_ms"] is not None
        assert row["p50_ms"] >= 2
        assert row["flush_p99_ms"] is not None
        assert row["max_ms"] is not None
        assert 1 <= row["flush_p99_ms"] < row["max_ms"]
    [run, _] = json.loads(test.to_json())["runs"]
    assert (run["kinds"]["write"]["count"], run["kinds"]["flush"]["count"]) == (50, 50)


def test_pairs_are_a_write_and_the_flush_after_it() -> None:
    def one(kind: str, at: int, took: int, failed: bool = False) -> tuple[int, str, int, int, int, int, bool, int]:
        return 0, kind, 0, 0, at, took, failed, 0

    logged = [one("flush", 0, 9), one("write", 10, 5), one("flush", 16, 4), one("write", 30, 5, True),
              one("flush", 36, 4), one("write", 50, 1), one("flush", 51, 1, True), one("write", 60, 1)]  # fmt: skip
    assert pair_with_flushes(logged) == ([10], 2)


def test_a_limit_that_is_not_kept_is_an_exit_code(headstack: Headstack, tmp_path: Path) -> None:
    command = ("measure", "fsync", NULL, "-c", "30", "--size", "4KiB", "-q")
    kept = headstack(*command, "--limit", "10s", "--plot", "f.png")
    assert (kept.returncode, "is fit for a log" in kept.stdout) == (0, True)
    assert is_picture(tmp_path / "f.png")
    missed = headstack(*command, "--limit", "1.9ms")
    assert (missed.returncode, "is not fit for a log" in missed.stdout) == (1, True)


def test_a_flush_faster_than_a_turn_is_doubted(data: Path) -> None:
    allowed = Access(overwrite=True)
    slow = hs.fsync(data, allowed, sizes=["4KiB"], count=20, rpm=10**9)
    fast = hs.fsync(data, allowed, sizes=["4KiB"], count=20, rpm=1)
    assert not any("a turn of" in warning for warning in slow.warnings)
    assert any("60000 ms" in warning or "6e+04 ms" in warning for warning in fast.warnings)


def test_a_file_for_the_log_is_made_in_a_folder_and_removed(tmp_path: Path) -> None:
    test = hs.fsync(tmp_path, sizes=["4KiB"], count=20)
    assert len(test.pairs[0].response_ns) == 20
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_written_only_with_a_word(data: Path) -> None:
    before = data.read_bytes()
    with pytest.raises(hs.InputError, match="overwrite"):
        hs.fsync(data)
    assert data.read_bytes() == before


# CrystalDiskMark.


def test_scores_follow_from_queue_and_service_time() -> None:
    for profile, tests in PROFILES.items():
        found = hs.crystal(NULL, profile=profile, runs=1, time="150ms", pause="0s", mix="70%")
        assert [(score.test, score.kind) for score in found.scores] == [
            (test, kind) for kind in ("read", "write", "mix") for test in tests
        ]
        for score in found.scores:
            row = score.figures()
            most = score.test.queue * score.test.threads * 1000
            assert 0 < row["iops"] <= 1.02 * most
            assert row["mb_per_s"] == pytest.approx(row["iops"] * score.test.size_bytes / 1e6)
            assert row["latency_us"] is not None
            assert row["latency_us"] >= 1000


def test_the_best_run_counts_and_the_first_one_does_not() -> None:
    found = hs.crystal(NULL, runs=3, time="60ms", pause="0s")
    score = found.scores[0]
    assert len(score.mb_per_s) == 3
    assert score.best_mb_per_s == max(score.mb_per_s)
    runs = json.loads(found.to_json())["runs"]
    warm_ups = [run["workload"]["warm_up"]["time"] for run in runs[:3]]
    assert warm_ups == ["60000000ns", "0ns", "0ns"]
    assert runs[0]["start_ns"] >= 60_000_000


def test_nothing_is_written_without_a_word(headstack: Headstack, data: Path, tmp_path: Path) -> None:
    before = data.read_bytes()
    quick = ("--runs", "1", "--time", "50ms", "--pause", "0s", "-q")
    done = headstack("measure", "crystal", str(data), *quick, "--plot", "c.png", "--csv", "c.csv")
    assert done.returncode == 0, done.stderr
    assert "writing an existing file needs --overwrite" in done.stdout
    assert {row["kind"] for row in csv.DictReader((tmp_path / "c.csv").open())} == {"read"}
    assert is_picture(tmp_path / "c.png")
    assert data.read_bytes() == before
    refused = headstack("measure", "crystal", str(data), "--mix", *quick)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    done = headstack("measure", "crystal", str(data), "--overwrite", "--mix", *quick, "--json", "-")
    assert [score["kind"] for score in json.loads(done.stdout)["scores"]] == 4 * ["read"] + 4 * ["write"] + 4 * ["mix"]
    assert data.read_bytes() != before


def test_a_file_for_the_tests_is_made_in_a_folder_and_removed(tmp_path: Path) -> None:
    found = hs.crystal(tmp_path, size="8MiB", runs=1, time="30ms", pause="0s")
    assert (found.used_bytes, found.left_out, len(found.scores)) == (8 * MIB, None, 8)
    assert list(tmp_path.iterdir()) == []


# Prefill.


@pytest.mark.parametrize("order", ["serial", "concurrent"])
def test_every_byte_is_written_once(odd_device: str, order: str) -> None:
    found = hs.prefill(odd_device, Access(destroy=(odd_device,)), order=order, parts=3)
    length = 24 * MIB + 3 * 512
    assert found.complete
    assert sum(lun.written_bytes for lun in found.luns) == length
    assert [lun.start_bytes for lun in found.luns] == [number * (8 * MIB + 512) for number in range(3)]
    contents = Path(odd_device).read_bytes()
    assert len(contents) == length
    # Noise: no sector is left as it was, and none is like another, of whichever LUN.
    assert len({contents[at : at + 512] for at in range(0, length, 512)}) == length // 512
    assert sum(run["kinds"]["write"]["bytes"] for run in json.loads(found.to_json())["runs"]) == length


def test_serial_luns_follow_each_other_and_concurrent_ones_overlap() -> None:
    serial = hs.prefill("null:2ms", order="serial", parts=3, range="96MiB", depth=1)
    concurrent = hs.prefill("null:2ms", order="concurrent", parts=3, range="96MiB", depth=1)
    for found in (serial, concurrent):
        # A request of 1 MiB every 2 ms.
        assert all(0 < (lun.mb_per_s or 0) <= MIB / 2e3 for lun in found.luns)
        assert all(len(lun.sections()) == 2 for lun in found.luns)
    spans = [(lun.begun_ns or 0, lun.ended_ns or 0) for lun in serial.luns]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    spans = [(lun.begun_ns or 0, lun.ended_ns or 0) for lun in concurrent.luns]
    assert max(begin for begin, _ in spans) < min(end for _, end in spans)
    assert 0 < (serial.mb_per_s or 0) <= MIB / 2e3
    assert 0 < (concurrent.mb_per_s or 0) <= 3 * MIB / 2e3


def test_several_files_are_filled(headstack: Headstack, tmp_path: Path) -> None:
    done = headstack(
        "measure", "prefill", "a", "b", "--create", "33MiB", "--concurrent", "-q", "--plot", "p.png", "--json", "p.json"
    )
    assert done.returncode == 0, done.stderr
    assert "completely filled" in done.stdout
    assert is_picture(tmp_path / "p.png")
    found = json.loads((tmp_path / "p.json").read_text())
    assert found["complete"]
    assert [lun["written_bytes"] for lun in found["luns"]] == 2 * [33 * MIB]
    for arguments, message in [
        (("a", "b", "--overwrite", "--parts", "2"), "only a single target can be divided"),
        (("a", "./a", "--overwrite"), "named twice"),
        (("a",), "overwrite"),
        (("a", "--overwrite", "--parts", "1000000"), "cannot be divided"),
    ]:
        refused = headstack("measure", "prefill", *arguments)
        assert (refused.returncode, refused.stderr.count("\n"), refused.stdout) == (2, 1, "")
        assert message in refused.stderr


def test_the_course_of_a_lun_is_kept_in_bounded_memory() -> None:
    lun = Lun("x", 0, 0, 1 << 40)
    for number in range(3 * POINTS_MAX):
        lun.add([(0, "write", 0, MIB, number * 1_000_000, 1_000_000, False, 0)])
    assert len(lun.points) <= POINTS_MAX + 1
    assert lun.written_bytes == 3 * POINTS_MAX * MIB
    # One request of 1 MiB each millisecond, throughout.
    assert [rate for *_, rate in lun.sections()] == pytest.approx(100 * [MIB / 1e3], rel=1e-6)
    assert lun.mb_per_s == pytest.approx(MIB / 1e3)


# What all have in common.


def test_what_cannot_be_done_is_one_line(headstack: Headstack) -> None:
    for arguments, message in [
        (("zones", "no-such-drive"), "no drive, array or stack"),
        (("zones", NULL, "--positions", "1"), "positions"),
        (("zones", NULL, "--time", "0s"), "--time: 0s is out of range; must be above 0s"),
        (("latency", "missing"), "missing: not found; to create it, add --create SIZE"),
        (("latency", NULL, "-i", "-1s"), "negative"),
        (("latency", NULL, "--json", "-", "--csv", "-"), "each output needs its own file"),
        (("fsync", NULL, "--size", "0B"), "size"),
        (("fsync", NULL, "--limit", "soon"), "limit"),
        (("crystal", NULL, "--profile", "fast"), "default, nvme"),
        (("crystal", NULL, "--plot", "x.txt"), "png"),
        (("prefill", NULL, "--size", "0B"), "size"),
    ]:
        refused = headstack("measure", *arguments)
        assert (refused.returncode, refused.stdout) == (2, ""), arguments
        assert message in refused.stderr, arguments
        assert refused.stderr.count("\n") == 1, arguments


@pytest.mark.parametrize(
    "arguments",
    [
        ("zones", "null:50ms", "--depth", "1"),
        ("fsync", "null:20ms", "--size", "4KiB,8KiB"),
        # The first of the runs does not count: it has to be over by the time of Ctrl-C.
        ("crystal", NULL, "--time", "300ms"),
        ("crystal", NULL, "--time", "10ms", "--runs", "1", "--pause", "60s"),
        ("prefill", "null:10ms", "--parts", "3"),
    ],
    ids=["zones", "fsync", "crystal", "crystal-pause", "prefill"],
)
def test_ctrl_c_ends_the_whole_test_and_keeps_what_was_measured(arguments: tuple[str, ...], tmp_path: Path) -> None:
    path, command = tmp_path / "kept.json", "import sys; from headstack.cli.main import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "measure", *arguments, "-q", "--json", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    interrupt(process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.count("\n") == 1
    assert "results up to then are kept" in err
    kept = json.loads(path.read_text())
    assert kept["ended_early"] == "stopped by hand"
    assert sum(sum(kind["count"] for kind in run["kinds"].values()) for run in kept["runs"]) > 0


@pytest.mark.parametrize("test", ["zones", "latency", "fsync", "crystal", "prefill"])
def test_each_test_has_help(headstack: Headstack, test: str) -> None:
    done = headstack("measure", test, "--help")
    assert done.returncode == 0
    assert "--plot" in done.stdout
    assert test in headstack("measure", "--help").stdout
