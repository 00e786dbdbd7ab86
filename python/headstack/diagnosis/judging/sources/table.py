"""Reader of tables, CSV and Parquet, with declared columns: lazily, one period of time at a time."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from headstack._native import InputError, current_column, parse_duration_ns
from headstack.diagnosis.judging.observations import ALWAYS, SCHEMA, Observations, completed
from headstack.diagnosis.judging.sources.files import How
from headstack.diagnosis.judging.sources.times import Times

PART_ROWS = 2_000_000
"""Maximum number of rows in memory; 130 bytes each if every column is known."""

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
BYTES = {"B": 1.0, "kB": 1e3, "KiB": 1024.0, "MB": 1e6, "MiB": 1048576.0, "sectors": 512.0}
WORDS = ("host", "disk", "model")
LATENCIES = {
    "latency": "latency_s",
    "read_latency": "read_latency_s",
    "write_latency": "write_latency_s",
    "flush_latency": "flush_latency_s",
}
COUNTS = ("reads", "writes", "requests", "flushes", "discards")
SIZES = ("read_bytes", "write_bytes", "bytes")
SHARES = {"utilization": "busy", "cpu_idle": "cpu_idle", "cpu_steal": "cpu_steal", "io_pressure": "io_pressure"}
"""Keys of shares, with their columns of observations."""
KEYS = ("time", "every", "length", *WORDS, *LATENCIES, *COUNTS, *SIZES, "in_flight", *SHARES)


def declaration(text: str) -> dict[str, str]:
    """Parses ``--columns``: ``KEY=COLUMN:UNIT,...``, or a file with the same keys."""
    if text.endswith(".toml"):
        try:
            with open(text, "rb") as file:
                columns = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{text}: {error}") from None
        where = text
    else:
        pairs = [pair.partition("=") for pair in text.split(",")]
        if any(not equals for _, equals, _ in pairs):
            raise InputError(f"--columns: {text!r}; allowed: KEY=COLUMN:UNIT,..., or a file NAME.toml of such keys")
        columns, where = {key.strip(): value.strip() for key, _, value in pairs}, "--columns"
    return checked(columns, where)


def checked(columns: Mapping[str, str], where: str) -> dict[str, str]:
    """Checks that a declaration has known keys, and all required ones; returns it with the current names of the keys.
    Raises ``InputError``."""
    names = [*columns]
    columns = {current_column(key): value for key, value in columns.items()}
    if len(columns) < len(names):
        raise InputError(f"{where}: two names of one key: {', '.join(names)}")
    for key, value in columns.items():
        if key not in KEYS:
            raise InputError(f"{where}: {key} is unknown; allowed: {', '.join(KEYS)}")
        if not isinstance(value, str):
            raise InputError(f"{where}: {key}: {value!r} is not text; use COLUMN:UNIT")
    for key in ("disk", "time"):
        if key not in columns:
            raise InputError(f"{where}: {key} is missing; allowed: {', '.join(KEYS)}")
    if "every" not in columns and "length" not in columns:
        raise InputError(f"{where}: the length of intervals is missing; allowed: every=15s, or length=COLUMN:UNIT")
    return columns


def is_own(columns: list[str]) -> bool:
    """Whether a table already has the columns of observations, and needs no declaration."""
    return set(ALWAYS) <= set(columns)


def scanned(paths: list[Path]) -> pl.LazyFrame:
    """Opens files of one table lazily."""
    with open(paths[0], "rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    try:
        return pl.scan_parquet(paths) if is_parquet else pl.scan_csv(paths, infer_schema_length=10_000)
    except PolarsError as error:
        raise InputError(f"{paths[0]}: {error}") from None


def parts(paths: list[Path], columns: Mapping[str, str] | None, how: How) -> Iterator[Observations]:
    """Yields observations in order of time, in batches. Each part is a pass over the column of times."""
    yield from parts_of(scanned(paths), str(paths[0]), columns, how)


def parts_of(frame: pl.LazyFrame, where: str, columns: Mapping[str, str] | None, how: How) -> Iterator[Observations]:
    """Yields observations of a table that messages call ``where``."""
    try:
        names = frame.collect_schema().names()
        if columns is not None:
            frame = declared(frame, columns, names, how)
        elif is_own(names):
            frame = frame.with_columns(pl.lit(None, kind).alias(n) for n, kind in SCHEMA.items() if n not in names)
        else:
            raise InputError(
                f"{where}: a table with the columns {', '.join(names)}; declare their meanings with --columns, such as "
                "disk=dev,time=ts:s,every=15s,latency=lat:ms"
            )
        for begin_s, end_s in _stretches(frame):
            part = frame.filter((pl.col("start_s") >= begin_s) & (pl.col("start_s") < end_s))
            rows = completed(part).collect(engine="streaming")
            yield Observations(rows, "table", tuple(how.caveats()))
    except PolarsError as error:
        raise InputError(f"{where}: {error}") from None


STRETCH_S = 600.0
"""Parts are cut at multiples of this: simultaneous data of peers stay together."""


def _stretches(frame: pl.LazyFrame) -> Iterator[tuple[float, float]]:
    """Yields the time ranges of parts, each with about ``PART_ROWS`` rows."""
    place = (pl.col("start_s") / STRETCH_S).floor().alias("place")
    counted = frame.group_by(place).agg(rows=pl.len()).sort("place").collect(engine="streaming")
    begin: float | None = None
    count = 0
    for at, rows in counted.drop_nulls().iter_rows():
        if begin is not None and count + rows > PART_ROWS:
            yield begin * STRETCH_S, at * STRETCH_S
            begin, count = None, 0
        begin = at if begin is None else begin
        count += rows
    if begin is not None:
        yield begin * STRETCH_S, float("inf")


class _Columns:
    """The declared columns of a table."""

    def __init__(self, declared: Mapping[str, str], names: list[str]) -> None:
        self.declared, self.names = declared, names

    def of(self, key: str, units: Mapping[str, float], usual: str) -> tuple[pl.Expr, float, bool]:
        """Returns a column, its unit, and whether it is a rate."""
        column, colon, unit = self.declared[key].rpartition(":")
        if not colon:
            column, unit = self.declared[key], usual
        if column not in self.names:
            has = ", ".join(self.names)
            raise InputError(f"--columns: {key}: no column {column!r}; the table has {has}")
        plain = unit.removesuffix("/s")
        if plain not in units or (unit != plain and key not in (*COUNTS, *SIZES)):
            allowed = ", ".join(filter(None, units)) or "none"
            raise InputError(f"--columns: {key}: unit {unit!r} is unknown; allowed: {allowed}")
        return pl.col(column), units[plain], unit != plain

    def figure(self, key: str, units: Mapping[str, float], usual: str) -> pl.Expr:
        """Returns a column in seconds, bytes or unchanged."""
        column, unit, _ = self.of(key, units, usual)
        return column.cast(pl.Float64) * unit

    def start_s(self, how: How) -> pl.Expr:
        """Returns the start of intervals: a number with its unit, or a text such as ISO 8601."""
        column = self.declared["time"].removesuffix(":iso")
        if column == self.declared["time"]:
            return self.figure("time", SECONDS, "s")
        if column not in self.names:
            raise InputError(f"--columns: time: no column {column!r}; the table has {', '.join(self.names)}")
        times = Times(how.zone)

        def read(text: str) -> float | None:
            found_s = times.read(text)
            times.note_zone(how.remarks)
            return found_s

        return pl.col(column).map_elements(read, return_dtype=pl.Float64)


def declared(frame: pl.LazyFrame, declaration: Mapping[str, str], names: list[str], how: How) -> pl.LazyFrame:
    """Returns the columns of observations from those of a table."""
    columns = _Columns(declaration, names)
    plain = {"": 1.0}
    length_s = (
        columns.figure("length", SECONDS, "s")
        if "length" in declaration
        else pl.lit(parse_duration_ns(declaration["every"]) / 1e9)
    )
    expressions = {"host": pl.lit(how.host or ""), "length_s": length_s, "start_s": columns.start_s(how)}
    for key in declaration:
        if key in WORDS:
            expressions[key] = columns.of(key, plain, "")[0].cast(pl.String)
        elif key in LATENCIES:
            expressions[LATENCIES[key]] = columns.figure(key, SECONDS, "s")
        elif key in COUNTS or key in SIZES:
            units, usual = (BYTES, "B") if key in SIZES else (plain, "")
            is_rate = columns.of(key, units, usual)[2]
            expressions[key] = columns.figure(key, units, usual) * (length_s if is_rate else 1.0)
        elif key == "in_flight":
            expressions[key] = columns.figure(key, plain, "")
        elif key in SHARES:
            expressions[SHARES[key]] = columns.figure(key, plain | {"%": 0.01}, "")
    return frame.select(expressions.get(name, pl.lit(None)).cast(kind).alias(name) for name, kind in SCHEMA.items())
