"""``run``: runs a study file to its outcome. See docs/design/studies.md."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

from headstack.catalogue.options import Spec
from headstack.report.figures import Figure, Provenance, RunInputs, Table
from headstack.results.report import requests_of
from headstack.results.results import Results
from headstack.results.table import Row
from headstack.simulation.chunks.chunk import chunks_of_runs
from headstack.simulation.chunks.chunked import finish, run_chunks
from headstack.simulation.runs import Progress, swept
from headstack.studies.choices import Answers, answer_questions, questions_of
from headstack.studies.claims import Alternative, compare, judge
from headstack.studies.evidence import grounds_of
from headstack.studies.files import load, shown_name
from headstack.studies.grids import predicted, replayed, specified, with_alternative
from headstack.studies.outcome import Outcome
from headstack.studies.pictures import draw, table_of
from headstack.studies.provenance import chosen_on
from headstack.studies.study import Study
from headstack.studies.tables import Tables


@dataclass(frozen=True)
class Work:
    """The executor and the store of a study's runs."""

    store: str | os.PathLike[str] | None
    executor: str
    progress: Progress | None


def run(
    study: Study | str | os.PathLike[str],
    *,
    store: str | os.PathLike[str] | None = None,
    executor: str = "local",
    progress: Progress | None = None,
) -> Outcome:
    """Runs a study, by its name or folder.

    ``executor`` is ``"local"``, all cores of this machine, or ``"dask://HOST:PORT"``. Finished runs are kept in the
    folder ``store`` and never repeated, except for replays. ``progress`` is called with the share done. Raises
    ``InputError`` with file, line and key, if possible before anything runs, also if a query fails or a published row
    has no run; ``RunError`` if a run fails.
    """
    study = study if isinstance(study, Study) else load(study)
    specs = [specified(study, number) for number in range(len(study.grids))]
    questions = questions_of(study)
    is_run = [grid["kind"] == "run" for grid in study.grids]
    run_grids = [grid_specs for grid_specs, runs in zip(specs, is_run, strict=True) if runs]
    other_runs = [0 if runs else len(grid_specs) for grid_specs, runs in zip(specs, is_run, strict=True)]
    first, *shares, last = _shares([sum(map(len, run_grids)), *other_runs, len(questions)], progress)
    if run_grids:
        _finish_together(run_grids, Work(store, executor, first))
    grids = [run_grid(study, number, specs[number], Work(store, executor, show)) for number, show in enumerate(shares)]
    choices = answer_questions(study, questions, store, executor, last)
    tables = tables_of(study, grids, choices)
    for number, published in enumerate(study.published):
        tables.match(number, published)
    shown: list[Table] = []
    for number, table in enumerate(study.tables):
        if table["title"] is not None:
            rows = tables.query(f"tables[{number}].sql", f"from {table['name']}")
            shown.append(table_of(shown_name(table), table["title"], rows))
    grounds = grounds_of(study, tables)
    otherwise = _with_alternatives(study, grids, choices, Work(store, executor, None))
    chosen = chosen_on(study, tables)
    judged = [
        judge(study, number, tables, grounds.get(claim["id"]), chosen[claim["id"]], otherwise.get(claim["id"], ()))
        for number, claim in enumerate(study.claims)
    ]
    figures: list[Figure] = [draw(study, number, tables) for number in range(len(study.pictures))]
    runs = [run for grid in grids if grid.results is not None for run in _provenance(grid.results)]
    return Outcome.of(study, judged, figures, shown, runs, tables.data(), partial(_inputs_of, grids))


def _finish_together(grids: list[list[Spec]], work: Work) -> None:
    """Runs all grids together, each in its own chunks, so that no core waits for the last run of one grid."""
    firsts = accumulate(map(len, grids), initial=0)
    chunks = (
        replace(chunk, first=first + chunk.first)
        for first, specs in zip(firsts, grids, strict=False)
        for chunk in chunks_of_runs(specs)
    )
    finish(chunks, sum(map(len, grids)), store=work.store, executor=work.executor, progress=work.progress)


