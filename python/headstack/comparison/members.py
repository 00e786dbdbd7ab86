"""Finds members of an array that take longer per request than the others, from fio's results."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from statistics import median

from headstack._native import InputError
from headstack.io.encodings import decoded

EXCESS_MAX = 0.25
"""Maximum excess of a member over the others. Four equal drives of a measured array are within 4 % of each other at
every depth below saturation; slower drives in the same array exceed them by about 33 %."""
REQUESTS_LEAST = 100
"""Minimum number of requests for a mean: 100 requests give a 10 % error if the standard deviation equals the mean."""
STACKED = ("md", "dm-", "loop", "drbd")
"""Name prefixes of devices that are built from other devices."""


@dataclass(frozen=True)
class Member:
    """A device below an array during a run of fio."""

    name: str
    """Name of the device, such as ``sda``."""
    requests: int
    """Number of reads and writes."""
    busy: float
    """Busy time divided by the number of requests."""
    waited_ms: float | None
    """Mean time of a request in the device, including waiting; ``None`` if fio does not report it."""


@dataclass(frozen=True)
class Outlier:
    """A member that takes more time per request than the others."""

    name: str
    """Name of the device."""
    measure: str
    """Compared time per request: ``busy`` or ``response``."""
    excess: float
    """Ratio to the median of the others, minus 1."""
    others: int
    """Number of other members."""

    @property
    def in_words(self) -> str:
        """Description in one line.

        >>> from headstack.comparison import members
        >>> members.Outlier("sdh", "busy", 0.34, 7).in_words
        'sdh stands out: 34 % more busy time per request than the median of the 7 others'
        """
        percent = f"{100 * self.excess:,.0f} %"
        others = f"the median of the {self.others} others"
        return f"{self.name} stands out: {percent} more {self.measure} time per request than {others}"


def read(path: str | os.PathLike[str]) -> list[Member]:
    """Returns the devices of ``disk_util`` in a file of fio's JSON, except devices that are built from other devices.

    Raises ``InputError`` if the file cannot be read, or if ``disk_util`` has fewer than two devices.

    >>> from headstack.comparison import members
    >>> members.read("missing.json")
    Traceback (most recent call last):
    headstack.InputError: missing.json: cannot be read: No such file or directory
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            text = decoded(file.read())
        # fio may write notes before the JSON object.
        document = json.loads(text[text.index("{") :])
        disks = document["disk_util"]
        members = [_member(disk) for disk in disks if not disk["name"].startswith(STACKED)]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=name) from None
    except (ValueError, KeyError, TypeError) as error:
        reason = f"disk_util: {error} is missing" if isinstance(error, KeyError) else "not fio's JSON"
        raise InputError(f"{reason}; write it with fio --output-format=json", file=name) from None
    if len(members) < 2:
        raise InputError(
            f"disk_util has {len(members)} devices not built from other devices; 2 or more are needed",
            key=name,
        )
    return members


def _member(disk: dict[str, float]) -> Member:
    requests = int(disk["read_ios"] + disk["write_ios"])
    ticks = disk.get("read_ticks"), disk.get("write_ticks")
    waited_ms = None if ticks[0] is None or ticks[1] is None else (ticks[0] + ticks[1]) / max(requests, 1)
    return Member(str(disk["name"]), requests, disk["util"] / 100 / max(requests, 1), waited_ms)


def find_outliers(members: list[Member], threshold: float = EXCESS_MAX) -> list[Outlier]:
    """Returns members whose time per request exceeds the median of the others by more than ``threshold``, the worst
    first.

    The function uses the busy time per request. If members are always busy, this time is meaningless, and the function
    uses the time of a request in the device.

    >>> from headstack.comparison.members import Member, find_outliers
    >>> disks = [Member(f"sd{letter}", 1000, busy, None) for letter, busy in zip("abc", (1, 1, 2))]
    >>> [(outlier.name, outlier.excess) for outlier in find_outliers(disks)]
    [('sdc', 1.0)]
    """
    counted = [member for member in members if member.requests >= REQUESTS_LEAST]
    outliers = []
    for member in counted if len(counted) > 1 else ():
        others = [other for other in counted if other is not member]
        excess = {"busy": member.busy / (median(other.busy for other in others) or float("inf")) - 1}
        waits = [other.waited_ms for other in others if other.waited_ms is not None]
        if member.waited_ms is not None and len(waits) == len(others) and median(waits) > 0:
            excess["response"] = member.waited_ms / median(waits) - 1
        measure = max(excess, key=excess.__getitem__)
        if excess["busy"] > threshold:
            measure = "busy"
        if excess[measure] > threshold:
            outliers.append(Outlier(member.name, measure, excess[measure], len(others)))
    return sorted(outliers, key=lambda outlier: -outlier.excess)
