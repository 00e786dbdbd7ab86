"""Reader of ``zpool iostat -w`` and ``-r``: ZFS' histograms of latencies and of request sizes.

A line of ``-w`` is named by the upper end of its bucket, which is twice the lower one (zpool-iostat(8)). OpenZFS before
0.8 calls the columns of its queues ``sync_queue`` and ``async_queue``, and has no ``trim`` and ``rebuild``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from headstack import _native
from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.sources.histogram import FAST_S, quantile
from headstack.diagnosis.judging.sources.zpool import GROUP, LEAF, SECONDS, parse_figure
from headstack.diagnosis.judging.suspects.level import OUTLIER
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.verdict import Suspect

LATENCY = re.compile(
    r"^[ \t]*(?P<name>\S+)[ \t]+total_wait[ \t]+disk_wait[ \t]+sync(?:q_wait|_queue)[ \t]+async(?:q_wait|_queue)",
    re.MULTILINE,
)
SIZES = re.compile(
    r"^[ \t]*(?P<name>\S+)[ \t]+sync_read[ \t]+sync_write[ \t]+async_read[ \t]+async_write", re.MULTILINE
)
SCRIPTED = re.compile(r"\A(?:(?:1ns|1)\t(?:\d[\d.]*[KMGT]?\t){8,10}\d[\d.]*[KMGT]?\s*$)", re.MULTILINE)
"""The first line of ``-wH``, which has no header."""
ROW = re.compile(r"^[ \t]*(\d+)(ns|us|ms|s|[KM])?(?:[ \t]+|$)(.*)")
WAITS = ("total_wait", "disk_wait", "syncq_wait", "asyncq_wait")
SINGLE = ("scrub", "trim", "rebuild")
COLUMNS = (*(f"{wait} {kind}" for wait in WAITS for kind in ("reads", "writes")), *SINGLE)
SIZE_COLUMNS = ("sync_read", "sync_write", "async_read", "async_write", *SINGLE)
COUNT_MIN = 100.0
"""Requests from which a 99th percentile is one."""
ABOVE = 4.0
"""Ratio of the median of the total wait to that of the disk from which requests wait in ZFS: two buckets, since the
bounds of each are uncertain by a factor of two."""
RETRIES_S = 1.0
"""Latency at a disk from which it may be retrying reads: ZFS keeps some tens of requests at a disk, each of which takes
up to 15 ms in order (``zfs_vdev_sync_read_max_active`` and others), so half a second."""
SINCE_IMPORT, OF_INTERVAL = 0.5, 1.0
"""Factor of the weights: the only block of a histogram is a sum since the import of the pool."""
SOURCE, NEEDED = "zpool iostat", "zpool iostat -vly 5"
SIZE_NEEDED = f"{NEEDED}, which has latencies and rates"


@dataclass
class Block:
    """A histogram of a pool, a group or a disk."""

    name: str
    is_sizes: bool
    rows: list[tuple[float, list[float]]] = field(default_factory=list)
    """Upper bound in seconds or bytes, and counts by column."""

    def bounds(self, column: int) -> list[tuple[float, float]]:
        """Returns the upper bounds and the counts up to each."""
        total, bounds = 0.0, []
        for bound, counts in sorted(self.rows):
            total += counts[column] if column < len(counts) else 0.0
            bounds.append((bound, total))
        return bounds

    def count(self, column: int) -> float:
        """Returns the number of requests of a column."""
        bounds = self.bounds(column)
        return bounds[-1][1] if bounds else 0.0


def is_histogram(begin: str) -> bool:
    """Whether a text is such a histogram."""
    return any(pattern.search(begin) for pattern in (LATENCY, SIZES, SCRIPTED))


def histograms(text: str, name: str) -> list[Statement]:
    """Reads percentiles of waits and of sizes; those of disks, if a text has any."""
    latest: dict[tuple[str, bool], Block] = {}
    blocks_of: dict[tuple[str, bool], int] = {}
    for block in _blocks(text, name):
        latest[block.name, block.is_sizes] = block
        blocks_of[block.name, block.is_sizes] = blocks_of.get((block.name, block.is_sizes), 0) + 1
    leaves = [block for block in latest.values() if LEAF.fullmatch(block.name)]
    blocks = leaves or [block for block in latest.values() if not GROUP.fullmatch(block.name)]
    stated = []
    for block in blocks:
        is_interval = blocks_of[block.name, block.is_sizes] > 1
        others = [other for other in leaves if other is not block and other.is_sizes == block.is_sizes]
        stated += [_of_sizes(block)] if block.is_sizes else _of_latency(block, others, is_interval=is_interval)
    return stated or [Statement(name, "histograms of zpool iostat without counts", source=SOURCE, needed=NEEDED)]


def _blocks(text: str, name: str) -> Iterator[Block]:
    """Yields the histograms of a text; one without a header has the name of its file."""
    block: Block | None = Block(name, is_sizes=False) if SCRIPTED.search(text) else None
    for line in text.splitlines():
        header = LATENCY.match(line) or SIZES.match(line)
        row = ROW.match(line)
        if header is not None:
            if block is not None and block.rows:
                yield block
            block = Block(header["name"], is_sizes=SIZES.match(line) is not None)
        elif row is not None and block is not None:
            bound = _bound(row[1], row[2] or "", is_sizes=block.is_sizes)
            if block.rows and bound <= block.rows[-1][0]:
                # Without headers the next histogram begins again with the shortest latency.
                yield block
                block = Block(block.name, block.is_sizes)
            block.rows.append((bound, [parse_figure(word) or 0.0 for word in row[3].split()]))
    if block is not None and block.rows:
        yield block


def _bound(number: str, unit: str, *, is_sizes: bool) -> float:
    """Returns a bound in bytes, or in seconds. Figures of ``-p`` are nanoseconds."""
    if is_sizes:
        return parse_figure(number + unit) or 0.0
    # 1us stands for 1,023 ns, and so on.
    return float(number) * SECONDS.get(unit, 1e-9)


def _of_latency(block: Block, others: Sequence[Block], *, is_interval: bool) -> list[Statement]:
    """Returns the percentiles of a disk or pool for reads and writes."""
    stated = []
    for at, kind in enumerate(("reads", "writes")):
        total, disk = block.bounds(at), block.bounds(2 + at)
        count = block.count(2 + at)
        if count <= 0:
            continue
        weights: dict[Suspect, float] = {}
        middle, tail = quantile(disk, 0.5), quantile(disk, 0.99)
        evidence = (
            f"half of {count:,.0f} {kind} take {_range(middle)} at the disk"
            f"{f', 99 % less than {time_text(tail[1])}' if count >= COUNT_MIN else ''}"
        )
        whole = quantile(total, 0.5)
        if block.count(at) > 0 and whole[1] >= ABOVE * middle[1]:
            evidence += f"; with the time in ZFS' queues {_range(whole)}"
            weights = {"queue": 2.5, "host": 0.5, "device": -1.0, "limit": -1.0}
        elif count >= COUNT_MIN and tail[1] <= FAST_S:
            weights = {"device": -3.0, "none": 1.5}
        elif count >= COUNT_MIN and tail[0] >= RETRIES_S / 2:
            evidence += ": longer than a full queue of a disk in order"
            weights = {"device": 1.5, "none": -1.0}
        medians = [quantile(other.bounds(2 + at), 0.5)[1] for other in others if other.count(2 + at) >= COUNT_MIN]
        if len(medians) >= 2 and count >= COUNT_MIN and middle[0] >= OUTLIER / 2 * median(medians):
            evidence += f"; half of those of the other disks take less than {time_text(median(medians))}"
            weights["device"] = weights.get("device", 0.0) + 1.5
        share = SINCE_IMPORT
        if is_interval:
            share = OF_INTERVAL
        else:
            evidence += ", since the import of the pool or in one interval"
        weighed: Mapping[Suspect, float] = {suspect: share * weight for suspect, weight in weights.items()}
        stated.append(Statement(block.name, evidence, weighed, source=SOURCE, needed=NEEDED))
    scrub = block.count(COLUMNS.index("scrub"))
    if is_interval and scrub > 0:
        waited = quantile(block.bounds(COLUMNS.index("scrub")), 0.5)
        evidence = f"{scrub:,.0f} requests of a scrub or resilver, half of which take {_range(waited)}"
        stated.append(Statement(block.name, evidence, {"neighbour": 2.0}, source=SOURCE, needed=NEEDED))
    return stated


def _of_sizes(block: Block) -> Statement:
    """Returns the median sizes of requests by class, and the share of aggregated ones."""
    parts = []
    for at, name in enumerate(SIZE_COLUMNS):
        counts = block.bounds(2 * at), block.bounds(2 * at + 1)
        both = [(bound, alone + joined) for (bound, alone), (_, joined) in zip(*counts, strict=True)]
        if both and both[-1][1] > 0:
            size = _native.format_bytes(round(quantile(both, 0.5)[1]))
            aggregated = counts[1][-1][1] / both[-1][1]
            parts.append(f"{name} {size} ({both[-1][1]:,.0f} requests, {aggregated:.0%} aggregated)")
    evidence = f"median request sizes: {', '.join(parts)}" if parts else "no requests"
    return Statement(block.name, evidence, source=SOURCE, needed=SIZE_NEEDED)


def _range(ends: tuple[float, float]) -> str:
    low, high = ends
    if not math.isfinite(high):
        return f"more than {time_text(low)}"
    return f"{time_text(low)} to {time_text(high)}" if low > 0 else f"up to {time_text(high)}"
