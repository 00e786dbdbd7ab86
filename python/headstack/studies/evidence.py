"""What a claim's figures rest on, seen by changing what they may rest on.

A study's tables are taken once more with other results in them: each figure that a simulation gave is multiplied by a
factor of its own. Where a claim's evidence stays as it was under all of these, no simulation is in it: it is arithmetic
of what was published, or repeats what descriptions and workloads state. Evidence that a thousandfold other results
could not change would otherwise pass for a prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headstack.studies.study import Study, query_of
from headstack.studies.study_types import Claim
from headstack.studies.tables import Tables

FOUND = ("found", "holds")
"""Columns with what is compared with published figures."""
PUBLISHED = ("published", "low", "high")
"""Columns with published figures."""
TRIES = 12
"""Sets of other results: evidence in words is true or false, and does not change with every one."""


class Rests(StrEnum):
    """What evidence rests on."""

    RUNS = "runs"
    """Results of simulations are in it."""
    INPUTS = "inputs"
    """Descriptions, workloads or the choice of runs alone."""
    PUBLISHED = "published figures"
    """The document's own figures alone."""


@dataclass(frozen=True)
class Grounds:
    """What a claim's evidence rests on."""

    rests: Rests
    rows: tuple[bool, ...]
    """Of each row, whether results of simulations are in it."""
    others: Rests = Rests.PUBLISHED
    """What the rows without results of simulations rest on."""
    compares_runs: bool = False
    """Whether the figures that stand as published are results of simulations too."""

    @property
    def is_of_runs(self) -> bool:
        """Returns true if at least half of the rows have results of simulations in them."""
        return 2 * sum(self.rows) >= max(1, len(self.rows))


def grounds_of(study: Study, tables: Tables) -> dict[str, Grounds]:
    """Of each claim that has evidence, by its id."""
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
                # Other results may give other rows, whose published figures are the document's all the same.
                compares_runs[claim["id"]] |= "published" in columns[claim["id"]] and not {*published[claim["id"]]} & {
                    *_evidence(tables, place, claim, PUBLISHED)
                }
                # Rows are told apart by their figures. Where there are others, or where what holds may hold by chance,
                # a change of one is a change of all.
                is_one = len(was) != len(now) or "holds" in columns[claim["id"]]
                for row in range(len(was)):
                    changed[claim["id"]][row] |= was != now if is_one else was[row] != now[row]
    found = {}
    for _, claim in claims:
        rows = tuple(changed[claim["id"]])
        others = Rests.INPUTS if tables.sources(query_of(claim)) & tables.made_here else Rests.PUBLISHED
        rests = Rests.RUNS if any(rows) else others
        found[claim["id"]] = Grounds(rests, rows, others, compares_runs[claim["id"]])
    return found


def _evidence(tables: Tables, number: int, claim: Claim, names: Sequence[str] = FOUND) -> list[tuple[Any, ...]]:
    """The columns of a claim's rows that have these names."""
    found = tables.query(f"claims[{number}].sql", query_of(claim))
    kept = [place for place, name in enumerate(found.columns) if name in names]
    return [tuple(row[place] for place in kept) for row in found.rows]
