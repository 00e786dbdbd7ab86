"""``Record``: the last intervals of a disk, in bounded memory: recent ones singly, older ones joined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from headstack.diagnosis.judging.state import RecordState

Array: TypeAlias = npt.NDArray[np.float64]

LEVELS, KEPT = 8, 24
"""A row of level k joins 2**k intervals; with ``KEPT`` rows a level, the record spans about 6,000 intervals: a day of
15 s, four days of 60 s."""
SUMS = (
    "length_s",
    "intervals",
    "requests",
    "reads",
    "writes",
    "bytes",
    "read_bytes",
    "write_bytes",
    "read_wait_s",
    "write_wait_s",
    "wait_s",
    "in_flight_s",
    "busy_s",
    "discards",
    "cpu_idle_s",
    "cpu_steal_s",
    "io_pressure_s",
    "rate_steps",
    "bytes_steps",
    "steps",
)
"""Columns of a row after the start of its first interval, each the sum over its intervals; NaN if unknown.
``rate_steps`` and ``bytes_steps`` sum the squared changes of the logarithm of the rate from one interval to the next,
and ``steps`` counts them."""
COLUMNS = ("start_s", *SUMS)
PLACE = {name: at for at, name in enumerate(COLUMNS)}


@dataclass
class Record:
    """The last intervals of a disk."""

    levels: list[Array] = field(default_factory=lambda: [np.empty((0, len(COLUMNS)))] * LEVELS)
    """Rows with ``COLUMNS`` by level, oldest first."""
    last: tuple[float, float, float] | None = None
    """End of the last interval, and the logarithms of its rate and of its bytes per second."""

    def add(self, intervals: Array) -> None:
        """Adds intervals in order of time, as rows of ``COLUMNS`` with ``rate_steps`` and the like still 0. Adding them
        in parts gives the same record as adding all at once. Late intervals, older than the last one, are left out."""
        if self.last is not None:
            intervals = intervals[intervals[:, PLACE["start_s"]] > self.last[0] - 0.5 * intervals[:, PLACE["length_s"]]]
        new = self._with_steps(intervals)
        for level in range(LEVELS):
            rows = np.concatenate([self.levels[level], new])
            joined = 2 * max(0, -(-(len(rows) - KEPT) // 2))
            first, second = rows[:joined:2], rows[1:joined:2]
            new = first + second
            new[:, PLACE["start_s"]] = first[:, PLACE["start_s"]]
            self.levels[level] = rows[joined:]

    def _with_steps(self, rows: Array) -> Array:
        """Fills in the changes of the rates from one interval to the next without a gap."""
        rows = rows.copy()
        length = rows[:, PLACE["length_s"]]
        with np.errstate(divide="ignore", invalid="ignore"):
            rate, amount = (np.log(rows[:, PLACE[name]] / length) for name in ("requests", "bytes"))
        ends = rows[:, PLACE["start_s"]] + length
        before = self.last or (-np.inf, np.nan, np.nan)
        if len(rows):
            self.last = (float(ends[-1]), float(rate[-1]), float(amount[-1]))
        is_next = np.abs(rows[:, PLACE["start_s"]] - np.concatenate([[before[0]], ends[:-1]])) < 0.1 * length
        with np.errstate(invalid="ignore"):
            changes = [np.diff(of, prepend=was) ** 2 for of, was in zip((rate, amount), before[1:], strict=True)]
        has_change = is_next & np.isfinite(changes[0])
        rows[:, PLACE["rate_steps"]] = np.where(has_change, changes[0], 0.0)
        rows[:, PLACE["bytes_steps"]] = np.where(has_change & np.isfinite(changes[1]), changes[1], 0.0)
        rows[:, PLACE["steps"]] = has_change
        return rows

    def rows(self) -> Array:
        """Returns all rows, oldest first."""
        return np.concatenate(self.levels[::-1])

    def plain(self) -> RecordState:
        """Returns the record as plain data."""
        levels = []
        for rows in self.levels:
            # NaN is not JSON.
            values = rows.astype(object)
            values[np.isnan(rows)] = None
            levels.append(values.tolist())
        last = None if self.last is None else [value if np.isfinite(value) else None for value in self.last]
        return {"levels": levels, "last": last}

    @staticmethod
    def of(plain: RecordState) -> Record:
        """Returns the record that ``plain`` described."""
        last = plain["last"]
        return Record(
            [np.array(of, dtype=float).reshape(-1, len(COLUMNS)) for of in plain["levels"]],
            None if last is None else tuple(np.array(last, dtype=float).tolist()),
        )


def intervals_of(frame: pl.DataFrame) -> dict[tuple[str, str], Array]:
    """Returns the intervals of each disk, by host and disk, as rows of ``COLUMNS``."""
    of = pl.col

    def waited(count: str, latency: str) -> pl.Expr:
        return pl.when(of(count) == 0).then(0.0).otherwise(of(count) * of(latency))

    columns = {
        "start_s": of("start_s"),
        "length_s": of("length_s"),
        "intervals": pl.lit(1.0),
        **{name: of(name) for name in ("requests", "reads", "writes", "bytes", "read_bytes", "write_bytes")},
        "read_wait_s": waited("reads", "read_latency_s"),
        "write_wait_s": waited("writes", "write_latency_s"),
        "wait_s": waited("requests", "latency_s"),
        "in_flight_s": of("in_flight") * of("length_s"),
        "busy_s": of("busy") * of("length_s"),
        "discards": of("discards"),
        "cpu_idle_s": of("cpu_idle") * of("length_s"),
        "cpu_steal_s": of("cpu_steal") * of("length_s"),
        "io_pressure_s": of("io_pressure") * of("length_s"),
        **{name: pl.lit(0.0) for name in ("rate_steps", "bytes_steps", "steps")},
    }
    rows = frame.sort("start_s").select(
        "host", "disk", *(columns[name].cast(pl.Float64).fill_null(float("nan")).alias(name) for name in COLUMNS)
    )
    return {
        (str(host), str(disk)): np.ascontiguousarray(of_disk.select(COLUMNS).to_numpy())
        for (host, disk), of_disk in rows.partition_by("host", "disk", as_dict=True, maintain_order=True).items()
    }
