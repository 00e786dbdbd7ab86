"""What latency a disk should show under its load: what its peers show at the same moment, or what its twin would.
What it has shown itself is in ``past.py``."""

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
"""After how many steps residuals of peers are first known, known better, and known for good. Levels of days need all
days that were seen: with twelve quarters a day, each is one more."""
COMPARABLE = (math.log(2.0), math.log(2.0), 0.25)
"""How far rate, size and share of reads of a disk may be from those of its peers; slopes are not trusted further.
Further away, a comparison is one-sided: see ``Compared``."""
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


class Compared(NamedTuple):
    """Residuals of disks at one moment, and what they prove.

    Latency of a healthy disk grows with its load, so a disk that is slower than its peers under less load is slow *a
    fortiori*, and one that is no slower under more load is fine. The first is what a closed loop does: whoever waits
    for a slow disk asks less of it.
    """

    residuals: Array
    """The logarithm of latency over what is expected. Under less load a lower bound; NaN where nothing follows."""
    trust: Array
    """A deviation of health as a share of the deviation to expect here: a mean of fewer requests is noisier."""
    two_sided: npt.NDArray[np.bool_]
    """Whether a residual also proves health. A lower bound does not."""

    @staticmethod
    def none(shape: int | tuple[int, ...]) -> Compared:
        """Disks that are compared with nothing."""
        return Compared(np.full(shape, math.nan), np.ones(shape), np.zeros(shape, dtype=bool))


@dataclass
class Health:
    """The residuals of healthy disks: a sample, and how many steps are worth an independent one."""

    pool: Array = field(default_factory=lambda: np.empty(0))
    time: float = 1.0
    hours: Slow = field(default_factory=Slow)
    """How much levels of two hours change."""
    days: Slow = field(default_factory=Slow)
    """And means of days."""
    change: float = 0.0
    """How much residuals change from step to step, as ``usual_change`` has it; 0 where it is not known."""

    @property
    def deviation(self) -> float:
        """Standard deviation of residuals; 0 where none is known."""
        return float(np.std(self.pool)) if len(self.pool) else 0.0

    @staticmethod
    def of(residuals: Array, steps: npt.NDArray[np.int64]) -> Health:
        """Of disks (rows) over steps, whose numbers are ``steps``. Each disk is centred: what differs between them for
        good is not noise."""
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
    """Of each in a row the median of the others; NaN with fewer than ``PEERS_MIN`` of them.

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
    """The median of what was seen; NaN where nothing was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmedian(values, axis=axis))


