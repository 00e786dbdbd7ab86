"""Choices near hard limits of volumes and hosts: no load at a limit or above it is met."""

from __future__ import annotations

import doctest
import math
from typing import Any

import pytest

from headstack.choice import sustained
from headstack.choice.answer import Decision
from headstack.choice.candidates import candidates
from headstack.choice.choose import Chooser
from headstack.choice.job import demand_of
from headstack.choice.limits import Estimate, estimate_from_row, judge, limit_of
from headstack.choice.question_parser import parse_question
from headstack.choice.simulations import Simulations, Trial
from headstack.choice.space import Candidate
from headstack.choice.sustained import (
    OpenClass,
    SustainedLoad,
    array_costs,
    open_classes_of,
    sustained_load,
    volume_costs,
)
from headstack.twin.volume_types import Limit, Volume

LATENCY: Any = {"floor_ns": 300_000, "median_ns": 440_000, "p99_ns": 940_000}


def limit(counts: Any, per_s: int, of: Any = "both", burst: Any = None) -> Limit:
    return {"counts": counts, "of": of, "per_s": per_s, "burst": burst}


def volume(*limits: Limit, unit: int | None = 1 << 18, merges: bool = True, whole: bool = False) -> Volume:
    return {
        "name": "volume",
        "capacity_bytes": 1 << 39,
        "block_bytes": 512,
        "accounting": {"unit_bytes": unit, "merges": merges, "whole_units": whole},
        "limits": list(limits),
        "read": LATENCY,
        "write": LATENCY,
        "queue_depth": 1024,
    }


def question(rate: float, *limits: str, volumes: str = "gp3", workload: str = "oltp-8k") -> Chooser:
    """Returns the question for a volume of 500 GB."""
    return parse_question(
        [workload], rates=[rate], limits=limits, capacity="500GB", volumes=[volumes], hosts=[], years=3, on="2026-03"
    )


def volume_of(chooser: Chooser, name: str) -> Candidate:
    families = candidates(chooser.space, chooser.job, chooser.book, chooser.estimate).families
    return next(each for _, members in families for each in members if name in each.name)


def decisions(
    rate: float,
    text: str,
    lengths: tuple[int, ...],
    volumes: str = "gp3",
    name: str = "3000/s, 125MiB/s",
    workload: str = "oltp-8k",
) -> set[Decision]:
    chooser = question(rate, text, volumes=volumes, workload=workload)
    system, runs = volume_of(chooser, name), Simulations(chooser.job)
    (to_meet,) = chooser.job.limits
    return {judge(to_meet, runs.estimate(to_meet, [system], requests)[0]) for requests in lengths}


def load_on(system: Volume, classes: list[OpenClass]) -> SustainedLoad:
    return sustained_load(volume_costs(system, classes), classes)


READS = OpenClass(1_000.0, 8192, is_read=True, is_random=True)
WRITES = OpenClass(500.0, 16384, is_read=False, is_random=True)


@pytest.mark.parametrize(
    ("limits", "utilization"),
    [
        ([limit("requests", 3_000)], 0.5),
        ([limit("requests", 1_500)], 1.0),
        ([limit("requests", 1_000, "reads")], 1.0),
        ([limit("requests", 1_000, "writes")], 0.5),
        ([limit("bytes", 8_192_000, "writes")], 1.0),
        ([limit("requests", 3_000), limit("bytes", 16_384_000)], 1.0),
        # Burst credits end, so only the base rate counts.
        ([limit("requests", 1_000, burst={"per_s": 3_000, "credits": 5_400_000})], 1.5),
    ],
)
def test_utilization_is_that_of_the_busiest_limit(limits: list[Limit], utilization: float) -> None:
    load = load_on(volume(*limits), [READS, WRITES])
    assert load.utilization == pytest.approx(utilization)
    assert load.is_overload == (utilization >= 1)
    assert math.isinf(load.requests_min) == (utilization >= 1)


