"""False alarms of healthy drive-years, and detection delays of fleets in virtual time.

`judging_fleet.py TABLE… [--failslow FILE] [--years N] [--drives N] [--runs STEPS/DAY,…] [--peers | --alone]`. Use
`--years 0` to skip the drive-years; without a TABLE the fleets are skipped.

TABLE is the output of `judging_causes.py --healthy --keep FOLDER` for a drive: quarters of an hour from the simulator.
A thousand drive-years cannot be simulated: residuals of healthy disks, from the simulator and (with `--failslow`) of
real ones, are resampled in runs of two hours, which preserves tails and correlation. Properties that such short series
lack are added: permanent differences between disks, a drift over days, and hours with three times the noise. This is
for peers: false alarms against the own past are caused by loads, which only the fleets have.
"""

from __future__ import annotations

import math
import sys
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from judging import SLOW, observations

from headstack.diagnosis.judging.evidence import TESTS, Days, Evidence, deviates
from headstack.diagnosis.judging.expectation import Health, Peers
from headstack.diagnosis.judging.false_alarms import FALSE_ALARMS
from headstack.diagnosis.judging.fleet import (
    LANES_A_DRIVE,
    METHODS,
    SEVERE,
    TOLERANCES,
    Fleet,
    day_bound,
    level_tolerance,
)
from headstack.diagnosis.judging.judge import take
from headstack.diagnosis.judging.steps import FEATURES, STEP_S, STREAMS, Step, steps_of

Array = npt.NDArray[np.float64]
RUNS = "8/96,12/12"
"""Steps of a run and of a day: continuous days in runs of two hours, and one evening per day, which is kept whole."""
YEAR = 35_064
PARTS = 4
"""A drive-year is a quarter of a year of this many drives."""
LEARNT = 96
"""Number of steps from which health is learned, as in ``Peers``."""
OFFSET, WANDER, NOISY = 0.02, 0.02, 0.02
DRIVES, A_HOST = 1_000, 10
ONSET = 120
AFTER = {True: 97, False: 673}
"""Onset: with peers after a day, with only the own past after a week."""


def healthy_of_peers(frame: pl.DataFrame) -> Array:
    """Returns residuals of disks of one host, over steps."""
    places = {key: at for at, key in enumerate(frame.select("host", "disk").unique().sort("disk").iter_rows())}
    steps, found = steps_of(frame, places), []
    for stream in range(len(STREAMS)):
        if not np.isfinite(steps[0].log_latency[:, stream]).any() or (stream == 2 and found):
            continue
        peers = Peers()
        for step in steps:
            peers.learn(step.number, step.log_latency[:, stream], step.features[:, stream], stream)
        of = [peers.compare(s.log_latency[:, stream], s.features[:, stream], stream) for s in steps]
        # Lower bounds are trusted less, which a surrogate does not include.
        found.append(np.array([np.where(one.two_sided, one.residuals, math.nan) for one in of]).T)
    return np.concatenate(found)


class Counted(NamedTuple):
    """Alarms of simulated drive-years of health, and the bounds in use."""

    alarms: list[int]
    """Alarms by test."""
    time: float
    """The mean correlation time of residuals."""
    level: float
    """The median of the bounds of levels, as a factor."""
    day: float
    """The median of the bounds of days, as a factor; infinite if only one day was learned from."""


