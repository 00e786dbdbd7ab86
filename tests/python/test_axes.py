"""Axes that are left to the data: their scale and unit, in pictures and on the page; and labels that do not collide."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace

import pytest

from conftest import CHEETAH
from headstack import curve
from headstack.report.axes import with_axes
from headstack.report.draw import draw
from headstack.report.figures import Axis, Bars, Limit, Lines, Report, Section, Series
from headstack.report.html import to_html
from headstack.report.pages import FOLDER

TIME = Axis("Response time (ms)")


def lines(*values: float | None, of: Axis = TIME) -> Lines:
    return Lines("f", "F", Axis("IOPS"), of, [Series("disk", [1, *range(2, len(values) + 1)], values)])


def test_an_axis_exceeds_a_decade_or_not() -> None:
    assert [with_axes(lines(5, last)).y.log for last in (50, 50.1)] == [False, True]  # type: ignore[union-attr]
    assert not with_axes(lines(0, 5, 1000)).y.log  # type: ignore[union-attr]
    for stated in (True, False):
        decided = with_axes(lines(5, 6, 1000, of=Axis("ms", log=stated)))
        assert isinstance(decided, Lines)
        assert (decided.y.log, decided.y.switch) == (stated, False)
    band = replace(lines(5, 6), series=[Series("disk", [1, 2], [5, 6], low=[0.5, 5.5], high=[6, 7])])
    assert with_axes(band).y.log  # type: ignore[union-attr]
    assert with_axes(replace(lines(5, 6), limits=[Limit(60, "limit")])).y.log  # type: ignore[union-attr]


def test_parts_of_a_whole_stay_linear() -> None:
    bars = Bars("b", "B", TIME, ["g", "h"], [Series("a", (), [3, 3000])])
    drawn = [with_axes(bars), with_axes(replace(bars, stacked=True))]
    assert [one.y.log for one in drawn if isinstance(one, Bars)] == [True, False]
    assert [draw(one).axes[0].get_yscale() for one in drawn] == ["log", "linear"]


def test_microseconds_where_all_times_are_short() -> None:
    series = Series("ssd", [1, 2], [0.097, 0.1], low=[0.09, None], high=[0.1, None], p99=[0.3, 2.0], mark=(1, 0.097))
    short = with_axes(replace(lines(), series=[series], limits=[Limit(1.5, "limit 1.5 ms")]))
    assert isinstance(short, Lines)
    (one,) = short.series
    assert short.y.label == "Response time (µs)"
    assert (one.y, one.low, one.high, one.p99, one.mark) == ([97, 100], [90, None], [100, None], [300, 2000], (1, 97))
    assert short.limits[0].value == 1500
    # One unit an axis: a disk beside it is in milliseconds, and so is the drive.
    both = replace(lines(), series=[series, Series("disk", [1], [5.2])])
    assert with_axes(both).y.label == TIME.label  # type: ignore[union-attr]
    assert with_axes(both).series[0].y == [0.097, 0.1]  # type: ignore[union-attr]


@pytest.mark.skipif(not (FOLDER / "bundle.js").exists(), reason="the page is not built: make web")
def test_the_page_is_told_what_pictures_show() -> None:
    figure = lines(0.1, 0.2, 1.5)
    told = re.search(r'id="report">(.*?)</script>', to_html(Report("R", "", "", [Section("S", "", [figure])])))
    assert told is not None
    axis = json.loads(told[1])["report"]["sections"][0]["figures"][0]["y"]
    assert axis == {"label": "Response time (µs)", "log": True, "switch": True}
    drawn = draw(figure).axes[0]
    assert (drawn.get_ylabel(), drawn.get_yscale()) == (axis["label"], "log")


def test_a_saturation_curve_has_its_99th_percentile_and_a_system_its_colour() -> None:
    results = curve([CHEETAH, "970-evo-1tb"], depth=[1, 4], requests=1000)
    figures = {figure.name: figure for section in results.report().sections for figure in section.figures}
    saturation, percentiles = figures["saturation"], figures["percentiles"]
    assert isinstance(saturation, Lines)
    assert isinstance(percentiles, Lines)
    assert [list(one.p99) for one in saturation.series] == [
        [results[n]["p99_ms"] for n in runs] for runs in results.curves().values()
    ]
    assert {one.thing for one in saturation.series} == {one.thing for one in percentiles.series} == {*results.curves()}
    axes = draw(saturation).axes[0]
    tails = [line for line in axes.lines if list(line.get_ydata()) == saturation.series[0].p99]  # type: ignore[arg-type]
    assert [line.get_linewidth() < 1 for line in tails] == [True]


def test_labels_lie_within_the_axes_and_not_over_each_other() -> None:
    crowd = [
        Series(f"s{n}", [1, 1.01, 1.02], [5 + n / 50, 5.1 + n / 50, 9], labels=["128", "256", "512"]) for n in range(6)
    ]
    figure = draw(replace(lines(), series=crowd))
    figure.draw_without_rendering()
    axes = figure.axes[0]
    places = [text.get_window_extent() for text in axes.texts]
    assert 3 <= len(places) < 18
    assert not any(one.overlaps(other) for one, other in itertools.combinations(places, 2))
    assert all(place.x0 >= axes.get_window_extent().x0 for place in places)
