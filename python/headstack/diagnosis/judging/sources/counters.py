"""``Differences``: converts Linux' monotonic counters of disks to values per interval."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from headstack.diagnosis.judging.sources.files import How, Row

SECTOR_BYTES = 512
"""The unit of the kernel's counters, regardless of the disk's sectors."""

COUNTS = ("reads", "read_bytes", "writes", "write_bytes", "flushes", "discards")
TIMES = ("read_s", "write_s", "busy_s", "waited_s", "discard_s", "flush_s")
"""Sums of time: reading, writing, with requests in flight, that multiplied by the queue depth, discarding, flushing."""
SHARES = (("idle_s", "cpu_idle"), ("steal_s", "cpu_steal"), ("stalled_s", "io_pressure"))
"""Sums of time of the host, a processor's mean, and the columns of their shares."""

WRAP_S = 2**32 / 1000
"""The kernel's sums of milliseconds have 32 bits: they wrap after 49.7 days of summed time."""

LONGEST_S = 3600.0
"""Maximum length of an interval in seconds: means over longer ones are meaningless."""

NO_DISKS = re.compile(
    r"(z?ram|loop|fd|sr|md|dm-|bcache|drbd|zd)\d+.*|(h|s|v|xv)d[a-z]+\d+|(nvme\d+n|mmcblk|nbd|rbd)\d+p\d+|nvme\d+c\d+n\d+"
    r"|mmcblk\d+(boot\d|rpmb)"
)
"""Partitions, memory, and devices built from other disks, which are observed separately."""


def is_disk(name: str) -> bool:
    """Whether a block device is a physical disk, by its name."""
    return NO_DISKS.fullmatch(name) is None


NO_DEVICES = re.compile(r"(z?ram|loop|fd|sr)\d+.*")
"""Memory, files and drives with removable media."""
STACKED = re.compile(r"(md|dm-|bcache|drbd)\d+")
"""Whole devices built from others."""
STACKED_JUDGED = "devices built from others are judged: the data have no physical disks"
LEFT_OUT = "{} not judged, because built from others: the disks are judged instead ({})"
NAMED_MAX = 4
"""Maximum number of devices that a remark lists."""


def judged(names: Iterable[str], how: How) -> list[str]:
    """Returns the devices to judge among those observed together: disks, or devices built from unobserved ones."""
    devices = list(dict.fromkeys(names))
    upper = stacked(devices)
    if disks := [name for name in devices if is_disk(name)]:
        if upper:
            how.remarks[LEFT_OUT.format(_listed(upper), _listed(disks))] = 1
        return disks
    others = [name for name in devices if NO_DEVICES.fullmatch(name) is None]
    if others:
        how.remarks[STACKED_JUDGED] = 1
    return others


def stacked(names: Iterable[str]) -> list[str]:
    """Returns the devices that are built from others, such as arrays of md and logical volumes."""
    return [name for name in names if STACKED.fullmatch(name)]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


class Differences:
    """Differences between consecutive readings of disks' counters."""

    def __init__(self, how: How, wraps: bool) -> None:
        self.how, self.wraps = how, wraps

    def row(self, host: str, disk: str, time_s: float, counts: Mapping[str, float]) -> Row | None:
        """Returns the row of an interval that ends here; ``None`` for the first of a disk, or if counters were
        reset."""
        key = f"{host}\t{disk}"
        before = self.how.readings.get(key)
        if before is not None and time_s < before[0]:
            self.how.remarks["readings skipped: older than earlier readings"] += 1
            return None
        self.how.readings[key] = [time_s, dict(counts)]
        if before is None or time_s - before[0] > LONGEST_S:
            return None
        length_s = time_s - before[0]
        if length_s <= 0:
            self.how.remarks["intervals dropped: time did not advance"] += 1
            return None
        grown = {}
        for name, count in counts.items():
            if name not in before[1]:
                continue
            was = before[1][name]
            # A sum that wrapped was large and is small; otherwise the machine, or the disk, was restarted.
            is_wrapped = self.wraps and name in TIMES and was > WRAP_S / 2 > count
            grown[name] = count - was + (WRAP_S if is_wrapped else 0.0)
        if any(by < 0 for by in grown.values()):
            self.how.remarks["intervals dropped: counters were reset"] += 1
            return None
        return Row(host, disk, before[0], length_s, _figures(grown, length_s))


def _figures(grown: Mapping[str, float], length_s: float) -> dict[str, float]:
    figures = {name: grown[name] for name in COUNTS if name in grown}
    for count, spent, latency in (
        ("reads", "read_s", "read_latency_s"),
        ("writes", "write_s", "write_latency_s"),
        ("flushes", "flush_s", "flush_latency_s"),
    ):
        if grown.get(count) and spent in grown:
            figures[latency] = grown[spent] / grown[count]
    if "waited_s" in grown:
        figures["in_flight"] = grown["waited_s"] / length_s
    for spent, share in SHARES:
        if spent in grown:
            figures[share] = min(1.0, grown[spent] / length_s)
    if "busy_s" in grown:
        figures["busy"] = min(1.0, grown["busy_s"] / length_s)
    return figures
