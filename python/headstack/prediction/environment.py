"""``Environment``: the load of a prediction in terms of the low-level tests."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.scenario import Scenario, kind_of
from headstack.catalogue.workload import Workload
from headstack.io.values import duration_ns, size_bytes
from headstack.prediction.request_class import RequestClass
from headstack.prediction.trace_arrivals import Piece, pieces_of
from headstack.prediction.workload_types import Addresses, Arrivals, Line, Video
from headstack.traces.analysis import Analysis
from headstack.traces.report_types import PowerBin, ReuseReport
from headstack.traces.traces import Trace

SCENARIOS = "one stream of access, transactions or video without a frame rate"

RANGE_MIN_BYTES = 2 << 20
"""Requests closer together than random ones over this range are within the buffer, or on one or two tracks."""

FARTHER_THAN_A_QUARTER = 0.75**2


@dataclass(frozen=True)
class Spread:
    """A share of the requests with the distances of random ones over a range."""

    share: float
    """From 0 to 1."""
    range_bytes: float


@dataclass(frozen=True)
class Hot:
    """The hot part of the range of random requests, which most of them access repeatedly."""

    share: float
    """Share of the random requests, from 0 to 1."""
    part: float
    """Share of their range, above 0 and up to 1."""


@dataclass(frozen=True)
class CacheReuse:
    """Cache behaviour of a trace, which is unknown for other environments."""

    moved_bytes: int
    returns: tuple[tuple[float, float], ...]
    """For each cache size in bytes, the share of blocks that return while an LRU cache of that size holds them."""

    def returning(self, held_bytes: float) -> float:
        """Returns the share at the largest cache size of the curve that is not larger."""
        return max((share for cache, share in self.returns if cache <= held_bytes), default=0.0)


@dataclass(frozen=True)
class Processors:
    """Processors for which requests queue before they are issued."""

    count: int
    demand_ns: float
    """Mean time per request."""


@dataclass(frozen=True)
class Closed:
    """A closed loop with a queue depth, or clients that wait for their answers."""

    queue_depth: float
    think_ns: float = 0.0
    """Mean think time of a client between an answer and its next request."""
    processors: Processors | None = None
    in_a_row: int = 1
    """Number of requests between two think times."""


@dataclass(frozen=True)
class Open:
    """Open-loop Poisson arrivals."""

    rate_per_s: float


@dataclass(frozen=True)
class TraceArrivals(Open):
    """The recorded arrivals of a trace."""

    pieces: tuple[Piece, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Staged:
    """Stages with a queue depth each, of which the next starts when all requests of the last have completed, as for
    video frames.
    """

    queue_depth: int
    stages: tuple[int, ...]
    """Requests of each stage of a round."""
    pause_ns: float
    """Pause in each round, without outstanding requests."""


Load: TypeAlias = Closed | Open | Staged


@dataclass(frozen=True)
class Environment:
    """A mix of requests, their addresses, and their arrivals."""

    name: str
    classes: tuple[RequestClass, ...]
    """Classes of requests, whose shares sum to 1."""
    load: Load
    spread: tuple[Spread, ...] = ()
    """Ranges of random requests; empty for the whole system."""
    streams: int = 1
    """Number of concurrent sequential streams."""
    switch_share: float = 0.0
    """Share of the sequential requests that follow a request elsewhere, from 0 to 1."""
    align_bytes: int = 512
    """Alignment of random requests in bytes."""
    hot: Hot | None = None
    recorded: CacheReuse | None = None

    def __post_init__(self) -> None:
        if not math.isclose(sum(request_class.share for request_class in self.classes), 1.0, abs_tol=1e-6):
            raise InputError(f"{self.name}: shares of classes sum to {sum(c.share for c in self.classes):g}, not to 1")
        if not 0 <= self.switch_share <= 1:
            raise InputError(f"{self.name}: switch_share: {self.switch_share:g} is not a share; must be 0 to 1")
        if self.hot is not None and not (0 <= self.hot.share <= 1 and 0 < self.hot.part <= 1):
            raise InputError(f"{self.name}: hot: {self.hot} is out of range; shares must be 0 to 1")
        if self.streams < 1:
            raise InputError(f"{self.name}: streams: {self.streams} is out of range; must be 1 or more")

    @cached_property
    def random_share(self) -> float:
        """Random requests over all requests."""
        return min(1.0, sum(request_class.share for request_class in self.classes if request_class.is_random))

    @cached_property
    def read_share(self) -> float:
        """Reads over all requests."""
        return min(1.0, sum(request_class.share for request_class in self.classes if request_class.is_read))

    @cached_property
    def mean_bytes(self) -> float:
        """Mean length of a request."""
        return sum(request_class.share * request_class.size_bytes for request_class in self.classes)

    def at_depth(self, queue_depth: float) -> Environment:
        """Returns the environment in a closed loop with this queue depth, or number of clients if they think.

        >>> hs.load_environment("file-server").at_depth(8).load.queue_depth
        8
        """
        if isinstance(self.load, Staged):
            raise InputError(f"{self.name}: depth: its stages set their own depth")
        load = replace(self.load, queue_depth=queue_depth) if isinstance(self.load, Closed) else Closed(queue_depth)
        return replace(self, load=load)

    def at_rate(self, rate_per_s: float) -> Environment:
        """Returns the environment in an open loop with this arrival rate per second.

        >>> hs.load_environment("file-server").at_rate(100).load.rate_per_s
        100
        """
        return replace(self, load=Open(rate_per_s))


def classes_of(name: str, lines: Iterable[Line]) -> tuple[RequestClass, ...]:
    """Returns the classes of the lines of an access specification."""
    shares: dict[tuple[int, bool, bool], float] = {}
    for number, line in enumerate(lines):
        if line.get("trim_percent", 0) > 0 and line["read_percent"] < 100:
            raise InputError(
                f"lines[{number}].trim_percent: must be 0, because trims have no low-level test", file=name
            )
        if duration_ns("delay", line.get("delay", "0ns")) > 0:
            raise InputError(f"lines[{number}].delay: must be 0, because no low-level test has pauses", file=name)
        size = size_bytes("size", line["size"])
        for is_read in (True, False):
            for is_random in (True, False):
                read = line["read_percent"] if is_read else 100 - line["read_percent"]
                random = line["random_percent"] if is_random else 100 - line["random_percent"]
                key = (size, is_read, is_random)
                shares[key] = shares.get(key, 0.0) + line.get("share_percent", 100.0) * read * random / 1e6
    total = sum(shares.values())
    return tuple(RequestClass(share / total, *key) for key, share in sorted(shares.items()) if share > 0)


def of_workload(workload: Workload, span_bytes: int | None = None) -> Environment:
    """Returns the environment of an access specification; ``span_bytes`` is the range of its addresses, if stated."""
    description = workload.description
    name = workload.name
    if description["flush_every"]:
        raise InputError("flush_every: must be 0, because flushes have no low-level test", file=name)
    turn = description.get("stream_turn", 1)
    aligns = [size_bytes("align", line["align"]) if "align" in line else 512 for line in description["lines"]]
    return Environment(
        name,
        classes_of(name, description["lines"]),
        load_of(name, description["arrivals"]),
        spread=() if span_bytes is None else (Spread(1.0, float(span_bytes)),),
        hot=hot_of(name, description["addresses"]),
        streams=description["streams"],
        switch_share=0.0 if description["streams"] == 1 else 1 / turn,
        align_bytes=math.gcd(*aligns),
    )


def load_of(name: str, arrivals: Arrivals) -> Load:
    """Returns the load of arrivals. Raises ``InputError`` for bursts."""
    if "open" in arrivals:
        if arrivals["open"]["process"] not in ("poisson", "fixed"):
            raise InputError(
                "arrivals.process: must be poisson or fixed, because bursts have no low-level test", file=name
            )
        return Open(arrivals["open"]["rate_per_s"])
    return Closed(arrivals["closed"]["queue_depth"], think_ns=mean_think_ns(arrivals["closed"]["think"]))


def mean_think_ns(think: str | dict[str, str]) -> float:
    """Returns the mean think time."""
    return 0.0 if isinstance(think, str) else float(duration_ns("think", next(iter(think.values()))))


def hot_of(name: str, addresses: Addresses) -> Hot | None:
    """Returns the hot part of random requests: the densest band, with the others taken as uniform."""
    if addresses == "uniform":
        return None
    if isinstance(addresses, str) or "hot_bands" not in addresses:
        raise InputError("addresses: must be uniform or hot_bands, because others have no low-level test", file=name)
    bands = [
        Hot(band["share_percent"] / 100, (band["to_percent"] - band["from_percent"]) / 100)
        for band in addresses["hot_bands"]
    ]
    hottest = max(bands, key=lambda band: band.share / band.part)
    return hottest


def spread_of_seeks(seeks: Sequence[PowerBin], span_bytes: int) -> tuple[Spread, ...]:
    """Returns the ranges over which random requests would have these distances, from histograms in powers of two.

    Random requests over a range are farther apart than 25 % of it in (3/4)^2 of the cases: the widest range gets the
    share that explains the largest distances, the next range explains the remaining ones, and so on.
    """
    bins = sorted((int(bin_["from"]), float(bin_["count"])) for bin_ in seeks if bin_["from"] > 0)
    total = sum(count for _, count in bins)
    if total == 0:
        return ()

    def share_beyond(distance: float) -> float:
        """Returns the share of the seeks that are longer; within a bin their logarithms are spread evenly."""
        shares = (count * min(1.0, max(0.0, math.log2(2 * low / distance))) for low, count in bins)
        return sum(shares) / total

    spreads: list[Spread] = []
    width, left = float(span_bytes), 1.0
    while width > 4 * RANGE_MIN_BYTES and left > 0:
        longer_share = share_beyond(width / 4)
        explained = sum(spread.share * (1 - min(1.0, width / 4 / spread.range_bytes)) ** 2 for spread in spreads)
        share = min(left, max(0.0, (longer_share - explained) / FARTHER_THAN_A_QUARTER))
        if share > 0:
            spreads.append(Spread(share, width))
            left -= share
        width /= 4
    if left > 0:
        spreads.append(Spread(left, width))
    return tuple(spreads)


def of_trace(trace: Trace) -> Environment:
    """Returns the environment of a trace: mix, streams and ranges from its analysis, with the recorded arrivals."""
    analysis = trace.analyze()
    environment = of_analysis(analysis)
    assert isinstance(environment.load, Open)
    pieces = pieces_of(trace, int(analysis.report["requests"]))
    return replace(environment, load=TraceArrivals(environment.load.rate_per_s, pieces))


def of_analysis(analysis: Analysis) -> Environment:
    """Returns the environment of an analysis. Raises ``InputError`` if the trace lacks the required data."""
    workload = _native.complete_workload(tomllib.loads(analysis.workload_toml))
    report = analysis.report
    seeks = report["sequence"]["forward_seeks_bytes"] + report["sequence"]["backward_seeks_bytes"]
    environment = replace(of_workload(Workload(workload | {"addresses": "uniform"})), name=analysis.name)
    strict = report["sequence"]["strict"]["share"] or 0.0
    continuing = 1 - environment.random_share
    # Requests that continue a stream, but not the previous request, return to the stream.
    back = max(0.0, continuing - strict)
    return replace(
        environment,
        spread=spread_of_seeks(seeks, int(report["highest_end_bytes"] or 0)),
        streams=max(workload["streams"], 1),
        switch_share=min(1.0, back / continuing) if continuing > 0 else 0.0,
        align_bytes=report["alignment"]["common_bytes"] or 512,
        recorded=CacheReuse(int(report["bytes"]), returns_of(report["reuse"])),
    )


def returns_of(reuse: ReuseReport | None) -> tuple[tuple[float, float], ...]:
    """Returns the share of blocks that return to a cache, by its size."""
    curve = reuse["lru_curve"] if reuse is not None else []
    return tuple(
        (float(point["cache_bytes"]), 1 - point["miss_ratio"]) for point in curve if point["cache_bytes"] is not None
    )


def of_scenario(scenario: Scenario) -> Environment:
    """Returns the environment of a scenario with one kind of clients."""
    description, name = scenario.description, scenario.name
    streams = description["streams"]
    kind = kind_of(streams[0])
    stream = streams[0][kind]
    plain = len(streams) == 1 and "pool" not in description and "network" not in description
    if not plain or kind not in ("access", "transactions", "video") or "lun" in streams[0]:
        raise InputError(f"allowed: {SCENARIOS}; for others, record a trace (run --record) and predict that", file=name)
    if kind == "video":
        return of_video(name, stream)
    workload = {"name": name, "lines": stream["lines"], "addresses": stream["addresses"]}
    if kind == "access":
        workload |= {"arrivals": stream["arrivals"], "streams": stream.get("pointers", 1)}
        return of_workload(completed(workload))
    requests = stream["requests"]
    load = Closed(
        stream["clients"],
        mean_think_ns(stream["think"]) / requests,
        Processors(description["cpus"], duration_ns("cpu", stream["cpu"]) / requests),
        in_a_row=requests,
    )
    return replace(of_workload(completed(workload)), load=load)


def completed(workload: Mapping[str, object]) -> Workload:
    """Returns the workload with all defaults filled in."""
    return Workload(_native.complete_workload(workload))


def of_video(name: str, video: Video) -> Environment:
    """Returns the environment of video tracks in turn, frame by frame: reads, then a processor, then writes."""
    if video.get("frames_per_s") is not None or video["buffer_frames"] != 1:
        raise InputError(
            "video: must read one frame at a time, because frame rates and buffers have no low-level test", key=name
        )
    frame, request = size_bytes("frame", video["frame"]), size_bytes("request", video["request"])
    whole, rest = divmod(-(-frame // 512) * 512, request)
    sizes = [(request, whole)] + ([(rest, 1)] if rest else [])
    in_frame = sum(count for _, count in sizes)
    tracks = {True: video["reads"], False: video["writes"]}
    total = in_frame * sum(tracks.values())
    classes = [
        RequestClass(count * tracks[is_read] / total, size, is_read, is_random=False)
        for is_read in (True, False)
        for size, count in sizes
        if tracks[is_read] * count
    ]
    several = sum(tracks.values())
    return Environment(
        name,
        tuple(classes),
        Staged(
            video["queue_depth"], tuple(t * in_frame for t in tracks.values() if t), duration_ns("cpu", video["cpu"])
        ),
        streams=several,
        switch_share=0.0 if several == 1 else 1 / in_frame,
    )
