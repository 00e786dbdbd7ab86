"""The reports of sweeps: a column of theirs over what was varied, and the configurations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headstack._native import InputError, version
from headstack.report.figures import Axis, Bars, Lines, Report, Section, Series, Table

if TYPE_CHECKING:
    from headstack.sweeps import Sweep

LINES_MAX = 24
"""More lines than this tell nothing."""
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
    title = f"{column} over {over}"
    note = f"Predicted by the model of headstack {version()}" + (f", where {where}." if where else ".")
    if numbers:
        series = [_line(name, sorted(found, key=lambda row: row[over]), over, column) for name, found in lines.items()]
        return Lines("sweep", title, Axis(over), Axis(column), series, note)
    groups = list(dict.fromkeys(str(row[over]) for row in rows))
    bars = [
        Series(name, (), [next((row[column] for row in found if str(row[over]) == group), None) for group in groups])
        for name, found in lines.items()
    ]
    return Bars("sweep", title, Axis(column), groups, bars, note)


def _told(name: str, value: Any) -> str:
    if name == "system":
        return str(value)
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _line(name: str, rows: Sequence[dict[str, Any]], over: str, column: str) -> Series:
    return Series(name, [row[over] for row in rows], [row[column] for row in rows])


def report_of(swept: Sweep, column: str, descending: bool, where: str | None = None) -> Report:
    """The figure, where the points lie on lines, and the configurations, those first that have most or least."""
    drawn = [figure(swept, column, where)] if swept.is_grid else []
    rows = swept.rows(column, descending, ROWS_MAX, where)
    names = [*swept.varied, *(name for name in COLUMNS if name not in swept.varied)]
    names += [column] if column not in names else []
    table = Table("configurations", "Configurations", names, [[row[name] for name in names] for row in rows])
    said = [f"{len(swept):,} configurations, {swept.impossible:,} of them impossible."]
    said += [f"Shown: where {where}."] if where else []
    said += [f"Impossible: {count:,}: {why}." for why, count in swept.reasons()]
    title = f"Sweep of {', '.join(swept.systems)}"
    return Report(title, "", "\n\n".join(said), [Section("Configurations", "", [*drawn, table])], version=version())


COLUMNS = ("system", "capacity_gb", "iops", "mb_per_s", "mean_ms", "half_width_ms", "p50_ms", "p99_ms", "bottleneck")
"""Of the table in a report, beside what was varied."""
