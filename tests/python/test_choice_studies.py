"""Studies that choose: what the readers of three documents should have bought, at the prices of their time."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import headstack as hs
from conftest import slow
from headstack._native import InputError
from headstack.results.table import Row
from headstack.studies.files import SHIPPED
from headstack.studies.outcome import Outcome

LONG = slow("takes a minute; mark5c-2012 represents the studies that choose")
NAMES = ["mark5c-2012", *(pytest.param(name, marks=LONG) for name in ("flash-2016", "storagereview-2001"))]

pytestmark = pytest.mark.together


@functools.cache
def carried_out(name: str) -> Outcome:
    return hs.studies.run(name)


def usd(value: float | None) -> str:
    return "" if value is None else f"${value:,.0f}"


def storagereview(row: Row) -> str:
    best = f"{row['best'].partition(' in ')[0]}"
    is_estimated = "estimated" if row["is_estimated"] else "stated"
    asked = f"{row['asked_gb']:.0f} | {row['asked_iops']:.0f}"
    return f"| {asked} | {best} | {usd(row['usd'])} | {row['iops']:.0f} | {is_estimated} |"


def mark5c(row: Row) -> str:
    name = row["answer"].partition(" in ")[0]
    rate = "" if row["mbit_per_s"] is None else f"{row['mbit_per_s']:,.0f}"
    paid = f"{usd(row['usd'])} | {usd(row['usd_per_tb'])} | {usd(row['usd_per_gbit_per_s'])}"
    return f"| {row['choice']} | {row['hours']:.0f} | {name} | {rate} | {paid} |"


def flash(row: Row) -> str:
    now, then = f"{row['wins']}, {usd(row['usd'])}", f"{row['wins_at_2013']}, {usd(row['usd_at_2013'])}"
    return f"| {row['iops_per_tb']:,.0f} | {now} | {then} |"


def break_even(row: Row) -> str:
    prices = f"{usd(row['usd_of_15k'])} | {usd(row['usd_of_flash'])}"
    return f"| {row['iops_per_tb']:,.0f} | {prices} | ${row['usd_per_gb']:.2f} |"


SHOWN = [
    pytest.param("flash-2016", "winners", flash, marks=LONG),
    pytest.param("flash-2016", "break_even", break_even, marks=LONG),
    ("mark5c-2012", "answers", mark5c),
    pytest.param("storagereview-2001", "answers", storagereview, marks=LONG),
]
"""Tables of READMEs, and how they tell a row."""


@pytest.mark.parametrize(("name", "table", "told"), SHOWN, ids=lambda one: one if isinstance(one, str) else "")
def test_the_figures_of_a_readme_are_those_of_its_study(name: str, table: str, told: Callable[[Row], str]) -> None:
    lines = (SHIPPED / name / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [told(row) for row in carried_out(name).data[table].dicts()]
    assert rows
    place = lines.index(rows[0])
    assert lines[place : place + len(rows)] == rows
    assert not lines[place + len(rows)].startswith("|")


@pytest.mark.parametrize("name", NAMES)
def test_dollars_in_words_are_those_of_the_study(name: str) -> None:
    """Amounts of the README's sentences and of the summary occur in its tables, or in prices that headstack has."""
    outcome = carried_out(name)
    figures = {value for found in outcome.data.values() for row in found.rows for value in row if type(value) is float}
    figures |= {price.usd for price in hs.prices.shipped_prices()} | {745.0 - 549.0, 8.0 * (246 - 198), 1.0}
    known = {f"{value:,.0f}" for value in figures} | {f"{value:.2f}" for value in figures}
    text = (SHIPPED / name / "README.md").read_text(encoding="utf-8") + outcome.summary
    named = re.findall(r"\$(\d+(?:,\d{3})*(?:\.\d+)?)", text)
    assert named
    assert [amount for amount in named if amount not in known] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_choice_is_drawn_and_its_claims_hold(name: str) -> None:
    outcome = carried_out(name)
    assert outcome.figures
    assert [str(claim.verdict) for claim in outcome.claims] == ["fitted"] * 3


@LONG
def test_storagereviews_reader_buys_what_is_recommended_for_36_gb_alone() -> None:
    rows = {
        (row["asked_gb"], row["asked_iops"]): row for row in carried_out("storagereview-2001").data["answers"].dicts()
    }
    assert "cheetah-x15-36lp" in rows[36, 250]["best"]
    assert "atlas-10k-iii-73" in rows[73, 200]["best"]
    assert "wd1200bb" in rows[146, 250]["best"]
    singles = {row["drive"]: row for row in carried_out("storagereview-2001").data["singles"].dicts()}
    # The document has 292, 270 and 123 IO/s with 16 outstanding.
    for drive, published in (("cheetah-x15-36lp", 292), ("atlas-10k-iii-73", 270), ("wd1200bb", 123)):
        assert singles[drive]["iops"] == pytest.approx(published, rel=0.25)


