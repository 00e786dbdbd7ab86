"""The first line of every answer: one sentence with its number, before any table, and three notes at most."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

import headstack as hs
from conftest import CHEETAH, REPOSITORY, Headstack
from headstack.cli.answers import answer_of_exploration, answer_of_trace
from headstack.crash.findings import Coverage, Exploration
from headstack.results.reasons import TooShort

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


def test_notes_that_require_action_come_first(tmp_path: Path) -> None:
    measured = hs.measure("null:1ms", size="4KiB", depth=[1, 2, 3], requests=40, warm_up=10)
    method = measured.whole(0)["method_notes"]
    assert [note.partition(":")[0] for note in method] == [
        "requests were answered by the null engine, which stores nothing",
        "warm-up, excluded",
    ]
    # A note is placed by its list, whatever its words are.
    document = json.loads(measured.to_json())
    for number, run in enumerate(document):
        run["notes"], run["method_notes"] = [f"warm-up, excluded: {number}"], ["reworded"]
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(document))
    warnings = hs.Results.read(path).warnings
    assert warnings[:3] == [f"warm-up, excluded: {number}" for number in range(3)]
    assert warnings[-1] == "reworded"


def test_codes_of_reasons_are_those_of_the_published_schema() -> None:
    schema = json.loads((REPOSITORY / "docs" / "results.schema.json").read_text())
    assert [one["const"] for one in schema["$defs"]["TooShort"]["oneOf"]] == list(get_args(TooShort))
