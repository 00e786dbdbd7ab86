"""Curves that are taken up from a report: what the explorer in its page is asked, so that it gives the report's own numbers.

A run is asked for as a sweep asks for its points: by a file, and by values of fields and options. Where the run states its
description, the question must describe just that. Which runs a curve is of, its figures tell: no two runs agree to the last
digit by chance.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack._native import InputError
from headstack.options import IN_RESULTS, OPTIONS
from headstack.report.figures import Asked, Lines, Report, Series

if TYPE_CHECKING:
    from headstack.results import Row

LOADS = ("depth", "rate")
FIGURES = ("iops", "mb_per_s", "mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms")
"""By these a point of a figure is known as a run's."""
CURVES_MAX = 12
"""Of one figure: more buttons than this help nobody."""
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ELSEWHERE = "its figures are of no single run that a page could repeat"


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


def asked_of(row: Row, whole: Row, described: str) -> Asked:
    """How a run of results is asked for again; ``described`` is the exact description that it states, as JSON."""
    figures = {name: row[name] for name in FIGURES if row.get(name) is not None}
    why = _refused(whole)
    if why:
        return Asked(row["system"], "", {}, figures, refused=why)
    named = {option.name for option in OPTIONS if option.name in row} - {*IN_RESULTS, "interval"}
    values = {name: str(row[name]) for name in named}
    workload = whole["workload"]
    arrivals = workload["arrivals"]
    if "closed" in arrivals:
        values["depth"] = str(arrivals["closed"]["outstanding"])
    else:
        values["rate"] = f"{arrivals['open']['rate_per_s']:.17g}"
    length = workload["run_length"]
    if isinstance(length, dict) and "requests" in length:
        values["requests"] = str(length["requests"])
    if row["seed"] != 1:
        values["seed"] = str(row["seed"])
    demand = workload["name"] if workload["name"] in _native.workload_ids() else ""
    return Asked(row["system"], demand, values, figures, described)


def _refused(whole: Row) -> str:
    """Why a run cannot be asked for again; empty where it can."""
    if whole["mode"] != "simulated":
        return "it was measured on a real device"
    if whole["fidelity"] is not None:
        return "it is the replay of a trace, which the page does not have"
    if not isinstance(whole["workload"].get("arrivals"), dict):
        return "it is a scenario of several streams"
    return ""


def taken(report: Report) -> Taken:
    """What of a report can be varied, and what cannot."""
    found = Taken()
    by_figure: dict[float, list[Asked]] = {}
    for asked in report.asked:
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
            for asked in _runs(series, by_figure) or [None]:
                if asked is not None and id(asked) not in known:
                    known[id(asked)] = _question(asked, found.files)
                question = ELSEWHERE if asked is None else known[id(asked)]
                if isinstance(question, str):
                    names = refused.setdefault(question, [])
                    names += [series.name] * (series.name not in names)
                else:
                    curves.setdefault((series.name, *question.key), (series.name, []))[1].append((question.at, question))
        found.curves[place] = [_curve(name, runs, len(curves)) for name, runs in list(curves.values())[:CURVES_MAX]]
        found.refused[place] = [f"{', '.join(names)} cannot be varied here: {why}." for why, names in refused.items()]
    return found


def _runs(series: Series, by_figure: Mapping[float, Sequence[Asked]]) -> list[Asked]:
    """The runs whose figures a series draws, one a point; empty unless all are known."""
    found: list[Asked] = []
    for x, y in zip(series.x, series.y, strict=True):
        if x is None or y is None:
            continue
        runs = [run for run in by_figure.get(y, ()) if not float(y).is_integer()]
        both = [run for run in runs if x in run.figures.values()]
        others = runs or [run for run in by_figure.get(x, ()) if not float(x).is_integer()]
        if not (both or others):
            return []
        found.append((both or others)[0])
    return found


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
    """The question whose answer is this run, or why there is none. Adds what the catalogue does not have to ``files``."""
    if asked.refused:
        return asked.refused
    load = next((name for name in LOADS if name in asked.values), None)
    if load is None:
        return "nothing says what load it was under"
    name = asked.system.partition("@")[0]
    values = {key: text for key, text in asked.values.items() if key != load}
    for system, blueprint in _blueprints(name, asked):
        if asked.described and not _describes(system, blueprint, asked):
            continue
        if system.endswith(".toml"):
            files.setdefault(system, stated(json.dumps(blueprint)))
        span = asked.system.partition("@")[2]
        ranged = {"range": span, **values} if span else values
        return _Question(system, asked.demand, ranged, load, float(asked.values[load]))
    return "the result does not hold the file of its system"


