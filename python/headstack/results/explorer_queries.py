"""Curves that are taken up from a report: what the explorer in its page is asked, so that it gives its numbers.

A run is asked for as a sweep asks for its points: by a file, and by values of fields and options. Where the run states
its description, the question must describe just that. Which runs a curve is of, its figures tell: no two runs agree to
the last digit by chance.
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
from headstack.report.figures import Asked, Lines, Report, Series

if TYPE_CHECKING:
    from headstack.results.table import Row

LOADS = ("depth", "rate")
LENGTHS = {"requests", "time", "confidence"}
FIGURES = ("iops", "mb_per_s", "mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms")
"""By these a point of a figure is known as a run's."""
CURVES_MAX = 12
"""Of one figure: more buttons than this help nobody."""
NAMED_MAX = 3
"""More curves than this are counted."""
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ELSEWHERE = "they are not from a run that this page can repeat"


@dataclass(frozen=True)
class Curve:
    """Runs that differ in load alone, for the page: ``Taken`` in web/src/report.ts."""

    name: str
    system: str
    demand: str
    values: Mapping[str, str]
    load: str
    loads: Sequence[float]
    at: float
    """The load at which the page looks first."""


@dataclass
class Taken:
    """What of a report can be varied."""

    curves: dict[int, list[Curve]] = field(default_factory=dict)
    """By the place of their figure among all of the report."""
    refused: dict[int, list[str]] = field(default_factory=dict)
    """Why others cannot, as sentences."""
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Descriptions that the catalogue does not have, as ``Stated`` in web/src/engine.ts."""


def asked_of(row: Row, whole: Row) -> Asked:
    """How a run of results is asked for again."""
    figures = figures_of(row)
    why = _refused(whole)
    if why:
        return Asked(row["system"], "", {}, figures, refused=why)
    named = [option.name for option in OPTIONS if option.name in row and option.name not in (*IN_RESULTS, "interval")]
    workload = whole["workload"]
    values = {name: str(row[name]) for name in named} | ({"seed": str(row["seed"])} if row["seed"] != 1 else {})
    demand = workload["name"] if workload["name"] in _demands() else ""
    described = described_of({"system": whole["system"]["description"], "workload": workload})
    return Asked(row["system"], demand, values | load_of(workload, row["depth"]), figures, described)


def figures_of(row: Row) -> dict[str, float]:
    """By these a point of a figure is known as a run's."""
    return {name: row[name] for name in FIGURES if row.get(name) is not None}


def load_of(demand: Row, clients: object) -> dict[str, str]:
    """The load and the length that a workload states, or a scenario of so many clients, as options."""
    arrivals, length = demand.get("arrivals"), demand["run_length"]
    if arrivals is None:
        load = {"depth": str(clients)}
    elif "closed" in arrivals:
        load = {"depth": str(arrivals["closed"]["outstanding"])}
    else:
        load = {"rate": f"{arrivals['open']['rate_per_s']:.17g}"}
    # It may also last until streams end by themselves.
    stated_length = length if isinstance(length, dict) else {}
    return load | {name: str(value) for name, value in stated_length.items() if name in ("requests", "time")}


def _refused(whole: Row) -> str:
    """Why a run cannot be asked for again; empty where it can."""
    if whole["mode"] != "simulated":
        return "it was measured on a real device"
    if whole["fidelity"] is not None:
        return "it replays a trace, which the page does not contain"
    return ""


def taken(report: Report) -> Taken:
    """What of a report can be varied, and what cannot."""
    found = Taken()
    by_figure: dict[float, list[Asked]] = {}
    for asked in report.asked():
        for value in asked.figures.values():
            by_figure.setdefault(value, []).append(asked)
    known: dict[int, _Question | str] = {}
    figures = [figure for section in report.sections for figure in section.figures]
    for place, figure in enumerate(figures):
        if not isinstance(figure, Lines) or figure.x_is_percentile:
            continue
        refused: dict[str, list[str]] = {}
        curves: dict[tuple[Any, ...], tuple[str, list[tuple[float, _Question]]]] = {}
        for series in figure.series:
            if series.published:
                continue
            runs: Sequence[tuple[str, Asked | None]] = _runs(series, by_figure) or [(series.name, None)]
            for name, run in runs:
                if run is not None and id(run) not in known:
                    known[id(run)] = _question(run, found.files)
                question = ELSEWHERE if run is None else known[id(run)]
                if isinstance(question, str):
                    names = refused.setdefault(question, [])
                    names += [name] * (name not in names)
                else:
                    curves.setdefault((name, *question.key), (name, []))[1].append((question.at, question))
        counts = Counter(name for name, _ in curves.values())
        found.curves[place] = [
            _curve(name, some, counts[name] > 1) for name, some in list(curves.values())[:CURVES_MAX]
        ]
        found.refused[place] = [
            f"{', '.join(names) if len(names) <= NAMED_MAX else f'{len(names)} curves'} cannot be varied here: {why}."
            for why, names in refused.items()
        ]
    return found


def _runs(series: Series, by_figure: Mapping[float, Sequence[Asked]]) -> list[tuple[str, Asked]]:
    """The runs whose figures a series draws, with what they are called: one a point, and none unless all are known.
    Of points alone those that are known."""
    found = []
    for place, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
        if x is None or y is None:
            continue
        asked = _run(x, y, by_figure)
        if asked is not None:
            found.append((series.names[place] if series.marks and series.names else series.name, asked))
        elif not series.marks:
            return []
    return found