def test_requests_are_counted_as_the_volume_counts_them() -> None:
    large = OpenClass(100.0, 300 << 10, is_read=True, is_random=True)
    merged = OpenClass(1_600.0, 16 << 10, is_read=True, is_random=False)
    per_s = limit("requests", 400)
    assert load_on(volume(per_s), [large]).utilization == 0.5
    assert load_on(volume(per_s, unit=None), [large]).utilization == 0.25
    assert load_on(volume(per_s), [merged]).utilization == 0.25
    assert load_on(volume(per_s, merges=False), [merged]).utilization == 4
    per_byte = limit("bytes", 100 << 20)
    assert load_on(volume(per_byte, whole=True), [READS]).utilization == 2.5
    assert load_on(volume(per_byte), [READS]).utilization == pytest.approx(0.078125)


def test_arrays_are_limited_by_their_processors_and_host_links() -> None:
    """Two processors take 1 ms for a request: 1,500 of 2,000 per second. A link takes 10 ns per byte and 18.08 us per
    read, or 100 us for 8 KiB; its lanes are shared or separate."""
    link = {"ns_per_byte": 10.0, "read_ns": 18_080, "write_ns": 36_160, "full_duplex": False}
    array: dict[str, Any] = {
        "controller": {"request_ns": 1_000_000, "processors": 2},
        "links": [{}, link],
        "host_links": [1],
    }
    classes = [READS, WRITES]
    assert array_costs(array, classes) == [[5e-4, 5e-4], [pytest.approx(1e-4), pytest.approx(2e-4)]]
    assert sustained_load(array_costs(array, classes), classes).utilization == pytest.approx(0.75)
    assert sustained_load(array_costs(array, classes), classes, 4 / 3).is_overload
    apart = {**array, "links": [{}, {**link, "full_duplex": True}]}
    assert array_costs(apart, classes)[1:] == [[pytest.approx(1e-4), 0], [0, pytest.approx(2e-4)]]


@pytest.mark.parametrize(("share", "decision"), [(1.001, "does not"), (0.2, "meets")])
def test_a_load_at_the_processors_of_an_array_is_never_met(share: float, decision: Decision) -> None:
    """8 us for each request of ``md-raid6-12x16tb`` are 125,000 per second."""
    chooser = parse_question(
        ["random-read-4k"],
        rates=[share * 125_000],
        limits=["mean=1h"],
        on="2026-01",
        among=["pm893-3840gb"],
        hosts=["md-raid6-12x16tb"],
        levels=["raid0"],
        drives=(12, 12),
        estimate_prices=True,
    )
    system, runs = volume_of(chooser, "12 x"), Simulations(chooser.job)
    (to_meet,) = chooser.job.limits
    assert judge(to_meet, runs.estimate(to_meet, [system], 8_000)[0]) == decision


def test_throughput_at_a_limit_is_what_the_limit_sustains() -> None:
    load = load_on(volume(limit("requests", 500, "reads")), [READS, WRITES])
    assert (load.iops_max, load.bytes_per_s_max) == (1_000, 500 * 8192 + 500 * 16384)
    assert math.isinf(load_on(volume(limit("requests", 3_000)), [READS, WRITES]).iops_max)


def test_runs_near_a_limit_are_as_long_as_its_queue_takes() -> None:
    """Twice the square of the slack for equal requests: 200 requests at 90 %, 20,000 at 99 %."""
    for per_s, relaxation in ((900, 200), (990, 20_000)):
        load = load_on(volume(limit("requests", 1_000)), [OpenClass(per_s, 8192, True, True)])
        assert load.requests_min == pytest.approx(16 * relaxation)


def test_open_loads_of_each_kind_are_counted() -> None:
    assert sum(each.per_s for each in demand_of(["oltp-8k"], [3_000]).open_classes) == pytest.approx(3_000)
    assert sum(each.per_s for each in demand_of(["oltp-8k"], [3_000]).scaled(0.5).open_classes) == pytest.approx(1_500)
    both = demand_of(["oltp-8k", "file-server"], [2_000, 1_000])
    assert sum(each.per_s for each in both.open_classes) == pytest.approx(3_000)
    assert demand_of(["oltp-8k"], depth=8).open_classes == ()
    line: dict[str, Any] = {"size": "4KiB", "read_percent": 50.0, "random_percent": 100.0, "share_percent": 100.0}
    # Each second write is followed by a flush: a fifth of the arrivals are flushes, which no limit counts.
    access: dict[str, Any] = {
        "lines": [line],
        "flush_every": 2,
        "arrivals": {"open": {"rate_per_s": 1_000.0, "process": "poisson"}},
    }
    streams: list[dict[str, Any]] = [
        {"access": access},
        {"access": {**access, "arrivals": {"closed": {"queue_depth": 4}}}},
        {"web": {}},
    ]
    assert [each.per_s for each in open_classes_of(streams)] == [pytest.approx(400), pytest.approx(400)]


