"""Reports of sweeps: a result column over the varied parameters, and the table of configurations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from headstack._native import InputError, version
from headstack.io.columns import Column, Figures, Words
from headstack.report.figures import Axis, Bars, Figure, Grid, Lines, Report, Section, Series, Table
from headstack.report.looks import DASHES
from headstack.results.intervals.conformal import format_levels
from headstack.results.table import between
from headstack.results.words import format_significant, number, with_error, with_says, words_of

if TYPE_CHECKING:
    from headstack.simulation.swept import SweptRuns

LINES_MAX = 24
"""Maximum number of lines in a figure; more cannot be distinguished."""
CELLS_MAX = 40
"""Maximum number of rows or columns of a map."""
LABELS = {
    "iops": "Throughput (IOPS)",
    "mb_per_s": "Throughput (MB/s)",
    "mean_ms": "Mean response time (ms)",
    "p50_ms": "Median response time (ms)",
    "p99_ms": "99th percentile (ms)",
    "depth": "Requests outstanding",
}
ROWS_MAX = 1000
"""Maximum number of table rows in a report."""
MODEL_ERROR_ROWS_MAX = 40
"""Number of rows shown with the model's error, which requires additional runs for a calibrated model."""


def figure(swept: SweptRuns, column: str, where: str | None = None) -> Lines | Bars:
    """Returns a column over the parameter with most values, with a line for each combination of the others; bars if no
    number was varied.
    """
    if not swept.is_grid:
        raise InputError("sampled points do not form lines; sweep a grid, or use the table", key="plot")
    rows, over, lines = _lines_of(swept, column, where)
    if len(lines) > LINES_MAX:
        raise InputError(f"{_too_many(lines)}; vary less, or state where", key="plot")
    varied = swept.varied
    y = axis_of(column)
    title = f"{_column_title(column)} over {_column_title(over).lower()}"
    most, least = max(rows, key=lambda row: row[column]), min(rows, key=lambda row: row[column])
    extremes = [f"{_value(row, column)} ({_place(row, varied)})" for row in (least, most)]
    says = f"{_column_title(column)} from {' to '.join(extremes)}." if most is not least else ""
    note = f"Predicted by the model of headstack {version()}" + (f", where {where}." if where else ".")
    if isinstance(rows[0][over], int | float):
        counts = Counter(str(runs[0]["system"]) for runs in lines.values())
        # If there are several systems with no more lines than there are dashes, each system has one colour.
        has_colours = len(counts) > 1 and max(counts.values()) <= DASHES
        series = [
            _line(name, sorted(runs, key=lambda row: row[over]), over, column, str(runs[0]["system"]) * has_colours)
            for name, runs in lines.items()
        ]
        return Lines("sweep", title, axis_of(over), y, series, note, says=says)
    groups = list(dict.fromkeys(str(row[over]) for row in rows))
    bars = [
        Series(name, (), [next((row[column] for row in runs if str(row[over]) == group), None) for group in groups])
        for name, runs in lines.items()
    ]
    return Bars("sweep", title, y, groups, bars, note, says=says)


Configurations = list[dict[str, Any]]


def _lines_of(
    swept: SweptRuns, column: str, where: str | None
) -> tuple[Configurations, str, dict[str, Configurations]]:
    """Returns the configurations with a result, the parameter with most values, and the lines over it by name."""
    rows = [row for row in swept.rows(where=where) if row[column] is not None]
    if not rows:
        raise InputError(f"no configuration has a {column}" + (f" where {where}" if where else ""), key="plot")
    if not all(isinstance(row[column], int | float) for row in rows):
        raise InputError(
            f"{column} is not numeric; name a numeric column with --best or --min, such as mean_ms", key="plot"
        )
    varied = swept.varied
    numbers = [name for name in varied if isinstance(rows[0][name], int | float)]
    over = max(numbers, key=lambda name: len({row[name] for row in rows}), default=None)
    over = over or (varied[-1] if varied else "system")
    others = [name for name in varied if name != over]
    lines: dict[str, Configurations] = {}
    for row in rows:
        lines.setdefault(", ".join(_format_label(name, row[name]) for name in others) or column, []).append(row)
    return rows, over, lines


def _too_many(lines: Mapping[str, Configurations]) -> str:
    return f"{len(lines)} lines are too many, {LINES_MAX} at most"


def axis_of(column: str) -> Axis:
    """Returns the axis of a column, with its unit."""
    if column in LABELS:
        return Axis(LABELS[column])
    words, unit = words_of(column)
    return Axis(f"{words[:1].upper()}{words[1:]} ({unit})" if unit else f"{words[:1].upper()}{words[1:]}")


def _column_title(column: str) -> str:
    return axis_of(column).label.partition(" (")[0]


