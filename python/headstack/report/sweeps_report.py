"""The reports of sweeps: a column of theirs over what was varied, and the configurations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from headstack._native import InputError, version
from headstack.report.figures import Axis, Bars, Figure, Grid, Lines, Report, Section, Series, Table
from headstack.report.looks import DASHES
from headstack.report.words import number

if TYPE_CHECKING:
    from headstack.sweeps import Sweep

LINES_MAX = 24
"""More lines than this tell nothing."""
CELLS_MAX = 40
"""Rows, or columns, of a map."""
LABELS = {
    "iops": "Throughput (IO/s)",
    "mb_per_s": "Throughput (MB/s)",
    "mean_ms": "Mean response time (ms)",
    "p50_ms": "Median response time (ms)",
    "p99_ms": "99th percentile (ms)",
    "depth": "Requests outstanding",
}
UNITS = re.compile(r"_(ms|us|s|rpm|gb|kib|bytes|percent|per_s)$")
ROWS_MAX = 1000
"""Of the table in a report."""


def figure(swept: Sweep, column: str, where: str | None = None) -> Lines | Bars:
    """A column over the numbers that were varied at most places, a line for each of the rest; bars where none was."""
    if not swept.is_grid:
        raise InputError("plot: points of a sample lie on no lines; sweep a grid, or take the table")
    rows = [row for row in swept.rows(where=where) if row[column] is not None]
    if not rows:
        raise InputError(f"plot: no configuration has a {column}" + (f" where {where}" if where else ""))
    if not all(isinstance(row[column], int | float) for row in rows):
        raise InputError(f"plot: {column} is not a figure; name one with --best or --min, such as mean_ms")
    varied = swept.varied
    numbers = [name for name in varied if isinstance(rows[0][name], int | float)]
    over = max(numbers, key=lambda name: len({row[name] for row in rows}), default=None)
    over = over or (varied[-1] if varied else "system")
    others = [name for name in varied if name != over]
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault(", ".join(_told(name, row[name]) for name in others) or column, []).append(row)
    if len(lines) > LINES_MAX:
        raise InputError(f"plot: {len(lines)} lines are too many, {LINES_MAX} at most; vary less, or state where")
    y = axis_of(column)
    title = f"{_what(column)} over {_what(over).lower()}"
    most, least = max(rows, key=lambda row: row[column]), min(rows, key=lambda row: row[column])
    told = [f"{_value(row, column)} ({_place(row, varied)})" for row in (least, most)]
    says = f"{_what(column)} from {' to '.join(told)}." if most is not least else ""
    note = f"Predicted by the model of headstack {version()}" + (f", where {where}." if where else ".")
    if numbers:
        counts = Counter(str(found[0]["system"]) for found in lines.values())
        # A system has one colour where there are several, each with no more lines than there are dashes.
        has_colours = len(counts) > 1 and max(counts.values()) <= DASHES
        series = [
            _line(name, sorted(found, key=lambda row: row[over]), over, column, str(found[0]["system"]) * has_colours)
            for name, found in lines.items()
        ]
        return Lines("sweep", title, axis_of(over), y, series, note, says=says)
    groups = list(dict.fromkeys(str(row[over]) for row in rows))
    bars = [
        Series(name, (), [next((row[column] for row in found if str(row[over]) == group), None) for group in groups])
        for name, found in lines.items()
    ]
    return Bars("sweep", title, y, groups, bars, note, says=says)


def axis_of(column: str) -> Axis:
    """The axis of a column, with its unit."""
    if column in LABELS:
        return Axis(LABELS[column])
    found = UNITS.search(column)
    return Axis(f"{column[: found.start()]} ({found[1]})" if found else column)


def _what(column: str) -> str:
    return axis_of(column).label.partition(" (")[0]


def _value(row: Mapping[str, Any], column: str) -> str:
    """A figure with its unit."""
    unit = axis_of(column).label.partition(" (")[2].removesuffix(")")
    return f"{number(row[column])} {unit}".rstrip()


def _place(row: Mapping[str, Any], varied: Sequence[str]) -> str:
    return ", ".join(_told(name, row[name]) for name in varied)


def heat_map(swept: Sweep, column: str, where: str | None = None) -> Grid | None:
    """A column over the two things that were varied, where two were; ``None`` where there were more, or too many
    cells to read."""
    rows = swept.rows(where=where)
    if len(swept.varied) != 2 or not all(isinstance(row[column], int | float | None) for row in rows):
        return None
    down, across = swept.varied
    downs, acrosses = (list(dict.fromkeys(row[name] for row in rows)) for name in (down, across))
    if not 1 < len(downs) <= CELLS_MAX or not 1 < len(acrosses) <= CELLS_MAX:
        return None
    values = {(row[down], row[across]): row[column] for row in rows}
    cells = [[values.get((one, other)) for other in acrosses] for one in downs]
    names = [[f"{value:g}" if isinstance(value, float) else str(value) for value in of] for of in (downs, acrosses)]
    unit = axis_of(column).label
    return Grid("map", f"{unit} of each pair", names[0], _label(down), names[1], _label(across), cells, unit)


def _label(name: str) -> str:
    return axis_of(name).label


def _told(name: str, value: Any) -> str:
    if name == "system":
        return str(value)
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _line(name: str, rows: Sequence[Mapping[str, Any]], over: str, column: str, thing: str) -> Series:
    widths = [row["half_width_ms"] if column == "mean_ms" else None for row in rows]
    ends: list[list[float | None]] = [
        [None if width is None else row[column] + sign * width for row, width in zip(rows, widths, strict=True)]
        for sign in (-1, 1)
    ]
    is_known = any(width is not None for width in widths)
    low, high = ends if is_known else ((), ())
    return Series(name, [row[over] for row in rows], [row[column] for row in rows], low=low, high=high, thing=thing)


def report_of(swept: Sweep, column: str, descending: bool, where: str | None = None) -> Report:
    """The figure, where the points lie on lines, and the configurations, those first that have most or least."""
    drawn: list[Figure] = [figure(swept, column, where)] if swept.is_grid else []
    grid = heat_map(swept, column, where) if swept.is_grid else None
    drawn += [grid] if grid is not None else []
    rows = swept.rows(column, descending, ROWS_MAX, where)
    names = [*swept.varied, *(name for name in COLUMNS if name not in swept.varied)]
    names += [column] if column not in names else []
    table = Table("configurations", "Configurations", names, [[row[name] for name in names] for row in rows])
    first = next((row for row in rows if row[column] is not None), None)
    best = "Most" if descending else "Least"
    headline = f"{best} {_what(column).lower()}: {{}} at {{}}."
    said = [headline.format(_value(first, column), _place(first, swept.varied))] if first else []
    said += [f"{len(swept):,} configurations, {swept.impossible:,} of them impossible."]
    said += [f"Shown: where {where}."] if where else []
    said += [f"Impossible: {count:,}: {why}." for why, count in swept.reasons()]
    title = f"Sweep of {', '.join(swept.systems)}"
    sections = [Section("Configurations", "", [*drawn, table])]
    return Report(title, "", "\n\n".join(said), sections, version=version(), asked=partial(swept.asked, where))


COLUMNS = ("system", "capacity_gb", "iops", "mb_per_s", "mean_ms", "half_width_ms", "p50_ms", "p99_ms", "bottleneck")
"""Of the table in a report, beside what was varied."""
