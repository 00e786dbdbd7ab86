"""Draws the figures of a study from the rows of queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from headstack.report.figures import Axis, Bars, Cell, Figure, Grid, Heat, Lines, Series, Shape, Table
from headstack.report.looks import COLOURS
from headstack.results.table import Row
from headstack.results.words import with_says
from headstack.studies.study import Study
from headstack.studies.tables import QueryResult, Tables

NEEDED = {
    "lines": ("x", "y", "series"),
    "bars": ("group", "series", "y"),
    "grid": ("row", "column", "value"),
    "heat": ("x", "y", "value"),
    "table": (),
}
"""Columns that the query of each kind must return."""


def draw(study: Study, number: int, tables: Tables) -> Figure:
    """Returns the figure of a picture. Raises ``InputError`` if its query fails or lacks a column."""
    picture, path = study.pictures[number], f"pictures[{number}]"
    result = tables.query(f"{path}.sql", picture["sql"])
    missing = [name for name in NEEDED[picture["kind"]] if name not in result.columns]
    if missing:
        raise study.error(f"{path}.sql", f"returns no column {missing[0]!r}, which pictures of this kind need")
    if not result.rows:
        raise study.error(f"{path}.sql", "the query returns no rows")
    try:
        return with_says(_drawn(picture, result))
    except ValueError as error:
        raise study.error(f"{path}.sql", str(error)) from None


def _drawn(picture: Mapping[str, Any], result: QueryResult) -> Figure:
    match picture["kind"]:
        case "lines":
            return _lines(picture, list(result.dicts()))
        case "bars":
            return _bars(picture, list(result.dicts()))
        case "grid":
            return _grid(picture, list(result.dicts()))
        case "heat":
            return _heat(picture, list(result.dicts()))
        case _:
            return table_of(picture["name"], picture["title"], result, picture["note"])


def table_of(name: str, title: str, result: QueryResult, note: str = "") -> Table:
    """Returns the rows of a query unchanged."""
    return Table(name, title, result.columns, [list(map(_cell, row)) for row in result.rows], note)


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, str | float | int | bool) else str(value)


def _lines(picture: Mapping[str, Any], rows: list[Row]) -> Lines:
    return Lines(
        name=picture["name"],
        title=picture["title"],
        x=Axis(picture["x_label"], "x" in picture["log"]),
        y=Axis(picture["y_label"], "y" in picture["log"]),
        series=[_line(name, published, points) for (name, published), points in _by_series(rows).items()],
        note=picture["note"],
        x_is_percentile=picture["percentiles"],
    )


def _line(name: str, published: bool, points: list[Row]) -> Series:
    marks = [(float(point["x"]), float(point["y"])) for point in points if point.get("mark")]
    return Series(
        name=name,
        x=_numbers(points, "x"),
        y=_numbers(points, "y"),
        labels=[str(point["label"] or "") for point in points] if "label" in points[0] else (),
        low=_ends(points, "low"),
        high=_ends(points, "high"),
        low_x=_ends(points, "low_x"),
        high_x=_ends(points, "high_x"),
        mark=marks[0] if marks else None,
        published=published,
        **_look(points[0]),
    )


def _numbers(points: list[Row], key: str) -> list[float | None]:
    return [None if point.get(key) is None else float(point[key]) for point in points]


def _ends(points: list[Row], key: str) -> list[float | None]:
    """Returns the ends of intervals; empty if no point has one."""
    ends = _numbers(points, key)
    return ends if any(end is not None for end in ends) else []


def _look(row: Row) -> dict[str, Any]:
    """Returns the look of a series, if its authors' is known."""
    colour, shape = row.get("colour"), row.get("shape")
    for value, allowed in ((colour, COLOURS), (shape, get_args(Shape))):
        if value is not None and value not in allowed:
            raise ValueError(f"{value!r} is unknown; allowed: {', '.join(allowed)}")
    return {"thing": str(row.get("thing") or ""), "colour": colour, "shape": shape, "dash": row.get("dash")}


def _by_series(rows: Iterable[Row]) -> dict[tuple[str, bool], list[Row]]:
    """Returns the rows of each series, in order, with published ones separate."""
    series: dict[tuple[str, bool], list[Row]] = {}
    for row in rows:
        series.setdefault((str(row["series"]), bool(row.get("published"))), []).append(row)
    return series


def _bars(picture: Mapping[str, Any], rows: list[Row]) -> Bars:
    groups = list(dict.fromkeys(str(row["group"]) for row in rows))
    series = []
    for (name, published), points in _by_series(rows).items():
        by_group = {str(point["group"]): point for point in points}
        rows_of = [by_group.get(group, {}) for group in groups]
        series.append(
            Series(
                name,
                x=(),
                y=_numbers(rows_of, "y"),
                low=_ends(rows_of, "low"),
                high=_ends(rows_of, "high"),
                published=published,
                **_look(points[0]),
            )
        )
    return Bars(
        name=picture["name"],
        title=picture["title"],
        y=Axis(picture["y_label"], "y" in picture["log"]),
        groups=groups,
        series=series,
        note=picture["note"],
    )


def _grid(picture: Mapping[str, Any], rows: list[Row]) -> Grid:
    down = list(dict.fromkeys(str(row["row"]) for row in rows))
    across = list(dict.fromkeys(str(row["column"]) for row in rows))

    def cells(key: str) -> list[list[float | None]]:
        values = {(str(row["row"]), str(row["column"])): row[key] for row in rows}
        return [[values.get((row_name, column_name)) for column_name in across] for row_name in down]

    return Grid(
        name=picture["name"],
        title=picture["title"],
        rows=down,
        row_label=picture["y_label"],
        columns=across,
        column_label=picture["x_label"],
        values=cells("value"),
        unit=picture["unit"],
        published=cells("published") if "published" in rows[0] else (),
        signed=picture["signed"],
        note=picture["note"],
    )


def _heat(picture: Mapping[str, Any], rows: list[Row]) -> Heat:
    """Returns cells from the places that occur, which are evenly spaced."""
    xs, ys = (sorted({float(row[key]) for row in rows}) for key in ("x", "y"))
    values = {(float(row["x"]), float(row["y"])): float(row["value"]) for row in rows}
    return Heat(
        name=picture["name"],
        title=picture["title"],
        x=Axis(picture["x_label"]),
        x_range=_range(xs),
        y=Axis(picture["y_label"]),
        y_range=_range(ys),
        values=[[values.get((x, y), 0.0) for x in xs] for y in ys],
        unit=picture["unit"],
        note=picture["note"],
    )


def _range(places: list[float]) -> tuple[float, float]:
    """Returns the range from the first place to the end of the last cell."""
    step = (places[-1] - places[0]) / (len(places) - 1) if len(places) > 1 else 1.0
    return places[0], places[-1] + step
