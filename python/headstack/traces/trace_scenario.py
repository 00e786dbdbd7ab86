"""An endless scenario fitted to a trace: bursts of several lengths, and blocks with several access frequencies.

A scenario's requests are random and independent, from streams that are independent of each other. It can reproduce two
properties of a trace:

- Dispersion at many scales, from streams with on and off phases of different lengths (Andersen and Nielsen, IEEE JSAC
  16(5), 1998). For streams with rate variances V and correlation times T, counts in bins of length t have the index of
  dispersion 1 + sum of 2 V T / m (1 - T / t (1 - exp(-t / T))), where m is the total rate.
- Misses of LRU caches, from classes of blocks that are used again after T references on average (Che et al., IEEE JSAC
  20(7), 2002). A class with the share q of the references holds q T blocks. A cache in which blocks stay for t
  references misses exp(-t / T) of them, and one with miss ratio M evicts a block every 1 / M references.

Both are sums of known curves with non-negative weights, fitted by least squares. Nothing else is fitted.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import mul
from typing import Any, TypedDict

from headstack._native import InputError
from headstack.io.json_text import quoted
from headstack.traces.analysis import Analysis
from headstack.traces.report_types import ReuseReport, TraceReport

CLOSED_SHARE = 0.9
"""Mean queue depth of a closed loop as a share of its maximum, as for synthetic traces."""
STEPS_PER_DECADE = 2
"""Number of phase lengths, and of block frequencies, to try per decade; sums of exponentials cannot separate closer
values.
"""
ROUNDS = 20_000
"""Number of iterations of the least-squares fit, enough to converge; they take half a second of one core."""
LEAST_SHARE = 1e-4
"""Minimum share of a stream or class; smaller ones are left out."""
SUM_WEIGHT = 10.0
"""Weight of the constraint that the classes' shares add up to 1, relative to a point of the curve."""


class Place(TypedDict):
    """A part of the address range, with its share of the accesses."""

    from_percent: float
    to_percent: float
    share_percent: float


class Stream(TypedDict):
    """A stream of the scenario."""

    name: str
    range: list[str]
    """First byte of the range, and the byte after the last."""
    access: dict[str, object]
    """The table of its access specification."""


def scenario_of(analysis: Analysis) -> str:
    """Returns the scenario as TOML.

    >>> _ = hs.run("cheetah-x15-36lp", "file-server", rate="60/s", requests=300, warm_up=0, record="t.parquet")
    >>> scenario_of(hs.Trace("t.parquet").analyze()).splitlines()[0]
    'name = "twin"'
    """
    workload, report = tomllib.loads(analysis.workload_toml), analysis.report
    clients = clients_of(report)
    if clients is None:
        arrivals = [{"open": {"rate_per_s": rate_per_s, "process": process}} for rate_per_s, process in phases(report)]
    else:
        arrivals = [{"closed": {"queue_depth": clients}}]
    access = {
        "pointers": workload["streams"],
        "flush_every": workload["flush_every"],
        "addresses": {"hot_bands": bands(report, places_of(report, workload))},
        "lines": workload["lines"],
    }
    head = {
        "name": "twin",
        "source": "a trace: its mix; bursts by on and off phases, re-use by classes of blocks, fitted to its own",
        "run_length": {"requests": report["requests"]},
    }
    reach = ["0B", f"{span_bytes_of(report)}B"]
    streams: list[Stream] = [
        {"name": f"requests{number}", "range": reach, "access": {"arrivals": process, **access}}
        for number, process in enumerate(arrivals, start=1)
    ]
    return "".join(f"{key} = {inline(value)}\n" for key, value in head.items()) + "".join(map(table, streams))


def clients_of(report: TraceReport) -> int | None:
    """Returns the number of clients if the trace is a closed loop."""
    depth = report["depth"]
    return depth["max"] if depth is not None and depth["mean"] >= CLOSED_SHARE * depth["max"] else None


