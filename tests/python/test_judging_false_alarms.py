"""`judge` states how many healthy disks it is expected to call slow, as a number."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.diagnosis.judging.false_alarms import FalseAlarms
from headstack.diagnosis.judging.verdict import FINE, SLOW, UNDECIDED, Predicted, Verdict
from test_judge_command import fleet


def verdict(kind: str, method: str | None = "peers", confidence: float | None = None, **more: object) -> Verdict:
    return Verdict("h", "d", kind, "", "", method=method, confidence=confidence, **more)  # type: ignore[arg-type]


def test_the_numbers_by_hand() -> None:
    once = Predicted("x", "reads", 0.1, 10.0, 1.0, 0.01)
    verdicts = [
        *[verdict(FINE)] * 1197,
        verdict(SLOW, confidence=0.9),
        verdict(SLOW, "own past", 0.95),
        verdict(FINE, "twin"),
        # Compared once, or not at all.
        verdict(SLOW, "twin", 0.8, predicted=once),
        verdict(UNDECIDED, None),
        verdict(SLOW, None, 0.75),
        verdict(SLOW, None),
    ]
    alarms = FalseAlarms.of(verdicts, 0.01)
    assert alarms.watched == 1200
    assert alarms.a_month == pytest.approx(1.0)
    assert alarms.in_this_run == pytest.approx(0.1 + 0.05 + 0.2 + 0.25)
    assert alarms.sentence() == (
        "expect 1 false alarm a month among 1,200 disks, and 0.6 among the 4 disks called slow in this run; unknown "
        "for 1 more, which was never in order"
    )


def test_a_run_without_comparisons_states_nothing() -> None:
    assert FalseAlarms.of([verdict(UNDECIDED, None)], 0.001).sentence() is None
    assert FalseAlarms.of([verdict(FINE)], 0.001).sentence() is None
    alone = FalseAlarms.of([verdict(SLOW, None, 0.8)], 0.001).sentence()
    assert alone == "expect 0.2 false alarms among the 1 disk called slow in this run"


def test_the_command_states_them(headstack: Headstack, tmp_path: Path) -> None:
    frame = fleet()
    frame.write_parquet(tmp_path / "fleet.parquet")
    done = headstack("judge", "fleet.parquet", "--json", "v.json", "--false-alarms", "0.012")
    watched = sum(one.method is not None for one in hs.judge(frame, false_alarms=0.012).verdicts)
    numbers = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))["false_alarms"]
    assert numbers["a_month"] == pytest.approx(0.001 * watched)
    assert 0.0 < numbers["in_this_run"] < 0.2
    assert watched > 1
    assert f"expect {numbers['a_month']:.2g} false alarms a month among {watched} disks, and " in done.stdout
