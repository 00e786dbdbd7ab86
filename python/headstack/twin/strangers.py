"""Devices that a family must not accept: constant latencies, other families, and mixtures of two devices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Final

import numpy as np

from headstack.twin.device import SimulatedDevice
from headstack.twin.families import disk, flash, volume
from headstack.twin.families.flash_draw import loaded
from headstack.twin.hidden import score
from headstack.twin.learning import DoesNotFitError, learn
from headstack.twin.learnt import System
from headstack.twin.volume_types import Latency, Volume

GOOD_FIT_ERROR: Final = 0.03
"""A model whose rates are this close in all held-out workloads is good, regardless of the real device."""


@dataclass(frozen=True)
class Stranger:
    """A hidden device that resembles some families but belongs to none of them."""

    device: str
    description: str
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons for rejection by family."""
    off: dict[str, float] = field(default_factory=dict)
    """For each family that accepted it, the largest error of its held-out rates."""

    @property
    def is_predicted_well(self) -> bool:
        """Whether no family accepted it with a wrong model."""
        return all(off <= GOOD_FIT_ERROR for off in self.off.values())


@dataclass(frozen=True)
class _Kind:
    description: str
    families: tuple[str, ...]
    """Families that it could be mistaken for."""
    system: System


def strangers(count: int, seed: int, first: int = 0) -> Iterator[Stranger]:
    """Yields strangers; each depends only on the seed and its number. The kinds repeat after twenty."""
    for number in range(first, first + count):
        kind = _kind(number % len(_KINDS), np.random.default_rng((seed, number)))
        stranger = Stranger(f"stranger-{seed}-{number}", kind.description)
        for family in kind.families:
            device = SimulatedDevice(kind.system, seed + number, stranger.device)
            try:
                learnt = learn(device, [family], seed=number + 1).learnt
            except DoesNotFitError as error:
                stranger.refused[family] = str(error).partition(f"{family}: ")[2]
                continue
            cells = score(
                kind.system, learnt, seed * 1000 + number, import_module(f"headstack.twin.families.{family}").HELD_OUT
            )
            stranger.off[family] = max(abs(math.expm1(cell["log_ratio"])) for cell in cells if cell["figure"] == "rate")
        yield stranger


SOLID, TURNING, ALONE = ("flash", "array"), ("disk", "array"), ("disk", "flash", "volume")
_KINDS: Final = (
    ("a constant 20 us", "constant 20e3", (*SOLID, "disk")),
    ("a constant 80 us", "constant 80e3", (*SOLID, "disk")),
    ("a constant 0.5 ms", "constant 500e3", (*SOLID, "disk")),
    ("a constant 5 ms", "constant 5e6", (*TURNING, "flash")),
    ("random latencies of flash", "latencies 60e3 90e3 1e6", SOLID),
    ("random latencies of a disk", "latencies 3e6 9e6 20e6", TURNING),
    ("a disk", "disk", ("flash", "volume", "array")),
    ("another disk", "disk", ("flash", "volume", "array")),
    ("an SSD", "flash", ("disk", "volume", "array")),
    ("another SSD", "flash", ("disk", "volume", "array")),
    ("a volume", "volume", ("disk", "flash", "array")),
    ("another volume", "volume", ("disk", "flash", "array")),
    ("a disk and an SSD in a JBOD", "jbod disk flash", ALONE),
    ("an SSD and a disk, concatenated", "concat flash disk", ALONE),
    ("a disk and an SSD in RAID 1", "raid1 disk flash", ALONE),
    ("a disk and an SSD in RAID 0", "raid0 disk flash", ALONE),
    ("two disks in a JBOD", "jbod disk disk", ALONE),
    ("two SSDs in a JBOD", "jbod flash flash", ALONE),
    ("two different SSDs in RAID 0", "raid0 flash flash", ALONE),
    ("disks in RAID 5", "raid5 disk", ALONE),
)
"""Name, construction, and families that it could be mistaken for."""
MEMBERS: Final = {
    "disk": (
        "cheetah-9lp",
        "atlas-10k-iii-73",
        "cheetah-15k7-600",
        "exos-7e8-8tb",
        "barracuda-xt-2tb",
        "deskstar-7k3000-3tb",
    ),
    "flash": ("dc-s3700-400gb", "870-evo-1tb", "dc-p4510-4tb", "7450-pro-7680gb"),
}
"""Drives of every kind."""
DRAWS: Final = {"disk": disk.draw, "flash": flash.draw, "volume": volume.draw}


def _kind(number: int, random: np.random.Generator) -> _Kind:
    description, construction, families = _KINDS[number]
    kind, *parts = construction.split()
    if kind in DRAWS:
        return _Kind(description, families, DRAWS[kind](random))
    if kind in ("constant", "latencies"):
        # As similar to one as the model permits.
        times = [round(float(part)) for part in parts]
        floor, median, p99 = times if len(times) > 1 else (times[0], times[0] + 1, times[0] + 2)
        return _Kind(description, families, _latencies(floor, median, p99))
    return _Kind(description, families, _mixed(kind, parts, random))


def _latencies(floor_ns: int, median_ns: int, p99_ns: int) -> System:
    """Returns a system whose latencies have no other cause."""
    latency: Latency = {"floor_ns": floor_ns, "median_ns": median_ns, "p99_ns": p99_ns}
    volume: Volume = {
        "name": "latencies",
        "capacity_bytes": 100 << 30,
        "block_bytes": 512,
        "limits": [],
        "accounting": {"unit_bytes": None, "merges": False, "whole_units": False},
        "read": latency,
        "write": latency,
        "queue_depth": 1024,
    }
    return {"drive": {"volume": volume}}


def _mixed(level: str, parts: list[str], random: np.random.Generator) -> System:
    """Returns an array with two different members, or four equal ones."""
    names: list[str] = []
    for part in parts:
        left = [name for name in MEMBERS[part] if name not in names]
        names.append(left[random.integers(len(left))])
    count = 4 if len(names) == 1 else 1
    drives = "".join(f'[[drives]]\ndrive = "{name}"\ncount = {count}\n' for name in names)
    return loaded(f'name = "mixed"\n{drives}[[groups]]\nlevel = "{level}"\n')