def _blueprints(name: str, asked: Asked) -> Iterable[tuple[str, dict[str, Any]]]:
    """What may be the file of a system: the catalogue's, that which came with it, or that of its exact description."""
    if asked.file:
        yield f"{name}.toml", _of_text(asked.file)
        return
    try:
        yield name, json.loads(_native.system_blueprint(name, []))
    except InputError:
        pass
    if asked.described:
        system = json.loads(asked.described)["system"]
        if "drive" in system:
            text = _native.drive_to_toml(json.dumps(system["drive"]), {})
            yield f"{name}.toml", {"kind": "drive", "text": text, "drives": {}}


def _of_text(text: str) -> dict[str, Any]:
    tables = tomllib.loads(text)
    return {"kind": "array" if "groups" in tables or "drives" in tables else "drive", "text": text, "drives": {}}


def _describes(system: str, blueprint: Mapping[str, Any], asked: Asked) -> bool:
    """Whether a question describes exactly what the run states of itself."""
    fields = list(asked.values)
    chunk = {
        "system": {"name": system, "part": asked.system.partition("@")[2] or None, "blueprint": blueprint},
        "demand": {"blueprint": json.loads(_native.demand_blueprint(asked.demand))} if asked.demand else None,
        "fields": fields,
        "kinds": [kind_of(name) for name in fields],
        "columns": fields,
        "units": [None] * len(fields),
        "points": [list(asked.values.values())],
    }
    try:
        told = json.loads(_native.specifications(json.dumps(chunk))[0])
    except InputError:
        return False
    expected = json.loads(asked.described)
    return all(told.get(part) == expected[part] for part in ("system", "workload"))


def kind_of(name: str) -> str:
    """What a field is one of, as ``kindOf`` in web/src/state.ts."""
    if name in ("drives", "drive", "level", "usable"):
        return "system"
    if name.startswith("lines["):
        return "demand"
    return "system" if set(name) & set(".[") else "option"


def _curve(series: str, runs: Sequence[tuple[float, _Question]], count: int) -> Curve:
    question = runs[0][1]
    loads = sorted({at for at, _ in runs})
    at = loads[len(loads) // 2]
    if len(loads) == 1 and question.load == "depth":
        # A point alone shows as one of a curve.
        loads = sorted({*DEPTHS, *loads})
    elif len(loads) == 1:
        loads = [at * share for share in (0.25, 0.5, 0.75, 1.0, 1.25)]
    own = {key: text for key, text in question.values.items() if key not in ("requests", "seed", "warm_up")}
    several = count > 1 and question.system not in series
    name = ", ".join([*([question.system] if several else []), series, *(f"{key} {text}" for key, text in own.items())])
    told = {key: question.values[key] for key in sorted(question.values)}
    return Curve(name, question.system, question.demand, told, question.load, loads, at)


def stated(blueprint: str) -> dict[str, Any]:
    """A file as the page knows it: see ``Stated`` in web/src/engine.ts."""
    told = json.loads(blueprint)
    return {"blueprint": told, "stated": json.loads(json.dumps(tomllib.loads(told["text"]), default=str))}


def put_into(sections: Sequence[dict[str, Any]], found: Taken) -> None:
    """Tells each figure of a report, as the page reads it, what of it can be varied."""
    figures = [figure for section in sections for figure in section["figures"]]
    for place, figure in enumerate(figures):
        if found.curves.get(place) or found.refused.get(place):
            figure["taken"] = [asdict(curve) for curve in found.curves[place]]
            figure["refused"] = found.refused[place]

