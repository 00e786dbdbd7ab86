"""Replays on files, block devices and targets that store nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import headstack as hs
from conftest import CHEETAH, Headstack, interrupt
from headstack.traces.replays import MODES

COLUMNS = "time=us:us,offset=offset,length=size,op=op,response=us_taken:us"


def write_csv(path: Path, rows: list[tuple[int, int, int, str, int]]) -> Path:
    """A trace of (arrival in us, offset, length, operation, response in us)."""
    lines = ["us,offset,size,op,us_taken", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(1 << 22))
    return path


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A read every ms, and every fifth request a write; each complete after half a ms."""
    kinds = ["read", "read", "write", "read", "read"]
    rows = [(1000 * n, 4096 * (37 * n % 900), 4096, kinds[n % 5], 500) for n in range(300)]
    return write_csv(tmp_path / "recorded.csv", rows)


def trace(path: Path) -> hs.Trace:
    return hs.Trace(path, columns=COLUMNS)


def test_a_file_is_played_in_every_mode(recorded: Path, data: Path) -> None:
    before = data.read_bytes()
    rows = hs.replay(trace(recorded), data, MODES, writes="as-reads", buffered=True, depth=3)
    assert [row["mode"] for row in rows] == list(MODES)
    for row in rows:
        assert (row["requests"], row["errors"], row["system"]) == (300, 0, str(data))
        assert (row["workload"], row["recorded_per_s"]) == ("recorded.csv", pytest.approx(1000))
    timed, asap, closed, dependent = rows
    assert asap["depth"] == 3
    # 299 ms by the clock, at least.
    assert timed["duration_s"] >= 0.299
    assert timed["rate_ratio"] <= 1.01
    # Half a ms of thought after each of 299 answers.
    assert min(closed["duration_s"], dependent["duration_s"]) >= 0.149
    assert data.read_bytes() == before


def test_writes_need_a_word_and_go_where_they_went(recorded: Path, data: Path) -> None:
    before = data.read_bytes()
    with pytest.raises(hs.InputError, match=r"has 60 writes and trims; .*--destroy .*--overwrite .*--writes skip"):
        hs.replay(trace(recorded), data, "asap", buffered=True)
    [skipped] = hs.replay(trace(recorded), data, "asap", buffered=True, writes="skip")
    assert skipped["requests"] == 240
    assert data.read_bytes() == before
    results = hs.replay(trace(recorded), data, "asap", buffered=True, overwrite=True)
    assert results[0]["requests"] == 300
    after = data.read_bytes()
    written = {4096 * (37 * n % 900) for n in range(2, 300, 5)}
    changed = {at for at in range(0, len(before), 4096) if before[at : at + 4096] != after[at : at + 4096]}
    assert changed == written


