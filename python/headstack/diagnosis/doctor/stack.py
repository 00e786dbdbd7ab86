"""``Stack``: file systems, swap, arrays, and the kernel's limits on dirty pages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headstack.diagnosis.doctor.blocks import BlockDevice, Kind, drives_below
from headstack.diagnosis.doctor.machine import Machine

OPTIONS = re.compile(
    r"ro|sync|dirsync|noatime|relatime|lazytime|discard(=\w+)?|nobarrier|barrier(=\d)?|data=\w+|commit=\d+|logbsize=\w+"
    r"|nodiscard|compress\S*|ssd|nodatacow|nodelalloc"
)
"""Mount options that change when and how blocks are read and written (ext4.rst, xfs.rst, btrfs(5), mount(8))."""


@dataclass(frozen=True)
class Mount:
    """A mounted file system on a block device."""

    source: str
    """The kernel's name of its device, which may be a partition."""
    folder: str
    kind: str
    options: tuple[str, ...]

    @property
    def is_writable(self) -> bool:
        """True if the file system is mounted for writing."""
        return "ro" not in self.options

    @property
    def options_text(self) -> str:
        """The options that matter for I/O."""
        return ",".join(option for option in self.options if OPTIONS.fullmatch(option))


@dataclass(frozen=True)
class Array:
    """The state of an md array."""

    name: str
    level: str
    state: str | None
    degraded: int
    """Number of missing members."""
    action: str
    """The running background work (``sync_action`` of md.rst): idle, check, resync, recover, repair, reshape."""
    done: str | None
    bitmap: str | None


@dataclass(frozen=True)
class DirtyLimits:
    """The limits on dirty pages, as the kernel computes them from ``vm.dirty_*``."""

    background_bytes: int
    """Dirty bytes from which the kernel writes in the background."""
    limit_bytes: int
    """Dirty bytes at which writers wait."""
    expire_s: float
    """Age from which dirty data are written in any case (``vm.dirty_expire_centisecs``)."""


@dataclass(frozen=True)
class Stack:
    """Everything between programs and block devices."""

    mounts: tuple[Mount, ...]
    swaps: Mapping[str, int]
    """Used bytes of each swap device or file, by its device."""
    arrays: tuple[Array, ...]
    dirty: DirtyLimits | None
    has_zfs: bool


def stack_of(machine: Machine, devices: Iterable[BlockDevice]) -> Stack:
    """Reads the stack of a machine."""
    devices = tuple(devices)
    names = {device.name for device in devices} | {part for device in devices for part in device.partitions}
    return Stack(
        tuple(_mounts(machine, names)),
        dict(_swaps(machine, names)),
        tuple(_array(machine, device.name) for device in devices if device.kind == Kind.MD),
        _dirty_limits(machine),
        machine.path("proc/spl/kstat/zfs").is_dir(),
    )


def _mounts(machine: Machine, names: set[str]) -> Iterator[Mount]:
    by_number = {machine.text(f"sys/class/block/{name}/dev"): name for name in names}
    seen = set()
    for line in machine.lines("proc/self/mountinfo"):
        left, _, right = line.partition(" - ")
        number, _, folder, options = left.split()[2:6]
        kind, source, *of_all = right.split()
        # btrfs has a number of its own, and the source /dev/root no device.
        name = by_number.get(number) or kernel_name(machine, source)
        # Bind mounts repeat a file system.
        if name in names and name not in seen:
            seen.add(name)
            stated = dict.fromkeys([*options.split(","), *",".join(of_all).split(",")])
            yield Mount(name, folder.replace("\\040", " "), kind, tuple(stated))


def _swaps(machine: Machine, names: set[str]) -> Iterator[tuple[str, int]]:
    for line in machine.lines("proc/swaps")[1:]:
        source, kind, _, used = line.split()[:4]
        name = kernel_name(machine, source) if kind == "partition" else _device_of_file(machine, source)
        if name in names:
            yield name, int(used) * 1024


def kernel_name(machine: Machine, source: str) -> str:
    """Returns the kernel's name of a device by its path, which may be a link such as ``/dev/mapper/data``."""
    path = machine.path(source)
    return os.path.basename(os.path.realpath(path)) if path.exists() else os.path.basename(source)


def _device_of_file(machine: Machine, file: str) -> str:
    """Returns the device of a swap file: that of the longest folder above it."""
    above = [line.split()[:2] for line in machine.lines("proc/self/mounts")]
    fitting = [(len(folder), source) for source, folder in above if Path(file).is_relative_to(folder)]
    return kernel_name(machine, max(fitting)[1]) if fitting else ""


def _array(machine: Machine, name: str) -> Array:
    folder = f"sys/block/{name}/md"
    return Array(
        name,
        machine.text(f"{folder}/level") or "unknown",
        machine.text(f"{folder}/array_state"),
        machine.number(f"{folder}/degraded") or 0,
        machine.text(f"{folder}/sync_action") or "idle",
        machine.text(f"{folder}/sync_completed"),
        machine.text(f"{folder}/bitmap/location"),
    )


def _dirty_limits(machine: Machine) -> DirtyLimits | None:
    pages = machine.pairs("proc/vmstat")
    expire = machine.number("proc/sys/vm/dirty_expire_centisecs")
    if "nr_dirty_threshold" not in pages or expire is None:
        return None
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    background = pages.get("nr_dirty_background_threshold", 0)
    return DirtyLimits(background * page_bytes, pages["nr_dirty_threshold"] * page_bytes, expire / 100.0)


def uses_of(device: str, stack: Stack, devices: Iterable[BlockDevice]) -> list[str]:
    """Returns the uses of a drive, such as ``/var (xfs)`` and ``swap``, also through arrays and volumes."""
    devices = tuple(devices)
    uses = [f"{mount.folder} ({mount.kind})" for mount in stack.mounts if device in drives_below(mount.source, devices)]
    uses += ["swap" for source in stack.swaps if device in drives_below(source, devices)]
    held = [each.name for each in devices if each.slaves and device in drives_below(each.name, devices)]
    return uses + [f"in {name}" for name in held]
