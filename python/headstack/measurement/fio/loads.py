"""``Load``: fio's results for one load, with its jobs joined and uniform names for fields that versions name
differently.

Observed by running these versions: 2.2 has latencies in microseconds (``lat``), no options of jobs, and lists of
percentiles padded with zeros; 3.1 has ``lat_ns``, but no ``bw_bytes`` and no ``sync``, which 3.16 has; ``N`` came
between 3.16 and 3.25, ``job_start`` between 3.33 and 3.36.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstack._native import Field, InputError
from headstack.measurement.fio.documents import CLIENT, Fields, documents, ended_s, jobs_of, read, shared_of

KINDS = ("read", "write", "trim", "mixed")
"""Kinds of requests; ``mixed`` is the sum of all kinds, which fio reports with ``unified_rw_reporting``."""
BIN_SHARE = 1 / 64
"""Resolution of a percentile as a share of its value: fio's histogram has 64 bins per power of two."""
BY_NAME = re.compile(r"^(?P<rw>(?:rand)?(?:read|write|rw|trim)|readwrite)(?P<mix>\d*)-(?P<depth>\d+)-(?P<jobs>\d+)$")
"""Pattern of the file names of bench-fio, whose files fio-plot draws."""
SUFFIXES = (".json", ".txt", ".out", ".log")

FIELDS = (
    Field("source", "text", "", "path of the file, as given or as found in a folder"),
    Field("folder", "text", "", "folder of the file, relative to the given folder"),
    Field("run", "count", "", "number of the run within the file, from 1"),
    Field("version", "text", "", "fio's version"),
    Field("ended_s", "figure", "s", "time at which fio printed the result, in seconds since the epoch"),
    Field("host", "text", "", "fio client that ran the job, with its port if it has several; empty if none is named"),
    Field("jobname", "text", "", "name of the job"),
    Field("kind", "text", "", "read, write, trim, or mixed if fio reports them together"),
    Field("rw", "text", "", "access pattern, as the job states it"),
    Field("rwmixread", "count", "%", "share of reads in a mixed pattern"),
    Field("bs", "text", "", "request size, as the job states it"),
    Field("size", "text", "", "size of the area, as the job states it"),
    Field("iodepth", "count", "", "queue depth of each job"),
    Field("numjobs", "count", "", "copies of the job"),
    Field("jobs", "count", "", "number of entries of the file that were merged"),
    Field("engine", "text", "", "I/O engine (ioengine)"),
    Field("direct", "text", "", "direct, as the job states it"),
    Field("runtime_s", "figure", "s", "run time"),
    Field("requests", "count", "", "completed requests"),
    Field("errors", "count", "", "total_err, or 1 if an error ended a job"),
    Field("iops", "figure", "1/s", "completed requests per second"),
    Field("iops_sd", "figure", "1/s", "standard deviation of fio's IOPS samples, 500 ms each"),
    Field("iops_samples", "count", "", "number of these samples"),
    Field("mb_per_s", "figure", "10^6 bytes/s", "throughput"),
    Field("mean_ms", "figure", "ms", "mean latency from submission to completion (lat)"),
    Field("sd_ms", "figure", "ms", "standard deviation of the latency"),
    Field("min_ms", "figure", "ms", "minimum latency"),
    Field("max_ms", "figure", "ms", "maximum latency"),
    Field("p50_ms", "figure", "ms", "median latency (lat if fio reports its percentiles, else clat)"),
    Field("p95_ms", "figure", "ms", "95th percentile of the latency in p50_ms"),
    Field("p99_ms", "figure", "ms", "99th percentile of the same latency"),
    Field("p999_ms", "figure", "ms", "99.9th percentile of the same latency"),
    Field("slat_ms", "figure", "ms", "mean submission latency"),
    Field("syncs", "count", "", "number of flushes"),
    Field("sync_ms", "figure", "ms", "mean latency of a flush"),
    Field("usr_cpu", "figure", "%", "user CPU time"),
    Field("sys_cpu", "figure", "%", "system CPU time"),
    Field("disk_util", "text", "", "for each disk: name, completed reads and writes, utilization in %"),
)
"""Columns of a table of loads."""
PERCENTILES = {"p50_ms": 50.0, "p95_ms": 95.0, "p99_ms": 99.0, "p999_ms": 99.9}


