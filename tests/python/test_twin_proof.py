"""What is made of hidden devices that were calibrated: scores, intervals, and a report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="twins need numpy")

from headstack.cli.main import main
from headstack.report.figures import Lines, Table
from headstack.results.intervals import calibration
from headstack.results.intervals.calibration import Learnt, Load
from headstack.twin import proof
from headstack.twin.hidden import Cell
from headstack.twin.proof import Proof
from headstack.twin.report import report_of


def proofs(family: str, count: int, seed: int, first: int = 0) -> Iterator[Proof]:
    """Device N is off by N % in all that is asked of it; the last does not fit."""
    for number in range(first, first + count):
        cells: list[Cell] = [
            {
                "workload": name,
                "kind": "read",
                "depth": depth,
                "size_bytes": 4096,
                "figure": figure,
                "log_ratio": 0.01 * number,
                "spread": 0.0,
            }
            for name, depth in (("reads alone", 1), ("reads", 16))
            for figure in calibration.FIGURES
        ]
        fits = number < count - 1
        why = "" if fits else "no rotation"
        yield Proof(f"{family}-{seed}-{number}", fits, why, cells if fits else [], 100.0, 9000, 5.0)


def tables(found: list[Proof]) -> dict[str, list[tuple[object, ...]]]:
    (section,) = report_of({"disk": found}).sections
    return {one.name: [tuple(row) for row in one.rows] for one in section.figures if isinstance(one, Table)}


def test_a_report_tells_of_every_device() -> None:
    found = list(proofs("disk", 13, 5))
    told = tables(found)
    # Logarithms of 0 to 11 %, of which nine in ten cells are within 10.
    assert told["disk-figures"][0][:4] == ("IOPS", 5.7, 10.5, 11.6)
    # Eleven others each: what holds for nine of ten is the worst of them, so that the worst of all is outside.
    assert told["disk-figures"][0][4] == round(100 * 11 / 12)
    assert [row[0] for row in told["disk-workloads"]] == ["reads alone", "reads"]
    assert [row[0] for row in told["disk-devices"]] == [f"5-{number}" for number in range(13)]
    assert told["disk-devices"][-1][-1] == "no rotation"
    assert told["disk-devices"][11][3] == 0
    (section,) = report_of({"disk": found}).sections
    drawn = section.figures[0]
    assert isinstance(drawn, Lines)
    assert all(list(one.y)[-1] == 100 for one in drawn.series)


def test_nothing_is_told_of_devices_of_which_none_fits() -> None:
    told = tables(list(proofs("disk", 1, 5)))
    assert list(told) == ["disk-devices"]


def test_validate_writes_what_intervals_are_learnt_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proof, "proofs", proofs)
    scores, text = tmp_path / "scores.json", tmp_path / "all.json"
    asked = ["measure", "twin", "validate", "--devices", "13", "-q", "--calibration", str(scores), "--json", str(text)]
    with pytest.raises(SystemExit) as ended:
        main(asked)
    assert ended.value.code == 0
    assert "13 hidden devices, 12 fit" in capsys.readouterr().out
    assert len(json.loads(text.read_text())) == 13
    learnt = calibration.read(scores)["disk"].learnt(Load("read", 16, 4096), "rate")
    assert isinstance(learnt, Learnt)
    assert learnt.devices == 12
    # Eleven of twelve are nine in ten: 11 %, in parts of the floor.
    assert learnt.score == pytest.approx(0.11 / calibration.FLOOR)