def _value(row: Mapping[str, Any], column: str) -> str:
    """Formats a result with its unit."""
    unit = axis_of(column).label.partition(" (")[2].removesuffix(")")
    return f"{number(row[column])} {unit}".rstrip()


def _place(row: Mapping[str, Any], varied: Sequence[str]) -> str:
    return ", ".join(_format_label(name, row[name]) for name in varied)


def heat_map(swept: SweptRuns, column: str, where: str | None = None) -> Figure | None:
    """Returns a map of a column over two varied parameters; ``None`` if the number of parameters is not two, or there
    are too many cells to read."""
    rows = swept.rows(where=where)
    if len(swept.varied) != 2 or not all(isinstance(row[column], int | float | None) for row in rows):
        return None
    down, across = swept.varied
    downs, acrosses = (list(dict.fromkeys(row[name] for row in rows)) for name in (down, across))
    if not 1 < len(downs) <= CELLS_MAX or not 1 < len(acrosses) <= CELLS_MAX:
        return None
    values = {(row[down], row[across]): row[column] for row in rows}
    cells = [[values.get((row_value, column_value)) for column_value in acrosses] for row_value in downs]
    names = [[value if isinstance(value, str) else f"{value:,g}" for value in of] for of in (downs, acrosses)]
    unit = axis_of(column).label
    return with_says(
        Grid("map", f"{unit} of each pair", names[0], axis_of(down).label, names[1], axis_of(across).label, cells, unit)
    )


def _format_label(name: str, value: Any) -> str:
    if name == "system":
        return str(value)
    words, unit = words_of(name)
    return f"{words} {value if isinstance(value, str) else f'{value:,g}'} {unit}".rstrip()


def _line(name: str, rows: Sequence[Mapping[str, Any]], over: str, column: str, thing: str) -> Series:
    widths = [row["half_width_ms"] if column == "mean_ms" else None for row in rows]
    ends: list[list[float | None]] = [
        [None if width is None else row[column] + sign * width for row, width in zip(rows, widths, strict=True)]
        for sign in (-1, 1)
    ]
    is_known = any(width is not None for width in widths)
    low, high = ends if is_known else ((), ())
    return Series(name, [row[over] for row in rows], [row[column] for row in rows], low=low, high=high, thing=thing)


def report_of(swept: SweptRuns, column: str, descending: bool, where: str | None = None) -> Report:
    """Returns the figure, if the points form a grid, and the configurations sorted by the column."""
    drawn: list[Figure] = []
    remark = "Nothing is drawn: sampled points do not form lines."
    _, _, lines = _lines_of(swept, column, where)
    if swept.is_grid:
        is_drawn = len(lines) <= LINES_MAX
        drawn, remark = ([figure(swept, column, where)], "") if is_drawn else ([], f"Not drawn: {_too_many(lines)}.")
    grid = heat_map(swept, column, where) if swept.is_grid else None
    drawn += [grid] if grid is not None else []
    first = [
        row | between(row) for row in swept.rows_with_model_errors(column, descending, MODEL_ERROR_ROWS_MAX, where)
    ]
    rows = [*first, *swept.rows(column, descending, ROWS_MAX, where)[MODEL_ERROR_ROWS_MAX:]]
    paragraphs = [headline(swept, rows[0], column, descending, where)] if rows else []
    paragraphs += [f"{len(swept):,} configurations, {swept.impossible:,} of them impossible."]
    paragraphs += [f"Shown: where {where}."] if where else []
    paragraphs += [f"{note[:1].upper()}{note[1:]}." for note in swept.notes]
    paragraphs += [f"Impossible: {count:,}: {why}." for why, count in swept.reasons()]
    title = f"Sweep of {', '.join(swept.systems)}"
    sections = [Section("Configurations", "", [*drawn, _table(swept, rows, column)])]
    return Report(
        title,
        "",
        "\n\n".join(paragraphs),
        sections,
        version=version(),
        remarks=remark,
        inputs=partial(swept.inputs_of_runs, where),
    )


def headline(swept: SweptRuns, first: Mapping[str, Any], column: str, descending: bool, where: str | None) -> str:
    """States which configuration has the largest or smallest value, with its interval, and the speedup over the other
    extreme.
    """
    (last,) = swept.rows(column, not descending, 1, where)
    low, high = (first.get(name) for name in _model(column))
    unit = axis_of(column).label.partition(" (")[2].removesuffix(")")
    width = _half_width(first, column)
    value = with_error(first[column], width) if width and low is None else number(first[column])
    level = f"{format_levels([first.get('model_level')])} prediction interval"
    interval = "" if low is None or high is None else f" ({number(low)} to {number(high)}, {level})"
    sentence = (
        f"{'Most' if descending else 'Least'} {_column_title(column).lower()}: {f'{value} {unit}'.rstrip()}{interval}"
    )
    sentence += f" at {_place(first, swept.varied)}"
    more, less = (first, last) if first[column] >= last[column] else (last, first)
    if not less[column] or not more[column] > less[column]:
        return f"{sentence}."
    times, widths = more[column] / less[column], [_half_width(row, column) for row in (more, less)]
    # Both errors are sampling errors, and independent.
    error = times * math.hypot(*((width or 0) / row[column] for width, row in zip(widths, (more, less), strict=True)))
    gain = with_error(times, error) if all(widths) else number(times)
    other = f"{_value(last, column)} at {_place(last, swept.varied)}"
    return (
        f"{sentence}: {gain} times the least, {other}."
        if descending
        else f"{sentence}; the most, {other}, is {gain} times it."
    )


