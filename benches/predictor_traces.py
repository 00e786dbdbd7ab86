"""Predictions of traces compared with their replays: `predictor_traces.py [SYSTEM...]`.

Twenty traces: real ones if there are any in $HEADSTACK_SHARED/traces, and generated ones with bursts of every length,
closed loops, daily cycles, several sorts of requests, and many volumes. Each is predicted from its own arrivals and
replayed as recorded (timed) on the same simulated system. Generated ones are slowed down or sped up so that every
system gets the same share of its maximum load.

Prints a line for each trace and system with the result, and whether the replay is within the prediction's interval;
then the number within it, for the half on which the method was developed (`seen`) and for the other one (`held out`).
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import headstack as hs
from headstack.prediction.predictions import predict_all
from headstack.prediction.predictor import Characterization, Prediction, characterization_of, load_environment

SYSTEMS = ("cheetah-15k7-600", "dc-s3700-400gb", "md-raid5-8x2tb")
REQUESTS = 24_000
SPAN_BYTES = 300 << 30
FILE_TIME = 128_166_372_000_000_000
Arrivals = Iterator[tuple[float, int]]
"""Times, in any unit, and the sorts of requests."""


@dataclass(frozen=True)
class Sort:
    """Requests of one sort: their size, share of reads, and whether they are sequential."""

    size_bytes: int
    reads: float
    follows: bool = False


@dataclass(frozen=True)
class Made:
    """A generated trace."""

    load: float
    """Mean arrival rate relative to the system's maximum."""
    arrivals: Callable[[Random], Arrivals]
    sorts: tuple[Sort, ...]
    volumes: int = 1


def poisson(random: Random) -> Arrivals:
    """Generates random arrivals, like those of open-loop predictions."""
    now = 0.0
    while True:
        now += random.expovariate(1.0)
        yield now, 0


def on_off(on: float, share: float, pareto: bool = False) -> Callable[[Random], Arrivals]:
    """Generates bursts with a mean number of arrivals, which last that share of the time."""

    def arrivals(random: Random) -> Arrivals:
        start = 0.0
        while True:
            length = random.paretovariate(1.4) * 0.4 / 1.4 if pareto else random.expovariate(1.0)
            end, now = start + on * share * length, start
            while (now := now + random.expovariate(1 / share)) < end:
                yield now, 0
            start = end + random.expovariate(1 / (on * (1 - share)))

    return arrivals


def daily(peak: float, days: int) -> Callable[[Random], Arrivals]:
    """Generates a rate that varies over the day, with this peak relative to the mean."""

    def arrivals(random: Random) -> Arrivals:
        now, length = 0.0, REQUESTS / days
        while True:
            now += random.expovariate(peak)
            if random.random() * peak < 1 + (peak - 1) * math.sin(2 * math.pi * now / length):
                yield now, 0

    return arrivals


def cascade(bias: float) -> Callable[[Random], Arrivals]:
    """Generates a b-model: one half of each interval gets that share of the arrivals, on every scale (self-similar)."""

    def arrivals(random: Random) -> Arrivals:
        levels = 13
        while True:
            times = []
            for _ in range(REQUESTS):
                place = 0
                for level in range(levels):
                    half = (hash((level, place)) ^ 0x5BD1) & 1
                    place = 2 * place + (half if random.random() < bias else 1 - half)
                times.append((place + random.random()) / (1 << levels) * REQUESTS)
            yield from ((time, 0) for time in sorted(times))

    return arrivals


def closed(queue_depth: int, think: float) -> Callable[[Random], Arrivals]:
    """Generates clients that wait for an answer, which takes as long as a request on average, and think."""

    def arrivals(random: Random) -> Arrivals:
        clients = [random.random() * think for _ in range(queue_depth)]
        free = 0.0
        while True:
            client = min(range(queue_depth), key=clients.__getitem__)
            now = clients[client]
            yield now, 0
            free = max(free, now) + random.uniform(0.5, 1.5)
            clients[client] = free + random.expovariate(1 / think)

    return arrivals