def span_bytes_of(report: TraceReport) -> int:
    """Returns the total size of all devices in bytes."""
    return sum(device["highest_end_bytes"] or 0 for device in report["devices"])


def phases(report: TraceReport) -> list[tuple[float, Any]]:
    """Returns the rate of each stream, and its arrival process."""
    rate_per_s = report["requests_per_s"]
    if rate_per_s is None:
        raise InputError("all requests of the trace arrive at the same time, so it has no rate for a scenario")
    scales = [scale for scale in report["arrivals"]["scales"] if scale["index_of_dispersion"] > 0]
    bins_s = [scale["bin_ns"] / 1e9 for scale in scales]
    # Fit relative errors of each scale, because dispersion grows by orders of magnitude.
    near = [1 / scale["index_of_dispersion"] for scale in scales]
    steps = round(math.log10(bins_s[-1] / bins_s[0]) * STEPS_PER_DECADE) if scales else -1
    times_s = [bins_s[0] * 10 ** (step / STEPS_PER_DECADE) for step in range(steps + 1)]
    rows = [
        [(1 + time_s / bin_s * math.expm1(-bin_s / time_s)) * weight for time_s in times_s]
        for bin_s, weight in zip(bins_s, near, strict=True)
    ]
    fitted = zip(times_s, least_squares(rows, [1 - weight for weight in near]), strict=True)
    # Rates in proportion to the square roots of the weights give all streams equally frequent on phases; otherwise long
    # phases would be so rare that a run of the trace's length had none.
    roots = {time_s: math.sqrt(weight) for time_s, weight in fitted if weight > 0}
    whole = sum(roots.values())
    roots = {time_s: root for time_s, root in roots.items() if root > LEAST_SHARE * whole}
    if not roots:
        return [(rate_per_s, "poisson")]
    streams = []
    for time_s, root in roots.items():
        rate = rate_per_s * root / sum(roots.values())
        off_over_on = rate_per_s * root**2 / (2 * time_s * rate**2)
        on_s, off_s = time_s * (1 + 1 / off_over_on), time_s * (1 + off_over_on)
        streams.append((rate, {"bursty": {"on": nanoseconds(on_s), "off": nanoseconds(off_s)}}))
    return streams


def nanoseconds(time_s: float) -> str:
    """Formats a time for TOML."""
    return f"{max(1, round(time_s * 1e9))}ns"


def places_of(report: TraceReport, workload: Mapping[str, Any]) -> list[Place]:
    """Returns parts of the address range and their shares: for one device, the bands of its random accesses; for
    several, the devices.
    """
    devices = [device for device in report["devices"] if device["highest_end_bytes"]]
    addresses = workload["addresses"]
    if len(devices) == 1:
        whole: list[Place] = [{"from_percent": 0.0, "to_percent": 100.0, "share_percent": 100.0}]
        bands: list[Place] = addresses["hot_bands"] if addresses != "uniform" else whole
        return bands
    requests = [sum(amount["requests"] for amount in device["operations"].values()) for device in devices]
    places: list[Place] = []
    start_bytes = 0
    for device, share in zip(devices, requests, strict=True):
        end_bytes = start_bytes + (device["highest_end_bytes"] or 0)
        start, end = (100 * at_bytes / span_bytes_of(report) for at_bytes in (start_bytes, end_bytes))
        places.append({"from_percent": start, "to_percent": end, "share_percent": 100 * share / sum(requests)})
        start_bytes = end_bytes
    return places


