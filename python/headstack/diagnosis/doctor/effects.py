"""Expected effects of a change: simulated where a model covers it, computed from stated figures, or not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from headstack.diagnosis.doctor.blocks import BlockDevice, Kind
from headstack.diagnosis.inspection.catalogued import entry_of
from headstack.diagnosis.inspection.model import Identity
from headstack.diagnosis.judging.latencies import time_text

Origin: TypeAlias = Literal["simulated", "computed", "observed", "not known"]
TYPICAL: Mapping[Kind, str] = {
    Kind.DISK: "exos-x18-18tb",
    Kind.SATA_SSD: "pm893-960gb",
    Kind.NVME_SSD: "990-pro-2tb",
}
"""Drives that stand for their kind if the catalogue lacks the model; answers name them."""
PROTECTED = "7450-pro-7680gb"
"""An SSD with power-loss protection."""
DEEP = 32
"""Queue depth of effects on queues: the commands that a SATA disk takes at once (NCQ)."""


@dataclass(frozen=True)
class Effect:
    """The expected effect of a change."""

    text: str
    origin: Origin
    speedup: float | None = None
    """Factor of IOPS, or of latency, if it is a figure."""


UNKNOWN = Effect("not known", "not known")


def model_of(device: BlockDevice) -> tuple[str, str] | None:
    """Returns the simulated drive for a device, and how answers name it; ``None`` for kinds without a typical drive."""
    entry = entry_of(Identity(model=device.model))
    if entry is not None:
        return entry.id, entry.id
    typical = TYPICAL.get(device.kind)
    return None if typical is None else (typical, f"{typical}, which stands for its kind")


@cache
def _figure(drive: str, column: str, options: tuple[tuple[str, Any], ...]) -> float:
    from headstack.simulation.runs import run  # start-up time

    return float(run(drive, **dict(options))[0][column])


def simulated(drive: str, column: str, **options: Any) -> float:
    """Returns a figure of a short simulated run."""
    return _figure(drive, column, tuple(sorted(options.items())))


def effect_on_iops(
    device: BlockDevice, load: str, now: Mapping[str, Any], changed: Mapping[str, Any], **options: Any
) -> Effect:
    """Returns the change of IOPS between two sets of options of a run."""
    if (model := model_of(device)) is None:
        return UNKNOWN
    drive, name = model
    before = simulated(drive, "iops", **options, **now)
    after = simulated(drive, "iops", **options, **changed)
    text = f"{after:,.0f} instead of {before:,.0f} IOPS for {load} (simulated: {name})"
    return Effect(text, "simulated", after / before)


def of_queue(device: BlockDevice) -> Effect:
    """Effect of a deep queue instead of one command at a time, on random reads at queue depth 32."""
    load = f"random reads of 4 KiB at queue depth {DEEP}"
    options = {"size": "4KiB", "read": 100, "random": 100, "requests": 4000}
    if device.kind == Kind.DISK:
        return effect_on_iops(device, load, {"host_tags": 1}, {"host_tags": DEEP}, depth=DEEP, **options)
    return effect_on_iops(device, load, {"depth": 1}, {"depth": DEEP}, **options)


def of_write_cache(device: BlockDevice) -> Effect:
    """Effect of a disk's write cache on random writes that are not flushed, once the cache is full."""
    options = {"size": "4KiB", "read": 0, "random": 100, "depth": 1, "requests": 5000, "warm_up": 10000}
    return effect_on_iops(
        device, "random writes of 4 KiB, one at a time", {"write_cache": "off"}, {"write_cache": "on"}, **options
    )


def of_elevator(device: BlockDevice) -> Effect:
    """Effect of sorting by the host on random reads at four times the depth of the disk's queue."""
    depth = 4 * DEEP
    options = {"size": "4KiB", "read": 100, "random": 100, "depth": depth, "host_tags": DEEP, "requests": 4000}
    load = f"random reads of 4 KiB at queue depth {depth}"
    return effect_on_iops(device, load, {"elevator": "fcfs"}, {"elevator": "c-look"}, **options)


def of_page_faults(device: BlockDevice, now_kib: int, changed_kib: int) -> Effect:
    """Effect of the size of read-ahead on a page fault in a mapped file, which reads that much around the page."""
    computed = f"{changed_kib:,} instead of {now_kib:,} KiB per page fault"
    if (model := model_of(device)) is None:
        return Effect(f"up to {computed} (computed); time not known", "computed")
    drive, name = model
    options = {"read": 100, "random": 100, "depth": 1, "requests": 1000}
    before_ms = simulated(drive, "mean_ms", size=f"{now_kib}KiB", **options)
    after_ms = simulated(drive, "mean_ms", size=f"{changed_kib}KiB", **options)
    text = f"{time_text(after_ms / 1e3)} instead of {time_text(before_ms / 1e3)} per page fault (simulated: {name})"
    return Effect(text, "simulated", before_ms / after_ms)


def of_protection(latency_s: float) -> Effect:
    """Effect of an SSD with power-loss protection on writes that are flushed one by one, from an observed flush."""
    rate = simulated(PROTECTED, "iops", size="4KiB", read=0, random=0, depth=1, fsync=1, requests=2000)
    # A run with a flush after every write counts both as requests.
    each_s = 2.0 / rate
    text = f"about {time_text(each_s)} for a write with its flush (simulated: {PROTECTED})"
    return Effect(text, "simulated", latency_s / each_s)


def sequential_write_bytes_per_s(device: BlockDevice) -> tuple[float, str] | None:
    """Returns the simulated rate of sequential writes and the name of its model; ``None`` for unknown kinds."""
    if (model := model_of(device)) is None:
        return None
    drive, name = model
    rate = simulated(drive, "mb_per_s", size="1MiB", read=0, random=0, depth=1, requests=500)
    return rate * 1e6, name
