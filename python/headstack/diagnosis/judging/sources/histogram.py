"""Reader of histograms of a latency in Prometheus' text format, such as etcd's of its fsyncs."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from contextlib import suppress

from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.verdict import Suspect

BUCKET = re.compile(r'^(\w+?)_bucket\{([^}]*\ble="(\d[\d.e+-]*|\+Inf)"[^}]*)\}\s+(\d[\d.e+]*)', re.MULTILINE)
SYNC = re.compile(r"fsync|wal|commit|flush|sync", re.IGNORECASE)
SHOWN_MAX = 5
"""Maximum number of histograms to show if none is of synchronous writes."""
REVOLUTION_S = 60 / 7200
"""A revolution of a disk with 7,200 a minute. Flash with protection against power loss flushes in 0.02 to 0.1 ms, other
flash in 0.5 to 5 ms."""
ADVISED_S = {"wal_fsync": 0.010, "backend_commit": 0.025}
"""Maximum 99th percentiles that etcd's documentation advises."""
FAST_S = 0.002
NEEDED = "iostat -x 5 of the same time, which has flushes (f/s, f_await) and requests in flight"


def histograms(text: str, name: str) -> list[Statement]:
    """Reads the percentiles of each histogram of seconds."""
    buckets: dict[tuple[str, str], dict[float, float]] = defaultdict(dict)
    for metric, labels, bound, count in BUCKET.findall(text):
        others = re.sub(r',?\ble="[^"]*",?', "", labels)
        with suppress(ValueError):
            buckets[metric, others][math.inf if bound == "+Inf" else float(bound)] = float(count)
    stated = []
    shown = [key for key in buckets if SYNC.search(key[0])] or [*buckets][:SHOWN_MAX]
    for (metric, _), of in ((key, buckets[key]) for key in shown):
        bounds = sorted(of.items())
        if len(bounds) >= 2 and bounds[-1][1] > 0:
            stated.append(_of_histogram(metric, bounds))
    return stated or [Statement(name, "histograms without counts", source="Prometheus histogram", needed=NEEDED)]


def _of_histogram(metric: str, bounds: list[tuple[float, float]]) -> Statement:
    (low, high), tail = quantile(bounds, 0.5), quantile(bounds, 0.99)
    advised = next((limit for word, limit in ADVISED_S.items() if word in metric), None)
    evidence = (
        f"half of {bounds[-1][1]:,.0f} take {time_text(low)} to {time_text(high)}, 99 % less than {time_text(tail[1])}"
    )
    weights: dict[Suspect, float] = {}
    if advised is not None:
        evidence += f" (etcd advises {time_text(advised)})"
    if SYNC.search(metric):
        if low >= REVOLUTION_S:
            evidence += ": revolutions of a disk, or flushes that wait behind other requests"
            weights = {"device": 2.0, "limit": -1.0, "neighbour": -1.0, "none": 0.5}
        elif tail[1] <= FAST_S:
            weights = {"device": -3.0, "none": 1.5}
    return Statement(metric, evidence, weights, False, "Prometheus histogram", NEEDED)


def quantile(bounds: list[tuple[float, float]], share: float) -> tuple[float, float]:
    """Returns the bounds of the bucket that holds a quantile.

    >>> from headstack.diagnosis.judging.sources.histogram import quantile
    >>> quantile([(0.001, 10.0), (0.01, 90.0), (float("inf"), 100.0)], 0.5)
    (0.001, 0.01)
    """
    before = 0.0
    for bound, count in bounds:
        if count >= share * bounds[-1][1]:
            return before, bound
        before = bound
    return before, math.inf
