"""`variable_curves`: questions for the explorer that reproduce the curves of a report.

Like a point of a sweep, a question names a run by a file and by values of fields and options. If the run states
its description, the question must describe the same system. The runs of a curve are identified by their figures: no
two runs agree to the last digit by chance.
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.options import CHANGES, IN_RESULTS, OPTIONS
from headstack.report.figures import Lines, Report, RunInputs, Series

if TYPE_CHECKING:
    from headstack.results.table import Row

LOADS = ("depth", "rate")
LENGTHS = {"requests", "time", "confidence"}
FIGURES = ("iops", "mb_per_s", "mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms")
"""Columns that match a point of a figure with its run."""
CURVES_MAX = 12
"""Maximum number of curves of one figure that have a button."""
NAMED_MAX = 3
"""Maximum number of curves that a sentence names; with more curves, the sentence has their number."""
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ELSEWHERE = "this page cannot repeat their runs"


@dataclass(frozen=True)
class Curve:
    """Runs that differ only in load, for the page: ``Taken`` in web/src/report.ts."""

    name: str
    system: str
    demand: str
    values: Mapping[str, str]
    load: str
    loads: Sequence[float]
    at: float
    """The load that the page shows first."""


@dataclass
class VariableCurves:
    """The curves of a report that readers can vary."""

    curves: dict[int, list[Curve]] = field(default_factory=dict)
    """Curves by the index of their figure in the report."""
    refused: dict[int, list[str]] = field(default_factory=dict)
    """Sentences with the reason why other curves cannot be varied, by the index of their figure."""
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Descriptions that are not in the catalogue, as ``Stated`` in web/src/engine.ts."""


def request_of(row: Row, whole: Row) -> RunInputs:
    """Returns the request that repeats a run of results."""
    figures = figures_of(row)
    why = _refused(whole)
    if why:
        return RunInputs(row["system"], "", {}, figures, refused=why)
    named = [option.name for option in OPTIONS if option.name in row and option.name not in (*IN_RESULTS, "interval")]
    workload = whole["workload"]
    values = {name: str(row[name]) for name in named} | ({"seed": str(row["seed"])} if row["seed"] != 1 else {})
    demand = workload["name"] if workload["name"] in _demands() else ""
    described = described_of({"system": whole["system"]["description"], "workload": workload})
    return RunInputs(row["system"], demand, values | load_of(workload, row["depth"]), figures, described)


def figures_of(row: Row) -> dict[str, float]:
    """Returns the figures that match a point with its run."""
    return {name: row[name] for name in FIGURES if row.get(name) is not None}


def load_of(demand: Row, clients: object) -> dict[str, str]:
    """Returns the load and the length of a workload, or of a scenario with this number of clients, as options."""
    arrivals, length = demand.get("arrivals"), demand["run_length"]
    if arrivals is None:
        load = {"depth": str(clients)}
    elif "closed" in arrivals:
        load = {"depth": str(arrivals["closed"]["queue_depth"])}
    else:
        load = {"rate": f"{arrivals['open']['rate_per_s']:.17g}"}
    # A run may also last until its streams end.
    stated_length = length if isinstance(length, dict) else {}
    return load | {name: str(value) for name, value in stated_length.items() if name in ("requests", "time")}


def _refused(whole: Row) -> str:
    """Returns the reason why a run cannot be repeated; empty if it can."""
    if whole["mode"] != "simulated":
        return "it was measured on a real device"
    if whole["fidelity"] is not None:
        return "it replays a trace, which the page does not contain"
    if whole["workload"].get("sync_every") or whole["workload"].get("dsync_every"):
        return "it has flushes or synchronous writes, which the page does not simulate"
    return ""