def test_four_barracudas_are_too_slow_inside_and_four_re4_are_not() -> None:
    """By the memo's own inner rates: four times 504 Mb/s are 2,016, and four times 560 are 2,240."""
    (six,) = [
        row
        for row in carried_out("mark5c-2012").data["answers"].dicts()
        if (row["choice"], row["hours"]) == ("buffers on", 6)
    ]
    assert six["answer"].startswith("4 x re4-2tb ")
    assert six["mbit_per_s"] == pytest.approx(2240, rel=0.02)


FIRST = """
title = "t"
question = "q"
grids = []

[[choices]]
name = "one"
workloads = ["file-server"]
each = {{ rates = [50, 100] }}
limits = ["mean=50ms"]
on = "2019-07"
among = ["exos-x16-16tb"]
hosts = ["md-raid6-12x16tb"]
levels = ["raid10"]
requests = 2000
{}
[[tables]]
name = "rates"
sql = "select offered_per_s, drives, usd, drives_usd from choices order by offered_per_s"

[[claims]]
id = "C.1"
says = "All are had"
sql = "select best, best like '_ x exos%' as holds from choices"
"""


def study_in(folder: Path, more: str = "", **replaced: str) -> Path:
    text = FIRST.format(more)
    for old, new in replaced.items():
        lines = [line for line in text.splitlines() if line.startswith(f"{old} =")]
        text = text.replace(lines[-1] if old != "name" else 'name = "one"', new)
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return folder


def test_a_study_of_ones_own_chooses(tmp_path: Path) -> None:
    outcome = hs.studies.run(study_in(tmp_path / "mine"), store=tmp_path / "store")
    rows = list(outcome.data["rates"].dicts())
    assert [row["offered_per_s"] for row in rows] == [50, 100]
    direct = hs.choose(
        "file-server",
        rates=[100],
        limits=["mean=50ms"],
        on="2019-07",
        among=["exos-x16-16tb"],
        hosts=["md-raid6-12x16tb"],
        levels=["raid10"],
        requests=2000,
    )
    assert direct.best is not None
    assert (rows[1]["usd"], rows[1]["drives"]) == (direct.best.usd, direct.best.drives)
    assert {*outcome.data} == {"choices", "choices_looked", "rates"}
    assert str(outcome.claims[0].verdict) == "predicted"


def test_what_prices_are_multiplied_by_is_in_the_answer(tmp_path: Path) -> None:
    plain = hs.studies.run(study_in(tmp_path / "mine"), store=tmp_path / "store").data["rates"]
    dear = hs.studies.run(
        study_in(tmp_path / "dear", "price_factors = { exos-x16-16tb = 3 }"), store=tmp_path / "store"
    )
    assert [row["drives_usd"] for row in dear.data["rates"].dicts()] == [3 * row["drives_usd"] for row in plain.dicts()]


@pytest.mark.parametrize(
    ("more", "replaced", "line", "message"),
    [
        ("speed = 3", {}, 16, "choices[0].speed: no choice has this key; allowed: afr, "),
        ('limits2 = "x"', {}, 16, "choices[0].limits2: no choice has this key"),
        ("", {"requests": 'requests = "many"'}, 15, "choices[0].requests: 'many': must be a whole number"),
        ("", {"limits": 'limits = "mean=50ms"'}, 10, "choices[0].limits: 'mean=50ms': must be a list of texts"),
        ("", {"limits": 'limits = ["mean=fast"]'}, 10, "choices[0].limits: limit: mean=fast: "),
        ("", {"each": "each = { rates = [] }"}, 9, "choices[0].each.rates: must be a list of values"),
        ("", {"each": "each = { sizes = [1] }"}, 9, "choices[0].each.sizes: no choice has this key"),
        ("rates = [5]", {}, 9, "choices[0].each.rates: this key already has one value for all choices"),
        ("drives = [1]", {}, 16, "choices[0].drives: [1]: must be two whole numbers, the smallest first"),
        ("", {"workloads": ""}, 6, "choices[0].workloads: this key is missing"),
    ],
)
def test_bad_choices_are_refused_with_file_line_and_key(
    more: str, replaced: dict[str, str], line: int, message: str, tmp_path: Path
) -> None:
    folder = study_in(tmp_path / "mine", more, **replaced)
    with pytest.raises(InputError) as caught:
        hs.studies.run(folder, store=tmp_path / "store")
    assert f"study.toml:{line}: {message}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_tables_of_choices_are_results_but_for_what_was_asked(tmp_path: Path) -> None:
    """So that a claim on nothing but questions is not predicted."""
    folder = study_in(tmp_path / "mine")
    text = (folder / "study.toml").read_text(encoding="utf-8")
    (folder / "study.toml").write_text(
        text.replace("best, best like '_ x exos%'", "choice, offered_per_s < 1000"), encoding="utf-8"
    )
    outcome = hs.studies.run(folder, store=tmp_path / "store")
    assert str(outcome.claims[0].verdict) != "predicted"


def test_choices_are_tables_that_nothing_else_is_called(tmp_path: Path) -> None:
    folder = study_in(tmp_path / "mine")
    (folder / "choices.csv").write_text("a\n1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"choices.csv"):
        hs.studies.load(folder)
