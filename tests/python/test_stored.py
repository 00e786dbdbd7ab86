"""Everything that is stored says its version; older versions are read, and unknown ones refused in plain words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import headstack as hs
from headstack.diagnosis.inspection import stored
from headstack.diagnosis.inspection.fields import Fields
from headstack.io.stored import Stored
from headstack.measurement.tests.classic import outcome
from headstack.measurement.tests.conditioning import log
from headstack.measurement.tests.pts.outcomes import Settings
from headstack.measurement.tests.pts.testing import Report
from headstack.prediction import characterization
from headstack.prediction.characterization import Characterization
from headstack.results.results import Results
from headstack.studies import outcome as study
from headstack.traces.analysis import Analysis
from headstack.traces.report_types import TraceReport
from headstack.traces.trace_types import Meta
from test_conditioning import made_log

FIXTURES = Path(__file__).parents[2] / "crates" / "result" / "tests" / "fixtures"


def test_results_of_every_version_are_read() -> None:
    files = sorted(FIXTURES.glob("schema-*.json"))
    assert len(files) == 7
    for file in files:
        (row,) = Results.read(file)
        assert (row["system"], row["seed"], row["requests"]) == ("cheetah-x15-36lp", 7, 100)
        assert row["mean_ms"] > 0
        assert (row["sampling"] is None) == (row["half_width_ms"] is not None)


def inspections(path: Path) -> object:
    return stored.read(Fields.parse(str(path), path.read_text()))


CHARACTERIZATION = characterization.STORED.head | {
    "system": "a", "description_hash": "b", "version": "0.2.0", "how": "simulated", "capacity_bytes": 1,
    "held_bytes": 1, "tables": {}, "errors": {}, "residuals": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "read"),
    [
        ("a characterization", CHARACTERIZATION, Characterization.load),
        ("an analysis", json.loads(Analysis("t", cast(Meta, {}), cast(TraceReport, {})).to_json()), Analysis.load),
        ("an inspection", stored.document([]), inspections),
    ],
)
def test_an_unknown_version_is_refused(
    kind: str, text: dict[str, Any], read: Callable[[Path], object], tmp_path: Path
) -> None:
    file = tmp_path / "stored.json"
    key = "schema" if "schema" in text else stored.MARK
    known = text[key]
    file.write_text(json.dumps(text))
    read(file)
    for version in (0, known + 1, "1", None):
        file.write_text(json.dumps(text | {key: version}))
        with pytest.raises(hs.InputError) as refused:
            read(file)
        reads = "1" if known == 1 else f"1 to {known}"
        assert str(refused.value) == f"{file}: unknown schema {version} of {kind}; this build reads {reads}"


def test_a_characterization_without_percentiles_is_to_be_made_again(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps(CHARACTERIZATION | {"schema": 1}))
    with pytest.raises(hs.InputError, match=r"^a: has no percentiles; run headstack lab characterize again$"):
        Characterization.load(tmp_path / "old.json")


def test_a_log_of_an_unknown_version_is_refused(tmp_path: Path) -> None:
    path = made_log(tmp_path / "log", [(100.0, 0)])
    assert log.read_log(str(path)).module["schema"] == 1
    path.write_text(path.read_text().replace('"schema":1', '"schema":2').replace('"schema": 1', '"schema": 2'))
    with pytest.raises(hs.InputError, match=r"log: unknown schema 2 of a conditioning log; this build reads 1$"):
        log.read_log(str(path))


def test_an_analysis_that_says_no_version_is_of_the_first(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    file.write_text(json.dumps({"trace": "t", "version": "0.1.0", "meta": {"a": 1}, "report": {"b": 2}}))
    found = Analysis.load(file)
    assert (found.name, dict(found.meta), dict(found.report)["b"]) == ("t", {"a": 1}, 2)
    # What it did not know is empty.
    assert (found.report["timeline"]["bins"], found.report["latency"], found.report["phases"]) == ([], None, None)
    file.write_text(json.dumps(CHARACTERIZATION))
    with pytest.raises(hs.InputError, match=r"old\.json: is a headstack characterization, not a headstack analysis"):
        Analysis.load(file)


def test_reports_say_what_they_are() -> None:
    report = json.loads(Report("null:1us", {}, Settings(), 1).to_json())
    assert (report["format"], report["schema"]) == ("headstack test report", 1)
    assert outcome.STORED.head == {"format": "headstack test", "schema": 1}
    assert study.STORED.version == 1


def test_steps_are_chained() -> None:
    steps = (lambda told: told | {"b": told["a"] + 1}, lambda told: told | {"c": told["b"] + 1})
    form = Stored("form", steps)
    assert form.upgraded("f", {"schema": 1, "a": 1}) == {"schema": 3, "a": 1, "b": 2, "c": 3}
    assert form.upgraded("f", {"schema": 2, "b": 5}) == {"schema": 3, "b": 5, "c": 6}
    assert form.upgraded("f", {"schema": 3}) == {"schema": 3}
