"""What reports say in words: the answer first, with the digits that are known; and how the page shows it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import headstack as hs
from conftest import CHEETAH
from headstack.report.draw import draw
from headstack.report.figures import Axis, Bars, Figure, Grid, Lines, Report, Series, Table
from headstack.report.html import to_html
from headstack.report.pages import FOLDER
from headstack.results.answers import Gain
from headstack.results.words import format_significant, number, time, with_error, with_says
from headstack.simulation.report import report_of

SSD = "970-evo-1tb"


def figures_of(report: Report) -> dict[str, Figure]:
    return {figure.name: figure for section in report.sections for figure in section.figures}


@pytest.fixture(scope="module")
def both() -> hs.Results:
    return hs.curve([CHEETAH, SSD], depth=[1, 4], requests=2000)


def test_digits_are_those_that_are_known() -> None:
    assert with_error(1.30492, 0.0213) == "1.30 ± 0.02"
    assert with_error(1.30492, 0.0143) == "1.305 ± 0.014"
    assert with_error(161.2819, 3.2) == "161 ± 3"
    assert with_error(225_243, 12_115) == "225,000 ± 12,000"
    assert [str(Gain(1.3049, 0.021)), str(Gain(728.01, 41.66))] == ["1.30 ± 0.02", "728 ± 42"]
    assert format_significant(165.49, 18.5) == "165"
    assert [number(value) for value in (0.0994, 6.0415, 161.28, 40246.4)] == ["0.0994", "6.04", "161", "40,246"]
    assert [time(ms) for ms in (0.097, 6.0415, 12_345)] == ["97 µs", "6.04 ms", "12.3 s"]


def test_a_run_is_answered_with_its_interval() -> None:
    results = hs.run(CHEETAH, depth=1, requests=2000)
    row = results[0]
    answer = results.report().summary.split("\n\n")[0]
    assert answer.startswith(f"{CHEETAH} serves {row['iops']:.0f} IOPS at depth 1 (")
    ends = (f"{row[f'iops_model_{end}']:,.0f}" for end in ("low", "high"))
    assert f"({' to '.join(ends)})" in answer
    assert f"p99 {row['p99_ms']:.3g} ms" in answer


def test_of_several_systems_the_best_is_named_first_with_its_gain(both: hs.Results) -> None:
    report = both.report()
    answer = report.summary.split("\n\n")[0]
    gain = both.gains()[3]
    row = both[3]
    ends = (f"{row[f'iops_model_{end}']:,.0f}" for end in ("low", "high"))
    assert answer.startswith(f"{SSD} is fastest: {row['iops']:,.0f} IOPS at depth 4 (80 %: {' to '.join(ends)}), ")
    assert f", {gain} times {CHEETAH}; {CHEETAH}: " in answer
    assert re.search(r"times \S+; \S+: \d+ IOPS at depth 4 \(\d+ to \d+\)\.$", answer)
    # Remarks come after the figures.
    assert all(f"{note[1:]}." in report.remarks for note in both.notes)
    assert not any(note[1:] in report.summary for note in both.notes)


def test_arrivals_are_answered_with_the_response() -> None:
    results = hs.run([CHEETAH, SSD], rate=50, requests=2000)
    answer = results.report().summary.split("\n\n")[0]
    assert answer.startswith(f"{SSD} is fastest: mean latency ")
    assert " µs at 50 IOPS" in answer


def test_each_figure_says_what_it_shows(both: hs.Results) -> None:
    figures = figures_of(both.report())
    saturation, percentiles, busy = (figures[name] for name in ("saturation", "percentiles", "busy"))
    first, second = both[0], both[1]
    times, longer = second["iops"] / first["iops"], second["mean_ms"] / first["mean_ms"]
    assert saturation.says.startswith(
        f"At depth 4 {CHEETAH} serves {times:.3g} times the IOPS that it serves at depth 1, "
        f"at {longer:.3g} times the latency; "
    )
    assert f"p99 {time(both.percentile_ms(0, 99) or 0)}" in percentiles.says
    assert isinstance(busy, Grid)
    assert f"{max(v for row in busy.values for v in row if v):.0f} %" in busy.says
    assert isinstance(saturation, Lines)
    assert draw(saturation).axes[0].get_title(loc="left").replace("\n", " ") == saturation.says


def test_tables_have_the_digits_that_people_see(both: hs.Results) -> None:
    table = figures_of(both.report())["runs"]
    assert isinstance(table, Table)
    columns, texts = both.shown()
    assert table.texts == texts
    place = [column.name for column in columns].index("mean_ms")
    assert table.rows[0][place] == both[0]["mean_ms"]
    assert table.texts[0][place] == f"{both[0]['mean_ms']:.2f}"


@pytest.mark.skipif(not (FOLDER / "bundle.js").exists(), reason="the page is not built: make web")
def test_a_page_begins_with_its_answer_and_ends_with_how_it_was_found(both: hs.Results) -> None:
    report = both.report()
    text = to_html(report)
    plain = text[text.index('<div id="plain">') : text.index('<script type="application/json"')]
    order = [
        report.summary.split(" IOPS")[0].partition(" ± ")[0],
        figures_of(report)["saturation"].says,
        "Method",
        "Provenance",
    ]
    places = [plain.index(one) for one in order]
    assert places == sorted(places)


def test_a_figure_of_a_study_says_how_far_it_is_from_what_was_published() -> None:
    axes = Axis("Throughput (IOPS)"), Axis("Response time (ms)")
    ours = Series("reads", [100, 200], [5.0, 12.0], labels=["1", "2"])
    published = Series("reads", [110, 190], [4.0, 10.0], labels=["1", "2"], published=True)
    curves = with_says(Lines("one", "One", *axes, [ours, published]))
    assert curves.says == "Differs from 2 published figures by 22 % on average, at most +25 % (reads, 1)."
    alone = with_says(Lines("one", "One", *axes, [ours]))
    assert alone.says == "reads from 5 ms at 100 IOPS to 12 ms at 200 IOPS."
    bars = Bars("two", "Two", Axis("Gain (%)"), ["a", "b"], [Series("published", (), [30, 20], published=True)])
    bars = replace(bars, series=[*bars.series, Series("simulated", (), [25, 21], low=[20, 19], high=[29, 24])])
    assert (
        with_says(bars).says == "Differs from 2 published figures by 3 points on average, at most \u22125 points (a)."
    )
    ours_alone = replace(bars, series=bars.series[1:])
    assert with_says(ours_alone).says == "Most: a with 25 % (20 to 29); least: b with 21 % (19 to 24)."
    grid = Grid("three", "Three", ["10k"], "drive", ["1", "2"], "blocks", [[4.0, 9.0]], "IOPS")
    assert with_says(grid).says == "From 4 (10k, 1) to 9 (10k, 2): IOPS."
    told = replace(grid, says="What its author says.")
    assert with_says(told) is told


def test_a_sweep_says_what_is_best_and_has_a_map() -> None:
    speeds = ["10000rpm", "15000rpm"]
    swept = hs.sweep(CHEETAH, "file-server", vary={"depth": [1, 4], "spindle.speed": speeds, "requests": 1000})
    report = report_of(swept, "mean_ms", False)
    rows = swept.rows("mean_ms", False)
    best: dict[str, Any] = rows[0]
    told = swept.rows_with_model_errors("mean_ms", False, 1)[0]
    ends = " to ".join(number(told[f"mean_model_{end}_ms"]) for end in ("low", "high"))
    assert report.summary.startswith(
        f"Least mean response time: {number(best['mean_ms'])} ms ({ends}, 90 % prediction interval) at "
    )
    assert re.search(r"is \d\.\d+ ± 0\.\d+ times it\.", report.summary)
    figures = figures_of(report)
    table = figures["configurations"]
    assert isinstance(table, Table)
    assert list(table.columns[:4]) == ["depth", "spindle speed rpm", "IOPS", "IOPS 90 %"]
    assert table.texts[0][table.columns.index("mean ms")] == f"{best['mean_ms']:.1f}"
    lines, grid = figures["sweep"], figures["map"]
    assert isinstance(lines, Lines)
    assert isinstance(grid, Grid)
    assert (lines.x.label, lines.y.label) == ("Requests outstanding", "Mean response time (ms)")
    assert sorted(v for row in grid.values for v in row if v) == sorted(row["mean_ms"] for row in rows)
    widths = {row["mean_ms"]: row["half_width_ms"] for row in rows}
    for one in lines.series:
        for y, low, high in zip(one.y, one.low, one.high, strict=True):
            assert y is not None
            if widths[y] is not None:
                assert (low, high) == (y - widths[y], y + widths[y])
