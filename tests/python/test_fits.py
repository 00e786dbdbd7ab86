"""Inverse studies: a setting that is known is found again, what cannot be is said, and what is wrong has its place."""

from __future__ import annotations

import csv
import json
import math
import random
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack._native import InputError
from headstack.simulation.designs import Axis, Listed, Range
from headstack.studies.fits import finding
from headstack.studies.fits.files import RESULT_FILE
from headstack.studies.fits.fit_data import Figure, Tried
from headstack.studies.fits.page import page, stored
from headstack.studies.fits.search import ENOUGH, Search
from headstack.studies.power import Tolerance

DEPTH, SIZE = "12", "128KiB"
"""What is sought."""

FIT = """\
title     = "A queue and a size"
question  = "How deep was the queue, and how large were the requests?"
tolerance = "12%"
held_out  = ["atlas ms"]
sql       = \"\"\"
select figure, found, published from found join published using (figure)\"\"\"

[[unknowns]]
name  = "depth"
what  = "Requests outstanding"
why   = "4 to 40 were usual"
low   = 4
high  = 40
log   = true
whole = true

[[unknowns]]
name   = "size"
what   = "Bytes of a request"
why    = "powers of two were usual"
values = ["4KiB", "128KiB", "512KiB"]

[[unknowns]]
name = "seed"
what = "Seed"
why  = "nobody knows"
low  = 1
high = 9
whole = true

[[grids]]
name      = "runs"
systems   = ["cheetah-x15-36lp", "atlas-10k-iii-73"]
workloads = ["mine.toml"]
settings  = { depth = "{depth}", requests = 1000, seed = "{seed}" }

[[tables]]
name = "found"
sql  = \"\"\"
select case system when 'cheetah-x15-36lp' then 'cheetah' else 'atlas' end || ' IO/s' as figure, iops as found from runs
union all select case system when 'cheetah-x15-36lp' then 'cheetah' else 'atlas' end || ' ms', mean_ms from runs\"\"\"
"""
WORKLOAD = (
    'name = "mine"\nlines = [{ size = "{size}", share_percent = 100, read_percent = 67, random_percent = 100 }]\n'
)


def put(folder: Path, text: str = FIT, published: dict[str, float] | None = None, workload: str = WORKLOAD) -> Path:
    """An inverse study in a folder of its own, with what was published."""
    fit = folder / "mine"
    fit.mkdir(parents=True, exist_ok=True)
    (fit / "fit.toml").write_text(text)
    (fit / "mine.toml").write_text(workload)
    rows = "".join(f"{figure},{value}\n" for figure, value in (published or dict.fromkeys(NAMES, 1.0)).items())
    (fit / "published.csv").write_text(f"figure,published\n{rows}")
    return fit


