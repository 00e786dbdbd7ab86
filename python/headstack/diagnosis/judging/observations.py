"""``Observations`` of disks: a row for each disk and interval, from any source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

SCHEMA: dict[str, type[pl.DataType]] = {
    "host": pl.String,
    "disk": pl.String,
    "model": pl.String,
    "start_s": pl.Float64,
    "length_s": pl.Float64,
    "reads": pl.Float64,
    "writes": pl.Float64,
    "read_bytes": pl.Float64,
    "write_bytes": pl.Float64,
    "read_latency_s": pl.Float64,
    "write_latency_s": pl.Float64,
    "requests": pl.Float64,
    "bytes": pl.Float64,
    "latency_s": pl.Float64,
    "in_flight": pl.Float64,
    "busy": pl.Float64,
    "flushes": pl.Float64,
    "flush_latency_s": pl.Float64,
    "discards": pl.Float64,
    "cpu_idle": pl.Float64,
    "cpu_steal": pl.Float64,
    "io_pressure": pl.Float64,
}
"""Columns and their types. Counts are of completions in the interval, latencies their means; ``start_s`` counts from
1970, ``in_flight`` is a mean, ``busy`` a share. The last three are shares of the host's time: processors idle and taken
by other guests, and programs that wait for I/O. Missing values are null, never 0."""

ALWAYS = ("host", "disk", "start_s", "length_s")
"""Columns that are never null."""


@dataclass(frozen=True, slots=True)
class Observations:
    """A table with ``SCHEMA``, sorted by time and then by disk, with notes on its source."""

    frame: pl.DataFrame
    source: str
    """The kind of source, such as ``diskstats``."""
    caveats: tuple[str, ...] = ()
    """Limitations of the source: smoothed values, means over 600 s, the first block dropped."""

    @property
    def unsaid(self) -> tuple[str, ...]:
        """Columns without values."""
        return tuple(name for name in SCHEMA if self.frame[name].null_count() == self.frame.height)


def observed(rows: Sequence[Mapping[str, Any]], source: str, caveats: Sequence[str] = ()) -> Observations:
    """Creates observations from rows with some of the columns."""
    frame = pl.DataFrame(
        {name: pl.Series([row.get(name) for row in rows], dtype=kind, strict=False) for name, kind in SCHEMA.items()}
    )
    return Observations(completed(frame.lazy()).collect(), source, tuple(caveats))


def completed(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Returns the table with derived values, sorted. All requests together are known if each kind is.

    A latency without requests is removed: sources write 0 if no request completed. If requests are not counted, a
    latency of 0 means the same.
    """
    of = pl.col
    latencies = (("read_latency_s", "reads"), ("write_latency_s", "writes"), ("flush_latency_s", "flushes"))
    by_kind = [
        pl.when((of(count) > 0) | of(count).is_null() & (of(latency) > 0)).then(of(latency)).alias(latency)
        for latency, count in latencies
    ]
    waited_s = sum(
        (pl.when(of(count) == 0).then(0.0).otherwise(of(count) * of(latency)) for latency, count in latencies[:2]),
        start=pl.lit(0.0),
    )
    frame = frame.with_columns(by_kind).with_columns(
        requests=pl.coalesce("requests", of("reads") + of("writes")),
        bytes=pl.coalesce("bytes", of("read_bytes") + of("write_bytes")),
        latency_s=pl.coalesce("latency_s", waited_s / (of("reads") + of("writes"))),
    )
    mean = of("latency_s")
    some = (of("requests") > 0) | of("requests").is_null() & (mean > 0)
    return (
        frame.with_columns(latency_s=pl.when(some & mean.is_not_nan()).then(mean))
        # By Little's law, if the source does not report it.
        .with_columns(in_flight=pl.coalesce("in_flight", of("requests") * of("latency_s") / of("length_s")))
        .select(of(name).cast(kind) for name, kind in SCHEMA.items())
        .sort("start_s", "host", "disk")
    )
