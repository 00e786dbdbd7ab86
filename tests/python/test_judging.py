"""The statistics of ``judge``: when a disk is slow, since when, by how much and why."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from conftest import SHARED, lacks
from headstack import InputError
from headstack.judging.causes import CAUSES, cause_of
from headstack.judging.evidence import Evidence, correlation_time, deviates, discoveries, threshold
from headstack.judging.expectation import Peers, leave_one_out_median
from headstack.judging.fleet import Fleet
from headstack.judging.judge import judge
from headstack.judging.observations import SCHEMA, Observations, completed
from headstack.judging.past import Past
from headstack.judging.steps import STEP_S
from headstack.judging.verdict import Verdict

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


def test_a_disk_that_was_always_slow_is_found_among_peers() -> None:
    verdict = of(observed(0.25, 6, from_step(0, 0, 2.0)))["d0"]
    assert verdict.kind == "slow"
    assert "from the first one seen" in verdict.why


def test_a_disk_alone_is_held_against_its_past_under_its_load() -> None:
    seen = observed(3, 1, from_step(0, 2 * DAY, 1.6))
    assert of(until(seen, DAY // 2))["d0"].kind == "cannot tell"
    assert of(until(seen, 2 * DAY))["d0"].kind == "fine"
    verdict = of(until(seen, 2 * DAY + 17))["d0"]
    assert (verdict.kind, verdict.method) == ("slow", "own past")
    assert verdict.slower is not None
    assert verdict.slower.factor == pytest.approx(1.6, rel=0.1)


def test_a_disk_that_is_well_again_is_fine() -> None:
    seen = observed(4, 6, lambda disk, step: 2.0 if disk == 1 and DAY <= step < 2 * DAY else 1.0)
    assert of(until(seen, 2 * DAY))["d1"].kind == "slow"
    assert of(seen)["d1"].kind == "fine"


def test_what_becomes_slow_together_is_not_told() -> None:
    found = of(observed(4, 6, lambda _, step: 1.6 if step >= 2 * DAY else 1.0))
    assert {verdict.kind for verdict in found.values()} == {"cannot tell"}
    assert "all together" in found["d0"].why


def test_few_requests_tell_nothing() -> None:
    found = of(observed(2, 6, from_step(2, DAY, 5.0), requests=20.0))
    assert {verdict.kind for verdict in found.values()} == {"cannot tell"}


def test_a_twin_finds_what_was_always_slow() -> None:
    class Twin:
        def latency_s(self, stream: str, depth: float, size_bytes: float | None, read_share: float) -> float | None:
            assert (stream, read_share) == ("read", 1.0)
            return 0.012

    seen = observed(2, 1, from_step(0, 0, 2.5))
    frame = seen.frame.with_columns(model=pl.lit("m"))
    verdict = of(Observations(frame, "made up"), twin={"m": Twin()})["d0"]
    assert (verdict.kind, verdict.method) == ("slow", "twin")
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
    assert past.known
    return past


def test_loads_that_were_not_learnt_are_expected_as_well_as_it_says() -> None:
    draw = np.random.default_rng(6)
    standard = []
    for _ in range(20):
        past = learnt(draw, misfit=0.05)
        for load in spells(draw, 40, 1):
            residual, trust = past.residual(took(load) + draw.normal(0.0, math.hypot(0.05, 0.03)), load)
            standard.append(residual * trust / past.deviation)
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
    healthy, _ = past.residual(took(load), load)
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
    residual, _ = past.residual(-6.0 + 2.5 + math.log(1.5), np.array([5.0, 9.0, 1.0, 2.5]))
    assert residual == pytest.approx(math.log(1.5), abs=0.05)


def test_a_disk_whose_load_was_never_seen_is_not_called_fine() -> None:
    seen = observed(3, 1, healthy)
    other = pl.when(pl.col("start_s") >= 2 * DAY * STEP_S).then(1000.0).otherwise(1.0)
    moved = seen.frame.with_columns(read_bytes=pl.col("read_bytes") * other, bytes=pl.col("bytes") * other)
    verdict = of(Observations(moved, "made up"), peers="none")["d0"]
    assert verdict.kind == "cannot tell"
    assert "its load was none that its own past has seen" in verdict.why


def test_peers_that_are_sick_teach_nothing() -> None:
    draw, peers = np.random.default_rng(1), Peers()
    for step in range(24):
        latency = -5.0 + draw.normal(0.0, 0.02, 6)
        latency[0] += 1.0
        latency[1] += 0.8 * (step % 4 == 0)
        peers.learn(step, latency, np.zeros((6, 4)))
    assert np.abs(peers.health.pool).max() < 0.2


def test_what_is_asked_wrongly_is_refused() -> None:
    seen = observed(0.1, 4, healthy)
    with pytest.raises(InputError, match="peers: friends"):
        judge(seen, peers="friends")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="drive-year"):
        judge(seen, false_alarms_per_drive_year=0.0)
    with pytest.raises(InputError, match="version 7"):
        judge(seen, state={"version": 7})


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
    frame = pl.read_parquet(FAILSLOW).with_columns(
        disk=pl.col("disk").cast(pl.String),
        start_s=pl.col("ts_s").cast(pl.Float64),
        length_s=pl.lit(15.0),
        bytes=pl.col("throughput").cast(pl.Float64) * 15,
        latency_s=pl.col("latency").cast(pl.Float64) / 1e6,
    )
    missing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in frame.columns]
    whole = completed(frame.with_columns(missing).with_columns(pl.col(n).cast(k) for n, k in SCHEMA.items()).lazy())
    seen = whole.collect()
    for part in (seen.filter(pl.col("start_s") < seen["start_s"][0] + 86_400), seen):
        for peers in ("host", "none"):
            verdicts = judge(Observations(part, "fail-slow data"), peers=peers).verdicts
            slow = {(verdict.host, verdict.disk) for verdict in verdicts if verdict.kind == "slow"}
            assert slow == {("host_22", "11"), ("host_25", "8")}
