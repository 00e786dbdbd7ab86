"""Measuring real files and devices, and targets that store nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack, interrupt
from headstack.measurement.access import Access
from headstack.measurement.measurement import Opened, Step


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(1 << 22))
    return path


def test_a_target_that_stores_nothing_makes_exactly_the_requests_asked_for() -> None:
    [row] = hs.measure("null", requests=1000, depth=4)
    assert (row["requests"], row["errors"], row["depth"]) == (1000, 0, 4)


def test_a_service_time_limits_the_rate() -> None:
    [row] = hs.measure("null:5ms", depth=2, time="1s")
    # Two requests at a time, each 5 ms: 400 a second, less what a busy machine is late.
    assert 0 < row["iops"] <= 401
    assert row["p50_ms"] >= 5


def test_an_open_loop_beyond_saturation_counts_from_the_intended_arrival() -> None:
    [row] = hs.measure("null:2ms", rate=1000, slots=1, time="2s")
    assert row["saturated"]
    assert row["iops"] <= 501
    # Half of the arrivals pile up: at the end a request has waited for about a second, not for 2 ms.
    assert row["p99_ms"] > 500
    assert row["backlog"] > 500


def test_threads_share_requests_and_rate() -> None:
    [row] = hs.measure("null", requests=1001, depth=5, threads=2)
    assert row["requests"] == 1001
    [row] = hs.measure("null", rate=400, threads=4, time="1s")
    assert 300 < row["iops"] < 500, "not 400 of each"
    with pytest.raises(hs.InputError, match="3 threads for queue depth 2"):
        hs.measure("null", depth=2, threads=3)


@pytest.mark.parametrize("engine", ["ring", "psync"])
def test_a_file_is_read_by_either_engine(data: Path, engine: str) -> None:
    [row] = hs.measure(data, requests=200, depth=4, buffered=True, engine=engine)
    assert (row["requests"], row["errors"]) == (200, 0)
    assert row["p50_ms"] > 0


def test_a_file_is_written_only_with_a_word(data: Path) -> None:
    before = data.read_bytes()
    with pytest.raises(hs.InputError, match="overwrite"):
        hs.measure(data, read=0, requests=10, buffered=True)
    assert data.read_bytes() == before
    [row] = hs.measure(data, read=0, requests=10, buffered=True, overwrite=True)
    assert row["requests"] == 10
    assert data.read_bytes() != before
    assert data.stat().st_size == len(before)


def test_a_file_is_created_only_where_a_size_is_given(tmp_path: Path) -> None:
    path = tmp_path / "new"
    with pytest.raises(hs.InputError, match="not found; to create it, add --create SIZE"):
        hs.measure(path, requests=1)
    [row] = hs.measure(path, read=50, requests=100, create="1MiB", buffered=True)
    assert path.stat().st_size == 1 << 20
    assert row["requests"] == 100


def test_what_cannot_be_measured_is_one_line(headstack: Headstack, tmp_path: Path) -> None:
    for arguments, complaint in [
        (("measure", str(tmp_path)), "is a directory"),
        (("measure", "null", "--engine", "fast"), "auto, ring, psync"),
        (("measure", "null", "--policy", "sptf"), "No such option"),
        (("measure", "null", "-w", "demartek-oltp"), "data0, data1, data2, log have no target"),
        (("measure", "null:-1ms"), "negative"),
        (("measure", "null", "--depth", "1", "--rate", "5"), "only one of them"),
    ]:
        code, out, err = headstack(*arguments)
        assert (code, out) == (2, "")
        assert complaint in err
        assert err.startswith("headstack: ")
        assert err.count("\n") == 1


def test_results_say_what_was_measured(headstack: Headstack, data: Path) -> None:
    code, out, _ = headstack(
        "measure", str(data), "--requests", "50", "--buffered", "--depth", "1,2", "-q", "--json", "-"
    )
    runs = json.loads(out)
    assert code == 0
    assert [run["workload"]["arrivals"]["closed"]["queue_depth"] for run in runs] == [1, 2]
    for run in runs:
        assert (run["mode"], run["system"]["kind"], run["system"]["name"]) == ("measured", "file", str(data))
        assert run["system"]["description"]["capacity_bytes"] == 1 << 22
        assert all(check["passed"] for check in run["checks"])


@pytest.mark.parametrize("command", [("run", "--curve"), ("curve",)], ids=" ".join)
def test_curves_of_real_targets_stand_beside_simulated_ones(
    command: tuple[str, ...], headstack: Headstack, data: Path, tmp_path: Path
) -> None:
    load = ("-w", "random-read-4k", "--depth", "1,4", "--requests", "100", "-q")
    results = tmp_path / "curves.json"
    systems = (str(data), "cheetah-x15-36lp")
    code, out, err = headstack(*command, *systems, *load, "--buffered", "--json", str(results))
    assert code == 0
    assert err == ("" if command[0] == "run" else "headstack: `headstack curve` is now `headstack run --curve`\n")
    assert out.count("cheetah-x15-36lp") >= 2
    assert str(data) in out
    runs = json.loads(results.read_text())
    assert [(run["mode"], run["system"]["name"]) for run in runs] == [
        *(("measured", str(data)),) * 2,
        *(("simulated", "cheetah-x15-36lp"),) * 2,
    ]


def test_writes_of_a_curve_need_permission(headstack: Headstack, data: Path) -> None:
    before = data.read_bytes()
    load = ("--curve", "--read", "0", "--size", "4KiB", "--depth", "1", "--requests", "20", "--buffered", "-q")
    code, _, err = headstack("run", str(data), *load)
    assert (code, data.read_bytes()) == (2, before)
    assert "--overwrite" in err
    assert headstack("run", str(data), *load, "--overwrite")[0] == 0
    assert data.read_bytes() != before


@pytest.mark.parametrize(
    ("option", "value"),
    [("--overwrite", ()), ("--destroy", ("sdb",)), ("--signature", ("ext4",)), ("--continue-on-error", ())],
)
def test_options_of_measurements_are_refused_for_simulations(
    option: str, value: tuple[str, ...], headstack: Headstack
) -> None:
    code, _, err = headstack("run", "cheetah-x15-36lp", "--size", "4KiB", option, *value)
    assert (code, err.splitlines()[0].partition(": only")[0]) == (2, f"headstack: {option}")


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    command = "import sys; from headstack.cli.main import main; main(sys.argv[1:])"
    arguments = ["measure", "null:1ms", "--time", "60s", "-q", "--json", str(path)]
    process = subprocess.Popen([sys.executable, "-c", command, *arguments], stderr=subprocess.PIPE, text=True)
    interrupt(process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped by hand" in err
    [run] = json.loads(path.read_text())
    assert run["ended_early"] == "stopped by hand"
    assert run["kinds"]["read"]["count"] > 0


def test_a_device_is_written_only_when_it_is_named(loop_device: tuple[str, Path]) -> None:
    device, backing = loop_device
    before = backing.read_bytes()
    [row] = hs.measure(device, requests=100, depth=4)
    assert row["requests"] == 100
    for destroy in ([], ["/dev/null"]):
        with pytest.raises(hs.InputError, match="--destroy"):
            hs.measure(device, read=0, requests=10, destroy=destroy)
    assert backing.read_bytes() == before
    [row] = hs.measure(device, read=0, requests=10, destroy=[device])
    assert row["requests"] == 10
    subprocess.run(["sync", device], check=True)
    assert backing.read_bytes() != before


def test_a_file_that_was_never_written_is_told_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.truncate(1 << 20)
    results = hs.measure(path, size="4KiB", requests=10)
    assert any("is unallocated; reads there never reach the device" in note for note in results.notes)
    path.write_bytes(os.urandom(1 << 20))
    assert not any("unallocated" in note for note in hs.measure(path, size="4KiB", requests=10).notes)


def test_no_requests_outstanding_are_refused_as_in_simulation(headstack: Headstack) -> None:
    for threads in ("1", "2"):
        code, _, err = headstack("measure", "null", "--depth", "0", "--threads", threads)
        assert (code, err) == (2, "headstack: --depth: 0 is out of range; must be 1 to 65536\n")


def test_threads_lose_no_request_of_a_depth_or_a_limit() -> None:
    results = hs.measure("null:20ms", requests=20, depth=5, threads=2)
    assert results.whole(0)["depth"]["max"] == 5
    opened = Opened(["null"], Access(threads=3), writing=False)
    workload = hs.Workload.uniform(read="100", size="4KiB").description | {"arrivals": {"closed": {"queue_depth": 7}}}
    results = opened.measure([Step(workload, limits={"requests": 100})])
    assert results[0]["requests"] == 100
