"""Readers of tables as text, one line per device under a line of column names: iostat of Linux, illumos and FreeBSD,
gstat, ``sar -d`` and ``mc support top disk``."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from headstack.diagnosis.judging.sources.collectl import Day
from headstack.diagnosis.judging.sources.files import How, Row, opened, stem
from headstack.diagnosis.judging.sources.series import Sample, intervals
from headstack.diagnosis.judging.sources.sysstat import (
    COUNT_RATES,
    KIB,
    LONG,
    LONG_S,
    MIB,
    Devices,
    processors_of,
    rows_of,
)
from headstack.diagnosis.judging.sources.times import ASSUMED, Times
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.verdict import Suspect

DEVICE_NAMES = ("device", "device:", "dev", "disk", "name")
"""Headings of the column of names."""
FIGURES = re.compile(
    r"r/s|w/s|tps|ops/s|[rw]?(kB|MB|sec)/s|k[rw]/s|await|[rw]_await|rd_sec/s|kB_read/s|MB_read/s|Blk_read/s|asvc_t|svc_t"
    r"|ms/r|AWAIT|TPS"
)
HEADER = re.compile(
    r"^(?:\d\d:\d\d:\d\d(?: [AP]M)?\s+)?(?:(?:Device:?|DEV|device)\s.*\b(?:await|tps|r/s|svc_t)(?:\s|$)"
    r"|\s*r/s\s.*(?:svc_t|wait).*\bdevice$|\s*L\(q\)\s.*\bName$|\s*DISK\s+USED\s+TPS\s)",
    re.MULTILINE,
)
"""A line of column names of any of these programs."""
TIME_OF_DAY = re.compile(r"(\d\d):(\d\d):(\d\d)(?: ([AP])M)?\s+(?=\S)")
BANNER = re.compile(r"(?:Linux|SunOS|FreeBSD)\s.*?\(([^)]+)\)\s+(\S+)")
GSTAT = re.compile(r"dT:\s*(\d+(?:\.\d+)?)s")
UNIT = re.compile(r"(\d)\s+((?:[KMGT]i?B|B)/s|ms|us|s)(?=\s|$)")
CURRENT = ("DISK", "L(q)")
"""First words of the headings of mc and gstat, whose first lines are intervals."""
FLAGS = "!*"
"""Marks that mc appends to the names of disks."""
ABOVE = 3.0
"""Ratio of the wait in the host's queue to that in the device from which the queue is what takes time."""
NO_FIGURES = "lines left out: not as many figures as column names"
DRIVERS = {"8": "sd", "9": "md", "7": "loop", "11": "sr"}
"""Linux' drivers by major number, for the names of ``sar -d`` without -p."""
SD_MINORS = 16
AS_SYSSTAT = {
    "kr/s": "rkB/s", "kw/s": "wkB/s", "Mr/s": "rMB/s", "Mw/s": "wMB/s", "asvc_t": "await", "svc_t": "await",
    "actv": "aqu-sz", "%b": "%util", "%busy": "%util", "ops/s": "tps", "ms/r": "r_await", "ms/w": "w_await",
    "TPS": "tps", "READ": "rMB/s", "WRITE": "wMB/s", "AWAIT": "await", "UTIL": "%util",
}  # fmt: skip
"""Columns of other programs, by sysstat's name of the same figure. ``wsvc_t`` of illumos, the wait in the host's queue,
is not part of a device's latency."""


