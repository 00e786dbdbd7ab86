"""What latency a disk should show under its load: what its peers show at the same moment, what it has shown itself,
or what its twin would."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from headstack.judging.evidence import POOL_MAX, Array, correlation_time
from headstack.judging.steps import FEATURES

STEPS_NEEDED = 96
"""Of a disk's own past: a day, so that day and night are in it."""
PEERS_MIN = 3
PEER_STEPS = (12, 24, 48, 96)
"""After how many steps residuals of peers are first known, known better, and known for good."""
COMPARABLE = (math.log(2.0), math.log(2.0), 0.25)
"""How far rate, size and share of reads of a disk may be from those of its peers; slopes are not trusted further."""
SICK = math.log(1.15)
"""A disk whose residual is above it in the middle teaches nothing of health."""
UNLIKE = 3.0
"""Nor does one whose residuals vary so many times as much as those of its peers."""
RIDGE = 1e-3
KEPT_EVERY = 8
WEEK = 672
"""Steps. What is younger is not learnt from: a disk that slowly fails would teach that it is well."""
DRIFT = math.log(1.1)
"""How far all that is learnt later may move what was expected of the first day."""

NULL = np.array(None, dtype=object)


class Twin(Protocol):
    """A model of healthy disks."""

    def latency_s(self, stream: str, depth: float, size_bytes: float | None, read_share: float) -> float | None:
        """The mean of a kind of request; ``None`` where the model cannot say."""


@dataclass
class Health:
    """What residuals of healthy disks are like: a sample, and how many steps are worth an independent one."""

    pool: Array = field(default_factory=lambda: np.empty(0))
    time: float = 1.0

    @staticmethod
    def of(residuals: Array) -> Health:
        """Of disks (rows) over steps. Each is centred: what differs between them for good is not noise."""
        centred = residuals - np.nanmedian(residuals, axis=1, keepdims=True)
        values = centred[np.isfinite(centred)]
        return Health(values[:: max(1, math.ceil(len(values) / POOL_MAX))], correlation_time(residuals))


