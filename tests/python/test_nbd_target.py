"""Exports of NBD servers as targets: our own, nbdkit's and QEMU's."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack, needs_program
from headstack.results.integrity import Integrity
from shapes import differences

MIB = 1 << 20
SIZE = "16MiB"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    """A live export that answers at once."""
    path = tmp_path / "socket"
    with hs.serve("constant:0s", unix=(str(path),), size=SIZE, floor="0s"):
        yield f"nbd+unix:///disk?socket={path}"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts somebody else's server with a socket as its last argument; where its export is."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(program: str, *arguments: str, before: str = "") -> str:
        needs_program(program)
        socket = tmp_path / f"theirs-{len(started)}"
        command = [program, before, str(socket), *arguments]
        started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        until = time.monotonic() + 20
        while not socket.exists():
            assert started[-1].poll() is None, command
            assert time.monotonic() < until, command
            time.sleep(0.02)
        return f"nbd+unix:///?socket={socket}"

    yield begin
    for process in started:
        process.terminate()
        process.wait()


def works(headstack: Headstack, *arguments: str) -> str:
    """What a command prints that succeeds."""
    done = headstack(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(headstack: Headstack, *arguments: str) -> str:
    """The one line of a command that fails."""
    done = headstack(*arguments)
    assert done.returncode != 0, done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture(params=["nbdkit", "qemu-nbd"])
def theirs(request: pytest.FixtureRequest, start: Callable[..., str], tmp_path: Path) -> str:
    """An export of 16 MiB that others serve."""
    if request.param == "nbdkit":
        return start("nbdkit", "-f", "memory", "16M", before="-U")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(16 * MIB)
    # For one client at a time, as it is by default.
    return start("qemu-nbd", "-t", "-f", "raw", str(image), before="-k")


def test_an_export_is_measured_and_named_in_the_result(disk: str) -> None:
    measured = hs.measure(disk, size="4KiB", depth=[1, 8], requests=200)
    assert [row["errors"] for row in measured] == [0, 0]
    [first, _] = json.loads(measured.to_json())
    assert first["system"]["kind"] == "NBD export"
    description = first["system"]["description"]
    assert description["capacity_bytes"] == 16 * MIB
    export = description["export"]
    assert (export["name"], export["replies"], export["connections"]) == ("disk", "extended", 1)
    assert {"flush", "fua", "trim", "multi-conn"} <= set(export["can"])
    assert any("replies received by" in note for note in first["method_notes"])


def test_what_is_written_to_an_export_is_verified_under_load_and_later(headstack: Headstack, disk: str) -> None:
    load = ["--size", "4KiB", "--read", "50", "--depth", "8", "--requests", "2000", "-q"]
    assert f"--destroy '{disk}'" in refusal(headstack, "measure", disk, *load, "--verify")
    works(headstack, "measure", disk, *load, "--destroy", disk, "--verify", "--threads", "2", "--connections", "2")
    works(headstack, "measure", "verify", disk, "-q")
    # What somebody else has overwritten is found.
    zeros = hs.Workload.uniform(read="0", size="4KiB")
    hs.measure(disk, zeros, destroy=["disk"], requests=50)
    done = headstack("measure", "verify", disk, "-q")
    assert done.returncode == 1, done.stdout


def judged(results: hs.Results) -> Integrity:
    """What the blocks of the only result were found to be."""
    found = results.integrity(0)
    assert found is not None
    assert list(differences(found, Integrity)) == []
    assert (found["damaged"], found["lost"]) == (0, 0), found
    return found


@pytest.mark.parametrize("engine", ["auto", "psync"])
def test_servers_of_others_are_measured_and_keep_what_is_written(theirs: str, engine: str) -> None:
    load = hs.Workload.uniform(read="40", size="8KiB")
    written = hs.measure(
        theirs, load, depth=16, requests=3000, verify="stamp_and_read", destroy=[theirs], engine=engine
    )
    assert judged(written)["intact"] > 500
    assert [row["errors"] for row in written] == [0]
    assert judged(hs.verify(theirs, engine=engine))["intact"] > 500


def test_errors_of_a_server_are_told(start: Callable[..., str]) -> None:
    faulty = ["--filter=error", "memory", "16M", "error-pread=EIO", "error-pread-rate=20%"]
    uri = start("nbdkit", "-f", *faulty, before="-U")
    measured = hs.measure(uri, size="4KiB", depth=4, requests=500)
    [result] = json.loads(measured.to_json())
    [row] = measured
    assert 20 < row["errors"] < 500
    assert any("read of 4KiB at byte" in note and "Input/output error" in note for note in result["notes"])


def test_job_files_of_fio_name_exports(headstack: Headstack, disk: str, tmp_path: Path) -> None:
    job, out = tmp_path / "job.fio", tmp_path / "out.json"
    job.write_text(
        f"[global]\nioengine=nbd\nuri={disk}\nbs=4k\niodepth=16\nsize=4m\n"
        "[a]\nrw=randread\n[b]\nrw=randwrite\nverify=crc32c\n"
    )
    assert "writing destroys the data in this export" in refusal(headstack, "measure", "--fio", str(job), "-q")
    works(headstack, "measure", "--fio", str(job), "-q", "--destroy", "disk", "--json", str(out))
    [result] = json.loads(out.read_text())
    assert result["integrity"]["damaged"] == 0
    assert result["kinds"]["write"]["count"] == 1024


def test_wherever_a_file_stands_an_export_may(headstack: Headstack, disk: str, tmp_path: Path) -> None:
    trace = str(tmp_path / "trace.parquet")
    made = ["--size", "4KiB", "--rate", "500", "--requests", "100"]
    works(headstack, "run", "cheetah-x15-36lp", *made, "--record", trace)
    assert works(headstack, "replay", trace, disk, "--outside", "fold", "--mode", "asap", "-q")
    assert disk in works(headstack, "curve", disk, "--size", "4KiB", "--depth", "1,2", "--requests", "100", "-q")
    assert works(headstack, "measure", "latency", disk, "-c", "3", "-i", "1ms", "-q")


def test_what_is_no_export_is_refused_in_one_line(headstack: Headstack, tmp_path: Path) -> None:
    for target, told in [
        ("nbds://localhost/x", "nbds is NBD over TLS, which is not supported"),
        ("nbd://127.0.0.1:1/x", "no server listens at 127.0.0.1:1"),
        (f"nbd+unix:///x?socket={tmp_path}/none", "there is no socket at"),
    ]:
        assert told in refusal(headstack, "measure", target, "--requests", "1")
    file = tmp_path / "file"
    file.write_bytes(bytes(MIB))
    refused = refusal(headstack, "measure", str(file), "--connections", "2", "--requests", "1")
    assert "is not an NBD export" in refused


def test_a_stall_is_named_and_no_interval_rests_on_it(headstack: Headstack, tmp_path: Path) -> None:
    path = tmp_path / "stalling"
    with hs.serve("constant:1ms", unix=(str(path),), size=SIZE, floor="0s") as live:
        hang = {"do": "inject", "fault": {"what": "hang"}, "for": "1500ms"}
        timer = threading.Timer(2.0, live.order, [hang])
        timer.start()
        uri = f"nbd+unix:///disk?socket={path}"
        load = ("--read", "100", "--random", "100", "--size", "4KiB", "--depth", "4", "--time", "6s")
        said = works(headstack, "measure", uri, *load, "-q", "--verbose", "--json", "r.json")
        timer.join()
    (result,) = json.loads((tmp_path / "r.json").read_text())
    longest = max(result["stalls"]["longest"], key=lambda stall: stall["duration_ns"])
    assert 1.2e9 < longest["duration_ns"] < 3e9
    assert 1 <= longest["queue_depth"] <= 4
    # A busy machine makes the response times drift besides, which goes before.
    assert result["sampling"]["mean"] in ({"too_short": "few_events"}, {"too_short": "drifts"})
    assert "the device stalled" in said
    assert re.search(r"p99.9 [\d.,]+ ms, [\d.,]+ ms without", said)
    decides = result["sampling"]["mean"]["too_short"] == "few_events"
    assert ("a few events, such as stalls, dominate" in said) == decides
