"""``Peers``: the expected latency of a disk under its load, from its peers at the same time, or from its twin. The
expectation from its own past is in ``past.py``."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from headstack.diagnosis.judging.evidence import POOL_MAX, Array, correlation_time
from headstack.diagnosis.judging.levels import Slow, of_days, of_hours, usual_change
from headstack.diagnosis.judging.state import HealthState, PeersState
from headstack.diagnosis.judging.steps import FEATURES, REQUESTS_MIN

PEERS_MIN = 3
PEER_STEPS = tuple(range(12, 97, 12))
"""Numbers of steps after which residuals of peers are first known, refined, and final. Levels of days need all observed
days: with twelve quarters per day, each is one more."""
COMPARABLE = (math.log(2.0), math.log(2.0), 0.25)
"""Differences of rate, size and share of reads up to which peers are comparable; slopes are not trusted further. Above
them, a comparison is one-sided: see ``Compared``."""
SICK = math.log(1.15)
"""A disk whose median residual is above this is excluded from health."""
UNLIKE = 3.0
"""So is one whose residuals vary this many times as much as those of its peers."""
RIDGE = 1e-3

NULL = np.array(None, dtype=object)


class Expected(NamedTuple):
    """The mean latency that a model predicts, with its error."""

    latency_s: float
    apart: float | None = None
    """Half-width of the prediction interval of the logarithm; ``None`` if the error of the model is not known."""
    level: float | None = None
    """Share of devices within the interval, from 0 to 1."""
    why: str = ""
    """The reason for a missing interval."""

    def towards(self, other: Expected, part: float) -> Expected:
        """Returns a prediction between two, interpolated by logarithms; its interval is the wider one.

        >>> from headstack.diagnosis.judging.expectation import Expected
        >>> between = Expected(0.01, 0.1, 0.9).towards(Expected(0.04, None, None, "not known"), 0.5)
        >>> round(between.latency_s, 3), between.apart, between.why
        (0.02, None, 'not known')
        """
        latency_s = self.latency_s * (other.latency_s / self.latency_s) ** part
        if self.apart is None or other.apart is None or self.level is None or other.level is None:
            return Expected(latency_s, why=self.why if self.apart is None else other.why)
        return Expected(latency_s, max(self.apart, other.apart), min(self.level, other.level))


class Twin(Protocol):
    """A model of healthy disks."""

    system: str
    """Its name."""

    def expected(self, stream: str, depth: float, size_bytes: float | None, read_share: float) -> Expected | None:
        """Returns the mean latency of a kind of request; ``None`` if the model cannot predict it."""


class Compared(NamedTuple):
    """Residuals of disks at one time, and their meaning.

    Latency of a healthy disk grows with its load, so a disk that is slower than its peers under less load is certainly
    slow, and one that is no slower under more load is fine. The former occurs in closed loops: clients that wait for a
    slow disk issue fewer requests to it.
    """

    residuals: Array
    """The logarithm of latency over the expected one. Under less load a lower bound; NaN without a conclusion."""
    trust: Array
    """The standard deviation of health divided by the one expected here: a mean of fewer requests is noisier."""
    two_sided: npt.NDArray[np.bool_]
    """Whether a residual also proves health, which a lower bound does not."""

    @staticmethod
    def none(shape: int | tuple[int, ...]) -> Compared:
        """Returns disks without comparisons."""
        return Compared(np.full(shape, math.nan), np.ones(shape), np.zeros(shape, dtype=bool))


@dataclass
class Health:
    """The residuals of healthy disks: a sample, and their correlation time in steps."""

    pool: Array = field(default_factory=lambda: np.empty(0))
    time: float = 1.0
    hours: Slow = field(default_factory=Slow)
    """Variation of levels of two hours."""
    days: Slow = field(default_factory=Slow)
    """Variation of means of days."""
    change: float = 0.0
    """Typical change of residuals between steps, as from ``usual_change``; 0 if unknown."""

    @property
    def deviation(self) -> float:
        """Standard deviation of residuals; 0 if unknown."""
        return float(np.std(self.pool)) if len(self.pool) else 0.0

    @staticmethod
    def of(residuals: Array, steps: npt.NDArray[np.int64]) -> Health:
        """Returns the health from residuals of disks (rows) over steps, whose numbers are ``steps``. Each disk is
        centred: permanent differences between disks are not noise."""
        centred = residuals - np.nanmedian(residuals, axis=1, keepdims=True)
        values = centred[np.isfinite(centred)]
        pool = values[:: max(1, math.ceil(len(values) / POOL_MAX))]
        return Health(
            pool,
            correlation_time(residuals),
            of_hours(residuals, steps),
            of_days(residuals, steps),
            usual_change(residuals),
        )


def leave_one_out_median(values: Array) -> Array:
    """Returns for each value in a row the median of the others; NaN with fewer than ``PEERS_MIN`` of them.

    >>> import numpy as np
    >>> from headstack.diagnosis.judging.expectation import leave_one_out_median
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


