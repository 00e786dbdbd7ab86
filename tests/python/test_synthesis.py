"""Twins of traces: what the command writes, says and refuses. The mechanisms are tested in the crate `trace`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headstack as hs
from conftest import CHEETAH, REPOSITORY, SHARED, Headstack

MSR = REPOSITORY / "crates" / "trace" / "samples" / "msr.csv"
DISKSIM = SHARED / "traces" / "disksim" / "ascii.trace"
COMMAND = [sys.executable, "-c", "from headstack.cli import main; main()", "trace", "synthesize"]
PATIENCE_S = 60


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A recorded run of an open loop."""
    path = tmp_path / "t.parquet"
    hs.run(CHEETAH, "file-server", rate="60/s", requests=2_000, warm_up=0, record=path)
    return path


def test_a_twin_is_written_with_its_scorecard(trace: Path, headstack: Headstack) -> None:
    outputs = ("--json", "s.json", "--plot", "s.png", "--html", "s.html", "--markdown", "s.md")
    done = headstack("trace", "synthesize", trace.name, "-o", "twin.parquet", *outputs)
    assert done.returncode == 0, done.stderr
    assert "twin.parquet: 2,000 requests in" in done.stdout
    assert "pm9a3-7680gb, timed: p99 ms" in done.stdout
    assert "lost: " in done.stdout
    told = json.loads((trace.parent / "s.json").read_text(encoding="utf-8"))
    card = told["scorecard"]
    assert told["made"]["requests"] == 2_000
    assert told["lost"]
    assert card["misses"]["max_error"] < 0.02
    assert [row["system"] for row in card["replays"]] == ["exos-7e8-8tb", "pm9a3-7680gb", "nearline-12-raid6"]
    for row in card["replays"]:
        assert row["twin_mean_ms"] == pytest.approx(row["trace_mean_ms"], rel=0.1)
    # Longer bins are few.
    short = [row for row in card["dispersion"] if row["bin_ns"] <= 1e9]
    assert len(short) == 5
    for row in short:
        assert row["twin"] == pytest.approx(row["trace"], rel=0.25)
    assert (trace.parent / "s.png").stat().st_size > 1_000
    assert "Bursts at every scale" in (trace.parent / "s.html").read_text(encoding="utf-8")
    assert "Lost: " in (trace.parent / "s.md").read_text(encoding="utf-8")


def test_equal_seeds_give_equal_files_and_the_trace_is_not_among_them(trace: Path) -> None:
    def twin(name: str, seed: int) -> bytes:
        hs.synthesize(trace, trace.parent / name, seed=seed, scorecard=False)
        return (trace.parent / name).read_bytes()

    assert twin("a.parquet", 1) == twin("b.parquet", 1) != twin("c.parquet", 2)


def test_a_closed_loop_says_that_it_is_one(tmp_path: Path) -> None:
    path, twin = tmp_path / "c.parquet", tmp_path / "twin.parquet"
    hs.run(CHEETAH, "file-server", depth=4, requests=2_000, warm_up=0, record=path)
    made = hs.synthesize(path, twin, length="1500").made
    assert (made["learnt_clients"], made["clients"], made["requests"]) == (4, 4, 1_500)
    assert "a closed loop of 4 clients: replay it by --mode closed" in hs.Trace(twin).info()["meta"]["notes"]
    [row] = hs.replay(twin, CHEETAH, "closed")
    assert row["achieved_depth_mean"] == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--length", "0x"), "length: must be above 0, not 0x"),
        (("--length", "soon"), "length"),
        (("--footprint", "0.5x"), "footprint: must be from 1 to 256, not 0.5"),
        (("--rate", "fast"), "rate"),
        (("--clients", "0"), "clients"),
        (("--no-scorecard", "--plot", "s.png"), "--plot: shows the scorecard, which --no-scorecard leaves out"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[str, ...], said: str, tmp_path: Path, headstack: Headstack) -> None:
    done = headstack("trace", "synthesize", str(MSR), "-o", "twin.parquet", *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not os.listdir(tmp_path)


def test_a_pipe_is_refused_for_it_is_read_once(tmp_path: Path, headstack: Headstack) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = headstack("trace", "synthesize", "pipe", "-o", "twin.parquet")
    assert done.returncode == 2
    assert "pipe: must be a file" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_synthesis_that_is_ended_leaves_nothing(number: int, tmp_path: Path) -> None:
    endless = ("--length", "1000000000", "--no-scorecard", "-q")
    process = subprocess.Popen(
        [*COMMAND, str(MSR), "-o", "twin.parquet", *endless], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + PATIENCE_S
    while not os.listdir(tmp_path):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err.strip()) == (128 + number, "headstack: interrupted; nothing is written")
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(not DISKSIM.exists(), reason="no sample traces")
def test_a_real_trace_has_a_twin(tmp_path: Path) -> None:
    found = hs.synthesize(hs.Trace(DISKSIM, steps=["first=30000"]), tmp_path / "twin.parquet")
    assert found.scorecard is not None
    assert found.scorecard["misses"]["max_error"] < 0.02
    for row in found.scorecard["replays"]:
        assert row["twin_mean_ms"] == pytest.approx(row["trace_mean_ms"], rel=0.1)
        assert row["twin_p99_ms"] == pytest.approx(row["trace_p99_ms"], rel=0.2)
