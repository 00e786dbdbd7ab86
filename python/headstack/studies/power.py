"""How far figures are from what was published, and what that tells from chance."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from headstack.results.table import Row

POWER_ROWS = 4
"""Of fewer rows neither a constant nor an order tells anything."""


@dataclass(frozen=True)
class Tolerance:
    """How far a figure may be from the published one."""

    amount: float
    unit: str
    """``%`` of the published figure, else what the figures themselves are in."""

    @classmethod
    def parse(cls, text: str) -> Tolerance | None:
        """Of text such as ``5%`` or ``6 points``; ``None`` where it is neither."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%|[A-Za-z/]\S*)?", text.strip())
        return None if found is None else cls(float(found[1]), found[2] or "")

    def __str__(self) -> str:
        return f"{self.amount:g}{self.unit if self.unit == '%' else f' {self.unit}'.rstrip()}"

    def error(self, row: Row) -> float:
        """How far the figure found is from what was published, in this unit; within a published range it is 0."""
        low, high = (row["published"], row["published"]) if "published" in row else (row["low"], row["high"])
        found = row["found"]
        nearest = min(max(found, low), high)
        if self.unit != "%":
            return float(found - nearest)
        return 0.0 if found == nearest else float(100 * (found - nearest) / abs(nearest))


@dataclass(frozen=True)
class Power:
    """What the figures of a claim tell from chance: a model that knows less would miss more of them."""

    mean: float
    """How far what was found is off on average, in the tolerance's unit."""
    null_mean: float
    """The same of a constant: for each row the mean of what was published in the others."""
    null_within: int
    """Rows for which a constant is within the tolerance."""
    rows: int
    pairs_right: int
    """Pairs of rows whose order is that of what was published."""
    pairs: int
    """Pairs that were published apart."""

    @classmethod
    def of(cls, rows: Sequence[Row], tolerance: Tolerance) -> Power | None:
        """Of rows with one published figure each; ``None`` for fewer than four."""
        if len(rows) < POWER_ROWS or any("published" not in row for row in rows):
            return None
        published = [float(row["published"]) for row in rows]
        total = math.fsum(published)
        null = [
            tolerance.error({**row, "found": (total - one) / (len(rows) - 1)})
            for row, one in zip(rows, published, strict=True)
        ]
        apart = [(one, other) for one, other in combinations(rows, 2) if one["published"] != other["published"]]
        right = sum(
            (one["published"] < other["published"]) == (one["found"] < other["found"])
            and one["found"] != other["found"]
            for one, other in apart
        )
        return cls(
            mean([tolerance.error(row) for row in rows]),
            mean(null),
            sum(abs(error) <= tolerance.amount for error in null),
            len(rows),
            right,
            len(apart),
        )


def amount(value: float) -> str:
    """A figure in three or four digits."""
    if value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def mean(errors: Sequence[float]) -> float:
    return math.fsum(map(abs, errors)) / len(errors) if errors else 0.0