def variable_curves(report: Report) -> VariableCurves:
    """Finds the curves of a report that can be varied, and the reasons why others cannot."""
    result = VariableCurves()
    by_figure: dict[float, list[RunInputs]] = {}
    for request in report.inputs():
        for value in request.figures.values():
            by_figure.setdefault(value, []).append(request)
    questions: dict[int, _Question | str] = {}
    figures = [figure for section in report.sections for figure in section.figures]
    for place, figure in enumerate(figures):
        if not isinstance(figure, Lines) or figure.x_is_percentile:
            continue
        refused: dict[str, list[str]] = {}
        curves: dict[tuple[Any, ...], tuple[str, list[tuple[float, _Question]]]] = {}
        for series in figure.series:
            if series.published:
                continue
            runs: Sequence[tuple[str, RunInputs | None]] = _runs(series, by_figure) or [(series.name, None)]
            for name, run in runs:
                if run is not None and id(run) not in questions:
                    questions[id(run)] = _question(run, result.files)
                question = ELSEWHERE if run is None else questions[id(run)]
                if isinstance(question, str):
                    names = refused.setdefault(question, [])
                    names += [name] * (name not in names)
                else:
                    curves.setdefault((name, *question.key), (name, []))[1].append((question.at, question))
        counts = Counter(name for name, _ in curves.values())
        result.curves[place] = [
            _curve(name, some, counts[name] > 1) for name, some in list(curves.values())[:CURVES_MAX]
        ]
        result.refused[place] = [
            f"{', '.join(names) if len(names) <= NAMED_MAX else f'{len(names)} curves'} cannot be varied here: {why}."
            for why, names in refused.items()
        ]
    return result


def _runs(series: Series, by_figure: Mapping[float, Sequence[RunInputs]]) -> list[tuple[str, RunInputs]]:
    """Returns the name and run of each point of a series; empty if the series is a line and a point has no run.
    Otherwise, points without a run are skipped."""
    runs = []
    for place, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
        if x is None or y is None:
            continue
        request = _run(x, y, by_figure)
        if request is not None:
            runs.append((series.names[place] if series.marks and series.names else series.name, request))
        elif not series.marks:
            return []
    return runs


def _run(x: float, y: float, by_figure: Mapping[float, Sequence[RunInputs]]) -> RunInputs | None:
    """Returns the run with both figures of a point, otherwise a run with one of them, if it has a fractional part and
    so cannot match another run by chance."""
    runs = [[run for run in by_figure.get(value, ()) if not float(value).is_integer()] for value in (y, x)]
    both = [run for run in runs[0] if x in run.figures.values()]
    return next(iter([*both, *runs[0], *runs[1]]), None)


@dataclass(frozen=True)
class _Question:
    """The arguments with which the page repeats a run."""

    system: str
    demand: str
    values: Mapping[str, str]
    load: str
    at: float

    @property
    def key(self) -> tuple[Any, ...]:
        """The arguments that all runs of a curve share, which are all except the load."""
        return self.system, self.demand, self.load, tuple(sorted(self.values.items()))


def _question(request: RunInputs, files: dict[str, dict[str, Any]]) -> _Question | str:
    """Returns the question that repeats a run, or the reason why the run cannot be repeated. Adds descriptions that are
    not in the catalogue to ``files``."""
    if request.refused:
        return request.refused
    demand, workload = _demand(request)
    if workload is None and request.demand:
        return "the result does not contain the file of its workload"
    name, _, part = request.system.partition("@")
    for system, blueprint in _systems(os.path.basename(name).removesuffix(".toml"), request):
        spec = _described(system, part, blueprint, workload, request.values)
        if spec is None or not _is_as_stated(spec, request):
            continue
        values = {name: text for name, text in request.values.items() if (name, text) != ("seed", "1")}
        values |= {"range": part} if part else {}
        # The workload states the length if no option does.
        stated_load = load_of(_demand_of(spec), spec.get("clients"))
        if not set(values) & LENGTHS:
            values |= {name: text for name, text in stated_load.items() if name in LENGTHS}
        if not set(values) & LENGTHS:
            return "its scenario runs to its own end, which the page does not support"
        load = next((name for name in LOADS if name in values), None) or next(
            name for name in LOADS if name in stated_load
        )
        at = float(stated_load[load])
        for file, text in ((system, blueprint), (demand, workload)):
            if file.endswith(".toml") and text is not None:
                files.setdefault(file, stated(text))
        return _Question(system, demand, {key: text for key, text in values.items() if key != load}, load, at)
    return "the result does not contain the file of its system"


Blueprint = Mapping[str, Any]


def _demand(request: RunInputs) -> tuple[str, Blueprint | None]:
    """Returns the name of a run's workload in the page, and its blueprint."""
    if not request.demand:
        return "", None
    name = os.path.basename(request.demand).removesuffix(".toml")
    listed = _native.demand_blueprint(name) if name in _demands() else None
    blueprint = listed if request.demand_blueprint is None else request.demand_blueprint
    return (name if blueprint == listed else f"{name}.toml"), blueprint