def _run(x: float, y: float, by_figure: Mapping[float, Sequence[Asked]]) -> Asked | None:
    """The run of a point: that of both its figures, else of the one with a fraction, which no other has by chance."""
    runs = [[run for run in by_figure.get(value, ()) if not float(value).is_integer()] for value in (y, x)]
    both = [run for run in runs[0] if x in run.figures.values()]
    return next(iter([*both, *runs[0], *runs[1]]), None)


@dataclass(frozen=True)
class _Question:
    """A run as the page asks for it."""

    system: str
    demand: str
    values: Mapping[str, str]
    load: str
    at: float

    @property
    def key(self) -> tuple[Any, ...]:
        """What runs of one curve have in common."""
        return self.system, self.demand, self.load, tuple(sorted(self.values.items()))


def _question(asked: Asked, files: dict[str, dict[str, Any]]) -> _Question | str:
    """The question whose answer is this run, or why there is none. Adds to ``files`` what the catalogue lacks."""
    if asked.refused:
        return asked.refused
    demand, workload = _demand(asked)
    if workload is None and asked.demand:
        return "the result does not contain the file of its workload"
    name, _, part = asked.system.partition("@")
    for system, blueprint in _systems(os.path.basename(name).removesuffix(".toml"), asked):
        spec = _described(system, part, blueprint, workload, asked.values)
        if spec is None or not _is_as_stated(spec, asked):
            continue
        values = {name: text for name, text in asked.values.items() if (name, text) != ("seed", "1")}
        values |= {"range": part} if part else {}
        # What nobody chose, the workload says.
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


def _demand(asked: Asked) -> tuple[str, Blueprint | None]:
    """The workload of a run by its name in the page, and what it follows from."""
    if not asked.demand:
        return "", None
    name = os.path.basename(asked.demand).removesuffix(".toml")
    known = _native.demand_blueprint(name) if name in _demands() else None
    given = known if asked.demand_blueprint is None else asked.demand_blueprint
    return (name if given == known else f"{name}.toml"), given


def _systems(name: str, asked: Asked) -> Iterable[tuple[str, Blueprint]]:
    """What a system may follow from, by its name in the page: what is known of it, the catalogue's file of its name, or
    its exact description."""
    known = _native.system_blueprint(name, []) if name in _catalogue() else None
    if asked.system_blueprint is not None:
        given = asked.system_blueprint
        yield (name if given == known else f"{name}.toml"), given
        return
    if known is not None:
        yield name, known
    if asked.described is not None:
        system = asked.described["system"]
        if "drive" in system:
            text = _native.drive_to_toml(system["drive"], {})
            yield f"{name}.toml", {"kind": "drive", "text": text, "drives": {}}


@cache
def _demands() -> frozenset[str]:
    return frozenset([*_native.workload_ids(), *_native.scenario_ids()])


@cache
def _catalogue() -> frozenset[str]:
    return frozenset([*_native.drive_ids(), *_native.array_ids(), *_native.volume_ids()])


def _described(
    system: str, part: str, blueprint: Blueprint, workload: Blueprint | None, values: Mapping[str, str]
) -> dict[str, Any] | None:
    """The run that a question describes; ``None`` where there is none."""
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
    """The system and the workload of a run, exactly."""
    return {"system": spec["system"], "workload": _demand_of(spec)}


def _demand_of(spec: Mapping[str, Any]) -> Row:
    """The workload or the scenario of a run."""
    found: Row = spec["workload"] if "workload" in spec else spec["scenario"]
    return found


def _is_as_stated(spec: Mapping[str, Any], asked: Asked) -> bool:
    """Whether a question describes exactly what the run states of itself."""
    return asked.described is None or described_of(spec) == asked.described


def kind_of(name: str) -> str:
    """What a field is one of, as ``kindOf`` in web/src/state.ts."""
    if name in CHANGES:
        return "system"
    if name.startswith("lines["):
        return "demand"
    return "system" if set(name) & set(".[") else "option"


def _curve(series: str, runs: Sequence[tuple[float, _Question]], is_one_of: bool) -> Curve:
    """The curve of these runs; one of several of its series is called by what it is of."""
    question = runs[0][1]
    loads = sorted({at for at, _ in runs})
    at = loads[len(loads) // 2]
    if len(loads) == 1:
        # A point alone shows as one of a curve.
        loads = (
            sorted({*DEPTHS, at})
            if question.load == "depth"
            else [at * share for share in (0.25, 0.5, 0.75, 1.0, 1.25)]
        )
    own = [f"{key} {text}" for key, text in question.values.items() if key not in ("requests", "seed")]
    name = ", ".join([question.system, *own]) if is_one_of else series
    told = {key: question.values[key] for key in sorted(question.values)}
    return Curve(name, question.system, question.demand, told, question.load, loads, at)


def stated(blueprint: Blueprint) -> dict[str, Any]:
    """A file as the page knows it: see ``Stated`` in web/src/engine.ts."""
    return {"blueprint": blueprint, "stated": _without_dates(tomllib.loads(blueprint["text"]))}


def _without_dates(value: Any) -> Any:
    """Values of TOML as JSON has them: dates and times are texts."""
    if isinstance(value, dict):
        return {key: _without_dates(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_dates(one) for one in value]
    return value if isinstance(value, str | int | float) else str(value)


def put_into(sections: Sequence[dict[str, Any]], found: Taken) -> None:
    """Tells each figure of a report, as the page reads it, what of it can be varied."""
    figures = [figure for section in sections for figure in section["figures"]]
    for place, figure in enumerate(figures):
        if found.curves.get(place) or found.refused.get(place):
            figure["taken"] = [asdict(curve) for curve in found.curves[place]]
            figure["refused"] = found.refused[place]