def with_batches(every: float, requests: int, faster: float) -> Callable[[Random], Arrivals]:
    """Generates random arrivals, with periodic batches of the second sort."""

    def arrivals(random: Random) -> Arrivals:
        now, batch = 0.0, every / 2
        while True:
            now += random.expovariate(1.0)
            while now > batch:
                yield from ((batch + n / faster, 1) for n in range(requests))
                batch += every
            yield now, 0

    return arrivals


def together(count: int, of: Callable[[Random], Arrivals]) -> Callable[[Random], Arrivals]:
    """Merges many independent sources."""

    def arrivals(random: Random) -> Arrivals:
        sources = [of(Random(random.random())) for _ in range(count)]
        heads = [next(source) for source in sources]
        while True:
            first = min(range(count), key=lambda n: heads[n][0])
            yield heads[first][0] * count, first % 2
            heads[first] = next(sources[first])

    return arrivals


K = 1 << 10
PAGES, BLOCKS = Sort(8 * K, 0.7), Sort(64 * K, 0.6)
GENERATED = {
    "poisson": Made(0.4, poisson, (BLOCKS,)),
    "on-off-long": Made(0.15, on_off(2000, 0.2), (BLOCKS,)),
    "on-off-short": Made(0.3, on_off(20, 0.2), (PAGES,)),
    "on-off-overload": Made(0.3, on_off(300, 0.2), (BLOCKS,)),
    "pareto": Made(0.25, on_off(100, 0.3, pareto=True), (BLOCKS,)),
    "daily": Made(0.35, daily(1.9, 4), (PAGES,)),
    "daily-peaks": Made(0.55, daily(1.9, 12), (BLOCKS,)),
    "cascade": Made(0.2, cascade(0.65), (Sort(64 * K, 1.0),)),
    "closed": Made(0.5, closed(8, 12.0), (BLOCKS,)),
    "checkpoints": Made(0.3, with_batches(4000, 800, 8.0), (Sort(8 * K, 0.9), Sort(64 * K, 0.0))),
    "backup": Made(0.3, with_batches(6000, 3000, 2.0), (Sort(64 * K, 0.7), Sort(256 * K, 1.0, follows=True))),
    "volumes": Made(0.4, together(16, on_off(100, 0.1)), (BLOCKS, PAGES), volumes=16),
}
# Addresses at terabytes are folded, for the prediction as for the replay.
REAL = {
    "cloudphysics": ("cloudphysics/cloudPhysicsIO.vscsi", ["first=60000"]),
    "msr": ("msr/msr-cambridge1-sample.csv", []),
    "systor": ("systor17/systor17-traces-sample.csv", ["fold=300GiB"]),
    "systor-additional": ("systor17/systor17-additional-sample.csv", ["fold=300GiB"]),
    "loop-poisson": ("blktrace/loop0_poisson1500_8s.blktrace.bin", []),
    "disksim-ascii": ("disksim/ascii.trace", ["stack=2GB", "first=50000"]),
    "mqsim-wsrch": ("mqsim/wsrch-small.trace", ["device=0", "fold=300GiB"]),
    "mqsim-tpcc": ("mqsim/tpcc-small.trace", ["device=0", "fold=300GiB"]),
}
SEEN = {
    "poisson", "on-off-long", "on-off-short", "daily", "closed", "checkpoints",
    "cloudphysics", "msr", "loop-poisson", "mqsim-tpcc",
}  # fmt: skip
"""The others were not used during development."""