def _systems(name: str, request: RunInputs) -> Iterable[tuple[str, Blueprint]]:
    """Yields candidates for a system, as its name in the page and its blueprint: the run's own blueprint, the file of
    that name in the catalogue, or the exact description."""
    listed = _native.system_blueprint(name, []) if name in _catalogue() else None
    if request.system_blueprint is not None:
        blueprint = request.system_blueprint
        yield (name if blueprint == listed else f"{name}.toml"), blueprint
        return
    if listed is not None:
        yield name, listed
    if request.described is not None:
        system = request.described["system"]
        if "drive" in system:
            text = _native.drive_to_toml(system["drive"], {})
            yield f"{name}.toml", {"kind": "drive", "text": text, "drives": {}}


@cache
def _demands() -> frozenset[str]:
    return frozenset([*_native.workload_ids(), *_native.scenario_ids()])


@cache
def _catalogue() -> frozenset[str]:
    return frozenset([*_native.drive_ids(), *_native.array_ids(), *_native.volume_ids(), *_native.instance_ids()])


def _described(
    system: str, part: str, blueprint: Blueprint, workload: Blueprint | None, values: Mapping[str, str]
) -> dict[str, Any] | None:
    """Returns the specification of the run that a question describes, or ``None`` if the question is invalid."""
    fields = list(values)
    chunk = {
        "system": {"name": system, "part": part or None, "blueprint": blueprint},
        "demand": {"blueprint": workload} if workload else None,
        "fields": fields,
        "kinds": [kind_of(name) for name in fields],
        "columns": fields,
        "units": [None] * len(fields),
        "points": [list(values.values())],
    }
    try:
        (spec,) = _native.specifications(chunk)
    except InputError:
        return None
    return spec if "system" in spec else None


def described_of(spec: Mapping[str, Any]) -> Blueprint:
    """Returns the exact descriptions of a run's system and workload."""
    return {"system": spec["system"], "workload": _demand_of(spec)}


def _demand_of(spec: Mapping[str, Any]) -> Row:
    """Returns the workload or the scenario of a run."""
    workload: Row = spec["workload"] if "workload" in spec else spec["scenario"]
    return workload


def _is_as_stated(spec: Mapping[str, Any], request: RunInputs) -> bool:
    """Whether a question describes exactly the system and workload in the run's result; true if the result has
    neither."""
    return request.described is None or described_of(spec) == request.described


def kind_of(name: str) -> str:
    """Returns the kind of a field: system, demand or option, as ``kindOf`` in web/src/state.ts."""
    if name in CHANGES:
        return "system"
    if name.startswith("lines["):
        return "demand"
    return "system" if set(name) & set(".[") else "option"


def _curve(series: str, runs: Sequence[tuple[float, _Question]], is_one_of: bool) -> Curve:
    """Returns the curve of these runs. If several curves have the name of its series, the system and values name it."""
    question = runs[0][1]
    loads = sorted({at for at, _ in runs})
    at = loads[len(loads) // 2]
    if len(loads) == 1:
        # A single point becomes a point of a curve.
        loads = (
            sorted({*DEPTHS, at})
            if question.load == "depth"
            else [at * share for share in (0.25, 0.5, 0.75, 1.0, 1.25)]
        )
    own = [f"{key} {text}" for key, text in question.values.items() if key not in ("requests", "seed")]
    name = ", ".join([question.system, *own]) if is_one_of else series
    values = {key: question.values[key] for key in sorted(question.values)}
    return Curve(name, question.system, question.demand, values, question.load, loads, at)


def stated(blueprint: Blueprint) -> dict[str, Any]:
    """Returns a file as the page reads it: see ``Stated`` in web/src/engine.ts."""
    return {"blueprint": blueprint, "stated": _without_dates(tomllib.loads(blueprint["text"]))}


def _without_dates(value: Any) -> Any:
    """Returns TOML values as JSON values: dates and times become strings."""
    if isinstance(value, dict):
        return {key: _without_dates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_dates(item) for item in value]
    return value if isinstance(value, str | int | float) else str(value)


def add_to_figures(sections: Sequence[dict[str, Any]], curves: VariableCurves) -> None:
    """Adds to each figure of a report the curves that can be varied, and the reasons why others cannot."""
    figures = [figure for section in sections for figure in section["figures"]]
    for place, figure in enumerate(figures):
        if curves.curves.get(place) or curves.refused.get(place):
            figure["taken"] = [asdict(curve) for curve in curves.curves[place]]
            figure["refused"] = curves.refused[place]