def false_alarms(series: Array, drive_years: int, run_steps: int, a_day: int, seed: int) -> Counted:
    """Counts alarms in drive-years of residuals that are resampled in runs of ``run_steps`` steps, for a log with
    ``a_day`` quarters of an hour per day. Health is learned from a group of ``A_HOST`` disks, as in ``Peers``."""
    draw = np.random.default_rng(seed)
    drives, length = PARTS * drive_years, series.shape[1] - run_steps + 1
    keep = math.exp(-run_steps / a_day)
    wander, offset = draw.normal(0.0, WANDER, drives), draw.normal(0.0, OFFSET, drives)

    def run(is_noisy: bool) -> Array:
        """Returns residuals of the next run of all disks."""
        nonlocal wander
        wander = keep * wander + draw.normal(0.0, WANDER * math.sqrt(1 - keep**2), drives)
        rows, begin = draw.integers(len(series), size=drives), draw.integers(length, size=drives)
        values = np.nan_to_num(series[rows[:, None], begin[:, None] + np.arange(run_steps)[None, :]])
        noisy = np.where(draw.random(drives) < NOISY, 3.0, 1.0)[:, None] if is_noisy else 1.0
        return noisy * values + (offset + wander)[:, None]

    def numbered(at: Array) -> npt.NDArray[np.int64]:
        return (at // a_day * 96 + at % a_day).astype(np.int64)

    first = np.concatenate([run(False) for _ in range(LEARNT // run_steps)], axis=1)
    usual = np.median(first, axis=1, keepdims=True)
    steps = numbered(np.arange(first.shape[1]))
    groups = [Health.of(first[at : at + A_HOST], steps) for at in range(0, drives, A_HOST)]
    of = [groups[at // A_HOST] for at in range(drives)]
    most = max(len(health.pool) for health in groups)
    pools = np.array([np.pad(health.pool, (0, most - len(health.pool)), constant_values=math.nan) for health in of])
    times = np.array([health.time for health in of])
    levels = np.array([level_tolerance("peers", health, 1.0, FALSE_ALARMS) for health in of])
    changes = np.array([health.change for health in of])
    limits = np.array([day_bound(health, FALSE_ALARMS) for health in of])
    evidence = Evidence.none(drives)
    thresholds = evidence.thresholds(FALSE_ALARMS, LANES_A_DRIVE)
    alarms = np.zeros(TESTS, dtype=int)
    for begin in range(0, YEAR * a_day // 96 // PARTS, run_steps):
        block = run(True) - usual
        for at, step in enumerate(numbered(first.shape[1] + begin + np.arange(run_steps)).tolist()):
            before, seen = evidence.alarmed > 0, block[:, at]
            raised = evidence.note_changes(seen, changes)
            level = (seen - levels * raised) / raised
            scores = deviates(seen - TOLERANCES[0], pools, times, seen - SEVERE[0], level)
            evidence.take(step, seen, *scores, times, thresholds, days=Days(seen, limits * raised))
            fresh = evidence.alarmed[(evidence.alarmed > 0) & ~before].astype(int)
            alarms += np.bincount(fresh - 1, minlength=TESTS)
    bounds = float(np.exp(np.median(levels))), float(np.exp(np.median(limits)))
    return Counted(alarms.tolist(), float(times.mean()), *bounds)


CASES = (
    "1.3 times",
    "2 times",
    "5 times",
    "2 times, closed",
    "100 times, closed",
    "zone: 2 times at times",
    "writes alone: 2 times",
    "growing to 2 in a day",
)


def slower(case: str, after: int, draw: np.random.Generator) -> tuple[float, float]:
    """Returns the logarithms of the slowdown of reads and writes, this many steps after the onset."""
    match case:
        case "1.3 times" | "2 times" | "5 times" | "2 times, closed" | "100 times, closed":
            factor = math.log(float(case.split()[0]))
            return factor, factor
        case "zone: 2 times at times":
            at = math.log(2.0) if draw.random() < 0.4 else 0.0
            return at, at
        case "writes alone: 2 times":
            return 0.0, math.log(2.0)
        case "growing to 2 in a day":
            factor = math.log(1.0 + min(after / 96, 1.0))
            return factor, factor
    raise ValueError(case)


def delays(tables: list[pl.DataFrame], drives: int, peers: bool, seed: int) -> None:
    """Simulates a fleet in which ten drives per fault (or fewer in a small one) become slow, at most one per host."""
    draw = np.random.default_rng(seed)
    libraries = []
    for table in tables:
        healthy = table.filter(pl.col("host") == table["host"][0], pl.col("disk") != "x").with_columns(host=pl.lit(""))
        places = {("", disk): at for at, disk in enumerate(sorted(set(healthy["disk"])))}
        steps = steps_of(healthy, places)
        order = np.argsort([float(np.nanmean(step.log_latency[:, 0])) for step in steps])
        libraries.append(([steps[at] for at in order], healthy_of_peers(healthy)))
    fleet = Fleet()
    hosts = [f"h{at}" for at in range(drives // A_HOST)]
    fleet.add([(host, f"d{at}", None, host if peers else None) for host in hosts for at in range(A_HOST)])
    case_of = {
        place: CASES[place // A_HOST % len(CASES)] for place in range(3, min(drives, 10 * A_HOST * len(CASES)), A_HOST)
    }
    offset = draw.normal(0.0, OFFSET, drives)
    found: dict[int, int] = {}
    wrong: set[int] = set()
    position = draw.random(len(hosts))
    for number in range(ONSET + AFTER[peers]):
        shape = (drives, len(STREAMS))
        latency, features = np.full(shape, math.nan), np.full((*shape, len(FEATURES)), math.nan)
        # Loads shift: slightly each quarter of an hour, and to a random value every two hours on average.
        position = np.where(draw.random(len(hosts)) < 1 / 8, draw.random(len(hosts)), position)
        for host in range(len(hosts)):
            library, residuals = libraries[host % len(libraries)]
            at = library[int(position[host] * 0.999 * len(library))]
            members = np.arange(host * A_HOST, (host + 1) * A_HOST)
            for stream in (0, 1):
                rows, columns = (
                    draw.integers(len(residuals), size=A_HOST),
                    draw.integers(residuals.shape[1], size=A_HOST),
                )
                noise = np.nan_to_num(residuals[rows, columns])
                latency[members, stream] = float(np.nanmean(at.log_latency[:, stream])) + noise + offset[members]
                features[members, stream] = np.nanmean(at.features[:, stream], axis=0) + draw.normal(
                    0.0, 0.01, (A_HOST, 4)
                )
        for place, case in case_of.items():
            if number >= ONSET:
                more = slower(case, number - ONSET, draw)
                latency[place, :2] += more
                if case.endswith("closed"):
                    # The queue depth is constant, so the rate falls.
                    features[place, :2, 0] -= max(more)
                else:
                    # In an open loop the queue depth grows with latency.
                    features[place, :2, 3] += 0.5 * max(more)
        take(fleet, Step(number, latency, np.full(shape, math.nan), features), {}, FALSE_ALARMS)
        for place in range(drives):
            method = fleet.judged_by(place)
            if method and fleet.alarmed(place, method):
                if place in case_of and number >= ONSET:
                    found.setdefault(place, number - ONSET + 1)
                else:
                    wrong.add(place)
    held, days = "peers of the host" if peers else "own past", (ONSET + AFTER[peers]) / 96
    print(f"\n{held}: {drives} drives, {len(wrong)} false alarms in {days:.1f} days")
    print(f"{'':26}{'drives':>8}{'in 2 h':>8}{'in 24 h':>9}{'in 72 h':>9}{'median':>9}{'slowest':>9}")
    for case in CASES:
        of = sorted(found.get(place, 10_000) * STEP_S / 3600 for place, name in case_of.items() if name == case)
        hours = [f"{value:.2f} h" if value < 1_000 else "never" for value in (of[len(of) // 2], of[-1])]
        within = [sum(value <= limit for value in of) for limit in (2, 24, 72)]
        print(f"{case:26}{len(of):8}{within[0]:8}{within[1]:9}{within[2]:9}{hours[0]:>9}{hours[1]:>9}")


def main() -> int:
    asked = sys.argv[1:]
    failslow = Path(asked.pop(asked.index("--failslow") + 1)) if "--failslow" in asked else None
    years = int(asked.pop(asked.index("--years") + 1)) if "--years" in asked else 1_000
    drives = int(asked.pop(asked.index("--drives") + 1)) if "--drives" in asked else DRIVES
    runs = asked.pop(asked.index("--runs") + 1) if "--runs" in asked else RUNS
    of_runs = [(int(steps), int(a_day)) for steps, a_day in (pair.split("/") for pair in runs.split(",") if pair)]
    tables = [pl.read_parquet(path) for path in asked if not path.startswith("--")]
    series: dict[str, Array] = {}
    if tables:
        of = [table.filter(pl.col("host") == table["host"][0], pl.col("disk") != "x") for table in tables]
        rows = [healthy_of_peers(frame.with_columns(host=pl.lit(""))) for frame in of]
        least = min(row.shape[1] for row in rows)
        series["simulator, against peers"] = np.concatenate([row[:, :least] for row in rows])
    if failslow:
        frame = observations(failslow).frame
        well = frame.filter(~pl.struct("host", "disk").is_in([{"host": host, "disk": disk} for host, disk in SLOW]))
        rows = [healthy_of_peers(part) for part in well.partition_by("host")]
        least = min(row.shape[1] for row in rows)
        series["real, against peers"] = np.concatenate([row[:, :least] for row in rows])
    head = f"{'residuals':28}{'run':>4}{'deviation':>10}{'of 3 sd':>9}{'steps':>7}{'level':>7}{'day':>7}"
    if years:
        print(f"{head}  alarms in {years} drive-years")
    for seed, ((name, values), (run_steps, a_day)) in enumerate(product(series.items(), of_runs if years else [])):
        found = false_alarms(values, years, run_steps, a_day, seed)
        centred = values - np.nanmedian(values, axis=1, keepdims=True)
        deviation = float(np.nanstd(centred))
        far = float((np.abs(centred[np.isfinite(centred)]) > 3 * deviation).mean())
        figures = f"{run_steps:4}{deviation:10.4f}{far:9.4f}{found.time:7.2f}{found.level:7.2f}{found.day:7.2f}"
        print(f"{name:28}{figures}  {sum(found.alarms)}, by test {found.alarms}", flush=True)
    for seed, peers in enumerate((True, False)):
        if tables and ("--alone" if peers else "--peers") not in asked:
            delays(tables, drives, peers, seed)
    return 0


if __name__ == "__main__":
    assert METHODS[0] == "peers"
    sys.exit(main())
