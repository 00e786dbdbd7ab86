"""The predictor: tests, what is predicted from them, and what is refused."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import headstack as hs
from conftest import SHARED, Headstack, lacks
from headstack.prediction import trace_arrivals
from headstack.prediction.calibration import quantile
from headstack.prediction.composition import Layout
from headstack.prediction.environment import (
    CacheReuse,
    Closed,
    Hot,
    Open,
    Spread,
    Staged,
    TraceArrivals,
    spread_of_seeks,
)
from headstack.prediction.loops import Rates, product_form, solve_closed, solve_open, solve_staged
from headstack.prediction.percentiles import LEVELS, mixture_percentiles, part
from headstack.prediction.predictions import predict_all
from headstack.prediction.predictor import (
    Axes,
    Characterization,
    Environment,
    characterization_of,
    characterize,
    load_environment,
)
from headstack.prediction.request_class import RequestClass
from headstack.prediction.trace_arrivals import Arrival, simulate_arrivals
from headstack.traces.report_types import PowerBin

KIB = 1024
COARSE = Axes(
    depths=(1, 4, 16),
    sizes_bytes=(4 * KIB, 16 * KIB, 64 * KIB),
    range_steps=(4, 32),
    streams=(2, 4),
    switches=(0.0, 1 / 16, 1.0),
    random_shares=(0.3, 1.0),
    read_shares=(0.0, 0.5, 1.0),
    mixed_sizes_bytes=(4 * KIB, 64 * KIB),
    mixed_ranges=(0,),
    open_shares=(0, 1),
    loads=(0.2, 0.8),
    requests=1500,
    warm_up=200,
    environments=50,
)
CHEETAH, ATLAS, ARRAY = "cheetah-x15-36lp", "atlas-10k-iii-73", "compaq-raid0-7"

RANDOM_READS = Environment("reads", (RequestClass(1.0, 4 * KIB, True, True),), Closed(4))


@pytest.fixture(scope="module")
def cheetah() -> Characterization:
    return characterize(CHEETAH, axes=COARSE)


@pytest.fixture(scope="module")
def atlas() -> Characterization:
    return characterize(ATLAS, axes=COARSE)


def simulated(system: str, lines: str, depth: int) -> float:
    """IOPS of a simulation."""
    size, read, random = lines.split()
    return float(hs.run(system, size=size, read=read, random=random, depth=depth, requests=4000)[0]["iops"])


def environment(lines: str, depth: float) -> Environment:
    size, read, random = lines.split()
    return replace(load_environment(hs.Workload.uniform(size, read, random)), load=Closed(depth))


@pytest.mark.parametrize(
    ("lines", "depth"), [("4KiB 100 100", 4), ("64KiB 0 100", 16), ("16KiB 100 0", 1), ("4KiB 50 30", 4)]
)
def test_a_test_of_the_grid_is_predicted_as_it_was(cheetah: Characterization, lines: str, depth: int) -> None:
    found = predict_all([environment(lines, depth)], [cheetah])[0]
    assert found.iops == pytest.approx(simulated(CHEETAH, lines, depth), rel=0.05)
    assert found.mean_ms == pytest.approx(depth / found.iops * 1e3)


@pytest.mark.parametrize(("lines", "depth"), [("8KiB 70 100", 8), ("32KiB 100 60", 4), ("24KiB 0 0", 2)])
def test_between_the_tests_predictions_hold(cheetah: Characterization, lines: str, depth: int) -> None:
    found = predict_all([environment(lines, depth)], [cheetah])[0]
    assert found.iops == pytest.approx(simulated(CHEETAH, lines, depth), rel=0.12)


def test_streams_that_take_turns_lose_their_sequentiality(cheetah: Characterization) -> None:
    """What weighted averages of sequential tests miss."""
    (play,) = predict_all([load_environment("neds-play")], [cheetah])
    (dual,) = predict_all([load_environment("neds-dual-stream")], [cheetah])
    assert dual.iops < 0.9 * play.iops
    row = hs.run(CHEETAH, "neds-dual-stream")[0]
    assert dual.iops == pytest.approx(row["iops"], rel=0.1)


def test_the_same_tests_give_the_same_bytes_on_any_number_of_cores(cheetah: Characterization, tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_predictor as t; "
        "print(t.characterize(t.CHEETAH, axes=t.COARSE).to_json(), end='')"
    )
    again = subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parent)],
        env=os.environ | {"RAYON_NUM_THREADS": "1", "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout == cheetah.to_json()


def test_a_characterization_is_what_was_written(cheetah: Characterization, tmp_path: Path) -> None:
    cheetah.to_json(tmp_path / "c.json")
    read = Characterization.load(tmp_path / "c.json")
    assert read == cheetah
    assert predict_all([RANDOM_READS], [read])[0] == predict_all([RANDOM_READS], [cheetah])[0]


def test_intervals_hold_the_point_and_are_as_wide_as_errors_were(cheetah: Characterization) -> None:
    found = predict_all([RANDOM_READS], [cheetah])[0]
    width = cheetah.errors["mean"]["random"]
    assert 0 < width < 0.3
    assert math.log(found.iops_high / found.iops) == pytest.approx(width)
    assert math.log(found.iops / found.iops_low) == pytest.approx(width)
    assert found.mean_ms_low < found.mean_ms < found.mean_ms_high
    # Nine of ten and one more: the ninth of nine.
    assert quantile([0.1, -0.9, 0.2, -0.3, 0.4, 0.5, 0.6, 0.7, 0.8]) == 0.9
    assert quantile([n / 100 for n in range(1, 100)]) == pytest.approx(0.9)
    with pytest.raises(hs.InputError, match="only 8 environments of one kind; a 90 % bound needs 9"):
        quantile([0.1] * 8)
    for figure, kinds in cheetah.residuals.items():
        inside = [abs(error) <= cheetah.errors[figure][kind] for kind, errors in kinds.items() for error in errors]
        assert sum(inside) / len(inside) >= 0.9
    assert found.p50_ms_low < found.p50_ms < found.p50_ms_high < found.p99_ms < found.p99_ms_high


@pytest.mark.parametrize(
    ("lines", "depth", "within"), [("8KiB 100 100", 4, 0.15), ("16KiB 70 100", 16, 0.25), ("8KiB 80 60", 4, 0.25)]
)
def test_percentiles_are_those_of_a_simulation(
    cheetah: Characterization, lines: str, depth: int, within: float
) -> None:
    found = predict_all([environment(lines, depth)], [cheetah])[0]
    size, read, random = lines.split()
    row = hs.run(CHEETAH, size=size, read=read, random=random, depth=depth, requests=8000)[0]
    assert found.p50_ms == pytest.approx(row["p50_ms"], rel=within)
    assert found.p99_ms == pytest.approx(row["p99_ms"], rel=within)


def test_percentiles_of_arrivals_and_of_thinkers(cheetah: Characterization) -> None:
    found = predict_all([RANDOM_READS.at_rate(rate) for rate in (20, 80, 1000)], [cheetah])
    for rate, one in zip((20, 80), found[:2], strict=True):
        row = hs.run(CHEETAH, size="4KiB", rate=rate, requests=20_000)[0]
        assert one.p50_ms == pytest.approx(row["p50_ms"], rel=0.15)
        assert one.p99_ms == pytest.approx(row["p99_ms"], rel=0.2)
        assert one.p99_ms_low < row["p99_ms"] < one.p99_ms_high
    assert found[2].p99_ms is None
    # Who thinks for long finds the system as rare arrivals do.
    rare = predict_all([replace(RANDOM_READS, load=Closed(4, think_ns=200e6))], [cheetah])[0]
    assert rare.p99_ms == pytest.approx(found[0].p99_ms, rel=0.1)
    # Stages have no tests of their own.
    assert predict_all([load_environment("neds-effects")], [cheetah])[0].p50_ms is None


def test_a_mixture_has_the_percentiles_of_both() -> None:
    slow = part(0.25, [10.0 * 1.2**n for n in range(9)])
    fast = part(0.75, [5.0] * 9)
    # 99 % of all are 96 % of the slow ones, and half of all are fast.
    low, high = (slow[1][LEVELS.index(level)] for level in (0.9, 0.97))
    expected = low + (high - low) * (0.96 - 0.9) / 0.07
    assert mixture_percentiles([slow, fast], [0.5, 0.99]) == [
        pytest.approx(math.log(5), abs=1e-4),
        pytest.approx(expected),
    ]
    # The step between the two is found from either side.
    assert mixture_percentiles([slow, fast], [0.74, 0.76]) == [
        pytest.approx(math.log(5), abs=1e-4),
        pytest.approx(math.log(10) + math.log(1.2) * 0.4, abs=1e-4),
    ]


def test_gains_are_the_same_both_ways(cheetah: Characterization, atlas: Characterization) -> None:
    there = predict_all([RANDOM_READS], [cheetah, atlas])[1]
    back = predict_all([RANDOM_READS], [atlas, cheetah])[1]
    pairs = [
        (there.speedup_percent, back.speedup_percent),
        (there.speedup_percent_low, back.speedup_percent_high),
        (there.speedup_percent_high, back.speedup_percent_low),
    ]
    for one, other in pairs:
        assert (1 + one / 100) * (1 + other / 100) == pytest.approx(1)
    assert there.speedup_percent_low < there.speedup_percent < 0
    slower = hs.run([CHEETAH, ATLAS], size="4KiB", depth=4, requests=4000)
    gain = 100 * (slower[1]["iops"] / slower[0]["iops"] - 1)
    assert there.speedup_percent == pytest.approx(gain, abs=5)


def test_arrivals_wait_longer_as_there_are_more_until_the_system_is_saturated(cheetah: Characterization) -> None:
    found = predict_all([RANDOM_READS.at_rate(rate) for rate in (20, 80, 140, 1000)], [cheetah])
    times = [one.mean_ms for one in found[:3]]
    assert times == sorted(times)
    assert [one.saturated for one in found] == [False, False, False, True]
    assert found[3].mean_ms is None
    assert found[3].iops < 400
    row = hs.run(CHEETAH, size="4KiB", rate=80, requests=20_000)[0]
    assert found[1].mean_ms == pytest.approx(row["mean_ms"], rel=0.1)
    assert found[1].mean_ms_low < row["mean_ms"] < found[1].mean_ms_high


def test_loops_agree_with_closed_forms() -> None:
    constant = Rates([1, 64], [1e6, 1e6])
    one = solve_closed(Closed(1, think_ns=9e6), constant)
    assert one.iops == pytest.approx(100)
    assert one.mean_ns == pytest.approx(1e6)
    # The machine repairman with two machines: idle 1 / (1 + 2 r + 2 r^2), r = service over think.
    two = product_form(2, 0.001, [lambda held: 1000.0])
    assert two.iops == pytest.approx(1000 * (1 - 1 / 5))
    # M/M/1.
    assert solve_open(Open(500), constant).mean_ns == pytest.approx(2e6)
    # Two requests at a time on a system that does no more with two: a stage of three, then a pause.
    assert solve_staged(Staged(2, (3,), 7e6), constant).iops == pytest.approx(300)


def test_places_at_random_have_the_range_that_they_lie_in() -> None:
    """Distances within a range of 2^30: the share beyond x is (1 - x)^2."""

    def beyond(low: int) -> float:
        return (1 - min(1.0, low / 2**30)) ** 2

    seeks: list[PowerBin] = [{"from": 2**n, "count": 1e6 * (beyond(2**n) - beyond(2 ** (n + 1)))} for n in range(9, 30)]
    spread = spread_of_seeks(seeks, 2**30)
    assert spread[0].range_bytes == 2**30
    assert spread[0].share == pytest.approx(1, abs=0.05)
    near = spread_of_seeks([{"from": 2**14, "count": 10.0}, {"from": 0, "count": 90.0}], 2**30)
    assert near == (Spread(1.0, 2.0**22),)


def test_the_environment_of_a_trace_is_that_of_its_workload(cheetah: Characterization, tmp_path: Path) -> None:
    hs.run(CHEETAH, size="16KiB", read=70, random=60, depth=4, requests=4000, record=tmp_path / "t.parquet")
    found = load_environment(tmp_path / "t.parquet")
    assert found.read_share == pytest.approx(0.7, abs=0.02)
    assert found.random_share == pytest.approx(0.6, abs=0.02)
    assert found.switch_share < 0.02
    told = predict_all([found.at_depth(4)], [cheetah])[0]
    assert told.iops == pytest.approx(hs.replay(tmp_path / "t.parquet", CHEETAH, "asap", depth=4)[0]["iops"], rel=0.1)


def test_a_real_trace_is_predicted_on_an_array() -> None:
    trace = SHARED / "traces" / "blktrace" / "loop0_poisson1500_8s.blktrace.bin"
    if not trace.is_file():
        lacks("data", f"no sample traces in {SHARED}")
    array = characterize(ARRAY, axes=COARSE, direct=True)
    found = predict_all([load_environment(trace).at_depth(4)], [array])[0]
    assert found.iops == pytest.approx(hs.replay(trace, ARRAY, "asap", depth=4)[0]["iops"], rel=0.2)


def test_an_array_is_composed_of_its_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    composed, direct = (characterize(ARRAY, axes=COARSE, direct=direct) for direct in (False, True))
    assert (composed.how, direct.how) == ("composed", "simulated")
    assert composed.description_hash != direct.description_hash
    kept = {Characterization.load(path).system for path in tmp_path.rglob("*.json")}
    assert kept == {ARRAY, f"member of {ARRAY}"}
    for name, table in direct.tables.items():
        if name == "open":
            continue  # Beside saturation a little more load is much more waiting.
        pairs = zip(composed.tables[name].time_ns, table.time_ns, strict=True)
        off = [abs(math.log(ours / theirs)) for ours, theirs in pairs]
        assert sum(off) / len(off) < 0.2, name
    asked = environment("8KiB 100 100", 4)
    found, exact = (predict_all([asked], [one])[0] for one in (composed, direct))
    assert found.iops == pytest.approx(exact.iops, rel=0.1)
    assert found.iops_low < exact.iops < found.iops_high


def test_requests_become_commands_by_the_layout() -> None:
    raid5 = Layout.of(hs.Array.load("compaq-raid5-7"))
    assert raid5 is not None
    assert (raid5.data, raid5.parity) == (6, 1)
    # A small read is one command; a small write reads data and parity and writes them; a whole stripe is written alone.
    assert raid5.commands(4096, True, 4096) == (1, 0, 4096)
    assert raid5.commands(4096, False, 4096) == (2, 2, 4096)
    assert raid5.commands(3 * 16 * KIB, False, 16 * KIB) == (3, 4, 16 * KIB)
    assert raid5.commands(6 * 16 * KIB, False, 16 * KIB) == (0, 7, 16 * KIB)
    # What has several kinds of groups or drives is tested itself.
    assert Layout.of(hs.Array.load("demartek-512n-raid5-20-log-raid10-4")) is None
    assert Layout.of(hs.Array.load("va-7100")) is None


def test_random_arrivals_come_to_what_is_solved_exactly() -> None:
    """The station of a recording is that of an open loop."""
    rates = Rates((1, 2, 4, 8), [10e6, 8e6, 6e6, 5e6])
    by_held = [0.0, *(rates.at(held) / 1e9 for held in range(1, 9))]
    random, now = Random(3), 0.0
    piece = []
    for _ in range(60_000):
        now += random.expovariate(120e-9)
        piece.append(Arrival(round(now), 4096, True, True))
    found = simulate_arrivals([tuple(piece)], {RequestClass(1.0, 4096, True, True): by_held})
    exact = solve_open(Open(120), rates)
    assert found.mean_ns == pytest.approx(exact.mean_ns, rel=0.05)
    assert sum(share for _, share in found.depths) == pytest.approx(1)


def test_a_request_takes_the_time_of_its_own_class() -> None:
    """What comes in a burst is seldom what comes else."""
    slow, fast = RequestClass(0.5, 65536, False, True), RequestClass(0.5, 4096, True, True)
    classes = {slow: [0.0, 1e-8], fast: [0.0, 1e-6]}
    burst = tuple(Arrival(0, 65536, False, True) for _ in range(5))
    apart = tuple(Arrival(10**12 + n * 10**9, 4096, True, True) for n in range(100))
    mean_ns = simulate_arrivals([burst + apart], classes).mean_ns
    # Five wait for each other, 10^8 ns each; the others wait for nobody.
    assert mean_ns == pytest.approx((5 * 3 * 1e8 + 100 * 1e6) / 105, rel=0.05)


@pytest.mark.parametrize("arrivals", ["poisson", "bursty:20ms/80ms", "fixed"])
def test_recordings_are_predicted_with_their_own_arrivals(
    cheetah: Characterization, tmp_path: Path, arrivals: str
) -> None:
    trace = tmp_path / "t.parquet"
    hs.run(CHEETAH, size="16KiB", rate=60, arrivals=arrivals, requests=4000, record=trace)
    found = load_environment(trace)
    (told,) = predict_all([found], [cheetah])
    row = hs.replay(trace, CHEETAH, "timed")[0]
    assert told.load.startswith("as recorded, ")
    assert told.mean_ms_low < row["mean_ms"] < told.mean_ms_high
    assert told.mean_ms == pytest.approx(row["mean_ms"], rel=0.3)
    assert told.p50_ms_low < row["p50_ms"] < told.p50_ms_high
    # Who states the load means random arrivals, or none.
    at_random, closed = predict_all([found.at_rate(60), found.at_depth(4)], [cheetah])
    assert closed.load == "depth 4"
    if arrivals == "bursty:20ms/80ms":
        assert at_random.mean_ms is not None
        assert told.mean_ms is not None
        assert told.mean_ms > 1.4 * at_random.mean_ms


def test_of_a_long_recording_pieces_are_gone_through(
    cheetah: Characterization, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "t.parquet"
    hs.run(CHEETAH, size="16KiB", rate=60, arrivals="bursty:20ms/80ms", requests=8000, record=trace)
    whole = predict_all([load_environment(trace)], [cheetah])[0]
    monkeypatch.setattr(trace_arrivals, "WHOLE_MAX", 4000)
    monkeypatch.setattr(trace_arrivals, "PIECE_REQUESTS", 100)
    environment = load_environment(trace)
    assert isinstance(environment.load, TraceArrivals)
    assert [len(piece) for piece in environment.load.pieces] == [100] * 32
    pieces = predict_all([environment], [cheetah])[0]
    assert pieces.mean_ms == pytest.approx(whole.mean_ms, rel=0.15)
    # What is between the pieces is not known: that is a part of the interval.
    model, rate = cheetah.model, environment.load.rate_per_s
    blend, classes = model.blend(environment), model.rates_of_classes(environment)
    course = simulate_arrivals(environment.load.pieces, classes)
    slow = simulate_arrivals(environment.load.pieces, classes, math.exp(-cheetah.errors["mean"][blend.kind]))
    at_random = cheetah.errors["mean"]["open"] / (1 - rate / model.rates(blend).most)
    assert course.uncertainty > 0.02
    assert simulate_arrivals([environment.load.pieces[0]], classes).uncertainty == 0
    assert pieces.mean_ms_high is not None
    assert math.log(pieces.mean_ms_high / pieces.mean_ms) == pytest.approx(
        math.log(slow.mean_ns / course.mean_ns) + at_random + course.uncertainty
    )


REFUSED = {
    "size: 131072 bytes is outside the tested range, 4096 to 65536": environment("128KiB 100 100", 1),
    "depth: 64 is outside the tested range of": environment("4KiB 100 100", 64),
    "streams: 8 is outside the tested range, 2 to 4": replace(
        environment("4KiB 100 0", 1), streams=8, switch_share=0.5
    ),
    "range: 100GB exceeds the capacity of": replace(RANDOM_READS, spread=(Spread(1.0, 1e11),)),
    "range: 1MB, ": replace(RANDOM_READS, spread=(Spread(1.0, 1e6),)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_outside_the_tests_is_refused(cheetah: Characterization, message: str) -> None:
    with pytest.raises(hs.InputError) as error:
        predict_all([REFUSED[message]], [cheetah])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_systems_are_tested_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    small = replace(COARSE, requests=100, environments=40)
    first = characterization_of(CHEETAH, axes=small)
    (kept,) = tmp_path.rglob("*.json")
    kept.write_text(kept.read_text().replace(first.version, "kept"))
    assert characterize(CHEETAH, axes=small) == replace(first, version="kept")
    # In a store of its own nothing is known yet.
    assert characterization_of(CHEETAH, axes=small, store=tmp_path / "store") == first
    assert len([*(tmp_path / "store").rglob("*.json")]) == 1
    # The same by another name.
    renamed = replace(hs.Drive.load(CHEETAH), name="renamed")
    assert characterization_of(renamed, axes=small) == replace(first, version="kept", system="renamed")
    assert characterization_of(f"{CHEETAH}@10GB", axes=small).capacity_bytes == pytest.approx(1e10, rel=1e-6)


def test_a_changed_system_is_another(cheetah: Characterization) -> None:
    small = replace(COARSE, requests=100, environments=40)
    changed = characterize(CHEETAH, axes=small, write_cache="off")
    assert changed.system == f"{CHEETAH},write_cache=off"
    assert changed.description_hash != characterize(CHEETAH, axes=small).description_hash
    with pytest.raises(hs.InputError, match=r"^requests: not an option of a system; allowed: "):
        characterize(CHEETAH, requests=10)
    with pytest.raises(hs.InputError, match=r"^write_cache: has several values"):
        characterize(CHEETAH, write_cache=["on", "off"])


def hot_bands(*bands: tuple[float, float, float]) -> hs.Workload:
    """8 KiB at random, most of them reads, in bands from, to, with a share."""
    keys = ("from_percent", "to_percent", "share_percent")
    told = hs.Workload.uniform("8KiB", "70", "100").copy()
    return hs.Workload(told | {"addresses": {"hot_bands": [dict(zip(keys, band, strict=True)) for band in bands]}})


@pytest.mark.parametrize(("hot", "part", "depth"), [(80, 20, 4), (90, 5, 16), (95, 1, 1)])
def test_a_hot_part_is_predicted(cheetah: Characterization, hot: float, part: float, depth: int) -> None:
    asked = load_environment(hot_bands((0, part, hot), (part, 100, 100 - hot))).at_depth(depth)
    assert asked.hot == Hot(hot / 100, part / 100)
    found, even = predict_all([asked, replace(asked, hot=None)], [cheetah])
    iops = hs.run(CHEETAH, hot_bands((0, part, hot), (part, 100, 100 - hot)), depth=depth, requests=4000)[0]["iops"]
    assert found.iops == pytest.approx(iops, rel=0.1)
    assert abs(even.iops - iops) > 2 * abs(found.iops - iops)
    # All or none of the requests in the hot part are as without it.
    whole = predict_all([replace(asked, hot=Hot(0.0, part / 100))], [cheetah])[0]
    assert whole.iops == pytest.approx(even.iops, rel=0.01)


def test_addresses_without_tests_are_refused() -> None:
    told = hs.Workload.uniform("8KiB").copy() | {"addresses": {"zipf": {"theta": 1.0}}}
    with pytest.raises(
        hs.InputError, match="addresses: must be uniform or hot_bands, because others have no low-level test"
    ):
        load_environment(hs.Workload(told))


def test_a_recording_that_caches_decide_is_refused(cheetah: Characterization) -> None:
    held = cheetah.held_bytes
    enough = CacheReuse(10 * held, ((held / 4, 0.01), (held, 0.04), (4 * held, 0.9)))
    assert predict_all([replace(RANDOM_READS, recorded=enough)], [cheetah])[0].iops > 0
    with pytest.raises(hs.InputError, match=r"reads: moves .* less than twice the cache capacity of .* replay it"):
        predict_all([replace(RANDOM_READS, recorded=replace(enough, moved_bytes=held))], [cheetah])
    again = replace(enough, returns=((held / 4, 0.01), (held, 0.21)))
    with pytest.raises(
        hs.InputError, match=r"reads: 21 % of its blocks are reused within the cache capacity of .* replay it"
    ):
        predict_all([replace(RANDOM_READS, recorded=again)], [cheetah])


def test_a_twin_is_a_system_as_any_other(headstack: Headstack, cheetah: Characterization, tmp_path: Path) -> None:
    drive = Path(__file__).parents[2] / "catalogue" / "drives" / f"{CHEETAH}.toml"
    twin = tmp_path / "twin.toml"
    twin.write_text(drive.read_text() + '\n[twin]\nof = "/dev/sdb"\nclass = "disk"\n')
    made = characterize(twin, axes=COARSE)
    assert (made.system, made.how) == ("twin", "simulated")
    assert made.tables == cheetah.tables
    made.to_json(tmp_path / "made.json")
    done = headstack("lab", "predict", "neds-play", "made.json", "--json", "-")
    assert json.loads(done.stdout)[0]["iops"] == predict_all([load_environment("neds-play")], [cheetah])[0].iops


WRITTEN = """
[environment]
depth = 4
streams = 2
switch_percent = 50

