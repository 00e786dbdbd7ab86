"""``read_host``: everything about a machine that any user may read, and inspections of its drives."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from headstack._native import InputError
from headstack.diagnosis.doctor.blocks import BlockDevice, Kind, block_devices
from headstack.diagnosis.doctor.findings import Host
from headstack.diagnosis.doctor.limits import limits_of_groups
from headstack.diagnosis.doctor.machine import Machine
from headstack.diagnosis.doctor.stack import stack_of
from headstack.diagnosis.inspection.collect import collect
from headstack.diagnosis.inspection.model import Inspection

INSPECT_LIMIT_S = 8.0
"""Time limit of each program that reads health data: an NVMe SSD takes up to four, which leaves half a minute of the
minute that a diagnosis may take."""
INSPECTED_AT_ONCE = 8
"""Drives to inspect at the same time."""


def read_host(machine: Machine) -> Host:
    """Reads a machine, and inspects the drives if it is this one."""
    devices = block_devices(machine)
    drives = [device for device in devices if device.kind.is_drive or device.kind == Kind.CLOUD]
    return Host(
        devices,
        stack_of(machine, devices),
        limits_of_groups(machine),
        dict(_inspections(drives)) if machine.is_this else {},
        dict(_temperatures(machine, drives)),
        dict(_links(machine, drives)),
        _processors(machine),
        machine.number("sys/module/nvme_core/parameters/default_ps_max_latency_us"),
    )


def _inspections(drives: Iterable[BlockDevice]) -> Iterator[tuple[str, Inspection]]:
    """Yields the inspections of drives whose node exists, each with notes on what could not be read."""
    nodes = [device.name for device in drives if os.path.exists(f"/dev/{device.name}")]
    with ThreadPoolExecutor(INSPECTED_AT_ONCE) as pool:
        yield from zip(nodes, pool.map(_inspect, nodes), strict=True)


def _inspect(name: str) -> Inspection:
    try:
        [inspection] = collect([f"/dev/{name}"], None, None, INSPECT_LIMIT_S)
    except InputError as error:
        return Inspection(name=name, notes=(str(error),))
    return inspection


def _temperatures(machine: Machine, drives: Iterable[BlockDevice]) -> Iterator[tuple[str, tuple[float, float]]]:
    for device in drives:
        for folder in _sensors(machine, device.name):
            now, warning = (machine.number(f"{folder}/{file}") for file in ("temp1_input", "temp1_max"))
            if now is not None and warning:
                yield device.name, (now / 1000, warning / 1000)


def _sensors(machine: Machine, name: str) -> Iterator[str]:
    """Yields the folders with the temperature of a drive: those of its NVMe controller, or of drivetemp."""
    folder = f"sys/block/{name}/device"
    yield from (f"{folder}/{each}" for each in machine.names(folder) if re.fullmatch(r"hwmon\d+", each))
    yield from (f"{folder}/hwmon/{each}" for each in machine.names(f"{folder}/hwmon"))


def _links(machine: Machine, drives: Iterable[BlockDevice]) -> Iterator[tuple[str, tuple[str, str, float]]]:
    """Yields NVMe SSDs whose PCI Express link is narrower or slower than the drive supports."""
    for device in drives:
        if device.kind != Kind.NVME_SSD:
            continue
        folder = f"sys/block/{device.name}/device/device"
        texts = [
            machine.text(f"{folder}/{when}_link_{what_of}") or ""
            for when in ("current", "max")
            for what_of in ("speed", "width")
        ]
        rates = [float(match[0]) if (match := re.match(r"[\d.]+", text)) else 0.0 for text in texts]
        now, best = rates[0] * rates[1], rates[2] * rates[3]
        if 0 < now < best:
            yield device.name, (f"{texts[0]} x{texts[1]}", f"{texts[2]} x{texts[3]}", best / now)


def _processors(machine: Machine) -> int:
    return sum(re.match(r"cpu\d", line) is not None for line in machine.lines("proc/stat")) or 1
