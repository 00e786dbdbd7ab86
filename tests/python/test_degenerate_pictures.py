"""Pictures, reports and files of measurements are made of whatever these hold: no series, one value, the same value,
zeros, and values that are not finite."""

from __future__ import annotations

import io
import itertools
import json
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from matplotlib.text import Text

from headstack import InputError
from headstack.catalogue.system import load_system
from headstack.cli.measure.conditioning import print_conditioning
from headstack.cli.measure.pts import print_report
from headstack.comparison.comparison import Comparison
from headstack.comparison.members import Member, find_outliers
from headstack.comparison.pairs import Point
from headstack.comparison.picture import overlaid
from headstack.comparison.points import FIGURES, SidePoint
from headstack.measurement.tests.conditioning.picture import overview as conditioning_picture
from headstack.measurement.tests.conditioning.session import Conditioning
from headstack.measurement.tests.pts.outcomes import FIGURES as MEASURED
from headstack.measurement.tests.pts.outcomes import Outcome, Settings
from headstack.measurement.tests.pts.picture import overview as pts_picture
from headstack.measurement.tests.pts.plans import PLANS, Row
from headstack.measurement.tests.pts.testing import Report as PtsReport
from headstack.report.figures import Report
from headstack.report.html import _decide_looks, _page_data
from headstack.report.markdown import to_markdown
from headstack.report.pages import as_json
from headstack.report.plain import body_of
from headstack.traces.synthesis import Synthesis
from headstack.traces.synthesis_picture import overview as synthesis_picture
from headstack.traces.synthesis_types import Made, Misses, Replayed, Scorecard
from headstack.traces.volume_maps import WAYS, Lun, extents
from headstack.twin.device import Answers, Requests
from headstack.twin.hidden import Cell
from headstack.twin.learning import Calibration
from headstack.twin.learnt import Learnt, Residual
from headstack.twin.pictures import of_disk
from headstack.twin.probes import queue, rotation, seeks, tracks, zones
from headstack.twin.proof import Proof
from headstack.twin.report import report_of as report_of_proofs
from headstack.twin.session import ProbeRun, Session
from test_conditioning import made_log
from test_degenerate_figures import VALUES

INF, NAN = math.inf, math.nan
OTHERS = ("empty", "from zero", "zeros", "infinite", "nan", "unknown")
"""What the other side of two holds."""


def drawn(figure: Any) -> str:
    """Draws a figure; the words in it."""
    with warnings.catch_warnings():
        # matplotlib warns of ends that no number is beyond.
        warnings.simplefilter("ignore")
        figure.savefig(io.BytesIO(), dpi=20)
    return "\n".join(text.get_text() for text in figure.findobj(Text))


def strict(text: str) -> Any:
    """What a JSON text holds, which has no infinity and no NaN."""

    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def write_all_forms(report: Report) -> None:
    """Makes the page with and without its script, and the ticket."""
    decided = _decide_looks(report)
    for is_inline in (True, False):
        body_of(decided, is_inline)
        as_json(_page_data(decided, is_inline))
    to_markdown(report)


# Tests of the specification.


def outcomes(values: list[float | None], rounds: int) -> list[Outcome]:
    """Each test of the specification with so many rounds of these values."""
    found = []
    for plan in (plan for plans in PLANS.values() for plan in plans):
        column = itertools.cycle(values)
        each: list[list[Row]] = [[dict.fromkeys(MEASURED, next(column)) for _ in plan.points] for _ in range(rounds)]
        found.append(Outcome(plan, each, written_bytes=0))
    return found


