"""The first line of every answer: one sentence with its number, before any table, and three notes at most."""

from __future__ import annotations

from pathlib import Path

import pytest

import headstack as hs
from conftest import CHEETAH, REPOSITORY, Headstack
from headstack.cli.answers import answer_of_exploration, answer_of_trace
from headstack.crash.findings import Coverage, Exploration
from headstack.results.notes import actionable_first, is_standing

INSPECTED = REPOSITORY / "tests/python/samples/inspect"


def first_line_of(shown: str) -> str:
    """Returns the first line, after checking that an empty line and at most three notes follow."""
    first, empty, *lines = shown.splitlines()
    assert empty == ""
    assert sum(line.startswith("note: ") for line in lines) <= 3
    return first


def test_a_trace_has_rate_mix_and_latency(headstack: Headstack, tmp_path: Path) -> None:
    hs.run(CHEETAH, "file-server", depth=4, requests=300, warm_up=0, record=tmp_path / "t.parquet")
    first = first_line_of(headstack("trace", "analyze", "t.parquet").stdout)
    assert " requests in " in first
    for words in (" IOPS on average", " % reads, mean size ", "median latency ", " (p99 "):
        assert words in first
    report = hs.Trace(tmp_path / "t.parquet", steps=["kind=trim"]).analyze().report
    assert answer_of_trace(report) == "not enough data for a verdict: the trace has no requests"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["disk.smartctl.json"], "no sign of failure after 43,289 power-on hours"),
        (["failing"], "replace: WDC WD2003FYYS-02W0B0 WD-WMAY0SAMPLE9: the drive's health self-assessment: FAILED"),
        (["failing", "disk.smartctl.json"], "replace 1 of 2 devices: WDC WD2003FYYS"),
        (["memo"], ""),
    ],
)
def test_inspected_devices_have_a_verdict(names: list[str], words: str, headstack: Headstack) -> None:
    done = headstack("inspect", *(INSPECTED / name for name in names))
    assert done.returncode == 0, done.stderr
    assert words in first_line_of(done.stdout)


def exploration(violations: int, states: int, subsets: int, possible: float) -> Exploration:
    coverage = Coverage(states, 0, subsets, possible, windows=9, whole_windows=3, largest_window=5)
    return Exploration([], coverage, violations)


def test_an_exploration_states_failures_and_coverage() -> None:
    assert answer_of_exploration(exploration(0, 320, 320, 1024.0)) == (
        "no failure in 320 crash states; 31 % of the subsets of this recording were checked"
    )
    assert answer_of_exploration(exploration(1, 20, 20, 20.0)) == (
        "1 of 20 crash states fails the check; all of the subsets of this recording were checked"
    )
    assert answer_of_exploration(exploration(3, 20, 20, 1e9)).endswith(
        "3 of 20 crash states fail the check; less than 0.1 % of the subsets of this recording were checked"
    )
    assert answer_of_exploration(exploration(0, 0, 0, 0.0)).startswith("not enough data for a verdict: ")


def test_notes_that_call_for_action_come_first() -> None:
    standing = [
        "warm-up, excluded: 14 requests in 0.10 s",
        "4 threads: the queue depth is the sum over threads, without a distribution",
        "the trees, 120 files, were prepared in 0.31 s",
        "/tmp/mail: removed 120 files, 7 directories",
        "/tmp/data: verified 1.5 MB of written data in 0.02 s",
    ]
    failed = "3 requests failed; the first: input/output error"
    assert actionable_first([*standing, failed]) == [failed, *standing]
    assert not is_standing("warm-up: ended after 60.00 s with 3 of 200 requests, which are excluded; set a time")
    warnings = hs.measure("null:1ms", size="4KiB", depth=[1, 2, 3], requests=40, warm_up=10).warnings
    assert sum(map(is_standing, warnings)) >= 3
    assert warnings == actionable_first(warnings)
