"""Reader of collectl's disk data: ``collectl -sD``, as printed or for plotting (``-P``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from headstack._native import InputError
from headstack.diagnosis.judging.sources.counters import judged
from headstack.diagnosis.judging.sources.files import How, Row, opened, stem
from headstack.diagnosis.judging.sources.series import Sample, intervals
from headstack.diagnosis.judging.sources.times import Times

HEADER = re.compile(r"^#.*(\[DSK:[^\]]+\]Reads|\bName\s+KBytes\s+Merged\s+IOs\b)", re.MULTILINE)
NO_DATE = "no dates: times of day count from 1970"
COLUMN = re.compile(r"\[DSK:([^\]]+)\](\w+)")
TIME_OF_DAY = re.compile(r"(\d\d):(\d\d):(\d\d(?:\.\d+)?)")
DATE = re.compile(r"\d{8}")
KIB, MS = 1024.0, 1e-3
DAY_S = 86400.0

RATES: tuple[tuple[str, str, float], ...] = (
    ("Reads", "reads", 1),
    ("Writes", "writes", 1),
    ("RKBytes", "read_bytes", KIB),
    ("WKBytes", "write_bytes", KIB),
)
"""Rate columns, per second."""
MEANS: tuple[tuple[str, str, float], ...] = (
    ("WaitR", "read_latency_s", MS),
    ("WaitW", "write_latency_s", MS),
    ("Wait", "latency_s", MS),
    ("QueLen", "in_flight", 1),
    ("Util", "busy", 1e-2),
)
SHOWN = {
    13: ("RKBytes", "", "Reads", "", "WKBytes", "", "Writes", "", "", "QueLen", "Wait", "", "Util"),
    15: ("RKBytes", "", "Reads", "", "WaitR", "WKBytes", "", "Writes", "", "WaitW", "", "QueLen", "Wait", "", "Util"),
}
"""Columns after a disk's name on a terminal, by their number: before release 4.0.5, and since."""


def rows(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields rows of disks, from one time to the next."""
    (path,) = paths
    host, times = how.host or stem(path), Times(how.zone)
    with opened(path) as stream:
        for line in stream:
            if match := re.match(r"# Host:\s+(\S+)", line):
                host = how.host or match[1]
        stream.seek(0)
        samples = _samples(_lines(stream, path, how, times))
        for start_s, length_s, disks in intervals(samples, how, "collectl", "", drops_unsure=True):
            yield from _block(host, disks, start_s, length_s, how)
    times.note_zone(how.remarks)


Disks = Mapping[str, Mapping[str, float]]


def _samples(lines: Iterable[tuple[float | None, str, dict[str, float]]]) -> Iterator[Sample[Disks]]:
    """Yields the disks of each time: a repeated disk, or another time, begins the next."""
    block: dict[str, Mapping[str, float]] = {}
    block_s: float | None = None
    is_first = True
    for time_s, disk, fields in lines:
        if block and (disk in block or time_s != block_s):
            yield Sample(block_s, block, is_first=is_first)
            block, is_first = {}, False
        block_s = time_s
        block[disk] = fields
    if block:
        yield Sample(block_s, block, is_first=is_first)


def _block(host: str, disks: Disks, start_s: float, length_s: float, how: How) -> Iterator[Row]:
    for disk in judged(disks, how):
        fields = disks[disk]
        figures = {column: fields[key] * unit * length_s for key, column, unit in RATES if key in fields}
        figures |= {column: fields[key] * unit for key, column, unit in MEANS if key in fields}
        if "busy" in figures:
            figures["busy"] = min(1.0, figures["busy"])
        yield Row(host, disk, start_s, length_s, figures)


def _lines(
    stream: Iterator[str], path: Path, how: How, times: Times
) -> Iterator[tuple[float | None, str, dict[str, float]]]:
    """Yields times, disks and their values, in the order of the file."""
    header: list[str] | None = None
    day = Day()
    for line in stream:
        if line.startswith("#"):
            words = line.lstrip("#").replace(",", " ").split()
            if any(map(COLUMN.match, words)):
                header = words
            continue
        words = line.replace(",", " ").split()
        if header is not None and len(words) == len(header):
            yield from _plotted(dict(zip(header, words, strict=True)), path, times)
        elif header is None and words:
            yield from _shown(words, path, how, times, day)


def _plotted(
    fields: Mapping[str, str], path: Path, times: Times
) -> Iterator[tuple[float | None, str, dict[str, float]]]:
    text = fields["UTC"] if "UTC" in fields else _dated(fields.get("Date", ""), fields.get("Time", ""))
    time_s = times.read(text)
    if time_s is None:
        raise InputError(f"{path}: {text!r} is not a time; allowed: Date and Time as collectl -P writes them, or UTC")
    disks: dict[str, dict[str, float]] = {}
    for column, text in fields.items():
        match = COLUMN.fullmatch(column)
        if match and match[2] != "Name":
            disks.setdefault(match[1], {})[match[2]] = _number(text, path)
    for disk, figures in disks.items():
        yield time_s, disk, figures


def _shown(
    words: list[str], path: Path, how: How, times: Times, day: Day
) -> Iterator[tuple[float | None, str, dict[str, float]]]:
    date = words.pop(0) if DATE.fullmatch(words[0]) else None
    clock = TIME_OF_DAY.fullmatch(words[0]) if words else None
    time_s: float | None = None
    if clock is not None:
        time = words.pop(0)
        if date is None:
            how.remarks[NO_DATE] = 1
            time_s = day.of(int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3]))
        else:
            time_s = times.read(_dated(date, time))
    names = SHOWN.get(len(words) - 1)
    if names is None:
        return
    disk, *figures = words
    yield time_s, disk, {name: _number(text, path) for name, text in zip(names, figures, strict=True) if name}


class Day:
    """Converts times of day that are less than a day apart."""

    def __init__(self) -> None:
        self.days, self.last_s = 0, 0.0

    def of(self, time_s: float) -> float:
        """Returns the seconds since the first midnight."""
        self.days += time_s < self.last_s
        self.last_s = time_s
        return self.days * DAY_S + time_s


def _dated(date: str, time: str) -> str:
    return f"{date[:4]}-{date[4:6]}-{date[6:]} {time}"


def _number(text: str, path: Path) -> float:
    """Parses a number; collectl abbreviates large ones."""
    unit = {"K": 1e3, "M": 1e6, "G": 1e9}.get(text[-1:], 1.0)
    try:
        return float(text[:-1] if unit > 1 else text) * unit
    except ValueError:
        raise InputError(f"{path}: {text!r} is not a figure of collectl; allowed: a number") from None
