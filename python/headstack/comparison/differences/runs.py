"""``Side``: a set of runs from files of results (of headstack or fio), folders, patterns and baselines."""

from __future__ import annotations

import glob
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from headstack import _native
from headstack._native import InputError
from headstack.comparison.pairs import CERTAIN
from headstack.comparison.points import SidePoint, points_of_side
from headstack.comparison.shapes import Shape, shape_of_fio
from headstack.io.encodings import decoded
from headstack.io.stored import Stored
from headstack.measurement.fio.loads import BIN_SHARE, Load, loads_in_text
from headstack.results.results import Results

Source: TypeAlias = "Results | str | os.PathLike[str]"

FIGURES = ("iops", "mb_per_s", "mean_ms", "p50_ms", "p99_ms", "p999_ms", "elapsed_s")
"""Figures to compare if all runs have them; ``elapsed_s`` is for commands without results."""
NAMES = {
    "iops": "throughput",
    "mb_per_s": "bandwidth",
    "mean_ms": "mean",
    "p50_ms": "p50",
    "p99_ms": "p99",
    "p999_ms": "p99.9",
    "elapsed_s": "elapsed",
}
"""Display names of figures."""
MORE_IS_BETTER = ("iops", "mb_per_s")
OWN_SHARE = 1e-3
"""Relative resolution of headstack's histograms, which have three digits."""
STORED = Stored("baseline")
KEPT = ("source", "at_s", "resolution")


@dataclass(frozen=True)
class Outcome:
    """The results of one load in one run."""

    figures: Mapping[str, float]
    course: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Throughput and mean latency of each interval, if intervals were kept."""
    within: Mapping[str, float] = field(default_factory=dict)
    """Relative standard error of figures from the variation within the run, if known."""
    shape: Shape | None = None
    """The load in numbers, for matching fio's results with headstack's; ``None`` if numbers cannot describe it."""


@dataclass(frozen=True)
class Run:
    """One run, from conditioning to its end, which is the independent sample."""

    source: str
    at_s: float | None
    """End of the run in seconds since the epoch, or the modification time of a file without an end time."""
    resolution: float
    """Relative resolution of percentiles."""
    outcomes: Mapping[str, Outcome]
    """Results by load."""
    errors: int = 0
    """Number of failed requests, if known."""


@dataclass(frozen=True)
class Side:
    """The runs of one side."""

    name: str
    runs: tuple[Run, ...]
    bad: tuple[str, ...] = ()
    """Files that could not be read, each with the reason."""


def side_of(sources: Sequence[Source], name: str) -> Side:
    """Returns the runs of files, folders and patterns, in the given order, and of ``Results`` objects, each of which is
    a run.

    A file given by name must be readable; unreadable files from folders or patterns are reported and skipped. A file
    given twice is used only once. Raises ``InputError`` if no run is left.
    """
    runs: list[Run] = []
    bad: list[str] = []
    seen: set[str] = set()
    for source in sources:
        if isinstance(source, Results):
            runs += _of_results(source, f"results {len(runs) + 1}", None)
            continue
        files, is_found = _files(os.fspath(source))
        for file in files:
            place = os.path.realpath(file)
            if place in seen:
                bad.append(f"{file}: given twice, counted once")
                continue
            seen.add(place)
            try:
                runs += read(file)
            except InputError as error:
                if not is_found:
                    raise
                bad.append(str(error))
    if not runs:
        reasons = f": {'; '.join(bad[:3])}" if bad else ""
        raise InputError(f"no runs{reasons}", file=name)
    return Side(name, tuple(runs), tuple(bad))


def _files(source: str) -> tuple[list[str], bool]:
    """Returns the files of a source, and whether they were found in a folder or by a pattern."""
    if os.path.isdir(source):
        paths = sorted(os.fspath(path) for path in Path(source).rglob("*.json") if path.is_file())
    elif os.path.exists(source):
        return [source], False
    else:
        paths = sorted(path for path in glob.glob(source, recursive=True) if os.path.isfile(path))
    if not paths and not os.path.isdir(source):
        raise InputError(f"{source}: no such file or folder, and no file matches this pattern")
    for path in paths:
        _native.note_input(path)
    return paths, True


def read(path: str) -> list[Run]:
    """Returns the runs of a file. Raises ``InputError`` if it is not a file of results."""
    try:
        with open(path, "rb") as file:
            text = decoded(file.read())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return runs_of(text, path, os.path.getmtime(path))


def runs_of(text: str, name: str, at_s: float | None) -> list[Run]:
    """Returns the runs in a text, which is headstack's results, a baseline, or fio's output."""
    start = text.lstrip()[:1]
    if start == "[":
        try:
            return _of_results(Results(_native.Results.from_json(text)), name, at_s)
        except InputError as error:
            raise InputError(f"{error}", file=name) from None
    if start == "{" and f'"{STORED.head["format"]}"' in text[:200]:
        return _of_baseline(text, name)
    return _of_fio(text, name)


def _of_results(results: Results, name: str, at_s: float | None) -> list[Run]:
    """Returns the run of a file's results, or several if it contains a load repeatedly."""
    rounds: list[dict[str, Outcome]] = []
    for point in points_of_side(results, results.whole(0)["mode"] if len(results) else ""):
        load = ", ".join([point.workload, *([point.load] if point.load else []), *_labels(point)])
        at = next((n for n, outcomes in enumerate(rounds) if load not in outcomes), len(rounds))
        if at == len(rounds):
            rounds.append({})
        rounds[at][load] = _outcome(point)
    several = len(rounds) > 1
    return [
        # Several runs of one file have no separate times.
        Run(f"{name} ({n})" if several else name, None if several else at_s, OWN_SHARE, outcomes)
        for n, outcomes in enumerate(rounds, 1)
    ]


