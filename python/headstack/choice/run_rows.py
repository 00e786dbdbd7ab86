"""``RunRow``: the columns of results that a choice uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headstack.results.reasons import TooShort, too_short

FIGURES = (
    *("iops", "mb_per_s", "rate_per_s", "utilization_percent"),
    *(f"{name}_{end}ms" for name in ("mean", "p50", "p90", "p95", "p99", "p999") for end in ("", "low_", "high_")),
)
COLUMNS = ("impossible", "failed", "requests", "sampling", "sampling_code", "saturated", "bottleneck", *FIGURES)


@dataclass(frozen=True, slots=True)
class RunRow:
    """The result of a run, or the reason why there is none."""

    requests: int = 0
    sampling: str = ""
    """The reason why the sampling error is unknown."""
    sampling_code: TooShort | None = None
    """Code of this reason."""
    saturated: bool = False
    """Whether the queue grows without bound."""
    bottleneck: str = ""
    """The busiest component."""
    figures: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(FIGURES))
    """Values by ``FIGURES``, in the units of the table of results; ``None`` if unknown."""
    impossible: str | None = None
    """The reason why the system cannot be run."""

    @staticmethod
    def of(cells: Mapping[str, Any]) -> RunRow:
        """Returns the row of a table of results; missing columns are unknown."""
        return RunRow(
            requests=int(cells["requests"] or 0),
            sampling=cells["sampling"] or "",
            sampling_code=too_short(cells["sampling_code"]),
            saturated=bool(cells["saturated"]),
            bottleneck=cells["bottleneck"] or "",
            figures={name: cells.get(name) for name in FIGURES},
            impossible=cells.get("impossible"),
        )