[[environment.lines]]
size = "8KiB"
read_percent = 100
random_percent = 25
"""

BAD_FILES = {
    "environment: needs exactly one of depth and rate": WRITTEN.replace("depth = 4", ""),
    "environment.dept: unknown key; allowed: depth": WRITTEN.replace("depth = 4", "dept = 4"),
    "environment.lines[0].read_percent: 120 is not allowed; use a number from 0 to 100": WRITTEN.replace(
        "read_percent = 100", "read_percent = 120"
    ),
    "environment.lines: share_percent sums to 40": WRITTEN + "share_percent = 40\n",
    "environment.lines: needs at least one": "[environment]\ndepth = 1\n",
    "environment.depth: 'four' is not allowed": WRITTEN.replace("depth = 4", "depth = 'four'"),
    "environment.lines[0].size: None is not allowed; use text with a unit": WRITTEN.replace('size = "8KiB"', ""),
    "environment: not a table; use [environment]": "environment = 3\n",
}


def test_an_environment_can_be_written_by_hand(headstack: Headstack, cheetah: Characterization, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WRITTEN)
    cheetah.to_json(tmp_path / "cheetah.json")
    done = headstack("lab", "predict", "mine.toml", "cheetah.json", "--json", "-")
    (row,) = json.loads(done.stdout)
    found = load_environment(tmp_path / "mine.toml")
    assert (found.streams, found.switch_share, found.random_share) == (2, 0.5, 0.25)
    assert row["iops"] == predict_all([found], [cheetah])[0].iops
    csv = headstack("lab", "predict", "mine.toml", "cheetah.json", "--csv", "-").stdout.splitlines()
    assert csv[0].startswith("system,environment,load,iops,iops_low")
    assert len(csv) == 2


@pytest.mark.parametrize("message", BAD_FILES)
def test_bad_files_are_refused_in_one_line(message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(BAD_FILES[message])
    with pytest.raises(hs.InputError) as error:
        load_environment(path)
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


def test_bad_input_is_one_line_and_exit_code_2(headstack: Headstack, cheetah: Characterization, tmp_path: Path) -> None:
    cheetah.to_json(tmp_path / "cheetah.json")
    (tmp_path / "other.json").write_text('{"format": "something"}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "short.json").write_text(cheetah.to_json().replace('"half_width":[0.', '"half_width":[7,0.', 1))
    bad = {
        (
            "lab",
            "predict",
            "file-server",
            "other.json",
        ): "other.json: not a characterization; create one with headstack lab characterize",
        ("lab", "predict", "file-server", "broken.json"): "broken.json: not a characterization: ",
        ("lab", "predict", "file-server", "short.json"): "short.json: damaged characterization: ",
        ("lab", "predict", "no-such", "cheetah.json"): "no-such",
        ("lab", "predict", "web-server", "cheetah.json"): "web-server: size: 512 bytes is outside the tested range",
        ("lab", "predict", "oltp-8k", "cheetah.json", "--depth", "0"): "--depth: 0 is out of range; must be above 0",
        ("lab", "predict", "oltp-8k", "cheetah.json", "--depth", "1", "--rate", "1"): "depth, rate: give only one",
        (
            "lab",
            "predict",
            "neds-effects",
            "cheetah.json",
            "--depth",
            "4",
        ): "neds-effects: depth: its stages set their own depth",
        (
            "lab",
            "predict",
            "demartek-web",
            "cheetah.json",
        ): "demartek-web: allowed: one stream of access, transactions or video",
        ("lab", "predict", "oltp-8k", "no.json"): "no.json: No such file",
        ("lab", "characterize", "no-such-drive"): "no-such-drive",
        (
            "lab",
            "characterize",
            CHEETAH,
            "-o",
            "nowhere/x.json",
        ): "nowhere/x.json: the directory nowhere does not exist",
        ("lab", "characterize", CHEETAH, "--write-cache", "maybe"): "--write-cache: 'maybe' is unknown; allowed: ",
    }
    for arguments, message in bad.items():
        done = headstack(*arguments)
        assert done.returncode == 2, arguments
        assert message in done.stderr, (arguments, done.stderr)
        assert done.stderr.count("\n") == 1


def test_a_table_for_people(
    headstack: Headstack, cheetah: Characterization, atlas: Characterization, tmp_path: Path
) -> None:
    cheetah.to_json(tmp_path / "cheetah.json")
    atlas.to_json(tmp_path / "atlas.json")
    done = headstack("lab", "predict", "oltp-8k", "cheetah.json", "atlas.json", "--rate", "100,1000")
    assert done.returncode == 0, done.stderr
    assert "saturated: 2 of 4 cannot keep up" in done.stdout
    assert "mechanism" in done.stdout
    assert "speedup" in done.stdout
