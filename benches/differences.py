"""Whether `headstack compare` of sets of runs says a difference where there is none, and finds one where there is.

On the noise of this machine as it is: real runs of a fifth of a second, both sides alike, in the order ABBA. With
--busy N that of a machine with other users: so many processes compute beside it, and rest, for a second each in the
mean.

    benches/differences.py [--comparisons 400] [--keep RUNS.json] [--busy N]

Half of the comparisons are of a file in memory, whose speed is that of the processor, half of a device that answers
after 200 us. With 400 it takes a quarter of an hour. With --keep the runs are kept, and read where the file is there.

Of 24 pairs there would be few comparisons: the sides of each pair are dealt by chance for each of so many.

For power, the first of each pair of real runs is made 3 % slower in its figures: the slowdown is stated, the noise
real. A pilot of ten pairs asks for so many runs; that many, drawn from the pairs that there are, are looked at. Where
it asks for more than 200, it names what 200 would tell: so much slower is the first made then, and 200 are looked at.
Then requests come at random, 20,000 and 19,400 a second: that slowdown is real, and new runs are made for each try.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import stdev

import headstack as hs
from headstack.comparison.differences.cells import RUNS_MAX, Cell
from headstack.comparison.differences.difference import Difference, compare_sides
from headstack.comparison.differences.runs import NAMES, OWN_SHARE, Outcome, Run, Side, runs_of

PAIRS, DEALT, PILOT, SLOWER, TRIES = 4, 24, 10, 0.03, 200
RATE_PER_S, FRESH, FRESH_PILOT = 20_000, 40, 6
SIZE_BYTES = 16 << 20
MEMORY, DEVICE = "file in memory", "device of 200 us"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=400)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--busy", type=int, default=0)
    given = parser.parse_args()
    others = [multiprocessing.Process(target=bursts, args=(n,), daemon=True) for n in range(given.busy)]
    for other in others:
        other.start()
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
        dealt(runs, given.comparisons)
        for figure in ("iops", "p50_ms"):
            found(runs, figure)
    fresh()
    for other in others:
        other.kill()
    return 0


def bursts(seed: int) -> None:
    """Simulates another user of the machine."""
    draw = random.Random(seed)
    while True:
        until = time.monotonic() + draw.expovariate(1)
        while time.monotonic() < until:
            sum(range(20_000))
        time.sleep(draw.expovariate(1))


def measured(count: int) -> dict[str, object]:
    """Measures this number of pairs of each kind."""
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
    """Returns pairs of first and second runs, in the order ABBA; without those of which one stalled for all of its
    time.
    """
    both = [pair for pair in zip(runs[::2], runs[1::2], strict=True) if all(run.outcomes[""].figures for run in pair)]
    return [(a, b) if n % 2 == 0 else (b, a) for n, (a, b) in enumerate(both)]


def judged(chosen: Sequence[tuple[Run, Run]], paired: bool = True, figures: str | None = None) -> Difference:
    sides = [[pair[side] for pair in chosen] for side in (0, 1)]
    if not paired:
        sides = [[replace(run, at_s=None) for run in runs] for runs in sides]
    return compare_sides(Side("first", tuple(sides[0])), Side("second", tuple(sides[1])), 0.01, 0.03, figures)


def told_apart(name: str, runs: Sequence[Run], count: int, paired: bool) -> None:
    """Prints how often a difference is reported between equal runs."""
    every = pairs(runs)
    all_found = [judged(every[n : n + count], paired) for n in range(0, len(every) - count + 1, count)]
    said = sum(any(cell.verdict == "differs" for cell in found) for found in all_found)
    low, high = wilson(said, len(all_found))
    share = f"{100 * said / len(all_found):.1f} % ({100 * low:.1f} to {100 * high:.1f} %)"
    print(f"  {name}: {said} of {len(all_found)} comparisons said a difference: {share}")


def dealt(runs: Sequence[Run], comparisons: int) -> None:
    """Prints how often a difference is reported for more pairs, whose sides are assigned at random."""
    every, draw, said, tails = pairs(runs), random.Random(2), 0, 0
    for _ in range(comparisons):
        start = draw.randrange(len(every) - DEALT + 1)
        window = every[start : start + DEALT]
        found = judged([pair if draw.random() < 0.5 else (pair[1], pair[0]) for pair in window])
        said += any(cell.verdict == "differs" for cell in found)
        tails += any(cell.estimate.stalls is not None for cell in found)
    low, high = wilson(said, comparisons)
    share = f"{100 * said / comparisons:.1f} % ({100 * low:.1f} to {100 * high:.1f} %)"
    print(
        f"  {DEALT} pairs, dealt: {said} of {comparisons} comparisons said a difference: {share}; long tails in {tails}"
    )


def found(runs: Sequence[Run], figure: str) -> None:
    """Prints how often a slowdown of a figure is detected with the number of runs that a pilot requested."""
    every, draw, name = pairs(runs), random.Random(1), NAMES[figure]
    tries: list[bool] = []
    of_reach: list[bool] = []
    counts, reaches = [], []
    for _ in range(TRIES):
        start = draw.randrange(len(every) - PILOT)
        planted = [(slower(first, SLOWER), second) for first, second in every[start : start + PILOT]]
        pilot = of(figure, judged(planted, figures=name))
        counts.append(PILOT + (pilot.more_runs or 0))
        if counts[-1] <= RUNS_MAX:
            tries.append(is_found(figure, drawn(draw, every, counts[-1], SLOWER)))
        else:
            # A slowdown of x is a ratio of 1 / (1 + x).
            reaches.append(pilot.reach or 0.0)
            of_reach.append(is_found(figure, drawn(draw, every, RUNS_MAX, 1 - 1 / (1 + reaches[-1]))))
    print(f"  3 % slower, {name}: {min(counts)} to {max(counts)} pairs asked for, {middle(counts):.0f} in the middle")
    for what, done in ((f"asked for up to {RUNS_MAX}", tries), (f"what {RUNS_MAX} were said to tell", of_reach)):
        if done:
            low, high = wilson(sum(done), len(done))
            share = f"{100 * sum(done) / len(done):.0f} % ({100 * low:.0f} to {100 * high:.0f} %)"
            print(f"    {what}: found in {sum(done)} of {len(done)} tries: {share}")
    if reaches:
        low, high = (f"{100 * end:.1f}" for end in (min(reaches), max(reaches)))
        print(f"    that was {low} to {high} %, {100 * middle(reaches):.1f} in the middle")


def drawn(draw: random.Random, every: Sequence[tuple[Run, Run]], count: int, share: float) -> list[tuple[Run, Run]]:
    """Returns this number of consecutive pairs from a random start, cyclically, of which the first is slower."""
    start = draw.randrange(len(every))
    chosen = [every[(start + n) % len(every)] for n in range(count)]
    # If the selection wraps around, its runs get consecutive times.
    timed = [
        tuple(replace(run, at_s=2.0 * n + (run is not min(pair, key=at))) for run in pair)
        for n, pair in enumerate(chosen)
    ]
    return [(slower(first, share), second) for first, second in timed]


def at(run: Run) -> float:
    return run.at_s or 0.0


def is_found(figure: str, chosen: Sequence[tuple[Run, Run]]) -> bool:
    return of(figure, judged(chosen, figures=NAMES[figure])).verdict == "differs"


def middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def fresh() -> None:
    """Repeats it with new runs for each try, of which the first is offered 3 % fewer requests."""
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


def slower(run: Run, share: float) -> Run:
    """Returns the run as on a device that is slower by this share."""
    changed = {
        name: value * (1 - share if name in ("iops", "mb_per_s") else 1 / (1 - share))
        for name, value in run.outcomes[""].figures.items()
    }
    return replace(run, outcomes={"": Outcome(changed)})


def wilson(count: int, of: int) -> tuple[float, float]:
    """Returns the 95 % confidence interval of a share."""
    z = 1.96
    middle = (count + z * z / 2) / (of + z * z)
    half = z / (of + z * z) * math.sqrt(count * (of - count) / of + z * z / 4)
    return middle - half, middle + half


if __name__ == "__main__":
    sys.exit(main())
