"""Reports: the page in a browser, pictures, what becomes of results, comparisons, analyses and tests, and notebooks."""

from __future__ import annotations

import ast
import html
import itertools
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import CHEETAH, REPOSITORY, Headstack, chromium, needs_program
from headstack.report.draw import draw
from headstack.report.draw_lines import nines
from headstack.report.figures import (
    Axis,
    Bars,
    Claim,
    Figure,
    Grid,
    Heat,
    Limit,
    Lines,
    Provenance,
    Report,
    Section,
    Series,
    Table,
)
from headstack.report.html import to_html, write_html
from headstack.report.pages import FOLDER
from headstack.studies.claims import Verdict

WEB = REPOSITORY / "web"
SIZE_MAX = 1_500_000

built = pytest.mark.skipif(not (FOLDER / "bundle.js").exists(), reason="the page is not built: make web")

BENDING = Series(
    "va-7100 </script><b>",
    [100, 400, 800, 1200, 1380, 1340, 1250.5],
    [5, 5.4, 6, 8, 14.25, 30, 55],
    labels=["1", "2", "4", "8", "16", "32", "64"],
    mark=(1200, 8),
    low=[4.5, 5, 5.5, 7, 12, 27, 50],
    high=[5.5, 6, 6.5, 9, 16, 33, 60],
)
LOAD, TIME = Axis("Throughput (IOPS)", log=False), Axis("Mean response time (ms)", log=True)
CURVES = Lines(
    "curves",
    "Saturation",
    LOAD,
    TIME,
    [
        BENDING,
        Series(BENDING.name, [110, 1100], [5.2, 8.1], published=True),
        Series("disk", [150, 220, 350], [6.5, 9, 100], labels=["1", "2", "32"]),
    ],
    note="See https://example.org/a.pdf.",
)
LINKED = Lines("linked", "Bytes", LOAD, Axis("MB/s"), [Series("a", [100, 700, 1500], [1, None, 9.125])])
PERCENTILES = Lines(
    "percentiles",
    "Percentiles",
    Axis("Percentile (%)"),
    TIME,
    [Series("disk", [0, 50, 99.9, 100], [0.2, 5, 40, 60])],
    x_is_percentile=True,
)
BARS = Bars(
    "boots",
    "Boot time",
    Axis("Seconds"),
    ["512n", "512e"],
    [Series("found", (), [120, -80.5]), Series("found", (), [118, None], published=True)],
)
POINTS = Lines(
    "points",
    "Points",
    Axis("Price ($)"),
    TIME,
    [
        Series(
            "disk",
            [100, 200, 300],
            [5, 20, 50],
            labels=["1", "", ""],
            low=[4, None, None],
            high=[6, None, None],
            marks=["full", "open", "cross"],
            names=["one disk", "two disks", "three disks"],
        ),
        Series(BENDING.name, [400], [40], marks=["cross"], names=["another"]),
    ],
    limits=[Limit(30, "limit 30 ms")],
    key=[("full", "meets"), ("open", "cannot tell"), ("cross", "fails")],
)
STACKED = Bars(
    "stacked",
    "Parts",
    Axis("Price ($)"),
    ["a", "b"],
    [Series("found", (), [100, 300]), Series("disk", (), [50, None])],
    stacked=True,
)
GAINS = Grid(
    "gains",
    "Gains",
    ["a", "b"],
    "drive",
    ["4 KiB", "1 MiB"],
    "size",
    [[10.5, -3], [None, 0]],
    "points",
    (),
    signed=True,
)
MAP = Heat("map", "Addresses", Axis("s"), (0, 8), Axis("GB"), (0, 4), [[0, 3, 0, 0], [500, 0, 0, 1]], "requests")
SYSTEMS = Table(
    "systems",
    "Systems",
    ["system", "year", "IOPS", "ok"],
    [["d10", 2001, 161.28195245051785, True], ["d9", None, 99.5, False], ["d1", 1998, 12345.678, None]],
)
MONTHS = Table(
    "months", "Months", ["a drive by its name", *(f"month {n}" for n in range(12))], [["d10", *range(0, 12_000, 1000)]]
)
FIGURES: tuple[Figure, ...] = (CURVES, LINKED, PERCENTILES, BARS, POINTS, STACKED, GAINS, MAP, SYSTEMS, MONTHS)
VERDICTS = tuple(map(str, Verdict))


