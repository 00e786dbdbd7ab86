"""The pictures and the page of a choice: every point, its mark, the limit, and the parts of prices."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from choices import ALL, BEST, CLOUD, FRONTIER, NOTHING, OPEN, PLAIN, RUNNERS_UP, SLOW, STUCK, WATTS
from conftest import slow_but
from headstack._native import InputError
from headstack.choice import report as choice_report
from headstack.choice.answer import Answer, Choice, Part
from headstack.choice.report import cost_figure, deciding, frontier_figure, parts_figure, report_of
from headstack.report.axes import with_axes
from headstack.report.figures import Axis, Bars, Limit, Lines, Series
from headstack.report.html import write_html

pytest.importorskip("matplotlib")
from headstack.report.draw import draw


def cost(answer: Answer) -> Lines:
    figure = cost_figure(answer)
    assert figure is not None
    return figure


def parts(answer: Answer) -> Bars:
    figure = parts_figure(answer)
    assert figure is not None
    return figure


def points(figure: Lines) -> dict[str, dict[str, Any]]:
    """What is drawn, by the name of the system."""
    return {
        name: {
            "at": (one.x[n], one.y[n]),
            "mark": one.marks[n],
            "label": one.labels[n],
            "ends": (one.low[n], one.high[n]) if one.low else None,
            "group": one.name,
        }
        for one in figure.series
        for n, name in enumerate(one.names)
    }


def test_all_that_were_simulated_are_points_with_their_marks() -> None:
    figure = cost(PLAIN)
    found = points(figure)
    assert set(found) == {one.name for one in PLAIN.looked_at} - {STUCK.name}
    assert found[BEST.name] == {
        "at": (3210, 17.23),
        "mark": "full",
        "label": "1",
        "ends": (16.8, 17.9),
        "group": "exos-x18-18tb raid6",
    }
    assert (found[OPEN.name]["mark"], found[OPEN.name]["label"]) == ("open", "")
    assert found[OPEN.name]["ends"] == (18.9, 21.1)
    assert (found[SLOW.name]["mark"], found[SLOW.name]["ends"]) == ("cross", (None, None))
    assert [mark for mark, _ in figure.key] == ["full", "open", "cross"]
    assert figure.limits == [Limit(20.0, "limit 20 ms")]
    assert "Not drawn: 1 system whose queues grow" in figure.note
    assert "Prices of 2025-11 to 2026-01-15" in figure.note


def log_of(answer: Answer) -> tuple[bool | None, bool | None]:
    """Whether the axes of the figure are logarithmic by its data."""
    drawn = with_axes(cost(answer))
    assert isinstance(drawn, Lines)
    return drawn.x.log, drawn.y.log


def test_an_axis_is_logarithmic_where_a_decade_is_exceeded() -> None:
    figure = cost(PLAIN)
    assert (figure.x.label, figure.y.label) == ("Price ($)", "p99 (ms)")
    assert log_of(PLAIN) == (False, True)
    near = replace(PLAIN, runners_up=RUNNERS_UP[:4], looked_at=(SLOW, BEST))
    assert not log_of(near)[1]
    dear = replace(near, looked_at=(BEST, replace(SLOW, cost=40_000.0)))
    assert log_of(dear)[0]


def test_the_limit_that_decides_is_the_binding_one_or_what_most_fail() -> None:
    assert (deciding(PLAIN) or BEST.verdicts[0]).limit == "p99=20ms"
    # By nearness it would be that of iops; of what costs less, all fail the mean.
    assert (deciding(CLOUD) or BEST.verdicts[0]).limit == "read.mean=2ms"
    bound = replace(CLOUD, relaxed=(replace(PLAIN.relaxed[0], constraint="iops=4000"),))
    assert (deciding(bound) or BEST.verdicts[0]).limit == "iops=4000"
    assert (deciding(replace(CLOUD, looked_at=())) or BEST.verdicts[0]).limit == "iops=4000"
    assert (deciding(NOTHING) or BEST.verdicts[0]).limit == "p99=20ms"


def test_more_kinds_than_colours_have_one_for_the_rest() -> None:
    many = tuple(replace(SLOW, name=f"{n} x d{n}, h", drive=f"d{n}") for n in range(9))
    figure = cost(replace(PLAIN, looked_at=(*PLAIN.looked_at, *many)))
    names = [one.name for one in figure.series]
    assert len(names) == 6
    assert names[-1] == "others"
    assert names[0] == "exos-x18-18tb raid6"
    assert sum(len(one.x) for one in figure.series) == len(PLAIN.looked_at) - 1 + 9


def test_the_objective_is_on_the_axis() -> None:
    assert cost(WATTS).x.label == "Power of drives (W)"
    fast = replace(PLAIN, objective="p99", unit="ms", best=replace(BEST, cost=17.23))
    assert cost(fast).x.label == "Price ($)"
    assert points(cost(fast))[BEST.name]["at"] == (3210, 17.23)
    assert cost(replace(fast, objective="latency")).x.label == "Price ($)"


def test_the_frontier_is_drawn_among_the_others() -> None:
    figure = frontier_figure(FRONTIER, 1)
    assert (figure.x.label, figure.y.label) == ("Price ($)", "Power of drives (W)")
    assert figure.series[0].x == [3210, 6470]
    assert figure.series[0].y == [75.2, 48.0]
    assert len(figure.series[1].x) == len(FRONTIER.looked_at) - 2
    assert [one.name for one in choice_report.figures(FRONTIER)] == ["cost", "frontier", "parts"]
    assert [one.name for one in choice_report.figures(PLAIN)] == ["cost", "parts"]


def test_the_parts_of_a_price_stand_on_each_other() -> None:
    figure = parts(PLAIN)
    assert figure.stacked
    assert figure.groups[0] == "1: 8 x exos-x18-18tb raid6"
    assert [one.name for one in figure.series] == ["drives", "chassis of 12 bays, host and controller"]
    systems = [BEST, *RUNNERS_UP, OPEN]
    assert [sum(y or 0 for y in ys) for ys in zip(*(one.y for one in figure.series), strict=True)] == pytest.approx(
        [one.usd for one in systems]
    )
    assert [one.name for one in parts(CLOUD).series] == ["space", "provisioned"]
    others = (Part("exos-x18-18tb replaced", 0.56, 289, "", ""), Part("md-raid6-12x16tb", 1, 800, "", ""))
    more = replace(PLAIN, best=replace(BEST, parts=(*BEST.parts, *others)), runners_up=(), undecided=())
    assert {one.name for one in parts(more).series} > {"drives", "replaced", "host"}
    many = replace(BEST, parts=tuple(Part(f"p{n}", 1, 100 - n, "", "") for n in range(9)))
    sums = parts(replace(PLAIN, best=many, runners_up=(), undecided=()))
    assert [(one.name, one.y) for one in sums.series][-1] == ("other parts", [95 + 94 + 93 + 92])
    bare = replace(PLAIN, best=replace(BEST, parts=()), runners_up=(), undecided=())
    assert parts_figure(bare) is None


@pytest.mark.parametrize("name", slow_but(ALL, "plain", "frontier", reason="eight seconds each"))
def test_pictures_and_the_page_are_written(name: str, tmp_path: Path) -> None:
    answer = ALL[name]
    for figure in choice_report.figures(answer):
        for suffix in ("png", "svg"):
            choice_report.plot(answer, tmp_path / f"{figure.name}.{suffix}", figure.name)
            assert (tmp_path / f"{figure.name}.{suffix}").stat().st_size > 5_000
    choice_report.plot(answer, tmp_path / "first.png")
    assert (tmp_path / "first.png").read_bytes() == (tmp_path / "cost.png").read_bytes()


def test_a_figure_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="plot: frontier: the answer has no such figure; allowed: cost, parts"):
        choice_report.plot(PLAIN, tmp_path / "a.png", "frontier")
    empty = replace(NOTHING, nearest=None, looked_at=())
    with pytest.raises(InputError, match="nothing was simulated"):
        choice_report.plot(empty, tmp_path / "a.png")
    assert [section.title for section in report_of(empty).sections] == ["Confidence and sensitivity"]


def test_the_picture_has_the_points_the_limit_and_the_intervals() -> None:
    axes: Any = draw(cost(PLAIN)).axes[0]
    rules = [line for line in axes.lines if list(line.get_ydata()) == [20.0, 20.0]]
    assert len(rules) == 1
    assert "limit 20 ms" in [text.get_text() for text in axes.texts]
    drawn = [(x, y) for line in axes.lines if line.get_linestyle() == "None" for x, y in line.get_xydata()]
    assert sorted(drawn) == sorted(found["at"] for found in points(cost(PLAIN)).values())
    bars = [line for line in axes.lines if list(line.get_xdata()) == [3210, 3210]]
    assert [list(line.get_ydata()) for line in bars] == [[16.8, 17.9]]
    # No line joins points.
    assert all(line.get_linestyle() == "None" or len(line.get_xdata()) == 2 for line in axes.lines)
    open_ones = [line for line in axes.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
    assert [list(line.get_xdata()) for line in open_ones] == [[2921]]


def test_of_a_crowd_those_in_the_table_stand_out() -> None:
    crowd = tuple(replace(SLOW, name=f"{n} x y, h", drive=f"d{n % 9}") for n in range(300))
    axes: Any = draw(cost(replace(PLAIN, looked_at=(*PLAIN.looked_at, *crowd)))).axes[0]
    drawn = [line for line in axes.lines if len(line.get_xdata()) and line.get_marker() not in ("x", "None")]
    (best,) = [line for line in drawn if BEST.cost in line.get_xdata()]
    small = [line for line in drawn if line.get_markersize() < best.get_markersize()]
    assert small
    assert all(line.get_zorder() < best.get_zorder() for line in small)
    crosses = {line.get_markersize() for line in axes.lines if line.get_marker() == "x" and len(line.get_xdata())}
    assert crosses == {small[0].get_markersize()}


def test_bars_that_are_parts_end_at_their_sum() -> None:
    series = [Series("a", (), [1.0, None]), Series("b", (), [2.0, 4.0])]
    stacked = Bars("n", "t", Axis("y"), ["g", "h"], series, stacked=True)
    drawn: list[Any] = draw(stacked).axes[0].patches[:]
    tops = [(bar.get_x(), bar.get_y() + bar.get_height()) for bar in drawn]
    assert [round(top, 6) for _, top in tops if top == top] == [1.0, 3.0, 4.0]
    assert len({round(x, 6) for x, _ in tops}) == 2
    beside: list[Any] = draw(replace(stacked, stacked=False)).axes[0].patches[:]
    assert {bar.get_y() for bar in beside} == {0.0}


def test_the_page_says_what_the_text_says(tmp_path: Path) -> None:
    write_html(report_of(PLAIN), tmp_path / "choice.html")
    page = (tmp_path / "choice.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', page)
    assert found is not None
    told = json.loads(found[1])["report"]
    assert told["summary"].startswith("Take 8 x exos-x18-18tb in raid6, md-raid6-12x16tb: $3,210; p99 17.2 ms")
    assert told["title"] == f"Choice: {BEST.name}"
    assert [section["title"] for section in told["sections"]] == [
        "Answer",
        "Confidence and sensitivity",
        "Price",
        "Simulated",
    ]
    winners = told["sections"][0]["figures"][1]
    assert winners["rows"][0][:5] == ["8 x exos-x18-18tb in raid6", "1", 3210, "17.2 (16.8 to 17.9)", "met"]
    assert len(told["sections"][3]["figures"][0]["rows"]) == len(PLAIN.looked_at)
    assert "Binding: p99 22 ms instead of 20 ms saves $289" in told["sections"][1]["text"]


def test_hosts_are_told_where_they_differ() -> None:
    other: Choice = replace(RUNNERS_UP[0], host="zfs-24")
    table = report_of(replace(PLAIN, runners_up=(other,))).sections[0].figures[-1]
    assert "host" in table.columns  # type: ignore[union-attr]
    assert "host" not in report_of(PLAIN).sections[0].figures[-1].columns  # type: ignore[union-attr]


def test_columns_without_a_figure_are_left_out() -> None:
    of_volumes = report_of(CLOUD).sections[0].figures[-1]
    of_arrays = report_of(PLAIN).sections[0].figures[-1]
    for name in ("at the limit /s", "headroom %", "bays", "W"):
        assert name not in of_volumes.columns  # type: ignore[union-attr]
        assert name in of_arrays.columns  # type: ignore[union-attr]
