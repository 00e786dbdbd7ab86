"""What ``headstack top`` shows, of reports that the test makes."""

from __future__ import annotations

import copy

import pytest

from headstack.live import top
from headstack.live.status import Device, Fidelity, KindCount, Pass, RaidGroup, Spread, Status
from shapes import differences

BOUNDS_NS = [1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000]


def device(number: int) -> Device:
    """An idle member, with as many commands as its number."""
    return {
        "name": f"d{number}",
        "state": "idle",
        "queue": number,
        "cylinder": number,
        "cylinders": 24,
        "head": 0,
        "dirty_bytes": 0,
    }


def report(devices: int) -> Status:
    """A healthy session with an array."""
    nothing: KindCount = {"requests": 0, "bytes": 0, "response_ns": 0, "failed": 0, "buckets": []}
    canary: Spread = {"count": 0, "mean_ns": 0, "p99_ns": 0, "max_ns": 0}
    fidelity: Fidelity = {
        "requests": 0,
        "floor_ns": 0,
        "lateness_p50_ns": 8_000,
        "lateness_p99_ns": 21_000,
        "lateness_p999_ns": 80_000,
        "lateness_max_ns": 90_000,
        "lateness_mean_ns": 9_000,
        "copying_p99_ns": 0,
        "memory_waits": 0,
        "memory_wait_mean_ns": 0,
        "below_floor": 0,
        "deepest_queue": 0,
        "scheduling": "shared",
        "speed": 1.0,
        "clients": [],
        "canary": canary,
        "server": None,
        "pressure_share": None,
        "error_ns": None,
        "valid_above_ns": 1_200_000,
        "verdict": "valid for latencies above 1.2 ms (and so on)",
    }
    group: RaidGroup = {
        "name": "g0",
        "level": "raid5",
        "state": "healthy",
        "rebuilt_bytes": 0,
        "of_bytes": 0,
        "lost_bytes": 0,
    }
    return {
        "model_ns": 10_000_000_000,
        "outstanding": 3,
        "power": True,
        "trouble": None,
        "faults": [],
        "bounds_ns": BOUNDS_NS,
        "kinds": {kind: copy.deepcopy(nothing) for kind in ("read", "write", "trim", "flush")},
        "fidelity": fidelity,
        "memory": {
            "limit_bytes": 1 << 30,
            "used_bytes": 0,
            "peak_bytes": 0,
            "waiting": 0,
            "waited": 0,
            "waited_ns": 0,
        },
        "gauges": {
            "outstanding": 3,
            "devices": [device(number) for number in range(devices)],
            "cache": {"bytes": 1 << 30, "dirty_bytes": 1 << 28, "hits": 500, "battery_ok": True},
            "groups": [group],
        },
    }


def a_second_later(before: Status) -> Status:
    """One in which 1,000 reads were answered, of which 990 took 1 to 2 ms, and a rebuild made way."""
    now = copy.deepcopy(before)
    now["model_ns"] += 1_000_000_000
    now["kinds"]["read"] = {
        "requests": 1000,
        "bytes": 4_096_000,
        "response_ns": 1_600_000_000,
        "failed": 2,
        "buckets": [0, 990, 0, 10],
    }
    now["faults"] = [
        {"number": 0, "at_ns": 0, "fault": {"what": "latency-spike"}, "met": 7, "failed": 0},
        {"number": 1, "at_ns": 0, "fault": {"what": "latency-spike"}, "met": 5, "failed": 0},
        {"number": 2, "at_ns": 0, "fault": {"what": "member-fails", "member": "d5"}, "met": 0, "failed": 0},
    ]
    gauges, earlier = now["gauges"], before["gauges"]
    assert gauges is not None
    assert gauges["cache"] is not None
    assert earlier is not None
    gauges["devices"][5]["state"] = "rebuilding"
    gauges["devices"][6]["state"] = "missing"
    gauges["groups"][0] |= {"state": "degraded", "rebuilt_bytes": 25 << 20, "of_bytes": 6025 << 20}
    earlier["groups"][0] |= {"rebuilt_bytes": 5 << 20, "of_bytes": 6025 << 20}
    gauges["cache"]["hits"] = 750
    assert list(differences(now, Status)) == []
    return now