@pytest.mark.parametrize("name", VALUES)
def test_pts_runs_of_any_values_are_drawn_and_written(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    values = VALUES[name]
    for rounds in (0, 1, 5, 30) if values else (0,):
        report = PtsReport("disk", {}, Settings(), 1 << 30, outcomes(values, rounds))
        if rounds == 5:
            # The matrix of the test of IOPS is that of latency, of more cells.
            drawn(pts_picture(replace(report, outcomes=[report.outcomes[number] for number in (1, 3, 4)])))
        strict(report.to_json())
        report.to_csv()
        print_report(report)
        assert "inf" not in capsys.readouterr().out
    assert "nothing was measured" in drawn(pts_picture(PtsReport("disk", {}, Settings(), 1 << 30)))


def test_a_window_without_requests_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    report = PtsReport("disk", {}, Settings(), 1 << 30, outcomes([0.0], 5))
    (window, *_) = (test["window"] for test in strict(report.to_json())["tests"])
    assert (window["mean"], window["range_share"], window["slope_share"]) == (0, None, None)
    print_report(report)
    assert "no request completed" in capsys.readouterr().out


# Conditioning.


def conditioning(folder: Path, **changed: Any) -> Conditioning:
    """A module of two devices whose stretches all have these figures."""
    found = Conditioning.read(made_log(folder / "c.log", [(100.0, 0), (200.0, 1)], count=2))
    lines: list[Any] = found.lines
    for line in lines:
        if line["record"] == "stretch":
            line.update({name: value for name, value in changed.items() if name in line})
            for device in line["devices"]:
                device.update({name: value for name, value in changed.items() if name in device})
    return found


CHANGED: list[dict[str, Any]] = [
    {},
    {"bytes": 0, "blocks": 0, "sum_ns": 0, "max_ns": 0, "busy_ns": 0, "held_ns": 0, "responses": []},
    {"blocks": 0, "errors": 0, "classes": [0] * 8, "responses": []},
    {"blocks": 7, "errors": 7, "classes": [0] * 8, "responses": []},
    {"duration_ns": 1},
    {"duration_ns": 10**30, "max_ns": 10**30},
]


def test_conditionings_of_any_figures_are_drawn_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for changed in CHANGED:
        whole = conditioning(tmp_path, **changed)
        for count in range(len(whole.lines) + 1):
            found = Conditioning(whole.module, whole.lines[:count], (0.0, 1e6, None)[count % 3])
            if count in (0, len(whole.lines)):
                drawn(conditioning_picture(found))
            strict(found.to_json())
            found.to_csv()
            print_conditioning(found)
            assert "nan" not in capsys.readouterr().out


IMPOSSIBLE = [
    *itertools.product(["duration_ns", "busy_ns", "held_ns", "sum_ns", "max_ns", "blocks", "bytes"], [INF, NAN]),
    *(("classes", [NAN] * 8), ("responses", [[NAN, 1]]), ("responses", [[1, INF]]), ("duration_ns", 0)),
]
IMPOSSIBLE_MODULES = [
    *(("class_limits_ns", []), ("class_limits_ns", [NAN]), ("module_bytes", INF), ("module_bytes", NAN)),
    *(("block_bytes", NAN), ("interval_ns", INF)),
]


def test_a_log_of_figures_that_nothing_measures_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "bad.log"
    for name, value in IMPOSSIBLE:
        found = conditioning(tmp_path, **{name: value})
        log.write_text("".join(json.dumps(record) + "\n" for record in (found.module, *found.lines)))
        with pytest.raises(InputError, match="line 2: not a line of a conditioning log"):
            Conditioning.read(log)
    for name, value in IMPOSSIBLE_MODULES:
        log.write_text(json.dumps({**conditioning(tmp_path).module, name: value}) + "\n")
        with pytest.raises(InputError, match="line 1: not a line of a conditioning log"):
            Conditioning.read(log)


# Comparison.


def side(values: dict[str, float | None], kind: str, model: bool = False) -> SidePoint:
    ends = {name: (value, value) for name, value in values.items() if value is not None and model}
    half_width = values["mean_ms"]
    return SidePoint("s", None, "w", None, "depth 1", 1, 0, values, half_width, False, [], {}, kind, model=ends)


def compared(measured: list[float | None], predicted: list[float | None]) -> Comparison:
    points = tuple(
        Point(
            f"depth {number}",
            side(dict.fromkeys(FIGURES, ours), "measured"),
            side(dict.fromkeys(FIGURES, theirs), "simulated", model=bool(number % 2)),
            theirs,
            0.05,
            (),
        )
        for number, (ours, theirs) in enumerate(itertools.product(measured, predicted))
    )
    return Comparison("a", "b", points, (), (), 0.05)


@pytest.mark.parametrize("name", VALUES)
def test_comparisons_of_any_values_are_drawn_and_written(name: str) -> None:
    for other in OTHERS:
        found = compared(VALUES[name], VALUES[other])
        if other == "from zero":
            drawn(overlaid(found))
        write_all_forms(found.report())
        strict(found.to_json())
        found.to_csv()
        repr(found)
        found.shares_below(0.5)
        found.model_errors()
        assert found.shortfalls() == [] or found.points


def test_a_comparison_of_nothing_says_so() -> None:
    for empty in (compared([], []), compared([None], [None])):
        assert empty.report().summary == "The sides have no figure in common."
    assert "nothing to compare" in drawn(overlaid(compared([], [])))


def test_members_of_any_figures_are_judged() -> None:
    for values, requests, busy in itertools.product(VALUES.values(), (0, 1000), (True, False)):
        members = [
            Member(f"sd{number}", requests, (value or 0.0) if busy else 0.0, value)
            for number, value in enumerate(values)
        ]
        for outlier in find_outliers(members):
            assert outlier.in_words


# Twins of traces.


def synthesis(trace: list[float | None], twin: list[float | None], *, sizes: bool = True) -> Synthesis:
    count = min(len(trace), len(twin))
    known = [(one or 0.0, other or 0.0) for one, other in zip(trace, twin, strict=False)]
    misses: Misses = {
        "cache_bytes": [4096 << number for number in range(count)] if sizes else [],
        "trace": [one for one, _ in known],
        "twin": [other for _, other in known],
        "max_error": max((abs(one - other) for one, other in known), default=0.0),
        "mean_error": 0.0,
    }
    replays: list[Replayed] = [
        {
            "system": "s",
            "device": "d",
            "trace_mode": "timed",
            "trace_mean_ms": one,
            "trace_p99_ms": one,
            "twin_mode": "timed",
            "twin_mean_ms": other,
            "twin_p99_ms": other,
        }
        for one, other in [*zip(trace, twin, strict=False), (None, None), (0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
    ]
    card: Scorecard = {
        "requests_per_s": {"trace": trace[0] if trace else None, "twin": twin[0] if twin else None},
        "in_flight": None,
        "misses": misses,
        "dispersion": [
            {"bin_ns": 10**8 << number, "trace": one, "twin": other} for number, (one, other) in enumerate(known)
        ],
        "replays": replays,
    }
    made: Made = {
        "requests": 0,
        "duration_ns": 0,
        "clients": None,
        "learnt_requests": 0,
        "learnt_clients": None,
    }
    return Synthesis("t", made, {}, card, ())


@pytest.mark.parametrize("name", VALUES)
def test_twins_of_traces_of_any_values_are_drawn_and_written(name: str) -> None:
    for other in OTHERS:
        found = synthesis(VALUES[name], VALUES[other], sizes=other != "infinite")
        if other == "from zero":
            drawn(synthesis_picture(found))
        assert all("nan" not in line and "inf" not in line for line in found.lost)
        strict(found.to_json())
        write_all_forms(found.to_report())


def test_a_twin_without_figures_says_so() -> None:
    found = synthesis([], [])
    card: Scorecard = {
        "requests_per_s": {"trace": None, "twin": None},
        "in_flight": None,
        "misses": None,
        "dispersion": [],
        "replays": [],
    }
    none = replace(found, scorecard=card)
    assert "no cache reuse and no bursts to compare" in drawn(synthesis_picture(none))
    write_all_forms(none.to_report())
    strict(none.to_json())


# Maps of volumes.

LUNS = {
    "none": [],
    "one": [Lun("a", 0, 10 << 20)],
    "tiny": [Lun("a", 0, 1)],
    "empty and one": [Lun("a", 0, 0), Lun("b", 0, 64 << 20)],
    "three": [Lun("a", 0, 8 << 20), Lun("b", 8 << 20, 1 << 20), Lun("c", 9 << 20, 1 << 40)],
}
ENDS: dict[str, dict[str, int]] = {
    "empty": {},
    "zero": {"v": 0},
    "zeros": {"v": 0, "w": 0, "x": 0},
    "alike": {"v": 1 << 20, "w": 1 << 20, "x": 1 << 20},
    "huge": {"v": 1 << 63, "w": 1},
    "many": {f"v{number}": number for number in range(40)},
}


def test_volumes_lie_within_the_system_and_apart_or_are_refused() -> None:
    refused: list[str] = []
    for places, ends, way, fold in itertools.product(LUNS.values(), ENDS.values(), (*WAYS, "named"), (True, False)):
        named = ",".join(f"{name}=a" for name in ends) or "v=a"
        try:
            found = extents(named if way == "named" else way, ends, places, fold)
        except InputError as error:
            refused.append(str(error))
            continue
        spans = sorted((one["start_bytes"], one["length_bytes"]) for one in found)
        assert {one["volume"] for one in found} == set(ends)
        assert all(length > 0 for _, length in spans)
        assert all(start + length <= after for (start, length), (after, _) in itertools.pairwise(spans))
        assert not spans or sum(spans[-1]) <= places[-1].end
    assert refused
    assert all(words.startswith("map: ") for words in refused)


# Twins of devices.


def proof(values: list[float | None], fits: bool = True) -> Proof:
    cells: list[Cell] = [
        {
            "workload": "w",
            "kind": "read",
            "depth": 1,
            "size_bytes": 4096,
            "figure": figure,
            "log_ratio": value,
            "spread": 0,
        }
        for value in values
        if value is not None
        for figure in ("rate", "mean", "p50", "p99")
    ]
    return Proof("disk-1-0", fits, "" if fits else "no disk", cells, 0.0, 0, 0.0)


def test_proofs_of_any_errors_are_reported() -> None:
    # The logarithm of a ratio of response times is 40 at most.
    for known in VALUES.values():
        values = [None if one is None else min(one, 40.0) for one in known if one != INF] + [INF] * (INF in known)
        for found in ([], [proof(values)], [proof(values), proof([0.1])], [proof(values, fits=False)]):
            write_all_forms(report_of_proofs({"disk": found}))
    write_all_forms(report_of_proofs({}))


class Still:
    """A device that is asked nothing: its answers are made up."""

    name, capacity_bytes, block_bytes, may_write = "still", 1 << 40, 512, False

    def ask(self, requests: Requests, progress: object = None) -> Answers:
        raise AssertionError("a picture asks no device")

    def rest(self, seconds: float) -> None:
        raise AssertionError("a picture lets no device rest")


def calibration(response_ns: list[int], systems: int, residuals: dict[str, Residual]) -> Calibration:
    """What a disk was asked that answered in these times, over and over."""
    session = Session(Still())
    tests = (rotation.TEST, seeks.TEST, zones.TEST, tracks.TEST, *(queue.name(depth) for depth in queue.DEPTHS))
    for test in tests if response_ns else ():
        took = np.resize(np.array(response_ns, np.int64), 600)
        issued = np.concatenate([[0], np.cumsum(took)[:-1]])
        offsets = np.tile(np.arange(300, dtype=np.uint64), 2) * np.uint64(1 << 30)
        session.runs.append(ProbeRun(test, Requests.reads(offsets), Answers(issued, issued + took)))
    described = dict(load_system("cheetah-x15-36lp").system)
    return Calibration("disk", session, Learnt(described, {}, [described] * systems, residuals))


@pytest.mark.parametrize("response_ns", [[], [0], [5_000_000], [1, 10**15], [3_000_000, 9_000_000]])
def test_calibrations_of_any_answers_are_drawn(response_ns: list[int]) -> None:
    figures = (0.0, 1.0, -INF, INF, NAN, 700.0)
    many = {f"test {number}": Residual(value, value, value, 200) for number, value in enumerate(figures)}
    known = {rotation.TEST: Residual(0.0, 0.0, 0.0, 600), seeks.TEST: Residual(NAN, 0.0, INF, 600)}
    for systems, residuals in enumerate(({}, many, known, {"few": Residual(0.1, 0.1, 0.1, 1)})):
        drawn(of_disk(calibration(response_ns, systems, residuals)))
