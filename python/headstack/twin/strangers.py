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
    """A hidden device that belongs to none of the families that it could be mistaken for."""

    device: str
    what: str
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons for rejection by family."""
    off: dict[str, float] = field(default_factory=dict)
    """For each family that accepted it, the largest error of its held-out rates."""

    @property
    def known(self) -> bool:
        """Whether no family accepted it with a wrong model."""
        return all(off <= GOOD_FIT_ERROR for off in self.off.values())


@dataclass(frozen=True)
class _Kind:
    what: str
    families: tuple[str, ...]
    """Families that it could be mistaken for."""
    system: System


def strangers(count: int, seed: int, first: int = 0) -> Iterator[Stranger]:
    """Yields strangers; each depends only on the seed and its number. The kinds repeat after twenty."""
    for number in range(first, first + count):
        kind = _kind(number % len(_KINDS), np.random.default_rng((seed, number)))
        found = Stranger(f"stranger-{seed}-{number}", kind.what)
        for family in kind.families:
            device = SimulatedDevice(kind.system, seed + number, found.device)
            try:
                learnt = learn(device, [family], seed=number + 1).learnt
            except DoesNotFitError as error:
                found.refused[family] = str(error).partition(f"{family}: ")[2]
                continue
            cells = score(
                kind.system, learnt, seed * 1000 + number, import_module(f"headstack.twin.families.{family}").HELD_OUT
            )
            found.off[family] = max(abs(math.expm1(cell["log_ratio"])) for cell in cells if cell["figure"] == "rate")
        yield found


SOLID, TURNING, ALONE = ("flash", "array"), ("disk", "array"), ("disk", "flash", "volume")
_KINDS: Final = (
    ("a constant 20 us", "constant 20e3", (*SOLID, "disk")),
    ("a constant 80 us", "constant 80e3", (*SOLID, "disk")),
    ("a constant 0.5 ms", "constant 500e3", (*SOLID, "disk")),
    ("a constant 5 ms", "constant 5e6", (*TURNING, "flash")),
    ("latencies of flash, drawn", "latencies 60e3 90e3 1e6", SOLID),
    ("latencies of a disk, drawn", "latencies 3e6 9e6 20e6", TURNING),
    ("a disk", "disk", ("flash", "volume", "array")),
    ("another disk", "disk", ("flash", "volume", "array")),
    ("a solid-state drive", "flash", ("disk", "volume", "array")),
    ("another solid-state drive", "flash", ("disk", "volume", "array")),
    ("a volume", "volume", ("disk", "flash", "array")),
    ("another volume", "volume", ("disk", "flash", "array")),
    ("a disk beside a solid-state drive", "jbod disk flash", ALONE),
    ("a disk behind a solid-state drive", "concat flash disk", ALONE),
    ("a disk and a solid-state drive that mirror each other", "raid1 disk flash", ALONE),
    ("stripes over a disk and a solid-state drive", "raid0 disk flash", ALONE),
    ("a disk beside another", "jbod disk disk", ALONE),
    ("a solid-state drive beside another", "jbod flash flash", ALONE),
    ("stripes over unlike solid-state drives", "raid0 flash flash", ALONE),
    ("stripes over disks", "raid5 disk", ALONE),
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
    what, made_of, families = _KINDS[number]
    kind, *parts = made_of.split()
    if kind in DRAWS:
        return _Kind(what, families, DRAWS[kind](random))
    if kind in ("constant", "latencies"):
        # As similar to one as the model permits.
        times = [round(float(part)) for part in parts]
        floor, median, p99 = times if len(times) > 1 else (times[0], times[0] + 1, times[0] + 2)
        return _Kind(what, families, _latencies(floor, median, p99))
    return _Kind(what, families, _mixed(kind, parts, random))


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