def frame(devices: int, columns: int = 80, rows: int | None = 24) -> list[str]:
    """The lines on a terminal."""
    before = report(devices)
    return [line for line, _ in top.format_screen(before, a_second_later(before), columns, rows)]


def test_a_scrub_that_goes_on_is_told() -> None:
    gauges = report(8)["gauges"]
    assert gauges is not None
    [group] = gauges["groups"]
    running: Pass = {"kind": "check", "state": "running", "done_bytes": 25, "of_bytes": 100}
    done: Pass = {"kind": "check", "state": "done", "done_bytes": 25, "of_bytes": 100}
    told = [top.groups([group], [group | {"pass": scan}], 1.0) for scan in (running, done)]
    assert told == [[("group g0: healthy, check at 25.0 %", "")], [("group g0: healthy", "")]]


@pytest.mark.parametrize("rows", [24, 14, 10])
def test_what_matters_first_on_a_small_terminal_with_24_drives(rows: int) -> None:
    lines = frame(24, rows=rows)
    assert len(lines) <= rows
    assert all(len(line) <= 80 for line in lines), lines
    assert lines[0] == "model time 11.0 s   under way 3"
    assert lines[1] == "valid for latencies above 1.2 ms"
    assert lines[3].split() == ["read", "1,000/s", "4.1", "1.60", "ms", "1.51", "ms", "2.00", "ms", "7.60", "ms", "2"]
    assert lines[4].split() == ["write", "0/s", "0.0", "-", "-", "-", "-"]
    text = "\n".join(lines)
    assert "faults: latency-spike x2 (met by 12), member-fails of d5 (met by 0)" in text
    if rows >= 14:
        assert "group g0: degraded, 0.4 % rebuilt, 5 min left" in text
        assert "cache 1.0 GiB: 25 % dirty, 250 hits (750 in all)" in text or "250 hits (750 in all)" in text
        assert "24 devices: 22 idle, 1 rebuilding, 1 missing; 276 commands" in text or "d5: rebuilding" in text


def test_members_are_folded_only_where_there_is_no_room() -> None:
    small = frame(24)
    assert "d5: rebuilding, queue 5" in small
    assert "d6: missing, queue 6" in small
    named = [
        name
        for name in (f"d{number}" for number in range(24))
        if any(f"{name} idle" in line.replace("  ", " ") for line in small)
    ]
    assert len(named) == 22, small
    large = frame(24, rows=60)
    assert sum("|" in line for line in large) == 24
    assert sum("|" in line for line in frame(24, rows=None)) == 24


def test_a_verdict_that_is_none_is_said_in_full_and_in_another_colour() -> None:
    now = report(1)
    why = "not valid: the server was on time (p99 12 us), but the client (fio, process 42) waited 94 % of the time"
    now["fidelity"] |= {"verdict": why, "valid_above_ns": None}
    (line, style), _ = top.format_screen(now, now, 200, None)[1], None
    assert (line, style) == (why, "warning")
    (line, _), _ = top.format_screen(now, now, 80, 24)[1], None
    assert line == why[:77] + "..."
    now["power"] = False
    assert "POWER IS OFF" in top.format_screen(now, now, 80, 24)[0][0]


def test_quantiles_are_those_of_the_interval() -> None:
    counts = top.subtract_counts([5, 5], [5, 5, 100])
    assert counts == [0, 0, 100]
    assert top.quantile_ns(counts, BOUNDS_NS, 0.5) == 3_000_000
    assert top.quantile_ns([0, 0, 0, 0, 0, 3], BOUNDS_NS, 0.99) is None
    assert top.format_milliseconds(None) == "> 100 s"
    assert [top.format_duration(s) for s in (59.6, 600, 7260)] == ["60 s", "10 min", "2 h 01 min"]


def test_colours_only_where_they_are_asked_for() -> None:
    assert top.with_style("x", "bad") == "\x1b[1;31mx\x1b[0m"
    assert top.with_style("x", "") == top.without_style("x", "bad") == "x"
