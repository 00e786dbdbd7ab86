"""Reader of ``zpool iostat -lpH -v``: ZFS' statistics of each of its disks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headstack._native import InputError
from headstack.diagnosis.judging.sources.files import Clock, How, Row, blocks, stem

LINE = re.compile(r"^[^\t\n]+(\t(\d+|-)){6,}\s*$", re.MULTILINE)
DROPPED = "the first block of zpool iostat is dropped: without -y, it contains means since the import of the pool"
GROUP = re.compile(r"(mirror|raidz\d?|draid\S*|spare|replacing|indirect|root)(-\d+)?|logs?|cache|special|dedup|spares")
LEAF = re.compile(
    r"/.*|([shv]|xv)d[a-z]+\d*|nvme\d+n\d+(p\d+)?|(ata|scsi|wwn|nvme|usb|virtio|dm-uuid)-.*|(a?da|nda|nvd|vtbd)\d+.*"
    r"|c\d+t.*|dm-\d+|mpath.*|gpt.*|\d{15,}"
)
"""Names of disks, with -P and -g too."""
WITH_LATENCIES = 11
NS = 1e-9


def rows(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields rows of the disks of pools, block by block. The latency is that of the disk: ``disk_wait``."""
    clock = Clock(paths[0], how)
    host = how.host or stem(paths[0] if len(paths) == 1 else paths[0].parent)
    how.remarks[DROPPED] = 1
    for block in blocks(paths, how):
        for lines in _repeated(block.lines) if block.time_s is None else [block.lines]:
            interval = clock.interval(block.time_s)
            if interval is not None:
                yield from _block(host, *interval, lines, paths[0])


def _repeated(lines: list[str]) -> Iterator[list[str]]:
    """Yields blocks without times in between: the first pool begins each."""
    first = lines[0].split("\t")[0]
    block: list[str] = []
    for line in lines:
        if block and line.split("\t")[0] == first:
            yield block
            block = []
        block.append(line)
    yield block


def _block(host: str, start_s: float, length_s: float, lines: list[str], path: Path) -> Iterator[Row]:
    left_bytes, is_beside = 0, False
    for line in lines:
        if not LINE.match(line):
            continue
        fields = line.rstrip("\n").split("\t")
        name, (alloc, free) = fields[0], fields[1:3]
        if len(fields) < WITH_LATENCIES:
            raise InputError(f"{path}: {name}: no latencies; use zpool iostat -l")
        if GROUP.fullmatch(name):
            # Logs and caches are not part of a pool's capacity.
            is_beside = is_beside or name in ("logs", "log", "cache", "spares")
            left_bytes -= 0 if is_beside else _bytes(alloc, free)
            continue
        # Without a header pools are not marked: a line with an allocation is a pool once the previous one is complete.
        if alloc != "-" and (left_bytes <= 0 if not is_beside else LEAF.fullmatch(name) is None):
            left_bytes, is_beside = _bytes(alloc, free), False
            continue
        left_bytes -= 0 if is_beside else _bytes(alloc, free)
        reads, writes, read_bytes, write_bytes = (_figure(field) for field in fields[3:7])
        read_ns, write_ns = (_figure(field) for field in fields[9:11])
        figures = {
            "reads": _times(reads, length_s),
            "writes": _times(writes, length_s),
            "read_bytes": _times(read_bytes, length_s),
            "write_bytes": _times(write_bytes, length_s),
            "read_latency_s": _times(read_ns, NS),
            "write_latency_s": _times(write_ns, NS),
        }
        yield Row(host, name, start_s, length_s, figures)


def _bytes(alloc: str, free: str) -> int:
    return sum(int(text) for text in (alloc, free) if text != "-")


def _figure(text: str) -> float | None:
    return None if text == "-" else float(text)


def _times(value: float | None, by: float) -> float | None:
    return None if value is None else value * by