def bands(report: TraceReport, places: list[Place]) -> list[Place]:
    """Returns the part of each class of blocks in each place, with its share of the accesses."""
    reuse = report["reuse"]
    if reuse is None or reuse["block_bytes"] is None or not reuse["references"]:
        return places
    block_percent = 100 * reuse["block_bytes"] / span_bytes_of(report)
    free = [place["from_percent"] for place in places]
    busiest = max(places, key=lambda place: place["share_percent"])
    made: list[Place] = []
    # Place the most frequently used classes first, because they are small and have to fit.
    for share, blocks in classes(reuse):
        has_block = [place for place in places if blocks * place["share_percent"] >= 100] or [busiest]
        whole = sum(place["share_percent"] for place in has_block)
        for number, place in enumerate(places):
            if place not in has_block:
                continue
            part = place["share_percent"] / whole
            start = free[number]
            free[number] = min(start + max(blocks * part, 1) * block_percent, place["to_percent"])
            # If a place is full, colder classes use the whole place.
            start = start if start < free[number] else place["from_percent"]
            made.append({"from_percent": start, "to_percent": free[number], "share_percent": 100 * share * part})
    return made


def classes(reuse: ReuseReport) -> list[tuple[float, float]]:
    """Returns the share of the references and the number of blocks of each class, the most frequently used first."""
    references, curve = reuse["references"], [(0.0, 1.0)]
    curve += [
        (point["cache"], point["miss_ratio"]) for point in reuse["lru_curve"] if point["cache"] <= reuse["distinct"]
    ]
    stays, stay = [], 0.0
    for (cache, misses), (larger, fewer) in pairwise(curve):
        stay += 2 * (larger - cache) / max(misses + fewer, 1 / references)
        stays.append(stay)
    # Classes range from blocks used consecutively to blocks of which the trace shows one use in a hundred.
    means = [
        10 ** (step / STEPS_PER_DECADE)
        for step in range(math.ceil(STEPS_PER_DECADE * (math.log10(references) + 2)) + 1)
    ]

    def missed(stay: float, mean: float) -> float:
        # Averaged over the trace, because at its beginning no block has stayed that long.
        stay = min(stay, references)
        gone = math.exp(-stay / mean)
        return float((mean * (1 - gone) + (references - stay) * gone) / references)

    rows = [[missed(stay, mean) for mean in means] for stay in stays] + [[SUM_WEIGHT] * len(means)]
    shares = least_squares(rows, [misses for _, misses in curve[1:]] + [SUM_WEIGHT])
    kept = [(share, mean) for share, mean in zip(shares, means, strict=True) if share > LEAST_SHARE]
    whole = sum(share for share, _ in kept)
    return [(share / whole, share / whole * mean) for share, mean in kept]


def least_squares(rows: list[list[float]], wanted: list[float]) -> list[float]:
    """Returns the non-negative weights with which the columns best add up to ``wanted``: coordinate descent optimizes
    one weight at a time."""
    columns = list(zip(*rows, strict=True))
    products = [[dot(left, right) for right in columns] for left in columns]
    goals = [dot(column, wanted) for column in columns]
    weights = [0.0] * len(columns)
    for _ in range(ROUNDS):
        for index, row in enumerate(products):
            if row[index] > 0:
                weights[index] = max(0.0, weights[index] + (goals[index] - dot(row, weights)) / row[index])
    return weights


def dot(left: Sequence[float], right: Sequence[float]) -> float:
    """Returns the dot product."""
    return float(sum(map(mul, left, right)))


def inline(value: Any) -> str:
    """Formats a value as TOML, without tables."""
    match value:
        case dict():
            return "{ " + ", ".join(f"{key} = {inline(entry)}" for key, entry in value.items()) + " }"
        case list():
            return "[\n" + "".join(f"    {inline(entry)},\n" for entry in value) + "]"
        case float():
            # Exponentials differ between machines only after these digits.
            return f"{value:.12g}"
        case _:
            return quoted(value)


def table(stream: Stream) -> str:
    """Formats a stream of a scenario as TOML."""
    access = "".join(f"{key} = {inline(value)}\n" for key, value in stream["access"].items())
    head = f"name = {inline(stream['name'])}\nrange = {inline(stream['range'])}\n"
    return f"\n[[streams]]\n{head}\n[streams.access]\n{access}"