BACKING = (("rests on", "runs"), ("tolerance", "5%: printed so"))


def claim(number: int) -> Claim:
    rows = Table(f"rows-{number}", "", ["depth", "published", "found"], [[1, 157, 161.28195], [64, 347, 330 + number]])
    return Claim(
        f"X{number}", f"It does {number} IOPS <em>", VERDICTS[number % len(VERDICTS)], "Mean 3 % off.", rows, BACKING
    )


def run_of(number: int) -> Provenance:
    described = json.dumps({"system": {"name": "x", "number": number}})
    return Provenance("x", "file-server", 7 + number, "0.1.0", f"{number:032x}", described)


REPORT = Report(
    "Capacity's effect & </script> more",
    "Does it?",
    "It does.\n\nNearly.",
    [Section("Charts", "Text.", FIGURES[:6]), Section("Tables", "", FIGURES[6:])],
    [claim(number) for number in range(9)],
    [run_of(0), run_of(1), replace(run_of(1), description="")],
    "0.1.0",
    ["A memo, https://example.org/memo"],
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a reader finds in the report of all kinds of figures, in Chromium."""
    if not (FOLDER / "bundle.js").exists():
        pytest.skip("the page is not built: make web")
    browser = chromium()
    folder = tmp_path_factory.mktemp("report")
    file, notebook = folder / "report.html", folder / "notebook.html"
    write_html(REPORT, file)
    frames = CURVES._repr_html_() + LINKED._repr_html_() + CURVES._repr_html_()
    notebook.write_text(
        f'<!doctype html><meta charset="utf-8"><body style="background:#111">{frames}', encoding="utf-8"
    )
    done = subprocess.run(
        ["node", WEB / "test" / "page.mjs", browser, file, notebook],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_page_is_silent_and_asks_the_network_for_nothing(page: dict[str, Any]) -> None:
    assert page["errors"] == []
    assert page["requests"] == []


def test_every_value_is_in_the_page(page: dict[str, Any]) -> None:
    figures = page["figures"]
    assert list(figures) == [figure.name for figure in FIGURES]
    assert figures["curves"]["heads"] == ["series", LOAD.label, TIME.label, "at", "low", "high"]
    shown = figures["curves"]["rows"]
    bending = zip(BENDING.x, BENDING.y, BENDING.labels, BENDING.low, BENDING.high, strict=True)
    assert shown[:7] == [[BENDING.name, *point] for point in bending]
    assert shown[7] == [f"{BENDING.name} (published)", 110, 5.2, "", "", ""]
    assert figures["linked"]["rows"] == [["a", 100, 1], ["a", 700, ""], ["a", 1500, 9.125]]
    assert figures["percentiles"]["rows"][2] == ["disk", 99.9, 40]
    assert figures["boots"]["rows"] == [["512n", 120, 118], ["512e", -80.5, ""]]
    assert figures["points"]["heads"] == ["series", "Price ($)", TIME.label, "of", "at", "low", "high", "known"]
    assert figures["points"]["rows"][0] == ["disk", 100, 5, "one disk", "1", 4, 6, "meets"]
    assert figures["points"]["rows"][3] == [BENDING.name, 400, 40, "another", "", "", "", "fails"]
    assert figures["stacked"]["rows"] == [["a", 100, 50], ["b", 300, ""]]
    assert figures["gains"]["rows"] == [["a", 10.5, -3], ["b", "", 0]]
    assert figures["map"]["rows"] == [[0, 2, 2, 4, 500], [2, 4, 0, 2, 3], [6, 8, 2, 4, 1]]
    assert figures["systems"]["rows"] == [
        ["d10", 2001, 161.28195245051785, "yes"],
        ["d9", "", 99.5, "no"],
        ["d1", 1998, 12345.678, ""],
    ]
    assert [figures[name]["label"] for name in ("curves", "boots", "map")] == [
        ["Saturation"],
        ["Boot time"],
        ["Addresses"],
    ]


def test_a_curve_that_bends_back_is_drawn_in_its_order(page: dict[str, Any]) -> None:
    bending = page["drawn"]["curves"][0]
    assert len(bending) == len(BENDING.x)
    rightwards = [before[0] < after[0] for before, after in itertools.pairwise(bending)]
    assert rightwards == [True, True, True, True, False, False]
    across = [(x - bending[0][0]) / (bending[3][0] - bending[0][0]) for x, _ in bending]
    assert across == pytest.approx([(x - 100) / 1100 for x in BENDING.x if x is not None], abs=2e-3)
    assert all(before[1] > after[1] for before, after in itertools.pairwise(bending))


def test_points_have_their_marks_their_limit_and_what_these_say(page: dict[str, Any]) -> None:
    points = page["points"]
    # What fails lies below what meets.
    assert points["marks"] == ["cross", "full", "open", "cross"]
    assert points["lines"] == 1
    assert points["texts"] == ["1", "limit 30 ms"]
    assert points["key"] == ["meets", "cannot tell", "fails"]
    assert points["said"].split("\n") == [
        "disk",
        "one disk",
        "meets",
        "Price ($): 100",
        f"{TIME.label}: 5",
        "from 4 to 6",
    ]
    # On a logarithmic axis 30 lies between 20 and 50.
    assert points["heights"][2] < points["limit"] < points["heights"][1] < points["heights"][0]


def test_parts_of_a_whole_stand_on_each_other(page: dict[str, Any]) -> None:
    below, above = page["stacked"][0], page["stacked"][2]
    assert above["bottom"] == pytest.approx(below["top"], abs=0.2)
    assert above["left"] == pytest.approx(below["left"], abs=0.2)
    assert (below["bottom"] - below["top"]) == pytest.approx(2 * (above["bottom"] - above["top"]), abs=0.5)
    assert len(page["stacked"]) == 3


def test_percentiles_lie_by_their_nines(page: dict[str, Any]) -> None:
    places = [x for x, _ in page["drawn"]["percentiles"][0]]
    shares = [(x - places[0]) / (places[-1] - places[0]) for x in places]
    assert shares == pytest.approx([0, 0.30103 / 4, 3 / 4, 1], abs=3e-3)
    assert nines([0, 90, 99.9, 100], [0, 90, 99.9, 100]) == pytest.approx([0, 1, 3, 4])


def test_pointer_and_keys_tell_the_values(page: dict[str, Any]) -> None:
    pointed = page["pointed"]
    for n, said in enumerate(pointed["said"]):
        assert BENDING.name in said
        assert f"{LOAD.label}: {BENDING.x[n]:,}" in said
        assert f"{TIME.label}: {BENDING.y[n]}" in said
        assert f"from {BENDING.low[n]} to {BENDING.high[n]}" in said
        assert ("knee" in said) == (n == 3)
    first, second, published, left = pointed["keyed"]
    assert f"{LOAD.label}: 100\n" in first
    assert f"{LOAD.label}: 400\n" in second
    assert "(published)" in published
    assert f"{LOAD.label}: 110" in left or left == published
    assert pointed["isLeft"]


def test_charts_of_one_axis_zoom_together(page: dict[str, Any]) -> None:
    zoomed = page["zoomed"]
    for before, during, after in zip(zoomed["before"], zoomed["during"], zoomed["after"], strict=True):
        assert during != before == after
    ends = [[float(ticks[end].replace(",", "")) for end in (0, -1)] for ticks in zoomed["during"]]
    assert ends[0] == ends[1]
    assert 500 < ends[0][0] < ends[0][1] < 1200


def test_legends_hide_and_tables_sort(page: dict[str, Any]) -> None:
    # The line, and its published points' intervals if they had any: here two lines, and one without the first.
    assert page["toggled"] == [2, 1, 2]
    assert page["sorted"] == [[1998, 2001, ""], [2001, 1998, ""]]


def test_claims_are_counted_filtered_and_shown_with_their_evidence(page: dict[str, Any]) -> None:
    filtered = page["claims"]["filtered"]
    counts = [re.search(r"\d+", name) for name in filtered]
    assert [count and int(count[0]) for count in counts] == [9, 2, 2, 1, 1, 1, 1, 1]
    assert list(filtered.values())[1:] == [["X0", "X7"], ["X1", "X8"], ["X2"], ["X3"], ["X4"], ["X5"], ["X6"]]
    assert all(verdict in name for name, verdict in zip(list(filtered)[1:], VERDICTS, strict=True))
    assert page["claims"]["evidence"] == ["Mean 3 % off."]
    assert page["claims"]["backing"] == [text for told in BACKING for text in told]
    assert page["claims"]["rows"] == [[1, 157, 161.28195], [64, 347, 330]]


def test_figures_of_a_notebook_do_not_disturb_each_other(page: dict[str, Any]) -> None:
    dark = page["themes"]["dark"]
    assert page["framed"] == [{"lines": lines, "ground": dark, "rest": 0} for lines in (2, 1, 2)]


def test_descriptions_are_kept_word_for_word(page: dict[str, Any]) -> None:
    assert json.loads(page["description"]) == json.loads(run_of(1).description)


def test_light_dark_phone_and_paper(page: dict[str, Any]) -> None:
    themes = page["themes"]
    assert themes["dark"] == themes["dark again"] != themes["light"] == "rgb(255, 255, 255)"
    for width, phone in page["phones"].items():
        assert (phone["width"], phone["wide"]) == (int(width), [])
        assert f"{LOAD.label}: 800" in phone["tapped"]
    printed = page["printed"]
    assert printed["charts"] == [1] * 7
    assert printed["evidence"] == [True] * 9
    assert (printed["rest"], printed["folded"]) == (0, 0)
    assert printed["ground"] == "rgb(255, 255, 255)"
    assert printed["after"] == themes["dark"]
    assert printed["pdf"] == "%PDF-"


@pytest.mark.parametrize("width", ["360", "390"])
def test_the_first_column_stays_on_a_phone_while_the_rest_passes(page: dict[str, Any], width: str) -> None:
    tables = {table["name"]: table for table in page["phones"][width]["columns"]}
    assert {"months", "runs"} <= {*tables}
    for name, table in tables.items():
        assert table["first"] == pytest.approx([0] * len(table["first"]), abs=1), name
        assert table["second"] == pytest.approx([60] * len(table["second"]), abs=1), name


def test_a_wide_window_is_used_by_figures_and_not_by_prose(page: dict[str, Any]) -> None:
    assert page["wide"]["figures"] > 0.95 * 1920
    assert page["wide"]["beside"] == 3
    assert page["wide"]["prose"] < 800


def test_a_thing_has_one_colour_on_the_page(page: dict[str, Any]) -> None:
    painted = [entry for entries in page["painted"].values() for entry in entries]
    of: dict[str, set[str]] = {}
    for name, colour in painted:
        of.setdefault(name.removesuffix(" (published)"), set()).add(colour)
    assert {name: len(colours) for name, colours in of.items()} == {BENDING.name: 1, "disk": 1, "found": 1}
    assert len(set.union(*of.values())) == 3


def test_nothing_is_blank_without_a_script_or_before_it_has_drawn(page: dict[str, Any]) -> None:
    still = page["still"]
    charts = [figure for figure in FIGURES if isinstance(figure, Lines | Bars | Heat)]
    assert still["pictures"] == [True] * len(charts)
    assert still["atOnce"] == [1] * len(charts)
    assert still["tables"] == len(FIGURES) - len(charts)
    for told in ("Does it?", "Nearly.", "It does 3 IOPS <em>", "limit 30 ms", "va-7100 </script><b>", "d10"):
        assert told in still["text"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_page(page: dict[str, Any], scheme: str) -> None:
    found = page["accessibility"][scheme]
    assert found["passes"] > 20
    assert found["violations"] == []


@built
def test_equal_reports_are_equal_bytes_and_descriptions_are_stored_once(tmp_path: Path) -> None:
    text = to_html(REPORT)
    assert to_html(REPORT) == text
    write_html(REPORT, tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
    assert text.count("</script>") == 2  # the data's and the program's own
    described = json.dumps({"zones": [[n, n * 997 % 1013] for n in range(2_000)]})
    many = [replace(run_of(n), description=described) for n in range(300)]
    once, often = (len(to_html(replace(REPORT, runs=runs))) for runs in (many[:1], many))
    assert often - once < 300 * 200


@built
def test_a_study_of_many_claims_and_figures_is_a_small_file() -> None:
    curves = [
        replace(
            CURVES,
            name=f"c{n}",
            series=[
                Series(f"s{s}", [x * 1.0001 * s for x in range(1, 20)], [x / 7 for x in range(1, 20)]) for s in range(8)
            ],
        )
        for n in range(30)
    ]
    tables = Table("r", "", ["a", "b", "c", "d"], [["file-server", n, n / 3, n / 7] for n in range(16)])
    claims = [replace(claim(n), rows=tables) for n in range(134)]
    runs = [
        replace(
            run_of(n), description=json.dumps({"zones": [[z, z * n / 7, z * 997 % 1013] for z in range(150)], "n": n})
        )
        for n in range(300)
    ]
    whole = replace(REPORT, sections=[Section("", "", curves)], claims=claims, runs=runs)
    assert len(to_html(whole).encode()) < SIZE_MAX


@built
def test_what_cannot_be_shown_is_refused() -> None:
    twice = replace(REPORT, sections=[Section("", "", [LINKED, LINKED])])
    with pytest.raises(hs.InputError, match="two figures of a section have the name 'linked'"):
        to_html(twice)


def test_without_the_page_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstack.report.pages.FOLDER", tmp_path)
    with pytest.raises(hs.InputError, match=r"^HTML reports need the page, which is not built; run make web"):
        write_html(REPORT, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.kind)
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_figures_are_drawn_as_pictures(figure: Figure, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"f.{suffix}"
    draw(figure, path)
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(begins)
    if suffix == "png":
        draw(figure, tmp_path / "again.png")
        assert (tmp_path / "again.png").read_bytes() == path.read_bytes()


def test_pictures_show_what_the_page_shows() -> None:
    axes = draw(CURVES).axes[0]
    bending = next(line for line in axes.lines if len(line.get_xdata()) == len(BENDING.x))  # type: ignore[arg-type]
    assert list(bending.get_xdata()) == list(BENDING.x)  # type: ignore[arg-type]
    assert {text.get_text() for text in axes.texts} == {*BENDING.labels, "1", "2", "32"}
    assert axes.get_yscale() == "log"
    words = [text.get_text() for text in draw(CURVES).legends[0].get_texts()]
    assert f"{BENDING.name}: knee at 1,200 IOPS, 8 ms" in words
    assert words[-1] == "open marks: as published"
    assert f"{BENDING.name} (published)" not in words


def test_labels_of_percentiles_stand_at_their_nines() -> None:
    labelled = [
        Series("disk", [50, 99, 100], [5, 40, None], labels=["a", "b", "c"]),
        Series("none", [50], [None], ["d"]),
    ]
    axes = draw(replace(PERCENTILES, series=labelled)).axes[0]
    places = {text.get_text(): text.xy for text in axes.texts}  # type: ignore[attr-defined]
    assert set(places) == {"a", "b"}
    assert places["a"] == pytest.approx((0.30103, 5))
    assert places["b"] == pytest.approx((2, 40))


# Reports of what the package computes.


def figures_of(report: Report) -> dict[str, Any]:
    return {figure.name: figure for section in report.sections for figure in section.figures}


def test_the_report_of_results_says_what_they_say(results: hs.Results) -> None:
    report = results.report()
    figures = figures_of(report)
    for series, (name, runs) in zip(figures["saturation"].series, results.curves().items(), strict=True):
        assert series.name == name
        assert list(series.y) == [results[run]["mean_ms"] for run in runs]
        assert list(series.labels) == ["1", "4", "16"]
    knees = [(knee.iops, knee.mean_ms) for knee in results.knees()]
    assert [series.mark for series in figures["saturation"].series if series.mark] == knees
    percentiles = figures["percentiles"].series
    assert len(percentiles) == len(results)
    assert percentiles[0].y[-1] == results[0]["max_ms"]
    # 2,000 requests say nothing of the 99.9th percentile.
    assert list(percentiles[0].x)[-2:] == [99.5, 100]
    busy = figures["busy"]
    column = [row[0] for row in busy.values]
    assert max(column) == pytest.approx(results[0]["utilization_percent"])
    assert busy.rows[column.index(max(column))] == results[0]["bottleneck"]
    assert [row[0] for row in figures["runs"].rows] == [row["system"] for row in results]
    described = [json.loads(run.description) for run in report.runs]
    assert [run["workload"]["arrivals"]["closed"]["queue_depth"] for run in described] == [1, 4, 16, 1, 4, 16]
    assert [run.description_hash for run in report.runs] == [row["description_hash"] for row in results]


def test_reports_of_runs_over_time_and_of_streams() -> None:
    figures = figures_of(hs.run(CHEETAH, "file-server", requests=500, interval="1s").report())
    assert "saturation" not in figures
    rate = figures["rate-over-time"].series[0]
    assert list(rate.x)[:2] == pytest.approx([0.5, 1.5])
    scenario = hs.run("demartek-512n-raid10-24", "demartek-boot-storm")
    figures = figures_of(scenario.report())
    facts = scenario.streams_of(0)[0]["facts"]
    boots = figures["guest-boot-s"]
    assert list(boots.series[0].y) == [facts[f"guest_{guest}_boot_s"] for guest in range(1, len(boots.groups) + 1)]
    assert "d0 mechanism and 23 more: highest" in figures["busy"].rows


def test_reports_of_a_comparison_and_of_zones(results: hs.Results) -> None:
    alone = results.chosen([0, 1, 2])
    comparison = hs.compare(alone, "atlas-10k-iii-73")
    figures = figures_of(comparison.report())
    measured, predicted = figures["curves"].series
    assert list(measured.x) == [alone[n]["iops"] for n in range(3)]
    assert list(predicted.y) == [point.predicted.figures["mean_ms"] for point in comparison]
    assert figures["errors"].series[0].y[0] == 100 * (comparison.points[0].error("iops") or 0)
    zones = hs.zones([CHEETAH], positions=8, accesses=50)
    rates = figures_of(zones.report())["rates"].series[0]
    assert list(zip(rates.x, rates.y, strict=True)) == [(at / 1e9, rate) for at, rate in zones.profiles[0].rates]


def test_the_report_of_an_analysis(tmp_path: Path) -> None:
    trace = tmp_path / "t.parquet"
    hs.run(CHEETAH, "file-server", depth=4, requests=2000, record=trace)
    found = hs.Trace(trace).analyze()
    figures = figures_of(found.to_report())
    operations = found.report["operations"]
    for kind, name in (("read", "map-reads"), ("write", "map-writes")):
        assert sum(map(sum, figures[name].values)) == operations[kind]["requests"]
    assert sum(sum(series.y) for series in figures["sizes"].series) == pytest.approx(100)
    rate = figures["rate"].series[0]
    assert 100 < len(rate.x) <= 600
    mean = sum(sum(series.y) for series in figures["rate"].series) / len(rate.x)
    assert mean == pytest.approx(found.report["requests_per_s"], rel=0.02)


@built
def test_commands_write_reports(headstack: Headstack, tmp_path: Path) -> None:
    short = ("--requests", "200", "--warm-up", "10", "-q")
    commands = [
        ("run", CHEETAH, "--depth", "1,4", *short, "--json", "r.json", "--record", "t.parquet"),
        ("run", CHEETAH, "--depth", "2", *short, "--record", "t.parquet"),
        ("curve", CHEETAH, "--depth", "1,4", *short, "--json", "r.json"),
        ("compare", "r.json", "atlas-10k-iii-73", "-q"),
        ("trace", "replay", "t.parquet", CHEETAH, "-q"),
        ("trace", "analyze", "t.parquet", "-q"),
        ("measure", "zones", CHEETAH, "--positions", "4", "--accesses", "5", "-q"),
        ("measure", "null", "--requests", "100", "-q"),
    ]
    for number, command in enumerate(commands[1:]):
        done = headstack(*command, "--html", f"{number}.html")
        assert done.returncode == 0, done.stderr
        text = (tmp_path / f"{number}.html").read_text(encoding="utf-8")
        assert text.startswith("<!doctype html>")
        assert 20_000 < len(text) < 400_000
    done = headstack(*commands[1], "--html", "nowhere/r.html")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@built
def test_notebooks_show_figures_and_reports_in_frames_of_their_own(results: hs.Results) -> None:
    for shown, is_inline in ((CURVES, True), (results.report(), False)):
        frame = shown._repr_html_()
        inside = re.fullmatch(r'<iframe title="[^"<]*" style="[^"<]*" srcdoc="([^"]*)"></iframe>', frame)
        assert inside is not None
        text = html.unescape(inside[1])
        data = re.search(r'<script type="application/json" id="report">(.*?)</script>', text)
        assert data is not None
        assert json.loads(data[1])["inline"] is is_inline


EXAMPLES = sorted((REPOSITORY / "docs" / "examples").glob("*.ipynb"))


@built
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_notebooks_of_the_documentation_run(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell by cell, as a notebook does it; what a cell ends with is shown."""
    monkeypatch.chdir(tmp_path)
    cells = json.loads(example.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    shown = 0
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        tree = ast.parse("".join(cell["source"]))
        last = tree.body[-1]
        is_shown = isinstance(last, ast.Expr)
        exec(compile(ast.Module(tree.body[: len(tree.body) - is_shown], []), example.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), example.name, "eval"), names)
            if value is not None:
                assert len(value._repr_html_()) > 500
                shown += 1
    assert shown >= 1


def test_units_of_the_page() -> None:
    needs_program("npm")
    if not (WEB / "node_modules").is_dir():
        pytest.skip("the page's own tests need Node with web/node_modules (npm ci)")
    done = subprocess.run(["npm", "test", "--silent"], cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@built
def test_wide_tables_are_whole_on_paper(tmp_path: Path) -> None:
    browser = chromium()
    count = 40
    depths = [str(number) for number in range(count)]
    grid = Grid("map", "Map", ["5,400", "15,000"], "rpm", depths, "depth", [[211.5] * count] * 2, "IOPS")
    wide = Table(
        "wide", "Wide", [f"column {n} ms" for n in range(24)], [[f"system-{n}", *[123.4] * 23] for n in range(3)]
    )
    small = Table("small", "Small", ["system", "IOPS"], [["one", 1.5]])
    write_html(Report("Paper", "", "", [Section("All", "", [grid, wide, small])]), tmp_path / "paper.html")
    command = ["node", str(WEB / "test" / "paper.mjs"), browser, str(tmp_path / "paper.html")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=True)
    found = {how: {one["id"]: one for one in tables} for how, tables in json.loads(done.stdout).items()}
    for name in ("map", "wide"):
        assert found["aside"][name]["page"] == "wide"
        assert found["aside"][name]["width"] <= 1
        # Four points and a half are read with good eyes.
        assert found["aside"][name]["letter"] >= 6
    assert found["upright"]["small"]["page"] == "auto"
    assert found["upright"]["small"]["width"] <= 1
    assert found["upright"]["small"]["letter"] > 9
