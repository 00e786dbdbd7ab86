"""``Tolerance`` and ``Power``: errors relative to published figures, and their comparison with a model that knows
nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from headstack.results.table import Row

POWER_ROWS = 4
"""Minimum number of rows: of fewer neither a constant nor an order is meaningful."""


@dataclass(frozen=True)
class Tolerance:
    """The permitted error of a figure."""

    amount: float
    unit: str
    """``%`` of the published figure, else the unit of the figures."""

    @classmethod
    def parse(cls, text: str) -> Tolerance | None:
        """Parses ``5%`` or ``6 points``; returns ``None`` for other text."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%|[A-Za-z/]\S*)?", text.strip())
        return None if match is None else cls(float(match[1]), match[2] or "")

    def __str__(self) -> str:
        return f"{self.amount:g}{self.unit if self.unit == '%' else f' {self.unit}'.rstrip()}"

    def error(self, row: Row) -> float:
        """Returns the error of the found figure in this unit; within a published range it is 0."""
        low, high = (row["published"], row["published"]) if "published" in row else (row["low"], row["high"])
        value = row["found"]
        nearest = min(max(value, low), high)
        if self.unit != "%":
            return float(value - nearest)
        return 0.0 if value == nearest else float(100 * (value - nearest) / abs(nearest))


@dataclass(frozen=True)
class Power:
    """Comparison of a claim's figures with a constant model, which should have larger errors."""

    mean: float
    """Mean absolute error, in the tolerance's unit."""
    null_mean: float
    """Mean absolute error of a constant: for each row the mean of the published values in the others."""
    null_within: int
    """Number of rows for which a constant is within the tolerance."""
    rows: int
    pairs_right: int
    """Number of pairs of rows with the published order."""
    pairs: int
    """Number of pairs with distinct published values."""

    @classmethod
    def of(cls, rows: Sequence[Row], tolerance: Tolerance) -> Power | None:
        """Computes it from rows with one published figure each; returns ``None`` for fewer than four."""
        if len(rows) < POWER_ROWS or any("published" not in row for row in rows):
            return None
        published = [float(row["published"]) for row in rows]
        total = math.fsum(published)
        null = [
            tolerance.error({**row, "found": (total - published_value) / (len(rows) - 1)})
            for row, published_value in zip(rows, published, strict=True)
        ]
        apart = [
            (published_value, other)
            for published_value, other in combinations(rows, 2)
            if published_value["published"] != other["published"]
        ]
        right = sum(
            (published_value["published"] < other["published"]) == (published_value["found"] < other["found"])
            and published_value["found"] != other["found"]
            for published_value, other in apart
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
    """Formats a figure with three or four digits."""
    if value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def mean(errors: Sequence[float]) -> float:
    return math.fsum(map(abs, errors)) / len(errors) if errors else 0.0
