"""``phases_of``: the phases of a record, within which rate and latency stay alike, and the means of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headstack.diagnosis.judging.suspects.record import PLACE, Array

PHASES_MAX = 16
INTERVALS_MIN = 3.0
"""Minimum number of intervals of a phase: fewer are one event."""
NOISE_MIN = 0.05
"""Minimum standard deviation of the logarithms of rate and latency within a phase: means of 15 s of a few hundred
requests vary by this much."""
PENALTY = 12.0
"""Gain in log-likelihood that a change must bring: e**-12 a place is once in some thousand logs of 200 rows."""
STEP_MIN = math.log(1.15)
"""Smaller changes are tolerated: latencies of healthy disks move by this much."""


@dataclass(frozen=True)
class Phase:
    """Consecutive rows of a record."""

    rows: Array

    def total(self, name: str) -> float:
        """Returns the sum of a column; NaN if any row lacks it."""
        return float(self.rows[:, PLACE[name]].sum())

    @property
    def start_s(self) -> float:
        return float(self.rows[0, PLACE["start_s"]])

    @property
    def end_s(self) -> float:
        return float(self.rows[-1, PLACE["start_s"]] + self.rows[-1, PLACE["length_s"]])

    @cached_property
    def length_s(self) -> float:
        return self.total("length_s")

    @cached_property
    def intervals(self) -> float:
        return self.total("intervals")

    @cached_property
    def rate(self) -> float:
        """Requests per second."""
        return self.total("requests") / self.length_s

    @cached_property
    def bytes_per_s(self) -> float:
        return self.total("bytes") / self.length_s

    @cached_property
    def in_flight(self) -> float:
        """Mean number of requests in flight; by Little's law if the source has only latencies."""
        stated = self.total("in_flight_s") / self.length_s
        return stated if math.isfinite(stated) else self.total("wait_s") / self.length_s

    @cached_property
    def latency_s(self) -> float:
        """Mean latency over all requests."""
        return self._mean("wait_s", "requests")

    @cached_property
    def busy(self) -> float:
        """Share of the time with requests in flight."""
        return self.total("busy_s") / self.length_s

    @cached_property
    def read_share(self) -> float:
        return self._mean("reads", "requests")

    def kind_latency_s(self, kind: str) -> float:
        """Returns the mean latency of reads or writes (``read``, ``write``)."""
        return self._mean(f"{kind}_wait_s", f"{kind}s")

    def size_bytes(self, kind: str) -> float:
        """Returns the mean size of reads or writes."""
        return self._mean(f"{kind}_bytes", f"{kind}s")

    def per_s(self, name: str) -> float:
        return self.total(name) / self.length_s

    def share(self, name: str) -> float:
        """Returns the share of the time of ``cpu_idle_s`` and the like."""
        return self.total(name) / self.length_s

    @cached_property
    def rate_deviation(self) -> float:
        """Relative standard deviation of the rate of single intervals, from the changes between consecutive ones, so
        that slow growth does not count; NaN with less than three changes."""
        return self._deviation("rate_steps")

    @cached_property
    def bytes_deviation(self) -> float:
        """The same for bytes per second."""
        return self._deviation("bytes_steps")

    def _deviation(self, name: str) -> float:
        # The first row's change is that from the phase before.
        rows = self.rows[1:] if len(self.rows) > 1 else self.rows
        steps = float(rows[:, PLACE["steps"]].sum())
        return math.sqrt(float(rows[:, PLACE[name]].sum()) / (2.0 * steps)) if steps >= 3 else math.nan

    def _mean(self, total: str, count: str) -> float:
        number = self.total(count)
        return self.total(total) / number if number > 0 else math.nan


def phases_of(rows: Array) -> list[Phase]:
    """Splits a record where the mean logarithm of rate or latency changes, by binary segmentation: the place with the
    greatest likelihood ratio first (Scott and Knott, 1974). Rows without requests are left out."""
    rows = rows[rows[:, PLACE["requests"]] > 0]
    if not len(rows):
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.log(rows[:, PLACE["requests"]] / rows[:, PLACE["length_s"]])
        latency = np.log(rows[:, PLACE["wait_s"]] / rows[:, PLACE["requests"]])
    series = np.column_stack([rate, latency])
    series = series[:, np.isfinite(series).all(axis=0)]
    # Noise of a row from the changes between neighbours, which a few steps hardly move.
    changes = np.abs(np.diff(series, axis=0))
    noise = np.maximum(1.05 * np.median(changes, axis=0) if len(changes) else np.full(series.shape[1], 1.0), NOISE_MIN)
    weights = rows[:, PLACE["intervals"]]
    parts, done = [(0, len(rows))], list[tuple[int, int]]()
    while parts:
        begin, end = parts.pop()
        at = None if len(parts) + len(done) + 1 >= PHASES_MAX else _change(series, noise, weights, begin, end)
        if at is None:
            done.append((begin, end))
        else:
            parts += [(begin, at), (at, end)]
    return [Phase(rows[begin:end]) for begin, end in sorted(done)]


def _change(series: Array, noise: Array, weights: Array, begin: int, end: int) -> int | None:
    """Returns the place of the greatest change within a part; ``None`` if there is none."""
    part, count = series[begin:end] / noise, weights[begin:end]
    sums, numbers = np.cumsum(part, axis=0), np.arange(1, len(part) + 1)
    joined = np.cumsum(count)
    is_place = (joined[:-1] >= INTERVALS_MIN) & (joined[-1] - joined[:-1] >= INTERVALS_MIN)
    if not is_place.any():
        return None
    left, total = numbers[:-1], len(part)
    before, after = sums[:-1] / left[:, None], (sums[-1] - sums[:-1]) / (total - left)[:, None]
    steps = after - before
    gains = (left * (total - left) / total)[:, None] * steps**2 / 2.0
    is_step = np.abs(steps) * noise >= STEP_MIN
    gain = np.where(is_place, (gains * is_step).sum(axis=1), 0.0)
    at = int(gain.argmax())
    return begin + at + 1 if gain[at] > PENALTY else None
