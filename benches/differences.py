"""Whether `headstack compare` of sets of runs says a difference where there is none, and finds one where there is.

On the noise of this machine as it is: real runs of a fifth of a second, both sides alike, in the order ABBA.

    benches/differences.py [--comparisons 400] [--keep RUNS.json]

Half of the comparisons are of a file in memory, whose speed is that of the processor, half of a device that answers
after 200 us. With 400 it takes a quarter of an hour. With --keep the runs are kept, and read where the file is there.

For power, the first of each pair of real runs of the device is made 3 % slower in its figures: the slowdown is stated,
the noise real. A pilot of ten pairs asks for so many runs; that many are looked at, as far as there are so many. Then
requests come at random, 20,000 and 19,400 a second: that slowdown is real, and new runs are made for each try.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import stdev

import headstack as hs
from headstack.differences import Difference, of_sides
from headstack.differences.cells import Cell
from headstack.differences.runs import OWN_SHARE, Outcome, Run, Side, runs_of

PAIRS, PILOT, SLOWER, STARTS = 4, 10, 0.03, 200
RATE_PER_S, FRESH, FRESH_PILOT = 20_000, 40, 6
SIZE_BYTES = 16 << 20
MEMORY, DEVICE = "file in memory", "device of 200 us"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=400)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    if given.keep is not None and given.keep.exists():
        kept = json.loads(given.keep.read_text())
    else:
        kept = measured(given.comparisons // 2 * PAIRS)
        if given.keep is not None:
            given.keep.write_text(json.dumps(kept))
    print(f"load at the beginning and the end: {kept['loads']}")
    for name in (MEMORY, DEVICE):
        runs = [Run(f"{n}", float(n), OWN_SHARE, {"": Outcome(one)}) for n, one in enumerate(kept[name])]
        apart = [math.log(b.outcomes[""].figures["iops"] / a.outcomes[""].figures["iops"]) for a, b in pairs(runs)]
        print(
            f"{name}: {len(runs)} runs; throughputs of a pair stray by {100 * stdev(apart) / math.sqrt(2):.1f} % each"
        )
        for count in (PAIRS, 3 * PAIRS):
            told_apart(f"{count} pairs", runs, count, paired=True)
            told_apart(f"{count} runs each, unpaired", runs, count, paired=False)
    for figure in ("iops", "p50_ms"):
        found(runs, figure)
    fresh()
    return 0


def measured(count: int) -> dict[str, object]:
    """So many pairs of each."""
    path, before = Path(f"/dev/shm/headstack-differences-{os.getpid()}"), os.getloadavg()
    kept: dict[str, object] = {}
    try:
        path.write_bytes(os.urandom(SIZE_BYTES))
        for name, target, how in ((MEMORY, str(path), {"buffered": True}), (DEVICE, "null:200us", {})):
            began = time.monotonic()
            rows = []
            for _ in range(2 * count):
                results = hs.measure(target, size="4KiB", depth=1, time="200ms", warm_up="10ms", **how)
                [run] = runs_of(results.to_json(), name, None)
                [outcome] = run.outcomes.values()
                rows.append(dict(outcome.figures))
            kept[name] = rows
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    finally:
        path.unlink(missing_ok=True)
    return kept | {"loads": [*before[:1], *os.getloadavg()[:1]]}


def pairs(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """First and second, in the order ABBA; without those of which one stood still for all of its time."""
    both = [pair for pair in zip(runs[::2], runs[1::2], strict=True) if all(run.outcomes[""].figures for run in pair)]
    return [(a, b) if n % 2 == 0 else (b, a) for n, (a, b) in enumerate(both)]


def judged(chosen: Sequence[tuple[Run, Run]], paired: bool = True, figures: str | None = None) -> Difference:
    sides = [[pair[side] for pair in chosen] for side in (0, 1)]
    if not paired:
        sides = [[replace(run, at_s=None) for run in runs] for runs in sides]
    return of_sides(Side("first", tuple(sides[0])), Side("second", tuple(sides[1])), 0.01, 0.03, figures)


def told_apart(name: str, runs: Sequence[Run], count: int, paired: bool) -> None:
    """How often a difference is said of runs that are alike."""
    every = pairs(runs)
    all_found = [judged(every[n : n + count], paired) for n in range(0, len(every) - count + 1, count)]
    said = sum(any(cell.verdict == "differs" for cell in found) for found in all_found)
    low, high = wilson(said, len(all_found))
    share = f"{100 * said / len(all_found):.1f} % ({100 * low:.1f} to {100 * high:.1f} %)"
    print(f"  {name}: {said} of {len(all_found)} comparisons said a difference: {share}")


def found(runs: Sequence[Run], figure: str) -> None:
    """How often a slowdown is found in a figure with as many runs as a pilot asked for."""
    every = [(slower(first), second) for first, second in pairs(runs)]
    draw, tries, counts = random.Random(1), [], []
    for _ in range(STARTS):
        start = draw.randrange(len(every) - PILOT)
        pilot = of(figure, judged(every[start : start + PILOT]))
        asked = PILOT + (pilot.more_runs or 0)
        counts.append(asked)
        if start + asked <= len(every):
            tries.append(of(figure, judged(every[start : start + asked])).verdict == "differs")
    if not tries:
        print(f"3 % slower, {figure}: no pilot asked for as few runs as there are, but {sorted(counts)[STARTS // 2]}")
        return
    middle = sorted(counts)[len(counts) // 2]
    low, high = wilson(sum(tries), len(tries))
    share = f"{100 * sum(tries) / len(tries):.0f} % ({100 * low:.0f} to {100 * high:.0f} %, were they apart)"
    print(f"3 % slower, {figure}: found in {sum(tries)} of {len(tries)} tries with the pairs asked for: {share}")
    print(f"  pairs asked for: {min(counts)} to {max(counts)}, {middle} in the middle; tries share runs")


def fresh() -> None:
    """The same with new runs for each try, of which the first is offered 3 % less."""
    seeds = iter(range(1, 1_000_000))

    def pair() -> tuple[Run, Run]:
        both = []
        for share in (1 - SLOWER, 1.0):
            rate = f"{share * RATE_PER_S:.0f}"
            results = hs.measure("null", size="4KiB", rate=rate, seed=next(seeds), time="200ms", warm_up="10ms")
            [run] = runs_of(results.to_json(), "fresh", time.time())
            both.append(replace(run, outcomes={"": next(iter(run.outcomes.values()))}))
        return both[0], both[1]

    tries, counts = [], []
    for _ in range(FRESH):
        pilot = of("iops", judged([pair() for _ in range(FRESH_PILOT)], figures="throughput"))
        counts.append(FRESH_PILOT + (pilot.more_runs or 0))
        done = judged([pair() for _ in range(counts[-1])], figures="throughput")
        tries.append(of("iops", done).verdict == "differs")
    low, high = wilson(sum(tries), len(tries))
    share = f"{100 * sum(tries) / len(tries):.0f} % ({100 * low:.0f} to {100 * high:.0f} %)"
    print(f"3 % fewer requests offered: found in {sum(tries)} of {len(tries)} tries with the pairs asked for: {share}")
    print(f"  pairs asked for: {min(counts)} to {max(counts)}, {sorted(counts)[len(counts) // 2]} in the middle")


def of(figure: str, one: Difference) -> Cell:
    return next(cell for cell in one.cells if cell.figure == figure)


def slower(run: Run) -> Run:
    """The run as it would be on a device that is 3 % slower."""
    changed = {
        name: value * (1 - SLOWER if name in ("iops", "mb_per_s") else 1 / (1 - SLOWER))
        for name, value in run.outcomes[""].figures.items()
    }
    return replace(run, outcomes={"": Outcome(changed)})


def wilson(count: int, of: int) -> tuple[float, float]:
    """Where a share lies, with 95 %."""
    z = 1.96
    middle = (count + z * z / 2) / (of + z * z)
    half = z / (of + z * z) * math.sqrt(count * (of - count) / of + z * z / 4)
    return middle - half, middle + half


if __name__ == "__main__":
    sys.exit(main())
