"""``Collection``, the data of collected fio results: loads, logs and their figures."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headstack.io import tables
from headstack.io.columns import Column, Figures, Names, Words, format_repr
from headstack.io.stored import Stored
from headstack.io.tables import Tabular
from headstack.measurement.fio.loads import FIELDS, Load
from headstack.measurement.fio.logs import Log

STORED = Stored("fio results")


@dataclass(frozen=True, repr=False)
class Collection(Tabular):
    """Collected results and logs of fio, with their figures. ``Collected`` adds pictures and reports."""

    name: str
    loads: tuple[Load, ...]
    logs: tuple[Log, ...]
    bad: tuple[str, ...]
    """Files that could not be read, each with the reason."""

    fields = FIELDS

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Returns a row for each result."""
        return self.figures()

    def __len__(self) -> int:
        return len(self.loads)

    def __iter__(self) -> Iterator[Load]:
        return iter(self.loads)

    def __repr__(self) -> str:
        return format_repr(*self.shown(), self.headline, "to_csv has them")

    @cached_property
    def headline(self) -> str:
        """A sentence with the numbers of results, logs and unreadable files, and the maximum IOPS."""
        files = len({load.row["source"] for load in self.loads})
        parts = [f"{len(self.loads):,} results from {files:,} file{'s' * (files != 1)}"] if self.loads else []
        parts += [f"{len(self.logs):,} log{'s' * (len(self.logs) != 1)}"] if self.logs else []
        parts += [f"{len(self.bad):,} could not be read"] if self.bad else []
        best = max(self.loads, key=lambda load: float(load.row["iops"]), default=None)
        most = "" if best is None else f" The maximum is {best.row['iops']:,.0f} IOPS: {best.name}."
        return f"{', '.join(parts)}.{most}"

    def shown(self) -> tuple[list[Column], list[list[str]]]:
        """Returns the columns, and the cells as text."""
        columns = [
            Words("folder", 4),
            Names("load"),
            Words("job", 5),
            Figures("IOPS", 0),
            Figures("MB/s", 2),
            Figures("mean\nms", 0),
            Figures("p50\nms", 3),
            Figures("p99\nms", 1),
            Figures("p99.9\nms", 3),
        ]
        rows = []
        for load in self.loads:
            row = load.row
            times = [row[name] for name in ("mean_ms", "p50_ms", "p99_ms", "p999_ms")]
            cells = [
                f"{row['iops']:,.0f}",
                f"{row['mb_per_s']:,.1f}",
                *("" if t is None else f"{t:,.3f}" for t in times),
            ]
            rows.append([row["folder"], load.name, row["jobname"] or "", *cells])
        return columns, rows

    def figures(self) -> list[dict[str, object]]:
        """Returns a row for each result, by the names of the columns."""
        return [dict(load.row) for load in self.loads]

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns everything except the logs as one JSON object, with percentiles and bins."""
        loads = [
            load.row
            | {
                "percentiles_ms": {f"{percent:g}": ms for percent, ms in load.latency.percentiles.items()},
                "bins_ms": {f"{middle:.6g}": count for middle, count in load.latency.bins.items()},
            }
            for load in self.loads
        ]
        return tables.to_json({**STORED.head, "loads": loads, "bad": self.bad}, path)