@pytest.mark.parametrize("rate", [3_000, 3_030, 6_000])
def test_no_latency_is_met_at_a_limit_or_above_it(rate: float) -> None:
    """A run of 8,000 requests at 3,000/s shows a p99 of 11 ms or less, one of 1 M requests 224 ms."""
    assert decisions(rate, "p99=1h", (2_000, 8_000)) == {"does not"}
    assert decisions(rate, "read.mean=1h", (2_000,)) == {"does not"}


def test_a_run_at_99_percent_of_a_limit_decides_only_when_its_queue_is_steady() -> None:
    assert "meets" not in decisions(2_970, "p99=10ms", (2_000, 8_000, 32_000))
    assert decisions(2_970, "p99=1s", (8_000,)) == {"undecided"}
    load = load_on(volume(limit("requests", 3_000)), [OpenClass(2_970, 8192, True, True)])
    estimate = Estimate(40, 38, 42, 320_001)
    assert judge(limit_of("p99=1s"), estimate.under(limit_of("p99=1s"), load, 319_999)) == "undecided"
    assert judge(limit_of("p99=1s"), estimate.under(limit_of("p99=1s"), load, 320_001)) == "meets"


def test_a_run_at_95_percent_of_a_limit_is_made_longer() -> None:
    assert decisions(2_850, "p99=10ms", (8_000,)) == {"undecided"}
    assert decisions(2_850, "p99=10ms", (32_000,)) == {"meets"}


def test_a_load_below_the_limit_is_met_by_a_short_run() -> None:
    assert decisions(2_000, "p99=10ms", (8_000,)) == {"meets"}


def test_burst_credits_and_bytes_sustain_no_load() -> None:
    """gp2 of 466 GiB sustains 1,398 requests per second and bursts to 3,000; 125 MiB/s are 2,000 reads of 64 KiB."""
    assert decisions(2_000, "p99=1h", (2_000,), "gp2", "466GiB") == {"does not"}
    assert decisions(2_000, "iops=1900", (2_000,), "gp2", "466GiB") == {"does not"}
    assert decisions(1_000, "p99=10ms", (8_000,), "gp2", "466GiB") == {"meets"}
    assert decisions(2_000, "p99=1h", (2_000,), workload="sequential-read-64k") == {"does not"}


@pytest.mark.parametrize("rate", [1_000, 2_700, 2_850, 2_910, 2_970, 3_000])
def test_intervals_contain_their_estimates(rate: float) -> None:
    texts = ("mean=1s", "p50=1s", "p95=1s", "p99=1s", "p999=1s", "iops=100")
    chooser = question(rate, *texts)
    runs, system = Simulations(chooser.job), volume_of(chooser, "3000/s, 125MiB/s")
    for requests in (2_000, 8_000, 32_000):
        (row,) = runs.rows([Trial(system, requests)])
        for text in texts:
            estimate = estimate_from_row(limit_of(text), row)
            if estimate.low is not None and estimate.high is not None and estimate.value is not None:
                assert estimate.low <= estimate.value <= estimate.high, f"{text} after {requests}"


def test_an_interval_that_excludes_its_estimate_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the interval 0\.91 to 0\.96 excludes its estimate 11\.21"):
        Estimate(11.21, 0.91, 0.96, 8_000)
    extended = Estimate.around(11.21, 0.91, 0.96, 8_000)
    assert (extended.low, extended.high) == (0.91, 11.21)
    assert judge(limit_of("p99=10ms"), extended) == "undecided"


def test_examples_run() -> None:
    assert doctest.testmod(sustained) == (0, 2)
