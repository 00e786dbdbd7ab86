"""Reader of ``zpool iostat``: ZFS' statistics of each of its disks, as printed for people or with -H."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.sources.files import How, Row, blocks, stem
from headstack.diagnosis.judging.sources.series import Sample, intervals
from headstack.diagnosis.judging.suspects.statements import Statement

HEADER = re.compile(r"^pool\s+alloc\s+free\s+read\s+write\s+read\s+write", re.MULTILINE)
LINE = re.compile(r"^(?!\d{1,12}(?:[num]?s)?\t)[^\t\n]+(\t(\d+|-)){6,}\s*$", re.MULTILINE)
"""A line of -pH; one of -wH begins with a latency instead of a name."""
GROUP = re.compile(r"(mirror|raidz\d?|draid\S*|spare|replacing|indirect|root)(-\d+)?|logs?|cache|special|dedup|spares")
BESIDE = ("logs", "log", "cache", "spares")
"""Groups that are not part of a pool's capacity."""
LEAF = re.compile(
    r"/.*|([shv]|xv)d[a-z]+\d*|nvme\d+n\d+(p\d+)?|(ata|scsi|wwn|nvme|usb|virtio|dm-uuid)-.*|(a?da|nda|nvd|vtbd)\d+.*"
    r"|c\d+t.*|dm-\d+|mpath.*|gpt.*|\d{15,}"
)
"""Names of disks, with -P and -g too."""
OPERATIONS = ("alloc", "free", "reads", "writes", "read_bytes", "write_bytes")
WAITS = ("total_wait", "disk_wait", "syncq_wait", "asyncq_wait")
"""Groups of two columns with -l, for reads and writes; ``scrub``, ``trim`` and ``rebuild`` have one each."""
SINGLE = ("scrub", "trim", "rebuild")
SCALES = {"": 1.0, "B": 1.0} | {unit: 1024.0**power for power, unit in enumerate("KMGTPE", 1)}
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
FIGURE = re.compile(r"(\d+(?:[.,]\d+)?)([BKMGTPE]?|ns|us|ms|s)")
NO_WAITS = "zpool iostat has no latencies: use zpool iostat -vly"
ABOVE = 3.0
"""Ratio of the total wait to that of the disk from which requests wait in ZFS: its scheduler keeps up to ten requests
of a class at a disk (``zfs_vdev_async_write_max_active``), and the others wait above it."""

Values = Mapping[str, float | None]


@dataclass
class _Line:
    name: str
    depth: int
    """Number of spaces before the name."""
    values: Values
    is_leaf: bool = True


