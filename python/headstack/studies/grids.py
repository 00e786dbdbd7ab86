"""Runs the grids of a study: runs, replays of recorded runs, predictions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from headstack._native import InputError
from headstack.catalogue.demand import load_demand
from headstack.catalogue.options import Spec
from headstack.catalogue.system import load_system
from headstack.measurement.replays import replay
from headstack.results.results import Results
from headstack.results.table import Row
from headstack.simulation.runs import Progress, run_specs, specify
from headstack.studies.files import resolve_name
from headstack.studies.study import Study
from headstack.studies.study_types import Grid, Open, Other, Record
from headstack.traces.traces import Trace

T = TypeVar("T")


def specified(study: Study, number: int) -> list[Spec]:
    """Returns the runs of a grid, or those that a replay records. Raises ``InputError`` if they are invalid."""
    grid, path = study.grids[number], f"grids[{number}]"
    load: Grid | Record = grid
    systems = grid["systems"]
    if grid["record"] is not None:
        path += ".record"
        systems, load = [grid["record"]["system"]], grid["record"]
    # One after the other, so that errors name their key.
    for kind, loader, names in (("systems", load_system, systems), ("workloads", load_demand, load["workloads"])):
        for place, name in enumerate(names):
            key = f"{path}.system" if kind == "systems" and grid["record"] is not None else f"{path}.{kind}[{place}]"
            refused(study, key, partial(loader, resolve_name(study, name)))
    workloads = [resolve_name(study, name) for name in load["workloads"]]
    return refused(
        study,
        f"{path}.settings",
        lambda: specify([resolve_name(study, name) for name in systems], workloads or None, load["settings"]),
    )


def with_alternative(study: Study, open_choice: Open, other: Other) -> Study:
    """Returns the study with an alternative in the grids of an open choice."""
    names = other["names"]

    def put(value: Any) -> Any:
        if isinstance(value, list):
            return [put(item) for item in value]
        name, at, part = value.partition("@") if isinstance(value, str) else (value, "", "")
        return f"{names[name]}{at}{part}" if name in names else value

    def change(grid: Grid) -> Grid:
        settings = {key: put(value) for key, value in grid["settings"].items()} | other["settings"]
        return {**grid, "systems": put(grid["systems"]), "workloads": put(grid["workloads"]), "settings": settings}

    return replace(
        study, grids=tuple(change(grid) if grid["name"] in open_choice["grids"] else grid for grid in study.grids)
    )


def refused(study: Study, path: str, work: Callable[[], T]) -> T:
    """Calls ``work``; its errors name the key at ``path``."""
    try:
        return work()
    except InputError as error:
        raise study.error(path, str(error)) from None


@dataclass(frozen=True)
class Replayed:
    """The results of a grid of replays."""

    results: Results
    """Results in the order of the recorded runs, then of the systems."""
    keys: list[Row]
    """For each replay the workload, depth and seed that were recorded."""
    recorded: list[Row]
    """For each recorded run the same, the number of its requests, and the range of their addresses."""


def replayed(study: Study, number: int, progress: Progress | None) -> Replayed:
    """Records each run of a grid's ``record`` and replays it on each of its systems.

    A replay as fast as possible has the queue depth of the recorded run, unless the settings state another.
    """
    grid, recorded = study.grids[number], specified(study, number)
    systems = [resolve_name(study, name) for name in grid["systems"]]
    joined: Results | None = None
    keys: list[Row] = []
    recorded_rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="headstack-study-") as folder:
        for place, spec in enumerate(recorded):
            trace = Path(folder) / f"{place}.parquet"
            row = run_specs([spec], {}, None, trace)[0]
            settings: dict[str, Any] = dict(grid["settings"])
            mode = settings.pop("mode", "timed")
            if mode == "asap" and row["depth"] is not None:
                settings.setdefault("depth", row["depth"])
            results = refused(study, f"grids[{number}].settings", partial(replay, trace, systems, mode, **settings))
            load = {key: row[key] for key in ("workload", "depth", "seed")}
            counted = Trace(trace).info()["summary"]["total"]
            bytes_ = {key: counted[key] for key in ("lowest_byte", "highest_end_byte")}
            recorded_rows.append({**load, "requests": sum(counted["requests"].values()), **bytes_})
            keys += [load] * len(results)
            joined = results if joined is None else joined.and_others(results)
            if progress is not None:
                progress((place + 1) / len(recorded))
    if joined is None:
        raise study.error(f"grids[{number}].record", "nothing is recorded")
    return Replayed(joined, keys, recorded_rows)


def predicted(study: Study, number: int, store: str | os.PathLike[str] | None, progress: Progress | None) -> list[Row]:
    """Returns the predictions of a grid, whose tests are kept in ``store``. Raises ``InputError`` if they are outside
    the range of the systems' tests."""
    from headstack.prediction.predictor import predicted_rows  # start-up time

    grid = study.grids[number]
    workloads = [resolve_name(study, name) for name in grid["workloads"]]
    systems = [resolve_name(study, name) for name in grid["systems"]]
    rows = partial(predicted_rows, workloads, systems, grid["settings"], store, progress)
    return refused(study, f"grids[{number}]", rows)