@dataclass(frozen=True)
class GridResult:
    """A grid with its results."""

    grid: Mapping[str, Any]
    results: Results | None
    """The results; ``None`` for predictions."""
    keys: Sequence[Row] = ()
    """Values that replace the results' columns of the same names."""
    rows: Sequence[Row] = ()
    """For replays the recorded runs, for predictions all rows."""

    def add_to(self, tables: Tables) -> None:
        """Adds its tables."""
        name = self.grid["name"]
        if self.results is None:
            tables.add_rows(name, self.rows)
            return
        tables.add_results(self.grid, self.results, self.keys)
        if self.rows:
            tables.add_rows(f"{name}_recorded", self.rows)


def run_grid(study: Study, number: int, specs: list[Spec], work: Work) -> GridResult:
    """Runs the specifications of a grid."""
    grid = study.grids[number]
    if grid["kind"] == "replay":
        replays = replayed(study, number, work.progress)
        return GridResult(grid, replays.results, replays.keys, replays.recorded)
    if grid["kind"] == "predict":
        return GridResult(grid, None, rows=predicted(study, number, work.store, work.progress))
    results = run_chunks(
        specs, swept=swept(grid["settings"]), store=work.store, executor=work.executor, progress=work.progress
    )
    return GridResult(grid, results)


def tables_of(study: Study, grids: Sequence[GridResult], choices: Answers | None = None) -> Tables:
    """Returns the tables of grids and of choices, and derived ones."""
    tables = Tables(study)
    if choices is not None:
        choices.add_to(tables)
    for grid in grids:
        grid.add_to(tables)
    for number, table in enumerate(study.tables):
        tables.derive(f"tables[{number}].sql", table["name"], table["sql"])
    return tables


def _with_alternatives(
    study: Study, grids: Sequence[GridResult], choices: Answers, work: Work
) -> dict[str, list[Alternative]]:
    """Returns the results of claims with other choices, where their documents leave them open."""
    results: dict[str, list[Alternative]] = defaultdict(list)
    numbers = {claim["id"]: number for number, claim in enumerate(study.claims)}
    for choice in study.open:
        for other in choice["others"]:
            changed = with_alternative(study, choice, other)
            again = [
                _as_chosen(run_grid(changed, number, specified(changed, number), work), grid)
                if grid.grid["name"] in choice["grids"]
                else grid
                for number, grid in enumerate(grids)
            ]
            tables = tables_of(study, again, choices)
            for claim in choice["on"]:
                compared = compare(study, numbers[claim], tables)
                results[claim].append(Alternative(choice["what"], other["what"], compared.describe(), compared.agrees))
    return results


def _as_chosen(other: GridResult, grid: GridResult) -> GridResult:
    """Returns runs of another choice under the original names, by which queries identify them."""
    if grid.results is None:
        return replace(other, grid=grid.grid)
    own = grid.results.column_names
    named = ("system", "workload", *own[own.index("version") + 1 :])
    keys = [{key: row[key] for key in named} for row in grid.results]
    if grid.keys:
        keys = [key | recorded for key, recorded in zip(keys, grid.keys, strict=True)]
    return replace(other, grid=grid.grid, keys=keys)


def _inputs_of(grids: Sequence[GridResult]) -> list[RunInputs]:
    """Returns the inputs of the grids' runs, so that they can be recomputed."""
    return [inputs for grid in grids if grid.results is not None for inputs in requests_of(grid.results)]


def _provenance(results: Results) -> Iterator[Provenance]:
    """Yields the provenance of each run, with each description once."""
    seen: set[tuple[str, int]] = set()
    for index, row in enumerate(results):
        key = (row["description_hash"], row["seed"])
        if key in seen:
            continue
        seen.add(key)
        whole = results.whole(index)
        described = {"system": whole["system"]["description"], "workload": whole["workload"]}
        yield Provenance(
            system=row["system"],
            workload=row["workload"],
            seed=row["seed"],
            version=row["version"],
            description_hash=row["description_hash"],
            description=json.dumps(described, sort_keys=True, separators=(",", ":")),
        )


def _shares(parts: list[int], progress: Progress | None) -> Iterator[Progress | None]:
    """Yields a progress function for each part of the work, weighted by its number of runs."""
    whole = max(1, sum(parts))
    done = 0
    for part in parts:
        yield None if progress is None else partial(_report_share, progress, done / whole, part / whole)
        done += part


def _report_share(progress: Progress, before: float, share: float, part: float) -> None:
    progress(before + share * part)
