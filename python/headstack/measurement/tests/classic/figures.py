"""Data of the classic tests: transfer rates over position, latency samples, writes with flushes, scores and LUNs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypedDict

from headstack.measurement.tests.classic.logged import LoggedRequest
from headstack.measurement.tests.classic.plateaus import Plateau, plateaus


@dataclass(frozen=True)
class Test:
    """A test of the set."""

    name: str
    size_bytes: int
    is_random: bool
    queue: int
    """Queue depth of each thread."""
    threads: int


class ScoreFigures(TypedDict):
    """The score of a test: its best run."""

    test: str
    kind: str
    mb_per_s: float
    iops: float
    latency_us: float | None
    """Shortest mean latency of any run, not necessarily the best run."""
    runs: int
    worst_mb_per_s: float


@dataclass(frozen=True)
class Score:
    """The runs of a test."""

    test: Test
    kind: str
    """``read``, ``write`` or ``mix``."""
    mb_per_s: list[float]
    """The rate of each run, in order."""
    mean_ms: list[float]

    @property
    def best_mb_per_s(self) -> float:
        """Score of the test: its best run, as in CrystalDiskMark."""
        return max(self.mb_per_s, default=0.0)

    def figures(self) -> ScoreFigures:
        """Returns the rate of the best run, and the shortest mean latency, which may be from another run."""
        return {
            "test": self.test.name,
            "kind": self.kind,
            "mb_per_s": self.best_mb_per_s,
            "iops": self.best_mb_per_s * 1e6 / self.test.size_bytes,
            "latency_us": min(self.mean_ms) * 1e3 if self.mean_ms else None,
            "runs": len(self.mb_per_s),
            "worst_mb_per_s": min(self.mb_per_s, default=0.0),
        }


@dataclass(frozen=True)
class Pairs:
    """Writes of one size, each followed by a flush."""

    size_bytes: int
    requested: tuple[str, ...]
    """Requested sizes; without the page cache, sizes are rounded up to whole blocks."""
    response_ns: list[int]
    """Time from the start of each write to the end of its flush, in order."""
    flush_p99_ms: float | None
    failed: int

    def percentile_ms(self, percent: float) -> float | None:
        """Returns a percentile of the times of pairs."""
        ordered = sorted(self.response_ns)
        return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)] / 1e6 if ordered else None


@dataclass(frozen=True)
class Sample:
    """A request of a latency test."""

    number: int
    """Number of the request, from 1."""
    at_s: float
    """Start time, relative to the first request."""
    position_bytes: int
    ms: float
    failed: bool


class LatencyStatistics(TypedDict):
    """Statistics of all requests of a test; ``None`` if none completed."""

    requests: int
    failed: int
    duration_s: float
    busy_s: float
    """Time in which a request was in progress."""
    min_ms: float | None
    mean_ms: float | None
    max_ms: float | None
    mdev_ms: float | None
    """Standard deviation, with the name that ping uses."""
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    iops: float
    """Requests per second over the whole test, including pauses."""
    mb_per_s: float
    busy_iops: float | None
    """Requests per second over the time in which a request was in progress."""
    busy_mb_per_s: float | None


POINTS_MAX = 4096
"""Maximum number of points of a LUN's progress; above this number, every second point is dropped."""

POINTS_AT_ONCE = 16
"""Maximum number of points added per poll of completed requests."""

SECTIONS, SECTION_REQUESTS = 100, 16
"""Number of sections of a LUN with separate rates, and minimum number of requests per section. Small LUNs have fewer
sections, because several requests complete at once."""


