"""The statistics of ``judge``: when a disk is slow, since when, by how much and why."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from conftest import SHARED, lacks, slow_but
from headstack import InputError
from headstack.diagnosis.judging.causes import CAUSES, cause_of
from headstack.diagnosis.judging.evidence import (
    DAYS,
    Days,
    Evidence,
    correlation_time,
    deviates,
    discoveries,
    threshold,
)
from headstack.diagnosis.judging.expectation import Expected, Peers, leave_one_out_median
from headstack.diagnosis.judging.fleet import Fleet
from headstack.diagnosis.judging.judge import judge
from headstack.diagnosis.judging.levels import CHANGES, DAY_SEEN, chance, noisier, of_days, student_bound, usual_change
from headstack.diagnosis.judging.observations import SCHEMA, Observations, completed
from headstack.diagnosis.judging.past import Past
from headstack.diagnosis.judging.steps import STEP_S
from headstack.diagnosis.judging.verdict import Verdict

FAILSLOW = SHARED / "validation" / "failslow.parquet"
DAY = 96
Slow = Callable[[int, int], float]


def observed(days: float, disks: int, slower: Slow, requests: float = 20_000.0, seed: int = 1) -> Observations:
    """Reads of one size at rates that change with each quarter of an hour, and latency with them. ``slower`` says
    by which factor a disk takes longer in a step."""
    draw = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for step in range(round(days * DAY)):
        load = float(draw.uniform(0.2, 1.0))
        for disk in range(disks):
            count = requests * load * float(draw.lognormal(0.0, 0.02))
            mean_s = 0.008 * (1.0 + load) * float(draw.lognormal(0.0, 0.04)) * slower(disk, step)
            row = {
                "reads": count,
                "read_bytes": 8192 * count,
                "read_latency_s": mean_s,
                "writes": 0.0,
                "write_bytes": 0.0,
            }
            rows.append({"host": "h", "disk": f"d{disk}", "start_s": step * STEP_S, "length_s": STEP_S} | row)
    frame = pl.DataFrame(
        {name: pl.Series([row.get(name) for row in rows], dtype=kind) for name, kind in SCHEMA.items()}
    )
    return Observations(completed(frame.lazy()).collect(), "made up")


def healthy(_disk: int, _step: int) -> float:
    return 1.0


def from_step(disk: int, begin: int, factor: float) -> Slow:
    return lambda this, step: factor if this == disk and step >= begin else 1.0


FEEDBACK = {"open": 0.0, "half-closed": 0.5, "closed": 1.0}
"""To which power of its slowness a disk's rate falls."""


def injected(seen: Observations, slow: tuple[str, str], begin_s: float, factor: float, feedback: str) -> Observations:
    """The same observations with a disk whose requests take ``factor`` times as long, and whose clients react to it."""
    of, less = pl.col, factor ** FEEDBACK[feedback]
    here = (of("host") == slow[0]) & (of("disk") == slow[1]) & (of("start_s") >= begin_s)
    counts = ("reads", "writes", "requests", "read_bytes", "write_bytes", "bytes")
    times = ("read_latency_s", "write_latency_s", "latency_s")
    changed = seen.frame.with_columns(
        [pl.when(here).then(of(name) / less).otherwise(of(name)).alias(name) for name in counts]
        + [pl.when(here).then(of(name) * factor).otherwise(of(name)).alias(name) for name in times]
        + [pl.lit(None, pl.Float64).alias("in_flight")]
    )
    return Observations(completed(changed.lazy()).collect(), "made up")


def of(observations: Observations, **settings: Any) -> dict[str, Verdict]:
    return {verdict.disk: verdict for verdict in judge(observations, **settings).verdicts}


def until(observations: Observations, step: int) -> Observations:
    return Observations(observations.frame.filter(pl.col("start_s") < step * STEP_S), "made up")


def test_thresholds_are_siegmunds() -> None:
    # One alarm in a hundred drive-years, for values each minute, hour and day.
    assert [round(threshold(0.5, 36_525 * a_day), 1) for a_day in (1_440, 24, 1)] == [15.9, 11.8, 8.6]


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_false_alarms_keep_to_the_budget(correlation: float) -> None:
    """A budget so great that alarms come: lanes of independent and of correlated residuals with heavy tails."""
    draw = np.random.default_rng(5)
    lanes, steps, budget = 200, 2_000, 10.0
    noise = draw.standard_t(4, (lanes, 256 + steps))
    series = noise.copy()
    for at in range(1, series.shape[1]):
        series[:, at] = correlation * series[:, at - 1] + noise[:, at]
    pools = series[:, :256]
    times = np.array([correlation_time(row[None, :]) for row in pools])
    evidence = Evidence.none(lanes)
    thresholds = evidence.thresholds(budget)
    alarms = 0
    for at in range(steps):
        residuals = series[:, 256 + at]
        before = evidence.alarmed > 0
        evidence.take(at, residuals, *deviates(residuals, pools, times), times, thresholds)
        alarms += int(((evidence.alarmed > 0) & ~before).sum())
    expected = budget * lanes * steps / 35_066
    assert alarms <= 1.3 * expected
    # And the test hears something: it is not silent whatever comes.
    evidence.take(steps, np.full(lanes, 1e6), *deviates(np.full(lanes, 1e6), pools, times), times, thresholds)
    for at in range(60):
        evidence.take(at, np.full(lanes, 1e6), *deviates(np.full(lanes, 1e6), pools, times), times, thresholds)
    assert (evidence.alarmed > 0).all()


