"""``Load``: what devices and host did while they were observed, and the verdicts of ``judge`` on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headstack.diagnosis.doctor.limits import GroupLimit, counted_of
from headstack.diagnosis.doctor.machine import Machine
from headstack.diagnosis.judging.sources.diskstats import counted
from headstack.diagnosis.judging.verdict import Verdict

if TYPE_CHECKING:
    from headstack.diagnosis.judging.observations import Observations
    from headstack.diagnosis.judging.suspects.limits import Limit

EVERY_S = 1.0
"""Interval of the observation: the shortest of ``judge --live``, so that 20 s have 20 intervals."""
PRESSURES = ("cpu", "io", "memory")


@dataclass(frozen=True)
class DeviceLoad:
    """Requests of a device: means over the observation."""

    reads_per_s: float = 0.0
    writes_per_s: float = 0.0
    read_bytes_per_s: float = 0.0
    write_bytes_per_s: float = 0.0
    read_latency_s: float | None = None
    write_latency_s: float | None = None
    flushes_per_s: float = 0.0
    flush_latency_s: float | None = None
    in_flight: float = 0.0
    discard_share: float = 0.0
    """Time of discards since boot, as a share of the summed time of all requests."""
    discards: float = 0.0
    """Number of discards since boot."""

    @property
    def iops(self) -> float:
        """Reads and writes per second."""
        return self.reads_per_s + self.writes_per_s

    @property
    def latency_s(self) -> float | None:
        """Mean latency of reads and writes."""
        waited = sum(
            rate * (latency_s or 0.0)
            for rate, latency_s in (
                (self.reads_per_s, self.read_latency_s),
                (self.writes_per_s, self.write_latency_s),
            )
        )
        return waited / self.iops if self.iops > 0 else None


@dataclass(frozen=True)
class Load:
    """The observation of a machine."""

    seconds: float
    devices: Mapping[str, DeviceLoad]
    stalled: Mapping[str, float] = field(default_factory=dict)
    """Share of the time in which a task at least waited for ``cpu``, ``io`` or ``memory`` (PSI, ``some``)."""
    cpu_idle: float | None = None
    cpu_steal: float | None = None
    throttled: float = 0.0
    """Share of the readings with more dirty pages than writers may have without waiting."""
    swapped_per_s: float = 0.0
    """Pages swapped in and out."""
    major_faults_per_s: float = 0.0
    """Page faults that read from a device."""
    group_rates: Mapping[GroupLimit, float] = field(default_factory=dict)
    """Rate of each limited counter of a control group."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """Verdicts of ``judge`` by the kernel's name of the device."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """Counters of a machine at a time."""

    at_s: float
    disks: Mapping[str, Mapping[str, float]]
    stalled_s: Mapping[str, float]
    ticks: tuple[float, ...]
    """Times of all processors together: user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5))."""
    pages: Mapping[str, int]
    groups: Mapping[GroupLimit, float]

    @staticmethod
    def now(machine: Machine, limits: tuple[GroupLimit, ...]) -> Reading:
        """Reads all counters."""
        stalls = {}
        for name in PRESSURES:
            some = next(iter(machine.lines(f"proc/pressure/{name}")), "")
            if "total=" in some:
                stalls[name] = float(some.rpartition("total=")[2]) / 1e6
        ticks = next(iter(machine.lines("proc/stat")), "").split()[1:9]
        return Reading(
            time.monotonic(),
            dict(counted(machine.lines("proc/diskstats"))),
            stalls,
            tuple(map(float, ticks)),
            machine.pairs("proc/vmstat"),
            counted_of(machine, limits),
        )


def load_between(before: Reading, after: Reading) -> Load:
    """Returns the load between two readings."""
    seconds = max(after.at_s - before.at_s, 1e-9)
    ticks = [now - was for now, was in zip(after.ticks, before.ticks, strict=False)]
    total = sum(ticks)

    def per_s(*names: str) -> float:
        return sum(after.pages.get(name, 0) - before.pages.get(name, 0) for name in names) / seconds

    return Load(
        seconds,
        {
            name: _device_load(before.disks[name], counts, seconds)
            for name, counts in after.disks.items()
            if name in before.disks
        },
        {
            name: min(1.0, (stalled_s - before.stalled_s[name]) / seconds)
            for name, stalled_s in after.stalled_s.items()
            if name in before.stalled_s
        },
        (ticks[3] + ticks[4]) / total if total > 0 else None,
        ticks[7] / total if total > 0 and len(ticks) > 7 else None,
        swapped_per_s=per_s("pswpin", "pswpout"),
        major_faults_per_s=per_s("pgmajfault"),
        group_rates={
            limit: (count - before.groups[limit]) / seconds
            for limit, count in after.groups.items()
            if limit in before.groups
        },
    )


