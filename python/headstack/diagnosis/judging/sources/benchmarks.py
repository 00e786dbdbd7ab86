"""Readers of benchmarks' text: fio, rbd bench and rados bench, dd, ioping, hdparm, pg_test_fsync, sysbench.

A benchmark shows one load without the host's other figures, so most of them decide little: Little's law shows a queue,
an even round rate shows a limit.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise
from statistics import fmean, pstdev
from typing import NamedTuple

from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.suspects.flatness import is_round
from headstack.diagnosis.judging.suspects.level import DEEP, by_depth, by_latency
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.suspects.weighing import by_width
from headstack.diagnosis.judging.verdict import Suspect

UNITS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3, "sec": 1.0, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
FIO = re.compile(r"^fio-\d", re.MULTILINE)
FIO_GROUP = re.compile(r"^(.*?): \(groupid=\d+, jobs=(\d+)\)", re.MULTILINE)
FIO_JOB = re.compile(r"^(.*?): \(g=\d+\): rw=(\w+), .*?ioengine=(\w+), iodepth=(\d+)", re.MULTILINE)
FIO_KIND = re.compile(r"^\s*(read|write)\s*: (?:io=\S+, bw=\S+, )?(?:IOPS=|iops=)(\d+(?:\.\d+)?)([kM]?)", re.MULTILINE)
FIO_MEAN = re.compile(r"^\s+lat \((nsec|usec|msec)\)\s*: min=.*?avg=\s*(\d+(?:\.\d+)?)([kM]?)", re.MULTILINE)
FIO_COMPLETION = re.compile(r"^\s+clat \((nsec|usec|msec)\)\s*: min=.*?avg=\s*(\d+(?:\.\d+)?)([kM]?)", re.MULTILINE)
FIO_PERCENTILES = re.compile(
    r"clat percentiles \((nsec|usec|msec)\):(.*?)(?=^\s+(?!\|)\S|\Z)", re.MULTILINE | re.DOTALL
)
FIO_PERCENTILE = re.compile(r"(\d+(?:\.\d+)?)th=\[\s*(\d+)\]")
FIO_BANDWIDTH = re.compile(
    r"^\s+bw \([^)]*\)\s*: .*?avg=\s*(\d+(?:\.\d+)?), stdev=\s*(\d+(?:\.\d+)?), samples=(\d+)", re.MULTILINE
)
SAMPLES_MIN = 10
SYNCHRONOUS = ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap")
MEMORY_S = 15e-6
"""Latency below which a page cache has answered: the fastest devices take 8 to 10 us behind a system call."""
GAP = 20.0
"""Ratio of the 99th percentile to the median from which there are two modes."""
FLAT_TAIL = 0.05
"""Relative difference of p99 and p99.9 of requests that all wait for the same clock."""
NEEDED = "iostat -x 1 while it runs, and its JSON (fio --output-format=json) for headstack compare"
MONITOR = "iostat -x 5 while the trouble lasts"
SUFFIX = {"": 1.0, "k": 1e3, "M": 1e6}


class _Job(NamedTuple):
    """A kind of request of a group of fio's jobs."""

    name: str
    kind: str
    rate: float
    latency_s: float
    percentiles_s: dict[float, float]
    deviation: float
    """Relative standard deviation of the bandwidth; NaN if unknown."""
    is_synchronous: bool


def fio(text: str, name: str) -> list[Statement]:
    """Reads fio's output for people: requests in flight by Little's law, even rates, and two modes of latency."""
    stated = [_of_job(job) for job in _jobs(text)]
    return stated or [Statement(name, "fio output without latencies", source="fio", needed=NEEDED)]


def _jobs(text: str) -> list[_Job]:
    engines = {name: engine for name, _, engine, _ in FIO_JOB.findall(text)}
    groups = [*FIO_GROUP.finditer(text)]
    jobs = []
    for number, group in enumerate(groups):
        end = groups[number + 1].start() if number + 1 < len(groups) else len(text)
        part = text[group.end() : end]
        kinds = [*FIO_KIND.finditer(part)]
        for at, kind in enumerate(kinds):
            section = part[kind.start() : kinds[at + 1].start() if at + 1 < len(kinds) else len(part)]
            mean = FIO_MEAN.search(section) or FIO_COMPLETION.search(section)
            if mean is None:
                continue
            percentiles: dict[float, float] = {}
            if block := FIO_PERCENTILES.search(section):
                percentiles = {float(p): int(v) * UNITS[block[1]] for p, v in FIO_PERCENTILE.findall(block[2])}
            bandwidth = FIO_BANDWIDTH.search(section)
            has_deviation = bandwidth is not None and int(bandwidth[3]) >= SAMPLES_MIN and float(bandwidth[1]) > 0
            jobs.append(
                _Job(
                    group[1].strip(),
                    kind[1],
                    float(kind[2]) * SUFFIX[kind[3]],
                    float(mean[2]) * SUFFIX[mean[3]] * UNITS[mean[1]],
                    percentiles,
                    float(bandwidth[2]) / float(bandwidth[1]) if bandwidth and has_deviation else math.nan,
                    engines.get(group[1].strip(), "") in SYNCHRONOUS,
                )
            )
    return jobs