def rows(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields rows of the disks of pools, block by block. The latency is that of the disk: ``disk_wait``."""
    host = how.host or stem(paths[0] if len(paths) == 1 else paths[0].parent)
    above = _Above()
    samples = _samples(paths, how)
    for start_s, length_s, lines in intervals(
        samples, how, "zpool iostat", "the import of the pool", drops_unsure=True
    ):
        for line in lines:
            above.add(line)
            yield Row(host, line.name, start_s, length_s, _figures(line.values, length_s))
    if not above.has_waits:
        how.remarks[NO_WAITS] = 1
    how.statements += above.statements()


def _figures(values: Values, length_s: float) -> dict[str, float | None]:
    figures = {name: _times(values.get(name), length_s) for name in OPERATIONS[2:]}
    for kind in ("read", "write"):
        wait_s = values.get(f"disk_wait {kind}s")
        figures[f"{kind}_latency_s"] = wait_s
    return figures


@dataclass
class _Above:
    """Sums of waits at disks and above them, by disk and kind."""

    sums: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    has_waits: bool = False

    def add(self, line: _Line) -> None:
        """Adds an interval of a disk."""
        sums = self.sums[line.name]
        for kind in ("reads", "writes"):
            count = line.values.get(kind) or 0.0
            total_s, disk_s = (line.values.get(f"{wait}_wait {kind}") for wait in ("total", "disk"))
            self.has_waits = self.has_waits or disk_s is not None
            if count and total_s is not None and disk_s is not None:
                sums["count"] += count
                sums["total"] += count * total_s
                sums["disk"] += count * disk_s
        if line.values.get("scrub_wait") is not None:
            sums["scrub"] = max(sums["scrub"], line.values["scrub_wait"] or 0.0)

    def statements(self) -> list[Statement]:
        """Returns where the requests of each disk wait, if not at the disk."""
        stated = []
        for name, sums in self.sums.items():
            if sums["count"] and sums["total"] >= ABOVE * sums["disk"]:
                total_s, disk_s = sums["total"] / sums["count"], sums["disk"] / sums["count"]
                evidence = (
                    f"{time_text(total_s - disk_s)} of {time_text(total_s)} are spent in ZFS' own queue, and "
                    f"{time_text(disk_s)} at the disk"
                )
                # The queue exists because more is asked than the disk takes, or because ZFS' threads are late.
                weights = {"queue": 2.5, "host": 0.5, "device": -1.0, "limit": -1.0}
                stated.append(Statement(name, evidence, weights, source="zpool iostat"))  # type: ignore[arg-type]
        return stated


def _samples(paths: list[Path], how: How) -> Iterator[Sample[list[_Line]]]:
    is_first = True
    for block in blocks(paths, how):
        for lines in _blocks_of(block.lines):
            if leaves := [line for line in lines if line.is_leaf]:
                yield Sample(block.time_s, leaves, is_first=is_first)
                is_first = False


def _blocks_of(lines: list[str]) -> Iterator[list[_Line]]:
    """Yields the lines of each block: a repeated name of the first pool begins the next."""
    columns: list[str] = []
    block: list[_Line] = []
    groups: list[str] = []
    for text in lines:
        words = text.split()
        if words and words[0] == "capacity":
            groups = words
        elif HEADER.match(text):
            columns = _columns(groups)
        elif (line := _line(text, columns)) is not None:
            if block and line.name == block[0].name and line.depth == block[0].depth and not line.depth:
                yield _marked(block)
                block = []
            block.append(line)
    if block:
        yield _marked(block)


def _columns(groups: list[str]) -> list[str]:
    """Returns the names of columns from the names of their groups."""
    columns = [*OPERATIONS]
    for group in groups:
        if group in WAITS:
            columns += [f"{group} reads", f"{group} writes"]
        elif group in SINGLE:
            columns.append(f"{group}_wait")
    return columns


def _line(text: str, columns: list[str]) -> _Line | None:
    """Parses a line of a pool, a group or a disk; ``None`` for others."""
    if LINE.match(text):
        fields = text.rstrip("\r\n").split("\t")
        named = _columns([*WAITS, *SINGLE]) if len(fields) > len(OPERATIONS) + 1 else [*OPERATIONS]
        values = {
            name: _times(_plain(value), 1e-9 if "wait" in name else 1.0)
            for name, value in zip(named, fields[1:], strict=False)
        }
        return _Line(fields[0], 0, values)
    words = text.split()
    if len(words) != len(columns) + 1 or not columns:
        return None
    values = {name: parse_figure(value) for name, value in zip(columns, words[1:], strict=True)}
    if all(value is None for value in values.values()):
        return None
    return _Line(words[0], len(text) - len(text.lstrip()), values)


def _marked(lines: list[_Line]) -> list[_Line]:
    """Marks the lines that are no disks. Lines for people are indented; those of -H are not, so there a line with an
    allocation is a pool once the one before it is complete."""
    if any(line.depth for line in lines):
        for line, following in pairwise(lines):
            line.is_leaf = following.depth <= line.depth and line.depth > 0
        lines[-1].is_leaf = lines[-1].depth > 0
        for line in lines:
            line.is_leaf = line.is_leaf and GROUP.fullmatch(line.name) is None
        return lines
    if (
        len(lines) > 1
        and all(line.values.get("alloc") is not None for line in lines)
        and not any(LEAF.fullmatch(line.name) or GROUP.fullmatch(line.name) for line in lines)
    ):
        # Without -v: pools only, which are judged as a whole.
        return lines
    left, is_beside = 0.0, False
    for line in lines:
        held = (line.values.get("alloc") or 0.0) + (line.values.get("free") or 0.0)
        if GROUP.fullmatch(line.name):
            is_beside = is_beside or line.name in BESIDE
            line.is_leaf = False
        elif line.values.get("alloc") is not None and (
            left <= 0 if not is_beside else LEAF.fullmatch(line.name) is None
        ):
            line.is_leaf = len(lines) == 1
            left, is_beside = held, False
            continue
        left -= 0.0 if is_beside else held
    return lines


def _plain(text: str) -> float | None:
    with suppress(ValueError):
        return float(text)
    return None


def parse_figure(text: str) -> float | None:
    """Parses a figure with a suffix, in bytes, a count or seconds; ``None`` for ``-`` and other text."""
    match = FIGURE.fullmatch(text)
    if match is None:
        return None
    scale = SECONDS.get(match[2]) or SCALES[match[2]]
    return float(match[1].replace(",", ".")) * scale


def _times(value: float | None, by: float) -> float | None:
    return None if value is None else value * by
