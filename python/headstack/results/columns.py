"""`Shown`: the columns of printed results and the formats of their cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from headstack.io.columns import Column


def format_ms(value: float | None) -> str:
    """Formats a figure with up to four significant digits, for example ``0.05``, ``12.47``, ``348.3`` or ``16,706``."""
    if value is None:
        return ""
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def format_us(value_ms: float | None) -> str:
    """Formats a time in microseconds, with three or four significant digits."""
    return "" if value_ms is None else f"{1000 * value_ms:.1f}" if value_ms < 0.1 else f"{1000 * value_ms:,.0f}"


def _short_ms(value: float | None) -> str:
    """Formats a time in ms, with three significant digits below 1 ms, because operations on files may take less than a
    microsecond."""
    return format_ms(value) if value is None or value >= 1 else f"{value:.3g}"


def _nonzero(value: float | None) -> str:
    return format_ms(value or None)


def _half_width(value: float | None) -> str:
    return "too short" if value is None else format_ms(value)


def _half_width_us(value_ms: float | None) -> str:
    return "too short" if value_ms is None else format_us(value_ms)


def format_per_s(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def format_value(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _state(value: bool) -> str:
    return "saturated" if value else ""


def format_capacity(value_gb: float | None) -> str:
    if value_gb is None:
        return ""
    return f"{value_gb / 1000:.4g}TB" if value_gb >= 1000 else f"{value_gb:.4g}GB"


@dataclass(frozen=True, kw_only=True)
class Shown(Column):
    """A printed column of results."""

    name: str
    format: Callable[[Any], str]
    optional: bool = False
    """Whether the column is left out if all its cells are empty."""

    def at_levels(self, levels: str) -> Shown:
        """Returns the column with the levels of its prediction intervals in the heading, for example ``80 %``."""
        return replace(self, heading=f"{self.heading.splitlines()[0]}\n{levels}") if self.is_model else self

    @property
    def is_model(self) -> bool:
        """Whether the column has prediction intervals."""
        return self.name.endswith("_model")

    def in_microseconds(self) -> Shown:
        """Returns the column with times in microseconds; returns a column without times unchanged."""
        formats = {format_ms: format_us, _half_width: _half_width_us}
        if not self.name.endswith("_ms") or self.format not in formats:
            return self
        return replace(self, heading=self.heading.replace("\nms", "\nµs"), format=formats[self.format])


def _some(value: Any) -> str:
    return f"{value:,}" if value else ""


SHOWN = (
    Shown("mode", name="mode", format=format_value, optional=True, is_text=True, rank=0),
    Shown("capacity", name="capacity_gb", format=format_capacity, optional=True, rank=4),
    Shown("depth", name="depth", format=format_value, optional=True, rank=0),
    Shown("offered\nIOPS", name="rate_per_s", format=format_per_s, optional=True, rank=0),
    Shown("IOPS", name="iops", format=format_per_s, rank=0),
    Shown("IOPS\n90 %", name="iops_model", format=format_value, optional=True, rank=1),
    Shown("speedup", name="speedup", format=format_value, optional=True, rank=1),
    Shown("MB/s", name="mb_per_s", format=format_ms, rank=3),
    Shown("mean\nms", name="mean_ms", format=format_ms, rank=0),
    Shown("mean\n90 %", name="mean_model", format=format_value, optional=True, rank=2),
    Shown("within\nlimit", name="within", format=format_value, optional=True, is_text=True, rank=0),
    Shown("mean\n±", name="half_width_ms", format=_half_width, optional=True, rank=5),
    Shown("p50\nms", name="p50_ms", format=format_ms, rank=6),
    Shown("p50\n90 %", name="p50_model", format=format_value, optional=True, rank=6),
    Shown("p99\nms", name="p99_ms", format=format_ms, rank=1),
    Shown("p99\n90 %", name="p99_model", format=format_value, optional=True, rank=2),
    Shown("p99.9\nms", name="p999_ms", format=format_ms, rank=7),
    Shown("errors", name="errors", format=_some, optional=True, rank=0),
    Shown("util\n%", name="utilization_percent", format=_percent, rank=3),
    Shown("bottleneck", name="bottleneck", format=format_value, is_text=True, rank=3),
    # A line below the table counts the saturated runs.
    Shown("", name="saturated", format=_state, optional=True, is_text=True, rank=8),
)

SHOWN_OPERATIONS = (
    Shown("run", name="workload", format=format_value, is_text=True, rank=0),
    Shown("operation", name="operation", format=format_value, is_text=True, rank=0),
    Shown("count", name="count", format=format_value, rank=3),
    Shown("errors", name="errors", format=format_value, rank=4),
    Shown("per s", name="count_per_s", format=format_per_s, rank=0),
    Shown("MB/s", name="mb_per_s", format=_nonzero, rank=3),
    Shown("mean\nms", name="mean_ms", format=_short_ms, rank=0),
    Shown("p50\nms", name="p50_ms", format=_short_ms, rank=2),
    Shown("p99\nms", name="p99_ms", format=_short_ms, rank=1),
    Shown("max\nms", name="max_ms", format=_short_ms, rank=4),
)
"""Columns for operations on files and folders."""

SHOWN_STREAMS = (
    Shown("run", name="run", format=format_value, rank=0),
    Shown("system", name="system", format=format_value, is_text=True, rank=2),
    Shown("stream", name="stream", format=format_value, is_text=True, rank=0),
    Shown("IOPS", name="iops", format=format_per_s, rank=0),
    Shown("MB/s", name="mb_per_s", format=format_ms, rank=3),
    Shown("mean\nms", name="mean_ms", format=format_ms, rank=0),
    Shown("p99\nms", name="p99_ms", format=format_ms, rank=4),
    Shown("", name="facts", format=format_value, is_text=True, least=24),
)
