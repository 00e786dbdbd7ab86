"""Periodic observation of this machine's disks."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from headstack._native import InputError
from headstack.diagnosis.judging.observations import Observations, observed
from headstack.diagnosis.judging.sources.counters import Differences, is_disk
from headstack.diagnosis.judging.sources.diskstats import counted
from headstack.diagnosis.judging.sources.files import How

DISKSTATS = Path("/proc/diskstats")
SYSFS = Path("/sys/block")
CAVEATS = ("latency includes the time in the kernel's queue",)
LEAST_S = 1.0


def disks_of(named: Sequence[str]) -> list[str]:
    """Returns the kernel's names of disks; all by default. Raises ``InputError`` for other devices."""
    present = {name for name, _ in counted(DISKSTATS.read_text().splitlines())}
    if not named:
        return sorted(name for name in present if is_disk(name))
    names = [os.path.basename(os.path.realpath(f"/dev/{name}" if "/" not in name else name)) for name in named]
    for argument, name in zip(named, names, strict=True):
        if name not in present:
            raise InputError(
                f"{argument}: not a disk of this machine; allowed: {', '.join(sorted(filter(is_disk, present)))}"
            )
    return names


def observe(named: Sequence[str], every_s: float, how: How) -> Iterator[Observations]:
    """Yields observations of the disks periodically, without end."""
    if every_s < LEAST_S:
        raise InputError(f"--live: {every_s:g}s is too short; must be {LEAST_S:g}s or longer")
    disks = disks_of(named)
    differences = Differences(how, wraps=True)
    host = how.host or platform.node()
    called = {disk: _stated(disk, "serial", "wwid") or disk for disk in disks}
    models = {disk: _stated(disk, "model") for disk in disks}
    due_s = time.monotonic()
    while True:
        counts = dict(counted(DISKSTATS.read_text().splitlines()))
        now_s = time.time()
        rows = [
            replace(row, model=models[disk]).cells()
            for disk in disks
            if disk in counts and (row := differences.row(host, called[disk], now_s, counts[disk]))
        ]
        if rows:
            yield observed(rows, "live", (*CAVEATS, *how.caveats()))
        # Readings that a suspended or busy machine missed are skipped.
        due_s = max(due_s + every_s, time.monotonic())
        time.sleep(due_s - time.monotonic())


def _stated(disk: str, *names: str) -> str | None:
    """Returns an attribute of a disk; its serial number is used as its name, since the kernel's may change."""
    for name in names:
        try:
            text = (SYSFS / disk / "device" / name).read_text(errors="replace").strip()
        except OSError:
            continue
        if text:
            return " ".join(text.split())
    return None
