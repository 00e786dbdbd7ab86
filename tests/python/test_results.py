"""Results as tables, HTML, pictures and files."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import duckdb
import polars as pl
import pytest

import headstack as hs
from conftest import ATLAS, CHEETAH
from headstack.results.table import WithinLimit


def test_duckdb_reads_results_in_place(results: hs.Results) -> None:
    assert duckdb.execute("select count(*), max(iops) from results").fetchone() == (
        len(results),
        max(row["iops"] for row in results),
    )


def test_polars_reads_results_in_place(results: hs.Results) -> None:
    frame = pl.DataFrame(results)
    assert frame.columns == results.column_names
    assert frame.to_dicts() == list(results)
    assert frame.schema["depth"] == pl.UInt64
    assert frame.schema["saturated"] == pl.Boolean


def test_histograms_hold_every_request(results: hs.Results) -> None:
    bins = pl.DataFrame(results.histograms()).filter(pl.col("figure") == "latency")
    counts = bins.group_by("run").agg(pl.col("count").sum()).sort("run")["count"].to_list()
    assert counts == [row["requests"] for row in results]
    first = bins.filter(pl.col("run") == 0)
    mean_ms = first.select(pl.col("middle_ms").dot("count") / pl.col("count").sum()).item()
    assert mean_ms == pytest.approx(results[0]["mean_ms"], rel=0.001)


def test_intervals_add_up() -> None:
    results = hs.run(ATLAS, requests=2000, interval="500ms")
    frame = pl.DataFrame(results.intervals())
    assert frame["requests"].sum() == 2000
    assert frame["start_s"].is_sorted()


def test_labels_become_columns() -> None:
    results = hs.run(ATLAS, policy=["fcfs", "sptf"], queue_depth=8, depth=8, requests=500)
    assert results.column_names[-2:] == ["policy", "queue_depth"]
    assert [(row["policy"], row["queue_depth"]) for row in results] == [("fcfs", "8"), ("sptf", "8")]
    shown, _ = results.shown()
    headings = [column.heading for column in shown]
    assert "policy" in headings
    # What does not vary is not shown.
    assert "queue depth" not in headings


def test_parquet_is_the_table(results: hs.Results, tmp_path: Path) -> None:
    path = tmp_path / "it's.parquet"
    results.to_parquet(path)
    assert pl.read_parquet(path).to_dicts() == list(results)


def test_csv_is_the_table(results: hs.Results, tmp_path: Path) -> None:
    text = results.to_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["iops"]) for row in rows] == [row["iops"] for row in results]


def test_html_is_a_whole_table_without_assets(results: hs.Results) -> None:
    html = results._repr_html_()
    assert html.count("<tr>") == len(results) + 1
    assert html.count("<td") == html.count("</td>")
    assert not re.search(r"<script|<link|src=|href=|url\(", html)


def test_html_escapes_names() -> None:
    drive = hs.Drive.load(ATLAS)
    evil = hs.Drive("<b>&", drive.description)
    assert "&lt;b&gt;&amp;" in hs.run(evil, requests=100)._repr_html_()


def test_curves_join_what_differs_in_load_alone(results: hs.Results) -> None:
    assert results.curves() == {CHEETAH: [0, 1, 2], f"{ATLAS}@36.7GB": [3, 4, 5]}
    swept = hs.run(ATLAS, depth=[4, 1], policy=["fcfs", "sptf"], seed=1, requests=100)
    assert swept.curves() == {"policy fcfs": [1, 0], "policy sptf": [3, 2]}


def test_knee_lies_on_the_curve() -> None:
    results = hs.curve(ATLAS, requests=5000)
    (knee,) = results.knees()
    assert min(row["iops"] for row in results) <= knee.iops <= max(row["iops"] for row in results)
    assert 1 <= knee.load <= 256


def test_iops_at_a_response_time(results: hs.Results) -> None:
    within = results.iops_at("25ms")
    for name, runs in results.curves().items():
        below = [results[run]["iops"] for run in runs if results[run]["mean_ms"] <= 25]
        found = within[name]
        assert found is not None
        assert found.iops >= max(below)
        assert found.is_at_least == (results[runs[-1]]["mean_ms"] <= 25)
        p99 = results.iops_at("p99=25ms")[name]
        assert p99 is None or p99.iops <= found.iops
    assert set(results.iops_at("1us").values()) == {None}
    ample = results.iops_at("p99.9=1h")
    for name, runs in results.curves().items():
        assert ample[name] == WithinLimit(max(results[run]["iops"] for run in runs), is_at_least=True)


def test_a_percentile_is_a_limit_too(results: hs.Results) -> None:
    """By hand, on a straight line between the two points that the limit lies between."""
    (runs, *_) = results.curves().values()
    (name, *_) = results.curves()
    below, above = ((results[run]["iops"], results[run]["p99_ms"]) for run in runs[:2])
    assert below[1] < above[1]
    limit_ms = (below[1] + above[1]) / 2
    found = results.iops_at(f"p99={limit_ms}ms")[name]
    assert found is not None
    assert not found.is_at_least
    assert found.iops == pytest.approx(max(below[0], (below[0] + above[0]) / 2), rel=1e-3)


@pytest.mark.parametrize("text", ["p0=20ms", "p100=20ms", "q99=20ms", "p=20ms", "=20ms", "p99=20"])
def test_limits_are_of_the_mean_or_a_percentile(results: hs.Results, text: str) -> None:
    with pytest.raises(hs.InputError, match=r"^response: "):
        results.iops_at(text)


def test_sampling_errors_are_called_so() -> None:
    results = hs.run("atlas-10k-9", depth=4, requests=4000)
    (row,) = results
    assert row["mean_low_ms"] < row["mean_ms"] < row["mean_high_ms"]
    assert row["half_width_ms"] == pytest.approx((row["mean_high_ms"] - row["mean_low_ms"]) / 2)
    assert row["p99_low_ms"] <= row["p99_ms"] <= row["p99_high_ms"]
    assert (row["p999_low_ms"], row["sampling"]) == (None, None), "four requests lie beyond p99.9"
    assert "mean\n±" in [column.heading for column in results.shown()[0]]
    assert any("95 % confidence interval of the mean" in note for note in results.notes)


def test_a_run_that_ends_before_the_cache_is_full_says_so() -> None:
    results = hs.run("nearline-24-raid6", "oltp-8k", depth=16, requests=1000)
    words = results[0]["sampling"]
    assert (results[0]["half_width_ms"], results[0]["sampling_code"]) == (None, "write_cache_moves")
    assert "too short" in results.shown()[1][0]
    assert f"no confidence interval for 1 of 1 mean: {words}" in results.notes


def test_percentiles_of_a_run(results: hs.Results) -> None:
    assert results.percentile_ms(0, 99) == results[0]["p99_ms"]
    assert results.percentile_ms(-1, 100) == results[-1]["max_ms"]


def test_plot_is_a_picture(results: hs.Results, tmp_path: Path) -> None:
    path = tmp_path / "curve.png"
    figure = results.plot(path)
    png = path.read_bytes()
    assert png.startswith(b"\x89PNG")
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert 1000 < width < 2500
    assert 700 < height < 2000
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[0].startswith(CHEETAH)
    assert labels[1].startswith(f"{ATLAS}@36.7GB")
    axes = figure.axes[0]
    assert "IOPS" in axes.get_xlabel()
    assert "ms" in axes.get_ylabel()
    results.plot(tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == png


def test_sequence() -> None:
    results = hs.run(ATLAS, seed=[1, 2, 3], requests=100)
    assert len(results) == 3
    assert results[-1]["seed"] == 3
    assert [row["seed"] for row in results[1:]] == [2, 3]
    with pytest.raises(IndexError):
        results[3]
