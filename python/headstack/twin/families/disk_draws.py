"""Hidden disks: random descriptions of disks of all eras, for blind tests of calibrations.

Ranges are those of the catalogue's drives of each era (``headstack catalog drives list``), and wider for unknown
values.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from headstack import _native
from headstack.catalogue.system import parse_system
from headstack.twin.learnt import System


@dataclass(frozen=True)
class Era:
    """Ranges of disks in a period."""

    years: tuple[int, int]
    rpm: tuple[float, ...]
    gigabytes: tuple[float, float]
    heads: tuple[int, ...]
    outer_mb_s: tuple[float, float]
    average_seek_ms: tuple[float, float]
    buffer_kib: tuple[int, int]
    command_ms: tuple[float, float]
    queue_depths: tuple[int, ...]
    interface: tuple[tuple[str, str], ...]


ERAS = (
    Era(
        (1993, 1997),
        (4500, 5400, 7200),
        (0.5, 9),
        (2, 4, 8, 16, 20),
        (4, 12),
        (8, 12),
        (128, 1024),
        (0.3, 1.2),
        (1, 8, 64),
        (("scsi", "20MB/s"), ("ata", "16.7MB/s"), ("scsi", "40MB/s")),
    ),
    Era(
        (1998, 2003),
        (5400, 7200, 10_000, 15_000),
        (9, 200),
        (2, 4, 6, 8, 12),
        (15, 75),
        (3.6, 9.5),
        (512, 8192),
        (0.15, 0.6),
        (1, 16, 64, 128),
        (("scsi", "80MB/s"), ("scsi", "160MB/s"), ("scsi", "320MB/s"), ("ata", "100MB/s")),
    ),
    Era(
        (2004, 2010),
        (5400, 7200, 10_000, 15_000),
        (73, 2000),
        (1, 2, 4, 6, 8),
        (50, 150),
        (3.4, 12.5),
        (8 << 10, 64 << 10),
        (0.1, 0.5),
        (1, 31, 32, 128),
        (("sata", "300MB/s"), ("sas-3", "300MB/s"), ("scsi", "320MB/s")),
    ),
    Era(
        (2011, 2024),
        (5400, 5900, 7200, 10_000, 15_000),
        (300, 24_000),
        (2, 4, 8, 16, 18, 20),
        (120, 285),
        (2.9, 12.0),
        (64 << 10, 512 << 10),
        (0.05, 0.3),
        (32, 64, 128),
        (("sata", "600MB/s"), ("sas-12", "1.2GB/s")),
    ),
)


def draw(random: np.random.Generator) -> System:
    """Draws a hidden disk."""
    while True:
        try:
            return perturbed(parse_system(_file(random)).system, random)
        except _native.InputError:
            # Draw again if the values are contradictory.
            continue


def _between(random: np.random.Generator, low: float, high: float) -> float:
    return float(low * (high / low) ** random.random()) if low > 0 else float(low + (high - low) * random.random())


def _file(random: np.random.Generator) -> str:
    """Returns a drive file with the values of a data sheet, and some that only the maker knows."""
    era = ERAS[int(random.integers(len(ERAS)))]
    rpm = float(random.choice(era.rpm)) * (1 + random.uniform(-0.004, 0.006))
    outer = _between(random, *era.outer_mb_s)
    seek = float(np.clip(_between(random, *era.average_seek_ms) * (7200 / rpm) ** 0.3, 2.9, 14))
    kind, rate = era.interface[int(random.integers(len(era.interface)))]
    capacity = _between(random, *era.gigabytes) * 1e9
    buffer = 2 ** round(np.log2(_between(random, *era.buffer_kib)))
    policies = ("sptf", "sptf", "sptf", "sptf", "look", "c-look", "sstf", "fcfs")
    depth = int(random.choice(era.queue_depths))
    policy = str(random.choice(policies))
    lines = [
        f'name = "hidden"\nyear = {int(random.integers(*era.years))}',
        f'[capacity]\nlogical_blocks = {int(capacity // 4096) * 8}\nlogical_block = "512B"',
        f"[geometry]\nheads = {int(random.choice(era.heads))}\nzone_count = {int(random.integers(5, 25))}",
        "[media]",
        f'sustained_outer_rate = "{outer:.3f}MB/s"',
        f'sustained_inner_rate = "{outer * random.uniform(0.42, 0.68):.3f}MB/s"',
        f'[spindle]\nspeed = "{rpm:.3f}rpm"',
        "[seek]",
        f'read_average = "{seek * 1e6:.0f}ns"',
        f'read_track_to_track = "{seek * random.uniform(0.06, 0.16) * 1e6:.0f}ns"',
        f'read_full_stroke = "{seek * random.uniform(1.8, 2.4) * 1e6:.0f}ns"',
        f'write_settle = "{random.uniform(0.1, 0.9) * 1e6:.0f}ns"',
        f'[queue]\ndepth = {depth}\npolicy = "{policy}"',
        f'[overheads]\ncommand = "{_between(random, *era.command_ms) * 1e6:.0f}ns"',
        f'[interface]\nkind = "{kind}"\nrate = "{rate}"',
        f'[buffer]\nsize = "{buffer}KiB"\nsegments = {int(2 ** random.integers(0, 6))}',
        f'write_cache = "{random.choice(["on", "on", "on", "off", "appending", "protected"])}"',
    ]
    return "\n".join(lines) + "\n"


def perturbed(system: System, random: np.random.Generator) -> System:
    """Returns the system with a firmware, a seek curve and surfaces of its own, which no data sheet states."""
    disk = copy.deepcopy(system["drive"]["disk"])
    queue = disk["queue"]
    queue["committed"] = float(random.choice([0, 0, random.uniform(0, 6)]))
    queue["rotation_margin_ns"] = int(random.choice([0, random.uniform(0, 4e6)]))
    queue["age_weight"] = float(random.choice([0, 0, random.uniform(0, 0.2)]))
    queue["reordering_strength"] = float(random.choice([1, 1, random.uniform(0.2, 1)]))
    points = disk["mechanics"]["seek"].get("points")
    if points:
        # A smooth bend of a few percent, which keeps the curve increasing.
        span = points[-1][0]
        bend, phase = random.uniform(-0.06, 0.06), random.uniform(0, 2 * np.pi)
        times = [time * (1 + bend * np.sin(phase + 3 * np.log1p(9 * at / span))) for at, time in points]
        rising = np.maximum.accumulate(np.round(times))
        disk["mechanics"]["seek"]["points"] = [[at, int(time)] for (at, _), time in zip(points, rising, strict=True)]
    disk["geometry"]["zones"] = [{**zone, "offset_turns": float(random.random())} for zone in disk["geometry"]["zones"]]
    return {"drive": {"disk": disk}}