def write(made: Made, path: Path, seed: int) -> None:
    """Writes the trace in the format of MSR Cambridge, with time units of 0.1 ms."""
    random = Random(seed)
    ends = [0] * made.volumes
    part = SPAN_BYTES // made.volumes
    with path.open("w") as file:
        for number, (now, kind) in enumerate(made.arrivals(random)):
            if number == REQUESTS:
                return
            sort = made.sorts[kind]
            volume = random.randrange(made.volumes)
            place = ends[volume] if sort.follows else random.randrange((part - (1 << 20)) // (4 * K)) * 4 * K
            ends[volume] = (place + sort.size_bytes) % (part - (1 << 20))
            operation = "Read" if random.random() < sort.reads else "Write"
            ticks = FILE_TIME + round(now * 1000)
            file.write(f"{ticks},made,{volume},{operation},{place},{sort.size_bytes},\n")


def traces(folder: Path, system: Characterization) -> Iterator[tuple[str, hs.Trace]]:
    """Yields all traces, scaled for a system."""
    for seed, (name, made) in enumerate(GENERATED.items()):
        path = folder / f"{name}.csv"
        if not path.exists():
            write(made, path, seed)
        steps = [f"stack={SPAN_BYTES // made.volumes}B"] if made.volumes > 1 else []
        environment = load_environment(hs.Trace(path, steps=steps)).at_depth(1)
        most = system.model.rates(system.model.blend(environment)).most
        # A unit is 0.1 ms, so 10,000 units per second are one arrival each.
        yield name, hs.Trace(path, steps=[*steps, f"time-scale={10_000 / (made.load * most):.6g}"])
    shared = Path(os.environ.get("HEADSTACK_SHARED", "../shared")) / "traces"
    for name, (file, steps) in REAL.items():
        if (shared / file).is_file():
            yield name, hs.Trace(shared / file, steps=steps)
        else:
            print(f"skipped: no {shared / file}")


def main() -> None:
    print(f"{'system':18}{'trace':19}{'figure':7}{'replayed':>10}{'predicted':>10}{'from':>10}{'to':>10}")
    counts: dict[str, dict[str, list[str]]] = {half: defaultdict(list) for half in ("seen", "held out")}
    for name in sys.argv[1:] or SYSTEMS:
        system = characterization_of(name)
        with tempfile.TemporaryDirectory() as folder:
            for title, trace in traces(Path(folder), system):
                for figure, verdict in held(title, trace, system).items():
                    counts["seen" if title in SEEN else "held out"][figure].append(verdict)
    for half, figures in counts.items():
        for figure, verdicts in figures.items():
            told = [verdict for verdict in verdicts if verdict != "refused"]
            within = sum(verdict == "within" for verdict in told)
            print(f"{half}, {figure}: {len(verdicts)} traces and systems, {len(told)} predicted, {within} within")


FIGURES = {"mean": "mean_ms", "p50": "p50_ms", "p99": "p99_ms"}


def held(title: str, trace: hs.Trace, system: Characterization) -> dict[str, str]:
    """Compares one trace on one system: each figure is within, outside or refused. For a saturated system, throughput
    is compared instead of response times."""
    line = f"{system.system:18}{title:19}"
    try:
        found: Prediction = predict_all([load_environment(trace)], [system])[0]
    except hs.InputError as refused:
        print(f"{line}refused: {str(refused).partition(': ')[2]}", flush=True)
        return dict.fromkeys(FIGURES, "refused")
    row = next(iter(hs.replay(trace, system.system, "timed")))
    verdicts = {}
    for figure, column in FIGURES.items():
        ends = (found.iops, found.iops_low, found.iops_high)
        name, replayed = "IOPS", row["iops"]
        if not found.saturated:
            name, replayed = figure, row[column]
            ends = tuple(getattr(found, key) for key in (column, f"{figure}_ms_low", f"{figure}_ms_high"))
        is_within = (ends[1] or 0.0) <= replayed <= (math.inf if ends[2] is None else ends[2])
        verdicts["throughput" if found.saturated else figure] = "within" if is_within else "beside"
        told = "".join(f"{'-' if end is None else f'{end:.4g}':>10}" for end in ends)
        print(f"{line}{name:7}{replayed:10.4g}{told}{'' if is_within else '  beside'}", flush=True)
        if found.saturated:
            break
    return verdicts


if __name__ == "__main__":
    main()
