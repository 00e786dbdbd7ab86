"""Results of job files on several hosts in the form of ``fio --client=a --client=b --output-format=json``.

As fio 3.33 prints it (``client.c``): ``client_stats`` in place of ``jobs``, each entry with its ``hostname`` and
``port``, and for several clients one entry ``All clients``, without options. Options of all jobs are one object, or
a list by client if clients have their own job files, as in later versions of fio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstack._native import InputError
from headstack.measurement.jobfiles.fio_json import Entry, Fields, build_entries, head, streams_of
from headstack.measurement.jobfiles.job_file import JobFile
from headstack.measurement.jobfiles.phases import DiskUse, PhaseJob

ALL = "All clients"
OF_BACKENDS = ("eta", "elapsed")
"""Fields that fio prints only for jobs of its own process."""
OF_JOBS = ("job options", "latency_depth", "latency_target", "latency_percentile", "latency_window")
"""Fields that fio prints only for single jobs."""


@dataclass(frozen=True)
class Client:
    """A host and its results."""

    hostname: str
    port: int
    file: JobFile
    phases: Sequence[tuple[int, Mapping[str, Any]]]
    """Number and result of each phase that the host ran."""
    disks: Sequence[DiskUse]

    @property
    def info(self) -> Fields:
        """Fields that distinguish the entries of this client."""
        return {"hostname": self.hostname, "port": self.port}

    def entries(self, plus: bool) -> list[tuple[Entry, Fields]]:
        """Returns the jobs of the client, each with its printed form."""
        made = []
        for number, result in self.phases:
            phase = self.file.phases[number]
            own = build_entries(self.file, phase, streams_of(phase, result), result, plus)
            total = {kind: sum(entry.kinds[kind]["bytes"] for entry in own) for kind in ("read", "write", "trim")}
            made += [(entry, entry.fields(number, 0.0, total)) for entry in own]
        return made


def fio_clients(clients: Sequence[Client], plus: bool) -> Fields:
    """Returns the complete document. Raises ``InputError`` if a job file is not a fio job file."""
    for client in clients:
        if client.file.program != "fio" or client.file.tree_phases:
            raise InputError(f"{client.file.source}: fio's JSON supports only job files of fio; use --json for others")
    document = head(clients[0].file)
    document.pop("timestamp_ms")
    stated = [client.file.options for client in clients]
    if any(options != stated[0] for options in stated):
        document["global options"] = [client.info | head(client.file).get("global options", {}) for client in clients]
    made = [(client, *entry) for client in clients for entry in client.entries(plus)]
    document["client_stats"] = [_without(fields, OF_BACKENDS) | client.info for client, _, fields in made]
    if len(made) > 1:
        entry = merge_entries([entry for _, entry, _ in made])
        total = {kind: entry.kinds[kind]["bytes"] for kind in ("read", "write", "trim")}
        fields = _without(entry.fields(0, 0.0, total), (*OF_BACKENDS, *OF_JOBS))
        document["client_stats"].append(fields | clients[-1].info)
    document["disk_util"] = [{**disk, **client.info} for client in clients for disk in client.disks]
    return document


def _without(fields: Fields, names: Sequence[str]) -> Fields:
    return {name: value for name, value in fields.items() if name not in names}


def merge_entries(entries: Sequence[Entry]) -> Entry:
    """Merges the jobs of all clients as fio does: counts, histograms and rates add up, and the run time is the
    longest."""
    first = entries[0]
    job: PhaseJob = {**first.job, "name": ALL, "group": 0, "as_written": []}
    stream = {"kinds": first.kinds, "facts": []}
    summed = Entry(job, {}, stream, first.result, first.plus)
    for entry in entries[1:]:
        summed.add(entry)
    facts: dict[str, list[float]] = {}
    for entry in entries:
        for name, value in (entry.facts | entry.depths_s()).items():
            facts.setdefault(name, []).append(value)
    summed.facts = {name: _summed(name, values) for name, values in facts.items()}
    summed.duration_s = max(entry.duration_s for entry in entries)
    summed.read_s = max(entry.read_s for entry in entries)
    summed.threads_s = math.fsum(entry.threads_s for entry in entries)
    return summed


def _summed(name: str, values: Sequence[float]) -> float:
    if name.endswith("_stddev"):
        return math.sqrt(math.fsum(value * value for value in values))
    if name.endswith("_min"):
        return min(values)
    if name.endswith("_max") or name == "duration_s":
        return max(values)
    return math.fsum(values)
