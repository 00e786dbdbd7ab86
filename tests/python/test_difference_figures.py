"""Figures of differences between runs on a few values, computed by hand, and the report that shows them."""

from __future__ import annotations

import math

import pytest

from headstack.comparison.differences.difference import compare_sides
from headstack.comparison.differences.estimates import ORDER_LEAST, RUNS_MAX, _least, paired
from headstack.comparison.differences.report import report_of
from headstack.comparison.differences.runs import Outcome, Run, Side
from headstack.comparison.differences.student import chi_square_of, p_of, t_of
from headstack.report.figures import Lines, Table


@pytest.mark.parametrize("needed", [2, 3, 4, 5, 7, 8, 9, 100, 4_097, RUNS_MAX - 1])
def test_the_least_sufficient_number_of_runs_is_found(needed: int) -> None:
    assert _least(lambda runs: runs >= needed) == needed


def test_at_least_two_runs_and_at_most_so_many_are_asked_for() -> None:
    assert _least(lambda runs: True) == 2
    assert _least(lambda runs: False) == RUNS_MAX


def test_a_drift_is_taken_out_of_enough_pairs_in_both_orders() -> None:
    def has_drift(pairs: int, first: int) -> bool:
        orders = [1] * first + [-1] * (pairs - first)
        return paired([0.01 * order + 0.001 * (at % 3) for at, order in enumerate(orders)], orders).with_drift

    assert has_drift(ORDER_LEAST, 4)
    assert has_drift(ORDER_LEAST, 2)
    assert not has_drift(ORDER_LEAST, 1)
    assert not has_drift(ORDER_LEAST - 1, 3)


def test_the_estimate_of_pairs_is_their_mean_without_the_drift() -> None:
    # A difference of 2 %, and of 1 % more for the one that comes first, in six of ten pairs.
    orders = [1, -1, 1, 1, -1, 1, -1, 1, -1, 1]
    noise = [0.001, -0.001, -0.001, 0.001, 0.001, -0.001, 0.0, 0.001, 0.0, -0.001]
    found = paired([0.02 + 0.01 * order + more for order, more in zip(orders, noise, strict=True)], orders)
    assert found.log == pytest.approx(0.02, abs=3e-4)
    assert found.counts == (10, 10)
    assert found.p < 1e-6
    low, high = found.interval(0.95)
    assert low < 0.02 < high
    assert high - low < 0.003


def test_distributions_are_those_of_the_tables() -> None:
    assert p_of(2.228, 10) == pytest.approx(0.05, abs=1e-4)
    assert p_of(0.0, 3) == 1.0
    assert p_of(math.inf, 3) == 0.0
    assert [t_of(0.975, n) for n in (1, 4, 30)] == pytest.approx([12.7062, 2.77645, 2.04227], rel=1e-5)
    assert t_of(0.1, 7) == -t_of(0.9, 7) == pytest.approx(-1.41492, rel=1e-5)
    assert [chi_square_of(share, 10) for share in (0.05, 0.5, 0.95)] == pytest.approx(
        [3.9403, 9.34182, 18.307], rel=1e-4
    )


def side(name: str, by_load: dict[str, list[float]], begin_s: float | None) -> Side:
    count = len(next(iter(by_load.values())))
    runs = [
        Run(
            f"{name} {at}",
            None if begin_s is None else begin_s + 2.0 * at,
            0.0,
            {load: Outcome({"iops": values[at], "mean_ms": 1_000 / values[at]}) for load, values in by_load.items()},
        )
        for at in range(count)
    ]
    return Side(name, tuple(runs))


def test_the_report_shows_each_run_of_each_load_at_its_place_in_time() -> None:
    fast, slow = (
        {"a": [110.0, 112.0, 111.0], "b": [50.0, 51.0, 52.0]},
        {"a": [100.0, 101.0, 99.0], "b": [49.0, 51.0, 53.0]},
    )
    found = compare_sides(side("new", fast, 0.0), side("old", slow, 1.0), 0.01, 0.03, "throughput")
    report = report_of(found)
    first, second = report.sections[1].figures
    assert isinstance(first, Lines)
    assert isinstance(second, Lines)
    # The most different load comes first; its runs alternate.
    assert (first.name, first.title) == ("runs-1", "Throughput of each run: a")
    assert (second.name, second.title) == ("runs-2", "Throughput of each run: b")
    assert [(one.name, list(one.x)) for one in first.series] == [("new", [1, 3, 5]), ("old", [2, 4, 6])]
    assert [list(one.y) for one in first.series] == [pytest.approx(fast["a"]), pytest.approx(slow["a"])]
    assert (first.x.label, first.y.label) == ("Run, by time", "Throughput (IOPS)")
    table = report.sections[0].figures[1]
    assert isinstance(table, Table)
    rows = {row[0]: row for row in table.rows}
    assert rows["a"][2] == pytest.approx(math.prod(fast["a"]) ** (1 / 3))
    assert rows["a"][3] == pytest.approx(math.prod(slow["a"]) ** (1 / 3))
    difference = 100 * (math.prod(fast["a"]) / math.prod(slow["a"])) ** (1 / 3) - 100
    assert rows["a"][4] == pytest.approx(difference)
    assert rows["a"][5] < difference < rows["a"][6]
    assert rows["a"][8] == found.cells[0].p_held


def test_a_single_load_needs_no_name_and_runs_without_times_keep_their_order() -> None:
    found = compare_sides(
        side("new", {"": [110.0, 112.0, 111.0]}, None),
        side("old", {"": [100.0, 101.0, 99.0]}, None),
        0.01,
        0.03,
        "mean",
    )
    report = report_of(found)
    [runs] = report.sections[1].figures
    assert isinstance(runs, Lines)
    assert (runs.title, runs.x.label, runs.y.label) == ("Mean of each run", "Run, in the order of files", "Mean (ms)")
    assert [list(one.x) for one in runs.series] == [[1, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize(("runs", "design"), [(1, "none"), (2, "unpaired"), (3, "paired")])
def test_three_runs_of_each_in_turn_are_pairs(runs: int, design: str) -> None:
    values = [110.0, 112.0, 111.0][:runs]
    ours, theirs = side("new", {"": values}, 0.0), side("old", {"": [0.9 * one for one in values]}, 1.0)
    [cell] = compare_sides(ours, theirs, 0.01, 0.03, "throughput").cells
    assert (cell.estimate.design, cell.estimate.counts) == (design, (runs, runs))
    assert cell.ours == pytest.approx(math.prod(values) ** (1 / runs))
    assert cell.theirs / cell.ours == pytest.approx(0.9)
    assert cell.estimate.log == pytest.approx(-math.log(0.9))