@dataclass(frozen=True)
class Latency:
    """Latency of one kind of request."""

    count: int
    mean_ms: float
    sd_ms: float
    min_ms: float
    max_ms: float
    percentiles: Mapping[float, float] = field(default_factory=dict)
    """Percentiles in milliseconds by percent."""
    bins: Mapping[float, int] = field(default_factory=dict)
    """Number of requests by the middle of their bin in milliseconds, from json+."""


@dataclass(frozen=True)
class Load:
    """The results of one load in one run."""

    row: Fields
    """Values by the names of ``FIELDS``."""
    latency: Latency
    shares: Mapping[float, float]
    """Share of all requests of the job in %, by the upper end of a bucket in milliseconds; infinite for the last."""
    group: int

    @property
    def name(self) -> str:
        """Name made of the properties that distinguish the load, without the name of the job."""
        row = self.row
        return f"{row['host']}: {self._load}" if row["host"] else self._load

    @property
    def _load(self) -> str:
        row = self.row
        if row["rw"] is None:
            return str(row["jobname"])
        mix = f" {row['rwmixread']} %" if row["rwmixread"] is not None else ""
        kind = f" ({row['kind']}s)" if row["kind"] in ("read", "write") and row["rw"] in MIXING else ""
        copies = f", {row['numjobs']} jobs" if row["numjobs"] > 1 else ""
        return f"{row['rw']}{mix}{kind} {row['bs']}, depth {row['iodepth']}{copies}"


MIXING = ("rw", "readwrite", "randrw", "trimwrite", "randtrimwrite")


def loads_of(path: str | os.PathLike[str], name: str = "", folder: str = "") -> list[Load]:
    """Returns the loads of a file, run after run. Raises ``InputError`` if it contains no JSON of fio."""
    return loads_in(read(path), name or os.fspath(path), folder)


def loads_in_text(text: str, name: str) -> list[Load]:
    """Returns the loads of fio's printed output."""
    try:
        parsed = documents(text)
    except InputError as error:
        raise InputError(f"{error}", file=name) from None
    return loads_in(parsed, name, "")


def loads_in(parsed: Sequence[Fields], name: str, folder: str) -> list[Load]:
    """Returns the loads of documents."""
    try:
        return [load for run, document in enumerate(parsed, 1) for load in _loads(document, name, folder, run)]
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"a field differs from fio's format: {error}", file=name) from None


