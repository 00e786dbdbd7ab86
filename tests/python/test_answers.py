"""What results say to those who choose: gains, limits, how few drives do, which curve carries most."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import ATLAS, Headstack
from headstack.results.answers import CLOSE, NO, YES, Drives, Gain, most_within, within
from headstack.results.report import runs_table

X15 = "cheetah-x15-36lp"
ARRAY = "demartek-512n-raid10-24"


def test_gains_are_over_the_first_system_at_the_same_load() -> None:
    results = hs.run([ATLAS, X15], "file-server", depth=[1, 16], requests=4000)
    first, second = results[:2], results[2:]
    gains = results.gains()
    assert gains[:2] == [None, None]
    for gain, ours, theirs in zip(gains[2:], second, first, strict=True):
        assert gain is not None
        assert gain.half_width is not None
        assert gain.times == pytest.approx(ours["iops"] / theirs["iops"])
        relative = math.hypot(*(row["half_width_ms"] / row["mean_ms"] for row in (ours, theirs)))
        assert gain.half_width == pytest.approx(gain.times * relative)
    note = next(note for note in results.notes if note.startswith("speedup: "))
    assert note.startswith(f"speedup: IOPS compared with {ATLAS} at the same load; ± is the 95 % confidence interval")
    table = runs_table(results)
    told = [row[table.columns.index("speedup")] for row in table.rows]
    assert told == [None, None, *map(str, gains[2:])]
    # Loads of one system are no systems.
    alone = hs.run(ATLAS, depth=[1, 4], requests=500)
    assert alone.gains() == [None, None]
    assert "speedup" not in [column.heading for column in alone.shown()[0]]


def test_gains_where_arrivals_set_the_rate_are_of_responses() -> None:
    results = hs.run([ATLAS, X15], rate=[60, 2000], requests=3000)
    light, saturated = results.gains()[2:]
    assert light is not None
    assert light.times == pytest.approx(results[0]["mean_ms"] / results[2]["mean_ms"])
    assert saturated is None
    assert results[3]["saturated"]
    assert any("speedup: latency compared with" in note for note in results.notes)


def test_options_of_drives_and_arrays_make_other_systems() -> None:
    results = hs.run("spinpoint-f1-1tb", depth=32, policy=["fcfs", "sptf"], requests=2000)
    (none, gain) = results.gains()
    assert none is None
    assert gain is not None
    assert gain.times > 1.2
    assert any("compared with policy fcfs at" in note for note in results.notes)
    halves = hs.run(ATLAS, "file-server", depth=4, range=["100%", "50%"], requests=2000)
    headings = [column.heading for column in halves.shown()[0]]
    assert ("range" in headings, "capacity" in headings) == (False, True)
    assert halves.gains()[1] is not None
    assert [round(row["capacity_gb"], 1) for row in halves] == [73.6, 36.8]


def test_how_gains_are_written() -> None:
    assert str(Gain(1.3, 0.02)) == "1.30 ± 0.02"
    assert str(Gain(0.363, 0.0012)) == "0.363 ± 0.001"
    assert str(Gain(2, None)) == "2.00"


@pytest.mark.parametrize(("limit_ms", "verdict"), [(4.0, NO), (4.8, CLOSE), (5.0, CLOSE), (5.1, YES), (9.0, YES)])
def test_a_limit_within_the_sampling_error_is_close(limit_ms: float, verdict: str) -> None:
    row = {"saturated": False, "mean_low_ms": 4.7, "mean_high_ms": 5.1, "p99_low_ms": None, "p99_high_ms": None}
    assert within(row, None, 4.9, limit_ms) == verdict
    assert within(row | {"saturated": True}, None, 4.9, limit_ms) == NO
    # Nothing is known of how far a percentile is off: it is taken as it is.
    assert within(row, 0.99, 4.9, limit_ms) == (YES if limit_ms >= 4.9 else NO)
    assert within(row, 0.973, 4.9, limit_ms) == (YES if limit_ms >= 4.9 else NO)


def test_the_fewest_drives_are_those_that_all_larger_numbers_confirm() -> None:
    def found(*verdicts: str) -> int | None:
        return Drives("a", "", (4, 8, 12), (9.0, 5.0, 4.0), verdicts).fewest

    assert found(NO, YES, YES) == 8
    assert found(YES, NO, YES) == 12
    assert found(NO, CLOSE, YES) == 12
    assert found(NO, NO, NO) is None
    assert found(YES, YES, YES) == 4
    told = Drives("a", "at depth 4", (4, 8, 12), (9.0, 5.0, 4.0), (NO, CLOSE, YES)).format_answer("p99=5ms")
    assert told.startswith(
        "a: at least 12 drives are needed to meet p99 within 5ms at depth 4: 4.00 ms (tried: 4, 8, 12;"
    )
    assert told.endswith("; undecided: 8)")
    none = Drives("a", "", (4, 8), (9.0, 7.0), (NO, NO)).format_answer("5ms")
    assert none == "a: no number of drives meets the limit, the mean within 5ms; 8 drives: 7.00 ms (tried: 4, 8)"


def test_how_many_drives_for_a_rate_and_a_limit(headstack: Headstack) -> None:
    options: dict[str, Any] = {
        "drives": ["48", "12"],
        "level": ["raid10", "raid6"],
        "size": "8KiB",
        "rate": "2000/s",
        "time": "4s",
    }
    results = hs.run(ARRAY, **options)
    answers = {one.system: one for one in results.fewest_drives("8ms")}
    assert [one.tried for one in answers.values()] == [(12, 48)] * 2
    assert answers[f"{ARRAY}, level raid10"].load == "at 2,000 IOPS"
    for one in answers.values():
        by_hand = {int(row["drives"]): row for row in results if one.system.endswith(row["level"])}
        assert one.values_ms == tuple(by_hand[n]["mean_ms"] for n in one.tried)
        fits = [n for n in one.tried if by_hand[n]["mean_high_ms"] and by_hand[n]["mean_high_ms"] <= 8]
        assert one.fewest == min(fits)
    assert results.within("100s") == [YES] * 4
    assert results.within("p99=1us") == [NO] * 4
    shown = headstack(
        "run", ARRAY, "--drives", "12..48:2", "--size", "8KiB", "--rate", "2000/s", "--time", "4s", "--limit", "p99=1ms"
    ).stdout
    assert f"{ARRAY}: no number of drives meets the limit, p99 within 1ms at 2,000 IOPS; 48 drives:" in shown
    assert "saturated" not in shown
    assert hs.run(ARRAY, level=["raid6", "raid10"], usable="9TB", requests=200).fewest_drives("5ms") == []


def test_runs_that_cannot_keep_up_are_named(headstack: Headstack) -> None:
    shown = headstack("run", ATLAS, X15, "--rate", "60/s,2000/s", "--requests", "1000").stdout
    named = [line for line in shown.splitlines() if line.startswith("saturated: ")]
    assert named[0].startswith("saturated: 2 of 4 runs; their latency grows")
    assert [line.partition(":")[2].split()[0] for line in named[1:]] == [ATLAS, X15]
    assert " at 2,000 IOPS: it serves " in named[1]
    cached = hs.run(ATLAS, write_cache=["on", "off"], rate=2000, requests=500, range="50%").overloaded()
    assert cached[1].startswith(f"{ATLAS}@50%, write cache off at 2,000 IOPS: it serves ")
    shown = headstack("run", ATLAS, "--rate", "600,700,800,900,1000,1200,1400,1600,2000", "--requests", "500").stdout
    assert shown.count("saturated: ") == 1


def test_which_curve_carries_most_within_a_limit(headstack: Headstack) -> None:
    assert most_within({"a": (200.0, False), "b": (250.0, False)}, "20ms") == (
        "b serves most IOPS with the mean within 20ms: 250, 1.25 times as many as a, the next best"
    )
    assert most_within({"a": (200.0, True), "b": None}, "p99=20ms") == (
        "a serves most IOPS with p99 within 20ms: at least 200; no other system meets the limit"
    )
    told = most_within({"a": (200.0, True), "b": (300.0, False)}, "1s")
    assert told == "b serves most IOPS with the mean within 1s: 300; a: at least 200"
    assert most_within({"a": None, "b": None}, "1ms") == "no system meets the limit, the mean within 1ms"
    shown = headstack("curve", ATLAS, X15, "--depth", "1,8,64", "--requests", "2000", "--limit", "20ms").stdout
    results = hs.curve([ATLAS, X15], depth=[1, 8, 64], requests=2000)
    assert f"\n{results.most_within('20ms')}\n" in shown
    assert results.most_within("20ms").startswith(f"{X15} serves most IOPS")
    assert "serves most" not in headstack("curve", ATLAS, "--requests", "200", "--limit", "20ms").stdout


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("5", "--limit: "),
        ("fast", "--limit: "),
        ("p0=5ms", "is not a limit"),
        ("q99=5ms", "is not a limit"),
        ("", "--limit: "),
    ],
)
def test_limits_that_are_none(headstack: Headstack, limit: str, words: str) -> None:
    shown = headstack("run", ATLAS, "--limit", limit)
    assert shown.returncode == 2
    assert words in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_levels_and_capacities_wherever_systems_are_named(headstack: Headstack, tmp_path: Path) -> None:
    changes = ("--level", "raid5,raid10", "--usable", "9TB", "-q")
    recorded = headstack("run", ATLAS, "--requests", "300", "--record", "t.parquet", "-q")
    assert recorded.returncode == 0, recorded.stderr
    replayed = headstack("trace", "replay", "t.parquet", ARRAY, *changes)
    assert replayed.returncode == 0, replayed.stderr
    (tmp_path / "job.fio").write_text("[a]\nrw=randread\nsize=1g\nnumber_ios=200\n")
    simulated = headstack("run", ARRAY, "--fio", "job.fio", "--level", "raid5", "--usable", "9TB", "-q", "--csv", "-")
    assert simulated.returncode == 0, simulated.stderr
    rows = [line.split() for line in replayed.stdout.splitlines() if line.startswith(ARRAY)]
    assert [row[1:3] for row in rows[:2]] == [["raid5", "11"], ["raid10", "20"]]
    assert simulated.stdout.splitlines()[1].split(",")[-1] == "11"


def test_the_answer_comes_first_and_at_most_three_notes_follow(headstack: Headstack) -> None:
    systems = ("exos-m-30tb", "zfs-raidz2-8-nas")
    arguments = ("run", *systems, "-w", "file-server", "--depth", "1,128", "--requests", "2000", "-q")
    shown = headstack(*arguments).stdout
    assert " is fastest: " in shown.split("\n")[0]
    assert shown.count("\nnote: ") == 3
    assert "more note" in shown
    whole = headstack(*arguments, "--verbose").stdout
    assert whole.count("\nnote: ") > 3
    assert "95 % confidence interval" in whole