def leave_one_out_median(values: Array) -> Array:
    """Of each in a row the median of the others; NaN with fewer than ``PEERS_MIN`` of them.

    >>> import numpy as np
    >>> from headstack.judging.expectation import leave_one_out_median
    >>> leave_one_out_median(np.array([[1.0, 2.0, 3.0, 50.0]])).tolist()
    [[3.0, 3.0, 2.0, 2.0]]
    """
    order = np.argsort(values, axis=1)
    ranks = np.argsort(order, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    left = np.isfinite(values).sum(axis=1, keepdims=True) - 1
    low, high = (left - 1) // 2, left // 2
    middle = [np.take_along_axis(ordered, np.clip(at + (ranks <= at), 0, None), axis=1) for at in (low, high)]
    return np.where((left >= PEERS_MIN) & np.isfinite(values), (middle[0] + middle[1]) / 2, math.nan)


@dataclass
class Peers:
    """A group of disks and one kind of request."""

    slopes: Array = field(default_factory=lambda: np.zeros(3))
    """Of the logarithm of latency over rate, size and share of reads, within the group."""
    health: Health = field(default_factory=Health)
    steps: list[tuple[int, Array, Array]] = field(default_factory=list)
    """The first ones: number, latencies, features; empty when residuals are known for good."""
    known: int = 0
    """How many of ``PEER_STEPS`` were reached."""

    def residuals(self, latency: Array, features: Array) -> Array:
        """Of each disk, against the others at the same moment; NaN where their loads are too different."""
        load = features[:, :3]
        off = load - np.nanmedian(load, axis=0) if np.isfinite(load).any() else load
        comparable = (np.abs(off) <= np.array(COMPARABLE)).all(axis=1)
        level = np.where(comparable, latency - off @ self.slopes, math.nan)
        return np.asarray(level - leave_one_out_median(level[None, :])[0])

    def learn(self, step: int, latency: Array, features: Array) -> bool:
        """Takes a step in; true when residuals are first known."""
        if self.known == len(PEER_STEPS) or np.isfinite(latency).sum() <= PEERS_MIN:
            return False
        self.steps.append((step, latency, features))
        if len(self.steps) < PEER_STEPS[self.known]:
            return False
        self._fit()
        self.known += 1
        return self.known == 1

    def _fit(self) -> None:
        members = len(self.steps[-1][1])
        latency = np.full((members, len(self.steps)), math.nan)
        load = np.full((members, len(self.steps), 3), math.nan)
        for place, (_, values, features) in enumerate(self.steps):
            latency[: len(values), place] = values
            load[: len(values), place] = features[:, :3]
        with np.errstate(all="ignore"):
            off = latency - np.nanmedian(latency, axis=0)
            moved = load - np.nanmedian(load, axis=0)
        healthy = np.abs(np.nan_to_num(np.nanmedian(off, axis=1), nan=math.inf)) <= SICK
        good = np.isfinite(off) & healthy[:, None] & (np.abs(moved) <= np.array(COMPARABLE)).all(axis=2)
        if good.sum() > 30:
            x = moved[good]
            self.slopes = np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(3), x.T @ off[good])
        residuals = np.array([self.residuals(values, features) for _, values, features in self._padded()]).T
        # One that is ill at times alone would teach that its worst hours are health.
        with np.errstate(all="ignore"):
            spread = np.nanstd(residuals, axis=1)
            healthy &= ~(spread > UNLIKE * np.nanmedian(spread[healthy])) if healthy.any() else False
        if healthy.any():
            self.health = Health.of(residuals[healthy])

    def _padded(self) -> list[tuple[int, Array, Array]]:
        """The steps, with as many disks in each as in the last."""
        members = len(self.steps[-1][1])

        def padded(values: Array) -> Array:
            more = [(0, members - len(values))] + [(0, 0)] * (values.ndim - 1)
            return np.pad(values, more, constant_values=math.nan)

        return [(step, padded(latency), padded(features)) for step, latency, features in self.steps]

    def first(self) -> list[tuple[int, Array, Array]]:
        """The steps that residuals were learnt from; they are judged, too: a disk may be slow from the start."""
        return self._padded()

    def forget(self) -> None:
        """Drops the steps when no more is learnt from them."""
        if self.known == len(PEER_STEPS):
            self.steps = []

    def plain(self) -> dict[str, Any]:
        # What was not seen is null: NaN is no JSON.
        steps = [[step, *(np.where(np.isnan(a), NULL, a).tolist() for a in at)] for step, *at in self.steps]
        return {"slopes": self.slopes.tolist(), "known": self.known, "steps": steps} | _plain(self.health)

    @staticmethod
    def of(plain: dict[str, Any]) -> Peers:
        steps = [(step, np.array(a, dtype=float), np.array(b, dtype=float)) for step, a, b in plain["steps"]]
        return Peers(np.array(plain["slopes"]), _health(plain), steps, plain["known"])