def rows(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields the rows of tables as text."""
    (path,) = paths
    times = Times(how.zone)
    with opened(path) as stream:
        samples = _Table(path, how, times).samples(stream)
        for start_s, length_s, block in intervals(samples, how, "iostat"):
            if length_s >= LONG_S:
                how.remarks[LONG.format(length_s)] = 1
            _note_waits_above(block, how)
            yield from rows_of(block, start_s, length_s, how)
    times.note_zone(how.remarks)


def _note_waits_above(block: Devices, how: How) -> None:
    """Notes the devices of illumos whose requests wait in the host's queue (``wsvc_t``) rather than in the device."""
    for name, fields in block.fields.items():
        wait_ms, served_ms = fields.get("wsvc_t", 0.0), fields.get("await", math.inf)
        if fields.get("wait", 0.0) >= 1.0 and wait_ms >= ABOVE * served_ms:
            evidence = f"requests wait {wait_ms:,.3g} ms in the host's queue and take {served_ms:,.3g} ms in the device"
            weights: dict[Suspect, float] = {"queue": 2.5, "host": 0.5, "device": -1.0}
            if not any(of.disk == name for of in how.statements):
                how.statements.append(Statement(name, evidence, weights, source="iostat"))


@dataclass
class _Table:
    """The state of reading a file line by line."""

    path: Path
    how: How
    times: Times
    host: str = ""
    header: list[str] = field(default_factory=list)
    """Column names of the lines that follow."""
    fields: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: list[str] = field(default_factory=list)
    processors: dict[str, float] = field(default_factory=dict)
    processors_at: dict[float, dict[str, float]] = field(default_factory=dict)
    """Those of ``sar -u`` in the same file, by time."""
    time_s: float | None = None
    before_s: float | None = None
    """Time of the block before, in reports with a time on each line."""
    length_s: float | None = None
    is_first: bool = True
    has_banner: bool = False
    is_current: bool = False
    """Whether the program prints no means since boot."""
    day: Day = field(default_factory=Day)
    day_s: float = 0.0
    section: str = ""
    """First column of the section of sar's report."""

    def samples(self, stream: Iterator[str]) -> Iterator[Sample[Devices]]:
        """Yields the blocks of devices."""
        self.host = self.how.host or stem(self.path)
        half = ""
        for line in stream:
            text = line.rstrip("\r\n")
            if half:
                # Old versions of sysstat break lines after long names.
                text, half = f"{half} {text}", ""
            words = text.split()
            if len(words) == 1 and self.header and self.times.of_line(text) is None:
                half = text
                continue
            yield from self._line(text, words)
        yield from self._end()

    def _line(self, text: str, words: list[str]) -> Iterator[Sample[Devices]]:
        if match := BANNER.match(text):
            yield from self._end()
            self.host = self.how.host or match[1]
            # The date of a banner without times of day does not need a zone.
            self.day_s = Times(self.how.zone).read(f"{match[2]} 00:00:00") or 0.0
            self.is_first, self.has_banner, self.before_s = True, True, None
            return
        if match := GSTAT.match(text.strip()):
            yield from self._end()
            self.length_s = float(match[1])
            return
        if not words:
            yield from self._end()
            return
        at_s = None
        if match := TIME_OF_DAY.match(text):
            words = text[match.end() :].split()
            if (words[0] == "CPU" or words[0].lower() in DEVICE_NAMES) and words[0] != self.section:
                # Each section of sar begins with the first day.
                self.section, self.day = words[0], Day()
            hours = int(match[1]) % 12 + 12 * (match[4] == "P") if match[4] else int(match[1])
            if self.how.zone is None and self.day_s:
                self.how.remarks[ASSUMED] = 1
            at_s = self.day_s + self.day.of(hours * 3600 + int(match[2]) * 60 + int(match[3]))
            text = text[match.end() :]
            words = text.split()
        # Lines of sar's averages repeat the others.
        if words[0] != "Average:" and not (yield from self._columns(text, words, at_s)):
            found_s = self.times.of_line(text) if at_s is None else None
            if found_s is not None:
                yield from self._end()
                self.time_s = found_s

    def _columns(self, text: str, words: list[str], at_s: float | None) -> Generator[Sample[Devices], None, bool]:
        """Reads column names or values under them; returns whether the line was either."""
        if words[0] in ("avg-cpu:", "CPU"):
            yield from self._end()
            self.header = words[1:] if words[0] == "avg-cpu:" else words
            if at_s is not None:
                self.before_s = at_s
            return True
        if header := _header(words):
            yield from self._end()
            self.header, self.is_current = header, words[0] in CURRENT
            if at_s is not None:
                self.before_s = at_s
            return True
        if self.header and "%idle" in self.header:
            self._of_processors(words, at_s)
            return True
        fields = _fields(self.header, UNIT.sub(r"\1\2", text).replace("|", " ").split()) if self.header else None
        if fields is None:
            if self.header and sum(map(_is_figure, words)) > len(words) / 2:
                self.how.remarks[NO_FIGURES] += 1
                return True
            return False
        name, values = fields
        if name in self.fields or (at_s is not None and at_s != self.time_s):
            yield from self._end()
        if at_s is not None:
            self.time_s = at_s
            self.length_s = None if self.before_s is None else at_s - self.before_s
        figures = {column: figure for column, value in values.items() if (figure := _figure(value)) is not None}
        self.fields[name] = _without_discards(figures)
        self.counts += [values[key].replace(",", ".") for key in COUNT_RATES if key in figures]
        return True

    def _of_processors(self, words: Sequence[str], at_s: float | None) -> None:
        values = [value for word in words if (value := _figure(word)) is not None]
        names = [name for name in self.header if name.startswith("%")]
        if len(values) == len(names) and (at_s is None or words[0] == "all"):
            shares = processors_of(dict(zip(names, values, strict=True)))
            if at_s is None:
                self.processors = shares
            else:
                self.processors_at[at_s] = shares
        if at_s is None:
            self.header = []

    def _end(self) -> Iterator[Sample[Devices]]:
        """Yields the block that ends here, if there is one."""
        if self.fields:
            processors = self.processors or self.processors_at.get(self.time_s or math.nan, {})
            block = Devices(self.host, self.fields, processors)
            is_first = self.is_first and self.length_s is None and not self.is_current
            yield Sample(self.time_s, block, self.counts, is_first, self.has_banner, self.length_s, self.day_s or None)
            self.is_first = self.has_banner = False
            if self.length_s is not None and self.before_s is not None:
                self.before_s = self.time_s
            self.fields, self.counts, self.time_s, self.length_s = {}, [], None, None
            self.processors = {}


def _header(words: list[str]) -> list[str] | None:
    """Returns the columns of a line of names, that of devices as ``device`` and the others as sysstat's."""
    names = [word.lower() in DEVICE_NAMES for word in words]
    if sum(names) != 1 or not any(map(FIGURES.fullmatch, words)):
        return None
    columns, last = [], ""
    for word, is_name in zip(words, names, strict=True):
        # gstat has one heading for the bytes of reads, writes and discards.
        shown = {"r/s": "rkB/s", "w/s": "wkB/s"}.get(last, "") if word == "kBps" else word
        last = word if word.endswith("/s") else last
        columns.append("device" if is_name else AS_SYSSTAT.get(shown, shown))
    return columns


def _fields(header: list[str], words: list[str]) -> tuple[str, dict[str, str]] | None:
    """Returns a device's name and its values by column."""
    if "device" not in header or len(words) != len(header):
        return None
    at = header.index("device")
    others = [*words[:at], *words[at + 1 :]]
    if sum(map(_is_figure, others)) < len(others) - others.count("-"):
        return None
    columns = [*header[:at], *header[at + 1 :]]
    return _device_name(words[at].rstrip(FLAGS)), dict(zip(columns, others, strict=True))


def _device_name(name: str) -> str:
    """Returns the kernel's name for the numbers that ``sar -d`` prints without -p.

    >>> from headstack.diagnosis.judging.sources.columns import _device_name
    >>> _device_name("dev8-16"), _device_name("dev8-17"), _device_name("dev9-127"), _device_name("dev259-0")
    ('sdb', 'sdb1', 'md127', 'dev259-0')
    """
    match = re.fullmatch(r"dev(\d+)-(\d+)", name)
    driver = match and DRIVERS.get(match[1])
    if match is None or driver is None:
        return name.removeprefix("/dev/") if name.startswith("/dev/") else name
    minor = int(match[2])
    if driver != "sd":
        return f"{driver}{minor}"
    return f"sd{chr(ord('a') + minor // SD_MINORS)}{minor % SD_MINORS or ''}"


def _without_discards(figures: dict[str, float]) -> dict[str, float]:
    """Adds the discards of plain iostat, which counts all requests together: those of a device that reads and writes
    nothing."""
    discarded = max((figures.get(name, 0.0) for name in ("kB_dscd/s", "MB_dscd/s")), default=0.0)
    moved = sum(figures.get(name, 0.0) for name in ("kB_read/s", "kB_wrtn/s", "MB_read/s", "MB_wrtn/s"))
    if discarded > 0 and moved == 0 and "tps" in figures:
        return {**figures, "d/s": figures["tps"]}
    return figures


UNITS: dict[str, float] = {
    "": 1.0, "%": 1.0, "k": 1e3, "m": 1e6, "ms": 1.0, "us": 1e-3, "s": 1e3,
    "B/s": 1 / MIB, "KiB/s": KIB / MIB, "MiB/s": 1.0, "GiB/s": KIB, "TiB/s": MIB,
    "KB/s": 1e3 / MIB, "MB/s": 1e6 / MIB, "GB/s": 1e9 / MIB,
}  # fmt: skip
"""Units behind a figure; times in ms, rates of bytes in MiB/s, as the columns have them."""
NUMBER = re.compile(r"(-?\d+(?:[.,]\d+)?)(\D*)")


def _figure(text: str) -> float | None:
    """Parses a figure, with a decimal comma too; ``None`` if it is none."""
    match = NUMBER.fullmatch(text)
    if match is None or match[2] not in UNITS:
        return None
    with suppress(ValueError):
        return float(match[1].replace(",", ".")) * UNITS[match[2]]
    return None


def _is_figure(text: str) -> bool:
    return _figure(text) is not None
