"""Replays from the command line and from Python, and recordings of simulated runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest

import headstack as hs
from conftest import ATLAS, CHEETAH, Headstack
from headstack.traces.replays import MODES


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed loop of depth 4 on a simulated drive."""
    path = tmp_path_factory.mktemp("recorded") / "run.parquet"
    hs.run(CHEETAH, "file-server", depth=4, requests=3000, warm_up=0, record=path)
    return path


def times(path: Path) -> pl.DataFrame:
    """What a recording says of when."""
    return pl.read_parquet(path).select("arrival_ns", "response_ns", "offset_bytes", "operation")


def test_a_run_is_recorded_as_a_trace(headstack: Headstack, tmp_path: Path) -> None:
    arguments = ["--depth", "2", "--requests", "500", "--warm-up", "0", "--record", "run.parquet"]
    assert headstack("run", ATLAS, "-w", "file-server", *arguments).returncode == 0
    info = hs.Trace(tmp_path / "run.parquet").info()
    total, meta = info["summary"]["total"], info["meta"]
    result = hs.run(ATLAS, "file-server", depth=2, requests=500, warm_up=0)[0]
    # What the end of the run finds under way is recorded too, without completion.
    assert total["responses"] == 500 <= sum(total["requests"].values()) <= 501
    assert total["response_sum_ns"] / 500 == pytest.approx(result["mean_ms"] * 1e6)
    assert (meta["response"], meta["devices"][0]["name"]) == ("simulated", ATLAS)
    assert info["summary"]["most_in_flight"] == 2


def test_a_commit_of_a_journal_is_a_flush_and_a_write(tmp_path: Path) -> None:
    events = [("0.000000000", "W", 800), ("0.001000000", "FWFSM", 4000), ("0.200000000", "W", 1600)]
    lines = [f"8,0 1 {n} {at} 7 Q {rwbs} {place} + 8 [jbd2]" for n, (at, rwbs, place) in enumerate(events, 1)]
    path = tmp_path / "journal.txt"
    path.write_text("\n".join(lines) + "\n")
    stored = tmp_path / "journal.parquet"
    hs.Trace(path).to_parquet(stored)
    for trace in (path, stored):
        (found,) = json.loads(hs.replay(trace, CHEETAH, "timed").to_json())
        assert {kind: found["kinds"][kind]["count"] for kind in ("flush", "write")} == {"flush": 1, "write": 3}
        assert found["fidelity"]["replayed_requests"] == 3
        assert any("PREFLUSH" in note for note in found["notes"]), found["notes"]


