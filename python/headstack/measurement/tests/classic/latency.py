"""``Latency``: the latency of single requests at queue depth 1, like ioping."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from headstack import _native
from headstack._native import Field, InputError, format_bytes
from headstack.io.values import duration_ns, size_bytes
from headstack.measurement.access import Access
from headstack.measurement.measurement import Opened, Step
from headstack.measurement.specs import StoredHistogram, StoredKind
from headstack.measurement.tests.classic.outcome import (
    NOTHING_ALLOWED,
    Outcome,
    at_least,
    own_file,
    part_of,
    requests,
    whole_blocks,
)
from headstack.results import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from headstack.measurement.tests.classic.figures import LatencyStatistics, Sample
from headstack.measurement.tests.classic.logged import LoggedRequest

COUNT, INTERVAL, SIZE, SEQUENTIAL_SIZE = 20, "1s", "4KiB", "256KiB"

FILE = "64MiB"

NO_END = 1 << 62
"""Number of requests of a test without a limit."""

SAMPLES_MAX = 1 << 20
"""Maximum number of requests to keep; above it, only every second (then fourth) request is kept. Statistics include
all requests."""


class Samples:
    """Statistics of any number of requests in bounded memory."""

    def __init__(self, each: Callable[[Sample], object] | None) -> None:
        self.kept: list[Sample] = []
        self._each, self._seen, self._stride = each, 0, 1
        self._first_ns: int | None = None

    def add(self, logged: Iterable[LoggedRequest]) -> None:
        """Adds the requests completed since the last call."""
        for _, _, position_bytes, _, intended_ns, response_ns, failed, _ in logged:
            if self._first_ns is None:
                self._first_ns = intended_ns
            self._seen += 1
            at_s = (intended_ns - self._first_ns) / 1e9
            sample = Sample(self._seen, at_s, position_bytes, response_ns / 1e6, failed)
            if self._each is not None:
                self._each(sample)
            if self._seen % self._stride == 0:
                self.kept.append(sample)
                if len(self.kept) == SAMPLES_MAX:
                    self.kept, self._stride = self.kept[1::2], 2 * self._stride


class SampleFigures(TypedDict):
    """A ``Sample`` as a row."""

    number: int
    at_s: float
    position_bytes: int
    ms: float
    failed: bool


@dataclass(frozen=True)
class Latency(Outcome):
    """Requests at queue depth 1, and their distribution."""

    fields = (
        Field("number", "count", "", "number of the request, from 1"),
        Field("at_s", "figure", "s", "issue time, after the start"),
        Field("position_bytes", "count", "bytes", "position of the request"),
        Field("ms", "figure", "ms", "latency"),
        Field("failed", "flag", "", "whether the request failed"),
    )

    target: str
    kind: str
    size_bytes: int
    interval_s: float
    samples: list[Sample]

    @property
    def test(self) -> str:
        """The name of the test."""
        return "latency"

    def figures(self) -> Mapping[str, object]:
        """``statistics`` of all requests, their ``histogram``, and the individual requests as ``samples``."""
        return {
            "target": self.target,
            "kind": self.kind,
            "size_bytes": self.size_bytes,
            "interval_s": self.interval_s,
            "statistics": self.statistics(),
            "histogram": [{"from_ms": low, "to_ms": high, "requests": count} for low, high, count in self.histogram()],
            "samples": self.rows(),
        }

    def rows(self) -> list[SampleFigures]:
        """Returns a row for each request."""
        return [
            {"number": s.number, "at_s": s.at_s, "position_bytes": s.position_bytes, "ms": s.ms, "failed": s.failed}
            for s in self.samples
        ]

    def statistics(self) -> LatencyStatistics:
        """Returns the number of requests, their response times in milliseconds (``mdev_ms`` is the standard deviation,
        with ping's name), and rates: over the whole test including pauses, and over the time in which a request was in
        progress."""
        row, histogram = self.results[0], self._response()
        count, busy_s = int(histogram["count"]), int(histogram["sum_ns"]) / 1e9
        mean_ns = int(histogram["sum_ns"]) / count if count else 0.0
        variance = int(histogram["sum_squares_ns2"]) / count - mean_ns**2 if count else 0.0
        return {
            "requests": count,
            "failed": row["errors"],
            "duration_s": row["duration_s"],
            "busy_s": busy_s,
            "min_ms": int(histogram["min_ns"]) / 1e6 if count else None,
            "mean_ms": mean_ns / 1e6 if count else None,
            "max_ms": int(histogram["max_ns"]) / 1e6 if count else None,
            "mdev_ms": math.sqrt(max(0.0, variance)) / 1e6 if count else None,
            "p50_ms": row["p50_ms"],
            "p90_ms": row["p90_ms"],
            "p99_ms": row["p99_ms"],
            "p999_ms": row["p999_ms"],
            "iops": row["iops"],
            "mb_per_s": row["mb_per_s"],
            "busy_iops": count / busy_s if busy_s else None,
            "busy_mb_per_s": count * self.size_bytes / busy_s / 1e6 if busy_s else None,
        }

    def histogram(self) -> list[tuple[float, float, int]]:
        """Returns the number of requests between powers of two of a microsecond, in milliseconds, without gaps."""
        counts: dict[int, int] = {}
        for middle_ns, count in self._response()["bins"]:
            power = max(0, math.floor(math.log2(max(1, middle_ns) / 1e3)) + 1)
            counts[power] = counts.get(power, 0) + count
        if not counts:
            return []
        edges = [0.0, *(2.0**power / 1e3 for power in range(max(counts) + 1))]
        return [(edges[p], edges[p + 1], counts.get(p, 0)) for p in range(min(counts), max(counts) + 1)]

    def answer(self) -> str:
        """Returns a sentence with the latency of the requests."""
        statistics = self.statistics()
        load = f"{self.target}: {statistics['requests']:,} {self.kind}s of {format_bytes(self.size_bytes)}"
        # A percentile with fewer than ten requests above it is nearly the maximum.
        p99_ms = statistics["p99_ms"] if statistics["requests"] >= 1000 else None
        labelled = (("median", statistics["p50_ms"]), ("p99", p99_ms), ("max", statistics["max_ms"]))
        times = [f"{label} {words.time(ms)}" for label, ms in labelled if ms is not None]
        return f"{load}, {', '.join(times)}." if times else f"{load}."

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plots latency over time, and its distribution."""
        from headstack.measurement.tests.classic import pictures  # start-up time

        return pictures.drawn(
            pictures.latency(
                self.target, self.kind, self.size_bytes, self.samples, self.statistics(), self.results[0]["seed"]
            ),
            path,
        )

    def _response(self) -> StoredHistogram:
        kind: StoredKind = self.results.whole(0)["kinds"][self.kind]
        return kind["latency"]


def latency(
    target: str | os.PathLike[str],
    access: Access = NOTHING_ALLOWED,
    *,
    count: int = COUNT,
    interval: str = INTERVAL,
    size: str | None = None,
    range: str | None = None,
    sequential: bool = False,
    write: bool = False,
    time: str | None = None,
    seed: int = 1,
    each: Callable[[Sample], object] | None = None,
) -> Latency:
    """Makes single random requests to a file or device, each ``interval`` after the completion of the previous request.

    The test ends after ``count`` requests (0 for any number) or after ``time``. The first request does not count,
    because many devices have to wake up. ``size`` is 4 KiB, or 256 KiB if the requests are ``sequential``. ``each`` is
    called with every completed request. In a folder, a file of 64 MiB is created and removed afterwards. Writing needs
    the permission that ``access`` contains.

    >>> hs.latency("null:100us", count=5, interval="0s").statistics()["requests"]
    5
    """
    path = os.fspath(target)
    interval_ns = duration_ns("interval", interval)
    if interval_ns < 0:
        raise InputError(f"{interval} is negative; must be 0s or longer", key="interval")
    limits = {"requests": at_least("count", count, 0) or NO_END}
    if time is not None:
        limits["time_ns"] = duration_ns("time", time)
        if limits["time_ns"] <= 0:
            raise InputError(f"{time} is out of range; must be above 0s", key="time")
    elif not count:
        raise InputError("a test without a number of requests needs a time limit; set time", key="count")
    with own_file(path, access, FILE) as (file, allowed):
        return _measured(path, Opened([file], allowed, write), size, interval_ns, range, sequential, limits, seed, each)


def _measured(
    path: str,
    opened: Opened,
    size: str | None,
    interval_ns: int,
    part: str | None,
    sequential: bool,
    limits: dict[str, int],
    seed: int,
    each: Callable[[Sample], object] | None,
) -> Latency:
    write = opened.writing
    bytes_ = whole_blocks(opened, size_bytes("size", size or (SEQUENTIAL_SIZE if sequential else SIZE)))
    kind = "write" if write else "read"
    read, random = 0 if write else 100, 0 if sequential else 100
    name, span = f"single {kind}s", part_of(opened, part)
    first = opened.measure(
        [Step(requests(name, bytes_, read_percent=read, random_percent=random), span, seed=seed + 1)]
    )
    made, samples = first, Samples(each)
    if opened.ended is None:
        log = _native.RequestLog()
        described = requests(name, bytes_, read_percent=read, random_percent=random, think_ns=interval_ns)
        made = opened.measure([Step(described, span, limits, seed=seed)], lambda _: samples.add(log.take()), log=log)
        samples.add(log.take())
    return Latency(made, opened.ended, path, kind, bytes_, interval_ns / 1e9, samples.kept)