def test_the_time_of_correlation_is_found() -> None:
    draw = np.random.default_rng(2)
    series = draw.normal(size=(20, 400))
    assert correlation_time(series) < 1.3
    for at in range(1, 400):
        series[:, at] += 0.6 * series[:, at - 1]
    assert correlation_time(series) == pytest.approx((1 + 0.6) / (1 - 0.6), rel=0.25)


def test_discoveries_are_few_in_health() -> None:
    assert not discoveries(np.zeros(1_000), 0.05).any()
    assert discoveries(np.array([12.0, *np.zeros(999)]), 0.05).sum() == 1


def test_what_stands_over_the_fleet_needs_more_where_more_is_watched() -> None:
    seen = observed(2, 8, from_step(2, DAY, 1.4))
    # Alarmed within hours; that it is no chance among all disks is certain a little later.
    assert {disk: one.stands for disk, one in of(seen).items() if one.kind == "slow"} == {"d2": True}
    assert not any(one.stands for one in of(observed(2, 8, healthy)).values())
    fleet = Fleet.of(judge(seen).state)
    slow, *others = sorted((fleet.log_e_value(place) for place in range(8)), reverse=True)
    assert slow > math.log(8 / 0.05) > 0 > max(others)
    # As much evidence stands among 8, and not among so many that one would have it by chance.
    assert discoveries(np.array([6.0, *[-9.0] * 7]), 0.05).sum() == 1
    assert not discoveries(np.array([6.0, *[-9.0] * 99]), 0.05).any()


def test_medians_leave_out_the_disk_itself() -> None:
    draw = np.random.default_rng(3)
    values = draw.normal(size=(1, 9))
    values[0, 4] = math.nan
    wanted = [np.nanmedian(np.delete(values[0], at)) for at in range(9)]
    found = leave_one_out_median(values)[0]
    assert np.allclose(np.delete(found, 4), np.delete(wanted, 4))
    assert math.isnan(found[4])
    assert np.isnan(leave_one_out_median(np.array([[1.0, 2.0, 3.0]]))).all()


def test_a_healthy_host_is_fine() -> None:
    assert {verdict.kind for verdict in of(observed(3, 6, healthy)).values()} == {"fine"}
    assert {verdict.kind for verdict in of(observed(3, 6, healthy), peers="none").values()} == {"fine"}


@pytest.mark.parametrize(("factor", "within"), [(1.3, DAY), (2.0, 8)])
def test_a_slow_disk_is_found_among_peers(factor: float, within: int) -> None:
    seen = observed(3, 6, from_step(2, DAY, factor))
    found = of(until(seen, DAY + within + 1))
    assert {disk: verdict.kind for disk, verdict in found.items() if verdict.kind != "fine"} == {"d2": "slow"}
    verdict = found["d2"]
    assert verdict.method == "peers"
    assert verdict.since_s is not None
    assert abs(verdict.since_s - DAY * STEP_S) <= 4 * STEP_S
    assert verdict.slower is not None
    assert verdict.slower.low < factor < verdict.slower.high
    assert verdict.confidence is not None
    assert verdict.confidence > 0.9
    assert of(until(seen, DAY))["d2"].kind == "fine"


@pytest.mark.parametrize("feedback", FEEDBACK)
@pytest.mark.parametrize(
    ("factor", "within"),
    slow_but(
        [(1.3, DAY), (2.0, 8), (2.2, 8), (5.0, 8), (20.0, 8), (100.0, 8)],
        (1.3, DAY),
        (2.0, 8),
        (100.0, 8),
        reason="2.6 s of processor time each; the least, the usual and the largest factor stand for them",
    ),
)
def test_a_slow_disk_is_found_among_peers_whatever_its_rate_does(factor: float, within: int, feedback: str) -> None:
    seen = injected(observed(2.2, 8, healthy, 80_000.0), ("h", "d3"), DAY * STEP_S, factor, feedback)
    found = of(until(seen, DAY + within + 1))
    assert {disk: verdict.kind for disk, verdict in found.items() if verdict.kind != "fine"} == {"d3": "slow"}
    assert found["d3"].slower is not None
    # Bounded from below where the rate fell.
    assert 0.8 * factor < found["d3"].slower.factor < 1.1 * factor
    assert of(seen)["d3"].kind == "slow"


