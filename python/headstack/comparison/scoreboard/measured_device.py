"""`MeasuredDevice`: a device that was measured, read from one TOML and one CSV file. See docs/scoreboard.md.

The TOML file describes the device and names the source; the CSV file next to it has one row per measurement.
"""

from __future__ import annotations

import csv
import io
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.io.atomic_files import write_all
from headstack.io.values import size_bytes

VERSION = 1

DESCRIBED = ("sheet", "short sheet", "sheet and host", "calibrated")
"""How a device may be described: by its data sheet, by only the figures that short data sheets state, also by a host
adapter, or by a model fitted to measurements."""

KEYS = {
    "device": "the model, for example Samsung PM883 480GB; units of one model have the same name",
    "system": "a catalogue name, or a description next to this file",
    "described": "how the system is described",
    "source": "who measured the device, and where the figures are",
    "licence": "the licence of the measurements",
}
"""Required keys of the TOML file, next to ``version``."""
OPTIONAL_KEYS = ("host", "fitted")

PATTERNS = {
    "randread": (100.0, 100.0),
    "randwrite": (0.0, 100.0),
    "randrw": (None, 100.0),
    "read": (100.0, 0.0),
    "write": (0.0, 0.0),
    "rw": (None, 0.0),
}
"""fio's names of access patterns, with their percentages of reads (``None``: as the row states) and of random
requests."""

TRACE = ".trace"
"""Suffix of a trace in DiskSim's format, which replaces the name of a pattern."""

LATENCIES = {"mean": "mean_us", "p50": "p50_us", "p95": "p95_us", "p99": "p99_us", "p99.9": "p999_us"}
"""Columns of latencies by figure, in microseconds; an empty cell was not measured."""
COLUMNS = ("rw", "read_percent", "block_size", "depth", "jobs", "iops", *LATENCIES.values())
OPTIONAL_COLUMNS = ("latency_of", "offered_iops", "state", "range")
LATENCY_OF = ("", "reads", "writes")
STATES = ("", *(state for state in _native.FLASH_STATES if ":" not in state))


@dataclass(frozen=True)
class Point:
    """One measurement: a load, and the measured figures."""

    rw: str
    """One of ``PATTERNS``, the name of a catalogue workload, or the name of a trace next to the file."""
    figures: Mapping[str, float]
    """``rate`` in requests per second, and latencies in ms: ``mean``, ``p50``, ``p95``, ``p99``, ``p99.9``."""
    depth: int = 1
    """Queue depth per job."""
    jobs: int = 1
    read_percent: float | None = None
    """Percentage of reads; ``None`` for a workload or trace."""
    block_size: str = ""
    """Size of a request; empty for a workload or trace."""
    latency_of: str = ""
    """``reads`` or ``writes`` if the figures are only those of one direction of a mix."""
    offered_iops: float | None = None
    """Arrival rate of an open loop; ``None`` for a closed loop."""
    state: str = ""
    """State of the flash: one of ``STATES``; empty if unknown."""
    range: str = ""
    """Measured address range, as for ``--range``; empty for the whole device."""

    @property
    def is_trace(self) -> bool:
        """Whether the load is a replayed trace."""
        return self.rw.endswith(TRACE)


@dataclass(frozen=True)
class MeasuredDevice:
    """A measured device: its description, its source and its measurements."""

    device: str
    system: str
    """A catalogue name, or the path of a description."""
    described: str
    """One of ``DESCRIBED``."""
    source: str
    licence: str
    points: tuple[Point, ...]
    host: str = ""
    """Host adapter of the measurement, as for ``--host``; empty if the prediction does not know it."""
    fitted: str = ""
    """The part of the description that was fitted to measurements of this device; such a device is not a
    prediction."""
    folder: Path = Path()
    """Folder of the files that ``system`` and traces name."""


