"""Tables of predictions for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headstack.io.columns import Column, Figures, Names, Words

if TYPE_CHECKING:
    from headstack.prediction.prediction import Prediction

COLUMNS = (
    Names("system"),
    Names("load"),
    Figures("IOPS", 0),
    Figures("IOPS\n90 %", 1),
    Figures("MB/s", 7),
    Figures("mean\nms", 0),
    Figures("mean\n90 %", 2),
    Figures("p50\nms", 3),
    Figures("p50\n90 %", 6),
    Figures("p99\nms", 1),
    Figures("p99\n90 %", 4),
    Figures("speedup\n%", 0),
    Figures("speedup\n90 %", 5),
    Words("bottleneck", 8),
)
GAINS = (11, 12)


def format_predictions(predictions: Sequence[Prediction]) -> tuple[list[Column], list[list[str]]]:
    """Returns the columns to print, and the cells as text."""
    has_gains = any(prediction.speedup_percent is not None for prediction in predictions)
    keep = [number for number in range(len(COLUMNS)) if has_gains or number not in GAINS]
    rows = [cells(prediction) for prediction in predictions]
    return [COLUMNS[number] for number in keep], [[row[number] for number in keep] for row in rows]


def cells(prediction: Prediction) -> list[str]:
    """Returns a prediction's row."""
    return [
        prediction.system,
        prediction.load + (", saturated" if prediction.saturated else ""),
        per_s(prediction.iops),
        f"{per_s(prediction.iops_low)} to {per_s(prediction.iops_high)}",
        f"{prediction.mb_per_s:.2f}",
        ms(prediction.mean_ms),
        interval(prediction.mean_ms_low, prediction.mean_ms_high),
        ms(prediction.p50_ms),
        interval(prediction.p50_ms_low, prediction.p50_ms_high),
        ms(prediction.p99_ms),
        interval(prediction.p99_ms_low, prediction.p99_ms_high),
        "" if prediction.speedup_percent is None else f"{prediction.speedup_percent:+.0f}",
        "" if prediction.speedup_percent is None else gain_interval(prediction),
        prediction.bottleneck,
    ]


def interval(low: float | None, high: float | None) -> str:
    """Formats the interval of a response time, which is open if the system may be saturated."""
    return "" if low is None else f"{ms(low)} to {ms(high) or 'saturated'}"


def gain_interval(prediction: Prediction) -> str:
    """Formats the interval of a speedup, which is open if the first system may be saturated."""
    high = "any" if prediction.speedup_percent_high is None else f"{prediction.speedup_percent_high:+.0f}"
    return f"{prediction.speedup_percent_low:+.0f} to {high}"


def per_s(value: float) -> str:
    """Formats a rate."""
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def ms(value: float | None) -> str:
    """Formats a time."""
    return "" if value is None else f"{value:.2f}" if value < 1000 else f"{value:,.0f}"
