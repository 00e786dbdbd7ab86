"""Detection of injected slowness with feedback on the rate: `judging_feedback.py failslow.parquet [TABLE…]`.

`--peers`, `--alone` and `--alike`, `--differ` run a part of it.

A slowdown is injected into the steps of real disks from `judging.py`, and of simulated ones (TABLE, as for
`judging_fleet.py`). The rate of open clients is unchanged, that of closed ones falls in proportion, that of half-closed
ones with the square root. It is compared with a simple rule: the daily median of a disk's latency is more than 1.2
times that of its host. The real hosts have similar loads; a host whose disks have different loads shows the false
alarms of the rule.
"""

from __future__ import annotations

import copy
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from judging import SLOW, observations

from headstack.diagnosis.judging.false_alarms import FALSE_ALARMS
from headstack.diagnosis.judging.fleet import Fleet
from headstack.diagnosis.judging.judge import take
from headstack.diagnosis.judging.steps import STEP_S, Step, steps_of

FACTORS = (1.3, 1.5, 2.0, 10.0, 100.0)
FEEDBACK = {"open": 0.0, "half-closed": 0.5, "closed": 1.0}
DAY_S, TWO_HOURS = 86_400.0, 8
BEFORE_S = {True: 5 * DAY_S, False: 9 * DAY_S}
"""Healthy time before the onset, with peers and without: a past is 96 steps, of which real disks have twelve per
day."""
EVERY = 3
"""One of this many disks is made slow, each in a run of its own."""
DEPTH = 3
"""The column of the queue depth."""
RULE = math.log(1.2)


def injected(step: Step, place: int, factor: float, feedback: str) -> Step:
    """Returns the step with one slower disk."""
    slower, less = math.log(factor), FEEDBACK[feedback] * math.log(factor)
    latency, features = step.log_latency.copy(), step.features.copy()
    latency[place] += slower
    features[place, :, 0] -= less
    known = features[place, :, DEPTH] != 0.0
    # By Little's law; the queue depth while busy is at least 1.
    features[place, known, DEPTH] = np.maximum(features[place, known, DEPTH] + slower - less, 0.0)
    return step._replace(log_latency=latency, features=features)


def alarms(fleet: Fleet) -> set[int]:
    """Returns the disks that are called slow."""
    by = {place: fleet.judged_by(place) for place in range(len(fleet.disks))}
    return {place for place, method in by.items() if method and fleet.alarmed(place, method)}


def ruled(day: list[Step]) -> set[int]:
    """Returns the disks that the simple rule calls slow."""
    latency = np.array([np.fmax.reduce(step.log_latency, axis=1) for step in day])
    medians = np.nanmedian(latency, axis=0)
    return set(np.flatnonzero(medians - np.nanmedian(medians) > RULE).tolist())


def hosts_of(frame: pl.DataFrame) -> list[tuple[str, list[str], list[Step]]]:
    """Returns disks and steps of each host."""
    found = []
    for (host,), part in frame.partition_by("host", as_dict=True, maintain_order=True).items():
        disks = sorted(set(part["disk"]))
        found.append((str(host), disks, steps_of(part, {(str(host), disk): at for at, disk in enumerate(disks)})))
    return found


def uneven(steps: list[Step], seed: int) -> list[Step]:
    """Returns the same disks with different loads: each disk gets another time of day, so that its rate and latency
    remain consistent."""
    shift = np.random.default_rng(seed).integers(len(steps), size=len(steps[0].log_latency))
    rows = np.arange(len(shift))
    found = []
    for number, step in enumerate(steps):
        of = [steps[(number + int(by)) % len(steps)] for by in shift]
        latency = np.array([one.log_latency[row] for one, row in zip(of, rows, strict=True)])
        features = np.array([one.features[row] for one, row in zip(of, rows, strict=True)])
        found.append(Step(step.number, latency, np.full_like(step.spread, math.nan), features))
    return found


class Parts(NamedTuple):
    """Steps of a host: in health, and the day from the onset on."""

    before: list[Step]
    day: list[Step]


def parts_of(steps: list[Step], before_s: float) -> Parts:
    """Splits the steps after ``before_s`` seconds of health. Without a complete day after them both parts are empty."""
    begin_s = steps[0].start_s + before_s
    day = [step for step in steps if begin_s <= step.start_s < begin_s + DAY_S]
    is_whole = steps[-1].start_s + STEP_S >= begin_s + DAY_S or any(s.start_s >= begin_s + DAY_S for s in steps)
    return Parts([step for step in steps if step.start_s < begin_s], day) if is_whole else Parts([], [])