@dataclass
class Past:
    """What a disk has shown of one kind of request: latency over load, learnt in its first day, and later from health
    that is a week old."""

    steps: list[list[float]] = field(default_factory=list)
    """Step, the logarithm of latency, and features."""
    young: list[list[float]] = field(default_factory=list)
    """Those of the last week, of which one in ``KEPT_EVERY`` is kept."""
    weights: Array = field(default_factory=lambda: np.zeros(6))
    low: Array = field(default_factory=lambda: np.zeros(4))
    high: Array = field(default_factory=lambda: np.zeros(4))
    health: Health = field(default_factory=Health)
    anchor: float = 0.0
    """What the first day expects in the middle of its load."""
    middle: Array = field(default_factory=lambda: np.zeros(4))
    known: bool = False

    def expected(self, features: Array) -> float:
        """NaN where such a load was never seen."""
        margin = 0.25 * (self.high - self.low) + np.array([0.2, 0.2, 0.1, math.inf])
        if not ((features >= self.low - margin) & (features <= self.high + margin)).all():
            return math.nan
        at = np.clip(features, self.low, self.high)
        # More in flight than ever: no healthy disk takes more than in proportion to it.
        return float(_basis(at[None, :])[0] @ self.weights + max(features[3] - at[3], 0.0))

    def learn(self, step: int, latency: float, features: Array, healthy: bool) -> None:
        """Takes a step in. What is not healthy teaches nothing."""
        row = [step, latency, *features.tolist()]
        if not self.known:
            self.steps.append(row)
            if len(self.steps) == STEPS_NEEDED:
                self._fit()
                self.middle = np.median(np.array(self.steps)[:, 2:], axis=0)
                self.anchor = self.expected(self.middle)
                self.known = True
            return
        if not healthy:
            # It may have begun before it was seen.
            self.young = []
        elif step % KEPT_EVERY == 0:
            self.young.append(row)
            if step - self.young[0][0] >= 2 * WEEK:
                old = [row for row in self.young if step - row[0] >= WEEK]
                self.young = self.young[len(old) :]
                self.steps = (self.steps + old)[-POOL_MAX:]
                self._fit()
                moved = self.expected(self.middle) - self.anchor
                if math.isfinite(moved):
                    self.weights[0] -= moved - min(max(moved, -DRIFT), DRIFT)

    def _fit(self) -> None:
        rows = np.array(self.steps)
        y, x = rows[:, 1], rows[:, 2:]
        self.low, self.high = np.quantile(x, [0.02, 0.98], axis=0)
        basis = _basis(np.clip(x, self.low, self.high))
        self.weights = _ridge(basis, y)
        # Each quarter is held against the others, in runs of six steps: a curve lies closer to what it was fitted to.
        quarter = np.arange(len(y)) // 6 % 4
        residuals = np.empty(len(y))
        for number in range(4):
            out = quarter == number
            residuals[out] = y[out] - basis[out] @ _ridge(basis[~out], y[~out])
        self.health = Health.of(residuals[None, :])

    def plain(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("weights", "low", "high", "middle")}
        told = {"steps": self.steps, "young": self.young, "anchor": self.anchor, "known": self.known}
        return arrays | told | _plain(self.health)

    @staticmethod
    def of(plain: dict[str, Any]) -> Past:
        told: dict[str, Any] = {name: np.array(plain[name]) for name in ("weights", "low", "high", "middle")}
        told |= {name: plain[name] for name in ("steps", "young", "anchor", "known")}
        return Past(**told, health=_health(plain))


def _basis(features: Array) -> Array:
    return np.column_stack([np.ones(len(features)), features, features[:, 0] ** 2])


def _ridge(basis: Array, y: Array) -> Array:
    """Least squares of what is robust: twice, the second time with those left out that are far off."""
    scale = np.maximum(basis.std(axis=0), 1e-9)
    scale[0] = 1.0
    centre = basis.mean(axis=0)
    centre[0] = 0.0
    x = (basis - centre) / scale
    # A feature that does not change says nothing, and gets no weight.
    x[:, basis.std(axis=0) < 1e-6] = 0.0
    x[:, 0] = 1.0
    penalty = RIDGE * len(y) * np.diag([0.0] + [1.0] * (basis.shape[1] - 1)) + 1e-9 * np.eye(basis.shape[1])
    good = np.ones(len(y), dtype=bool)
    for _ in range(2):
        weights = np.linalg.solve(x[good].T @ x[good] + penalty, x[good].T @ y[good])
        off = np.abs(y - x @ weights)
        good = off <= 4.0 * max(float(np.median(off)), 1e-6)
    weights = weights / scale
    weights[0] -= float((weights[1:] * centre[1:]).sum())
    return np.asarray(weights)


def expected_of_twin(twin: Twin, stream: str, features: Array) -> float:
    """The logarithm of what a twin says; NaN where it cannot."""
    _, size, share, depth = (features[FEATURES.index(name)] for name in FEATURES)
    size_bytes = math.exp(size) if size else None
    told = twin.latency_s(stream, max(math.exp(depth), 1.0), size_bytes, share)
    return math.log(told) if told else math.nan


def _plain(health: Health) -> dict[str, Any]:
    return {"pool": health.pool.tolist(), "time": health.time}


def _health(plain: dict[str, Any]) -> Health:
    return Health(np.array(plain["pool"]), plain["time"])
