"""Periodic observation of this machine's disks."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headstack._native import InputError
from headstack.diagnosis.judging.observations import Observations, observed
from headstack.diagnosis.judging.sources.counters import Differences, is_disk
from headstack.diagnosis.judging.sources.diskstats import counted
from headstack.diagnosis.judging.sources.files import How

DISKSTATS = Path("/proc/diskstats")
SYSFS = Path("/sys/block")
STAT = Path("/proc/stat")
PRESSURE = Path("/proc/pressure/io")
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


@dataclass(frozen=True)
class HostTimes:
    """Sums of time of this machine."""

    at_s: float
    ticks: float
    """Time of all processors together, in the kernel's ticks."""
    idle_ticks: float
    stolen_ticks: float
    stalled_s: float | None
    """Time in which a task at least waited for I/O; ``None`` if the kernel does not count it (PSI)."""

    @staticmethod
    def now() -> HostTimes:
        """Reads the sums."""
        # user nice system idle iowait irq softirq steal; guests are part of user and nice (proc_stat(5)).
        ticks = [float(field) for field in STAT.read_text().split("\n", 1)[0].split()[1:9]]
        try:
            some = PRESSURE.read_text().split("\n", 1)[0]
        except OSError:
            stalled_s = None
        else:
            stalled_s = float(some.rpartition("total=")[2]) / 1e6
        return HostTimes(time.monotonic(), sum(ticks), ticks[3] + ticks[4], ticks[7], stalled_s)

    def shares_since(self, before: HostTimes) -> dict[str, float]:
        """Returns the columns of observations about the host for the time since an earlier reading."""
        shares: dict[str, float] = {}
        ticks, seconds = self.ticks - before.ticks, self.at_s - before.at_s
        if ticks > 0:
            shares["cpu_idle"] = (self.idle_ticks - before.idle_ticks) / ticks
            shares["cpu_steal"] = (self.stolen_ticks - before.stolen_ticks) / ticks
        if self.stalled_s is not None and before.stalled_s is not None and seconds > 0:
            shares["io_pressure"] = min(1.0, (self.stalled_s - before.stalled_s) / seconds)
        return shares


class Watch:
    """Consecutive readings of the counters of disks and of the host."""

    def __init__(self, named: Sequence[str], how: How) -> None:
        self.how = how
        self.labels = {disk: _stated(disk, "serial", "wwid") or disk for disk in disks_of(named)}
        """The names of disks in observations, by the kernel's names."""
        self._models = {disk: _stated(disk, "model") for disk in self.labels}
        self._differences = Differences(how, wraps=True)
        self._host = how.host or platform.node()
        self._before = HostTimes.now()

    def read(self) -> Observations | None:
        """Returns observations of the time since the previous reading; ``None`` without any, as at the first one."""
        times = HostTimes.now()
        shares, self._before = times.shares_since(self._before), times
        counts = dict(counted(DISKSTATS.read_text().splitlines()))
        now_s = time.time()
        rows = [
            {**replace(row, model=self._models[disk]).cells(), **shares}
            for disk, label in self.labels.items()
            if disk in counts and (row := self._differences.row(self._host, label, now_s, counts[disk]))
        ]
        return observed(rows, "live", (*CAVEATS, *self.how.caveats())) if rows else None


def observe(named: Sequence[str], every_s: float, how: How) -> Iterator[Observations]:
    """Yields observations of the disks periodically, without end."""
    if every_s < LEAST_S:
        raise InputError(f"--live: {every_s:g}s is too short; must be {LEAST_S:g}s or longer")
    watch = Watch(named, how)
    due_s = time.monotonic()
    while True:
        if (part := watch.read()) is not None:
            yield part
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
