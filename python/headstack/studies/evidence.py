"""``grounds_of``: the basis of a claim's figures, determined by perturbing the results.

A study's tables are computed again with other results: each simulated figure is multiplied by a random factor. If a
claim's evidence does not change, it does not depend on simulations: it is arithmetic on published values, or repeats
descriptions and workloads. Otherwise evidence that is independent of results would count as a prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headstack.studies.study import Study, query_of
from headstack.studies.study_types import Claim
from headstack.studies.tables import Tables

FOUND_COLUMNS = ("found", "holds")
"""Columns of values that are compared with published figures."""
PUBLISHED = ("published", "low", "high")
"""Columns with published figures."""
TRIES = 12
"""Number of sets of perturbed results: Boolean evidence does not change with every one."""


class Rests(StrEnum):
    """The basis of evidence."""

    RUNS = "runs"
    """Simulation results."""
    INPUTS = "inputs"
    """Only descriptions, workloads or the choice of runs."""
    PUBLISHED = "published figures"
    """Only the document's own figures."""


@dataclass(frozen=True)
class Grounds:
    """The basis of a claim's evidence."""

    rests: Rests
    rows: tuple[bool, ...]
    """Whether each row depends on simulation results."""
    others: Rests = Rests.PUBLISHED
    """The basis of the rows without simulation results."""
    compares_runs: bool = False
    """Whether the values in the published column are simulation results too."""

    @property
    def is_of_runs(self) -> bool:
        """Whether at least half of the rows depend on simulation results."""
        return 2 * sum(self.rows) >= max(1, len(self.rows))


def grounds_of(study: Study, tables: Tables) -> dict[str, Grounds]:
    """Returns the basis of each claim with evidence, by its id."""
    claims = [(number, claim) for number, claim in enumerate(study.claims) if claim["sql"] is not None]
    before = {claim["id"]: _evidence(tables, number, claim) for number, claim in claims}
    published = {claim["id"]: _evidence(tables, number, claim, PUBLISHED) for number, claim in claims}
    compares_runs = dict.fromkeys(before, False)
    columns = {claim["id"]: tables.query(f"claims[{number}]", query_of(claim)).columns for number, claim in claims}
    changed = {claim["id"]: [False] * len(before[claim["id"]]) for _, claim in claims}
    for number in range(TRIES):
        left = [(place, claim) for place, claim in claims if not all(changed[claim["id"]])]
        if not left:
            break
        needed = set().union(*(tables.sources(query_of(claim)) for _, claim in left))
        with tables.other_results(number, needed):
            for place, claim in left:
                was, now = before[claim["id"]], _evidence(tables, place, claim)
                # Other results may select other rows, but their published values remain the document's.
                compares_runs[claim["id"]] |= "published" in columns[claim["id"]] and not {*published[claim["id"]]} & {
                    *_evidence(tables, place, claim, PUBLISHED)
                }
                # Rows are matched by their values. If their number changes, or Boolean evidence may hold by chance, a
                # change of one row counts for all.
                is_one = len(was) != len(now) or "holds" in columns[claim["id"]]
                for row in range(len(was)):
                    changed[claim["id"]][row] |= was != now if is_one else was[row] != now[row]
    grounds = {}
    for _, claim in claims:
        rows = tuple(changed[claim["id"]])
        others = Rests.INPUTS if tables.sources(query_of(claim)) & tables.made_here else Rests.PUBLISHED
        rests = Rests.RUNS if any(rows) else others
        grounds[claim["id"]] = Grounds(rests, rows, others, compares_runs[claim["id"]])
    return grounds


def _evidence(tables: Tables, number: int, claim: Claim, names: Sequence[str] = FOUND_COLUMNS) -> list[tuple[Any, ...]]:
    """Returns the columns of a claim's rows with these names."""
    result = tables.query(f"claims[{number}].sql", query_of(claim))
    kept = [place for place, name in enumerate(result.columns) if name in names]
    return [tuple(row[place] for place in kept) for row in result.rows]