def evenings(days: int, disks: int, slow_day: int, factor: float) -> Observations:
    """Twelve quarters of an hour a day of disks whose noise is that of real ones: 6 % from quarter to quarter, and 2 %
    from day to day. The first disk is slower on one day."""
    draw = np.random.default_rng(12)
    seen = observed(
        days * DAY_SEEN / DAY, disks, lambda disk, step: factor if disk == 0 and step // DAY_SEEN == slow_day else 1.0
    )
    step = (pl.col("start_s") / STEP_S).round().cast(pl.Int64)
    level = np.exp(draw.normal(0.0, 0.02, (days, disks))).repeat(DAY_SEEN, axis=0).ravel()
    noise = pl.Series(level * draw.lognormal(0.0, 0.045, seen.frame.height))
    moved = seen.frame.with_columns(
        ((step // DAY_SEEN * DAY + step % DAY_SEEN) * STEP_S).cast(pl.Float64).alias("start_s"),
        *[(pl.col(name) * noise).alias(name) for name in ("read_latency_s", "latency_s")],
    )
    return Observations(moved, "made up")


def test_a_day_of_twelve_quarters_shows_a_disk_that_is_1_28_times_as_slow() -> None:
    # The last quarter of a day is judged when something later is seen.
    slow = of(until(evenings(9, 10, 6, 1.28), 7 * DAY + 1))
    assert {disk: one.kind for disk, one in slow.items() if one.kind != "fine"} == {"d0": "slow"}
    assert slow["d0"].since_s == 6 * DAY * STEP_S
    assert {one.kind for one in of(until(evenings(9, 10, 6, 1.0), 7 * DAY + 1)).values()} == {"fine"}
    # The next day, on which it is well, ends the alarm.
    assert of(evenings(9, 10, 6, 1.28))["d0"].kind != "slow"


def test_days_keep_to_their_share_of_the_budget() -> None:
    """Means of twelve normal values about a level of the day, with a budget so great that alarms come."""
    draw, lanes, days, budget = np.random.default_rng(3), 600, 60, 40.0

    def a_day(disks: int) -> np.ndarray:
        return draw.normal(0.0, 0.03, (disks, 1)) + draw.normal(0.0, 0.05, (disks, DAY_SEEN))

    learnt = np.concatenate([a_day(10) for _ in range(5)], axis=1)
    steps = np.array([DAY * day + at for day in range(5) for at in range(DAY_SEEN)])
    health = of_days(learnt - np.median(learnt, axis=1, keepdims=True), steps)
    assert health.freedom == 40
    assert health.deviation == pytest.approx(math.hypot(0.03, 0.05 / math.sqrt(DAY_SEEN)) * math.sqrt(1.2), rel=0.3)
    bounds = np.full(lanes, health.bound(chance(budget, 1.0, DAY)))
    evidence, alarms = Evidence.none(lanes), 0
    thresholds = evidence.thresholds(budget)
    silent = deviates(np.zeros(lanes), np.ones((lanes, 64)), np.ones(lanes))
    for day in range(days):
        for at, values in enumerate(a_day(lanes).T):
            before = evidence.alarmed > 0
            step = DAY * (day + 1) + at
            evidence.take(step, values, *silent, np.ones(lanes), thresholds, days=Days(values, bounds))
            alarms += int(((evidence.alarmed > 0) & ~before).sum())
    expected = budget / 8 * lanes * days / 365.25
    assert 0 < alarms <= 1.5 * expected + 3
    # One quarter of an hour, however slow, makes no slow day.
    spike = np.full(lanes, 50.0)
    for at in range(DAY_SEEN):
        values = spike if at == 3 else np.zeros(lanes)
        evidence.take(DAY * (days + 1) + at, values, *silent, np.ones(lanes), thresholds, days=Days(values, bounds))
    assert (evidence.level[:, DAYS] < 1.0).all()


def test_bounds_rise_with_noise_and_not_with_an_onset() -> None:
    draw = np.random.default_rng(5)

    usual = usual_change(draw.normal(0.0, 0.05, (50, 100)))

    def raised(noise: float, jump: float = 0.0) -> np.ndarray:
        values = draw.normal(0.0, noise, (4_000, CHANGES + 1))
        values[:, 5:] += jump
        return noisier(np.diff(values, axis=1) ** 2, np.full(4_000, usual))

    assert 0.05 < (raised(0.05) > 1.0).mean() < 0.13
    assert np.median(raised(0.15)) == pytest.approx(3.0, rel=0.1)
    # A disk that becomes 20 times as slow is hardly noisier: the change at the onset is left out.
    assert np.quantile(raised(0.05, math.log(20.0)), 0.99) < 2.5
    # Fewer changes than are needed, or a usual noise that is not known, raise nothing.
    assert noisier(np.full((1, CHANGES), -1.0), np.array([0.05])).tolist() == [1.0]
    assert noisier(np.full((1, CHANGES), 9.0), np.array([0.0])).tolist() == [1.0]


def test_students_tail_is_known_far_out() -> None:
    # Cauchy's is known, and many degrees of freedom are nearly normal.
    assert student_bound(1e-6, 1.0) == pytest.approx(1e6 / math.pi, rel=0.01)
    assert student_bound(2.87e-7, 1e6) == pytest.approx(5.0, abs=0.01)


def test_a_lower_bound_says_so_and_half_of_an_alarm_is_not_fine() -> None:
    seen = observed(1.5, 8, healthy, 80_000.0)
    closed = of(injected(seen, ("h", "d3"), DAY * STEP_S, 20.0, "closed"))["d3"]
    assert closed.slower is not None
    assert closed.slower.is_lower_bound
    assert "at least" in closed.why
    assert "lower bound" in closed.why
    opened = injected(seen, ("h", "d3"), DAY * STEP_S, 2.0, "open")
    plain = of(opened)["d3"]
    assert plain.slower is not None
    assert not plain.slower.is_lower_bound
    assert "lower bound" not in plain.why
    course = [of(until(opened, DAY + 1 + steps))["d3"] for steps in range(8)]
    doubted = [one for one in course if "The evidence is " in one.why]
    assert doubted
    assert {one.kind for one in doubted} == {"undecided"}
    assert [one.kind for one in course][-1] == "slow"


@pytest.mark.parametrize("feedback", FEEDBACK)
@pytest.mark.parametrize("factor", [2.0, 2.2, 5.0, 20.0, 100.0])
def test_a_slow_disk_is_found_alone_whatever_its_rate_does(factor: float, feedback: str) -> None:
    seen = injected(observed(3.2, 1, healthy, 80_000.0), ("h", "d0"), 2 * DAY * STEP_S, factor, feedback)
    assert of(until(seen, 2 * DAY), peers="none")["d0"].kind == "fine"
    assert of(until(seen, 3 * DAY + 1), peers="none")["d0"].kind == "slow"


def test_a_closed_loop_teaches_no_slope_over_the_rate() -> None:
    """At a constant queue depth the rate is what the latency makes it: a curve over it would expect any slowness."""
    for disks, settings in ((8, {}), (1, {"peers": "none"})):
        seen = observed(3.2, disks, healthy)
        depth, of_col = 8.0, pl.col
        count = depth * STEP_S / of_col("latency_s")
        closed = seen.frame.with_columns(reads=count, requests=count, read_bytes=8192 * count, bytes=8192 * count)
        slow = injected(Observations(closed, "made up"), ("h", "d0"), 2 * DAY * STEP_S, 1.6, "closed")
        found = of(until(slow, 3 * DAY + 1), **settings)
        assert {disk for disk, one in found.items() if one.kind == "slow"} == {"d0"}


def test_less_load_and_less_latency_is_no_slowness_and_no_health() -> None:
    seen = observed(0.5, 8, healthy)
    light = pl.when(pl.col("disk") == "d1").then(0.2).otherwise(1.0)
    counts = ("reads", "requests", "read_bytes", "bytes")
    quick = pl.when(pl.col("disk") == "d1").then(0.8).otherwise(1.0)
    frame = seen.frame.with_columns(
        [(pl.col(name) * light).alias(name) for name in counts]
        + [(pl.col(name) * quick).alias(name) for name in ("read_latency_s", "latency_s")]
    )
    found = of(Observations(frame, "made up"))
    assert {disk: one.kind for disk, one in found.items() if one.kind != "fine"} == {"d1": "undecided"}
    # More load at no more latency proves health.
    heavy = pl.when(pl.col("disk") == "d1").then(5.0).otherwise(1.0)
    frame = seen.frame.with_columns([(pl.col(name) * heavy).alias(name) for name in counts])
    frame = frame.with_columns([(pl.col(name) * quick).alias(name) for name in ("read_latency_s", "latency_s")])
    assert of(Observations(frame, "made up"))["d1"].kind == "fine"


def one_line_rule(frame: pl.DataFrame) -> set[str]:
    """Disks whose daily median latency is more than 1.2 times that of their host."""
    day = (pl.col("start_s") // (DAY * STEP_S)).alias("day")
    of_host = frame.group_by(day).agg(pl.col("latency_s").median().alias("host_s"))
    of_disk = frame.group_by(day, "disk").agg(pl.col("latency_s").median())
    slow = of_disk.join(of_host, on="day").filter(pl.col("latency_s") > 1.2 * pl.col("host_s"))
    return set(slow["disk"])


def test_a_busier_disk_is_not_slow_and_a_slow_one_among_such_loads_is_found() -> None:
    """Loads differ between disks, and d1 has the most: what a rule of one line calls slow."""
    draw = np.random.default_rng(4)
    rows: list[dict[str, Any]] = []
    for step in range(2 * DAY):
        for disk in range(8):
            load = float(draw.uniform(0.3, 0.9) if disk != 1 else draw.uniform(0.7, 1.3))
            count = 20_000.0 * load
            latency_s = 0.004 * (1.0 + 1.5 * load) * float(draw.lognormal(0.0, 0.04))
            row = {"reads": count, "read_bytes": 8192 * count, "read_latency_s": latency_s, "writes": 0.0}
            rows.append({"host": "h", "disk": f"d{disk}", "start_s": step * STEP_S, "length_s": STEP_S} | row)
    raw = pl.DataFrame({name: pl.Series([row.get(name) for row in rows], dtype=kind) for name, kind in SCHEMA.items()})
    seen = Observations(completed(raw.lazy()).collect(), "made up")
    assert one_line_rule(seen.frame) == {"d1"}
    assert {verdict.kind for verdict in of(until(seen, DAY)).values()} == {"fine"}
    slow = injected(seen, ("h", "d2"), DAY * STEP_S, 1.3, "half-closed")
    assert {disk for disk, one in of(slow).items() if one.kind == "slow"} == {"d2"}


@pytest.mark.parametrize("disks", [1, 8])
def test_silence_is_no_health(disks: int) -> None:
    seen = observed(3, disks, healthy)
    idle = (pl.col("disk") == "d0") & (pl.col("start_s") >= 2.5 * DAY * STEP_S)
    none = [pl.when(idle).then(0.0).otherwise(pl.col(n)).alias(n) for n in ("reads", "requests", "read_bytes", "bytes")]
    nothing = pl.lit(None, pl.Float64)
    times = [pl.when(idle).then(nothing).otherwise(pl.col(n)).alias(n) for n in ("read_latency_s", "latency_s")]
    frame = seen.frame.with_columns(none + times)
    assert of(Observations(frame.filter(pl.col("start_s") < 2.5 * DAY * STEP_S), "made up"))["d0"].kind == "fine"
    for one in (frame, frame.filter(~idle)):
        verdict = of(Observations(one, "made up"))["d0"]
        if disks == 1 and one.height < frame.height:
            # The log ends where the disk does: that is a verdict on its end.
            assert verdict.kind == "fine"
            continue
        assert verdict.kind == "undecided"
        assert "0 of the last 8 15-minute intervals could be compared" in verdict.why
        assert "none since 1970-01-03 11:45 UTC" in verdict.why


def test_writes_that_are_slow_alone_are_found_when_their_rate_falls() -> None:
    seen = observed(1.2, 8, healthy, 80_000.0)
    both = seen.frame.with_columns(
        writes=pl.col("reads"), write_bytes=pl.col("read_bytes"), write_latency_s=pl.col("read_latency_s") / 4
    )
    here = (pl.col("disk") == "d5") & (pl.col("start_s") >= DAY * STEP_S)
    fewer = [pl.when(here).then(pl.col(n) / 30).otherwise(pl.col(n)).alias(n) for n in ("writes", "write_bytes")]
    slower = pl.when(here).then(pl.col("write_latency_s") * 30).otherwise(pl.col("write_latency_s"))
    frame = both.with_columns([*fewer, slower.alias("write_latency_s")])
    again = frame.with_columns(
        pl.lit(None, pl.Float64).alias(n) for n in ("requests", "bytes", "latency_s", "in_flight")
    )
    found = of(until(Observations(completed(again.lazy()).collect(), "made up"), DAY + 9))
    assert {disk: one.kind for disk, one in found.items() if one.kind != "fine"} == {"d5": "slow"}
    assert "Its writes take" in found["d5"].why


def test_a_disk_that_was_always_slow_is_found_among_peers() -> None:
    verdict = of(observed(0.25, 6, from_step(0, 0, 2.0)))["d0"]
    assert verdict.kind == "slow"
    assert "since its first data" in verdict.why


def test_a_disk_without_peers_is_compared_with_its_past_under_its_load() -> None:
    seen = observed(3, 1, from_step(0, 2 * DAY, 1.6))
    assert of(until(seen, DAY // 2))["d0"].kind == "undecided"
    assert of(until(seen, 2 * DAY))["d0"].kind == "fine"
    verdict = of(until(seen, 2 * DAY + 17))["d0"]
    assert (verdict.kind, verdict.method) == ("slow", "own past")
    assert verdict.slower is not None
    assert verdict.slower.factor == pytest.approx(1.6, rel=0.1)


def test_a_disk_that_is_well_again_is_fine() -> None:
    seen = observed(4, 6, lambda disk, step: 2.0 if disk == 1 and DAY <= step < 2 * DAY else 1.0)
    assert of(until(seen, 2 * DAY))["d1"].kind == "slow"
    assert of(seen)["d1"].kind == "fine"


def test_disks_that_slow_down_together_are_undecided() -> None:
    found = of(observed(4, 6, lambda _, step: 1.6 if step >= 2 * DAY else 1.0))
    assert {verdict.kind for verdict in found.values()} == {"undecided"}
    assert "at the same time" in found["d0"].why


def test_few_requests_tell_nothing() -> None:
    found = of(observed(2, 6, from_step(2, DAY, 5.0), requests=20.0))
    assert {verdict.kind for verdict in found.values()} == {"undecided"}


def test_a_twin_finds_what_was_always_slow() -> None:
    class Twin:
        system = "m"

        def __init__(self, apart: float | None) -> None:
            self.apart = apart

        def expected(self, stream: str, depth: float, size_bytes: float | None, read_share: float) -> Expected | None:
            assert (stream, read_share) == ("read", 1.0)
            return Expected(0.012, self.apart, None if self.apart is None else 0.9, "not known")

    seen = observed(2, 1, from_step(0, 0, 2.5))
    frame = Observations(seen.frame.with_columns(model=pl.lit("m")), "made up")
    verdict = of(frame, twin={"m": Twin(0.1)})["d0"]
    assert (verdict.kind, verdict.method) == ("slow", "twin")
    # A model without a known error, or with one as large, accuses no disk.
    assert of(frame, twin={"m": Twin(None)})["d0"].kind == "fine"
    assert of(frame, twin={"m": Twin(math.log(4.0))})["d0"].kind == "fine"
    assert of(seen)["d0"].kind == "fine"


@pytest.mark.parametrize("peers", ["host", "none"])
def test_two_halves_are_as_one(peers: str) -> None:
    seen = observed(3, 5, from_step(1, 2 * DAY, 1.5))
    whole = judge(seen, peers=peers)  # type: ignore[arg-type]
    cut_s = 1.37 * DAY * STEP_S
    first = judge(Observations(seen.frame.filter(pl.col("start_s") < cut_s), "made up"), peers=peers)  # type: ignore[arg-type]
    kept = json.loads(json.dumps(first.state, allow_nan=False))
    rest = Observations(seen.frame.filter(pl.col("start_s") >= cut_s), "made up")
    second = judge(rest, peers=peers, state=kept)  # type: ignore[arg-type]
    assert second.verdicts == whole.verdicts
    assert json.dumps(second.state) == json.dumps(whole.state)


def test_the_state_is_bounded() -> None:
    sizes = [len(json.dumps(judge(observed(days, 1, healthy), peers="none").state)) for days in (8, 30)]
    assert sizes[1] < 4 * sizes[0]
    past = Past()
    for step in range(20_000):
        past.learn(
            step, -5.0 + 0.01 * math.sin(step), np.array([1.0 + math.sin(step / 7), 0.0, 1.0, 0.0]), healthy=True
        )
    assert len(past.spells) <= 512
    assert len(past.young) <= 200


def test_slow_growth_is_not_learnt_as_health() -> None:
    past, draw = Past(), np.random.default_rng(1)
    for step in range(60 * DAY):
        growth = 0.01 * step / DAY
        past.learn(
            step, -5.0 + growth + draw.normal(0, 0.02), np.array([draw.uniform(1, 2), 9.0, 1.0, 0.0]), healthy=True
        )
    # A tenth is all that it may drift, whatever it has seen of growth by 80 %.
    expected = -past.residual(0.0, np.array([1.5, 9.0, 1.0, 0.0]))[0]
    assert expected < -5.0 + math.log(1.1) + 0.03


def spells(draw: np.random.Generator, count: int, length: int = 8) -> list[np.ndarray]:
    """Loads (the logarithms of rate and size, the share of reads, the logarithm of what is in flight), each as long as
    a spell."""
    found = []
    for _ in range(count):
        load = [math.log(draw.uniform(20, 150)), math.log(4096 * 2.0 ** draw.integers(6)), draw.uniform(0.3, 0.9), 0.1]
        found += [np.array(load)] * length
    return found


def took(load: np.ndarray) -> float:
    """The logarithm of setup and transfer under a queue, as of a disk."""
    service_s = 0.004 + math.exp(load[1]) / 50e6
    return math.log(service_s / (1.0 - min(math.exp(load[0]) * service_s, 0.9) / 2))


def learnt(draw: np.random.Generator, misfit: float = 0.0, length: int = 8) -> Past:
    past, off = Past(), 0.0
    for step, load in enumerate(spells(draw, DAY // length, length)):
        off = draw.normal(0.0, misfit) if step % length == 0 else off
        past.learn(step, took(load) + off + draw.normal(0.0, 0.03), load, healthy=True)
    assert past.is_learned
    return past


def test_loads_that_were_not_learnt_are_expected_as_well_as_it_says() -> None:
    draw = np.random.default_rng(6)
    standard = []
    for _ in range(20):
        past = learnt(draw, misfit=0.05)
        for load in spells(draw, 40, 1):
            residual, trust, two_sided = past.residual(took(load) + draw.normal(0.0, math.hypot(0.05, 0.03)), load)
            standard.append(residual * trust / past.deviation if two_sided else math.nan)
    told = np.array(standard)[np.isfinite(standard)]
    assert len(told) > 0.6 * len(standard)
    assert 0.7 < float(np.sqrt(np.mean(told**2))) < 1.2


def test_a_load_far_from_all_that_were_seen_is_not_judged() -> None:
    past = learnt(np.random.default_rng(7))
    near, far = np.array([4.5, math.log(16_384), 0.6, 0.1]), np.array([4.5, math.log(4 << 20), 0.6, 0.1])
    assert abs(past.residual(took(near), near)[0]) < 0.1
    assert math.isnan(past.residual(took(far), far)[0])


def test_quarters_of_one_load_are_one_observation() -> None:
    draw = np.random.default_rng(8)
    # What is wrong at a load is wrong for all of its eight quarters.
    assert learnt(draw, misfit=0.15).health.time > 5.0
    assert learnt(draw, length=1).health.time == pytest.approx(1.0, abs=0.2)


def test_what_is_in_flight_explains_no_slowness() -> None:
    past = learnt(np.random.default_rng(9))
    load = np.array([4.5, math.log(16_384), 0.6, 0.1])
    healthy, *_ = past.residual(took(load), load)
    deeper = load + np.array([0.0, 0.0, 0.0, 0.12])
    assert past.residual(took(load) + math.log(1.3), deeper)[0] - healthy == pytest.approx(math.log(1.3))
    # Far more than ever was in flight explains what is in proportion to it.
    burst = load + np.array([0.0, 0.0, 0.0, 2.0])
    assert past.residual(took(load) + 2.0, burst)[0] - healthy == pytest.approx(math.log(1.15), abs=0.01)


def test_where_the_queue_changes_with_no_load_busy_time_is_judged() -> None:
    draw, past = np.random.default_rng(10), Past()
    for step in range(DAY):
        load = np.array([5.0, 9.0, 1.0, draw.uniform(0.0, 3.0)])
        past.learn(step, -6.0 + load[3] + draw.normal(0.0, 0.03), load, healthy=True)
    assert past.by_busy
    residual, *_ = past.residual(-6.0 + 2.5 + math.log(1.5), np.array([5.0, 9.0, 1.0, 2.5]))
    assert residual == pytest.approx(math.log(1.5), abs=0.05)


def test_a_disk_whose_load_was_never_seen_is_not_called_fine() -> None:
    seen = observed(3, 1, healthy)
    other = pl.when(pl.col("start_s") >= 2 * DAY * STEP_S).then(1000.0).otherwise(1.0)
    moved = seen.frame.with_columns(read_bytes=pl.col("read_bytes") * other, bytes=pl.col("bytes") * other)
    verdict = of(Observations(moved, "made up"), peers="none")["d0"]
    assert verdict.kind == "undecided"
    assert "its load was unlike its own past and its peers" in verdict.why


def test_peers_that_are_sick_teach_nothing() -> None:
    draw, peers = np.random.default_rng(1), Peers()
    for step in range(24):
        latency = -5.0 + draw.normal(0.0, 0.02, 6)
        latency[0] += 1.0
        latency[1] += 0.8 * (step % 4 == 0)
        peers.learn(step, latency, np.zeros((6, 4)), 0)
    assert np.abs(peers.health.pool).max() < 0.2


def test_what_is_asked_wrongly_is_refused() -> None:
    seen = observed(0.1, 4, healthy)
    with pytest.raises(InputError, match="peers: friends"):
        judge(seen, peers="friends")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="drive-year"):
        judge(seen, false_alarms_per_drive_year=0.0)
    with pytest.raises(InputError, match="version 7"):
        judge(seen, state={"version": 7})  # type: ignore[arg-type]


ZONED = {int(step) for step in np.random.default_rng(8).choice(40, 14, replace=False)}
"""In no rhythm."""
READS_S, WRITES_S = 0.012, 0.0004
MADE: dict[str, Callable[[int, float, float], tuple[float, float]]] = {
    # What is added to reads and to writes, by step, size over 16 KiB, and what is in flight.
    "mechanism": lambda _s, _size, depth: (0.008 * depth, 0.0),
    "late answers": lambda _s, _size, _depth: (0.005, 0.005),
    "write cache off": lambda _s, _size, depth: (0.0, 0.009 * depth),
    "link": lambda _s, size, depth: (0.004 * size * depth, 0.004 * size * depth),
    "queue cut": lambda _s, _size, depth: (0.012 * (depth - 1.0), 0.0),
    "reads of the medium": lambda _s, _size, depth: (0.006 * depth, 0.0),
    "one zone": lambda s, _size, depth: (0.02 * depth, 0.02 * depth) if s in ZONED else (0.0, 0.0),
    "background work": lambda s, _size, depth: (0.02 * depth, 0.02 * depth) if s % 5 == 0 else (0.0, 0.0),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_is_known_by_what_it_does(cause: str) -> None:
    draw = np.random.default_rng(11)
    rows = []
    for step in range(40):
        size, depth = float(draw.choice([0.25, 1.0, 4.0])), float(draw.uniform(1.0, 4.0))
        more = MADE[cause](step, size, depth)
        row = [float(step)]
        for usual_s, added in zip((READS_S, WRITES_S), more, strict=True):
            expected = usual_s * (1.0 + 0.1 * size)
            residual = math.log(1.0 + added / expected) + draw.normal(0.0, 0.04)
            spread = 0.3 if cause == "reads of the medium" and usual_s == READS_S else 0.05 + max(residual, 0.0) / 40
            row += [
                math.log(expected) + residual,
                residual,
                math.log(16_384 * size),
                0.7,
                math.log(depth),
                spread,
                0.05,
            ]
        rows.append([*row, *[math.nan] * 7])
    found = cause_of(rows, -1.0, 0.04)
    assert found is not None
    assert found.name == cause
    assert found.runner_up in CAUSES
    assert found.runner_up != cause


def test_what_no_cause_explains_is_unknown() -> None:
    draw = np.random.default_rng(4)
    nothing = [math.nan] * 7
    rows = [
        [float(step), math.log(READS_S) + r, r, math.log(16_384), 1.0, 0.0, 0.05, 0.05, *nothing, *nothing]
        for step, r in enumerate(draw.uniform(0.2, 3.0, 40).tolist())
    ]
    found = cause_of(rows, -1.0, 0.03)
    assert found is not None
    assert found.name == "unknown"


def test_real_slow_disks_are_found_and_no_other() -> None:
    if not FAILSLOW.is_file():
        lacks("data", f"no {FAILSLOW}")
    seen = perseus()
    for part in (seen.filter(pl.col("start_s") < seen["start_s"][0] + 86_400), seen):
        for peers in ("host", "none"):
            verdicts = judge(Observations(part, "fail-slow data"), peers=peers).verdicts
            slow = {(verdict.host, verdict.disk) for verdict in verdicts if verdict.kind == "slow"}
            assert slow == {("host_22", "11"), ("host_25", "8")}


def perseus() -> pl.DataFrame:
    """Two weeks of 36 real disks of three hosts."""
    frame = pl.read_parquet(FAILSLOW).with_columns(
        disk=pl.col("disk").cast(pl.String),
        start_s=pl.col("ts_s").cast(pl.Float64),
        length_s=pl.lit(15.0),
        bytes=pl.col("throughput").cast(pl.Float64) * 15,
        latency_s=pl.col("latency").cast(pl.Float64) / 1e6,
    )
    missing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in frame.columns]
    whole = completed(frame.with_columns(missing).with_columns(pl.col(n).cast(k) for n, k in SCHEMA.items()).lazy())
    return whole.collect()


@pytest.mark.parametrize("feedback", ["open", "closed"])
@pytest.mark.parametrize(("factor", "quarters"), [(1.3, 48), (2.0, 8), (100.0, 8)])
def test_a_real_disk_that_becomes_slow_is_found(factor: float, quarters: int, feedback: str) -> None:
    """The data have twelve quarters of an hour a day."""
    if not FAILSLOW.is_file():
        lacks("data", f"no {FAILSLOW}")
    seen = perseus().filter(pl.col("host") == "host_22")
    steps = (seen["start_s"] / STEP_S).floor().unique().sort()
    begin, end = float(steps[64]) * STEP_S, float(steps[64 + quarters]) * STEP_S
    part = Observations(seen.filter(pl.col("start_s") < end + 1.0), "fail-slow data")
    found = of(injected(part, ("host_22", "1"), begin, factor, feedback), peers="host")
    assert {disk for disk, one in found.items() if one.kind == "slow"} == {"1", "11"}, found["1"].why
