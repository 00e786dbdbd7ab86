"""Readers of sysstat: ``iostat -x`` as JSON and as text, and ``sadf -j -- -d``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headstack._native import InputError
from headstack.diagnosis.judging.sources.counters import judged
from headstack.diagnosis.judging.sources.files import Clock, How, Row, elements, opened, stem
from headstack.diagnosis.judging.sources.times import Times

DROPPED = "the first block of iostat is dropped: without -y, it contains means since boot"
LONG = "values are means over {:.0f} s, which hide short slowdowns"
NO_SPLIT = "sadf does not separate reads from writes"
LONG_S = 300.0
TEXT = re.compile(r"^Device:?\s.*(await|tps)", re.MULTILINE)

KIB, MIB, SECTOR = 1024.0, 1048576.0, 512.0

RATES: tuple[tuple[str, str, float], ...] = (
    ("r/s", "reads", 1),
    ("r", "reads", 1),
    ("w/s", "writes", 1),
    ("w", "writes", 1),
    ("f/s", "flushes", 1),
    ("tps", "requests", 1),
    ("rkB/s", "read_bytes", KIB),
    ("rkB", "read_bytes", KIB),
    ("rMB/s", "read_bytes", MIB),
    ("rMB", "read_bytes", MIB),
    ("rsec/s", "read_bytes", SECTOR),
    ("rsec", "read_bytes", SECTOR),
    ("rd_sec", "read_bytes", SECTOR),
    ("wkB/s", "write_bytes", KIB),
    ("wkB", "write_bytes", KIB),
    ("wMB/s", "write_bytes", MIB),
    ("wMB", "write_bytes", MIB),
    ("wsec/s", "write_bytes", SECTOR),
    ("wsec", "write_bytes", SECTOR),
    ("wr_sec", "write_bytes", SECTOR),
    ("kB/s", "bytes", KIB),
    ("MB/s", "bytes", MIB),
    ("sec/s", "bytes", SECTOR),
)
"""Names of rates in three generations of sysstat. Its kB are two sectors, regardless of POSIXLY_CORRECT."""

MEANS: tuple[tuple[str, str, float], ...] = (
    ("r_await", "read_latency_s", 1e-3),
    ("w_await", "write_latency_s", 1e-3),
    ("f_await", "flush_latency_s", 1e-3),
    ("await", "latency_s", 1e-3),
    ("aqu-sz", "in_flight", 1),
    ("avgqu-sz", "in_flight", 1),
    ("%util", "busy", 1e-2),
    ("util", "busy", 1e-2),
    ("util-percent", "busy", 1e-2),
)


def iostat_json(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields the rows of ``iostat -x -o JSON``."""
    (path,) = paths
    times, clock, header = Times(how.zone), Clock(path, how), ""
    for before, element in elements(path, how):
        if before != header:
            header = before
            clock = Clock(path, how, _date(header))
        stated = element.get("timestamp")
        time_s = None if stated is None else times.read(stated)
        if stated is not None and time_s is None:
            raise InputError(f"{path}: timestamp: {stated!r} has an unknown format; use S_TIME_FORMAT=ISO iostat -t")
        host = how.host or _header_value(header, "nodename") or stem(path)
        yield from _block(
            host, ((disk.get("disk_device", ""), disk) for disk in element.get("disk", [])), time_s, clock, how
        )
    times.note_zone(how.remarks)


def iostat_text(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields the rows of ``iostat -x`` as text."""
    (path,) = paths
    times, host, header = Times(how.zone), how.host or stem(path), None
    clock, time_s = Clock(path, how), None
    disks: list[tuple[str, dict[str, str]]] = []
    with opened(path) as stream:
        for line in stream:
            words = line.split()
            if words and words[0] == "Linux" and (match := re.search(r"\(([^)]+)\)", line)):
                host = how.host or match[1]
            elif words and words[0].rstrip(":") == "Device":
                header = words[1:]
            elif header is not None and len(words) == len(header) + 1:
                # Many locales use a decimal comma.
                disks.append((words[0], dict(zip(header, (word.replace(",", ".") for word in words[1:]), strict=True))))
            elif header is not None and not words:
                yield from _block(host, iter(disks), time_s, clock, how)
                header, disks, time_s = None, [], None
            elif (found_s := times.of_line(line)) is not None:
                time_s = found_s
    yield from _block(host, iter(disks), time_s, clock, how)
    times.note_zone(how.remarks)


def sadf(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields the rows of ``sadf -j -- -d``."""
    (path,) = paths
    times = Times(how.zone)
    how.remarks[NO_SPLIT] = 1
    for header, element in elements(path, how):
        stamp = element.get("timestamp")
        if not isinstance(stamp, dict) or not element.get("disk"):
            continue
        length_s = float(stamp.get("interval") or 0)
        if length_s <= 0:
            how.remarks["intervals dropped: zero length"] += 1
            continue
        text = f"{stamp['date']} {stamp['time']}"
        end_s = times.read(f"{text}Z" if stamp.get("utc") in (1, True) else text)
        if end_s is None:
            raise InputError(
                f"{path}: timestamp: {text!r} is not a known format; allowed: date and time, such as sadf -jU"
            )
        if length_s >= LONG_S:
            how.remarks[LONG.format(length_s)] = 1
        host = how.host or _header_value(header, "nodename") or stem(path)
        disks = {disk["disk-device"]: disk for disk in element["disk"]}
        for name in judged(disks, how):
            yield _row(host, name, end_s - length_s, length_s, disks[name])
    times.note_zone(how.remarks)


def _block(
    host: str, disks: Iterator[tuple[str, Mapping[str, Any]]], time_s: float | None, clock: Clock, how: How
) -> Iterator[Row]:
    """Yields the rows of a block of iostat, whose rates are over the time since the previous one."""
    fields_of_disks = dict(disks)
    if not fields_of_disks:
        return
    interval = clock.interval(time_s)
    how.remarks[DROPPED] = 1
    if interval is not None:
        yield from (_row(host, disk, *interval, fields_of_disks[disk]) for disk in judged(fields_of_disks, how))


def _row(host: str, disk: str, start_s: float, length_s: float, fields: Mapping[str, Any]) -> Row:
    figures: dict[str, float] = {}
    for key, column, unit in RATES:
        if key in fields:
            figures[column] = float(fields[key]) * unit * length_s
    for key, column, unit in MEANS:
        if key in fields:
            figures[column] = float(fields[key]) * unit
    if "busy" in figures:
        figures["busy"] = min(1.0, figures["busy"])
    if "tps" in fields and "reads" not in figures and "read_bytes" in figures:
        # sadf separates bytes, and so do the short forms of -d.
        figures["bytes"] = figures["read_bytes"] + figures.get("write_bytes", 0.0)
    return Row(host, disk, start_s, length_s, figures)


def _header_value(header: str, key: str) -> str | None:
    values = re.findall(rf'"{key}"\s*:\s*"([^"]*)"', header)
    return values[-1] if values else None


def _date(header: str) -> float | None:
    """Returns the day on which iostat was started, for blocks without times."""
    text = _header_value(header, "date")
    for form in ("%Y-%m-%d", "%m/%d/%Y", "%m/%d/%y", "%d.%m.%Y"):
        try:
            return datetime.strptime(text or "", form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None
