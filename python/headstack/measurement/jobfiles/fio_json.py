"""Results of job files in the form of ``fio --output-format=json``, for programs that read it.

The fields are those that fio 3.33 prints (``stat.c``, ``show_thread_status_json``). A comment marks each field that
headstack does not count.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack._native import InputError

if TYPE_CHECKING:
    from headstack.measurement.jobfiles.job_file import JobFile
    from headstack.measurement.jobfiles.phase_results import PhaseResults
    from headstack.measurement.jobfiles.phases import JobPhase, PhaseJob

Fields = dict[str, Any]
"""An object of fio's JSON."""

PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
"""fio's percentiles if a job names none."""
ETA_UNKNOWN = 2**31 - 1
"""The remaining time that fio prints for a finished job."""

NS_BUCKETS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
MS_BUCKETS = (*NS_BUCKETS, 2000)
DEPTHS = (1, 2, 4, 8, 16, 32, 64)

FLAGS = frozenset(
    {"bs_unaligned", "exitall", "exitall_on_error", "fixedbufs", "group_reporting", "hipri", "new_group"}
    | {"norandommap", "refill_buffers", "registerfiles", "sqthread_poll", "stonewall", "thread", "time_based"}
    | {"listen", "pingpong", "userspace_reap", "verify_only", "zero_buffers"}
)
"""Options that fio does not print if they are written without a value (``FIO_OPT_STR_SET``)."""

TRANSFERS = ("read", "write", "trim")
UNIFIED = {"1": "mixed", "mixed": "mixed", "2": "both", "both": "both"}
"""Values of ``unified_rw_reporting`` that report kinds of requests together."""
EIO = 5
"""Error number of failed requests; the notes of the result name each error."""

VERIFYING = " (verify)"
"""Suffix of a stream's name that marks the reads that verified the writes of the job."""

GROUP_BITS = 6
"""Logarithm of the number of bins per power of two in fio's histogram (``FIO_IO_U_PLAT_BITS``)."""
GROUPS = 29
"""Number of powers of two in fio's histogram; the last bin contains all values from 17.05 s on."""


def fio_json(results: PhaseResults, plus: bool) -> Fields:
    """Returns the complete document."""
    systems = {row["system"] for row in results}
    # Phases of a measurement may use different files, but several simulated systems are separate results.
    if len(systems) > 1 and len(results) > len(results.file.phases):
        raise InputError(f"fio's JSON holds the results of one system, but {len(systems)} were run; name one")
    document = head(results.file)
    firsts = [run for run in range(len(results)) if not is_loop(results.outcomes[run].phase)]
    document["jobs"] = [entry for run in firsts for entry in entries(results, run, plus)]
    document["disk_util"] = results.disks
    return document


def head(file: JobFile) -> Fields:
    """Returns the fields before the jobs."""
    now = time.time()
    document: Fields = {
        "fio version": f"fio-3.33 (headstack {_native.version()})",
        "timestamp": int(now),
        "timestamp_ms": int(now * 1000),
        "time": time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(now)),
    }
    if file.options:
        document["global options"] = _stated(file.options.items())
    return document


def bin_index(ns: int) -> int:
    """Returns the index of a latency's bin in fio's histogram."""
    if ns < 2 << GROUP_BITS:
        return ns
    error_bits = ns.bit_length() - 1 - GROUP_BITS
    return min(
        ((error_bits + 1) << GROUP_BITS) + ((ns >> error_bits) & ((1 << GROUP_BITS) - 1)), (GROUPS << GROUP_BITS) - 1
    )


def bin_middle_ns(index: int) -> int:
    """Returns the value that fio prints for a bin, which is the middle of the bin in ns."""
    if index < 2 << GROUP_BITS:
        return index
    error_bits = (index >> GROUP_BITS) - 1
    base = 1 << (error_bits + GROUP_BITS)
    return base + ((index % (1 << GROUP_BITS)) << error_bits) + (1 << error_bits >> 1)


def _stated(options: Iterable[tuple[str, str]]) -> Fields:
    """Returns options as fio prints them."""
    return {name: value for name, value in options if value or name not in FLAGS}


def is_loop(phase: JobPhase) -> bool:
    """Whether a phase is another loop of the previous phase; fio reports all loops as one job."""
    return bool(phase.get("loops_previous"))