def _device_load(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> DeviceLoad:
    def grown(name: str) -> float:
        return max(0.0, after.get(name, 0.0) - before.get(name, 0.0))

    def latency_s(count: str, spent: str) -> float | None:
        return grown(spent) / grown(count) if grown(count) > 0 else None

    spent_s = {name: after.get(name, 0.0) for name in ("read_s", "write_s", "discard_s", "flush_s")}
    total_s = sum(spent_s.values())
    return DeviceLoad(
        grown("reads") / seconds,
        grown("writes") / seconds,
        grown("read_bytes") / seconds,
        grown("write_bytes") / seconds,
        latency_s("reads", "read_s"),
        latency_s("writes", "write_s"),
        grown("flushes") / seconds,
        latency_s("flushes", "flush_s"),
        grown("waited_s") / seconds,
        spent_s["discard_s"] / total_s if total_s > 0 else 0.0,
        after.get("discards", 0.0),
    )


def exceeds_free_run(pages: Mapping[str, int]) -> bool:
    """Whether writers wait for dirty pages to be written: above the middle of both limits, ``balance_dirty_pages``
    pauses them (``dirty_freerun_ceiling`` in the kernel's mm/page-writeback.c)."""
    limit, background = pages.get("nr_dirty_threshold"), pages.get("nr_dirty_background_threshold")
    if not limit or background is None:
        return False
    return pages.get("nr_dirty", 0) + pages.get("nr_writeback", 0) > (limit + background) / 2


def observe(
    machine: Machine,
    limits: tuple[GroupLimit, ...],
    time_s: float,
    stated: Mapping[str, Limit],
    show: Callable[[float], object] | None = None,
) -> Load:
    """Observes this machine and judges its disks. ``stated`` are limits by the kernel's names of disks, with the key
    ``""`` for all others."""
    judging = _Judging(stated)
    before = Reading.now(machine, limits)
    end_s, count, exceeded = before.at_s + time_s, 0, 0
    judging.read()
    while (left_s := end_s - time.monotonic()) > 0:
        time.sleep(min(EVERY_S, left_s))
        judging.read()
        count += 1
        exceeded += exceeds_free_run(machine.pairs("proc/vmstat"))
        if show is not None:
            show(min(1.0, 1.0 - (end_s - time.monotonic()) / time_s))
    load = load_between(before, Reading.now(machine, limits))
    verdicts, notes = judging.verdicts()
    return replace(load, throttled=exceeded / max(count, 1), verdicts=verdicts, notes=notes)


class _Judging:
    """The live observation of ``judge``; without its packages there are no verdicts, and a note."""

    def __init__(self, stated: Mapping[str, Limit]) -> None:
        self._stated = stated
        self._parts: list[Observations] = []
        try:
            import numpy  # noqa: F401  # start-up time
            import polars  # noqa: F401  # start-up time
        except ImportError:
            self._watch = None
            return
        from headstack.diagnosis.judging.live import Watch  # start-up time
        from headstack.diagnosis.judging.sources.files import How  # start-up time

        self._watch = Watch((), How())

    def read(self) -> None:
        """Takes a reading of the disks."""
        if self._watch is not None and (part := self._watch.read()) is not None:
            self._parts.append(part)

    def verdicts(self) -> tuple[dict[str, Verdict], tuple[str, ...]]:
        """Returns verdicts by the kernel's names of disks, and notes."""
        if self._watch is None:
            return {}, ("disks are not judged: that needs numpy and polars (pip install 'headstack[judge]')",)
        if not self._parts:
            return {}, ()
        import polars as pl  # start-up time

        from headstack.diagnosis.judging.judge import judge  # start-up time
        from headstack.diagnosis.judging.session import Session  # start-up time

        labels = self._watch.labels
        limits = {labels.get(name, name): limit for name, limit in self._stated.items()}
        session = Session(judge, self._watch.how, {"limits": limits})
        session.take(replace(self._parts[0], frame=pl.concat([part.frame for part in self._parts])))
        by_label = {verdict.disk: verdict for verdict in session.verdicts}
        return {disk: by_label[label] for disk, label in labels.items() if label in by_label}, ()
