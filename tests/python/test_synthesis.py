"""Twins of traces: what the command writes, says and refuses. The mechanisms are tested in the crate `trace`."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

import headstack as hs
from conftest import CHEETAH, REPOSITORY, SHARED, Headstack, lacks
from headstack.traces import trace_scenario
from headstack.traces.report_types import ReuseReport, TraceReport

MSR = REPOSITORY / "crates" / "trace" / "samples" / "msr.csv"
DISKSIM = SHARED / "traces" / "disksim" / "ascii.trace"
COMMAND = [sys.executable, "-c", "from headstack.cli.main import main; main()", "trace", "synthesize"]
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
    assert "a closed loop of 4 clients: replay it with --mode closed" in hs.Trace(twin).info()["meta"]["notes"]
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
        (("--no-scorecard", "--plot", "s.png"), "--plot: needs the scorecard; remove --no-scorecard"),
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


def test_a_real_trace_has_a_twin(tmp_path: Path) -> None:
    if not DISKSIM.exists():
        lacks("data", f"no sample traces in {SHARED}")
    found = hs.synthesize(hs.Trace(DISKSIM, steps=["first=30000"]), tmp_path / "twin.parquet")
    assert found.scorecard is not None
    assert found.scorecard["misses"] is not None
    assert found.scorecard["misses"]["max_error"] < 0.02
    for row in found.scorecard["replays"]:
        assert row["twin_mean_ms"] == pytest.approx(row["trace_mean_ms"], rel=0.1)
        assert row["twin_p99_ms"] == pytest.approx(row["trace_p99_ms"], rel=0.2)


BURSTY = """
name = "bursty"
source = "test"
streams = 1
warm_up = { requests = 0 }
arrivals = { open = { rate_per_s = 500, process = { bursty = { on = "200ms", off = "800ms" } } } }
addresses = { hot_bands = [
    { from_percent = 0, to_percent = 0.0002, share_percent = 60 },
    { from_percent = 1, to_percent = 1.005, share_percent = 40 },
] }
lines = [{ size = "4KiB", share_percent = 100, read_percent = 70, random_percent = 100, align = "4KiB" }]
"""


def test_a_scenario_has_the_bursts_and_the_reuse_of_its_trace(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "bursty.toml").write_text(BURSTY, encoding="utf-8")
    hs.run("pm9a3-7680gb", str(tmp_path / "bursty.toml"), requests=40_000, record=tmp_path / "t.parquet")
    done = headstack("trace", "synthesize", "t.parquet", "--scenario", "s.toml", "--json", "s.json", "--html", "s.html")
    assert done.returncode == 0, done.stderr
    assert "lost: kinds of bursts" in done.stdout
    card = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["scorecard"]
    assert card["misses"]["max_error"] < 0.05
    assert card["requests_per_s"]["twin"] == pytest.approx(card["requests_per_s"]["trace"], rel=0.3)
    # Of longer bins there are too few.
    bursty = [row for row in card["dispersion"] if row["bin_ns"] <= 2e8]
    assert max(row["trace"] for row in bursty) > 100
    for row in bursty:
        assert row["twin"] == pytest.approx(row["trace"], rel=0.4)
    [played] = hs.run("exos-7e8-8tb", str(tmp_path / "s.toml"), requests=500)
    assert played["requests"] == 500


def test_a_closed_loop_is_a_scenario_of_as_many_clients(tmp_path: Path) -> None:
    hs.run(CHEETAH, "file-server", depth=4, requests=1_000, warm_up=0, record=tmp_path / "c.parquet")
    twin = hs.synthesize_scenario(tmp_path / "c.parquet", tmp_path / "c.toml")
    assert twin.made["clients"] == 4
    assert "queue_depth = 4" in (tmp_path / "c.toml").read_text(encoding="utf-8")
    assert twin.scorecard is not None
    assert twin.scorecard["misses"] is not None
    assert twin.scorecard["misses"]["max_error"] < 0.05


def test_phases_have_the_dispersion_at_every_scale() -> None:
    rate_per_s, parts = 100.0, [(0.02, 800.0), (3.0, 5_000.0)]

    def dispersion(parts: list[tuple[float, float]], bin_s: float) -> float:
        return 1 + sum(2 * v * t / rate_per_s * (1 - t / bin_s * -math.expm1(-bin_s / t)) for t, v in parts)

    bins_s = [10 ** (step / 3) for step in range(-9, 7)]
    scales = [{"bin_ns": round(one * 1e9), "index_of_dispersion": dispersion(parts, one)} for one in bins_s]
    found = trace_scenario.phases(cast(TraceReport, {"requests_per_s": rate_per_s, "arrivals": {"scales": scales}}))
    assert sum(rate for rate, _ in found) == pytest.approx(rate_per_s)
    modulated = []
    for rate, process in found:
        on_s, off_s = (int(process["bursty"][name].removesuffix("ns")) / 1e9 for name in ("on", "off"))
        modulated.append((1 / (1 / on_s + 1 / off_s), rate**2 * off_s / on_s))
    for bin_s in bins_s:
        assert dispersion(modulated, bin_s) == pytest.approx(dispersion(parts, bin_s), rel=0.05)


def test_arrivals_without_bursts_are_a_poisson_process() -> None:
    scales = [{"bin_ns": 10**power, "index_of_dispersion": 1.0} for power in range(6, 10)]
    report = {"requests_per_s": 50.0, "arrivals": {"scales": scales}}
    assert trace_scenario.phases(cast(TraceReport, report)) == [(50.0, "poisson")]


def test_classes_of_blocks_are_those_that_the_misses_tell() -> None:
    # Each of 1,000 blocks as often as the other, so that a cache that holds a part of them misses all but that part.
    curve = [{"cache": cache, "miss_ratio": 1 - cache / 1_000} for cache in range(50, 1_000, 50)]
    reuse = {"references": 10_000_000, "distinct": 1_000.0, "lru_curve": curve}
    found = trace_scenario.classes(cast(ReuseReport, reuse))
    assert sum(share for share, _ in found) == pytest.approx(1)
    assert sum(blocks for share, blocks in found if share > 0.01) == pytest.approx(1_000, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no output file; add --output FILE.parquet or --scenario FILE.toml"),
        (("--scenario", "s.toml", "-o", "t.parquet"), "--scenario, --output: give only one of them"),
        (("--scenario", "s.toml", "--length", "2x"), "--length: not available with --scenario"),
        (("--scenario", "s.toml", "--clients", "3"), "--clients: not available with --scenario"),
    ],
)
def test_what_a_scenario_cannot_be_asked_for(arguments: tuple[str, ...], said: str, headstack: Headstack) -> None:
    done = headstack("trace", "synthesize", str(MSR), *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
