"""``Shape``: a load in numbers, for matching fio's results with headstack's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from headstack._native import InputError, format_bytes, parse_bytes

PATTERNS = {
    "read": (100, 0),
    "write": (0, 0),
    "randread": (100, 100),
    "randwrite": (0, 100),
    "rw": (None, 0),
    "readwrite": (None, 0),
    "randrw": (None, 100),
}
"""Percentages of reads and of random requests, by fio's patterns; ``None`` depends on ``rwmixread``."""


class Shape(NamedTuple):
    """A closed loop of requests of one size."""

    read_percent: int
    random_percent: int
    size_bytes: int
    depth: int

    @property
    def name(self) -> str:
        """Display name.

        >>> Shape(100, 100, 4096, 32).name
        'random reads of 4KiB, depth 32'
        """
        random = {0: "sequential", 100: "random"}.get(self.random_percent, f"{self.random_percent} % random")
        kind = {0: "writes", 100: "reads"}.get(self.read_percent, f"requests, {self.read_percent} % reads,")
        return f"{random} {kind} of {format_bytes(self.size_bytes)}, depth {self.depth}"


def shape_of_fio(row: Mapping[str, Any]) -> Shape | None:
    """Returns the shape of a fio load from its row; ``None`` if pattern, size or depth varies."""
    percents = PATTERNS.get(str(row["rw"]))
    size_bytes = fio_bytes(str(row["bs"]))
    if percents is None or size_bytes is None or row["kind"] == "trim":
        return None
    read = percents[0]
    if read is None:
        if row["kind"] != "mixed":
            # fio reports reads and writes of a mix separately.
            return None
        read = int(row["rwmixread"])
    return Shape(read, percents[1], size_bytes, int(row["iodepth"]) * int(row["numjobs"]))


def fio_bytes(text: str) -> int | None:
    """Parses a block size of fio; ``None`` for a range.

    >>> fio_bytes("4k"), fio_bytes("4096"), fio_bytes("1M"), fio_bytes("4k-8k")
    (4096, 4096, 1048576, None)
    """
    match = re.fullmatch(r"(\d+)([kmg]?)(?:i?b)?", text.strip().lower())
    if match is None:
        return None
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2]]


def shape_of(workload: Mapping[str, Any], load: str) -> Shape | None:
    """Returns the shape of a headstack workload under a load in words; ``None`` for scenarios, replays, open loops, and
    several kinds of requests."""
    try:
        lines, depth = workload["lines"], load.removeprefix("depth ")
        if len(lines) != 1 or not depth.isdigit():
            return None
        (line,) = lines
        size = line["size"]
        size_bytes = size if isinstance(size, int) else parse_bytes(str(size))
        return Shape(round(float(line["read_percent"])), round(float(line["random_percent"])), size_bytes, int(depth))
    except (InputError, KeyError, TypeError, ValueError):
        return None
