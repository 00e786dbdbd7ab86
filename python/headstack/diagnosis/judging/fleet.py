"""``Fleet``: all disks, their data, and the tests of all their lanes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl

from headstack.diagnosis.judging.evidence import (
    E_DETECTOR,
    RATES,
    STEPS_A_YEAR,
    Array,
    Days,
    Evidence,
    Scores,
    deviates,
)
from headstack.diagnosis.judging.expectation import PEERS_MIN, SICK, Compared, Health, Peers
from headstack.diagnosis.judging.levels import DAY_STEPS, LEVEL_STEPS, chance
from headstack.diagnosis.judging.past import STEPS_NEEDED, Past
from headstack.diagnosis.judging.state import DiskState, FleetState, TestedDiskState
from headstack.diagnosis.judging.steps import STEP_S, STREAMS, TOO_SHORT, Step
from headstack.diagnosis.judging.suspects.record import Record
from headstack.diagnosis.judging.verdict import Method

METHODS: tuple[Method, ...] = ("peers", "own past", "twin")
TOLERANCES = np.log([1.15, 1.15, 1.5])
"""Tolerated slowdown of a healthy disk by method: disks of a batch differ by a few percent, loads change in ways that
no column shows, and twins from data sheets are off by tens of percent."""
SEVERE = np.maximum(TOLERANCES, math.log(1.3))
"""Tolerances of the test of the far tail, which is for disks at half their speed: in 300 drive-years of a surrogate in
which whole hours are three times as noisy, two had an alarm at 1.15."""
LANES_A_DRIVE = 2.0
"""Reads and writes, each compared with the reference of the verdict."""
RECENT = 64
"""Number of steps from which causes are determined."""
SPREADS = slice(6, None, 7)
"""Columns of ``Disk.recent`` with the spread of a stream."""
SPREAD_WEIGHT = 0.05
COURSE = 240
PEER_STEPS_JUDGED = 8
JUDGED_AFTER: tuple[tuple[Method, int], ...] = (("peers", PEER_STEPS_JUDGED), ("twin", 1), ("own past", 1))
"""The method of a verdict: the first with this number of steps."""
LATELY = 8
"""The last steps, two hours: the time in which a disk at half its speed is to be detected."""
FRESH = 4
"""Minimum number of compared steps among these for a disk to be called fine: half."""
UNSTEADY = math.log(1.5)
"""Threshold of unsteady disks: the average of intervals relative to the fastest 10 % within the same quarter of an
hour.
"""
"""The reason for no verdict on a disk without a single interval."""
DOUBT = 0.5
"""Share of the evidence for an alarm from which a disk is not called fine."""
BOUNDS_MAX = 0.1
"""Share of lower bounds among quarters of an hour from which their mean is a lower bound, too."""
SLOW_A_YEAR = 0.01
"""Share of healthy disks that become slow in a year: 1.02 % of 39,000 nodes did (IASO, USENIX ATC 2019)."""

Key: TypeAlias = tuple[str, str]


def grouped(frame: pl.DataFrame, peers: str) -> list[tuple[str, str, str | None, str | None]]:
    """Returns the disks of a table, by host and name: host, disk, model, and the group they are compared with."""
    disks = frame.group_by("host", "disk").agg(pl.col("model").drop_nulls().first()).sort("host", "disk").rows()
    with_host = [(host, disk, model, f"{host}/{model or ''}") for host, disk, model in disks]
    count: dict[str, int] = {}
    for *_, group in with_host:
        count[group] = count.get(group, 0) + 1
    disks_with_groups: list[tuple[str, str, str | None, str | None]] = []
    for host, disk, model, group in with_host:
        by_model = peers == "model" or (peers == "auto" and count[group] <= PEERS_MIN and model is not None)
        disks_with_groups.append(
            (host, disk, model, None if peers == "none" else f"*/{model or ''}" if by_model else group)
        )
    return disks_with_groups


@dataclass
class Disk:
    """A disk, and its past observations."""

    host: str
    disk: str
    model: str | None
    group: str | None
    pasts: dict[int, Past] = field(default_factory=dict)
    """Past by stream."""
    recent: list[list[float]] = field(default_factory=list)
    """Step, then for reads, writes and all the logarithm of latency, its residual, the logarithm of size, the share of
    reads, the logarithm of queue depth, the spread, and the expected value in health; NaN if missing."""
    course: list[tuple[float, float]] = field(default_factory=list)
    every: int = 1
    """Sampling interval of ``course`` in steps."""
    steps: int = 0
    """Number of steps with sufficient requests."""
    first_s: float = 0.0
    last_s: float = 0.0
    usual_spread: list[float] = field(default_factory=lambda: [math.nan] * len(STREAMS))
    """Slow mean for each stream, over the steps in which the disk was not slow."""
    unsteady: float = 0.0
    """A slow mean of the distance of intervals from the fastest of their step."""
    seen: list[int] = field(default_factory=list)
    """The last ``LATELY`` steps with sufficient requests."""
    compared: list[list[int]] = field(default_factory=lambda: [[] for _ in METHODS])
    """By method, the last ``LATELY`` steps in which a comparison could have proved it healthy."""
    record: Record = field(default_factory=Record)
    """The last intervals."""

    def past(self, stream: int) -> Past:
        """Returns its past for one kind of request."""
        return self.pasts.setdefault(stream, Past())

    def note(self, step: Step, place: int, residuals: Array, method: int | None, of_peers: Array) -> None:
        """Adds the data of a step. ``residuals`` are over streams and ``METHODS``, ``of_peers`` is the spread of
        peers."""
        of = residuals[:, method] if method is not None else np.full(len(STREAMS), math.nan)
        features = step.features[place]
        spreads = step.spread[place]
        usual = np.where(np.isfinite(of_peers), of_peers, self.usual_spread)
        columns = np.column_stack(
            [step.log_latency[place], of, features[:, 1], features[:, 2], features[:, 3], spreads, usual]
        )
        self.seen = [*self.seen[-LATELY + 1 :], step.number]
        self.recent = [*self.recent[-RECENT + 1 :], [float(step.number), *columns.ravel().tolist()]]
        if self.steps == 0:
            self.first_s = step.start_s
        self.last_s = step.start_s + STEP_S
        if np.isfinite(of).any() and self.steps % self.every == 0:
            self.course.append((step.start_s, float(np.exp(np.nanmean(of)))))
            if len(self.course) > COURSE:
                self.course, self.every = self.course[::2], 2 * self.every
        for stream, (spread, residual) in enumerate(zip(spreads.tolist(), of.tolist(), strict=True)):
            if math.isfinite(spread) and residual <= SICK:
                before = self.usual_spread[stream]
                self.usual_spread[stream] = spread if math.isnan(before) else before + SPREAD_WEIGHT * (spread - before)
        spread = spreads[np.isfinite(step.log_latency[place])]
        if np.isfinite(spread).any():
            weight = 1.0 / min(self.steps + 1, STEPS_NEEDED // 4)
            self.unsteady += weight * (float(np.nanmax(spread)) - self.unsteady)
        self.steps += 1

    def unsteady_error(self) -> float:
        """Returns the half-width of the 90 % interval of ``unsteady``, from its variation between recent steps."""
        spreads = np.array(self.recent)[:, SPREADS]
        spreads = spreads[np.isfinite(spreads)]
        return 1.645 * float(np.std(spreads)) / math.sqrt(max(len(spreads), 1))

    def plain(self) -> DiskState:
        return {
            "host": self.host,
            "disk": self.disk,
            "model": self.model,
            "group": self.group,
            "course": self.course,
            "every": self.every,
            "steps": self.steps,
            "first_s": self.first_s,
            "last_s": self.last_s,
            "usual_spread": _without_nan(self.usual_spread),
            "unsteady": self.unsteady,
            "seen": self.seen,
            "compared": self.compared,
            "pasts": {str(of): past.plain() for of, past in self.pasts.items()},
            "recent": [_without_nan(row) for row in self.recent],
            "record": self.record.plain(),
        }

    @staticmethod
    def of(plain: DiskState) -> Disk:
        return Disk(
            host=plain["host"],
            disk=plain["disk"],
            model=plain["model"],
            group=plain["group"],
            pasts={int(of): Past.of(past) for of, past in plain["pasts"].items()},
            recent=[_with_nan(row) for row in plain["recent"]],
            course=[(start, factor) for start, factor in plain["course"]],
            every=plain["every"],
            steps=plain["steps"],
            first_s=plain["first_s"],
            last_s=plain["last_s"],
            usual_spread=_with_nan(plain["usual_spread"]),
            unsteady=plain["unsteady"],
            seen=plain["seen"],
            compared=plain["compared"],
            record=Record.of(plain["record"]) if "record" in plain else Record(),
        )


def _without_nan(values: list[float]) -> list[float | None]:
    """Replaces NaN, which is not JSON, by ``None``."""
    return [None if math.isnan(value) else value for value in values]


def _with_nan(values: list[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


class Facts(NamedTuple):
    """The facts behind a verdict's text."""

    slow: bool
    method: Method | None
    missing: str | None
    """The reason why it is undecided."""
    stream: int
    since_step: float | None
    size: tuple[float, float, float] | None
    """Mean of the logarithm of the slowdown, and the lower and upper bound of its interval."""
    share: float
    confidence: float | None
    noise: float
    """The standard deviation of residuals in health."""
    from_start: bool
    unsteady: float | None
    is_lower_bound: bool = False
    """Whether the slowdown is a lower bound: the disk was compared under less load than its reference."""


