"""``Fit``: learns a disk in steps that each depend only on earlier ones.

Directly visible values are read from the answers: rotation, rates and the buffer's response time. The seek curve is
adjusted until the model's shortest and longest responses at each distance match the device's. Internal values (the
queue's firmware and both caches) are found by a search with our simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from headstack.twin.device import FLUSH, Answers, Floats, Requests
from headstack.twin.families.disk_model import Disk, LosesTurn, base_of
from headstack.twin.fitting import (
    QUICK_NS,
    Range,
    Statistics,
    compare,
    evolve,
    means,
    order,
    quantiles,
    run_tests,
    score,
)
from headstack.twin.probes import queue, read_buffer, rotation, seeks, tracks, write_cache, zones
from headstack.twin.probes.rotation import Rotation
from headstack.twin.session import ProbeRun, Session

PATTERNS = (
    read_buffer.in_order(read_buffer.SMALL),
    read_buffer.in_order(read_buffer.LARGE),
    read_buffer.SKIPPING,
    *(read_buffer.streams(count) for count in read_buffer.STREAMS),
)
POLICIES = ("sptf", "look", "c-look", "sstf")
FIRMWARE = (
    Range("committed", 0, 8, 0),
    Range("rotation_margin_ns", 0, 5e6, 0),
    Range("age_weight", 0, 0.3, 0),
    Range("strength", 0.1, 1, 1),
    Range("log2 depth", 2, 7.4),
)
"""Parameters of the firmware's queue; some may be absent."""
STARTS = tuple(
    np.array([committed, margin_ns, age, strength, depth])
    for depth in (3, 5, 7)
    for committed, margin_ns, age, strength in (
        (0, 0, 0, 1),
        (0, 2e6, 0, 1),
        (0, 0, 0.1, 1),
        *((0, margin, 0, strength) for strength in (0.22, 0.45, 0.7) for margin in (0, 2e6)),
        *((committed, 0, 0, 1) for committed in (1, 3, 5)),
    )
)
"""Initial firmware of each search."""
ELEVATORS = ("fcfs", "c-look", "look", "sstf")
"""Orders of a host in front of a drive that takes one command at a time."""
SIMPLER = 0.1
"""Score by which an explanation without firmware may be worse: the variation by chance."""
OPEN = 0.25
"""Score by which a candidate may be worse for reads and still be tried on writes."""
LOSES: tuple[LosesTurn, ...] = ("nowhere", "at cylinders", "at tracks")
SETTLE = Range("log write_settle_ns", float(np.log(2e4)), float(np.log(3e6)))
LOST = Range("turns lost", 0, len(LOSES) - 0.01, 0)
CACHE = (Range("log2 extents", 0, 9.5), Range("log2 sectors", 7, 19.5))
RENEWED = 0.08
POPULATION, GENERATIONS = 20, 6
"""Size of the search over reads and writes together."""
BENDS = np.array([[0, 0, 0, 0], [0, 0, -0.5, 2], [0, 0, 0, 6], [0.7, 0, -0.2, 3], [0, 2, 0, 2]])
"""Initial points of a write cache's search, around the values that a burst shows."""
SAMPLE = 20


@dataclass(frozen=True)
class Way:
    """An order in which requests are served."""

    score: float
    """Score for reads."""
    disk: Disk
    firmware: Floats | None = None
    """Its point of ``FIRMWARE``; ``None`` if the host orders."""
    others: list[Disk] = field(default_factory=list)
    """Disks with this policy and a similar score."""


