"""Reports with the simulator: what is taken up gives the report's own numbers, and all else is said in words."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import CHEETAH, REPOSITORY, Headstack, chromium
from headstack.choice import report as choice_report
from headstack.report.figures import Lines, Report
from headstack.report.html import to_html
from headstack.results.explorer import ENGINE, simulator
from headstack.results.explorer_queries import variable_curves
from headstack.simulation import report as sweeps_report
from test_choose import JOB
from test_studies import put

WEB = REPOSITORY / "web"
ARRAY = "nearline-24-raid6"
PAGES = ("run", "array", "scenario", "sweep", "study", "choice", "measured")

pytestmark = pytest.mark.skipif(not ENGINE.is_file(), reason="not built: make web, with Rust for WebAssembly")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """One of each kind."""
    folder = tmp_path_factory.mktemp("taken-up")
    hs.run(CHEETAH, "file-server", depth=[2, 8], requests=300).to_json(folder / "results.json")
    told = json.loads((folder / "results.json").read_text())
    for one in told:
        one["mode"] = "measured"
    (folder / "results.json").write_text(json.dumps(told))
    swept = hs.sweep(
        CHEETAH, "file-server", vary={"spindle.speed": ["7200rpm", "15000rpm"], "depth": [1, 4, 16], "requests": [500]}
    )
    choice = hs.choose("file-server", **JOB, survive=1, store=folder / "store")

    return {
        "run": hs.run([CHEETAH, ARRAY], "file-server", policy="fcfs", depth=[1, 4, 24], requests=500).report(),
        "array": hs.run(ARRAY, "web-server", drives=12, rate=[200, 400], seed=3, requests=500).report(),
        "scenario": hs.run(ARRAY, "hp-oltp-2k", depth=[1, 4], requests=500).report(),
        "sweep": sweeps_report.report_of(swept, "mean_ms", False),
        "study": hs.studies.run(put(folder)).report(),
        "choice": choice_report.report_of(choice),
        "measured": hs.Results.read(folder / "results.json").report(),
    }


@pytest.fixture(scope="module")
def looked(reports: dict[str, Report], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a reader finds in Chromium, by report."""
    browser = chromium()
    folder = tmp_path_factory.mktemp("pages")
    files = [folder / f"{name}.html" for name in PAGES]
    for name, file in zip(PAGES, files, strict=True):
        file.write_text(to_html(reports[name], simulator), encoding="utf-8")
    command: list[str | Path] = ["node", WEB / "test" / "alive.mjs", browser, *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found | dict(zip(PAGES, found["pages"], strict=True))


def drawn(report: Report) -> list[tuple[float, float]]:
    """The points of the first curve that can be taken up."""
    found = variable_curves(report)
    place = next(place for place, curves in found.curves.items() if curves)
    figure = [figure for section in report.sections for figure in section.figures][place]
    assert isinstance(figure, Lines)
    series = figure.series[0]
    points = [(x, y) for x, y in zip(series.x, series.y, strict=True) if x is not None and y is not None]
    # Of points alone, each is a curve of its own.
    return [points[list(series.names).index(found.curves[place][0].name)]] if series.names else points


@pytest.mark.parametrize("name", ["run", "array", "scenario", "sweep", "study", "choice"])
def test_a_curve_that_is_taken_up_has_the_numbers_of_the_report(
    reports: dict[str, Report], looked: dict[str, Any], name: str
) -> None:
    rows = looked[name]["rows"]
    for x, y in drawn(reports[name]):
        # Of a sweep x is what was varied, of a choice a price.
        wanted = {y} if name in ("sweep", "choice") else {x, y}
        assert any(wanted <= set(map(hashable, row.values())) for row in rows), (x, y)


def hashable(value: Any) -> Any:
    return value if isinstance(value, float | int | str) else None


@pytest.mark.parametrize("name", ["run", "array", "scenario", "sweep", "study", "choice"])
def test_a_curve_that_is_taken_up_can_be_varied_and_left(looked: dict[str, Any], name: str) -> None:
    page = looked[name]
    assert [chip.endswith("pinned") for chip in page["chips"]] == [True, False]
    before, after = ({row["mean_ms"] for row in page[part]} for part in ("rows", "dragged"))
    assert after - before, "other seek times, or other drives"
    assert "of=" in page["open"]["hash"]
    assert page["closed"] == {"hash": "#runs", "open": 0}


def test_pages_are_silent_reachable_and_ask_the_network_for_nothing(looked: dict[str, Any]) -> None:
    assert looked["errors"] == []
    assert looked["requests"] == []
    for name in PAGES:
        assert looked[name]["violations"] == [], name
        assert looked[name].get("open", {}).get("violations", []) == [], name
    assert looked["array"]["open"]["wide"] <= 390


def test_what_was_measured_is_not_offered_and_says_why(looked: dict[str, Any]) -> None:
    assert looked["measured"]["offered"] == []
    assert f"{CHEETAH} cannot be varied here: it was measured on a real device." in looked["measured"]["refused"]


def test_a_system_of_ones_own_is_in_the_page(tmp_path: Path, headstack: Headstack) -> None:
    mine = (REPOSITORY / "catalogue" / "drives" / "man3735.toml").read_text().replace("10025rpm", "9000rpm")
    (tmp_path / "mine.toml").write_text(mine)
    asked = ("run", "mine.toml", "-w", "file-server", "--depth", "1,4", "--requests", "300", "-q")
    done = headstack(*asked, "--html", "page.html", "--with-simulator")
    assert done.returncode == 0, done.stderr
    told = given((tmp_path / "page.html").read_text(), "explore")
    assert told["files"]["mine.toml"]["stated"]["spindle"]["speed"] == "9000rpm"
    refused = headstack(*asked, "--with-simulator")
    assert refused.returncode == 2
    assert "--with-simulator: needs a page; add --html FILE.html" in refused.stderr


def test_a_changed_drive_is_not_taken_for_that_of_the_catalogue(tmp_path: Path) -> None:
    file = tmp_path / "man3735.toml"
    file.write_text((REPOSITORY / "catalogue" / "drives" / file.name).read_text().replace("10025rpm", "9000rpm"))
    found = variable_curves(hs.run(file, "file-server", depth=[1, 4], requests=300).report())
    assert [curve.system for curve in found.curves[0]] == ["man3735.toml"]
    assert found.files["man3735.toml"]["stated"]["spindle"]["speed"] == "9000rpm"


def test_an_array_of_ones_own_is_refused_in_words(tmp_path: Path) -> None:
    array = (REPOSITORY / "catalogue" / "arrays" / f"{ARRAY}.toml").read_text()
    (tmp_path / "mine.toml").write_text(array.replace(ARRAY, "mine"))
    report = hs.run(tmp_path / "mine.toml", "file-server", depth=[1, 4], requests=300).report()
    found = variable_curves(report)
    assert found.curves[0] == []
    assert found.refused[0] == ["mine cannot be varied here: the result does not contain the file of its system."]


def test_without_the_simulator_a_report_is_as_it_was(reports: dict[str, Report]) -> None:
    for name, report in reports.items():
        text = to_html(report)
        assert len(text) < 1_500_000, name
        assert 'id="engine"' not in text
        assert "wasm-unsafe-eval" not in text
        told = given(text, "report")["report"]
        assert not {"asked", "taken"} & set(told)
        assert not any({"taken", "refused"} & set(one) for section in told["sections"] for one in section["figures"])


def given(text: str, part: str) -> Any:
    """What a page is given."""
    (told,) = re.findall(rf'<script type="application/json" id="{part}">(.*?)</script>', text)
    return json.loads(told)
