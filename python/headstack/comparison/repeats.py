"""``Repeats``: runs of one setting, with their mean, its interval and the variation between runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev

from headstack.comparison.differences.headline import digits, unit_of
from headstack.comparison.differences.runs import FIGURES, NAMES, Side, logarithms
from headstack.comparison.differences.student import t_of
from headstack.io.columns import Column, Figures, Names
from headstack.io.counts import counted
from headstack.results.words import UNDECIDED


@dataclass(frozen=True)
class Spread:
    """A figure under one load, over all runs with this load."""

    load: str
    figure: str
    runs: int
    mean: float
    """Geometric mean over the runs."""
    low: float
    """Lower bound of the 95 % interval of the mean. With one run, ``low`` and ``high`` equal the mean."""
    high: float
    deviation: float | None
    """Standard deviation of the runs relative to the mean; ``None`` for one run."""

    @property
    def name(self) -> str:
        """The figure with its unit."""
        return f"{NAMES[self.figure]}, {unit_of(self.figure)}"


@dataclass(frozen=True)
class Repeats:
    """The runs of one setting."""

    side: Side
    spreads: tuple[Spread, ...]

    @property
    def headline(self) -> str:
        """Returns a sentence with the first figure of the first load, its interval, and the variation between runs."""
        count = len(self.side.runs)
        if not self.spreads:
            return f"{UNDECIDED}: no figure is in all {counted(count, 'run')}"
        spread = max(self.spreads, key=lambda spread: spread.runs)
        value = f"{NAMES[spread.figure]} {digits(spread.mean)} {unit_of(spread.figure)}"
        load = f" ({spread.load})" if len({other.load for other in self.spreads}) > 1 else ""
        if spread.deviation is None:
            return f"{self.side.name}: {value}{load} in one run, which does not show how much runs vary"
        return (
            f"{self.side.name}: {value}{load} (95 % interval {digits(spread.low)} to {digits(spread.high)}) over "
            f"{counted(spread.runs, 'run')}, which vary by {100 * spread.deviation:.2g} %"
        )

    def table(self) -> tuple[list[Column], list[list[str]]]:
        """Returns the columns, and the cells as text."""
        columns: list[Column] = [
            Names("load"),
            Names("figure"),
            Figures("runs", 2),
            Figures("mean", 0),
            Figures("95 % interval", 1),
            Figures("std. dev.\n%", 0),
        ]
        rows = [
            [
                spread.load,
                spread.name,
                f"{spread.runs:,}",
                digits(spread.mean),
                "" if spread.deviation is None else f"{digits(spread.low)} to {digits(spread.high)}",
                "" if spread.deviation is None else f"{100 * spread.deviation:.2g}",
            ]
            for spread in self.spreads
        ]
        return columns, rows

    @property
    def notes(self) -> list[str]:
        """Files that were skipped, and the next step."""
        step = "to compare with other runs: headstack compare NEW*.json --against OLD*.json"
        return [*(f"skipped: {reason}" for reason in self.side.bad), step]


def repeats_of(side: Side) -> Repeats:
    """Returns the spread of each figure over the runs of a side."""
    loads = list(dict.fromkeys(load for run in side.runs for load in run.outcomes))
    spreads = []
    for load in loads:
        runs = [run for run in side.runs if load in run.outcomes]
        for figure in FIGURES:
            values = logarithms(runs, load, figure)
            if values:
                spreads.append(_spread(load, figure, values))
    return Repeats(side, tuple(spreads))


def _spread(load: str, figure: str, values: list[float]) -> Spread:
    mean, count = fmean(values), len(values)
    if count < 2:
        return Spread(load, figure, count, math.exp(mean), math.exp(mean), math.exp(mean), None)
    deviation = stdev(values)
    half = t_of(0.975, count - 1.0) * deviation / math.sqrt(count)
    low, high = math.exp(mean - half), math.exp(mean + half)
    return Spread(load, figure, count, math.exp(mean), low, high, deviation)
