"""Figures of the judge on a few values, computed by hand: bounds of levels, steps, and the numbers of observations."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest

from headstack.diagnosis.judging.evidence import correlation_time, threshold
from headstack.diagnosis.judging.levels import Slow, chance, noisier, of_days, of_hours, student_bound, usual_change
from headstack.diagnosis.judging.observations import observed
from headstack.diagnosis.judging.steps import FEATURES, STREAMS, plain_rows, rows_of, split, steps_of

NAN = math.nan


def test_the_deviation_of_levels_is_that_of_disks_that_vary_alike() -> None:
    # Two disks with a variance of 2: a new level differs from a mean of two by 1.5 times as much.
    for levels in ([[0.0, 2.0], [1.0, 3.0]], [[0.0, 2.0, NAN], [1.0, NAN, 3.0]]):
        assert astuple(Slow.of(np.array(levels))) == pytest.approx((math.sqrt(3.0), 2.0))
    # A third one with 9 times the median variance counts, one with more does not.
    alike = Slow.of(np.array([[0.0, 2.0], [1.0, 3.0], [0.0, 6.0]]))
    assert astuple(alike) == pytest.approx((math.sqrt(1.5 * 22.0 / 3.0), 3.0))
    assert Slow.of(np.array([[0.0, 2.0], [1.0, 3.0], [0.0, 6.1]])).freedom == 2.0
    assert Slow.of(np.array([[1.0, NAN], [NAN, NAN]])) == Slow(0.0, 0.0)


def test_a_bound_needs_a_degree_of_freedom() -> None:
    assert Slow(0.1, 10.0).bound(0.001) == pytest.approx(0.41437, rel=1e-3)
    assert Slow(0.1, 1.0).bound(0.025) == pytest.approx(1.2706, rel=1e-3)
    assert Slow(0.1, 0.9).bound(0.001) == math.inf
    assert student_bound(0.025, 30.0) == pytest.approx(2.04227, rel=1e-3)
    assert student_bound(1e-6, 5.0) == pytest.approx(24.771, rel=1e-3)


def test_the_budget_is_shared_by_eight_parts_and_all_lanes() -> None:
    # Levels of two hours: 4,383 a year.
    assert chance(0.01, 2.0, 8) == pytest.approx(0.01 / (8 * 2 * 4_383))
    assert chance(0.01, 2.0, 96) == pytest.approx(0.01 / (8 * 2 * 365.25))


def test_noise_is_the_root_of_changes_without_the_largest() -> None:
    changes = np.array([[4.0] * 7 + [900.0], [4.0] * 8, [4.0] * 8, [4.0] * 8, [4.0] * 7 + [NAN]])
    usual = np.array([1.0, 1.33, 1.34, 0.0, 1.0])
    assert noisier(changes, usual).tolist() == pytest.approx([2.0, 2 / 1.33, 1.0, 1.0, 1.0])


def test_the_usual_change_is_the_median_of_windows_of_eight() -> None:
    saw = np.array([[float(at % 2) for at in range(10)]])
    assert usual_change(saw) == 1.0
    assert usual_change(3.0 * saw) == 3.0
    assert usual_change(saw[:, :9]) == 1.0
    assert usual_change(saw[:, :8]) == 0.0, "seven changes"
    holed = saw.copy()
    holed[0, 4] = NAN
    assert usual_change(holed) == 0.0


def test_levels_are_means_of_two_hours_of_which_half_are_there() -> None:
    steps = np.arange(16)
    residuals = np.array([[0.0] * 8 + [2.0] * 8, [1.0] * 8 + [3.0] * 8])
    assert astuple(of_hours(residuals, steps)) == pytest.approx((math.sqrt(3.0), 2.0))
    residuals[1, :4] = NAN
    assert of_hours(residuals, steps).freedom == 2.0
    residuals[1, :5] = NAN
    assert of_hours(residuals, steps).freedom == 1.0, "three of eight quarters are no level"


def test_days_are_means_of_their_first_twelve_quarters() -> None:
    steps = np.concatenate([np.arange(13), 96 + np.arange(13)])
    day = [0.0] * 12 + [500.0]
    residuals = np.array([day + [2.0] * 13, [1.0] * 13 + [3.0] * 13])
    assert astuple(of_days(residuals, steps)) == pytest.approx((math.sqrt(3.0), 2.0))
    # A day lasts 96 quarters from its first one: eleven are left to the second.
    assert of_days(residuals, np.concatenate([np.arange(13), 94 + np.arange(13)])).freedom == 0.0
    residuals[0, :2] = NAN
    assert of_days(residuals, steps).freedom == 1.0, "eleven quarters are no day"


def test_correlation_time_is_one_plus_twice_the_sum_of_correlations() -> None:
    rng = np.random.default_rng(3)
    assert correlation_time(rng.normal(size=(4, 500))) == pytest.approx(1.0, abs=0.15)
    # Each value twice: neighbours correlate by one half.
    assert correlation_time(np.repeat(rng.normal(size=(4, 500)), 2, axis=1)) == pytest.approx(2.0, abs=0.15)
    assert correlation_time(np.full((2, 50), 7.0)) == 1.0


def test_thresholds_rise_with_the_run_and_fall_with_the_reference() -> None:
    # Siegmund: (e^b - 1 - b) / (2 k^2) values, b = 2 k (h + 1.166).
    for reference, mean_run in ((0.25, 1e4), (0.5, 876_600), (1.0, 1e6)):
        b = 2 * reference * (threshold(reference, mean_run) + 1.166)
        assert (math.expm1(b) - b) / (2 * reference**2) == pytest.approx(mean_run, rel=1e-4)


def row(start_s: float, disk: str = "sda", /, **more: float) -> dict[str, object]:
    told = {"reads": 40.0, "read_bytes": 40 * 4096.0, "read_latency_s": 0.01, "busy": 0.5, "length_s": 60.0}
    return {"host": "h", "disk": disk, "start_s": start_s, "writes": 0.0, "write_bytes": 0.0, **told, **more}


def test_all_requests_together_follow_from_reads_and_writes() -> None:
    mixed = row(900.0, writes=10.0, write_bytes=10 * 8192.0, write_latency_s=0.02)
    frame = observed([mixed, row(960.0, write_latency_s=0.5)], "test").frame
    both, alone = frame.rows(named=True)
    assert (both["requests"], both["bytes"]) == (50.0, 40 * 4096.0 + 10 * 8192.0)
    assert both["latency_s"] == pytest.approx((40 * 0.01 + 10 * 0.02) / 50)
    # Little's law: 50 requests of 12 ms in a minute.
    assert both["in_flight"] == pytest.approx(50 * 0.012 / 60)
    assert alone["write_latency_s"] is None, "a latency of no request"
    assert alone["latency_s"] == pytest.approx(0.01)
    uncounted = observed(
        [{"host": "h", "disk": "d", "start_s": 0.0, "length_s": 1.0, "latency_s": value} for value in (0.0, 0.1)], "t"
    )
    assert uncounted.frame["latency_s"].to_list() == [None, 0.1]
    assert "reads" in uncounted.unsaid
    assert "latency_s" not in uncounted.unsaid


def test_the_last_quarter_of_an_hour_waits_for_its_end() -> None:
    frame = observed([row(start_s) for start_s in (0.0, 899.0, 900.0, 1_799.0)], "test").frame
    nothing = rows_of(None)
    complete, waiting = split(frame, nothing)
    assert (complete["start_s"].to_list(), waiting["start_s"].to_list()) == ([0.0, 899.0], [900.0, 1_799.0])
    later = observed([row(1_800.0)], "test").frame
    complete, waiting = split(later, rows_of(plain_rows(waiting)))
    assert (complete["start_s"].to_list(), waiting["start_s"].to_list()) == ([900.0, 1_799.0], [1_800.0])
    assert split(nothing, nothing)[0].is_empty()
    assert steps_of(nothing, {}) == []


def test_a_step_is_the_mean_of_logarithms_weighted_by_requests() -> None:
    rows = [
        row(1_800.0),
        row(1_860.0, reads=120.0, read_bytes=120 * 4096.0, read_latency_s=0.04),
        row(1_800.0, "sdb", reads=29.0),
    ]
    [step] = steps_of(observed(rows, "test").frame, {("h", "sda"): 0, ("h", "sdb"): 1})
    assert (step.number, step.start_s) == (2, 1_800.0)
    read, write, both = (STREAMS.index(stream) for stream in ("read", "write", "all"))
    expected = (40 * math.log(0.01) + 120 * math.log(0.04)) / 160
    assert step.log_latency[0, read] == pytest.approx(expected)
    assert step.log_latency[0, both] == pytest.approx(expected)
    assert math.isnan(step.log_latency[0, write]), "no writes"
    assert np.isnan(step.log_latency[1]).all(), "29 requests are too few"
    assert np.isnan(step.spread).all(), "two intervals show no fastest tenth"
    features = dict(zip(FEATURES, step.features[0, read], strict=True))
    assert features["rate"] == pytest.approx(math.log(160 / 120))
    assert features["size"] == pytest.approx(math.log(4096))
    assert features["share"] == 1.0
    depth = (40 * math.log(40 * 0.01 / 60 / 0.5) + 120 * math.log(120 * 0.04 / 60 / 0.5)) / 160
    assert features["depth"] == pytest.approx(depth)


def test_the_spread_is_the_distance_from_the_fastest_tenth_of_ten_intervals() -> None:
    def spread(count: int) -> float:
        rows = [row(60.0 * at, read_latency_s=0.01 if at < 2 else 0.02) for at in range(count)]
        [step] = steps_of(observed(rows, "test").frame, {("h", "sda"): 0})
        return float(step.spread[0, 0])

    assert math.isnan(spread(9))
    assert spread(10) == pytest.approx(0.8 * math.log(2.0))
    assert spread(11) == pytest.approx(9 / 11 * math.log(2.0))


def test_a_quarter_of_an_hour_without_requests_is_a_step_too() -> None:
    idle = row(900.0, reads=0.0, read_bytes=0.0)
    found = steps_of(observed([row(0.0), idle], "test").frame, {("h", "sda"): 0})
    assert [step.number for step in found] == [0, 1]
    assert np.isnan(found[1].log_latency).all()
