"""The logs that fio writes beside its results: latency, bandwidth and IOPS over time, a file for each job.

As ``iolog.c`` writes them: ``ms, value, direction, size``, then, where they were asked for, offset, priority and, in
late versions, the time of issue. Latencies are in nanoseconds from version 3 on, in microseconds before: the log does
not say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headstack._native import InputError

NAME = re.compile(r"^(?P<stem>.*?)_?(?P<measure>clat_hist|iops|bw|lat|slat|clat)(\.(?P<job>\d+))?\.log$")
MEASURES = {
    "iops": ("IOPS", 1.0),
    "bw": ("MB/s", 1024 / 1e6),
    "lat": ("ms", 1e-6),
    "clat": ("ms", 1e-6),
    "slat": ("ms", 1e-6),
}
"""What each is told in, and its share of what stands in the log: KiB/s and nanoseconds."""
DIRECTIONS = ("read", "write", "trim")
WINDOWS = 300
"""So many points a line: of more entries, the means of windows are drawn."""


@dataclass(frozen=True)
class Log:
    """One measure of one job."""

    name: str
    """What the files of a job have in common."""
    measure: str
    job: int
    """From 1; 0 where all jobs share a log."""
    entries: dict[str, list[tuple[float, float]]]
    """By direction: seconds, and the value in its unit."""

    @property
    def unit(self) -> str:
        """Of the values."""
        return MEASURES[self.measure][0]


def is_log(path: str | os.PathLike[str]) -> bool:
    """Whether a file is called as fio calls its logs."""
    return NAME.match(os.path.basename(path)) is not None


def read(path: str | os.PathLike[str]) -> Log:
    """One log. Raises ``InputError`` where it is none."""
    name = os.fspath(path)
    found = NAME.match(os.path.basename(name))
    if found is None or found["measure"] not in MEASURES:
        raise InputError(f"is no log of fio that is drawn; {', '.join(MEASURES)} are", file=name)
    share = MEASURES[found["measure"]][1]
    entries: dict[str, list[tuple[float, float]]] = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for direction, at_s, value in _lines(name, file):
            entries.setdefault(direction, []).append((at_s, value * share))
    return Log(found["stem"] or name, found["measure"], int(found["job"] or 0), entries)


def _lines(name: str, lines: Iterator[str]) -> Iterator[tuple[str, float, float]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        cells = line.split(",")
        try:
            yield DIRECTIONS[int(cells[2])], float(cells[0]) / 1e3, float(cells[1])
        except (ValueError, IndexError):
            raise InputError(
                f"line {number}: {line.strip()[:60]!r} is no entry: ms, value, direction", key=name
            ) from None


def windowed(entries: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The entries, or means of so many windows of equal length."""
    if len(entries) <= WINDOWS:
        return list(entries)
    end_s = entries[-1][0] or 1.0
    sums: dict[int, list[float]] = {}
    for at_s, value in entries:
        sums.setdefault(min(WINDOWS - 1, int(at_s / end_s * WINDOWS)), []).append(value)
    return [((n + 0.5) / WINDOWS * end_s, sum(values) / len(values)) for n, values in sorted(sums.items())]