def test_a_file_is_created_where_a_size_is_given(headstack: Headstack, recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "new"
    arguments = ["trace", "replay", str(recorded), "--columns", COLUMNS, str(path), "-m", "asap", "--buffered"]
    refused = headstack(*arguments, "--writes", "skip")
    assert refused.returncode == 2
    assert "not found; to create it, add --create SIZE" in refused.stderr
    done = headstack(*arguments, "--create", "4MiB", "--csv", "-")
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size == 1 << 22
    assert pl.read_csv(done.stdout.encode())["requests"].to_list() == [300]


def test_lateness_is_that_of_the_schedule(recorded: Path) -> None:
    [row] = hs.replay(trace(recorded), "null:3ms", slots=1)
    # Three ms each, one a ms: the last is issued about 600 ms late, and its response counts from its time.
    assert row["saturated"]
    assert row["lateness_max_ms"] > 500
    assert row["rate_ratio"] < 0.4
    assert row["max_ms"] >= row["lateness_max_ms"]
    [fast] = hs.replay(trace(recorded), "null:100us", time_scale=2)
    assert fast["duration_s"] >= 0.598


def test_real_and_simulated_systems_stand_in_one_table(headstack: Headstack, recorded: Path, data: Path) -> None:
    arguments = [
        "trace",
        "replay",
        str(recorded),
        "--columns",
        COLUMNS,
        "-s",
        "kind=read",
        "-m",
        "timed,asap",
        "--buffered",
    ]
    done = headstack(*arguments, CHEETAH, str(data), "atlas-10k-iii-73", "null", "--csv", "-")
    assert done.returncode == 0, done.stderr
    rows = pl.read_csv(done.stdout.encode())
    systems = [CHEETAH, str(data), "atlas-10k-iii-73", "null"]
    assert rows["system"].to_list() == [system for system in systems for _ in range(2)]
    assert rows["mode"].to_list() == 4 * ["timed", "asap"]
    assert set(rows["requests"].to_list()) == {240}
    shown = headstack(*arguments, CHEETAH, str(data))
    assert "fidelity" in shown.stdout
    assert shown.stdout.split("\n\n", 1)[1].count(str(data)) == 4


def test_what_came_out_is_a_trace_in_the_order_of_issue(recorded: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    played = trace(recorded)
    [row] = hs.replay(played, data, buffered=True, overwrite=True, record=out, interval="100ms")
    again = pl.read_parquet(out)
    asked = pl.read_csv(recorded)
    assert again["offset_bytes"].to_list() == asked["offset"].to_list()
    assert again["operation"].to_list() == asked["op"].to_list()
    assert again["arrival_ns"].is_sorted()
    issued_ns, responses_ns = again["arrival_ns"].to_list(), again["response_ns"].to_list()
    late_ns = [at_ns - 1000 * us for at_ns, us in zip(issued_ns, asked["us"].to_list(), strict=True)]
    assert min(late_ns) >= 0
    # The mean counts from when requests were due.
    mean_ns = (sum(responses_ns) + sum(late_ns)) / len(late_ns)
    assert mean_ns == pytest.approx(row["mean_ms"] * 1e6, rel=1e-6)
    assert hs.Trace(out).info()["meta"]["devices"][0]["name"] == str(data)
    [replayed] = hs.replay(hs.Trace(out), "null", "asap")
    assert replayed["requests"] == 300


def test_what_overtakes_is_put_back_in_order(tmp_path: Path) -> None:
    path, out = tmp_path / "large", tmp_path / "out.parquet"
    path.write_bytes(os.urandom(1 << 24))
    # Every fourth is long, and those behind it are complete before it.
    rows = [(n, (n % 15) << 20, 1 << 20 if n % 4 == 0 else 4096, "read", 1) for n in range(400)]
    hs.replay(trace(write_csv(tmp_path / "mixed.csv", rows)), path, "asap", depth=8, engine="psync", record=out)
    again = pl.read_parquet(out)
    assert again["offset_bytes"].to_list() == [row[1] for row in rows]
    assert again["arrival_ns"].is_sorted()
    assert not (again["arrival_ns"] + again["response_ns"]).is_sorted(), "nothing was put back"


def test_intervals_are_kept(recorded: Path) -> None:
    results = hs.replay(trace(recorded), "null", interval="100ms")
    counts = pl.DataFrame(results.intervals())["requests"].to_list()
    assert sum(counts) == 300
    assert len(counts) >= 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["DATA", "--policy", "sptf"], "policy: does not apply to real targets"),
        (["DATA", "--seed", "2"], "seed: does not apply to real targets"),
        (["DATA"], "--writes skip (leave writes out)"),
        (["DATA", "--writes", "never"], "writes: 'never' is unknown; allowed: as-recorded, skip, as-reads"),
        (["DATA", "--writes", "skip", "--engine", "fast"], "auto, ring, psync"),
        (["null", "--slots", "0"], "queue depth 0; must be 1 to 32768"),
        (["null", "null", "--record", "x.parquet"], "2 replays; only one can be recorded"),
        (["/dev/nosuch", "--writes", "skip"], "nosuch"),
        ([CHEETAH, "--writes", "skip"], "--step kind=read,flush"),
        ([CHEETAH, "--realtime"], "realtime: applies only to real targets"),
        (["SMALL", "--writes", "skip", "--buffered"], "small has 8,192 bytes; use --outside fold"),
        (
            ["SMALL", "--writes", "skip", "--buffered", "-m", "asap,closed"],
            "recorded.csv: its requests extend to ",
        ),
    ],
)
def test_bad_input_gets_one_line(
    headstack: Headstack, recorded: Path, data: Path, arguments: list[str], message: str
) -> None:
    small = data.with_name("small")
    small.write_bytes(bytes(8192))
    before = sorted(data.parent.iterdir())
    named = [{"DATA": str(data), "SMALL": str(small)}.get(text, text) for text in arguments]
    done = headstack("trace", "replay", str(recorded), "--columns", COLUMNS, "-s", "first=50", *named)
    assert done.returncode == 2, done
    assert message in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(data.parent.iterdir()) == before, "nothing is written"