def _of_job(job: _Job) -> Statement:
    in_flight = job.rate * job.latency_s
    said = [
        f"{job.rate:,.0f} {job.kind}s a second at {time_text(job.latency_s)} are {in_flight:,.3g} in flight "
        "(Little's law)"
    ]
    weights: dict[Suspect, float] = {**by_depth(in_flight)}
    if in_flight >= DEEP:
        weights["host"] = -3.0
    median_s, p99_s, p999_s = (job.percentiles_s.get(percent, math.nan) for percent in (50.0, 99.0, 99.9))
    for suspect, weight in by_latency(median_s if math.isfinite(median_s) else job.latency_s).items():
        weights[suspect] = weights.get(suspect, 0.0) + weight
    if median_s < MEMORY_S and p99_s > GAP * median_s:
        # The cache answers most requests; what reads on behalf of the others is the host's, as is their time.
        said.append(
            f"two modes: {time_text(median_s)} from memory, and {time_text(p99_s)} for the requests that fetch data"
        )
        weights = {"host": 1.5, "device": 0.0, "queue": -3.0, "limit": -1.0, "neighbour": -1.0}
    elif p99_s > GAP * median_s and abs(p999_s / p99_s - 1.0) <= FLAT_TAIL:
        said.append(
            f"two modes: {time_text(median_s)}, and a flat {time_text(p99_s)} from p99 to p99.9, like a limiter's clock"
        )
        weights["limit"] = weights.get("limit", 0.0) + 2.5
    if is_round(job.rate) and (width := by_width(job.deviation)) > 0:
        said.append(f"the rate is round and even within {job.deviation:.1%}")
        weights["limit"] = weights.get("limit", 0.0) + width + 2.0
    needed = NEEDED if not job.is_synchronous else f"{NEEDED}; its engine is synchronous, so iodepth has no effect"
    return Statement(job.name, "; ".join(said), weights, False, "fio", needed)


RBD_BENCH = re.compile(r"^bench\s+type \w+.*io_threads (\d+)|^\s*SEC\s+OPS\s+OPS/SEC\s+BYTES/SEC", re.MULTILINE)
RBD_LINE = re.compile(r"^\s+(\d+)\s+(\d+)\s+(\d+(?:\.\d+)?)\s+[\d.]+", re.MULTILINE)
RADOS_BENCH = re.compile(r"^\s*sec Cur ops\s+started\s+finished\s+avg MB/s", re.MULTILINE)
RADOS_LINE = re.compile(r"^\s*(\d+)\s+(\d+)\s+\d+\s+(\d+)\s+[\d.]+\s+[\d.]+\s+\S+\s+(\d+(?:\.\d+)?)\s*$", re.MULTILINE)


def ceph_bench(text: str, name: str) -> list[Statement]:
    """Reads ``rbd bench`` and ``rados bench``, whose operations are running counts."""
    is_rados = RADOS_BENCH.search(text) is not None
    lines = [
        (float(m[1]), float(m[3] if is_rados else m[2])) for m in (RADOS_LINE if is_rados else RBD_LINE).finditer(text)
    ]
    rates = [(count - was) / (at_s - was_s) for (was_s, was), (at_s, count) in pairwise(lines) if at_s > was_s]
    if len(rates) < 2:
        return [Statement(name, "too few lines for a rate", source="rbd bench", needed=MONITOR)]
    mean, deviation = fmean(rates), pstdev(rates) / fmean(rates) if fmean(rates) else math.nan
    header = RBD_BENCH.search(text)
    threads = (
        float(header[1])
        if header and header[1]
        else fmean(float(m[2]) for m in RADOS_LINE.finditer(text))
        if is_rados
        else 1.0
    )
    weights: dict[Suspect, float] = {**by_depth(threads)}
    # Volumes behind a network often have a limit, and the rate of a device varies by chance.
    shape = by_width(deviation) + (2.0 if is_round(mean) else -1.1) + 1.0
    weights["limit"] = weights.get("limit", 0.0) + shape
    evidence = (
        f"{mean:,.0f} IOPS within {deviation:.1%}, {'a round number' if is_round(mean) else 'no round number'}, with "
        f"{threads:.0f} in flight: {time_text(threads / mean) if mean else 'no answer'} each"
    )
    needed = "the limits of the image (rbd config image list POOL/IMAGE), and ceph osd perf"
    return [Statement(name, evidence, weights, False, "rados bench" if is_rados else "rbd bench", needed)]


