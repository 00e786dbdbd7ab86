"""Readers of the logs that fio writes in addition to its results: latency, bandwidth and IOPS over time, one file per
job.

The format of ``iolog.c``: ``ms, value, direction, size``, then, if requested, offset, priority and, in late versions,
the issue time. Latencies are in nanoseconds from version 3 on, and in microseconds before; the log does not state its
unit.
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
"""The unit of each measure, and the factor from the log's KiB/s or nanoseconds."""
DIRECTIONS = ("read", "write", "trim")
WINDOWS = 300
"""Maximum number of points per line; if there are more entries, the means of windows are drawn."""


@dataclass(frozen=True)
class Log:
    """One measure of one job."""

    name: str
    """Common part of the log file names of a job."""
    measure: str
    job: int
    """Number of the job, from 1; 0 if all jobs share a log."""
    entries: dict[str, list[tuple[float, float]]]
    """Seconds and values in the log's unit, by direction."""

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return MEASURES[self.measure][0]


def is_log(path: str | os.PathLike[str]) -> bool:
    """Whether a file has the name of one of fio's logs."""
    return NAME.match(os.path.basename(path)) is not None


def read(path: str | os.PathLike[str]) -> Log:
    """Reads one log. Raises ``InputError`` if the file is not a log."""
    name = os.fspath(path)
    match = NAME.match(os.path.basename(name))
    if match is None or match["measure"] not in MEASURES:
        raise InputError(f"cannot draw this log of fio; supported: {', '.join(MEASURES)}", file=name)
    share = MEASURES[match["measure"]][1]
    entries: dict[str, list[tuple[float, float]]] = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for direction, at_s, value in _lines(name, file):
            entries.setdefault(direction, []).append((at_s, value * share))
    return Log(match["stem"] or name, match["measure"], int(match["job"] or 0), entries)


def _lines(name: str, lines: Iterator[str]) -> Iterator[tuple[str, float, float]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        cells = line.split(",")
        try:
            yield DIRECTIONS[int(cells[2])], float(cells[0]) / 1e3, float(cells[1])
        except (ValueError, IndexError):
            raise InputError(
                f"line {number}: {line.strip()[:60]!r} is not an entry (ms, value, direction)", key=name
            ) from None


def windowed(entries: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Returns the entries, or the means of ``WINDOWS`` windows of equal length."""
    if len(entries) <= WINDOWS:
        return list(entries)
    end_s = entries[-1][0] or 1.0
    sums: dict[int, list[float]] = {}
    for at_s, value in entries:
        sums.setdefault(min(WINDOWS - 1, int(at_s / end_s * WINDOWS)), []).append(value)
    return [((n + 0.5) / WINDOWS * end_s, sum(values) / len(values)) for n, values in sorted(sums.items())]