def test_ctrl_c_keeps_what_was_played(tmp_path: Path) -> None:
    rows = [(1000 * n, 4096 * (n % 900), 4096, "read", 500) for n in range(60_000)]
    path = write_csv(tmp_path / "minute.csv", rows)
    kept, out = tmp_path / "kept.json", tmp_path / "out.parquet"
    command = "import sys; from headstack.cli.main import main; main(sys.argv[1:])"
    arguments = [
        "trace",
        "replay",
        str(path),
        "--columns",
        COLUMNS,
        "null:1ms",
        "-q",
        "--json",
        str(kept),
        "--record",
        str(out),
    ]
    process = subprocess.Popen([sys.executable, "-c", command, *arguments], stderr=subprocess.PIPE, text=True)
    interrupt(process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "stopped by hand" in err
    [run] = json.loads(kept.read_text())
    count = run["kinds"]["read"]["count"]
    assert 0 < count < 60_000
    assert len(pl.read_parquet(out)) == pytest.approx(count, abs=5)


def test_a_broken_trace_keeps_what_was_played(headstack: Headstack, tmp_path: Path, data: Path) -> None:
    rows = [(100 * n, 4096 * (n % 900), 4096, "read", 50) for n in range(3000)]
    path = write_csv(tmp_path / "far.csv", [*rows, (400_000, 1 << 30, 4096, "read", 50)])
    done = headstack(
        "trace",
        "replay",
        str(path),
        "--columns",
        COLUMNS,
        str(data),
        "--buffered",
        "--time",
        "1s",
        "--json",
        "kept.json",
    )
    assert done.returncode == 3, done
    assert "ended early; results up to then are kept: request 3001: " in done.stderr
    [run] = json.loads((tmp_path / "kept.json").read_text())
    assert run["kinds"]["read"]["count"] == 3000


def test_a_device_is_played_when_it_is_named(recorded: Path, loop_device: tuple[str, Path]) -> None:
    device, backing = loop_device
    before = backing.read_bytes()
    [row] = hs.replay(trace(recorded), device, writes="skip")
    assert (row["requests"], row["errors"]) == (240, 0)
    with pytest.raises(hs.InputError, match="--destroy"):
        hs.replay(trace(recorded), device, destroy=["/dev/null"])
    assert backing.read_bytes() == before
    [row] = hs.replay(trace(recorded), device, destroy=[device])
    assert (row["requests"], row["errors"]) == (300, 0)
    subprocess.run(["sync", device], check=True)
    assert backing.read_bytes() != before


def may_go_first() -> bool:
    """Whether this process may have real-time priority."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def test_realtime_plays_or_says_why_not(recorded: Path) -> None:
    if may_go_first():
        [row] = hs.replay(trace(recorded), "null:100us", realtime=True)
        assert row["requests"] == 300
    else:
        with pytest.raises((hs.InputError, hs.RunError), match="real-time priority"):
            hs.replay(trace(recorded), "null:100us", realtime=True)
