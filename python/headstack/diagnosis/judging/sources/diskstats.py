"""Reader of consecutive dumps of ``/proc/diskstats``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headstack.diagnosis.judging.sources.counters import SECTOR_BYTES, Differences, judged, stacked
from headstack.diagnosis.judging.sources.files import Clock, How, Row, blocks, stem

LINE = re.compile(r"^\s*\d+\s+\d+\s+[A-Za-z]\S*(\s+\d+){11,17}\s*$", re.MULTILINE)
CAVEATS = (
    "disks have the kernel's names, which may change at a reboot",
    "latency includes the time in the kernel's queue",
)

FIELDS: tuple[tuple[str, int, float], ...] = (
    ("reads", 3, 1),
    ("read_bytes", 5, SECTOR_BYTES),
    ("read_s", 6, 1e-3),
    ("writes", 7, 1),
    ("write_bytes", 9, SECTOR_BYTES),
    ("write_s", 10, 1e-3),
    ("busy_s", 12, 1e-3),
    ("waited_s", 13, 1e-3),
    ("discards", 14, 1),
    ("discard_s", 17, 1e-3),
    ("flushes", 18, 1),
    ("flush_s", 19, 1e-3),
)
"""Names, positions in a line from 0, units (the kernel's iostats.rst); discards since Linux 4.18, flushes since 5.5."""


def counted(lines: Iterator[str] | list[str]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields the counters of each device in a dump."""
    for line in lines:
        fields = line.split()
        if len(fields) >= 14 and LINE.fullmatch(line):
            yield fields[2], {name: int(fields[at]) * unit for name, at, unit in FIELDS if at < len(fields)}


def rows(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields the activity of disks between dumps."""
    clock, differences = Clock(paths[0], how), Differences(how, wraps=True)
    host = how.host or stem(paths[0] if len(paths) == 1 else paths[0].parent)
    for block in blocks(paths, how):
        time_s = clock.moment(block.time_s)
        dump = dict(counted(block.lines))
        disks = judged(dump, how)
        devices = {
            name: row
            for name in dict.fromkeys((*disks, *stacked(dump)))
            if (row := differences.row(host, name, time_s, dump[name])) is not None
        }
        for row in devices.values():
            how.stack.add({name: of.figures for name, of in devices.items()}, disks, row.length_s)
            break
        yield from (devices[disk] for disk in disks if disk in devices)
