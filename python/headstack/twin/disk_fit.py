"""A disk that becomes known step by step: each step needs only those before it.

What the answers show directly is read off them: the turn, rates, the buffer's own time. The seek curve is moved until
the
model's shortest and longest responses at each distance are the device's. What is inside, the queue's firmware and the
two
caches, is searched for under our own simulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from headstack.twin.device import Answers, Floats, Requests
from headstack.twin.disk_model import Disk, base_of
from headstack.twin.fitting import (
    FLOOR,
    QUICK_NS,
    Range,
    Statistics,
    answered,
    compared,
    evolved,
    means,
    score,
)
from headstack.twin.probes import queue, read_buffer, rotation, seeks, write_cache, zones
from headstack.twin.probes.rotation import Rotation
from headstack.twin.session import Asked, Session

PATTERNS = (
    read_buffer.in_order(read_buffer.SMALL),
    read_buffer.in_order(read_buffer.LARGE),
    read_buffer.SKIPPING,
    *(read_buffer.streams(count) for count in read_buffer.STREAMS),
)
POLICIES = ("sptf", "look", "c-look", "sstf")
FIRMWARE = (
    Range("log command_ns", float(np.log(2e4)), float(np.log(1.5e6))),
    Range("committed", 0, 8, 0),
    Range("rotation_margin_ns", 0, 5e6, 0),
    Range("age_weight", 0, 0.3, 0),
    Range("strength", 0.1, 1, 1),
    Range("log2 depth", 2, 7.4),
)
"""What firmware does in its queue, and what some does not."""
ELEVATORS = ("fcfs", "c-look", "look", "sstf")
"""Orders of a host in front of a drive that takes one command at a time."""
SIMPLER = 0.2
"""So much worse may an explanation be that needs no firmware: twice what chance moves a score by."""
BENDS = np.array([[0, 0, 0], [0, -0.5, 2], [0, 0, 6], [0.7, -0.2, 3]])
"""Where the search of a write cache begins, around what a burst shows."""
SAMPLE = 20


@dataclass
class Fit:
    """A disk, and what is known of it so far."""

    session: Session
    random: np.random.Generator
    turn: Rotation
    disk: Disk = field(init=False)
    firmware: list[Floats] = field(default_factory=list)
    """Other firmware that answers about as well."""
    extents: list[int] = field(default_factory=list)
    """Other numbers of dirty extents that do."""
    settles_ns: list[float] = field(default_factory=list)
    """Other times to settle before writes."""

    def __post_init__(self) -> None:
        self.rates = zones.learn(self.session)
        self.statistics: dict[str, Statistics] = {seeks.TEST: self._seek_statistics, **dict.fromkeys(PATTERNS, means)}
        self.statistics[write_cache.IN_ORDER] = means
        small, per_byte = self._hits()
        capacity = self.session.device.capacity_bytes
        base = base_of(capacity, self.turn.rpm, self.rates)
        hit_ns = max(1e3, small - read_buffer.SMALL * per_byte)
        self.disk = Disk(
            base=base,
            capacity=capacity,
            rates=self.rates,
            track_bytes_per_s=self.rates.bytes_per_s * 1.08,
            seek_ns=np.full(len(seeks.DISTANCES), 1.0),
            command_ns=min(small, 200_000.0),
            read_hit_ns=hit_ns,
            write_hit_ns=hit_ns,
            write_settle_ns=float(base["mechanics"]["write_settle_ns"]),
            read_ns_per_byte=per_byte,
            write_ns_per_byte=per_byte,
        )

    def _hits(self) -> tuple[float, float]:
        """The buffer's time for the smallest read, and that of a byte on the way to the host: what does not fit a
        segment
        goes to the medium again, and says nothing of it."""
        found = {
            size: float(np.median(self.session.of(read_buffer.again(size))[0].answers.response_ns[1:]))
            for size in read_buffer.AGAIN_SIZES
        }
        small = found[read_buffer.SMALL]
        hits = [size for size in read_buffer.AGAIN_SIZES[1:] if found[size] < self.turn.period_ns / 2]
        if not hits:
            return small, 0.0
        return small, max(0.0, (found[hits[-1]] - small) / (hits[-1] - read_buffer.SMALL))

    def find(self) -> None:
        """All of it."""
        self.find_seeks()
        self.find_rates()
        self.find_read_buffer()
        self.find_rates()
        self.find_seeks()
        self.find_queue()
        if self.session.of(write_cache.BURST):
            self.find_write_cache()

    def tests(self, *names: str) -> list[Asked]:
        """What was asked under these names."""
        return [one for name in names for one in self.session.of(name)]

    def score(self, disk: Disk, tests: Sequence[Asked], draws: int = 1) -> float:
        """How far off a disk is in these tests."""
        return score(compared(disk.system, tests, self.random, self.statistics, draws))

    def choose(self, tests: Sequence[Asked], candidates: Sequence[Disk], draws: int = 1) -> tuple[Disk, float]:
        """The candidate that answers best as the device did."""
        scores = [self.score(one, tests, draws) for one in candidates]
        best = int(np.argmin(scores))
        return candidates[best], scores[best]

    # Seeks.

    @property
    def seek_sd_ns(self) -> float:
        """How far chance moves the middle of a distance's responses."""
        each = len(self.session.of(seeks.TEST)[0].requests) / len(seeks.DISTANCES)
        return float(self.turn.period_ns / (each + 1) / np.sqrt(2))

    def _middles(self, requests: Requests, answers: Answers) -> Floats:
        """Of each distance the middle between the shortest and the longest response, less half a turn."""
        of = seeks.distances_of(requests, self.rates, self.session.device.capacity_bytes)
        period = self.turn.period_ns
        found = []
        for number in range(len(seeks.DISTANCES)):
            times = answers.response_ns[of == number]
            times = times[times > rotation.HIT_NS / 4]
            shortest = times.min()
            # What takes a turn more has missed its sector.
            times = times[times < shortest + period]
            found.append((shortest + times.max() - period) / 2)
        return np.array(found)

    def _seek_statistics(self, requests: Requests, answers: Answers) -> tuple[Floats, Floats]:
        # With half a turn, as a mean response has it, so that a short seek is no small number.
        middles = self._middles(requests, answers) + self.turn.period_ns / 2
        return np.log(middles), np.hypot(self.seek_sd_ns / middles, FLOOR)

    def find_seeks(self, rounds: int = 4) -> None:
        """Moves each point of the curve by what the model is off there."""
        (asked,) = self.session.of(seeks.TEST)
        measured = self._middles(asked.requests, asked.answers)
        times = np.maximum(1e4, measured - self.disk.command_ns)
        for _ in range(rounds):
            (lists,) = answered(self.disk.with_(seek_ns=times).system, [asked], self.random, draws=4)
            model = np.mean([self._middles(*one) for one in lists], axis=0)
            times = np.maximum(1e4, times + 0.8 * (measured - model))
        self.disk = self.disk.with_(seek_ns=smoothing(times, self.seek_sd_ns)[0])

    # Rates.

    def find_rates(self, rounds: int = 3) -> None:
        """Has tracks hold as much as reads in order need."""
        asked = self.session.of(zones.TEST)
        for _ in range(rounds):
            model = [
                zones.sustained(lists[0][1].completed_ns) for lists in answered(self.disk.system, asked, self.random)
            ]
            ratio = np.clip(self.rates.bytes_per_s / np.array(model), 0.7, 1.4)
            self.disk = self.disk.with_(track_bytes_per_s=self.disk.track_bytes_per_s * ratio)

    # What has kinds.

    def find_read_buffer(self) -> None:
        """The kind of read-ahead, and segments."""
        tests = self.tests(*PATTERNS)
        candidates = [
            self.disk.with_(
                buffer={
                    "read_ahead": kind,
                    "segments": count,
                    "segment_sectors": total // count,
                    "read_ahead_max_sectors": total // count,
                }
            )
            for kind in ("segment", "track", "none", "track-after-sequential")
            for total in [256 << step for step in range(11)]
            for count in (1, 2, 4, 8, 16, 32)
            if 64 <= total // count <= 65536
        ]
        self.disk, _ = self.choose(tests, candidates)
        for key in ("keep_passing_sectors", "read_ahead_on_hit"):
            both = [self.disk.with_(buffer=self.disk.buffer | {key: value}) for value in (True, False)]
            self.disk, _ = self.choose(tests, both)

    def find_queue(self) -> None:
        """Policy and depth of the queue, and what its firmware does in it: a search of each policy, long of the best
        two. A drive that takes one command at a time leaves the order to its host."""
        tests = self.tests(*[queue.name(depth) for depth in queue.DEPTHS])
        alone = [
            self.disk.with_(queue={"policy": "sptf", "depth": 1}, host_elevator=elevator) for elevator in ELEVATORS
        ]
        hosted, reached = self.choose(tests, alone, draws=4)
        found: list[tuple[float, Disk, list[Floats]]] = []
        for policy in POLICIES:
            disk = self.disk.with_(queue={"policy": policy})
            points = self._firmware(disk, tests, population=24, generations=3)
            found.append((points[0][0], disk, [theta for _, theta in points[:8]]))
        found.sort(key=lambda one: one[0])
        # One command at a time is the simpler explanation: it needs no firmware.
        final: list[tuple[float, Disk, list[Floats]]] = [(reached - SIMPLER, hosted, [])]
        for _, disk, first in found[:2]:
            points = self._firmware(disk, tests, first, population=40, generations=5)
            best, reached = self.choose(tests, [with_firmware(disk, theta) for _, theta in points[:6]], draws=4)
            # A plan nearly as long as the queue is no choice at all.
            if best.committed < best.queue["depth"] - 2:
                final.append((reached, best, [theta for _, theta in points[:SAMPLE]]))
        _, self.disk, self.firmware = min(final, key=lambda one: one[0])

    def _firmware(
        self,
        disk: Disk,
        tests: Sequence[Asked],
        first: Sequence[Floats] = (),
        population: int = 32,
        generations: int = 5,
    ) -> list[tuple[float, Floats]]:
        return evolved(
            FIRMWARE,
            lambda theta: self.score(with_firmware(disk, theta), tests),
            self.random,
            first,
            population,
            generations,
        )

    def find_write_cache(self) -> None:
        """When writes are complete, how many may wait for the medium, and how long the arm settles before it writes."""
        burst, flushed = (
            self.session.of(test)[0].answers.response_ns for test in (write_cache.BURST, write_cache.FLUSHES)
        )
        # Nothing is dirty after a rest; a flush need not wait for what survives a power failure.
        small = float(max(burst[0], flushed[0]))
        kinds: tuple[str, ...] = ("off",)
        if small < min(QUICK_NS, self.turn.period_ns / 6):
            kinds = ("on", "appending", "protected")
            large = float(self.session.of(write_cache.BURST_LARGE)[0].answers.response_ns[0])
            if small < large < self.turn.period_ns / 2:
                self.disk = self.disk.with_(write_ns_per_byte=(large - small) / ((64 << 10) - 4096))
            self.disk = self.disk.with_(write_hit_ns=max(1e3, small - 4096 * self.disk.write_ns_per_byte))
        else:
            self.disk = self.disk.with_(write_hit_ns=self.disk.command_ns)
        steady = [write_cache.steady(depth) for depth in write_cache.STEADY]
        names = (write_cache.BURST, write_cache.BURST_LARGE, write_cache.FLUSHES, write_cache.IN_ORDER, write_cache.MIX)
        tests = self.tests(*steady, *names)
        # Where reads come in order, what is destaged next is seen only here, and whether writes pass reads in a
        # drive.
        orders = [self.disk.queue]
        if self.disk.queue["depth"] == 1:
            orders = [{"policy": policy, "depth": 1} for policy in (*POLICIES, "fcfs")]
            orders += [{"policy": "fcfs", "depth": 32}] if self.disk.host_elevator == "fcfs" else []
        slow = np.flatnonzero(burst > 4 * small)
        first = float(np.log2(max(1, slow[0] if len(slow) else len(burst))))
        ways = [
            self.disk.with_(queue=order, buffer=self.disk.buffer | {"write_cache": kind})
            for kind in kinds
            for order in orders
        ]
        guess = np.array([np.log(self.disk.write_settle_ns), first, first + 4])
        scored = [(min(self.score(with_cache(way, guess + bend), tests) for bend in BENDS), way) for way in ways]
        scored.sort(key=lambda one: one[0])
        reached: list[tuple[float, Disk, list[tuple[float, Floats]]]] = []
        for _, way in scored[:2]:
            ranges = [Range("log write_settle_ns", float(np.log(2e4)), float(np.log(3e6)))]
            if kinds != ("off",):
                ranges += [Range("log2 extents", 0, 9.5), Range("log2 sectors", 7, 19.5)]
            starts = [(guess + bend)[: len(ranges)] for bend in BENDS]

            def build(theta: Floats, way: Disk = way) -> Disk:
                return with_cache(way, theta)

            points = evolved(ranges, lambda theta: self.score(build(theta), tests), self.random, starts, 18, 5)
            reached.append((points[0][0], build(points[0][1]), points[:8]))
        _, self.disk, points = min(reached, key=lambda one: one[0])
        self.settles_ns = [float(np.exp(theta[0])) for _, theta in points]
        self.extents = [extents_of(theta) for _, theta in points if len(theta) > 1]

    def sample(self) -> Iterator[Disk]:
        """Other disks that the answers do not tell from this one."""
        _, covariance = smoothing(self.disk.seek_ns, self.seek_sd_ns)
        moves = self.random.multivariate_normal(np.zeros(len(covariance)), covariance, SAMPLE, method="eigh")
        for number in range(SAMPLE):
            disk = self.disk
            if self.firmware:
                disk = with_firmware(disk, self.firmware[number % len(self.firmware)])
            disk = disk.with_(seek_ns=np.maximum(1e4, disk.seek_ns + moves[number]))
            if self.settles_ns:
                disk = disk.with_(write_settle_ns=self.settles_ns[number % len(self.settles_ns)])
            if self.extents:
                extents = self.extents[number % len(self.extents)]
                disk = disk.with_(buffer=disk.buffer | {"dirty_extents_max": extents})
            yield disk