NAMES = ("cheetah IO/s", "cheetah ms", "atlas IO/s", "atlas ms")


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """What the setting that is sought comes to, under a seed that is not tried."""
    file = tmp_path_factory.mktemp("truth") / "mine.toml"
    file.write_text(WORKLOAD.replace("{size}", SIZE))
    runs = hs.run(["cheetah-x15-36lp", "atlas-10k-iii-73"], file, depth=DEPTH, requests=4000, seed=77)
    return {
        f"{name} {unit}": row[column]
        for name, row in zip(("cheetah", "atlas"), runs, strict=True)
        for unit, column in (("IO/s", "iops"), ("ms", "mean_ms"))
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def found(truth: dict[str, float], store: Path, tmp_path_factory: pytest.TempPathFactory) -> hs.studies.Fitted:
    return hs.studies.fit(put(tmp_path_factory.mktemp("fit"), published=truth), settings=72, store=store)


def test_a_known_setting_is_found_again(found: hs.studies.Fitted) -> None:
    left = {one.name: one for one in found.unknowns}
    depth = left["depth"]
    assert depth.low is not None
    assert depth.high is not None
    assert int(depth.low) <= int(DEPTH) <= int(depth.high)
    assert int(depth.high) - int(depth.low) <= 6
    assert left["size"].shares[SIZE] > 0.99
    assert depth.is_determined
    assert left["size"].is_determined
    assert not left["seed"].is_determined
    assert found.reproducing >= 4
    assert found.wider[0][1] == found.reproducing < found.wider[-1][1]
    assert found.exclude == ()


def test_what_was_held_out_is_predicted(found: hs.studies.Fitted, truth: dict[str, float]) -> None:
    rows = {row.figure: row for row in found.rows}
    assert [name for name in NAMES if rows[name].held_out] == ["atlas ms"]
    row = rows["atlas ms"]
    assert row.median is not None
    assert row.band_low is not None
    assert row.band_high is not None
    assert row.is_within
    assert row.band_low <= row.median <= row.band_high
    assert abs(row.median / truth["atlas ms"] - 1) < 0.12
    assert "1 of 1 held-out figure is within 12%" in finding(found)


def test_what_is_held_out_takes_no_part() -> None:
    figures = [Figure("fitted", 1.0, 1.0, held_out=False), Figure("held out", 1.0, 1.0, held_out=True)]
    rows = ({"figure": "fitted", "found": 1.02}, {"figure": "held out", "found": 9.0})
    assert Tried((), {}, rows, Tolerance(4.0, "%")).distance(figures) == pytest.approx(0.5)


def test_a_finished_search_runs_nothing_again(
    found: hs.studies.Fitted, truth: dict[str, float], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_chunks(*_: object) -> None:
        raise AssertionError("a run was carried out again")

    monkeypatch.setattr("headstack._native.run_chunks", run_chunks)
    again = hs.studies.fit(put(tmp_path, published=truth), settings=72, store=store)
    assert again.to_json() == found.to_json()
    assert again.to_csv() == found.to_csv()


def test_a_search_that_was_interrupted_goes_on(truth: dict[str, float], tmp_path: Path) -> None:
    folder, kept = put(tmp_path, published=truth), tmp_path / "store"

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hs.studies.fit(folder, settings=12, store=kept, progress=stop)
    chunks = {path.name for path in kept.rglob("*.parquet")}
    assert chunks
    went_on = hs.studies.fit(folder, settings=12, store=kept)
    assert chunks < {path.name for path in kept.rglob("*.parquet")}
    assert went_on.to_json() == hs.studies.fit(folder, settings=12, store=tmp_path / "other").to_json()


def test_no_setting_does(truth: dict[str, float], store: Path, tmp_path: Path) -> None:
    # Twice the throughput at the same response time.
    impossible = truth | {"cheetah IO/s": 2 * truth["cheetah IO/s"], "atlas IO/s": 1e6}
    none = hs.studies.fit(put(tmp_path, published=impossible), settings=16, store=store)
    assert none.reproducing == 0
    said = finding(none)
    assert said.startswith("No setting reproduces all 3 fitted figures within 12%, of ")
    assert "atlas IO/s alone is 100% away at the nearest" in said
    assert not any("atlas IO/s" in pair for pair in none.exclude)
    assert none.distance is not None
    assert none.distance > 8
    assert {row.median for row in none.rows} == {None}
    assert [one.prior for one in none.unknowns] == ["4 to 40, by ratios", "4KiB, 128KiB, 512KiB", "1 to 9"]


def test_figures_that_exclude_one_another_are_named(truth: dict[str, float], store: Path, tmp_path: Path) -> None:
    text = FIT.replace('held_out  = ["atlas ms"]', 'held_out  = ["atlas ms", "atlas IO/s"]')
    quick = truth | {"cheetah ms": truth["cheetah ms"] / 3}
    none = hs.studies.fit(put(tmp_path, text, quick), settings=32, store=store)
    assert none.exclude == (("cheetah IO/s", "cheetah ms"),)
    assert "never together: cheetah IO/s with cheetah ms" in finding(none)


FEW = FIT.replace("low   = 4\nhigh  = 40\nlog   = true\nwhole = true", "low = 10\nhigh = 13\nwhole = true").replace(
    "low  = 1\nhigh = 9\nwhole = true", 'values = ["77", "78"]'
)
"""24 settings."""


def test_where_settings_are_few_all_are_tried(truth: dict[str, float], store: Path, tmp_path: Path) -> None:
    all_of_them = hs.studies.fit(put(tmp_path, FEW, truth), settings=24, store=store)
    assert (all_of_them.is_whole, all_of_them.tried) == (True, 24)
    rows = list(csv.DictReader(all_of_them.to_csv().splitlines()))
    assert len({(row["depth"], row["size"], row["seed"]) for row in rows}) == 24
    weights = {round(float(row["weight"]), 9) for row in rows} - {0.0}
    assert [*weights] == [pytest.approx(1 / all_of_them.reproducing)]


def test_weights_make_up_for_where_settings_were_sought() -> None:
    axes: list[Axis] = [
        Range(0.0, 1.0, "", None, False, False),
        Range(0.0, 1.0, "", None, False, False),
        Listed(("a", "b")),
    ]
    search = Search(axes, 4000, 3)
    points: list[tuple[float, ...]] = []
    for some in search.rounds():
        points += some
        search.add_results(some, [max(one[0] / 0.02, one[1] / 0.1, 0.5 if one[2] < 0.5 else 1.5) for one in some])
    weights = search.weights()
    assert search.of_equal_weight() >= ENOUGH
    assert len(points) < 4000
    assert math.fsum(weights) == pytest.approx(1)
    assert all(0 <= share < 1 for one in points for share in one)
    # The corner that was sought is crowded, but stands for no more of the prior than it is.
    crowded = [one[0] < 0.1 and one[1] < 0.3 for one in points]
    assert sum(crowded) / len(points) > 0.15
    search._distances = [0.0] * len(points)
    weights = search.weights()
    assert math.fsum(weight for weight, is_in in zip(weights, crowded, strict=True) if is_in) < 0.045
    for place in (0, 1, 2):
        mean = math.fsum(weight * one[place] for weight, one in zip(weights, points, strict=True))
        assert mean == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("edge", [0.0, 1.0])
def test_a_kernel_draws_as_densely_as_it_says(edge: float) -> None:
    axes: list[Axis] = [Range(0.0, 1.0, "", None, False, False), Listed(("a", "b", "c"))]
    search = Search(axes, 400, 5)
    first = next(search.rounds())
    search.add_results(first, [abs(abs(one[0] - edge) - 0.02) * 30 + one[1] for one in first])
    kernel = search._kernel()
    assert kernel is not None
    generator = random.Random(1)
    drawn = [kernel.draw(generator) for _ in range(8000)]
    for near, far, value in ((0.0, 0.02, 0), (0.05, 0.1, 0), (0.0, 0.1, 2)):
        here = sum(near <= abs(one[0] - edge) < far and int(one[1] * 3) == value for one in drawn) / len(drawn)
        steps = [abs(edge - near - (far - near) * (place + 0.5) / 200) for place in range(200)]
        density = math.fsum(kernel.density((step, (value + 0.5) / 3)) for step in steps) / len(steps)
        assert here == pytest.approx(density * (far - near) / 3, abs=0.012)


@pytest.mark.parametrize(
    ("was", "now", "key", "message"),
    [
        ('depth = "{depth}"', 'depth = "{deep}"', "grids[0].settings.depth", "unknown 'deep' is not defined"),
        ("using (figure)", "using ({figure})", "sql", "unknown 'figure' is not defined"),
        ('seed = "{seed}"', "seed = 1", "unknowns[2].name", "no grid, query or file contains the blank {seed}"),
        ('name   = "size"', 'name   = "depth"', "unknowns[1].name", "'depth' is used twice"),
        ('name   = "size"', 'name   = "a size"', "unknowns[1].name", "cannot name a blank"),
        ("low   = 4", "low   = 40", "unknowns[0].low", "the range 40 to 40 is empty"),
        ("low   = 4", "low   = 0", "unknowns[0].low", "a range by ratios must begin above 0"),
        ("low   = 4", "low   = 1.5", "unknowns[0].low", "1.5 is not a whole number"),
        ("low   = 4\n", "", "unknowns[0].low", "this key is missing; a range needs low and high"),
        ("low   = 4", "values = ['1', '2']\nlow   = 4", "unknowns[0].values", "needs either values, or low and high"),
        ('values = ["4KiB", "128KiB", "512KiB"]', "", "unknowns[1].low", "needs either values, or low and high"),
        ('"128KiB", "512KiB"]', '"4KiB"]', "unknowns[1].values", "must be two or more different values"),
        ('values = ["4KiB"', 'unit = "ms"\nvalues = ["4KiB"', "unknowns[1].unit", "applies only to low and high"),
        ('"12%"', '"near"', "tolerance", "'near' is not a tolerance"),
        ('["atlas ms"]', '["atlas s"]', "held_out[0]", "no figure has the name 'atlas s'"),
        ('["atlas ms"]', '["atlas ms", "atlas ms"]', "held_out[1]", "'atlas ms' is named twice"),
        ('["atlas ms"]', f"{[*NAMES]}", "held_out", "all figures are held out"),
        (
            "select figure, found, published",
            "select figure, found",
            "sql",
            "returns figure, found; must return figure, found, and",
        ),
        ("select figure, found", "select 'one' as figure, found", "sql", "4 rows have the figure 'one'"),
        ("using (figure)", "using (figure) where false", "sql", "the query returns no rows"),
        ("from found join", "from fond join", "sql", "fond"),
        ('name      = "runs"', 'name      = "found"', "tables[0].name", "'found' is also the name of grids[0]"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, store: Path, was: str, now: str, key: str, message: str
) -> None:
    assert was in FIT
    text = FIT.replace(was, now)
    file = put(tmp_path, text) / "fit.toml"
    with pytest.raises(InputError) as refused:
        hs.studies.fit(file.parent, settings=1, store=store)
    said = str(refused.value)
    assert said.startswith(f"{file}:")
    place, told = said.removeprefix(f"{file}:").split(": ", 1)
    assert 1 <= int(place) <= text.count("\n")
    assert told.startswith(f"{key}: ")
    assert message in told


def test_what_is_wrong_in_a_file_beside_it_is_said_with_the_setting(tmp_path: Path, store: Path) -> None:
    folder = put(tmp_path, workload=WORKLOAD.replace("100, read", "{share}, read"))
    with pytest.raises(InputError, match=r"mine\.toml:2: unknown 'share' is not defined; allowed: depth, size, seed"):
        hs.studies.fit(folder, settings=1, store=store)
    folder = put(tmp_path, workload=WORKLOAD.replace("read_percent", "reads"))
    with pytest.raises(InputError) as refused:
        hs.studies.fit(folder, settings=1, store=store)
    assert f"{folder / 'mine.toml'}:2: " in str(refused.value)
    assert " (with depth " in str(refused.value)


def test_the_command_writes_what_came_of_it(
    truth: dict[str, float], store: Path, tmp_path: Path, headstack: Headstack
) -> None:
    folder, into = put(tmp_path, FEW, truth), tmp_path / "out"
    said = headstack("lab", "fit", str(folder), "--settings", "24", "--store", str(store), "-o", str(into))
    assert said.returncode == 0
    found = hs.studies.Fitted.read(into / "mine" / "fit.json")
    assert " ".join(finding(found).split()) in " ".join(said.stdout.split())
    told = json.loads((into / "mine" / "fit.json").read_text())
    assert told["finding"] == finding(found)
    assert (told["format"], told["schema"]) == ("headstack inverse study", 1)
    rows = list(csv.DictReader((into / "mine" / "settings.csv").open()))
    assert {row["size"] for row in rows if float(row["weight"])} == {SIZE}
    page = (into / "mine" / "report.html").read_text()
    assert "Requests outstanding" in page
    assert "atlas ms (held out)" in page


def test_those_that_ship_are_listed_and_acceptable(headstack: Headstack) -> None:
    names = hs.studies.fits.listed()
    said = headstack("lab", "fit")
    assert said.returncode == 0
    for name in names:
        fit = hs.studies.fits.load(name)
        assert fit.name == name
        assert fit.held_out
        assert name in said.stdout


def test_what_is_stored_is_read_again(found: hs.studies.Fitted, tmp_path: Path) -> None:
    (tmp_path / RESULT_FILE).write_text(found.to_json())
    again = hs.studies.Fitted.read(tmp_path / RESULT_FILE)
    assert again.to_json() == found.to_json()
    assert finding(again) == finding(found)


def test_the_page_is_what_is_stored() -> None:
    written = Path(__file__).parents[2] / "docs" / "inverse-findings.md"
    assert written.read_text() == page(stored()), "python benches/fits.py --write renews it"


def test_what_is_stored_is_of_the_study_as_it_is() -> None:
    for found in stored():
        fit = hs.studies.fits.load(found.fit)
        assert [one.name for one in found.unknowns] == [one.name for one in fit.unknowns]
        assert [one.prior for one in found.unknowns] == [one.prior for one in fit.unknowns]
        assert [row.figure for row in found.rows if row.held_out] == [*fit.held_out]
        assert found.tolerance == fit.tolerance


def test_a_study_without_any_is_refused(headstack: Headstack) -> None:
    said = headstack("lab", "fit", "nothing")
    assert said.returncode == 2
    assert "inverse study 'nothing' is unknown" in said.stderr