@dataclass
class Lun:
    """A part of a target to fill, with its progress."""

    name: str
    target: int
    start_bytes: int
    length_bytes: int
    written_bytes: int = 0
    requests: int = 0
    failed: int = 0
    points: list[tuple[int, int]] = field(default_factory=list)
    """Times (in ns, by the monotonic clock) with the bytes written so far; the first entry is the start of the first
    request, with 0 bytes."""

    def add(self, logged: Sequence[LoggedRequest]) -> None:
        """Adds the requests completed since the last call."""
        step = max(1, len(logged) // POINTS_AT_ONCE)
        for number, (_, _, _, length, intended_ns, response_ns, failed, _) in enumerate(logged, 1):
            if not self.points:
                self.points.append((intended_ns, 0))
            if failed:
                self.failed += 1
                continue
            self.written_bytes += length
            self.requests += 1
            if number % step == 0 or number == len(logged):
                self.points.append((intended_ns + response_ns, self.written_bytes))
        if len(self.points) > POINTS_MAX:
            # Keep the first and the last point.
            self.points = [*self.points[:-1:2], self.points[-1]]

    @property
    def begun_ns(self) -> int | None:
        """Start time of the first request."""
        return self.points[0][0] if self.points else None

    @property
    def ended_ns(self) -> int | None:
        """Completion time of the last request."""
        return self.points[-1][0] if self.points else None

    @property
    def mb_per_s(self) -> float | None:
        """Mean rate over the whole duration."""
        if not self.written_bytes or self.points[-1][0] == self.points[0][0]:
            return None
        return self.written_bytes * 1e3 / (self.points[-1][0] - self.points[0][0])

    def sections(self) -> list[tuple[int, int, int, float]]:
        """Returns equal sections of the written bytes, each with its first byte in the target, start and end in ns, and
        MB/s."""
        count = max(1, min(SECTIONS, self.requests // SECTION_REQUESTS))
        edges = [self.written_bytes * number // count for number in range(count + 1)]
        times = [self._time_at(edge) for edge in edges] if self.written_bytes else []
        return [
            (self.start_bytes + edges[at], times[at], times[at + 1], (edges[at + 1] - edges[at]) * 1e3 / passed)
            for at in range(len(times) - 1)
            if (passed := times[at + 1] - times[at]) > 0
        ]

    def _time_at(self, written_bytes: int) -> int:
        """Interpolates the time at which this many bytes were written."""
        after = min(bisect_right(self.points, written_bytes, key=lambda point: point[1]), len(self.points) - 1)
        (early_ns, less), (late_ns, more) = self.points[max(0, after - 1)], self.points[after]
        share = (written_bytes - less) / (more - less) if more > less else 1.0
        return round(early_ns + min(1.0, share) * (late_ns - early_ns))


class Rates(TypedDict):
    """Rates of a system from its outer to its inner edge; ``None`` without positions."""

    outer: float | None
    inner: float | None
    minimum: float | None
    mean: float | None
    maximum: float | None


class AccessTimes(TypedDict):
    """Times of random requests; ``None`` without requests."""

    mean_ms: float | None
    p1_ms: float | None
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


class Zone(TypedDict):
    """A zone of a disk, within which positions have the same rate."""

    start_bytes: int
    positions: int
    mb_per_s: float


class ProfileFigures(TypedDict):
    """Rates in MB/s (10^6 bytes) and Mb/s (10^6 bits), access times and zones of a system."""

    system: str
    mode: str
    kind: str
    start_bytes: int
    length_bytes: int
    mb_per_s: Rates
    megabits_per_s: Rates
    access: AccessTimes
    zones: list[Zone]


@dataclass(frozen=True)
class Profile:
    """The profile of a system from its outer to its inner edge."""

    system: str
    mode: str
    """``measured`` or ``simulated``."""
    kind: str
    """``read`` or ``write``."""
    start_bytes: int
    length_bytes: int
    rates: list[tuple[int, float]]
    """Rate in MB/s at each position in bytes."""
    accesses: list[tuple[int, float]]
    """Position in bytes and latency in ms of each random request."""

    @property
    def _mb_per_s(self) -> list[float]:
        return [rate for _, rate in self.rates]

    @property
    def plateaus(self) -> list[Plateau]:
        """Zones, if the steps between them are significant compared with the noise; otherwise empty."""
        return plateaus(self._mb_per_s)

    def figures(self) -> ProfileFigures:
        """Rates in MB/s (10^6 bytes) and Mb/s (10^6 bits), access times in milliseconds."""
        rates, times = self._mb_per_s, sorted(ms for _, ms in self.accesses)

        def percentile_ms(percent: int) -> float | None:
            return times[math.ceil(percent / 100 * len(times)) - 1] if times else None

        access: AccessTimes = {
            "mean_ms": fmean(times) if times else None,
            "p1_ms": percentile_ms(1),
            "p50_ms": percentile_ms(50),
            "p99_ms": percentile_ms(99),
            "max_ms": times[-1] if times else None,
        }
        return {
            "system": self.system,
            "mode": self.mode,
            "kind": self.kind,
            "start_bytes": self.start_bytes,
            "length_bytes": self.length_bytes,
            "mb_per_s": _summarize_rates(rates),
            "megabits_per_s": _summarize_rates([8 * rate for rate in rates]),
            "access": access,
            "zones": [
                {
                    "start_bytes": self.rates[zone.first][0],
                    "positions": zone.last - zone.first + 1,
                    "mb_per_s": zone.level,
                }
                for zone in self.plateaus
            ],
        }


def _summarize_rates(rates: Sequence[float]) -> Rates:
    return {
        "outer": rates[0] if rates else None,
        "inner": rates[-1] if rates else None,
        "minimum": min(rates, default=None),
        "mean": fmean(rates) if rates else None,
        "maximum": max(rates, default=None),
    }