def test_the_clients_of_a_scenario_are_processes(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    hs.run(CHEETAH, "demartek-web", time="2s", warm_up="0s", record=path)
    processes = hs.Trace(path).info()["meta"]["processes"]
    assert processes
    assert all(process["name"] for process in processes)


def test_on_its_own_drive_a_recording_comes_out_the_same(headstack: Headstack, recorded: Path, tmp_path: Path) -> None:
    done = headstack("trace", "replay", str(recorded), CHEETAH, "--mode", "timed", "--record", "again.parquet")
    assert done.returncode == 0, done.stderr
    before, again = times(recorded), times(tmp_path / "again.parquet")
    complete = before["response_ns"].is_not_null()
    assert again.filter(complete).equals(before.filter(complete)), "to the nanosecond"
    assert "fidelity" in done.stdout


def test_as_fast_as_possible_gives_the_recorded_rate(recorded: Path) -> None:
    rows = hs.replay(recorded, CHEETAH, ["asap", "closed", "dependent"])
    assert [row["mode"] for row in rows] == ["asap", "closed", "dependent"]
    assert rows[0]["depth"] == 4, "as many as were in flight"
    for row in rows:
        assert row["rate_ratio"] == pytest.approx(1, rel=0.01)
        assert row["lateness_p99_ms"] < 1


def test_a_slower_drive_falls_behind_its_schedule_or_its_causes(recorded: Path) -> None:
    timed, asap, dependent = hs.replay(recorded, ATLAS, ["timed", "asap", "dependent"])
    assert (timed["lateness_max_ms"], timed["rate_ratio"]) == (0, pytest.approx(1))
    assert timed["causality_violations"] > 100
    assert timed["mean_ms"] > 1.2 * dependent["mean_ms"]
    # A window keeps every order that the recording shows within it.
    (within,) = hs.replay(recorded, ATLAS, "dependent", within="100ms")
    assert within["causality_violations"] == 0 < dependent["causality_violations"] < timed["causality_violations"]
    assert max(asap["rate_ratio"], dependent["rate_ratio"]) < 0.99


def test_times_are_scaled_and_parts_replayed(recorded: Path) -> None:
    whole = hs.replay(recorded, CHEETAH)[0]
    twice = hs.replay(recorded, CHEETAH, time_scale=2)[0]
    part = hs.replay(recorded, CHEETAH, requests=100)[0]
    assert twice["duration_s"] == pytest.approx(2 * whole["duration_s"], rel=0.01)
    assert part["requests"] == 100


def test_lists_are_combined_systems_first(headstack: Headstack, recorded: Path) -> None:
    arguments = ["--mode", "asap", "--depth", "1,8", "--policy", "fcfs,sptf", "--csv", "-"]
    done = headstack("trace", "replay", str(recorded), CHEETAH, ATLAS, *arguments)
    rows = pl.read_csv(done.stdout.encode())
    assert rows["system"].to_list() == 4 * [CHEETAH] + 4 * [ATLAS]
    assert rows["depth"].to_list() == 2 * [1, 1, 8, 8]
    assert rows["policy"].to_list() == 4 * ["fcfs", "sptf"]
    assert rows["iops"][3] > rows["iops"][2], "shortest positioning time first is worth something at depth 8"


def test_whole_results_hold_the_fidelity(headstack: Headstack, recorded: Path) -> None:
    (result,) = [json.loads(headstack("trace", "replay", str(recorded), CHEETAH, "--json", "-").stdout)]
    result = result[0] if isinstance(result, list) else result
    assert result["fidelity"]["lateness_max_ns"] == 0
    assert math.isclose(result["fidelity"]["rate_ratio"], 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([CHEETAH, "--mode", "warp"], "mode: 'warp' is unknown; allowed: timed, asap, closed, dependent"),
        ([CHEETAH, "--mode", "asap", "--depth", "0"], "depth must be at least 1"),
        ([CHEETAH, "--depth", "4"], "depth: applies only to the mode asap"),
        ([CHEETAH, "--time-scale", "0"], "time_scale must be above 0"),
        ([CHEETAH, "--mode", "asap", "--time-scale", "2"], "--time-scale: applies only to the mode timed"),
        ([CHEETAH, "--outside", "wrap"], "outside: 'wrap' is unknown"),
        ([CHEETAH, "--requests", "many"], "--requests: 'many'"),
        ([f"{CHEETAH}@10GB"], "a replay uses a whole system"),
        (
            ["cheetah-9lp"],
            "run.parquet: request 1: 512 bytes at 16096826368; the system ends at 9105018880; outside: use fold",
        ),
        (["nosuch"], "no drive"),
        ([CHEETAH, ATLAS, "--record", "x.parquet"], "2 replays; only one can be recorded"),
        ([CHEETAH, "-s", "kind=trim"], "the trace has no requests"),
    ],
)
def test_bad_input_gets_one_line(
    headstack: Headstack, recorded: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = headstack("trace", "replay", str(recorded), *arguments)
    assert done.returncode == 2, done
    assert message in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [], "nothing is written"


def test_traces_that_cannot_be_replayed_say_what_would_help(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "two.trace").write_text("1.5 0 8 8 1\n2.5 1 16 8 0\n")
    refused = headstack("trace", "replay", "two.trace", CHEETAH)
    assert "several devices, such as `0` and `1`" in refused.stderr
    assert headstack("trace", "replay", "two.trace", CHEETAH, "-s", "stack=1GB").returncode == 0
    refused = headstack("trace", "replay", "two.trace", CHEETAH, "-s", "device=0", "--mode", "closed")
    assert refused.returncode == 2
    assert "completion" in refused.stderr
    refused = headstack("trace", "replay", "two.trace", CHEETAH, "-s", "device=0", "--mode", "asap")
    assert "queue depth is unknown; set --depth" in refused.stderr


def test_every_mode_is_in_the_help(headstack: Headstack) -> None:
    text = headstack("trace", "replay", "--help").stdout
    assert all(mode in text for mode in MODES)
