"""Limits of control groups on block devices: ``io.max`` and others of cgroup v2, ``blkio.throttle`` of v1."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headstack.diagnosis.doctor.machine import Machine

RATES = ("rbps", "wbps", "riops", "wiops")
"""Limited rates: bytes and requests per second, of reads and writes."""
COUNTERS = {"rbps": "rbytes", "wbps": "wbytes", "riops": "rios", "wiops": "wios"}
"""The counter in ``io.stat`` of each rate (cgroup-v2.rst)."""
V1_FILES = {
    "rbps": ("blkio.throttle.read_bps_device", "blkio.throttle.io_service_bytes", "Read"),
    "wbps": ("blkio.throttle.write_bps_device", "blkio.throttle.io_service_bytes", "Write"),
    "riops": ("blkio.throttle.read_iops_device", "blkio.throttle.io_serviced", "Read"),
    "wiops": ("blkio.throttle.write_iops_device", "blkio.throttle.io_serviced", "Write"),
}
"""The file of each limit, and the file and row of its counter (cgroup-v1/blkio-controller.rst)."""
OTHER_FILES = ("io.latency", "io.weight", "io.bfq.weight", "io.cost.qos", "io.cost.model")
"""Other controls by device; the line with ``default`` is no limit of a device."""
GROUPS_MAX = 5000
"""Maximum number of control groups to read, which bounds the time on hosts with many containers."""


@dataclass(frozen=True)
class GroupLimit:
    """A limit of a control group on a device."""

    group: str
    """Path of the group from the mount of the controller."""
    number: str
    """``MAJ:MIN`` of the device."""
    key: str
    """``rbps``, ``wbps``, ``riops`` or ``wiops``, or the name of another control, such as ``io.latency``."""
    per_s: float
    """The limit in bytes or requests per second; ``inf`` for other controls."""
    text: str
    """The line of the file."""
    file: str
    is_own: bool
    """True if the limit applies to this process as well."""

    @property
    def rate_text(self) -> str:
        """The limit with its unit."""
        return rate_text(self.key, self.per_s)


def rate_text(key: str, per_s: float) -> str:
    """Formats a rate of bytes or requests."""
    return f"{per_s / 1e6:,.1f} MB/s" if key.endswith("bps") else f"{per_s:,.0f} IOPS"


def limits_of_groups(machine: Machine) -> tuple[GroupLimit, ...]:
    """Returns all limits on devices that this user can read."""
    limits: list[GroupLimit] = []
    for version, folder in _controllers(machine):
        own = _own_group(machine, version)
        for group in _groups(machine, folder):
            is_own = f"{own.rstrip('/')}/".startswith(f"{group.rstrip('/')}/")
            read = _v2_limits if version == 2 else _v1_limits
            limits += read(machine, folder, group, is_own)
    return tuple(limits)


def _controllers(machine: Machine) -> Iterator[tuple[int, str]]:
    """Yields version and mount of each hierarchy that controls I/O."""
    for line in machine.lines("proc/self/mounts"):
        _, folder, kind, options = line.split()[:4]
        if kind == "cgroup2":
            yield 2, folder
        elif kind == "cgroup" and "blkio" in options.split(","):
            yield 1, folder


def _own_group(machine: Machine, version: int) -> str:
    for line in machine.lines("proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if (version == 2 and not controllers) or (version == 1 and "blkio" in controllers.split(",")):
            return path
    return "/"


def _groups(machine: Machine, folder: str) -> Iterator[str]:
    top = machine.path(folder)
    for count, (path, folders, _) in enumerate(os.walk(top)):
        folders.sort()
        if count >= GROUPS_MAX:
            return
        yield "/" + os.path.relpath(path, top).removeprefix(".").lstrip("/")


def _v2_limits(machine: Machine, folder: str, group: str, is_own: bool) -> Iterator[GroupLimit]:
    place = f"{folder}/{group.strip('/')}".rstrip("/")
    for line in machine.lines(f"{place}/io.max"):
        number, *fields = line.split()
        for field in fields:
            key, _, value = field.partition("=")
            if key in RATES and value.isdigit():
                yield GroupLimit(group, number, key, float(value), line, f"{place}/io.max", is_own)
    for file in OTHER_FILES:
        for line in machine.lines(f"{place}/{file}"):
            number = line.split()[0] if line.split() else ""
            if re.fullmatch(r"\d+:\d+", number) and "enable=0" not in line:
                yield GroupLimit(group, number, file, math.inf, line, f"{place}/{file}", is_own)


def _v1_limits(machine: Machine, folder: str, group: str, is_own: bool) -> Iterator[GroupLimit]:
    place = f"{folder}/{group.strip('/')}".rstrip("/")
    for key, (file, _, _) in V1_FILES.items():
        for line in machine.lines(f"{place}/{file}"):
            number, _, value = line.partition(" ")
            if value.isdigit() and int(value):
                yield GroupLimit(group, number, key, float(value), line, f"{place}/{file}", is_own)


def counted_of(machine: Machine, limits: tuple[GroupLimit, ...]) -> Mapping[GroupLimit, float]:
    """Returns the counter of each limited rate."""
    counters = {}
    for limit in limits:
        if limit.key in RATES and (count := _counter(machine, limit)) is not None:
            counters[limit] = count
    return counters


def _counter(machine: Machine, limit: GroupLimit) -> float | None:
    place = os.path.dirname(limit.file)
    if limit.file.endswith("/io.max"):
        for line in machine.lines(f"{place}/io.stat"):
            number, *fields = line.split()
            values = dict(field.split("=", 1) for field in fields if "=" in field)
            if number == limit.number and (value := values.get(COUNTERS[limit.key], "")).isdigit():
                return float(value)
        return None
    _, file, row = V1_FILES[limit.key]
    for line in machine.lines(f"{place}/{file}"):
        if line.startswith(f"{limit.number} {row} "):
            return float(line.split()[2])
    return None