def _median(values: Array, axis: int) -> Array:
    """Returns the median without missing values; NaN if there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmedian(values, axis=axis))


@dataclass
class Peers:
    """A group of disks and one kind of request."""

    offsets: Array = field(default_factory=lambda: np.empty(0))
    """Permanent offset of each healthy member from the others."""
    slopes: Array = field(default_factory=lambda: np.zeros(3))
    """Slopes of the logarithm of latency over rate, size and share of reads, within the group."""
    health: Health = field(default_factory=Health)
    steps: list[tuple[int, Array, Array]] = field(default_factory=list)
    """The first steps: number, latencies, features; empty when residuals are final."""
    stages: int = 0
    """Number of ``PEER_STEPS`` that were reached."""

    def compare(self, latency: Array, features: Array, stream: int) -> Compared:
        """Compares each disk with the others at the same time. The reference is the median of the disks with similar
        loads; a disk under less or more load is compared one-sidedly."""
        if not np.isfinite(latency).any():
            return Compared.none(len(latency))
        off, alike, lighter, heavier = _compare_loads(features, stream)
        edge = off.copy()
        edge[:, 0] = np.clip(off[:, 0], -COMPARABLE[0], COMPARABLE[0])
        # Outside of this range the slope over the share of reads is not trusted, in either direction.
        edge[~alike, 2] = 0.0
        level = latency - edge @ self.slopes
        like = np.where(alike, level, math.nan)
        own = leave_one_out_median(like[None, :])[0]
        enough = np.isfinite(like).sum() >= PEERS_MIN
        reference = np.where(alike, own, np.nanmedian(like) if enough else math.nan)
        usual = np.pad(self.offsets, (0, len(latency) - len(self.offsets)))
        residuals = np.where(alike | lighter | heavier, level - reference - usual, math.nan)
        residuals[heavier & ~(residuals <= 0.0)] = math.nan
        return Compared(residuals, self._trust(off[:, 0], lighter), (alike | heavier) & np.isfinite(residuals))

    def _trust(self, off: Array, lighter: npt.NDArray[np.bool_]) -> Array:
        """Returns the trust in means of fewer requests, whose noise grows at most with the square root of their number,
        and at most to that of ``REQUESTS_MIN`` exponential times."""
        noise = self.health.deviation or 1.0
        least = noise / math.hypot(noise, REQUESTS_MIN**-0.5)
        with np.errstate(invalid="ignore"):
            return np.where(lighter, np.maximum(np.exp(np.minimum(off, 0.0) / 2.0), least), 1.0)

    def learn(self, step: int, latency: Array, features: Array, stream: int) -> bool:
        """Adds a step; returns True when residuals are first known."""
        if self.stages == len(PEER_STEPS) or np.isfinite(latency).sum() <= PEERS_MIN:
            return False
        self.steps.append((step, latency, features))
        if len(self.steps) < PEER_STEPS[self.stages]:
            return False
        self._fit(stream)
        self.stages += 1
        return self.stages == 1

    def _fit(self, stream: int) -> None:
        members = len(self.steps[-1][1])
        latency = np.full((members, len(self.steps)), math.nan)
        load = np.full((members, len(self.steps), 3), math.nan)
        for place, (_, values, features) in enumerate(self.steps):
            latency[: len(values), place] = values
            load[: len(values), place] = features[:, :3]
        off, moved = latency - _median(latency, 0), load - _median(load, 0)
        healthy = np.abs(np.nan_to_num(_median(off, 1), nan=math.inf)) <= SICK
        good = np.isfinite(off) & healthy[:, None] & (np.abs(moved) <= np.array(COMPARABLE)).all(axis=2)
        if good.sum() > 30:
            self.slopes = _slopes(moved[good], off[good])
        self.offsets = np.zeros(members)
        comparisons = [self.compare(values, features, stream) for _, values, features in self._padded()]
        residuals = np.array(
            [np.where(comparison.two_sided, comparison.residuals, math.nan) for comparison in comparisons]
        ).T
        # One that is only sick at times would make its worst hours part of health.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            spread = np.nanstd(residuals, axis=1)
            healthy &= ~(spread > UNLIKE * np.nanmedian(spread[healthy])) if healthy.any() else False
        # Nor does one that became slow meanwhile.
        half = residuals.shape[1] // 2
        change = np.nan_to_num(_median(residuals[:, half:], 1) - _median(residuals[:, :half], 1))
        healthy &= np.abs(change) <= SICK
        if healthy.any():
            self.health = Health.of(residuals[healthy], np.array([step for step, *_ in self.steps]))
        usual = np.nan_to_num(_median(residuals, 1))
        # A sick disk should be detected, not expected.
        self.offsets = np.where(healthy & (np.abs(usual) <= SICK), usual, 0.0)

    def _padded(self) -> list[tuple[int, Array, Array]]:
        """Returns the steps, padded to the number of disks in the last one."""
        members = len(self.steps[-1][1])

        def padded(values: Array) -> Array:
            more = [(0, members - len(values))] + [(0, 0)] * (values.ndim - 1)
            return np.pad(values, more, constant_values=math.nan)

        return [(step, padded(latency), padded(features)) for step, latency, features in self.steps]

    def first(self) -> list[tuple[int, Array, Array]]:
        """Returns the steps from which residuals were learned; they are judged, too, since a disk may be slow from the
        start.
        """
        return self._padded()

    def forget(self) -> None:
        """Drops the steps when no more is learned from them."""
        if self.stages == len(PEER_STEPS):
            self.steps = []

    def plain(self) -> PeersState:
        # Missing values are null: NaN is not JSON.
        steps = [[step, *(np.where(np.isnan(a), NULL, a).tolist() for a in at)] for step, *at in self.steps]
        return {
            "offsets": self.offsets.tolist(),
            "slopes": self.slopes.tolist(),
            "known": self.stages,
            "steps": steps,
            **plain_health(self.health),
        }

    @staticmethod
    def of(plain: PeersState) -> Peers:
        steps = [(step, np.array(a, dtype=float), np.array(b, dtype=float)) for step, a, b in plain["steps"]]
        offsets, slopes = np.array(plain["offsets"], dtype=float), np.array(plain["slopes"])
        return Peers(offsets, slopes, health_of(plain), steps, plain["known"])


def _slopes(moved: Array, off: Array) -> Array:
    """Returns slopes of the logarithm of latency over rate, size and share of reads. The slope over the rate is at
    least 0: if latency falls as the rate rises, the rate depends on the latency (a closed loop), and corrects nothing.
    """

    def solved(x: Array) -> Array:
        return np.asarray(np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(x.shape[1]), x.T @ off))

    slopes = solved(moved)
    return slopes if slopes[0] >= 0.0 else np.concatenate([[0.0], solved(moved[:, 1:])])


def _compare_loads(
    features: Array, stream: int
) -> tuple[Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Returns the differences of rate, size and share of reads of each disk from the median, and whose load is similar,
    lighter and heavier. A load is lighter if it has no more requests of this kind and of the other. Size is not
    decisive on its own, since requests of other sizes are mostly at other places."""
    load = features[:, :3]
    with np.errstate(all="ignore"):
        off = load - _median(load, 0)
        rate, _, share = load.T
        part = np.select([np.full(len(load), stream == at) for at in (0, 1)], [share, 1.0 - share], 1.0)
        # A kind that was seen has some of the requests; 0 means that the share is unknown.
        part = np.where(part <= 0.0, 1.0, part)
        own, other = rate + np.log(part), np.exp(rate) * (1.0 - part)
        own_off = own - _median(own, 0)
        middle, room = _median(other, 0), COMPARABLE[2] * np.exp(_median(rate, 0))
        same_size = np.abs(off[:, 1]) <= COMPARABLE[1]
        alike = (np.abs(off) <= np.array(COMPARABLE)).all(axis=1)
        no_more = (own_off <= COMPARABLE[0]) & (other <= np.maximum(2.0 * middle, middle + room))
        no_less = (own_off >= -COMPARABLE[0]) & (other >= np.minimum(0.5 * middle, middle - room))
    lighter = np.asarray(same_size & ~alike & no_more)
    return off, np.asarray(alike), lighter, np.asarray(same_size & ~alike & ~lighter & no_less)


def residual_of_twin(twin: Twin, stream: str, latency: float, features: Array, tolerance: float) -> float:
    """Returns the logarithm of latency over that predicted by a twin, less the part of its interval above the
    tolerance; NaN without a prediction, or if the error of the model is not known: such a model accuses no disk."""
    _, size, share, depth = (features[FEATURES.index(name)] for name in FEATURES)
    expected = twin.expected(stream, max(math.exp(depth), 1.0), math.exp(size) if size else None, share)
    if expected is None or expected.apart is None:
        return math.nan
    return latency - math.log(expected.latency_s) - max(0.0, expected.apart - tolerance)


def plain_health(health: Health) -> HealthState:
    """Returns health as plain data."""
    hours, days = ([slow.deviation, slow.freedom] for slow in (health.hours, health.days))
    return {"pool": health.pool.tolist(), "time": health.time, "hours": hours, "days": days, "change": health.change}


def health_of(plain: HealthState) -> Health:
    """Returns the health from plain data."""
    return Health(np.array(plain["pool"]), plain["time"], Slow(*plain["hours"]), Slow(*plain["days"]), plain["change"])
