"""Every picture and page is made of whatever a figure holds: nothing, one value, the same value, zeros, and values
that are not finite."""

from __future__ import annotations

import io
import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import pytest

from headstack.report.draw import draw
from headstack.report.figures import Axis, Bars, Figure, Grid, Heat, Limit, Lines, Report, Section, Series, Table
from headstack.report.html import _decide_looks, _page_data
from headstack.report.markdown import to_markdown
from headstack.report.pages import as_json
from headstack.report.plain import body_of

INF, NAN = math.inf, math.nan
VALUES: dict[str, list[float | None]] = {
    "empty": [],
    "single": [3.0],
    "single zero": [0.0],
    "constant": [5.0, 5.0, 5.0],
    "zeros": [0.0, 0.0, 0.0],
    "negative": [-3.0, -2.0, -1.0],
    "from zero": [0.0, 1.0, 1000.0],
    "infinite": [1.0, INF, 3.0],
    "all infinite": [INF, -INF, INF],
    "nan": [1.0, NAN, 3.0],
    "all nan": [NAN, NAN, NAN],
    "unknown": [None, None, None],
    "tiny": [1e-300, 1e-200, 1e-12],
    "huge": [1.0, 1e150, 1e300],
}
LOGS = (None, True, False)


def checked(figure: Figure, *, picture: bool = True) -> Report:
    """Makes the page with and without its script, the ticket and the picture; returns the report as it is drawn."""
    report = Report("title", "question?", "summary", (Section("", "", (figure,)),))
    decided = _decide_looks(report)
    for is_inline in (True, False):
        shown = body_of(decided, is_inline)
        assert "nan" not in shown.lower().replace("finance", "")
        assert "inf" not in shown.lower()
        as_json(_page_data(decided, is_inline))
    to_markdown(report)
    if picture:
        with warnings.catch_warnings():
            # matplotlib warns of ends that no number is beyond.
            warnings.simplefilter("ignore")
            draw(figure).savefig(io.BytesIO(), dpi=20)
    return decided


def series(name: str, x: Sequence[float | None], y: Sequence[float | None], **more: object) -> Series:
    count = min(len(x), len(y))
    return Series(name, list(x[:count]), list(y[:count]), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", VALUES)
def test_lines_of_any_values_are_drawn(name: str) -> None:
    values = VALUES[name]
    for other in VALUES.values():
        for log in LOGS:
            axes = Axis("X (ms)", log=log), Axis("Y (ms)", log=log)
            for x, y in ((values, other), (other, values)):
                one = series("a", x, y)
                two = series("b", x, y, published=True)
                band = series("c", x, y)
                band = replace(band, low=band.y, high=band.y, p99=band.y, labels=["l"] * len(band.x))
                limits = [Limit(value, "limit") for value in values[:1] if value is not None]
                checked(Lines("f", "F", *axes, [one, two, band], limits=limits), picture=False)
    axes = Axis("X", log=True), Axis("Y", log=True)
    checked(Lines("f", "F", *axes, [series("a", values, values), series("b", values, values, published=True)]))
    steps = [float(n) for n in range(3)]
    marked = series("a", steps, values)
    ringed = next(((x, y) for x, y in zip(marked.x, marked.y, strict=True) if x is not None and y is not None), None)
    marked = replace(marked, marks=["open"] * len(marked.x), mark=ringed)
    checked(Lines("f", "F", Axis("X"), Axis("Y"), [marked]))


@pytest.mark.parametrize("name", VALUES)
def test_percentiles_of_any_values_are_drawn(name: str) -> None:
    percents = [50.0, 99.0, 100.0]
    checked(Lines("f", "F", Axis("%"), Axis("ms"), [series("a", percents, VALUES[name])], x_is_percentile=True))
    checked(Lines("f", "F", Axis("%"), Axis("ms"), [], x_is_percentile=True))


@pytest.mark.parametrize("name", VALUES)
def test_bars_of_any_values_are_drawn(name: str) -> None:
    values = VALUES[name]
    groups = [f"g{n}" for n, _ in enumerate(values)]
    for log, stacked in itertools.product(LOGS, (False, True)):
        two = [Series("a", (), values), Series("b", (), values[::-1], low=values, high=values, published=True)]
        checked(
            Bars("f", "F", Axis("Y (ms)", log=log), groups, two, stacked=stacked), picture=bool(log) and not stacked
        )
    checked(Bars("f", "F", Axis("Y", log=True), [], []))


@pytest.mark.parametrize("name", VALUES)
def test_grids_maps_and_tables_of_any_values_are_drawn(name: str) -> None:
    values = VALUES[name]
    columns = [f"c{n}" for n, _ in enumerate(values)]
    for signed in (False, True):
        grid = Grid("f", "F", ["r"], "row", columns, "column", [values], "ms", published=[values], signed=signed)
        checked(grid, picture=signed)
    checked(Table("f", "F", columns, [values, values]), picture=name in ("empty", "nan"))
    checked(Table("f", "F", columns, []), picture=False)
    cells = [[value or 0.0 for value in values]] * 2
    for log in LOGS:
        for ends in ((0.0, 1.0), (0.0, 0.0), (1.0, 1.0), (1.0, 1e6), (NAN, INF)):
            axes = Axis("X", log=log), ends, Axis("Y", log=log), ends
            checked(Heat("f", "F", *axes, cells, "requests"), picture=bool(log) and ends == (0.0, 1.0))
    checked(Heat("f", "F", Axis("X"), (0.0, 1.0), Axis("Y"), (0.0, 1.0), [], "requests"))


def test_a_figure_says_how_many_values_it_lacks() -> None:
    lines = Lines("f", "F", Axis("X"), Axis("Y"), [Series("a", [1.0, 2.0, 3.0], [1.0, NAN, INF])], note="Measured.")
    (drawn,) = checked(lines).sections[0].figures
    assert isinstance(drawn, Lines)
    assert drawn.note == "Measured. 2 values are not finite and left out."
    assert drawn.series[0].y == [1.0, None, None]
    assert checked(replace(lines, series=[Series("a", [1.0], [2.0])])).sections[0].figures[0].note == "Measured."


def test_a_logarithmic_axis_has_no_place_for_zeros() -> None:
    both = Lines("f", "F", Axis("X", log=True), Axis("Y", log=True), [Series("a", [0.0, 1.0, 2.0], [5.0, 0.0, 7.0])])
    (drawn,) = checked(both).sections[0].figures
    assert isinstance(drawn, Lines)
    assert (drawn.series[0].x, drawn.series[0].y) == ([1.0, 2.0], [None, 7.0])
    (flat,) = checked(replace(both, series=[Series("a", [0.0], [0.0])])).sections[0].figures
    assert isinstance(flat, Lines)
    assert (flat.x.log, flat.y.log) == (False, False)