def level_tolerance(method: Method, health: Health, trust: float, budget: float) -> float:
    """Returns the upper bound of a healthy disk's level over the expected one, from which the test of levels starts. A
    twin's error at a load cannot be learned from a past, so that test is silent."""
    if method == "twin":
        return math.inf
    bound = health.hours.bound(chance(budget, LANES_A_DRIVE, LEVEL_STEPS))
    if method == "own past" and bound < math.inf:
        # At unfamiliar loads the curve itself may be wrong, for as long as the load lasts.
        of_curve = health.deviation * math.sqrt(max(trust**-2.0 - 1.0, 0.0))
        bound *= math.hypot(health.hours.deviation, of_curve) / health.hours.deviation
    return max(float(TOLERANCES[METHODS.index(method)]), bound)


def day_bound(health: Health, budget: float) -> float:
    """Returns the mean of a day that raises an alarm: slower than tolerated, and than healthy days."""
    return max(float(TOLERANCES[0]), health.days.bound(chance(budget, LANES_A_DRIVE, DAY_STEPS)))


def _moment(step: int) -> str:
    return datetime.fromtimestamp(step * STEP_S, UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass
class Fleet:
    """All disks. Lanes are over disks, ``STREAMS`` and ``METHODS``, the last varying fastest."""

    disks: list[Disk] = field(default_factory=list)
    places: dict[Key, int] = field(default_factory=dict)
    peers: dict[tuple[str, int], Peers] = field(default_factory=dict)
    """Peers by group and stream."""
    evidence: Evidence = field(default_factory=lambda: Evidence.none(0))
    judged_s: float = 0.0
    clock: list[int] = field(default_factory=list)
    """The last ``LATELY`` steps with rows of any disk."""
    late: int = 0
    """Number of rows that arrived after their step was judged."""

    def add(self, disks: list[tuple[str, str, str | None, str | None]]) -> None:
        """Adds new disks."""
        for host, disk, model, group in disks:
            if (host, disk) not in self.places:
                self.places[host, disk] = len(self.disks)
                self.disks.append(Disk(host, disk, model, group))
        lanes = len(self.disks) * len(STREAMS) * len(METHODS)
        more = Evidence.none(lanes)
        for name, array in vars(self.evidence).items():
            getattr(more, name)[: len(array)] = array
        self.evidence = more

    def peers_of_all(self) -> Iterator[tuple[tuple[str, int], Peers, list[int]]]:
        """Yields groups and their members, by stream."""
        members: dict[str, list[int]] = {}
        for place, disk in enumerate(self.disks):
            if disk.group is not None:
                members.setdefault(disk.group, []).append(place)
        for group, of in members.items():
            if len(of) > PEERS_MIN:
                for stream in range(len(STREAMS)):
                    yield (group, stream), self.peers.setdefault((group, stream), Peers()), of

    def lane(self, place: int, stream: int, method: Method) -> int:
        """Returns the index of a lane."""
        return (place * len(STREAMS) + stream) * len(METHODS) + METHODS.index(method)

    def health(self, place: int, stream: int, method: Method) -> Health:
        """Returns the residuals of health that a lane is compared with."""
        disk = self.disks[place]
        of = self.peers.get((disk.group or "", stream)) if method == "peers" else disk.pasts.get(stream)
        return Health() if of is None else of.health

    def test(self, step: int, compared: Compared, budget: float) -> None:
        """Adds a comparison of disks, streams and methods."""
        flat = compared.residuals.reshape(-1)
        for place, method in np.argwhere(compared.two_sided.any(axis=1)).tolist():
            steps_compared = self.disks[place].compared
            if step not in steps_compared[method]:
                steps_compared[method] = [*steps_compared[method][-LATELY + 1 :], step]
        lanes = np.flatnonzero(np.isfinite(flat))
        if not len(lanes):
            return
        per_disk = len(STREAMS) * len(METHODS)
        of = [
            self.health(lane // per_disk, lane // len(METHODS) % len(STREAMS), METHODS[lane % len(METHODS)])
            for lane in map(int, lanes)
        ]
        pools = np.full((len(lanes), max(len(health.pool) for health in of)), math.nan)
        for row, health in zip(pools, of, strict=True):
            row[: len(health.pool)] = health.pool
        times = np.ones(len(flat))
        times[lanes] = [health.time for health in of]
        scores, trust = Scores.none(len(flat)), compared.trust.reshape(-1)[lanes]
        methods = lanes % len(METHODS)
        levels = [
            level_tolerance(METHODS[method], health, trusted, budget)
            for method, health, trusted in zip(methods.tolist(), of, trust.tolist(), strict=True)
        ]
        usual = np.zeros(len(flat))
        usual[lanes] = [health.change for health in of]
        raised = self.evidence.note_changes(flat, usual)[lanes]
        limits = TOLERANCES[methods], SEVERE[methods], np.array(levels) * raised
        above = ((flat[lanes] - limit) * trust for limit in limits)
        beyond, severe, level = above
        for whole, part in zip(scores, deviates(beyond, pools, times[lanes], severe, level / raised), strict=True):
            whole[lanes] = part
        days = Days(np.zeros(len(flat)), np.full(len(flat), math.inf))
        days.residuals[lanes] = flat[lanes] * trust
        days.bounds[lanes] = np.array([day_bound(health, budget) for health in of]) * raised
        thresholds, bounds = self.evidence.thresholds(budget, LANES_A_DRIVE), ~compared.two_sided.reshape(-1)
        self.evidence.take(step, flat, *scores, times, thresholds, bounds, days)

    def judged_by(self, place: int) -> Method | None:
        """Returns the method of the verdict on a disk: the first that raised an alarm or could compare it lately;
        ``None`` if there is none."""
        for method, needed in JUDGED_AFTER:
            is_known = self.seen_by(place, method) >= needed
            if is_known and (self.alarmed(place, method) or self.compared_lately(place, method) >= FRESH):
                return method
        return None

    def seen_by(self, place: int, method: Method) -> float:
        """Returns the number of steps in which a method could compare a disk."""
        lanes = [self.lane(place, stream, method) for stream in range(len(STREAMS))]
        return float(self.evidence.seen[lanes].max())

    def compared_lately(self, place: int, method: Method) -> int:
        """Returns how many of the last ``LATELY`` steps a method compared a disk so that it may be called fine."""
        return len(set(self.disks[place].compared[METHODS.index(method)]) & set(self.clock))

    def alarmed(self, place: int, method: Method) -> bool:
        """Whether there is an alarm."""
        return any(self.evidence.alarmed[self.lane(place, stream, method)] > 0 for stream in range(len(STREAMS)))

    def facts(self, place: int, budget: float) -> Facts:
        """Returns the facts of a disk."""
        disk = self.disks[place]
        method = self.judged_by(place)
        unsteady = self._unsteady(place)
        if method is None and unsteady is None:
            return Facts(False, None, self._missing(place), 0, None, None, 0.0, None, 0.0, False, None)
        by: Method = method or "own past"
        thresholds = self.evidence.thresholds(budget, LANES_A_DRIVE)
        lanes = [self.lane(place, stream, by) for stream in range(len(STREAMS))]
        strength = self.evidence.share(thresholds)[lanes] + 10.0 * (self.evidence.alarmed[lanes] > 0)
        stream = int(np.argmax(strength + 1e-6 * self.evidence.seen[lanes].clip(max=1)))
        lane = lanes[stream]
        slow = bool(self.evidence.alarmed[lane] > 0)
        test = self.evidence.test_of(lane, thresholds)
        health = self.health(place, stream, by)
        size = self.evidence.size(lane, test, health.time)
        begun = float(self.evidence.begun[lane, test])
        noise = health.deviation or 0.1
        if not slow and unsteady is not None:
            half = disk.unsteady_error()
            size = (unsteady, unsteady - half, unsteady + half)
            return Facts(True, "own past", None, stream, disk.first_s / STEP_S, size, 1.0, None, noise, True, unsteady)
        missing = self._together(place) if not slow and by == "peers" else None
        share = float(self.evidence.share(thresholds)[lane])
        if not slow and missing is None and share >= DOUBT:
            missing = f"the evidence is {share:.0%} of an alarm, compared with its {by}"
        confidence = self._confidence(lane, thresholds, budget) if slow else max(0.0, 1.0 - min(share, 1.0))
        start = begun <= disk.first_s / STEP_S + 1
        at_least = self.evidence.bounds[lane, test] > BOUNDS_MAX * self.evidence.count[lane, test]
        return Facts(slow, by, missing, stream, begun, size, share, confidence, noise, start, None, bool(at_least))

    def log_e_value(self, place: int) -> float:
        """Returns the logarithm of a disk's current e-value against health: the mean of its lanes. It is minus infinity
        without a reference.

        The e-detector is at most the sum of the bets begun at each step, so over the observed steps its average in
        health is at most 1."""
        by = self.judged_by(place)
        if by is None:
            return -math.inf
        lanes = np.array([self.lane(place, stream, by) for stream in range(len(STREAMS))])
        lanes = lanes[self.evidence.seen[lanes] > 0]
        of_lanes = self.evidence.level[lanes, E_DETECTOR] - np.log(self.evidence.seen[lanes] + 1.0)
        return float(np.logaddexp.reduce(of_lanes) - math.log(len(lanes)))

    def _confidence(self, lane: int, thresholds: Array, budget: float) -> float:
        """Returns the confidence of an alarm: the rate of disks that became slow in the observed time, relative to
        false alarms. Evidence above the threshold makes those rarer by e^(2 k) for each unit of a CUSUM."""
        test = int(self.evidence.alarmed[lane]) - 1
        beyond = max(float(self.evidence.level[lane, test] - thresholds[test]), 0.0)
        years = float(self.evidence.seen[lane]) / STEPS_A_YEAR
        false, true = budget * years * math.exp(-RATES[test] * beyond), SLOW_A_YEAR * years
        return true / (true + false)

    def _unsteady(self, place: int) -> float | None:
        """Returns the repeated slowdown of a disk relative to moments before, if it was never judged by peers or a
        twin.
        """
        disk = self.disks[place]
        others = [(method, needed) for method, needed in JUDGED_AFTER if method != "own past"]
        if any(self.seen_by(place, method) >= needed for method, needed in others):
            return None
        return disk.unsteady if disk.steps >= PEER_STEPS_JUDGED and disk.unsteady >= UNSTEADY else None

    def _missing(self, place: int) -> str:
        """Returns the reason why a disk cannot be called fine."""
        disk = self.disks[place]
        if disk.steps == 0:
            return TOO_SHORT
        learned = max(past.learnt for past in disk.pasts.values())
        last = max((step for steps in disk.compared for step in steps), default=None)
        if last is None and learned < STEPS_NEEDED:
            hours = (STEPS_NEEDED - learned) * STEP_S / 3600.0
            return (
                f"it has too few peers under a similar load, and its own past has {learned} 15-minute intervals with "
                f"enough requests; {STEPS_NEEDED} are needed, {hours:.0f} h more"
            )
        of, lately = len(self.clock), set(self.clock)
        silent = of - len(set(disk.seen) & lately)
        compared = max(self.compared_lately(place, method) for method in METHODS)
        reason = f"{compared} of the last {of} 15-minute intervals could be compared"
        if silent:
            reason += f"; in {silent} it completed fewer than 30 requests of a kind"
        if of - silent > compared:
            others = of - silent - compared
            reason += f"; in {others} its load was unlike its own past and its peers"
        since = "" if last is None else f", and none since {_moment(last)}" if last not in lately else ""
        return reason + since

    def _together(self, place: int) -> str | None:
        """Returns the reason for no verdict if most disks of a group became slower together; else ``None``."""
        group = self.disks[place].group
        members = [at for at, disk in enumerate(self.disks) if disk.group == group]
        left = [at for at in members if self.alarmed(at, "own past") and not self.alarmed(at, "peers")]
        if place not in left or 2 * len(left) <= len(members):
            return None
        return f"{len(left)} of {len(members)} disks of its group became slower at the same time"

    def plain(self) -> FleetState:
        lanes = len(STREAMS) * len(METHODS)
        disks: list[TestedDiskState] = [
            {**disk.plain(), "tests": [self.evidence.plain(place * lanes + lane) for lane in range(lanes)]}
            for place, disk in enumerate(self.disks)
        ]
        peers = [[group, stream, of.plain()] for (group, stream), of in self.peers.items() if of.steps or of.stages]
        return {"disks": disks, "peers": peers, "judged_s": self.judged_s, "late": self.late, "clock": self.clock}

    @staticmethod
    def of(plain: FleetState) -> Fleet:
        fleet = Fleet(judged_s=plain["judged_s"], late=plain["late"], clock=plain["clock"])
        fleet.peers = {(group, stream): Peers.of(of) for group, stream, of in plain["peers"]}
        fleet.disks = [Disk.of(disk_state) for disk_state in plain["disks"]]
        fleet.places = {(disk.host, disk.disk): place for place, disk in enumerate(fleet.disks)}
        fleet.add([])
        lane = 0
        for disk_state in plain["disks"]:
            for test in disk_state["tests"]:
                fleet.evidence.set(lane, test)
                lane += 1
        return fleet
