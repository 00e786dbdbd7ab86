"""False alarms of healthy drive-years, and delays of fleets in virtual time: `judging_fleet.py TABLE… [--failslow
FILE]`.

TABLE is what `judging_causes.py --keep FOLDER` left of a drive: quarters of an hour straight from the simulator. A
thousand drive-years are not simulated: residuals of healthy disks, of the simulator and (with `--failslow`) of real
ones, are drawn again in runs of two hours, so that tails and correlation stay. To them come what such short series
lack: differences between disks for good, a wander over days, and hours in which everything is three times as noisy.
That is of peers: false alarms against the own past come from loads, which are in the fleets alone.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from judging import SLOW, observations

from headstack.judging.evidence import Evidence, correlation_time, deviates
from headstack.judging.expectation import Peers
from headstack.judging.fleet import LANES_A_DRIVE, METHODS, TOLERANCES, Fleet
from headstack.judging.judge import FALSE_ALARMS, take
from headstack.judging.steps import FEATURES, STEP_S, STREAMS, Step, steps_of

Array = npt.NDArray[np.float64]
RUN = 8
YEAR = 35_064
POOL = 256
OFFSET, WANDER, NOISY = 0.02, 0.02, 0.02
DRIVES, A_HOST = 1_000, 10
ONSET = 120
AFTER = {True: 97, False: 673}
"""With peers a day after the onset, with the own past alone a week."""


def healthy_of_peers(frame: pl.DataFrame) -> Array:
    """Residuals of disks of one host, over steps."""
    places = {key: at for at, key in enumerate(frame.select("host", "disk").unique().sort("disk").iter_rows())}
    steps, found = steps_of(frame, places), []
    for stream in range(len(STREAMS)):
        if not np.isfinite(steps[0].log_latency[:, stream]).any() or (stream == 2 and found):
            continue
        peers = Peers()
        for step in steps:
            peers.learn(step.number, step.log_latency[:, stream], step.features[:, stream])
        found.append(np.array([peers.residuals(s.log_latency[:, stream], s.features[:, stream]) for s in steps]).T)
    return np.concatenate(found)


def false_alarms(series: Array, years: int, seed: int) -> tuple[int, float]:
    """Alarms in so many drive-years, and the correlation time of residuals."""
    draw = np.random.default_rng(seed)
    length = series.shape[1] - RUN

    def run(lanes: int) -> Array:
        rows, begin = draw.integers(len(series), size=lanes), draw.integers(length, size=lanes)
        return np.nan_to_num(series[rows[:, None], begin[:, None] + np.arange(RUN)[None, :]])

    history = np.concatenate([run(years) for _ in range(POOL // RUN)], axis=1)
    centred = history - np.median(history, axis=1, keepdims=True)
    times = np.array([correlation_time(row[None, :]) for row in history])
    offset = draw.normal(0.0, OFFSET, years)
    evidence = Evidence.none(years)
    thresholds = evidence.thresholds(FALSE_ALARMS, LANES_A_DRIVE)
    wander, alarms = np.zeros(years), 0
    keep = math.exp(-RUN / 96)
    for begin in range(0, YEAR, RUN):
        wander = keep * wander + draw.normal(0.0, WANDER * math.sqrt(1 - keep**2), years)
        block = run(years) * np.where(draw.random(years) < NOISY, 3.0, 1.0)[:, None] + (offset + wander)[:, None]
        for at in range(RUN):
            before = evidence.alarmed > 0
            p, z = deviates(block[:, at] - TOLERANCES[0], centred, times)
            evidence.take(begin + at, block[:, at], p, z, times, thresholds)
            alarms += int(((evidence.alarmed > 0) & ~before).sum())
    return alarms, float(times.mean())


CASES = ("1.3 times", "2 times", "5 times", "zone: 2 times at times", "writes alone: 2 times", "growing to 2 in a day")


def slower(case: str, after: int, draw: np.random.Generator) -> tuple[float, float]:
    """The logarithms by which reads and writes are slower, so many steps after the onset."""
    match case:
        case "1.3 times" | "2 times" | "5 times":
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


def delays(tables: list[pl.DataFrame], peers: bool, seed: int) -> None:
    """A fleet of a thousand drives, of which six in a hundred become slow, by one step of a load at a time."""
    draw = np.random.default_rng(seed)
    libraries = []
    for table in tables:
        healthy = table.filter(pl.col("host") == table["host"][0], pl.col("disk") != "x").with_columns(host=pl.lit(""))
        places = {("", disk): at for at, disk in enumerate(sorted(set(healthy["disk"])))}
        steps = steps_of(healthy, places)
        order = np.argsort([float(np.nanmean(step.log_latency[:, 0])) for step in steps])
        libraries.append(([steps[at] for at in order], healthy_of_peers(healthy)))
    fleet = Fleet()
    hosts = [f"h{at}" for at in range(DRIVES // A_HOST)]
    fleet.add([(host, f"d{at}", None, host if peers else None) for host in hosts for at in range(A_HOST)])
    case_of = {place: CASES[place // A_HOST % len(CASES)] for place in range(3, 10 * A_HOST * len(CASES), A_HOST)}
    offset = draw.normal(0.0, OFFSET, DRIVES)
    found: dict[int, int] = {}
    wrong: set[int] = set()
    position = draw.random(len(hosts))
    for number in range(ONSET + AFTER[peers]):
        shape = (DRIVES, len(STREAMS))
        latency, features = np.full(shape, math.nan), np.full((*shape, len(FEATURES)), math.nan)
        # Loads shift: by a little each quarter of an hour, and to anything once in two hours.
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
                # In an open loop what is in flight grows with the time that it takes.
                features[place, :2, 3] += 0.5 * max(more)
        take(fleet, Step(number, latency, np.full(shape, math.nan), features), {}, FALSE_ALARMS)
        for place in range(DRIVES):
            method = fleet.judged_by(place)
            if method and fleet.alarmed(place, method):
                if place in case_of and number >= ONSET:
                    found.setdefault(place, number - ONSET + 1)
                else:
                    wrong.add(place)
    held, days = "peers of the host" if peers else "own past", (ONSET + AFTER[peers]) / 96
    print(f"\n{held}: {DRIVES} drives, {len(wrong)} false alarms in {days:.1f} days")
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
    print(f"{'residuals':28}{'deviation':>10}{'of 3 sd':>9}{'steps':>7}{'alarms in':>11} {years} drive-years")
    for seed, (name, values) in enumerate(series.items()):
        alarms, time = false_alarms(values, years, seed)
        centred = values - np.nanmedian(values, axis=1, keepdims=True)
        deviation = float(np.nanstd(centred))
        far = float((np.abs(centred[np.isfinite(centred)]) > 3 * deviation).mean())
        print(f"{name:28}{deviation:10.4f}{far:9.4f}{time:7.2f}{alarms:11}", flush=True)
    for seed, peers in enumerate((True, False)):
        if tables:
            delays(tables, peers, seed)
    return 0


if __name__ == "__main__":
    assert METHODS[0] == "peers"
    sys.exit(main())
