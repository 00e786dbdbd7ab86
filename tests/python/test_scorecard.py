"""The studies that ship: every claim has its verdict, and the scorecard says what the studies give."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headstack as hs
from conftest import REPOSITORY, slow, slow_but
from headstack.report.draw import draw
from headstack.report.figures import Bars, Grid, Lines
from headstack.studies.outcome import Outcome

sys.path.insert(0, str(REPOSITORY / "docs"))
import landing

CLAIMS = 134
"""Of the five documents, numbered through: S0.1, S0.2 and so on."""


def test_every_claim_of_the_five_documents_is_in_one_study() -> None:
    found = [claim["id"] for name in hs.studies.listed() for claim in hs.studies.load(name).claims]
    numbered = sorted((id for id in found if id.startswith("S0.")), key=lambda id: int(id.removeprefix("S0.")))
    assert numbered == [f"S0.{number}" for number in range(1, CLAIMS + 1)]


PUBLISHED = [
    name for name in hs.studies.listed() if any(claim["id"].startswith("S0.") for claim in hs.studies.load(name).claims)
]
"""The studies of the documents. That of the predictor takes minutes, and is carried out by ``make validate``."""


TRIED = slow_but(PUBLISHED, "mark5c", reason="takes up to two minutes; mark5c represents the studies")

pytestmark = pytest.mark.together


@functools.cache
def carried_out(name: str) -> Outcome:
    return hs.studies.run(name)


@pytest.mark.parametrize("name", TRIED)
def test_a_study_that_ships_is_carried_out(name: str) -> None:
    """The longest tests there are, unless their runs are kept from before, as they are for the scorecard then."""
    assert len(carried_out(name).claims) == len(hs.studies.load(name).claims) > 0


FIGURES = {
    "compaq": ("figure-2", "figure-3", "figure-4", "figure-5", "figure-6", "figure-7"),
    "demartek": (
        *("figure-4-iops", "figure-4-response", "figure-5", "figure-6-iops", "figure-6-bandwidth"),
        *("figure-7-iops", "figure-7-response", "figure-8-iops", "figure-8-response", "figure-9"),
    ),
    "hp-va7100": ("figure-1", "figure-2", "figure-3"),
    "mark5c": ("figure-1", "figure-2", "figure-3"),
    "storagereview": ("iometer-score", "iometer-percent", "replayed-score", "ipeak-percent", "gain"),
}
"""The published figures with axes; of StorageReview, which drew none, the parts of its table."""
NO_VALUES = {("compaq", "figure-2"), ("compaq", "figure-3")}
"""Of these the text of the document has no value."""


@pytest.mark.parametrize("name", TRIED)
def test_published_figures_are_drawn_with_what_the_text_has_of_them(name: str) -> None:
    drawn = {figure.name: figure for figure in carried_out(name).figures}
    assert {*FIGURES[name]} <= {*drawn}
    for one in FIGURES[name]:
        figure = drawn[one]
        if isinstance(figure, Grid):
            assert all(value is not None for row in figure.published for value in row), one
            continue
        assert isinstance(figure, Lines | Bars)
        published = [value for series in figure.series if series.published for value in (*series.x, *series.y)]
        has_values = any(value is not None for value in published)
        assert has_values == ((name, one) not in NO_VALUES), one
        assert has_values or "values are not in" in figure.note, one
        has_band = any(series.low for series in figure.series if not series.published)
        assert not has_band or re.search(r"Band|Lines on bars|allows", figure.note), one
        assert has_band or re.search(r"[Nn]o band|not in the text", figure.note), one


@pytest.mark.parametrize("name", TRIED)
def test_a_study_is_in_the_gallery_with_its_picture_and_how_it_came_out(name: str, tmp_path: Path) -> None:
    outcome = carried_out(name)
    text = landing.card(name, outcome, has_report=True)
    verdicts = outcome.verdicts()
    assert f"**{verdicts['predicted']} predicted**, **{verdicts['missed']} missed**" in text
    assert f'src="gallery/{name}.svg" alt="' in text
    assert f'href="gallery/{name}.html"' in text
    picture = landing.shown(outcome)
    assert picture.says
    draw(picture, tmp_path / "one.svg")
    assert (tmp_path / "one.svg").stat().st_size > 0


@pytest.mark.parametrize("name", TRIED)
def test_a_thing_has_one_colour_in_all_figures_of_a_study(name: str) -> None:
    colours: dict[str, set[str | None]] = {}
    for figure in carried_out(name).figures:
        if isinstance(figure, Lines | Bars):
            for series in figure.series:
                colours.setdefault(series.thing or series.name, set()).add(series.colour)
    assert all(len(found) == 1 for found in colours.values()), colours


@slow("carries out every study")
def test_the_scorecard_is_what_the_studies_give() -> None:
    command = [sys.executable, "-c", "from headstack.cli.main import main; main()", "lab", "study", "scorecard"]
    written = str(REPOSITORY / "docs" / "scorecard.md")
    done = subprocess.run([*command, "--check", written, "-q"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_counts_what_is_predicted() -> None:
    """As the scorecard does, of the claims of the five documents."""
    rows = (REPOSITORY / "docs" / "scorecard.md").read_text(encoding="utf-8").splitlines()
    told = re.search(
        r"\n(\d+) claims of five documents[^.]*\. (\d+) are predicted", (REPOSITORY / "README.md").read_text()
    )
    verdicts: dict[str, str] = {}
    for cells in ([cell.strip() for cell in row.split(" | ")] for row in rows if re.match(r"\| S0\.\d+ \|", row)):
        verdicts.setdefault(cells[0], cells[2])
    assert told is not None
    assert (len(verdicts), list(verdicts.values()).count("predicted")) == (int(told[1]), int(told[2]))
