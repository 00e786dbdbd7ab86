"""Capture from the command line, on a loop device of the test's own."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import headstack as hs
from conftest import Attach, Headstack, is_privileged, lacks
from headstack.traces.trace_types import Captured
from shapes import differences

TRACEFS = Path("/sys/kernel/tracing")
COMMAND = [sys.executable, "-c", "from headstack.cli.main import main; main()", "trace", "capture"]


@pytest.fixture
def captured(attach: Attach, tmp_path: Path) -> Iterator[str]:
    """A block device of 64 MiB, with exclusive access to the kernel's tracing.

    The Rust tests of capture run at the same time and take the same lock (`crates/trace/tests/capture/bench.rs`):
    both count the kernel's tracing instances before and after.
    """
    if not (TRACEFS / "events" / "block").is_dir():
        lacks("kernel", f"no block events in {TRACEFS}")
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    with open("/run/headstack-capture-tests.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield attach(image)


def write(device: str, requests: int) -> None:
    """Writes of 4 KiB past every cache."""
    command = ["dd", "if=/dev/zero", f"of={device}", "bs=4k", f"count={requests}", "oflag=direct", "status=none"]
    subprocess.run(command, check=True)


def instances() -> set[str]:
    return set(os.listdir(TRACEFS / "instances"))


def is_recording(instance: str) -> bool:
    """Whether all of it is switched on, the whole last."""
    folder = TRACEFS / "instances" / instance
    switches = (folder / "events" / "block" / "block_bio_complete" / "enable", folder / "tracing_on")
    return all(switch.exists() and switch.read_text().strip() == "1" for switch in switches)


def test_ctrl_c_keeps_what_was_recorded(captured: str, tmp_path: Path) -> None:
    before = instances()
    capture = subprocess.Popen(
        [*COMMAND, captured, "-o", "out.parquet"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    while not any(is_recording(instance) for instance in instances() - before):
        assert capture.poll() is None
        time.sleep(0.01)
    write(captured, 300)
    capture.send_signal(signal.SIGINT)
    told, _ = capture.communicate(timeout=60)
    assert capture.returncode == 0
    assert "out.parquet: 300 requests" in told
    total = hs.Trace(tmp_path / "out.parquet").info()["summary"]["total"]
    assert total["requests"] == {"write": 300}
    assert total["bytes"] == {"write": 300 * 4096}
    assert total["responses"] == 300
    assert instances() == before, "the kernel is left as it was found"


def test_a_capture_has_the_stated_type(captured: str, tmp_path: Path) -> None:
    before = instances()

    def write_when_recording() -> None:
        while not any(is_recording(instance) for instance in instances() - before):
            time.sleep(0.01)
        write(captured, 10)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(write_when_recording)
        found = hs.capture(captured, tmp_path / "out.parquet", requests=10, time="60s")
    assert found["requests"] == 10
    assert list(differences(found, Captured)) == []


def test_a_number_of_requests_ends_it(captured: str, tmp_path: Path) -> None:
    capture = subprocess.Popen(
        [*COMMAND, captured, "-o", "out.parquet", "--requests", "50", "--at", "issue", "-q"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(100):
        if capture.poll() is not None:
            break
        write(captured, 10)
        time.sleep(0.05)
    told, _ = capture.communicate(timeout=60)
    assert "out.parquet: 50 requests" in told
    assert hs.Trace(tmp_path / "out.parquet").info()["summary"]["total"]["requests"] == {"write": 50}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch"], "nosuch"),
        (["/dev/null"], "/dev/null"),
        (["loop0", "--time", "soon"], "time: "),
        (["loop0", "--method", "magic"], "method: must be tracepoints or tracer, not `magic`"),
        (["loop0", "--at", "noon"], "at: must be queue or issue"),
    ],
)
def test_bad_input_gets_one_line(headstack: Headstack, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = headstack("trace", "capture", *arguments, "-o", "out.parquet")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_without_root_it_says_what_it_needs(tmp_path: Path) -> None:
    if not is_privileged():
        lacks("root", "only root can become somebody else")
    # Nobody may read where Python and we lie: what is loaded late is loaded before.
    code = (
        "import difflib, os, headstack.cli.traces.traces, headstack.traces.traces; from headstack.cli.main import main"
    )
    command = [
        sys.executable,
        "-c",
        f"{code}; os.setuid(65534); main()",
        "trace",
        "capture",
        "loop0",
        "-o",
        "/tmp/never.parquet",
    ]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "root" in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1
