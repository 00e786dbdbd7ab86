"""Readers of sysstat's JSON: ``iostat -o JSON`` and ``sadf -j -- -d``; and the columns that its text shares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from headstack._native import InputError
from headstack.diagnosis.judging.sources.counters import judged, stacked
from headstack.diagnosis.judging.sources.files import How, Row, elements, stem
from headstack.diagnosis.judging.sources.series import Sample, intervals
from headstack.diagnosis.judging.sources.times import Times

LONG = "values are means over {:.0f} s, which hide short slowdowns"
NO_SPLIT = "sadf does not separate reads from writes"
LONG_S = 300.0

KIB, MIB, SECTOR = 1024.0, 1048576.0, 512.0

RATES: tuple[tuple[str, str, float], ...] = (
    ("r/s", "reads", 1),
    ("r", "reads", 1),
    ("w/s", "writes", 1),
    ("w", "writes", 1),
    ("f/s", "flushes", 1),
    ("d/s", "discards", 1),
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
    ("kB_read/s", "read_bytes", KIB),
    ("kB_wrtn/s", "write_bytes", KIB),
    ("MB_read/s", "read_bytes", MIB),
    ("MB_wrtn/s", "write_bytes", MIB),
    ("Blk_read/s", "read_bytes", SECTOR),
    ("Blk_wrtn/s", "write_bytes", SECTOR),
    ("rd_sec/s", "read_bytes", SECTOR),
    ("wr_sec/s", "write_bytes", SECTOR),
    ("kB/s", "bytes", KIB),
    ("MB/s", "bytes", MIB),
    ("sec/s", "bytes", SECTOR),
)
"""Names of rates in three generations of sysstat. Its kB are two sectors, regardless of POSIXLY_CORRECT."""
COUNT_RATES = ("r/s", "w/s", "r", "w", "f/s", "d/s", "tps", "rrqm/s", "wrqm/s", "drqm/s")
"""Rates of whole requests."""

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


class Devices(NamedTuple):
    """The devices printed at one time."""

    host: str
    fields: Mapping[str, Mapping[str, Any]]
    """Values by column for each device."""
    processors: Mapping[str, float]
    """``cpu_idle`` and ``cpu_steal``, as far as they are printed."""


def iostat_json(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields the rows of ``iostat -o JSON``."""
    (path,) = paths
    times = Times(how.zone)
    for start_s, length_s, block in intervals(_samples(path, how, times), how, "iostat"):
        yield from rows_of(block, start_s, length_s, how)
    times.note_zone(how.remarks)


def _samples(path: Path, how: How, times: Times) -> Iterator[Sample[Devices]]:
    header = None
    for before, element in elements(path, how):
        stated = element.get("timestamp")
        time_s = None if stated is None else times.read(stated)
        if stated is not None and time_s is None:
            raise InputError(f"{path}: timestamp: {stated!r} has an unknown format; use S_TIME_FORMAT=ISO iostat -t")
        disks = {disk.get("disk_device", ""): disk for disk in element.get("disk", [])}
        if not disks:
            continue
        host = how.host or _header_value(before, "nodename") or stem(path)
        counts = [f"{disk[key]:.2f}" for disk in disks.values() for key in COUNT_RATES if key in disk]
        is_first = before != header
        header = before
        yield Sample(
            time_s,
            Devices(host, disks, processors_of(element.get("avg-cpu", {}))),
            counts,
            is_first=is_first,
            has_banner=is_first,
            day_s=_date(before) if is_first else None,
        )


def processors_of(percent: Mapping[str, Any]) -> dict[str, float]:
    """Returns the shares of the host's processors. One that waits for I/O is idle too."""
    named = {name.lstrip("%"): value for name, value in percent.items()}
    shares = {}
    if "idle" in named:
        shares["cpu_idle"] = min(1.0, (float(named["idle"]) + float(named.get("iowait", 0.0))) / 100)
    if "steal" in named:
        shares["cpu_steal"] = float(named["steal"]) / 100
    return shares


def rows_of(block: Devices, start_s: float, length_s: float, how: How) -> Iterator[Row]:
    """Yields the rows of the disks of a block; compares the devices built from them."""
    disks = judged(block.fields, how)
    devices = {
        name: figures_of(block.fields[name], length_s) for name in dict.fromkeys((*disks, *stacked(block.fields)))
    }
    how.stack.add(devices, disks, length_s)
    for name in disks:
        yield Row(block.host, name, start_s, length_s, {**devices[name], **block.processors})


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
            yield Row(host, name, end_s - length_s, length_s, figures_of(disks[name], length_s))
    times.note_zone(how.remarks)


def figures_of(fields: Mapping[str, Any], length_s: float) -> dict[str, float]:
    """Returns the columns of observations from the columns of sysstat."""
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
    return figures


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