@dataclass
class Fit:
    """A disk, with its known values so far."""

    session: Session
    random: np.random.Generator
    turn: Rotation
    disk: Disk = field(init=False)
    ways: list[Way] = field(default_factory=list)
    """Orders that explain concurrent reads, the best first."""
    others: list[Disk] = field(default_factory=list)
    """Disks that fit about as well."""
    seek_sd_ns: Floats = field(init=False)
    """Standard error of each point of the curve."""

    def __post_init__(self) -> None:
        self.rates = zones.learn(self.session)
        self.statistics: dict[str, Statistics] = dict.fromkeys(PATTERNS, means)
        self.statistics[write_cache.IN_ORDER] = means
        self.statistics |= dict.fromkeys((*map(queue.name, queue.DEPTHS), write_cache.MIX, write_cache.DEEP_MIX), order)
        self.statistics[write_cache.FLUSHES] = flushes
        small, per_byte = self._hits()
        capacity = self.session.device.capacity_bytes
        base = base_of(capacity, self.turn.rpm, self.rates)
        disk_tracks = tracks.learn(self.session, self.rates, self.turn)
        hit_ns = max(1e3, small - read_buffer.SMALL * per_byte)
        self.disk = Disk(
            base=base,
            capacity=capacity,
            tracks=disk_tracks,
            distances=seeks.Distances(disk_tracks.count(capacity)),
            seek_ns=np.full(seeks.COUNT, 1.0),
            command_ns=min(small, 200_000.0),
            read_hit_ns=hit_ns,
            write_hit_ns=hit_ns,
            write_settle_ns=float(base["mechanics"]["write_settle_ns"]),
            read_ns_per_byte=per_byte,
            write_ns_per_byte=per_byte,
        )

    def _hits(self) -> tuple[float, float]:
        """Returns the buffer's time for the smallest read, and that of a byte to the host; reads larger than a segment
        go to the medium again and are ignored."""
        medians_ns = {
            size: float(np.median(self.session.runs_of(read_buffer.again(size))[0].answers.response_ns[1:]))
            for size in read_buffer.AGAIN_SIZES
        }
        small = medians_ns[read_buffer.SMALL]
        hits = [size for size in read_buffer.AGAIN_SIZES[1:] if medians_ns[size] < self.turn.period_ns / 2]
        if not hits:
            return small, 0.0
        return small, max(0.0, (medians_ns[hits[-1]] - small) / (hits[-1] - read_buffer.SMALL))

    def find(self) -> None:
        """Runs all steps."""
        self.find_command()
        self.find_seeks()
        self.find_read_buffer()
        self.find_seeks()
        self.find_queue()
        if self.session.runs_of(write_cache.BURST):
            self.find_write_cache()

    def tests(self, *names: str) -> list[ProbeRun]:
        """Returns the tests with these names."""
        return [run for name in names for run in self.session.runs_of(name)]

    def score(self, disk: Disk, tests: Sequence[ProbeRun], draws: int = 1) -> float:
        """Returns the error of a disk in these tests."""
        return score(compare(disk.system, tests, self.random, self.statistics, draws))

    def choose(self, tests: Sequence[ProbeRun], candidates: Sequence[Disk], draws: int = 1) -> tuple[Disk, float]:
        """Returns the candidate that fits the device best."""
        scores = [self.score(candidate, tests, draws) for candidate in candidates]
        best = int(np.argmin(scores))
        return candidates[best], scores[best]

    # Seeks.

    def find_command(self) -> None:
        """Finds the command overhead before the arm moves, if it is visible."""
        seen = tracks.command_ns(self.session, self.turn)
        if seen is None:
            return
        block, track = self.session.device.block_bytes, float(np.median(self.disk.tracks.bytes))
        passes_ns = self.turn.period_ns * block / track + block * self.disk.read_ns_per_byte
        self.disk = self.disk.with_(command_ns=max(1e4, seen - passes_ns))

    @property
    def seek_tests(self) -> list[ProbeRun]:
        """Reads of single blocks at queue depth 1: at fixed distances, and at random ones."""
        return self.tests(seeks.TEST, rotation.TEST)

    def _pairs(self, requests: Requests, answers: Answers) -> Floats:
        """Returns the distance of each read from the previous one, as a share of the way from rim to rim, and its
        response time.
        """
        capacity = self.session.device.capacity_bytes
        moved = np.abs(np.diff(self.rates.share_of_radius(requests.offsets.astype(np.float64), capacity)))
        # Buffer hits do not move the arm.
        medium = answers.response_ns > rotation.HIT_NS / 4
        both = medium[1:] & medium[:-1]
        return np.stack([moved[both], answers.response_ns[1:][both]])

    def _middles(self, pairs: Sequence[Floats], curve_ns: Floats) -> tuple[Floats, Floats]:
        """Returns the seek time at each distance, from all reads nearest to it, with its standard error: no response is
        shorter, and none is longer by a full revolution. ``curve_ns`` corrects for the distance within the
        neighbourhood."""
        moved, took = np.concatenate(pairs, axis=1)
        shares, period = self.disk.distances.shares, self.turn.period_ns
        edges = np.sqrt(shares[1:] * shares[:-1])
        of = np.searchsorted(edges, moved)
        # Directly next to its start, a read is at a fixed angle to the previous one.
        of[moved < shares[0] - 1.1 * self.disk.distances.jitter[0]] = -1
        waited = took - np.interp(moved, shares, curve_ns)
        middles, errors = curve_ns.copy(), np.full(len(shares), period)
        for number in range(len(shares)):
            mine = waited[of == number]
            if len(mine) < 4:
                continue
            # A response longer by a revolution has missed its sector.
            mine = mine[mine < mine.min() + period]
            middles[number] += (mine.min() + mine.max() - period) / 2
            errors[number] = period / (len(mine) + 1) / np.sqrt(2)
        return middles, errors

    def _at_distances(self, pairs: Floats) -> Floats:
        """Returns the pairs at one of the set distances."""
        distances = self.disk.distances
        apart = np.abs(pairs[0][:, None] - distances.shares[None, :])
        return pairs[:, (apart < 1.5 * distances.jitter).any(axis=1)]

    def find_seeks(self, rounds: int = 4) -> None:
        """Adjusts each point of the curve by the model's error there."""
        tests = self.seek_tests
        measured = [self._pairs(run.requests, run.answers) for run in tests]
        # First only from exact distances: the curve's slope between them is not known yet.
        curve, _ = self._middles([self._at_distances(measured[0])], np.zeros(seeks.COUNT))
        for _ in range(3):
            curve, errors = self._middles(measured, smoothing(curve, self.turn.period_ns / 60)[0])
        times = np.maximum(1e4, curve - self.disk.command_ns)
        for _ in range(rounds):
            lists = run_tests(self.disk.with_(seek_ns=times).system, tests, self.random, draws=4)
            others = [self._pairs(*simulated) for simulated in lists[1]]
            model = np.mean(
                [self._middles([self._pairs(*simulated), *others], curve)[0] for simulated in lists[0]], axis=0
            )
            times = np.maximum(1e4, times + 0.8 * (curve - model))
        self.seek_sd_ns = errors
        self.disk = self.disk.with_(seek_ns=smoothing(times, errors)[0])

    # What has kinds.

    def find_read_buffer(self) -> None:
        """Finds the kind of read-ahead, and the segments."""
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
        both = [self.disk.with_(on_arrival=value) for value in (True, False)]
        self.disk, _ = self.choose(self.tests(read_buffer.LONG), both, draws=4)

    def find_queue(self) -> None:
        """Finds policy and depth of the queue, and its firmware parameters: a search for each policy, longer for the
        best ones. A drive that takes one command at a time leaves the order to its host."""
        tests = self.queue_tests
        hosted = [
            self.disk.with_(queue={"policy": "sptf", "depth": 1}, host_elevator=elevator) for elevator in ELEVATORS
        ]
        # One command at a time is the simpler explanation: it needs no firmware.
        self.ways = [Way(self.score(disk, tests, draws=4) - SIMPLER, disk) for disk in hosted]
        searches: list[tuple[float, Disk, list[Floats]]] = []
        for policy in POLICIES:
            disk = self.disk.with_(queue={"policy": policy})
            points = self._firmware(disk, tests, STARTS, population=24, generations=3)
            searches.append((points[0][0], disk, [theta for _, theta in points[:8]]))
        searches.sort(key=lambda search: search[0])
        near = [search for search in searches if search[0] < searches[0][0] + OPEN]
        for _, disk, first in near[:3]:
            points = self._firmware(disk, tests, first, population=40, generations=5)
            for _, theta in points[:6]:
                best = with_firmware(disk, theta)
                others = [with_firmware(disk, other) for _, other in points[:SAMPLE]]
                self.ways.append(Way(self.score(best, tests, draws=4), best, theta, others))
        self.ways.sort(key=lambda way: way.score)
        self.disk, self.others = self.ways[0].disk, self.ways[0].others

    @property
    def queue_tests(self) -> list[ProbeRun]:
        """Concurrent reads."""
        return self.tests(*[queue.name(depth) for depth in queue.DEPTHS])

    def _firmware(
        self,
        disk: Disk,
        tests: Sequence[ProbeRun],
        first: Sequence[Floats] = (),
        population: int = 32,
        generations: int = 5,
    ) -> list[tuple[float, Floats]]:
        return evolve(
            FIRMWARE,
            lambda theta: self.score(with_firmware(disk, theta), tests),
            self.random,
            first,
            population,
            generations,
            RENEWED,
        )

    def find_write_cache(self) -> None:
        """Finds when writes complete, the number of dirty extents and sectors, and the write settle time; together with
        the values of the queue that reads leave open, since destaging shows them."""
        burst, flushed = (
            self.session.runs_of(test)[0].answers.response_ns for test in (write_cache.BURST, write_cache.FLUSHES)
        )
        # Nothing is dirty after a rest; a flush need not wait for data that survive a power loss.
        small = float(max(burst[0], flushed[0]))
        kinds: tuple[str, ...] = ("off",)
        write_hit_ns, write_ns_per_byte = self.disk.command_ns, self.disk.write_ns_per_byte
        if small < min(QUICK_NS, self.turn.period_ns / 6):
            kinds = self.kinds_of_cache(small)
            large = float(self.session.runs_of(write_cache.BURST_LARGE)[0].answers.response_ns[0])
            if small < large < self.turn.period_ns / 2:
                write_ns_per_byte = (large - small) / ((64 << 10) - 4096)
            write_hit_ns = max(1e3, small - 4096 * write_ns_per_byte)
        steady = [write_cache.steady(depth) for depth in write_cache.STEADY]
        tests, reads = self.tests(*steady, *write_cache.SHARES, write_cache.FLUSHES), self.queue_tests
        slow = np.flatnonzero(burst > 4 * small)
        first = float(np.log2(max(1, slow[0] if len(slow) else len(burst))))
        guess = np.array([np.log(self.disk.write_settle_ns), 0, first, first + 4])
        settle = SETTLE
        if kinds == ("off",):
            seen = self.write_settle_ns()
            guess[0] = np.log(seen)
            # Its error is that of the seek curve, which it is added to.
            error = float(np.median(self.seek_sd_ns))
            settle = Range(SETTLE.name, float(np.log(max(2e4, seen - error))), float(np.log(seen + error)))
        scored = []
        for way in self._open_ways():
            for kind in kinds:
                disk = way.disk.with_(
                    buffer=way.disk.buffer | {"write_cache": kind},
                    write_hit_ns=write_hit_ns,
                    write_ns_per_byte=write_ns_per_byte,
                )
                reached = min(self.score(with_cache(disk, guess + bend), tests) for bend in BENDS)
                total = (way.score * len(reads) + reached * len(tests)) / (len(reads) + len(tests))
                scored.append((total, replace(way, disk=disk)))
        scored.sort(key=lambda candidate: candidate[0])
        results: list[tuple[float, list[Disk]]] = []
        for _, way in scored[:3]:
            ranges = [settle, LOST] if kinds == ("off",) else [settle, LOST, *CACHE]
            own = len(ranges)
            starts = [(guess + bend)[:own] for bend in BENDS]
            runs = tests
            if way.firmware is not None:
                # Reads and writes together determine the queue.
                ranges, runs = [*ranges, *FIRMWARE], [*reads, *tests]
                starts = [np.concatenate([start, way.firmware]) for start in starts]

            def build(theta: Floats, way: Way = way, own: int = own) -> Disk:
                disk = way.disk if way.firmware is None else with_firmware(way.disk, theta[own:])
                return with_cache(disk, theta[:own])

            def error_of(theta: Floats, build: Callable[[Floats], Disk] = build, runs: list[ProbeRun] = runs) -> float:
                return self.score(build(theta), runs)

            points = evolve(ranges, error_of, self.random, starts, POPULATION, GENERATIONS, RENEWED)
            best = [build(theta) for _, theta in points[:SAMPLE]]
            final, reached = self.choose([*reads, *tests], best[:4], draws=2)
            results.append((reached, [final, *(disk for disk in best if disk is not final)]))
        _, self.others = min(results, key=lambda result: result[0])
        self.disk = self.others[0]

    def kinds_of_cache(self, small_ns: float) -> tuple[str, ...]:
        """Returns the kinds of write cache that are compatible; ``small_ns`` is the time of a write that the buffer
        accepts at once.
        """
        (burst,), (flushed,) = self.session.runs_of(write_cache.BURST), self.session.runs_of(write_cache.FLUSHES)
        flush_ns = float(np.median(flushed.answers.response_ns[flushed.requests.kinds == FLUSH]))
        # Protected data are flushed at once, and a write that is only early completes once.
        flushed_kind = "protected" if flush_ns < self.turn.period_ns / 4 else "on"
        twice = burst.answers.response_ns[1] < 4 * small_ns
        return (flushed_kind,) if twice else (flushed_kind, "appending")

    def write_settle_ns(self) -> float:
        """Returns the additional settle time of a write to the medium: like the seek curve, from the shortest and
        longest responses, with the best fit if some cross a track boundary."""
        tests = self.tests(write_cache.BURST, write_cache.steady(1))
        moved, took = np.concatenate([self._pairs(run.requests, run.answers) for run in tests], axis=1)
        size, block = int(tests[0].requests.lengths[0]), self.session.device.block_bytes
        disk, period = self.disk, self.turn.period_ns
        # The curve is for reads of one block, and includes its transfer.
        longer_ns = (size - block) * (disk.read_ns_per_byte + period / float(np.median(disk.tracks.bytes)))
        left = took - np.interp(moved, disk.distances.shares, disk.seek_ns) - disk.command_ns - longer_ns
        grid = np.arange(2e4, 3e6, 1e4)
        fitting = np.array([np.mean((left >= at) & (left < at + period)) for at in grid])
        return float(grid[fitting > fitting.max() - 1.5 / len(left)].mean())

    def _open_ways(self) -> Iterator[Way]:
        """Yields the orders that reads leave open: with one command at a time the drive's own order is visible only in
        destaging.
        """
        for way in self.ways:
            if way.score > self.ways[0].score + OPEN:
                continue
            if way.firmware is not None:
                yield way
                continue
            for policy in (*POLICIES, "fcfs"):
                yield replace(way, disk=way.disk.with_(queue={"policy": policy, "depth": 1}))
            if way.disk.host_elevator == "fcfs":
                yield replace(way, disk=way.disk.with_(queue={"policy": "fcfs", "depth": 32}))

    def sample(self, reads_ns: float, writes_ns: float) -> Iterator[Disk]:
        """Yields other disks that the answers do not distinguish from this one: within the error of the seek curve, and
        with the errors of the best one for reads, and for writes."""
        _, covariance = smoothing(self.disk.seek_ns, self.seek_sd_ns)
        moves = self.random.multivariate_normal(np.zeros(len(covariance)), covariance, SAMPLE, method="eigh")
        others = self.others or [self.disk]
        for number, move in enumerate(moves):
            disk = others[number % len(others)]
            seek_ns = np.maximum(1e4, disk.seek_ns + move + self.random.normal(0, reads_ns))
            settle_ns = max(0.0, disk.write_settle_ns + self.random.normal(0, writes_ns))
            yield disk.with_(seek_ns=seek_ns, write_settle_ns=settle_ns)


