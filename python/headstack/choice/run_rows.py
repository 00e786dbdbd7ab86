"""Rows of runs: the columns of results that a choice reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FIGURES = (
    *("iops", "mb_per_s", "rate_per_s", "utilisation_percent"),
    *(f"{name}_{end}ms" for name in ("mean", "p50", "p90", "p95", "p99", "p999") for end in ("", "low_", "high_")),
)
COLUMNS = ("impossible", "failed", "requests", "sampling", "saturated", "bottleneck", *FIGURES)


@dataclass(frozen=True, slots=True)
class RunRow:
    """The result of a run, or the reason why there was none."""

    requests: int = 0
    sampling: str = ""
    """The reason why a sampling error is not known."""
    saturated: bool = False
    """Whether requests pile up."""
    bottleneck: str = ""
    """The component that is busiest."""
    figures: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(FIGURES))
    """By ``FIGURES``, in the units of the table of results; ``None`` where a figure is not known."""
    impossible: str | None = None
    """The reason why the system cannot be run so."""

    @staticmethod
    def of(cells: Mapping[str, Any]) -> RunRow:
        """The row of a table of results; columns that it lacks are not known."""
        return RunRow(
            requests=int(cells["requests"] or 0),
            sampling=cells["sampling"] or "",
            saturated=bool(cells["saturated"]),
            bottleneck=cells["bottleneck"] or "",
            figures={name: cells.get(name) for name in FIGURES},
            impossible=cells.get("impossible"),
        )