def with_firmware(disk: Disk, theta: Floats) -> Disk:
    """The disk with a point of ``FIRMWARE``."""
    values = dict(zip([one.name for one in FIRMWARE], map(float, theta), strict=True))
    chosen = disk.queue | {"depth": 1 << round(values.pop("log2 depth"))}
    return disk.with_command(float(np.exp(values.pop("log command_ns")))).with_(queue=chosen, **values)


def extents_of(theta: Floats) -> int:
    """The number of dirty extents of a point."""
    return max(1, round(float(2 ** theta[1])))


def with_cache(disk: Disk, theta: Floats) -> Disk:
    """The disk with a time to settle before writes, and maybe with as many dirty extents and sectors."""
    changed = disk.with_(write_settle_ns=float(np.exp(theta[0])))
    if len(theta) == 1 or changed.buffer["write_cache"] == "off":
        return changed
    sectors = max(128, round(float(2 ** theta[2])))
    return changed.with_(buffer=changed.buffer | {"dirty_extents_max": extents_of(theta), "dirty_sectors_max": sectors})


def smoothing(times: Floats, sd: float) -> tuple[Floats, Floats]:
    """The times with as little bend from one distance to the next as their error lets be, and their covariance.

    Distances are even in their logarithm, nearly; curves of real arms bend by some 4 % of their time from one to the
    next.
    """
    count = len(times)
    bends = np.diff(np.eye(count), 2, axis=0) / (0.04 * (times[1:-1] + 1e6))[:, None]
    covariance = np.asarray(np.linalg.inv(np.eye(count) / sd**2 + bends.T @ bends), np.float64)
    return covariance @ times / sd**2, covariance