def entries(results: PhaseResults, run: int, plus: bool) -> Iterator[Fields]:
    """Yields the jobs of a finished phase, including its further loops."""
    made: list[Entry] = []
    for number in range(run, len(results)):
        outcome = results.outcomes[number]
        if number > run and not is_loop(outcome.phase):
            break
        result = results._native.whole(number)
        loop = build_entries(results.file, outcome.phase, streams_of(outcome.phase, result), result, plus)
        for entry, further in zip(made, loop, strict=False):
            entry.add_loop(further)
        made = made or loop
        elapsed_s = outcome.elapsed_s
    return format_entries(results.file, run - loops_before(results, run), elapsed_s, made)


def loops_before(results: PhaseResults, run: int) -> int:
    """Returns the number of phases before a run that are further loops of earlier phases."""
    return sum(is_loop(outcome.phase) for outcome in results.outcomes[:run])


def streams_of(phase: JobPhase, result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Returns the streams of a phase; the result of a single job has none."""
    names = _native.phase_stream_names(phase)
    return result["streams"] or [{"name": names[0][0], "kinds": result["kinds"], "facts": []}]


def entries_of(
    file: JobFile,
    phase: JobPhase,
    run: int,
    elapsed_s: float,
    streams: Sequence[Mapping[str, Any]],
    result: Mapping[str, Any],
    plus: bool,
) -> Iterator[Fields]:
    """Yields an entry for each stream of a phase."""
    return format_entries(file, run, elapsed_s, build_entries(file, phase, streams, result, plus))


def format_entries(file: JobFile, run: int, elapsed_s: float, made: Sequence[Entry]) -> Iterator[Fields]:
    """Yields jobs of a phase as fio prints them."""
    total_bytes = {kind: sum(entry.kinds[kind]["bytes"] for entry in made) for kind in TRANSFERS}
    groups = groups_of(file, run)
    for entry in made:
        fields = entry.fields(groups.get(entry.job["name"], run), elapsed_s, total_bytes)
        if file.source == "fio":
            # On the command line, job names are options; in a file, they are sections.
            fields["job options"] = {"name": fields["jobname"]} | fields["job options"]
        elif not fields["job options"]:
            del fields["job options"]
        yield fields


def groups_of(file: JobFile, run: int) -> dict[str, int]:
    """Returns the group numbers of a phase's jobs by their names: fio begins a group at each ``stonewall`` and
    ``new_group``, but not at a ``wait_for``."""
    groups: dict[str, int] = {}
    if file.program != "fio":
        return groups
    number, is_first = 0, True
    for phase in [phase for phase in file.phases if not is_loop(phase)][: run + 1]:
        groups = {}
        for job in phase["jobs"]:
            stated = file.options | dict(job["as_written"])
            begins = any(stated.get(option, "0") != "0" for option in ("stonewall", "new_group"))
            # Copies with their own files are separate jobs.
            number += begins and not is_first and job["first_copy"] == 0
            groups[job["name"]] = number
            is_first = False
    return groups


def build_entries(
    file: JobFile,
    phase: Mapping[str, Any],
    streams: Sequence[Mapping[str, Any]],
    result: Mapping[str, Any],
    plus: bool,
) -> list[Entry]:
    """Returns the jobs of a phase."""
    jobs = phase["jobs"]
    names = _native.phase_stream_names(phase)
    verified = {s["name"].removesuffix(VERIFYING): s for s in streams if s["name"].endswith(VERIFYING)}
    made = []
    for stream in streams:
        if stream["name"].endswith(VERIFYING):
            continue
        # Copies that a simulation merges have the name of the job.
        own = [j for j, copies in zip(jobs, names, strict=True) if stream["name"] in (*copies, j["name"])]
        entry = Entry(own[0] if own else jobs[0], file.options, stream, result, plus)
        if stream["name"] in verified:
            entry.add_verifying(verified[stream["name"]])
        made.append(entry)
    return made


class Entry:
    """One entry of ``jobs``."""

    def __init__(
        self,
        job: PhaseJob,
        shared: Mapping[str, str],
        stream: Mapping[str, Any],
        result: Mapping[str, Any],
        plus: bool,
    ) -> None:
        self.job = job
        self.kinds = stream["kinds"]
        self.facts = {fact["name"]: fact["value"] for fact in stream["facts"]}
        self.result = result
        self.plus = plus
        self.options = dict(job["as_written"])
        self.holding = {**shared, **self.options}
        self.duration_s = self.facts.get("duration_s", result["duration_ns"] / 1e9)
        self.threads_s = self.facts.get("threads_s", self.duration_s * job["copies"])
        self.count = sum(kind["count"] for kind in self.kinds.values())
        self.read_s = self.duration_s

    def add_verifying(self, stream: Mapping[str, Any]) -> None:
        """Adds the reads that verified the job's writes to the job's reads, as fio does."""
        duration_s = next(fact["value"] for fact in stream["facts"] if fact["name"] == "duration_s")
        own, verifying = self.kinds["read"], stream["kinds"]["read"]
        self.read_s = (self.read_s if own["count"] else 0.0) + duration_s
        self.kinds = {**self.kinds, "read": _merge_kinds(own, verifying)}
        self.count += verifying["count"]

    def add_loop(self, other: Entry) -> None:
        """Adds another loop of the job, which ran after the earlier loops."""
        self.add(other)
        own, further = self.depths_s(), other.depths_s()
        self.facts |= {f"depth_{depth}_s": own[f"depth_{depth}_s"] + further[f"depth_{depth}_s"] for depth in DEPTHS}
        counted = ("cpu_user_ns", "cpu_system_ns", "voluntary_switches", "involuntary_switches")
        for name in (*counted, "major_faults", "minor_faults"):
            self.facts[name] = self.facts.get(name, 0.0) + other.facts.get(name, 0.0)
        self.duration_s += other.duration_s
        self.threads_s += other.threads_s
        self.read_s += other.read_s

    def add(self, other: Entry) -> None:
        """Adds the requests of another job."""
        self.kinds = {name: _merge_kinds(kind, other.kinds[name]) for name, kind in self.kinds.items()}
        self.count += other.count

    def fields(self, run: int, elapsed_s: float, total_bytes: Mapping[str, int]) -> Fields:
        """Returns the fields as fio prints them."""
        errors = sum(kind["errors"] for kind in self.kinds.values())
        fields: Fields = {
            "jobname": self.job["name"],
            "groupid": run if self.job["group"] is None else self.job["group"],
            "error": int(self.facts.get("errno", EIO if errors else 0)),
            "eta": ETA_UNKNOWN,
            "elapsed": math.floor(elapsed_s or self.duration_s) + 1,
            "job options": _stated(self.options.items()),
        }
        if "description" in self.holding:
            fields["desc"] = self.holding["description"]
        if self.holding.get("continue_on_error", "none") not in ("none", "0"):
            fields |= {
                "error": int(self.facts.get("errno", 0)),
                "total_err": errors,
                "first_error": EIO if errors else 0,
            }
        fields |= self._kinds(total_bytes)
        fields["job_runtime"] = round(self.threads_s * 1000)
        fields |= self._usage()
        fields |= self._depths()
        fields |= self._latencies()
        arrivals = self.job["workload"]["arrivals"]
        return fields | {
            "latency_depth": arrivals["closed"]["queue_depth"] if "closed" in arrivals else self.job["slots"],
            "latency_target": 0,
            "latency_percentile": 100.0,
            "latency_window": 0,
        }

    def _kinds(self, total_bytes: Mapping[str, int]) -> Fields:
        """Returns kinds of requests separately, together, or both: ``unified_rw_reporting``."""
        unified = UNIFIED.get(self.holding.get("unified_rw_reporting", ""), "none")
        fields: Fields = {}
        if unified != "mixed":
            for kind in TRANSFERS:
                fields[kind] = self._kind(kind, self.kinds[kind], total_bytes[kind])
            flush = self.kinds["flush"]
            fields["sync"] = {
                "total_ios": flush["count"],
                "lat_ns": self._latency(flush["service"], self._wants("clat", True)),
            }
        if unified != "none":
            present = [self.kinds[kind] for kind in TRANSFERS if self.kinds[kind]["count"]]
            mixed = reduce(_merge_kinds, present or [self.kinds["read"]])
            fields["mixed"] = self._kind("mixed", mixed, sum(total_bytes.values()))
        return fields

    def _wants(self, latency: str, usual: bool) -> bool:
        """Whether percentiles and bins of a latency are printed: ``clat_percentiles`` and similar options, unless the
        latency is disabled, for example by ``gtod_reduce``."""
        if any(self.holding.get(option, "0") != "0" for option in (f"disable_{latency}", "gtod_reduce")):
            return False
        stated = self.holding.get(f"{latency}_percentiles")
        return usual if stated is None else stated == "1"

    def _kind(self, name: str, kind: Mapping[str, Any], total_bytes: int) -> Fields:
        duration_s = (self.read_s if name == "read" else self.duration_s) if kind["count"] else 0.0
        if name == "mixed" and f"{name}_iops_samples" not in self.facts:
            name = next((transfer for transfer in TRANSFERS if self.kinds[transfer]["count"]), name)
        per_s = (lambda amount: amount / duration_s) if duration_s > 0 else (lambda _: 0.0)
        fields: Fields = {
            "io_bytes": kind["bytes"],
            "io_kbytes": kind["bytes"] >> 10,
            "bw_bytes": int(per_s(kind["bytes"])),
            "bw": int(per_s(kind["bytes"])) >> 10,
            "iops": round(per_s(kind["count"]), 6),
            "runtime": round(duration_s * 1000),
            "total_ios": kind["count"],
            "short_ios": 0,
            "drop_ios": 0,
            # Synchronous engines have no submission latency, as in fio.
            "slat_ns": self._latency(kind.get("handing_over"), self._wants("slat", False)),
            "clat_ns": self._latency(kind["service"], self._wants("clat", True)),
            "lat_ns": self._latency(kind["latency"], self._wants("lat", False)),
        }
        rate = {f: self.facts.get(f"{name}_bytes_per_s_{f}", 0.0) / 1024 for f in ("min", "max", "mean", "stddev")}
        return fields | {
            # fio's rates are whole numbers: a mean is between the minimum and the maximum.
            "bw_min": math.floor(rate["min"]),
            "bw_max": math.ceil(rate["max"]),
            "bw_agg": round(100.0 * kind["bytes"] / total_bytes, 6) if total_bytes else 0.0,
            "bw_mean": round(rate["mean"], 6),
            "bw_dev": round(rate["stddev"], 6),
            "bw_samples": int(self.facts.get(f"{name}_bytes_per_s_samples", 0)),
            "iops_min": math.floor(self.facts.get(f"{name}_iops_min", 0)),
            "iops_max": math.ceil(self.facts.get(f"{name}_iops_max", 0)),
            "iops_mean": round(self.facts.get(f"{name}_iops_mean", 0.0), 6),
            "iops_stddev": round(self.facts.get(f"{name}_iops_stddev", 0.0), 6),
            "iops_samples": int(self.facts.get(f"{name}_iops_samples", 0)),
        }

    def _latency(self, stored: Mapping[str, Any] | None, detailed: bool) -> Fields:
        if stored is None or stored["count"] == 0:
            return {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
        count, total = stored["count"], stored["sum_ns"]
        deviations = count * int(stored["sum_squares_ns2"]) - total * total
        # fio divides by n - 1.
        variance = deviations / count / (count - 1) if count > 1 else 0.0
        fields: Fields = {
            "min": stored["min_ns"],
            "max": stored["max_ns"],
            "mean": round(total / count, 6),
            "stddev": round(math.sqrt(max(0.0, variance)), 6),
            "N": count,
        }
        if detailed:
            percentiles = self.job["percentiles"] or PERCENTILES
            fields["percentile"] = {f"{percent:.6f}": _quantile(stored, percent / 100) for percent in percentiles}
            if self.plus:
                fields["bins"] = _bins(stored)
        return fields

    def _usage(self) -> Fields:
        spent_ns = max(self.threads_s * 1e9, 1.0)
        switches = ("voluntary_switches", "involuntary_switches")
        return {
            "usr_cpu": round(100 * self.facts.get("cpu_user_ns", 0.0) / spent_ns, 6),
            "sys_cpu": round(100 * self.facts.get("cpu_system_ns", 0.0) / spent_ns, 6),
            "ctx": int(sum(self.facts.get(name, 0) for name in switches)),
            "majf": int(self.facts.get("major_faults", 0)),
            "minf": int(self.facts.get("minor_faults", 0)),
        }

    def depths_s(self) -> dict[str, float]:
        """Returns the time in each range of queue depths, from the facts of the job."""
        spent = {f"depth_{depth}_s": self.facts.get(f"depth_{depth}_s", 0.0) for depth in DEPTHS}
        if not any(spent.values()):
            for depth, time_ns in enumerate(self.result["depth"]["time_at_depth_ns"]):
                if depth > 0:
                    spent[f"depth_{max(least for least in DEPTHS if least <= depth)}_s"] += time_ns / 1e9
        return spent

    def _depths(self) -> Fields:
        """Returns shares of time; fio counts requests instead. Each request is submitted and completed separately."""
        spent = self.depths_s()
        total = sum(spent.values())
        level = {(str(d) if d < 64 else ">=64"): _share(spent[f"depth_{d}_s"], total) for d in DEPTHS}
        batches = dict.fromkeys(("0", "4", "8", "16", "32", "64", ">=64"), 0.0)
        if self.count:
            batches["4"] = 100.0
        return {"iodepth_level": level, "iodepth_submit": dict(batches), "iodepth_complete": dict(batches)}

    def _latencies(self) -> Fields:
        """Returns shares of requests by latency: in ns below 1 us, in us below 1 ms, and in ms from there on."""
        counts = [0] * (2 * len(NS_BUCKETS) + len(MS_BUCKETS) + 1)
        bounds = [bound * unit for unit in (1, 1_000) for bound in NS_BUCKETS] + [b * 1_000_000 for b in MS_BUCKETS]
        for kind in ("read", "write", "trim"):
            stored = self.kinds[kind]["service"]
            for middle_ns, count in stored["bins"]:
                # A bucket contains latencies below its name.
                counts[bisect_left(bounds, middle_ns + 1)] += count
            counts[-1] += stored["overflow"]
        total = sum(counts)
        shares = [_share(count, total) for count in counts]
        keys = [str(bound) for bound in NS_BUCKETS]
        end = len(keys)
        return {
            "latency_ns": dict(zip(keys, shares, strict=False)),
            "latency_us": dict(zip(keys, shares[end:], strict=False)),
            "latency_ms": dict(zip([*map(str, MS_BUCKETS), ">=2000"], shares[2 * end :], strict=True)),
        }


def _merge_kinds(first: Mapping[str, Any], second: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merges two kinds of requests; leaves out latencies that only one kind has."""
    joined = {name: first[name] + second[name] for name in ("count", "bytes", "errors")}
    timed = [name for name in ("latency", "service", "handing_over") if first.get(name) and second.get(name)]
    return joined | {name: _merge_histograms(first[name], second[name]) for name in timed}


def _merge_histograms(first: Mapping[str, Any], second: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merges two stored histograms."""
    if first["count"] == 0 or second["count"] == 0:
        return second if first["count"] == 0 else first
    bins: dict[int, int] = dict(first["bins"])
    for middle_ns, count in second["bins"]:
        bins[middle_ns] = bins.get(middle_ns, 0) + count
    return {
        "count": first["count"] + second["count"],
        "sum_ns": first["sum_ns"] + second["sum_ns"],
        "sum_squares_ns2": int(first["sum_squares_ns2"]) + int(second["sum_squares_ns2"]),
        "min_ns": min(first["min_ns"], second["min_ns"]),
        "max_ns": max(first["max_ns"], second["max_ns"]),
        "overflow": first["overflow"] + second["overflow"],
        "bins": sorted(bins.items()),
    }


def _share(amount: float, total: float) -> float:
    """Returns a percentage; a share that rounds to 0 is printed as 0.01, as in fio."""
    if amount <= 0 or total <= 0:
        return 0.0
    return round(max(0.01, 100 * amount / total), 6)


def _quantile(stored: Mapping[str, Any], q: float) -> int:
    rank = min(max(math.ceil(q * stored["count"] * (1 - 1e-15)), 1), stored["count"])
    below = 0
    for middle_ns, count in stored["bins"]:
        below += count
        if below >= rank:
            return int(min(max(middle_ns, stored["min_ns"]), stored["max_ns"]))
    return int(stored["max_ns"])


def _bins(stored: Mapping[str, Any]) -> dict[str, int]:
    """Returns the histogram in fio's bins, by the middles of the bins. The last bin contains all values from 17.05 s
    on."""
    counts: dict[int, int] = {}
    for middle_ns, count in stored["bins"]:
        index = bin_index(middle_ns)
        counts[index] = counts.get(index, 0) + count
    if stored["overflow"]:
        last = (GROUPS << GROUP_BITS) - 1
        counts[last] = counts.get(last, 0) + stored["overflow"]
    return {str(bin_middle_ns(index)): count for index, count in sorted(counts.items())}
