"""fio's results of a device: rates and percentiles of random requests by queue depth."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headstack._native import InputError
from headstack.measurement.fio.documents import jobs_of, read
from headstack.twin.device import Floats

KINDS = {"randread": "read", "randwrite": "write"}
STALL_S = 10.0
"""Longer response times are stalls: Linux aborts a command after 30 s and resets its device."""
SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True)
class Point:
    """Random requests at a queue depth: requests per second, and percentiles of response times in seconds."""

    kind: str
    """``read`` or ``write``."""
    depth: int
    size_bytes: int
    rate: float
    p50_s: float
    p95_s: float
    p99_s: float
    least_s: float
    """The shortest response time, which is bounded by the number of commands the firmware has committed to."""
    stalls: int = 0
    """Number of times that the device did not answer until it was reset; the rate is that of the rest of the time."""
    jobs: int = 1
    """Number of jobs, each with this queue depth."""
    runtime_s: float = 0.0
    ended_s: float | None = None
    """End of the run, in seconds of an unknown epoch; ``None`` if unknown."""

    @property
    def name(self) -> str:
        """The name for people."""
        return f"{self.kind}s at depth {self.depth}" + (f" of {self.jobs} jobs" if self.jobs > 1 else "")

    @property
    def outstanding(self) -> int:
        """Number of requests in flight."""
        return self.depth * self.jobs

    @property
    def logarithms(self) -> Floats:
        """The logarithms of the rate, p50, p95, p99 and the minimum."""
        return np.log([self.rate, self.p50_s, self.p95_s, self.p99_s, self.least_s])


def load(paths: Sequence[str], system: str | None = None) -> list[Point]:
    """Returns the random reads and writes of one job from files of fio's JSON, or from a table of such results for
    several systems, by increasing depth. Of several runs at a depth the last counts.

    Raises ``InputError`` for unreadable files and files without such runs.
    """
    points = {(point.kind, point.depth): point for point in load_all(paths, system) if point.jobs == 1}
    if not points:
        of_system = f" of {system}" if system else ""
        raise InputError(f"{', '.join(paths)}: no results of random reads or writes with one job{of_system}")
    return sorted(points.values(), key=lambda point: (point.kind, point.depth))


def load_all(paths: Sequence[str], system: str | None = None) -> list[Point]:
    """Returns every run of random reads or writes, in the order of their time stamps, otherwise in that of the files.

    A table (``.csv``) has the columns ``system``, ``rw``, ``iodepth``, ``numjobs``, ``bs``, ``runtime_s``, ``iops``,
    ``lat_min_ms``, ``lat_mean_ms``, ``lat_max_ms``, ``p50_ms``, ``p95_ms`` and ``p99_ms``.

    Raises ``InputError`` for unreadable files.
    """
    points: list[Point] = []
    for path in paths:
        try:
            points.extend(_of_table(path, system) if path.endswith(".csv") else _of_json(path))
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        except (KeyError, ValueError, TypeError) as error:
            problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise InputError(f"{path}: {problem}; write it with fio --output-format=json") from None
    # Without a time stamp, results are in the order of the files.
    return sorted(points, key=lambda point: point.ended_s or 0.0)


def _jobs(path: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yields each job of a file with the document that contains it."""
    for document in read(path):
        for job in jobs_of(document) or []:
            yield document, job


def _of_json(path: str) -> Iterator[Point]:
    for document, job in _jobs(path):
        options = {**document.get("global options", {}), **job.get("job options", {})}
        kind = KINDS.get(options.get("rw", ""))
        jobs = int(options.get("numjobs", 1))
        # Jobs that are not reported together have a part of the rate each.
        if kind is None or (jobs > 1 and "group_reporting" not in options):
            continue
        seen: Mapping[str, Any] = job[kind]
        percentiles = seen["clat_ns"]["percentile"]
        # Completion latency begins where submission ends; a response time is the sum.
        submitted_s = float(seen["slat_ns"]["mean"]) / 1e9
        p50_s, p95_s, p99_s = (float(percentiles[f"{100 * share:.6f}"]) / 1e9 + submitted_s for share in SHARES)
        depth, size_bytes = int(options.get("iodepth", 1)), _size(str(options.get("bs", "4k")))
        lat = seen["lat_ns"]
        point = Point(
            kind, depth, size_bytes, float(seen["iops"]), p50_s, p95_s, p99_s, max(1e-9, float(lat["min"]) / 1e9),
            jobs=jobs, runtime_s=float(seen["runtime"]) / 1e3, ended_s=_time_of(document),
        )  # fmt: skip
        yield _without_stalls(point, float(lat["mean"]) / 1e9, float(lat["max"]) / 1e9)


def _time_of(document: Mapping[str, Any]) -> float | None:
    """Returns the time at which fio wrote a document."""
    if "timestamp_ms" in document:
        return float(document["timestamp_ms"]) / 1e3
    return float(document["timestamp"]) if "timestamp" in document else None


def _of_table(path: str, system: str | None) -> Iterator[Point]:
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    if system is None and len(systems) > 1:
        raise InputError(f"{path}: has {len(systems)} systems; choose one with --system, for example {systems[0]}")
    if system is not None and system not in systems:
        raise InputError(f"{path}: --system: {system!r} is not in the file, which has for example {systems[0]}")
    for row in rows:
        if system not in (None, row["system"]) or row["rw"] not in KINDS:
            continue
        p50_s, p95_s, p99_s, least_s, mean_s, max_s = (
            float(row[f"{name}_ms"]) / 1e3 for name in ("p50", "p95", "p99", "lat_min", "lat_mean", "lat_max")
        )
        depth, size_bytes = int(row["iodepth"]), _size(row["bs"])
        point = Point(
            KINDS[row["rw"]], depth, size_bytes, float(row["iops"]), p50_s, p95_s, p99_s, max(1e-9, least_s),
            jobs=int(row["numjobs"]), runtime_s=float(row["runtime_s"]),
        )  # fmt: skip
        yield _without_stalls(point, mean_s, max_s)


def _without_stalls(point: Point, mean_s: float, max_s: float) -> Point:
    """Returns the point without stalls.

    All requests that are outstanding when a device stalls wait for its reset: these had the longest time, and the
    others have the measured percentiles.
    """
    if max_s < STALL_S:
        return point
    runtime_s = point.runtime_s
    requests = point.rate * runtime_s
    usual_s = 0.5 * point.p50_s + 0.45 * (point.p50_s + point.p95_s) / 2 + 0.05 * point.p99_s
    stalls = max(1, round(requests * (mean_s - usual_s) / (point.depth * point.jobs * max_s)))
    if stalls * max_s >= runtime_s:
        raise InputError(f"{point.name}: the device completed no request during the run")
    return replace(point, rate=requests / (runtime_s - stalls * max_s), stalls=stalls)


def _size(text: str) -> int:
    """Parses fio's sizes, whose units are powers of 1024."""
    units = {"k": 10, "m": 20}
    plain = text.lower().removesuffix("ib").removesuffix("b").partition(",")[0]
    shift = units.get(plain[-1:], 0)
    number = float(plain[:-1] if shift else plain)
    if not math.isfinite(number) or number <= 0:
        raise ValueError(f"bs={text} is not a size")
    return round(number * (1 << shift))
