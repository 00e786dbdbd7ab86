"""What latency a disk should show under its load: what its peers show at the same moment, or what its twin would.
What it has shown itself is in ``past.py``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from headstack.judging.evidence import POOL_MAX, Array, correlation_time
from headstack.judging.steps import FEATURES

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
        return {"slopes": self.slopes.tolist(), "known": self.known, "steps": steps} | plain_health(self.health)

    @staticmethod
    def of(plain: dict[str, Any]) -> Peers:
        steps = [(step, np.array(a, dtype=float), np.array(b, dtype=float)) for step, a, b in plain["steps"]]
        return Peers(np.array(plain["slopes"]), health_of(plain), steps, plain["known"])


def expected_of_twin(twin: Twin, stream: str, features: Array) -> float:
    """The logarithm of what a twin says; NaN where it cannot."""
    _, size, share, depth = (features[FEATURES.index(name)] for name in FEATURES)
    size_bytes = math.exp(size) if size else None
    told = twin.latency_s(stream, max(math.exp(depth), 1.0), size_bytes, share)
    return math.log(told) if told else math.nan


def plain_health(health: Health) -> dict[str, Any]:
    """Health, as plain data."""
    return {"pool": health.pool.tolist(), "time": health.time}


def health_of(plain: dict[str, Any]) -> Health:
    """Health that ``plain_health`` made plain."""
    return Health(np.array(plain["pool"]), plain["time"])
