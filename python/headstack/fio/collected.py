"""Everything of fio's that files and folders hold: results, logs, and what could not be read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from headstack import tables
from headstack._native import InputError
from headstack.columns import Column, Figures, Names, Words, told
from headstack.fio.loads import FIELDS, Load, folder_of, loads_of
from headstack.fio.logs import Log, is_log
from headstack.fio.logs import read as read_log
from headstack.stored import Stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headstack.report.figures import Report

STORED = Stored("fio results")


@dataclass(frozen=True, repr=False)
class Collected:
    """What fio measured, as anybody's files have it."""

    name: str
    loads: tuple[Load, ...]
    logs: tuple[Log, ...]
    bad: tuple[str, ...]
    """Files that could not be read, each with why."""

    def __len__(self) -> int:
        return len(self.loads)

    def __iter__(self) -> Iterator[Load]:
        return iter(self.loads)

    def __repr__(self) -> str:
        return told(*self.shown(), self.headline, "to_csv has them")

    @cached_property
    def headline(self) -> str:
        """How much there is, in a sentence."""
        files = len({load.row["source"] for load in self.loads})
        parts = [f"{len(self.loads):,} results of {files:,} file{'s' * (files != 1)}"] if self.loads else []
        parts += [f"{len(self.logs):,} log{'s' * (len(self.logs) != 1)}"] if self.logs else []
        parts += [f"{len(self.bad):,} could not be read"] if self.bad else []
        best = max(self.loads, key=lambda load: float(load.row["iops"]), default=None)
        most = "" if best is None else f" The most is {best.row['iops']:,.0f} IO/s: {best.name}."
        return f"{', '.join(parts)}.{most}"

    def shown(self) -> tuple[list[Column], list[list[str]]]:
        """The columns, and the cells as text."""
        columns = [
            Words("folder", 4),
            Names("load"),
            Words("job", 5),
            Figures("IO/s", 0),
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
        """A row for each result, by the names of the columns."""
        return [dict(load.row) for load in self.loads]

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """The same as CSV."""
        return tables.to_csv([field.name for field in FIELDS], self.figures(), path)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Everything but the logs, as one JSON object, with percentiles and bins."""
        loads = [
            load.row
            | {
                "percentiles_ms": {f"{percent:g}": ms for percent, ms in load.latency.percentiles.items()},
                "bins_ms": {f"{middle:.6g}": count for middle, count in load.latency.bins.items()},
            }
            for load in self.loads
        ]
        return tables.written(json.dumps({**STORED.head, "loads": loads, "bad": self.bad}, indent=1) + "\n", path)

    def report(self) -> Report:
        """Everything as a report."""
        from headstack.report.fio_report import report_of

        return report_of(self)

    def pictures(self, folder: str | os.PathLike[str]) -> list[Figure]:
        """A picture of each figure of the report, in a folder. Needs the extra ``headstack[plot]``."""
        from headstack.report.draw import draw
        from headstack.report.figures import Table

        Path(folder).mkdir(parents=True, exist_ok=True)
        figures = [figure for section in self.report().sections for figure in section.figures]
        drawn = [figure for figure in figures if not isinstance(figure, Table)]
        return [draw(figure, Path(folder) / f"{figure.name}.png") for figure in drawn]


def fio_results(*sources: str | os.PathLike[str]) -> Collected:
    """What fio printed and logged, of any version from 2.0 on: files of its JSON, its logs, folders of both.

    A file that is named must be readable; of a folder, what cannot be read is named and left out. Raises
    ``InputError`` where nothing is left.

    >>> _ = open("w_bw.1.log", "w").write("500, 2000, 0, 0, 0\\n1000, 1000, 0, 0, 0\\n")
    >>> [log.unit for log in hs.fio_results("w_bw.1.log").logs]
    ['MB/s']
    """
    loads: list[Load] = []
    logs: list[Log] = []
    bad: list[str] = []
    for source in sources:
        if os.path.isdir(source):
            found, not_read = folder_of(source)
            loads += found
            bad += not_read
            for path in sorted(path for path in Path(source).rglob("*.log") if is_log(path)):
                try:
                    logs.append(read_log(path))
                except InputError as error:
                    bad.append(str(error))
        elif is_log(source):
            logs.append(read_log(source))
        else:
            loads += loads_of(source)
    name = ", ".join(os.fspath(source) for source in sources[:3]) + ("…" if len(sources) > 3 else "")
    if not loads and not logs:
        why = f": {'; '.join(bad[:3])}" if bad else ""
        raise InputError(f"{name}: no results or logs of fio are in there{why}")
    # Engines that wait leave empty logs of submission.
    return Collected(name, tuple(loads), tuple(log for log in logs if log.entries), tuple(bad))