def flushes(requests: Requests, answers: Answers) -> tuple[Floats, Floats]:
    """Returns the distribution of response times, and the share of flushes in them."""
    values, errors = quantiles(requests, answers)
    took = np.log(answers.response_ns[requests.kinds == FLUSH])
    return np.append(values, took.mean()), np.append(errors, np.hypot(took.std() / np.sqrt(len(took)), 0.02))


def with_firmware(disk: Disk, theta: Floats) -> Disk:
    """Returns the disk with a point of ``FIRMWARE``."""
    values = dict(zip([parameter.name for parameter in FIRMWARE], map(float, theta), strict=True))
    chosen = disk.queue | {"depth": 1 << round(values.pop("log2 depth"))}
    return disk.with_(queue=chosen, **values)


def with_cache(disk: Disk, theta: Floats) -> Disk:
    """Returns the disk with a write settle time, which may lose revolutions, and optionally with limits of dirty
    extents and sectors."""
    changed = disk.with_(write_settle_ns=float(np.exp(theta[0])), loses_turn=LOSES[int(theta[1])])
    if len(theta) == 2 or changed.buffer["write_cache"] == "off":
        return changed
    extents, sectors = max(1, round(float(2 ** theta[2]))), max(128, round(float(2 ** theta[3])))
    return changed.with_(buffer=changed.buffer | {"dirty_extents_max": extents, "dirty_sectors_max": sectors})


def smoothing(times: Floats, sd: Floats | float) -> tuple[Floats, Floats]:
    """Returns the times smoothed as far as their errors permit, with their covariance.

    Distances are nearly even in their logarithm; curves of real arms bend by about 4 % of their time from one to the
    next.
    """
    count = len(times)
    bends = np.diff(np.eye(count), 2, axis=0) / (0.04 * (times[1:-1] + 1e6))[:, None]
    covariance = np.asarray(np.linalg.inv(np.eye(count) / sd**2 + bends.T @ bends), np.float64)
    return covariance @ (times / sd**2), covariance