def _labels(point: SidePoint) -> list[str]:
    return [f"{label} {text}" for label, text in point.labels.items() if label != "seed"]


def _outcome(point: SidePoint) -> Outcome:
    figures = {name: point.figures.get(name) for name in FIGURES}
    if point.results is not None:
        figures["p999_ms"] = point.results.percentile_ms(point.index, 99.9)
    course: dict[str, list[float]] = {}
    if point.intervals and all(interval["requests"] for interval in point.intervals):
        course = {name: [interval[name] for interval in point.intervals] for name in ("iops", "mean_ms")}
    error = point.relative_half_width / CERTAIN
    within = {name: error for name in ("mean_ms", *(() if point.is_open else ("iops", "mb_per_s"))) if error}
    present = {name: value for name, value in figures.items() if value is not None and value > 0}
    return Outcome(present, course, within, point.shape)


def _of_fio(text: str, name: str) -> list[Run]:
    by_run: dict[int, list[Load]] = {}
    for load in loads_in_text(text, name):
        by_run.setdefault(load.row["run"], []).append(load)
    runs = []
    for number, loads in sorted(by_run.items()):
        names = [load.name for load in loads]
        # Equal loads are distinguished by the names of their jobs.
        full = [
            f"{load.row['jobname']}: {n}" if names.count(n) > 1 else n for load, n in zip(loads, names, strict=True)
        ]
        outcomes = {
            name: Outcome(dict(_figures(load)), within=_within(load), shape=shape_of_fio(load.row))
            for name, load in zip(full, loads, strict=True)
        }
        source = f"{name} ({number})" if len(by_run) > 1 else name
        errors = sum(load.row["errors"] for load in loads)
        runs.append(Run(source, loads[0].row["ended_s"], BIN_SHARE, outcomes, errors))
    return runs


def _figures(load: Load) -> Iterator[tuple[str, float]]:
    for name in FIGURES:
        value = load.row.get(name)
        if value is not None and value > 0:
            yield name, value


def _within(load: Load) -> dict[str, float]:
    """Returns the relative standard error of throughput from fio's samples, if there are several."""
    iops, deviation, samples = (load.row[name] for name in ("iops", "iops_sd", "iops_samples"))
    if not iops or not deviation or samples < 2:
        return {}
    error = deviation / math.sqrt(samples) / iops
    return {"iops": error, "mb_per_s": error}


def _of_baseline(text: str, name: str) -> list[Run]:
    try:
        baseline = STORED.upgraded(name, json.loads(text))
        return [
            Run(
                str(run["source"]),
                None if run["at_s"] is None else float(run["at_s"]),
                float(run["resolution"]),
                {
                    load: Outcome({figure: float(value) for figure, value in figures.items() if figure in FIGURES})
                    for load, figures in run["loads"].items()
                },
            )
            for run in baseline["runs"]
        ]
    except (json.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"not a complete baseline: {type(error).__name__} {error}", file=name) from None


def to_baseline(runs: Sequence[Run]) -> str:
    """Formats the runs as a baseline for later comparisons."""
    entries: list[dict[str, object]] = [
        {key: getattr(run, key) for key in KEPT}
        | {"loads": {load: dict(outcome.figures) for load, outcome in run.outcomes.items()}}
        for run in runs
    ]
    return json.dumps({**STORED.head, "runs": entries}, indent=1) + "\n"


def loads_of(ours: Sequence[Run], theirs: Sequence[Run]) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Returns the loads of both sides, in order, and the loads that only one side has. An entry is a common name and
    the name on each side. Loads with different names match if their shapes match, such as loads of fio and
    headstack."""
    mine, yours = ({load: None for run in side for load in run.outcomes} for side in (ours, theirs))
    every = list(mine | yours)
    shared = [(load, load, load) for load in every if load in mine and load in yours]
    shapes = _by_shape(theirs, [load for load in yours if load not in mine])
    for shape, load in _by_shape(ours, [load for load in mine if load not in yours]).items():
        if shape in shapes:
            shared.append((shape.name, load, shapes[shape]))
    matched = {name for _, *names in shared for name in names}
    return shared, [load for load in every if load not in matched]


def _by_shape(runs: Sequence[Run], loads: Sequence[str]) -> dict[Shape, str]:
    """Returns the loads by shape, without loads whose shape is unknown or not unique."""
    by_shape: dict[Shape, list[str]] = {}
    for load in loads:
        shape = next((run.outcomes[load].shape for run in runs if load in run.outcomes), None)
        if shape is not None:
            by_shape.setdefault(shape, []).append(load)
    return {shape: names[0] for shape, names in by_shape.items() if len(names) == 1}


def logarithms(runs: Sequence[Run], load: str, figure: str) -> list[float] | None:
    """Returns the logarithms of a figure in each run; ``None`` if a run lacks the figure."""
    values = [run.outcomes[load].figures.get(figure) for run in runs]
    return None if any(value is None for value in values) else [math.log(value) for value in values if value]