@dataclass
class Peers:
    """A group of disks and one kind of request."""

    offsets: Array = field(default_factory=lambda: np.empty(0))
    """By member, how far a healthy disk is above the others for good."""
    slopes: Array = field(default_factory=lambda: np.zeros(3))
    """Slopes of the logarithm of latency over rate, size and share of reads, within the group."""
    health: Health = field(default_factory=Health)
    steps: list[tuple[int, Array, Array]] = field(default_factory=list)
    """The first ones: number, latencies, features; empty when residuals are known for good."""
    known: int = 0
    """How many of ``PEER_STEPS`` were reached."""

    def compare(self, latency: Array, features: Array, stream: int) -> Compared:
        """Compares each disk with the others at the same moment. The reference is the median of the disks whose loads
        are alike; a disk under less or more load is compared with it one-sidedly."""
        if not np.isfinite(latency).any():
            return Compared.none(len(latency))
        off, alike, lighter, heavier = _compare_loads(features, stream)
        edge = off.copy()
        edge[:, 0] = np.clip(off[:, 0], -COMPARABLE[0], COMPARABLE[0])
        # Outside of the gate the slope over the share of reads is not trusted, in either direction.
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
        """Fewer requests make a noisier mean: by the root of their number where all noise were theirs, and by no more
        than a mean of ``REQUESTS_MIN`` exponential times."""
        noise = self.health.deviation or 1.0
        least = noise / math.hypot(noise, REQUESTS_MIN**-0.5)
        with np.errstate(invalid="ignore"):
            return np.where(lighter, np.maximum(np.exp(np.minimum(off, 0.0) / 2.0), least), 1.0)

    def learn(self, step: int, latency: Array, features: Array, stream: int) -> bool:
        """Takes a step in; true when residuals are first known."""
        if self.known == len(PEER_STEPS) or np.isfinite(latency).sum() <= PEERS_MIN:
            return False
        self.steps.append((step, latency, features))
        if len(self.steps) < PEER_STEPS[self.known]:
            return False
        self._fit(stream)
        self.known += 1
        return self.known == 1

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
        found = [self.compare(values, features, stream) for _, values, features in self._padded()]
        residuals = np.array([np.where(one.two_sided, one.residuals, math.nan) for one in found]).T
        # One that is ill at times alone would teach that its worst hours are health.
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
        # A disk that is sick is to be found, and not to be expected.
        self.offsets = np.where(healthy & (np.abs(usual) <= SICK), usual, 0.0)

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

    def plain(self) -> PeersState:
        # A value that was not seen is null: NaN is no JSON.
        steps = [[step, *(np.where(np.isnan(a), NULL, a).tolist() for a in at)] for step, *at in self.steps]
        return {
            "offsets": self.offsets.tolist(),
            "slopes": self.slopes.tolist(),
            "known": self.known,
            "steps": steps,
            **plain_health(self.health),
        }

    @staticmethod
    def of(plain: PeersState) -> Peers:
        steps = [(step, np.array(a, dtype=float), np.array(b, dtype=float)) for step, a, b in plain["steps"]]
        offsets, slopes = np.array(plain["offsets"], dtype=float), np.array(plain["slopes"])
        return Peers(offsets, slopes, health_of(plain), steps, plain["known"])


def _slopes(moved: Array, off: Array) -> Array:
    """Slopes of the logarithm of latency over rate, size and share of reads. That over the rate is at least 0: where
    latency falls as the rate rises, the rate follows from the latency (a closed loop), and corrects nothing."""

    def solved(x: Array) -> Array:
        return np.asarray(np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(x.shape[1]), x.T @ off))

    slopes = solved(moved)
    return slopes if slopes[0] >= 0.0 else np.concatenate([[0.0], solved(moved[:, 1:])])


def _compare_loads(
    features: Array, stream: int
) -> tuple[Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """How far rate, size and share of reads of each disk are from the median, and whose load is alike, lighter and
    heavier. A load is lighter when nothing in it is more: neither requests of this kind nor those of the other. Size
    decides nothing on its own, since requests of other sizes are mostly at other places."""
    load = features[:, :3]
    with np.errstate(all="ignore"):
        off = load - _median(load, 0)
        rate, _, share = load.T
        part = np.select([np.full(len(load), stream == at) for at in (0, 1)], [share, 1.0 - share], 1.0)
        # A kind that was seen has some of the requests; 0 says that the share is not known.
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


def expected_of_twin(twin: Twin, stream: str, features: Array) -> float:
    """The logarithm of what a twin says; NaN where it cannot."""
    _, size, share, depth = (features[FEATURES.index(name)] for name in FEATURES)
    size_bytes = math.exp(size) if size else None
    told = twin.latency_s(stream, max(math.exp(depth), 1.0), size_bytes, share)
    return math.log(told) if told else math.nan


def plain_health(health: Health) -> HealthState:
    """Health, as plain data."""
    hours, days = ([slow.deviation, slow.freedom] for slow in (health.hours, health.days))
    return {"pool": health.pool.tolist(), "time": health.time, "hours": hours, "days": days, "change": health.change}


def health_of(plain: HealthState) -> Health:
    """The health that ``plain_health`` made plain."""
    return Health(np.array(plain["pool"]), plain["time"], Slow(*plain["hours"]), Slow(*plain["days"]), plain["change"])