class Outcome(NamedTuple):
    """The detection of a disk with injected slowness."""

    after: float
    """Steps until the alarm."""
    is_called_fine: bool
    """Whether it was called fine more than two hours after the onset."""
    by_rule: bool


class Host(NamedTuple):
    """A host with its known slow disks."""

    name: str
    disks: list[str]
    parts: Parts

    def fleet(self, peers: bool) -> Fleet:
        fleet = Fleet()
        fleet.add([(self.name, disk, None, self.name if peers else None) for disk in self.disks])
        return fleet

    @property
    def sick(self) -> set[int]:
        return {at for at, disk in enumerate(self.disks) if (self.name, disk) in SLOW}


def judged(fleet: Fleet, steps: list[Step]) -> set[int]:
    """Judges steps; returns the alarmed disks."""
    found: set[int] = set()
    for step in steps:
        take(fleet, step._replace(log_latency=step.log_latency.copy()), {}, FALSE_ALARMS)
        found |= alarms(fleet)
    return found


def outcome(kept: Fleet, host: Host, place: int, factor: float, feedback: str) -> Outcome:
    """Makes a disk slow, and judges a day."""
    fleet, after, is_called_fine = copy.deepcopy(kept), math.inf, False
    day = [injected(step, place, factor, feedback) for step in host.parts.day]
    by_rule = place in ruled(day)
    for number, step in enumerate(day, 1):
        take(fleet, step, {}, FALSE_ALARMS)
        if place in alarms(fleet):
            after = number
            break
        # After two hours the verdict must not depend on earlier data.
        is_called_fine |= number > TWO_HOURS and fleet.judged_by(place) is not None
    return Outcome(after, is_called_fine, by_rule)


def show(name: str, hosts: list[Host], peers: bool) -> None:
    """Prints the detections for several hosts."""
    wrong, rule, found = 0, 0, dict[tuple[float, str], list[Outcome]]()
    for host in hosts:
        fleet = host.fleet(peers)
        false = judged(fleet, host.parts.before)
        kept = copy.deepcopy(fleet)
        false = (false | judged(fleet, host.parts.day)) - host.sick
        wrong += len(false)
        rule += len(ruled(host.parts.day) - host.sick)
        for factor in FACTORS:
            for feedback in FEEDBACK:
                places = [at for at in range(0, len(host.disks), EVERY) if at not in host.sick | false]
                of = [outcome(kept, host, place, factor, feedback) for place in places]
                found.setdefault((factor, feedback), []).extend(of)
    steps = len(hosts[0].parts.day)
    print(f"\n{name}, {'peers' if peers else 'alone'}: {wrong} false alarms up to the end; the rule: {rule} on the day")
    print(f"{steps} quarters of an hour on the day of the onset; found in 2 h / 3 h / that day")
    print(f"{'':8}" + "".join(f"{feedback:>34}" for feedback in FEEDBACK))
    for factor in FACTORS:
        cells = []
        for feedback in FEEDBACK:
            of = found[factor, feedback]
            within = "/".join(str(sum(one.after <= limit for one in of)) for limit in (TWO_HOURS, 12, steps))
            fine, by_rule = sum(one.is_called_fine for one in of), sum(one.by_rule for one in of)
            cells.append(f"{within} of {len(of)}, {fine} fine, rule {by_rule}")
        print(f"{factor:<8g}" + "".join(f"{cell:>34}" for cell in cells), flush=True)


def main() -> int:
    options = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    paths = [argument for argument in sys.argv[1:] if argument not in options]
    if unknown := options - {"--peers", "--alone", "--alike", "--differ"}:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}")
    seen = hosts_of(observations(Path(paths[0])).frame)
    sets = [] if "--differ" in options else [("real, alike", seen)]
    if "--alike" not in options:
        sets.append(("real, loads that differ", [(h, d, uneven(s, seed)) for seed, (h, d, s) in enumerate(seen)]))
    for path in paths[1:]:
        sets.append((Path(path).stem, hosts_of(pl.read_parquet(path))))
    for name, of in sets:
        for peers, before_s in BEFORE_S.items():
            if ("--alone" if peers else "--peers") in options:
                continue
            hosts = [Host(host, disks, parts_of(steps, before_s)) for host, disks, steps in of]
            if all(host.parts.day for host in hosts):
                show(name, hosts, peers)
            else:
                print(f"\n{name}, {'peers' if peers else 'alone'}: not {before_s / DAY_S + 1:g} days long")
    print("\nfine: judged without an alarm later than 2 h after the onset")
    return 0


if __name__ == "__main__":
    sys.exit(main())
