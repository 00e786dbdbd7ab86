"""Results of job files in the format of ``fio --minimal``: versions 2 to 5 of fio's terse output (``stat.c``,
``show_thread_status_terse``), a line for each job, generated from its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headstack.measurement.jobfiles.fio_json import MS_BUCKETS, NS_BUCKETS, Fields

PERCENTILES_MAX = 20
"""Number of percentiles to which fio pads the list of a job."""
DISK = ("read_ios", "write_ios", "read_merges", "write_merges", "read_ticks", "write_ticks", "in_queue")


VERSIONS = (2, 3, 4, 5)
USUAL = 3
"""The default version of fio."""


def fio_terse(document: Fields, version: int = USUAL) -> str:
    """Returns the lines of a document of ``fio_json``."""
    return "".join(f"{_line(job, document['disk_util'], version)}\n" for job in document["jobs"])


def _line(job: Fields, disks: Iterable[Fields], version: int) -> str:
    begin = ["2"] if version == 2 else [str(version), "fio-3.33"]
    fields = [*begin, job["jobname"], str(job["groupid"]), str(job["error"])]
    # Version 3 leaves out trims.
    apart = [name for name in ("read", "write", "trim") if name in job and (name != "trim" or version != 3)]
    kinds = [job[name] for name in (*apart, "mixed") if name in job]
    lists = (kind["clat_ns"].get("percentile") for kind in kinds)
    names = list(next((percentiles for percentiles in lists if percentiles), ()))
    for kind in kinds:
        fields += _kind(kind, names, version)
    fields += [f"{job['usr_cpu']:.6f}%", f"{job['sys_cpu']:.6f}%"]
    fields += [str(job[name]) for name in ("ctx", "majf", "minf")]
    fields += [f"{share:3.1f}%" for share in job["iodepth_level"].values()]
    micros = [job["latency_us"][str(bound)] for bound in NS_BUCKETS]
    # Latencies below a microsecond count in the first bucket of microseconds.
    micros[0] += sum(job["latency_ns"].values())
    millis = [job["latency_ms"][key] for key in (*map(str, MS_BUCKETS), ">=2000")]
    fields += [f"{share:3.2f}%" for share in (*micros, *millis)]
    for disk in disks if version > 2 else ():
        fields += [disk["name"], *(str(disk[name]) for name in DISK), f"{disk['util']:3.2f}%"]
    if "total_err" in job:
        fields += [str(job["total_err"]), str(job["first_error"])]
    if "desc" in job:
        fields.append(job["desc"])
    return ";".join(fields)


def _kind(kind: Fields, names: Sequence[str], version: int) -> list[str]:
    fields = [str(kind["io_kbytes"]), str(kind["bw"]), str(int(kind["iops"])), str(kind["runtime"])]
    fields += _micros(kind["slat_ns"]) + _micros(kind["clat_ns"])
    # The percentiles of a kind without requests are 0.
    percentiles = kind["clat_ns"].get("percentile") or dict.fromkeys(names, 0)
    stated = [f"{name}%={ns // 1000}" for name, ns in percentiles.items()]
    fields += stated + ["0%=0"] * (PERCENTILES_MAX - len(stated))
    fields += _micros(kind["lat_ns"])
    spread = (f"{kind['bw_agg']:.6f}%", f"{kind['bw_mean']:.6f}", f"{kind['bw_dev']:.6f}")
    fields += [str(kind["bw_min"]), str(kind["bw_max"]), *spread]
    if version == 5:
        iops = (f"{kind['iops_mean']:.6f}", f"{kind['iops_stddev']:.6f}")
        fields += [str(kind["bw_samples"]), str(kind["iops_min"]), str(kind["iops_max"]), *iops]
        fields.append(str(kind["iops_samples"]))
    return fields


def _micros(latency: Fields) -> list[str]:
    least, most = (str(latency[name] // 1000) for name in ("min", "max"))
    return [least, most, f"{latency['mean'] / 1000:.6f}", f"{latency['stddev'] / 1000:.6f}"]
