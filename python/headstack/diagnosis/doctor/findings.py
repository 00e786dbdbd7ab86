"""``Finding``: something worth changing, and what the checks look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from headstack.diagnosis.doctor.blocks import BlockDevice, drives_below
from headstack.diagnosis.doctor.effects import UNKNOWN, Effect
from headstack.diagnosis.doctor.limits import GroupLimit
from headstack.diagnosis.doctor.load import DeviceLoad, Load
from headstack.diagnosis.doctor.stack import Mount, Stack
from headstack.diagnosis.inspection.model import Inspection
from headstack.diagnosis.judging.verdict import Kind as VerdictKind


class Check(StrEnum):
    """All checks, with what they look at."""

    HEALTH = "health of drives"
    TEMPERATURE = "temperature of drives"
    DEGRADED = "missing members of md arrays"
    BARRIER = "file systems without barriers"
    VERDICT = "verdicts of judge"
    STARVED_HOST = "processors and memory"
    GROUP_LIMIT = "limits of control groups"
    DIRTY_THROTTLE = "writers that wait for dirty pages"
    SYNC_ACTION = "background work of md arrays"
    SWAP = "swapping"
    FLUSHES = "time of flushes"
    DISCARDS = "time of discards"
    WRITE_CACHE = "write caches of disks"
    QUEUE_DEPTH = "queue depths"
    SCHEDULER = "I/O schedulers"
    HARDWARE_QUEUES = "queues of NVMe SSDs"
    LINK = "speeds of links"
    ALIGNMENT = "alignment of partitions"
    READ_AHEAD = "read-ahead"
    DIRTY_LIMITS = "limits of dirty pages"
    MOUNT_OPTIONS = "mount options"


class Urgency(IntEnum):
    """Ranks of findings, the most urgent first."""

    DANGER = 0
    """Data are at risk."""
    WAITING = 1
    """Requests were seen to wait for it."""
    SETTING = 2
    """A setting that costs speed under some loads."""


@dataclass(frozen=True)
class Finding:
    """Something worth changing."""

    check: Check
    subject: str
    """Device, array, mount or control group."""
    urgency: Urgency
    seen: str
    """The file and its value, or the observed figure."""
    why: str
    command: str
    """The command that changes it, or that shows more."""
    effect: Effect = UNKNOWN
    kind: VerdictKind | None = None
    """The verdict of ``judge`` with the same meaning, which decides the exit code; ``None`` for settings."""

    @property
    def rank(self) -> tuple[int, float]:
        """Sorts the most urgent first, then the largest effect; an unknown one counts as none."""
        return self.urgency, -(self.effect.speedup or 1.0)


@dataclass(frozen=True)
class Host:
    """The state of a machine: devices, stack, limits, and the observation."""

    devices: tuple[BlockDevice, ...]
    stack: Stack
    limits: tuple[GroupLimit, ...] = ()
    inspections: Mapping[str, Inspection] = field(default_factory=dict)
    """Inspections by the kernel's name of the device."""
    temperatures: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Temperature and warning temperature of devices in °C."""
    links: Mapping[str, tuple[str, str, float]] = field(default_factory=dict)
    """Current and highest link of NVMe SSDs that run below it, and the ratio of their rates."""
    processors: int = 1
    power_latency_us: int | None = None
    """Longest wake-up of power states that NVMe SSDs may enter by themselves (``default_ps_max_latency_us``)."""
    load: Load | None = None
    """The observation; ``None`` without one."""

    def load_of(self, name: str) -> DeviceLoad | None:
        """Returns the observed load of a device."""
        return None if self.load is None else self.load.devices.get(name)

    @property
    def drives(self) -> tuple[BlockDevice, ...]:
        """The devices at the bottom that are in use, by a mount, swap, another device or requests."""
        sources = [*(mount.source for mount in self.stack.mounts), *self.stack.swaps]
        used = {name for source in sources for name in drives_below(source, self.devices)}
        used |= {name for each in self.devices if each.slaves for name in drives_below(each.name, self.devices)}
        loads = {} if self.load is None else self.load.devices
        used |= {name for name, load in loads.items() if load.iops > 0}
        return tuple(device for device in self.devices if device.name in used and not device.slaves)

    def mounts_on(self, device: BlockDevice) -> list[Mount]:
        """Returns the file systems whose data are on a device, also through arrays and volumes."""
        return [mount for mount in self.stack.mounts if device.name in drives_below(mount.source, self.devices)]
