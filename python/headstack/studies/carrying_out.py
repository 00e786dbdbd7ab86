"""From a study file to its outcome."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from headstack.chunks import run_chunks
from headstack.options import Spec
from headstack.report.figures import Figure, Provenance, Table
from headstack.results import Results
from headstack.runs import Progress, swept
from headstack.studies.claims import judge
from headstack.studies.files import Study, load, shown_name
from headstack.studies.grids import predicted, replayed, specified
from headstack.studies.outcome import Outcome
from headstack.studies.pictures import draw, table_of
from headstack.studies.tables import Tables


@dataclass(frozen=True)
class Work:
    """Where the runs of a study are carried out, and where finished ones are kept."""

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
    """Carries out a study, by its name or folder.

    ``executor`` is ``"local"``, all cores of this machine, or ``"dask://HOST:PORT"``. Finished runs are kept in the
    folder ``store`` and never done twice; replays are. ``progress`` hears the share done. Raises ``InputError`` with
    file, line and key before anything is run where that can be known, and where a query fails or a published row has no
    run; ``RunError`` when a run fails.
    """
    study = study if isinstance(study, Study) else load(study)
    specs = [specified(study, number) for number in range(len(study.grids))]
    tables = Tables(study)
    runs: list[Provenance] = []
    for number, show in enumerate(_shares(specs, progress)):
        runs += _carry_out(study, number, specs[number], tables, Work(store, executor, show))
    for number, published in enumerate(study.published):
        tables.match(number, published)
    shown: list[Table] = []
    for number, table in enumerate(study.tables):
        tables.derive(f"tables[{number}]", table["name"], table["sql"])
        if table["title"] is not None:
            found = tables.query(f"tables[{number}]", f"from {table['name']}")
            shown.append(table_of(shown_name(table), table["title"], found))
    judged = [judge(study, number, tables) for number in range(len(study.claims))]
    figures: list[Figure] = [draw(study, number, tables) for number in range(len(study.pictures))]
    return Outcome.of(study, judged, figures, shown, runs, tables.data())


def _carry_out(study: Study, number: int, specs: list[Spec], tables: Tables, work: Work) -> list[Provenance]:
    """One grid: its tables are added; what its runs need to be made again."""
    grid = study.grids[number]
    if grid["kind"] == "replay":
        replays = replayed(study, number, work.progress)
        results = replays.results
        tables.add_results(grid, results, replays.keys)
        tables.add_rows(f"{grid['name']}_recorded", replays.recorded)
    elif grid["kind"] == "predict":
        tables.add_rows(grid["name"], predicted(study, number))
        return []
    else:
        results = run_chunks(
            specs, swept=swept(grid["settings"]), store=work.store, executor=work.executor, progress=work.progress
        )
        tables.add_results(grid, results)
    return list(_provenance(results))


def _provenance(results: Results) -> Iterator[Provenance]:
    """Of each run, once for each description."""
    told: set[tuple[str, int]] = set()
    for index, row in enumerate(results):
        key = (row["description_hash"], row["seed"])
        if key in told:
            continue
        told.add(key)
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


def _shares(specs: list[list[Spec]], progress: Progress | None) -> Iterator[Progress | None]:
    """What hears of each grid's progress; a grid counts as many shares as it has runs."""
    whole = max(1, sum(map(len, specs)))
    done = 0
    for one in specs:
        yield None if progress is None else partial(_tell, progress, done / whole, len(one) / whole)
        done += len(one)


def _tell(progress: Progress, before: float, share: float, part: float) -> None:
    progress(before + share * part)
