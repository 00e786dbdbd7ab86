"""``SustainedLoad``: the load that an open loop puts on hard limits, computed without a run: the sustained limits of a
cloud volume, and the host links and processors of an array.

At or above a limit, the queue grows without bound, but slowly: at 100 %, a short run still shows the latency of an
unlimited volume. Just below a limit, the queue takes longer to reach its steady state than most runs last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstack.io.values import size_bytes
from headstack.prediction.request_class import RequestClass
from headstack.twin.volume_types import Accounting, Counts, Limit, Volume

FULL = 1 - 1e-9
"""Utilization from which a limit counts as reached; shares of requests add up to 1 only within rounding."""
RELAXATIONS = 16
"""Minimum length of a run in relaxation times of the queue at a limit. The confidence interval needs at least 16
independent batches, and means over less than one relaxation time are correlated."""


@dataclass(frozen=True)
class OpenClass:
    """Requests of one class that arrive in an open loop."""

    per_s: float
    size_bytes: int
    is_read: bool
    is_random: bool


@dataclass(frozen=True)
class SustainedLoad:
    """The load on the sustained limits of a system. Burst credits do not count: they end."""

    utilization: float = 0.0
    """Share of the busiest limit that the load needs; above 1 if it needs more than the limit."""
    requests_min: float = 0.0
    """Minimum requests of a run whose intervals can be trusted; infinite at a limit."""
    iops_max: float = math.inf
    """Requests per second that the limits sustain of this load."""
    bytes_per_s_max: float = math.inf
    """Bytes per second that the limits sustain of this load."""

    @property
    def is_overload(self) -> bool:
        """Whether the queue grows without bound."""
        return self.utilization >= FULL


def open_classes(per_s: float, classes: Iterable[RequestClass]) -> tuple[OpenClass, ...]:
    """Returns the classes of a workload with a rate.

    >>> from headstack.prediction.request_class import RequestClass
    >>> open_classes(3000, [RequestClass(0.6, 8192, True, True)])[0].per_s
    1800.0
    """
    return tuple(OpenClass(per_s * each.share, each.size_bytes, each.is_read, each.is_random) for each in classes)


def open_classes_of(streams: Iterable[Mapping[str, Any]]) -> tuple[OpenClass, ...]:
    """Returns the classes of those streams of a scenario that arrive in an open loop of their own. Other streams add
    load, so the result is a lower bound."""
    classes: list[OpenClass] = []
    for stream in streams:
        access = stream.get("access", {})
        arrivals = access.get("arrivals", {})
        if "open" in arrivals:
            classes += _classes_of_access(access, arrivals["open"]["rate_per_s"])
    return tuple(classes)


def _classes_of_access(access: Mapping[str, Any], per_s: float) -> list[OpenClass]:
    """Returns the classes of an access specification, without trims and flushes, which no limit counts."""
    classes = []
    total = sum(line.get("share_percent", 100.0) for line in access["lines"])
    for line in access["lines"]:
        share = line.get("share_percent", 100.0) / total
        reads, random = line["read_percent"] / 100, line["random_percent"] / 100
        writes = (1 - reads) * (1 - line.get("trim_percent", 0.0) / 100)
        length = size_bytes("size", line["size"])
        for of_kind, is_read in ((reads, True), (writes, False)):
            for of_order, is_random in ((random, True), (1 - random, False)):
                classes.append(OpenClass(per_s * share * of_kind * of_order, length, is_read, is_random))
    # Each flush takes the place of an arrival.
    flushes = sum(1 / access[key] for key in ("flush_every", "sync_every") if access.get(key))
    writes_per_s = sum(each.per_s for each in classes if not each.is_read)
    data_share = 1 / (1 + flushes * writes_per_s / per_s)
    return [
        OpenClass(each.per_s * data_share, each.size_bytes, each.is_read, each.is_random)
        for each in classes
        if each.per_s > 0
    ]


def sustained_load(
    costs: Sequence[Sequence[float]], classes: Sequence[OpenClass], factor: float = 1.0
) -> SustainedLoad:
    """Returns the load of requests that arrive in an open loop, multiplied by ``factor``, on limits. ``costs`` are the
    seconds of each limit that one request of each class takes."""
    rates = [factor * each.per_s for each in classes]
    utilization, requests_min = 0.0, 0.0
    slowed = [1.0] * len(classes)
    for of_limit in costs:
        used = sum(rate * cost for rate, cost in zip(rates, of_limit, strict=True))
        if not used:
            continue
        utilization = max(utilization, used)
        slowed = [max(by, used) if cost else by for by, cost in zip(slowed, of_limit, strict=True)]
        # Variance of the work of Poisson arrivals, relative to the mean work of one: 1 for equal requests.
        counted = sum(rate for rate, cost in zip(rates, of_limit, strict=True) if cost)
        variance = counted * sum(rate * cost**2 for rate, cost in zip(rates, of_limit, strict=True)) / used**2
        requests_min = max(requests_min, RELAXATIONS * _relaxation(used, variance) * sum(rates) / counted)
    if utilization < FULL:
        return SustainedLoad(utilization, requests_min)
    kept = [rate / by for rate, by in zip(rates, slowed, strict=True)]
    bytes_per_s = sum(rate * each.size_bytes for rate, each in zip(kept, classes, strict=True))
    return SustainedLoad(utilization, requests_min, sum(kept), bytes_per_s)


def volume_costs(volume: Volume, classes: Sequence[OpenClass]) -> list[list[float]]:
    """Returns the seconds of each limit of a volume that a request of each class takes."""
    accounting = volume["accounting"]
    return [
        [_cost(limit["counts"], accounting, each) / limit["per_s"] if _counts(limit, each) else 0.0 for each in classes]
        for limit in volume["limits"]
    ]


def array_costs(description: Mapping[str, Any], classes: Sequence[OpenClass]) -> list[list[float]]:
    """Returns the seconds that a request of each class takes, at least, of an array's processors and of each direction
    of its host links. Cache hits cross these too."""
    controller = description["controller"]
    costs = [[controller["request_ns"] / controller["processors"] / 1e9] * len(classes)]
    for number in description["host_links"]:
        link = description["links"][number]
        times = [
            (link["ns_per_byte"] * each.size_bytes + link["read_ns" if each.is_read else "write_ns"]) / 1e9
            for each in classes
        ]
        if link["full_duplex"]:
            for is_read in (True, False):
                pairs = zip(times, classes, strict=True)
                costs.append([time if each.is_read == is_read else 0.0 for time, each in pairs])
        else:
            costs.append(times)
    return costs


def _relaxation(utilization: float, variance: float) -> float:
    """Returns the relaxation time of a queue, in requests, by its diffusion approximation: twice the variance over the
    square of the drift. For a single server with exponential times it is 4 / (1 - utilization)^2, as published (Cohen,
    The Single Server Queue, 1982)."""
    return math.inf if utilization >= FULL else 2 * variance / (1 - utilization) ** 2


def _counts(limit: Limit, requests: OpenClass) -> bool:
    match limit["of"]:
        case "both":
            return True
        case "reads":
            return requests.is_read
        case "writes":
            return not requests.is_read


def _cost(counts: Counts, accounting: Accounting, requests: OpenClass) -> float:
    """Returns the mean units of a request at a limit, at least: sequential requests merge as much as they can."""
    unit = accounting["unit_bytes"]
    if unit is None:
        number, length = 1.0, float(requests.size_bytes)
    else:
        merges = accounting["merges"] and not requests.is_random
        number = requests.size_bytes / unit if merges else float(math.ceil(requests.size_bytes / unit))
        length = number * unit if accounting["whole_units"] else float(requests.size_bytes)
    return number if counts == "requests" else length
