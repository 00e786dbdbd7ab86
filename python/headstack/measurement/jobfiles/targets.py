"""The files and devices of job files: their paths, how each is opened, and the use of the disks below them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headstack._native import InputError
from headstack.io.values import duration_ns
from headstack.measurement.access import NULL_BYTES, Access, is_null
from headstack.measurement.jobfiles.phases import DiskUse, JobPhase, PhaseJob, writes
from headstack.measurement.measurement import is_export

if TYPE_CHECKING:
    from headstack.measurement.jobfiles.job_file import JobFile
    from headstack.measurement.specs import TargetDescription, TargetSpec


def replace_targets(file: JobFile, targets: Sequence[str]) -> list[JobPhase]:
    """Returns the phases with ``targets`` in place of the target names in the file."""
    if not targets:
        nameless = [job["name"] for phase in file.phases for job in phase["jobs"] if not job["targets"]]
        if nameless:
            raise InputError(f"{file.source}: {nameless[0]} has no target; name a TARGET")
        foreign = [name for name in names_of(file.phases) if file.program == "icf" and "/" not in name]
        if foreign and not any(os.path.exists(name) for name in foreign):
            raise InputError(f"{file.source}: {foreign[0]} is a target of another machine; name a TARGET")
        return list(file.phases)
    names = names_of(file.phases)
    if names and len(targets) > len(names):
        raise InputError(f"{file.source}: {len(targets)} targets given, but its jobs use {len(names)}")
    place = {name: targets[index % len(targets)] for index, name in enumerate(names)}
    phases = []
    for phase in file.phases:
        jobs = []
        for job in phase["jobs"]:
            own = list(dict.fromkeys(place[name] for name in job["targets"])) or list(targets)
            size = job["file_bytes"]
            if size is not None and job["targets"]:
                # The replacement must have room for all files of the job.
                size = -(-size * len(job["targets"]) // len(own))
            jobs.append(job | {"targets": own, "file_bytes": size})
        phases.append(phase | {"jobs": jobs})
    return phases


def names_of(phases: Iterable[JobPhase]) -> list[str]:
    """Returns the distinct targets that phases name."""
    return list(dict.fromkeys(name for phase in phases for job in phase["jobs"] for name in job["targets"]))


def label_targets(paths: Sequence[str]) -> str:
    """Returns the name of several targets in results."""
    if len(paths) <= 3:
        return ", ".join(paths)
    return f"{paths[0]} and {len(paths) - 1} more"


class TargetFiles:
    """The files and devices of a job file, each opened once for every way in which jobs use it."""

    def __init__(self, phases: list[JobPhase], access: Access) -> None:
        self.phases = phases
        self.access = access
        self.paths = names_of(phases)
        nulls = {path for path in self.paths if is_null(path)}
        if len(nulls) > 1:
            raise InputError(f"{', '.join(sorted(nulls))}: only one null target is allowed")
        service = next((path.partition(":")[2] for path in nulls), "")
        self.null_service_ns = duration_ns("null", service) if service else 0
        self._numbers: dict[tuple[str, ...] | tuple[str, bool, str], int] = {}
        self._unlinked: set[str] = set()
        self.specs: list[TargetSpec] = []
        jobs = [job for phase in phases for job in phase["jobs"]]
        for job in jobs:
            for path in job["targets"]:
                self._add(path, job, jobs)
        self._check()

    def _key(self, path: str, job: PhaseJob) -> tuple[str, ...] | tuple[str, bool, str]:
        if job["engine"] == "null" or is_null(path):
            return (path, "null")
        return (path, job["direct"], job["sync"])

    def _add(self, path: str, job: PhaseJob, jobs: list[PhaseJob]) -> None:
        key = self._key(path, job)
        if key not in self._numbers:
            self._numbers[key] = len(self.specs)
            # If a file is opened in two ways, the second opening finds the file that the first created.
            is_new = not os.path.lexists(path) and any(other["path"] == path for other in self.specs)
            sharing = [other for other in jobs if path in other["targets"]]
            sizes = [other["file_bytes"] for other in sharing if other["file_bytes"] is not None]
            access = replace(self.access, overwrite=self.access.overwrite or is_new)
            spec = access.target_spec(path) | {"direct": job["direct"], "sync": job["sync"]}
            if sizes:
                spec["create_bytes"] = max(sizes)
            if key[1] == "null":
                spec["null_bytes"] = max(sizes, default=NULL_BYTES)
            elif job["unlink"] and not os.path.lexists(path):
                self._unlinked.add(path)
            self.specs.append(spec)
        self.specs[self._numbers[key]]["write"] |= writes(job)

    def _check(self) -> None:
        written = [
            spec["path"]
            for spec in self.specs
            if spec["write"] and (spec["path"].startswith("/dev/") or is_export(spec["path"]))
        ]
        twice = next((path for path in written if written.count(path) > 1), None)
        if twice is not None:
            raise InputError(f"{twice}: jobs write it with different direct or sync settings; use the same settings")

    def numbers_of(self, phase: JobPhase) -> list[list[int]]:
        """Returns the numbers of each job's targets."""
        return [[self._numbers[self._key(path, job)] for path in job["targets"]] for job in phase["jobs"]]

    def unlink(self) -> None:
        """Removes the files that were created for jobs with the option ``unlink``."""
        for path in self._unlinked:
            if os.path.lexists(path):
                os.unlink(path)


class Disks:
    """The kernel's counters of the disks below targets."""

    # Documentation/admin-guide/iostats.rst, in order.
    FIELDS = (
        "read_ios", "read_merges", "read_sectors", "read_ticks", "write_ios", "write_merges", "write_sectors",
        "write_ticks", "in_flight", "io_ticks", "in_queue",
    )  # fmt: skip

    def __init__(self, described: Iterable[TargetDescription]) -> None:
        devices = [target["description"].get("device") for target in described]
        self.names = list(dict.fromkeys(device.get("disk", device["name"]) for device in devices if device))
        self.before = {name: self._counts(name) for name in self.names}

    def _counts(self, name: str) -> dict[str, int]:
        try:
            with open(f"/sys/class/block/{name}/stat", encoding="ascii") as file:
                return dict(zip(self.FIELDS, map(int, file.read().split()), strict=False))
        except OSError:
            # A device that is gone has no counters.
            return {}

    def since(self, elapsed_s: float) -> list[DiskUse]:
        """Returns the use of the disks since this object was created, as in fio's ``disk_util``."""
        done: list[DiskUse] = []
        for name in self.names:
            counts = {key: value - self.before[name].get(key, 0) for key, value in self._counts(name).items()}
            if counts:
                util = min(100.0, counts["io_ticks"] / max(elapsed_s, 1e-9) / 10)
                done.append(
                    {
                        "name": name,
                        "read_ios": counts["read_ios"],
                        "write_ios": counts["write_ios"],
                        "read_merges": counts["read_merges"],
                        "write_merges": counts["write_merges"],
                        "read_ticks": counts["read_ticks"],
                        "write_ticks": counts["write_ticks"],
                        "in_queue": counts["in_queue"],
                        "util": round(util, 6),
                    }
                )
        return done
