"""Levels: how many drives each may have, and what that exports."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from headstack import _native
from headstack._native import InputError

WIDTH = 16
"""Drives of a span of RAID 5 and 6, and of RAIDZ, at most: a choice of ours, since nobody builds much wider ones."""


def usable_bytes(level: str, drives: int, spans: int, drive_bytes: int) -> int:
    """What an array exports, but for roundings to stripes: RAIDZ by records of 128 KiB in sectors of 4 KiB (OpenZFS,
    vdev_raidz.c).

    >>> from headstack.choosing.layouts import usable_bytes
    >>> usable_bytes("raid6", 12, 1, 10**12) // 10**12
    10
    """
    coded = re.fullmatch(r"(\d+)\+(\d+)", level)
    if coded:
        data, parity = int(coded[1]), int(coded[2])
        return drives * drive_bytes * data // (data + parity)
    if level.startswith("raidz"):
        parity = int(level[5:])
        data = 32
        allocated = data + parity * math.ceil(data / (drives - parity))
        allocated = math.ceil(allocated / (parity + 1)) * (parity + 1)
        return drives * drive_bytes * data // allocated
    declustered = re.fullmatch(r"draid([123]):([1-9]\d*)d:(\d+)s", level)
    if declustered:
        parity, data, spare = map(int, declustered.groups())
        return (drives - spare) * drive_bytes * data // (data + parity)
    match level:
        case "jbod" | "concat" | "raid0":
            return drives * drive_bytes
        case "raid1":
            return drive_bytes
        case "raid10":
            return drives // 2 * drive_bytes
        case "raid5" | "raid50":
            return (drives - spans) * drive_bytes
        case "raid6" | "raid60":
            return (drives - 2 * spans) * drive_bytes
    raise InputError(f"level: {level!r} has no capacity that is known; allowed: {', '.join(_native.LEVELS)}")


def layouts(level: str, most: int) -> Iterator[tuple[int, str, int]]:
    """Numbers of drives that a level may have, each with the level and the spans it has then."""
    coded = re.fullmatch(r"(\d+)\+(\d+)", level)
    if coded:
        each = int(coded[1]) + int(coded[2])
        yield from ((count, level, 1) for count in range(each, most + 1, each))
    elif level.startswith("draid"):
        declustered = re.fullmatch(r"draid([123]):([1-9]\d*)d:(\d+)s", level)
        if declustered is None:
            raise InputError(f"levels: {level!r} says too little or what there is not; draid2:8d:1s is such")
        least = sum(map(int, declustered.groups()))
        yield from ((count, level, 1) for count in range(least, most + 1))
    elif level in ("raidz1", "raidz2", "raidz3"):
        yield from ((count, level, 1) for count in range(int(level[5:]) + 1, min(most, WIDTH) + 1))
    elif level in ("raid5", "raid6"):
        least = 3 if level == "raid5" else 4
        for count in range(least, most + 1):
            spans = math.ceil(count / WIDTH)
            if count % spans == 0:
                yield count, level if spans == 1 else level + "0", spans
    elif level == "raid10":
        yield from ((count, level, 1) for count in range(2, most + 1, 2))
    elif level == "raid1":
        yield from ((count, level, 1) for count in range(2, min(most, 4) + 1))
    elif level in ("raid0", "concat"):
        yield from ((count, level, 1) for count in range(1, most + 1))
    else:
        raise InputError(
            f"levels: {level!r} cannot be chosen; allowed: raid0, raid1, raid10, raid5, raid6, K+M, "
            "raidz1 to raidz3, draidP:Dd:Ss"
        )