def _error(row: Mapping[str, Any], column: str) -> float | None:
    """Returns the half-width of the interval that limits the significant digits: the model's error if known."""
    low, high = (row.get(name) for name in _model(column))
    return (high - low) / 2 if low is not None and high is not None else _half_width(row, column)


def _model(column: str) -> tuple[str, str]:
    """Returns the columns of the ends of the model's error interval."""
    unit = "_ms" * column.endswith("_ms")
    low, high = (f"{column.removesuffix('_ms')}_model_{end}{unit}" for end in ("low", "high"))
    return low, high


def _half_width(row: Mapping[str, Any], column: str) -> float | None:
    """Returns the 95 % confidence half-width of a mean, and of the throughput computed from it."""
    width = row["half_width_ms"]
    if width is None or column not in ("mean_ms", "iops", "mb_per_s") or not row["mean_ms"]:
        return None
    return float(width if column == "mean_ms" else width * row[column] / row["mean_ms"])


# The table, on the page and on a terminal.


def configuration_columns(
    swept: SweptRuns, rows: Sequence[Mapping[str, Any]], column: str
) -> tuple[dict[str, Column], list[list[str]]]:
    """Returns the columns of configurations by name and their cells as text, with the significant digits. Empty columns
    are left out."""
    varied = {
        name: Column(_heading(name), is_text=not isinstance(rows[0][name], int | float), rank=0)
        for name in swept.varied
    }
    others = {column: Figures(_heading(column), 0), **COLUMNS}
    headings = {
        name: heading
        for name, heading in {**others, **varied}.items()
        if name in varied or any(row.get(name) is not None for row in rows)
    }
    is_one = len({row["capacity_gb"] for row in rows}) == 1 and "capacity_gb" not in (*varied, column)
    order = [*varied, *(name for name in COLUMNS if name in headings and name not in varied)]
    order += [column] * (column in headings and column not in order)
    kept = {name: headings[name] for name in order if not (is_one and name == "capacity_gb")}
    levels = format_levels(row.get("model_level") for row in rows)
    kept |= {name: Figures(f"{word}\n{levels}", kept[name].rank) for name, word in MODELS.items() if name in kept}
    return kept, [[_text(row, name) for name in kept] for row in rows]


def _heading(column: str) -> str:
    """Returns the heading of a table column, with its unit on a line of its own."""
    if column in COLUMNS:
        return COLUMNS[column].heading
    words, unit = words_of(column)
    return f"{words}\n{unit}".rstrip()


def _text(row: Mapping[str, Any], name: str) -> str:
    value, width = row.get(name), _error(row, name)
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "half_width_ms":
        return f"± {value:.1g}" if value < 10 else f"± {value:,.0f}"
    if name == "utilization_percent":
        return f"{value:.0f}"
    return format_significant(value, width) if width else f"{value:,}" if isinstance(value, int) else number(value)


def _table(swept: SweptRuns, rows: Sequence[Mapping[str, Any]], column: str) -> Table:
    if not rows:
        return Table("configurations", "Configurations", [axis_of(name).label for name in swept.varied], [])
    columns, texts = configuration_columns(swept, rows, column)
    cells = [[row.get(name) for name in columns] for row in rows]
    heads = [heading.title for heading in columns.values()]
    return Table("configurations", "Configurations", heads, cells, texts=texts)


COLUMNS: dict[str, Column] = {
    "capacity_gb": Figures("capacity\nGB", 4),
    "iops": Figures("IOPS", 0),
    "iops_model": Figures("IOPS\n90 %", 1),
    "mb_per_s": Figures("MB/s", 3),
    "mean_ms": Figures("mean\nms", 0),
    "mean_model": Figures("mean\n90 %", 2),
    "half_width_ms": Figures("mean\n±", 5),
    "p50_ms": Figures("p50\nms", 6),
    "p99_ms": Figures("p99\nms", 1),
    "utilization_percent": Figures("util\n%", 4),
    "bottleneck": Words("bottleneck", 3),
}
"""Result columns after the varied parameters, as in the table of runs."""
MODELS = {"iops_model": "IOPS", "mean_model": "mean"}
"""Columns with prediction intervals, and their headings above the level."""
