"""Steady state by SNIA's Solid State Storage Performance Test Specification (version 2.0.2).

Over a window of five rounds of the tracked variable, the difference between the largest and the smallest value is at
most 20 % of the average; and the regression line rises or falls by at most 10 % of the average from the first round of
the window to the last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WINDOW = 5
"""Number of rounds in a window."""
RANGE_MAX, SLOPE_MAX = 0.20, 0.10
"""Maximum range of the values, and maximum excursion of the regression line, as shares of the average."""
ROUNDING = 1e-12
"""Tolerance for rounding errors of a share exactly at the limit."""


@dataclass(frozen=True)
class Window:
    """Five consecutive rounds with their verdict."""

    first: int
    """Number of the first round, from 1."""
    values: tuple[float, ...]

    @property
    def last(self) -> int:
        """Number of the last round."""
        return self.first + len(self.values) - 1

    @property
    def mean(self) -> float:
        """The average; NaN if a value is not finite."""
        return math.fsum(self.values) / len(self.values) if all(map(math.isfinite, self.values)) else math.nan

    @property
    def is_measured(self) -> bool:
        """Whether the average is above 0; it is 0 if the device completes no request."""
        return 0 < self.mean < math.inf

    @property
    def slope(self) -> float:
        """The slope of the regression line per round (least squares)."""
        middle, mean = (len(self.values) - 1) / 2, self.mean
        if math.isnan(mean):
            return mean
        square = math.fsum((place - middle) ** 2 for place in range(len(self.values)))
        return math.fsum((place - middle) * (value - mean) for place, value in enumerate(self.values)) / square

    @property
    def intercept(self) -> float:
        """Value of the regression line at round 0."""
        return self.mean - self.slope * (self.first + self.last) / 2

    @property
    def range_share(self) -> float:
        """Range of the values as a share of their average; infinite if the average is 0."""
        return (max(self.values) - min(self.values)) / self.mean if self.is_measured else math.inf

    @property
    def slope_share(self) -> float:
        """Excursion of the regression line over the window as a share of the average; infinite if the average is 0."""
        return abs(self.slope) * (len(self.values) - 1) / self.mean if self.is_measured else math.inf

    @property
    def is_steady(self) -> bool:
        """Whether both shares are within their limits."""
        return self.range_share <= RANGE_MAX + ROUNDING and self.slope_share <= SLOPE_MAX + ROUNDING


def last_window(values: Sequence[float]) -> Window | None:
    """Returns the window of the last five rounds; ``None`` with fewer rounds."""
    if len(values) < WINDOW:
        return None
    return Window(len(values) - WINDOW + 1, tuple(values[-WINDOW:]))


def steady_state(values: Sequence[float]) -> Window | None:
    """Returns the first steady window of one value per round; ``None`` if there is none.

    The values are values of the tracked variable, above 0; a window of zeros is never steady.
    """
    windows = (last_window(values[:end]) for end in range(WINDOW, len(values) + 1))
    return next((window for window in windows if window is not None and window.is_steady), None)