def read_folder(folder: str | Path) -> list[MeasuredDevice]:
    """Reads the devices of a folder, in order of their file names. Raises ``InputError`` with file, line and key."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{folder}: no such folder")
    files = [file for file in sorted(path.glob("*.toml")) if _is_device(file)]
    if not files:
        raise InputError(f"{folder}: contains no NAME.toml with NAME.csv; see docs/scoreboard.md for the format")
    return [read_device(file) for file in files]


def _is_device(file: Path) -> bool:
    """Whether a TOML file is a device of the scoreboard, not the description of a system. Raises ``InputError`` if its
    measurements are missing."""
    measured = file.with_suffix(".csv")
    if measured.is_file():
        return True
    if any(line.split("=")[0].strip() == "described" for line in file.read_text(encoding="utf-8").splitlines()):
        raise InputError(f"has no measurements; add {measured.name}", file=str(file))
    return False


def read_device(file: Path) -> MeasuredDevice:
    """Reads a device from its TOML file and the CSV file of the same name."""
    text = file.read_text(encoding="utf-8")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not valid TOML: {error}", file=str(file)) from None
    _check_keys(file, text, table)
    described = str(table["described"])
    for key, value, allowed in (
        ("described", described, DESCRIBED),
        ("host", str(table.get("host", "")), ("", *_native.HOSTS)),
    ):
        if value not in allowed:
            raise _wrong(file, text, key, f"{value!r} is unknown; allowed: {', '.join(filter(None, allowed))}")
    fitted = str(table.get("fitted", ""))
    if described == "calibrated" and not fitted:
        raise _wrong(file, text, "described", 'a calibrated device needs "fitted", the fitted part of its description')
    if table.get("host") and described in ("sheet", "short sheet"):
        raise _wrong(file, text, "host", 'a device with a host is described by "sheet and host"')
    return MeasuredDevice(
        device=str(table["device"]),
        system=str(table["system"]),
        described=described,
        source=str(table["source"]),
        licence=str(table["licence"]),
        points=tuple(_read_points(file.with_suffix(".csv"))),
        host=str(table.get("host", "")),
        fitted=fitted,
        folder=file.parent,
    )


def _check_keys(file: Path, text: str, table: Mapping[str, Any]) -> None:
    """Raises ``InputError`` for a missing, unknown or empty key, a value that is no text, or an unknown version."""
    if table.get("version") != VERSION:
        message = f"{table.get('version', 'no version')}: this build reads version {VERSION}"
        raise _wrong(file, text, "version", message)
    allowed = ("version", *KEYS, *OPTIONAL_KEYS)
    for key, value in table.items():
        if key not in allowed:
            raise _wrong(file, text, key, f"unknown key; allowed: {', '.join(allowed)}")
        if key != "version" and not (isinstance(value, str) and value):
            raise _wrong(file, text, key, "needs a text that is not empty")
    for key, meaning in KEYS.items():
        if key not in table:
            raise InputError(f"missing; give {meaning}", file=str(file), key=key)


def _wrong(file: Path, text: str, key: str, message: str) -> InputError:
    """Returns an error at the line of a key."""
    lines = text.splitlines()
    line = next((number for number, line in enumerate(lines, 1) if line.split("=")[0].strip() == key), None)
    return InputError(message, file=str(file), line=line, key=key)


def _read_points(file: Path) -> Iterator[Point]:
    rows = csv.DictReader(io.StringIO(file.read_text(encoding="utf-8")), strict=True)
    heads = rows.fieldnames or []
    allowed = (*COLUMNS, *OPTIONAL_COLUMNS)
    for head in heads:
        if head not in allowed:
            message = f"unknown column; allowed: {', '.join(allowed)}"
            raise InputError(message, file=str(file), line=1, key=str(head))
    for column in COLUMNS:
        if column not in heads:
            raise InputError("missing column", file=str(file), line=1, key=column)
    count = 0
    for row in rows:
        if None in row or None in row.values():
            message = f"{len(heads)} columns expected, as in the first line"
            raise InputError(message, file=str(file), line=rows.line_num)
        count += 1
        yield _Row(file, rows.line_num, row).point()
    if not count:
        raise InputError("no measurements; add a row", file=str(file))


@dataclass(frozen=True)
class _Row:
    """A row of a CSV file."""

    file: Path
    line: int
    cells: Mapping[str, str]

    def point(self) -> Point:
        """Returns the measurement. Raises ``InputError`` with file, line and column."""
        rw = self.cells["rw"]
        is_uniform = rw in PATTERNS
        if not is_uniform and not rw.endswith(TRACE) and rw not in _native.workload_ids():
            allowed = f"{', '.join(PATTERNS)}, a workload of the catalogue or a trace NAME{TRACE}"
            raise self.wrong("rw", f"{rw!r} is unknown; allowed: {allowed}")
        offered = self.number("offered_iops", least=1e-9)
        figures = {"rate": self.number("iops", least=1e-9)}
        figures |= {figure: self.number(column, least=0, unit=1e-3) for figure, column in LATENCIES.items()}
        measured = {figure: value for figure, value in figures.items() if value is not None}
        if not measured:
            raise self.wrong("iops", "no figure in this row; give IOPS or a latency")
        depth, jobs = self.whole("depth"), self.whole("jobs")
        if not is_uniform:
            self.check_empty("read_percent", "block_size")
        return Point(
            rw=rw,
            figures=measured,
            depth=depth,
            jobs=jobs,
            read_percent=self.reads(rw) if is_uniform else None,
            block_size=self.size() if is_uniform else "",
            latency_of=self.choice("latency_of", LATENCY_OF),
            offered_iops=offered,
            state=self.choice("state", STATES),
            range=self.cells.get("range", ""),
        )

    def wrong(self, column: str, message: str) -> InputError:
        """Returns an error at this row."""
        return InputError(message, file=str(self.file), line=self.line, key=column)

    def choice(self, column: str, allowed: tuple[str, ...]) -> str:
        """Returns a word, empty for a column that is absent."""
        text = self.cells.get(column, "")
        if text not in allowed:
            raise self.wrong(column, f"{text!r} is unknown; allowed: {', '.join(filter(None, allowed))}, or empty")
        return text

    def number(self, column: str, least: float, most: float = math.inf, unit: float = 1.0) -> float | None:
        """Returns a number in this unit; ``None`` for an empty cell."""
        text = self.cells.get(column, "")
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (least <= value <= most and math.isfinite(value)):
            above = f"{least:g} to {most:g}" if math.isfinite(most) else "above 0" if least else "0 or more"
            raise self.wrong(column, f"{text!r} is not a number; allowed: {above}, or empty")
        return value * unit

    def whole(self, column: str) -> int:
        """Returns a count of at least 1."""
        text = self.cells[column]
        if not text.isdecimal() or int(text) < 1:
            raise self.wrong(column, f"{text!r} is not a whole number of at least 1")
        return int(text)

    def reads(self, rw: str) -> float:
        """Returns the percentage of reads, which must agree with the pattern."""
        fixed, _ = PATTERNS[rw]
        value = self.number("read_percent", least=0, most=100)
        if value is None and fixed is None:
            raise self.wrong("read_percent", f"empty; {rw} needs the percentage of reads, 0 to 100")
        if fixed is not None and value not in (None, fixed):
            raise self.wrong("read_percent", f"{value:g} contradicts {rw}, which has {fixed:g}")
        return fixed if value is None else value  # type: ignore[return-value]

    def size(self) -> str:
        """Returns the request size."""
        text = self.cells["block_size"]
        try:
            size_bytes("block_size", text)
        except InputError as error:
            raise self.wrong("block_size", error.message) from None
        return text

    def check_empty(self, *columns: str) -> None:
        """Raises ``InputError`` if a cell is not empty that a workload or trace states itself."""
        for column in columns:
            if self.cells[column]:
                raise self.wrong(column, f"{self.cells['rw']} has its own; leave the cell empty")


def write_device(device: MeasuredDevice, folder: Path, name: str) -> None:
    """Writes a device as NAME.toml and NAME.csv: both files, or none."""
    write_all((folder / file, _writing(text)) for file, text in files_of(device, name).items())


def _writing(text: str) -> Any:
    return lambda path: Path(path).write_text(text, encoding="utf-8")


def files_of(device: MeasuredDevice, name: str) -> dict[str, str]:
    """Returns the texts of the two files by their names."""
    values = {
        "device": device.device,
        "system": device.system,
        "described": device.described,
        "host": device.host,
        "fitted": device.fitted,
        "source": device.source,
        "licence": device.licence,
    }
    lines = [f"version = {VERSION}"]
    lines += [f"{key} = {_quoted(value)}" for key, value in values.items() if value]
    optional = [column for column in OPTIONAL_COLUMNS if any(getattr(point, column) for point in device.points)]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*COLUMNS, *optional], lineterminator="\n")
    writer.writeheader()
    writer.writerows(_cells(point, optional) for point in device.points)
    return {f"{name}.toml": "\n".join([*lines, ""]), f"{name}.csv": text.getvalue()}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _cells(point: Point, optional: list[str]) -> dict[str, str]:
    def plain(value: float | None) -> str:
        return "" if value is None else f"{value:.10g}"

    latencies = {column: point.figures.get(figure) for figure, column in LATENCIES.items()}
    cells = {
        "rw": point.rw,
        "read_percent": plain(point.read_percent),
        "block_size": point.block_size,
        "depth": str(point.depth),
        "jobs": str(point.jobs),
        "iops": plain(point.figures.get("rate")),
        **{column: plain(None if value is None else value * 1e3) for column, value in latencies.items()},
        "latency_of": point.latency_of,
        "offered_iops": plain(point.offered_iops),
        "state": point.state,
        "range": point.range,
    }
    return {column: cells[column] for column in (*COLUMNS, *optional)}