DD = re.compile(r"^(\d+)\+\d+ records out.*?^(\d+) bytes.*? copied, ([\d.,]+) s", re.MULTILINE | re.DOTALL)


def dd(text: str, name: str) -> list[Statement]:
    """Reads the summary of dd: the mean time of a record."""
    stated = []
    for records, amount, seconds in DD.findall(text):
        spent_s = float(seconds.replace(",", "."))
        if not spent_s or not int(records):
            continue
        said = (
            f"{int(amount) / 1e6:,.0f} MB at {int(amount) / spent_s / 1e6:,.0f} MB/s, "
            f"{time_text(spent_s / int(records))} a record of dd; without direct or dsync that is memory"
        )
        stated.append(Statement(name, said, {}, False, "dd", MONITOR))
    return stated or [Statement(name, "a copy of nothing", source="dd", needed=MONITOR)]


IOPING = re.compile(
    r"min/avg/max/mdev = (\d+(?:\.\d+)?) (\w+) / (\d+(?:\.\d+)?) (\w+) / (\d+(?:\.\d+)?) (\w+) / (\d+(?:\.\d+)?) (\w+)"
)
IOPING_DEVICE = re.compile(r"^--- (\S+) \(.*ioping statistics ---", re.MULTILINE)


def ioping(text: str, name: str) -> list[Statement]:
    """Reads the statistics of ioping, which sends one request after another."""
    device = IOPING_DEVICE.search(text)
    stated = []
    for match in IOPING.finditer(text):
        least_s, mean_s, most_s = (float(match[at]) * UNITS.get(match[at + 1], math.nan) for at in (1, 3, 5))
        evidence = f"single requests take {time_text(least_s)} to {time_text(most_s)}, {time_text(mean_s)} on average"
        weights: dict[Suspect, float] = {"queue": -2.0, **by_latency(mean_s)}
        stated.append(Statement(device[1] if device else name, evidence, weights, False, "ioping", MONITOR))
    return stated


HDPARM = re.compile(
    r"^\s*Timing (?:O_DIRECT )?(cached|buffered disk|disk) reads:\s+.*?=\s*(\d+(?:\.\d+)?) (\w+)/sec", re.MULTILINE
)


def hdparm(text: str, name: str) -> list[Statement]:
    """Reads ``hdparm -tT``: sequential throughput, which shows no latency."""
    device = re.search(r"^(/dev/\S+):", text, re.MULTILINE)
    shown = ", ".join(f"{kind} reads {rate} {unit}/s" for kind, rate, unit in HDPARM.findall(text))
    disk = device[1].removeprefix("/dev/") if device else name
    return [
        Statement(disk, f"hdparm: {shown}; sequential throughput shows no latency", source="hdparm -tT", needed=MONITOR)
    ]


PG = re.compile(
    r"^\s+(open_datasync|fdatasync|fsync|fsync_writethrough|open_sync)\s+(\d+(?:\.\d+)?) ops/sec\s+(\d+) usecs/op",
    re.MULTILINE,
)
REVOLUTION_S = 60 / 7200
"""A revolution of a disk with 7,200 a minute: a write that waits for the medium takes one."""


def pg_test_fsync(text: str, name: str) -> list[Statement]:
    """Reads pg_test_fsync: the time of synchronous writes one after another."""
    times = {method: int(us) * 1e-6 for method, _, us in reversed(PG.findall(text))}
    shown = ", ".join(f"{method} {time_text(s)}" for method, s in times.items())
    least_s = min(times.values(), default=math.nan)
    spins = least_s >= 0.5 * REVOLUTION_S
    evidence = f"a synchronous write takes {shown}" + (": the time of a disk's revolution" if spins else "")
    weights: dict[Suspect, float] = {"queue": -3.0, "device": 1.5} if spins else {"queue": -3.0, **by_latency(least_s)}
    return [Statement(name, evidence, weights, False, "pg_test_fsync", MONITOR)]


SYSBENCH = re.compile(r"^sysbench \d|^File operations:", re.MULTILINE)
SYSBENCH_RATE = re.compile(r"^\s+(reads|writes|fsyncs)/s:\s+(\d+(?:\.\d+)?)", re.MULTILINE)
SYSBENCH_LATENCY = re.compile(r"^\s+(min|avg|max|95th percentile):\s+(\d+(?:\.\d+)?)", re.MULTILINE)


def sysbench(text: str, name: str) -> list[Statement]:
    """Reads ``sysbench fileio``."""
    rates = ", ".join(f"{float(rate):,.0f} {kind}/s" for kind, rate in SYSBENCH_RATE.findall(text))
    latencies = ", ".join(f"{kind} {value} ms" for kind, value in SYSBENCH_LATENCY.findall(text))
    evidence = (
        f"sysbench: {rates or 'no rates'}, latency {latencies or 'unknown'}, through the page cache unless direct"
    )
    return [Statement(name, evidence, source="sysbench", needed=MONITOR)]