def folder_of(path: str | os.PathLike[str]) -> tuple[list[Load], list[str]]:
    """Returns the loads of all files below a folder, and the files that could not be read, with the reasons."""
    loads, bad = [], []
    top = Path(path)
    files = sorted(file for file in top.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    for file in files:
        folder = os.fspath(file.parent.relative_to(top))
        try:
            loads += loads_of(file, os.fspath(file), top.name if folder == "." else folder)
        except InputError as error:
            # Logs are in the same folder as results.
            bad += [str(error)] if file.suffix != ".log" else []
    return loads, bad


def _loads(document: Fields, name: str, folder: str, run: int) -> Iterator[Load]:
    """Yields each kind of request of jobs with the same load. Copies of a job have its name and group."""
    joined: dict[tuple[Any, ...], list[tuple[Fields, Fields]]] = {}
    for job in jobs_of(document) or []:
        options = {**shared_of(document, job), **(job.get("job options") or {})}
        if not options:
            # Version 2 did not print them.
            options = _options_in_name(Path(name).stem)
        stated = tuple(sorted((key, str(value)) for key, value in options.items() if key != "name"))
        key = (job.get("jobname"), job.get("groupid"), *(job.get(name) for name in CLIENT), stated)
        joined.setdefault(key, []).append((job, options))
    for jobs in joined.values():
        for kind in KINDS:
            own = [job for job, _ in jobs if isinstance(job.get(kind), dict) and job[kind].get("total_ios", 0)]
            if own:
                head = {"source": name, "folder": folder, "run": run, **_head(document, jobs[0][0], jobs[0][1])}
                yield _load(head | {"kind": kind}, own, kind)


def _options_in_name(stem: str) -> Fields:
    """Parses the options in a file name of bench-fio."""
    match = BY_NAME.match(stem)
    if match is None:
        return {}
    mix = {"rwmixread": match["mix"]} if match["mix"] else {}
    return {"rw": match["rw"], "iodepth": match["depth"], "numjobs": match["jobs"], **mix}


def _head(document: Fields, job: Fields, options: Fields) -> Fields:
    pattern = options.get("rw", options.get("readwrite", "read" if options else None))
    mix = options.get("rwmixread", 100 - int(options["rwmixwrite"]) if "rwmixwrite" in options else 50)
    disks = document.get("disk_util") or job.get("disk_util") or []
    own = [disk for disk in disks if all(disk.get(name) == job.get(name) for name in CLIENT)]
    return {
        "version": str(document.get("fio version", "")).removeprefix("fio-") or None,
        "ended_s": ended_s(document),
        "host": _host(document, job),
        "jobname": job.get("jobname"),
        "rw": pattern,
        "rwmixread": int(mix) if pattern in ("rw", "readwrite", "randrw") else None,
        "bs": options.get("bs", options.get("blocksize", options.get("bsrange", "4k" if options else None))),
        "size": options.get("size", options.get("io_size")),
        "iodepth": int(options.get("iodepth", 1)),
        "numjobs": int(options.get("numjobs", 1)),
        "engine": options.get("ioengine"),
        "direct": options.get("direct"),
        "disk_util": "; ".join(_disk(disk) for disk in own) or None,
    }


def _host(document: Fields, job: Fields) -> str | None:
    name, port = (job.get(key) for key in CLIENT)
    if name is None:
        return None
    ports = {other.get("port") for other in jobs_of(document) or [] if other.get("hostname") == name}
    return f"{name}:{port}" if len(ports) > 1 else str(name)


def _disk(disk: Fields) -> str:
    return f"{disk.get('name')}:{disk.get('read_ios', 0)}/{disk.get('write_ios', 0)}/{disk.get('util', 0)}"


def _load(head: Fields, jobs: list[Fields], kind: str) -> Load:
    parts = [job[kind] for job in jobs]
    latency = _joined([_latency(part, ("lat", "clat"), head["version"]) for part in parts])
    slat = _joined([_latency(part, ("slat",), head["version"]) for part in parts])
    syncs = [job["sync"] for job in jobs if isinstance(job.get("sync"), dict)]
    sync = _joined([_latency(flush | {"total_ios": flush.get("total_ios", 0)}, ("lat",), "3") for flush in syncs])
    samples, deviations = [_number(part, "iops_samples") for part in parts], [_number(p, "iops_stddev") for p in parts]
    row = head | {
        "jobs": len(jobs),
        "runtime_s": max(_number(part, "runtime") for part in parts) / 1e3,
        "requests": sum(int(part.get("total_ios") or 0) for part in parts),
        "errors": sum(int(job.get("total_err") or bool(job.get("error"))) for job in jobs),
        "iops": math.fsum(_number(part, "iops") for part in parts),
        # Copies of a job vary independently.
        "iops_sd": math.sqrt(sum(deviation**2 for deviation in deviations)) if min(samples) > 1 else None,
        "iops_samples": int(min(samples)),
        "mb_per_s": math.fsum(_bytes_per_s(part) for part in parts) / 1e6,
        "mean_ms": latency.mean_ms,
        "sd_ms": latency.sd_ms,
        "min_ms": latency.min_ms,
        "max_ms": latency.max_ms,
        **{name: latency.percentiles.get(percent) for name, percent in PERCENTILES.items()},
        "slat_ms": slat.mean_ms,
        "syncs": sync.count,
        "sync_ms": sync.mean_ms if sync.count else None,
        "usr_cpu": sum(_number(job, "usr_cpu") for job in jobs) / len(jobs),
        "sys_cpu": sum(_number(job, "sys_cpu") for job in jobs) / len(jobs),
    }
    ordered = {column.name: row[column.name] for column in FIELDS}
    return Load(ordered, latency, _shares(jobs), int(jobs[0].get("groupid") or 0))


def _number(values: Mapping[str, Any], name: str) -> float:
    """Returns a figure, or 0 if this version of fio lacks it or divided by zero."""
    value = values.get(name)
    return 0.0 if value is None else float(value)


def _bytes_per_s(part: Fields) -> float:
    return _number(part, "bw_bytes") or _number(part, "bw") * 1024


def _latency(part: Fields, names: Sequence[str], version: str | None) -> Latency:
    """Returns the first of these latencies that was measured; missing percentiles are taken from the next one."""
    measured: list[tuple[Fields, float]] = []
    for name in names:
        for key, unit in ((f"{name}_ns", 1e-6), (f"{name}_us", 1e-3), (name, 1e-3), (f"{name}_ms", 1.0)):
            if isinstance(part.get(key), dict):
                measured.append((part[key], unit))
                break
    if not measured:
        return NOTHING
    summary, unit = next(((stats, unit) for stats, unit in measured if _number(stats, "max")), measured[0])
    detailed, detailed_unit = next(
        ((stats, unit) for stats, unit in measured if stats.get("percentile")), (summary, unit)
    )
    listed = detailed.get("percentile") or {}
    stated = {float(percent): value * detailed_unit for percent, value in listed.items() if value is not None}
    # Version 2 padded its list with zeros.
    percentiles = {percent: ms for percent, ms in stated.items() if percent > 0}
    bins = {float(middle) * detailed_unit: int(count) for middle, count in (detailed.get("bins") or {}).items()}
    mean_ms, sd_ms, min_ms, max_ms = (_number(summary, name) * unit for name in ("mean", "stddev", "min", "max"))
    count = int(_number(summary, "N") or _number(part, "total_ios"))
    return Latency(count, mean_ms, sd_ms, min_ms, max_ms, percentiles, bins)


NOTHING = Latency(0, 0.0, 0.0, 0.0, 0.0)


def _joined(parts: Sequence[Latency]) -> Latency:
    """Returns the latency of several jobs together. Percentiles can only be computed from bins."""
    measured = [part for part in parts if part.count]
    if len(measured) < 2:
        return measured[0] if measured else NOTHING
    count = sum(part.count for part in measured)
    mean_ms = math.fsum(part.count * part.mean_ms for part in measured) / count
    squares = math.fsum(part.count * (part.sd_ms**2 + (part.mean_ms - mean_ms) ** 2) for part in measured)
    bins: dict[float, int] = {}
    if all(part.bins for part in measured):
        for part in measured:
            for middle_ms, n in part.bins.items():
                bins[middle_ms] = bins.get(middle_ms, 0) + n
    least, most = min(part.min_ms for part in measured), max(part.max_ms for part in measured)
    percents = measured[0].percentiles if bins else ()
    percentiles = {percent: _percentile(bins, percent) for percent in percents}
    return Latency(count, mean_ms, math.sqrt(squares / count), least, most, percentiles, bins)


def _percentile(bins: Mapping[float, int], percent: float) -> float:
    rank, below = percent / 100 * sum(bins.values()), 0
    for middle_ms, count in sorted(bins.items()):
        below += count
        if below >= rank * (1 - 1e-12):
            return middle_ms
    return max(bins)


def _shares(jobs: Sequence[Fields]) -> dict[float, float]:
    """Returns the latency buckets of all requests of the jobs, which any output format of fio contains."""
    shares: dict[float, float] = {}
    for job in jobs:
        for unit, unit_ms in (("ns", 1e-6), ("us", 1e-3), ("ms", 1.0)):
            for bound, share in (job.get(f"latency_{unit}") or {}).items():
                end_ms = math.inf if bound.startswith(">") else float(bound) * unit_ms
                shares[end_ms] = shares.get(end_ms, 0.0) + float(share or 0) / len(jobs)
    return dict(sorted(shares.items()))
