"""How right `headstack choose` is, on jobs that a seed draws: its optimum, its statements, what it says binds.

    python benches/choosing.py                         all of it but the speed
    python benches/choosing.py --only optimum --jobs 5 --seed 3
    python benches/choosing.py --only speed --candidates 10000
    python benches/choosing.py --smoke                 one statement with short runs, to see that it runs

**optimum**: spaces of 20 to 60 systems. Every system that costs less than the answer, and the answer, is simulated with
four other seeds, longer until Student's interval of 95 % of the four does not hold the limit or they are 2^20 requests.
The answer is right where it is the first by cost that meets the limits then, or where the interval of a cheaper one
holds its limit still (a tie). **binding**: of the same jobs, a constraint that the answer calls binding is one whose
relaxation by a tenth lets a cheaper system do, by the same long runs; the bottleneck that it names is right where a
tenth less time in it shortens the response most, of the controller and the rest of the system. Where
intervals hold the limit, or two reliefs differ by less than their intervals, either answer counts, and how many these
were is told. **statements**: of larger spaces, the answer's limits in one run with another seed, ten times as long and
400,000 requests at least. Every job is drawn from the seed and its own number.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstack._native import InputError
from headstack.choice.answer import Answer, Decision
from headstack.choice.bottleneck import CONTROLLER, RELIEF, with_eased_controller
from headstack.choice.candidates import Candidates, candidates, cost_of
from headstack.choice.choose import Chooser
from headstack.choice.job import Job
from headstack.choice.limits import Estimate, Limit, combine_decisions, judge, miss_factor, verdict
from headstack.choice.question_parser import parse_question
from headstack.choice.search import Tested
from headstack.choice.sensitivity import relaxations
from headstack.choice.simulations import Simulations, Trial
from headstack.choice.space import Candidate
from headstack.io.atomic_files import write_text

LEAST_OF_SPACE, MOST_OF_SPACE = 20, 60
WORKLOADS = ("file-server", "database", "web-server", "workstation", "oltp-8k", "random-read-4k", "random-write-4k")
DISKS = {
    "exos-x16-16tb": 330, "exos-x18-18tb": 360, "mg08-16tb": 310, "ultrastar-hc320-8tb": 200, "mg07-14tb": 290,
    "exos-7e8-8tb": 210, "ultrastar-hc560-20tb": 400, "exos-10e2400": 280, "st900mp0146": 260,
    "ultrastar-c15k600-600": 240,
}  # fmt: skip
FLASH = {"pm893-3840gb": 520, "d3-s4610-480gb": 160, "pm883-480gb": 140, "dc600m-960gb": 150, "5400-pro-1920gb": 280}
NVME = {"d7-p5520-7680gb": 900, "cd7-7680gb": 880, "pm9a3-7680gb": 850, "7450-pro-7680gb": 950, "dc-p4510-4tb": 600}
HOSTS = {
    "md-raid6-12x16tb": (1500, ("raid5", "raid6", "raid10"), DISKS | FLASH),
    "server-12-raid6-cache": (2300, ("raid5", "raid6", "raid10"), DISKS | FLASH),
    "md-raid10-8-nvme": (2000, ("raid10", "raid5", "raid6"), NVME),
    "zfs-raidz2-12": (1600, ("raidz1", "raidz2", "raidz3"), DISKS | FLASH),
}
"""Hosts with the prices around which those of a job are drawn, levels, and the drives that they accept."""
SEEDS = (101, 102, 103, 104)
STUDENT_3 = 3.182
"""The 97.5 % point of Student's t for three degrees of freedom (tables)."""
LENGTHS = (32_000, 128_000, 262_144)
"""Requests of each of the four runs; the first length is sufficient for most."""
PILOT = 8_000
HOPELESS = 2.5
"""Systems that miss a limit by this factor in a pilot are not simulated at length."""
HOLDS_LEAST = 400_000
SMOKE_REQUESTS = 2_000

Row = dict[str, Any]


def row(name: str, value: float, unit: str, bar: float | None = None, bar_is: str | None = None) -> Row:
    """Returns a row of target/validate.json."""
    met = None if bar is None else value >= bar if bar_is == "at least" else value <= bar
    return {"name": f"choose: {name}", "value": value, "unit": unit, "bar": bar, "bar_is": bar_is, "bar_met": met}


# Jobs


def _mix(random_: random.Random, folder: Path) -> str:
    """Returns a random workload with a size and a share of reads."""
    kib, reads = random_.choice((4, 8, 16, 64)), random_.choice((0, 25, 50, 67, 75, 90, 100))
    path = folder / f"mix-{kib}-{reads}.toml"
    told = f'size = "{kib}KiB"\nshare_percent = 100\nread_percent = {reads}\nrandom_percent = 100'
    write_text(path, f'name = "{path.stem}"\n[[lines]]\n{told}\n')
    return str(path)


def _space(random_: random.Random, folder: Path, small: bool) -> dict[str, Any]:
    """Returns random drives, hosts, levels and prices to choose among."""
    is_nvme = random_.random() < 0.2
    if is_nvme:
        hosts = ["md-raid10-8-nvme"]
    else:
        plain = [name for name in HOSTS if name != "md-raid10-8-nvme"]
        weights = (3, 1, 1)
        hosts = list(dict.fromkeys(random_.choices(plain, weights, k=1 if small else 3)))
        if not small and random_.random() < 0.5:
            hosts.append("md-raid10-8-nvme")
    takes = {name: usd for host in hosts for name, usd in HOSTS[host][2].items()}
    count = random_.randint(2, 4) if small else random_.randint(4, 8)
    drives = random_.sample(sorted(takes), min(count, len(takes)))
    levels = [random_.choice(HOSTS[host][1]) for host in hosts] if small else []
    if small and random_.random() < 0.5:
        levels.append(random_.choice(HOSTS[hosts[0]][1]))
    path = folder / "prices.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        written = csv.writer(file)
        written.writerow(("item", "price", "currency", "date", "confidence", "source"))
        usual = {name: takes[name] for name in drives} | {host: HOSTS[host][0] for host in hosts}
        for name, usd in usual.items():
            written.writerow((name, round(usd * math.exp(random_.gauss(0, 0.3)), 2), "USD", "2026-01", "D", "drawn"))
    most = random_.randint(10, 16) if small else 24
    return {
        "among": drives,
        "hosts": hosts,
        "levels": list(dict.fromkeys(levels)),
        "drives": (2, most),
        "prices": str(path),
        "shipped_prices": False,
        "on": "2026-02",
        "survive": random_.choice((0, 1, 1, 2)) if not small else random_.choice((0, 1)),
    }


def drawn(seed: int, number: int, folder: Path, small: bool, requests: int) -> Chooser:
    """Returns the job of a number: its limit is near the figure of one of its systems, selected at random."""
    random_ = random.Random(f"{seed} {number} {small}")
    own = folder / f"{number}"
    own.mkdir(exist_ok=True)
    while True:
        workload = random_.choice(WORKLOADS) if random_.random() < 0.6 else _mix(random_, own)
        options = _space(random_, own, small) | {"requests": requests}
        try:
            open_ = parse_question([workload], rates=[1], limits=["mean=1h"], **options)
            every = _members(candidates(open_.space, open_.job, open_.book))
        except InputError:
            continue
        pivot = random_.choice(every)
        share = random_.uniform(0.3, 1.0)
        capacity = round(pivot.usable_bytes * share / 1e11) * 10**11
        if not capacity:
            continue
        figure = random_.choice(("p99", "p99", "p95", "mean"))
        load, slack = random_.uniform(0.25, 0.8), random_.uniform(0.85, 1.3)
        sized = parse_question([workload], rates=[1], limits=["mean=1h"], capacity=capacity, **options)
        some = _members(candidates(sized.space, sized.job, sized.book))
        if small and not LEAST_OF_SPACE <= len(some) <= MOST_OF_SPACE:
            continue
        if pivot.name not in {one.name for one in some}:
            continue
        # Throughput of the system, and response time at a share of it.
        depth = 2 * pivot.drives
        full = parse_question([workload], depth=depth, limits=["mean=1h"], capacity=capacity, **options)
        (busy,) = Simulations(full.job).rows([Trial(pivot, 4000, seed=11)])
        if busy.impossible is not None:
            print(f"{number}: {pivot.name}: impossible: {busy.impossible}", flush=True)
            continue
        rate = float(f"{busy.figures['iops'] * load:.3g}")
        at = parse_question([workload], rates=[rate], limits=["mean=1h"], capacity=capacity, **options)
        (usual,) = Simulations(at.job).rows([Trial(pivot, PILOT, seed=12)])
        value = usual.figures["mean_ms" if figure == "mean" else f"{figure}_ms"]
        if value is None or usual.saturated:
            continue
        limit = f"{figure}={float(f'{value * slack:.3g}'):.10g}ms"
        return parse_question([workload], rates=[rate], limits=[limit], capacity=capacity, **options)


def _members(found: Candidates) -> list[Candidate]:
    """Returns all systems that satisfy the stated requirements, by cost."""
    every = [one for _, members in found.families for one in members]
    return sorted(every, key=lambda one: (cost_of(one, found.job), one.usd, one.name))


# Verdicts of long runs


@dataclass
class Long:
    """Long runs of a job's systems with seeds that the search never uses."""

    choosing: Chooser
    _runs: dict[float | None, Simulations] = field(default_factory=dict)

    def says(self, candidate: Candidate, job: Job) -> Decision:
        """Returns the verdict on all limits together."""
        return combine_decisions([judge(limit, self.estimate(candidate, limit, job)) for limit in job.limits])

    def estimate(self, candidate: Candidate, limit: Limit, job: Job) -> Estimate:
        """Returns Student's interval of four runs, lengthened as necessary."""
        runs = self.of(job)
        (pilot,) = runs.estimate(limit, [candidate], max(PILOT, limit.requests_min))
        if miss_factor(limit, pilot) > HOPELESS:
            return Estimate(pilot.value, pilot.value, pilot.value, PILOT, "pilot", piles_up=pilot.piles_up)
        found = pilot
        for requests in LENGTHS:
            rows = runs.rows([Trial(candidate, requests, seed=seed) for seed in SEEDS])
            values = [one.figures[limit.column] for one in rows]
            if any(one.saturated for one in rows) or None in values:
                return Estimate(None, None, None, requests, "piles up", piles_up=True)
            mean, half = _interval(values)
            if told := next((one.sampling for one in rows if one.sampling), ""):
                # A cache still fills: the results so far are not those in service, however similar the four runs are.
                found = Estimate(mean, None, None, requests * len(values), told)
                continue
            found = Estimate(mean, mean - half, mean + half, requests * len(values))
            if judge(limit, found) != "undecided":
                break
        return found

    def first(self, job: Job, below: tuple[float, float, str] | None) -> tuple[Candidate | None, list[Candidate]]:
        """Returns the cheapest system that meets the limits, among those that cost less than ``below``, and cheaper
        ones that are undecided even in long runs."""
        some = candidates(self.choosing.space, job, self.choosing.book)
        ties: list[Candidate] = []
        for one in _members(some):
            if below is not None and (cost_of(one, some.job), one.usd, one.name) >= below:
                break
            match self.says(one, job):
                case "meets":
                    return one, ties
                case "undecided":
                    ties.append(one)
        return None, ties

    def of(self, job: Job) -> Simulations:
        """Returns the runs under a load."""
        key = job.demand.rate_per_s
        own = self._runs.setdefault(key, Simulations(job))
        own.job = job
        return own


# Campaigns


def optimum_and_binding(seed: int, numbers: Sequence[int], folder: Path, requests: int, binding: bool) -> Iterator[Row]:
    """Yields rows for the first and the third bar, on the same jobs."""
    right, misses, ties, none = 0, 0, 0, 0
    bound_right, bound_open, bound_wrong, constraints = 0, 0, 0, Counter[str]()
    for number in numbers:
        began = time.monotonic()
        choosing = drawn(seed, number, folder, small=True, requests=requests)
        answer = choosing.answer()
        took = time.monotonic() - began
        long = Long(choosing)
        some = _members(candidates(choosing.space, choosing.job, choosing.book))
        by_name = {one.name: one for one in some}
        best = None if answer.best is None else by_name[answer.best.name]
        cost = None if best is None else (best.usd, best.usd, best.name)
        wins, open_ = long.first(choosing.job, cost)
        own = "" if best is None else long.says(best, choosing.job)
        if wins is not None:
            what = f"MISS: {wins.name} does ({_why(wins.name, answer)})"
            is_undecided = wins.name in {one.name for one in answer.undecided}
            # A system that the answer itself lists as undecided is a tie within the stated interval.
            what, is_right = (f"tie: {wins.name} stated as undecided", True) if is_undecided else (what, False)
            ties += is_undecided
        elif own == "does not":
            what, is_right = "MISS: the answer does not meet", False
        else:
            what, is_right = "no answer, and there is none" if best is None else "the optimum", True
            none += best is None
            if own == "undecided":
                what, ties = "tie: long runs cannot tell of the answer", ties + 1
        right, misses = right + is_right, misses + (not is_right)
        told = f"{number}: {len(some)} systems, {_job(choosing)}: {answer.best and answer.best.name}: {what}"
        print(f"{told} ({took:.1f} s, {time.monotonic() - began:.1f} s in all; {len(open_)} open)", flush=True)
        if binding and best is not None:
            judgements = dict(_binding(choosing, long, answer, wins or best))
            assert answer.best is not None
            judgements["bottleneck"] = _bottleneck(long, answer.best.bottleneck, best)
            for name, (judgement, why) in judgements.items():
                constraints[judgement] += 1
                print(f"    {name}: {judgement}: {why}", flush=True)
            all_ = [judgement for judgement, _ in judgements.values()]
            bound_wrong += "wrong" in all_
            bound_open += "wrong" not in all_ and "open" in all_
            bound_right += "wrong" not in all_
    yield row("the optimum, or a tie", right, f"of {len(numbers)} spaces", len(numbers), "at least")
    yield row("the optimum: ties among them", ties, "spaces")
    yield row("the optimum: nothing does, and so it said", none, "spaces")
    if binding:
        jobs = len(numbers) - none
        yield row("binding and bottleneck right", bound_right, f"of {jobs} jobs", math.ceil(0.9 * jobs), "at least")
        yield row("binding and bottleneck: right with a tie", bound_open, "jobs")
        for name, count in sorted(constraints.items()):
            yield row(f"binding and bottleneck: constraints {name}", count, "constraints")


def _job(choosing: Chooser) -> str:
    job = choosing.job
    held = ", ".join(limit.text for limit in job.limits)
    return f"{job.demand.name} {job.demand.rate_per_s:g}/s {held} {job.capacity_bytes / 1e12:g}TB survive {job.survive}"


def _why(name: str, answer: Answer) -> str:
    """Returns the search's reason against a system."""
    for one in answer.looked_at:
        if one.name == name:
            told = "; ".join(
                f"{each.says} {each.value and round(each.value, 3)} [{each.low and round(each.low, 3)}.."
                f"{each.high and round(each.high, 3)}] after {each.requests} {each.why}"
                for each in one.verdicts
            )
            return f"{one.says}: {told}"
    return "never simulated: bound, or fewer drives than one that failed"


def _binding(choosing: Chooser, long: Long, answer: Answer, best: Candidate) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields for each constraint whether the answer's statement is right: whether without it a system is cheaper than
    the cheapest in long runs."""
    cost = (best.usd, best.usd, best.name)
    jobs = {name: job for name, _, job in relaxations(choosing)}
    for relaxed in answer.relaxed:
        wins, ties = long.first(jobs[relaxed.constraint], cost)
        is_binding = wins is not None
        told = f"said {'binding' if relaxed.is_binding else 'not'}; long runs: {wins.name if wins else 'nothing'}"
        if relaxed.is_binding == is_binding:
            yield relaxed.constraint, ("right", told)
        elif ties:
            yield relaxed.constraint, ("open", f"{told}, {len(ties)} open")
        else:
            yield relaxed.constraint, ("wrong", told)


def _bottleneck(long: Long, named: str, best: Candidate) -> tuple[str, str]:
    """Returns whether the named component is the one whose speedup shortens the response most, in long runs with other
    seeds, by Student's interval of the differences."""
    job, eased = long.choosing.job, with_eased_controller(best)
    assert eased is not None
    runs, limit = long.of(job), job.limits[0]

    def figures(candidate: Candidate, factor: float = 1.0) -> list[float]:
        return [
            one.figures[limit.column] or math.inf
            for one in runs.rows([Trial(candidate, LENGTHS[0], factor, seed=seed) for seed in SEEDS])
        ]

    now, by_controller, by_all = figures(best), figures(eased), figures(best, RELIEF)
    of_controller = [a - b for a, b in zip(now, by_controller, strict=True)]
    of_rest = [a - RELIEF * c - b for a, b, c in zip(now, of_controller, by_all, strict=True)]
    apart = [a - b for a, b in zip(of_rest, of_controller, strict=True)]
    mean, half = _interval(apart)
    told = (
        f"{named}; a tenth saves {sum(of_controller) / 4:.3g} ms in the controller, {sum(of_rest) / 4:.3g} in the rest"
    )
    if named == CONTROLLER:
        mean = -mean
    return ("right" if mean > half else "wrong" if mean < -half else "open"), told


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the mean of four runs, and the half-width of Student's 95 % interval."""
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return mean, STUDENT_3 * deviation / math.sqrt(len(values))


def statements(
    seed: int, numbers: Sequence[int], folder: Path, requests: int, holds_least: int = HOLDS_LEAST
) -> Iterator[Row]:
    """Yields rows for the second bar."""
    held, met, open_, none, far = 0, 0, 0, 0, []
    for number in numbers:
        began = time.monotonic()
        choosing = drawn(seed, number, folder, small=False, requests=requests)
        found, some = choosing.search(choosing.job, choosing.book)
        first = found.best
        took = time.monotonic() - began
        cheaper = [one for one in found.undecided if first is None or one.candidate.usd < first.candidate.usd]
        open_ += bool(cheaper)
        told = f"{number}: {some.total} systems, {_job(choosing)}"
        if first is None:
            none += 1
            whys = _open(cheaper, choosing.job.limits)
            print(f"{told}: nothing meets; {len(cheaper)} undecided, by {whys} ({took:.1f} s)", flush=True)
            continue
        met += 1
        longer = max(10 * first.requests, holds_least)
        (now,) = Simulations(choosing.job).rows([Trial(first.candidate, longer, seed=seed + 1000)])
        limits = choosing.job.limits
        values = [now.figures[limit.column] for limit in limits]
        misses = max(
            math.inf if value is None or now.saturated else value / limit.value
            for limit, value in zip(limits, values, strict=True)
        )
        held += misses <= 1
        far += [misses] if misses > 1 else []
        says = "holds" if misses <= 1 else "DOES NOT HOLD"
        stated = "; ".join(f"{_figure(one.value)} [{_figure(one.low)}..{_figure(one.high)}]" for one in first.estimates)
        print(
            f"{told}: {first.candidate.name}: {stated} after {first.requests}; {values[0]} after {longer}: {says}"
            f"; cheaper and open: {len(cheaper)}, by {_open(cheaper, choosing.job.limits)} ({took:.1f} s)",
            flush=True,
        )
    share = 100 * held / met if met else 0
    yield row("a limit stated as met holds in a long run", share, f"% of {met} answers", 88, "at least")
    yield row("undecided", 100 * open_ / len(numbers), f"% of {len(numbers)} jobs", 15, "at most")
    yield row("nothing meets", none, "jobs")
    yield row("missed by at most, where it does not hold", 100 * (max(far, default=1) - 1), "%")


def _figure(value: float | None) -> str:
    """Formats a value with four digits, or states that it is unknown, as are intervals while erased flash is used
    up."""
    return "unknown" if value is None else f"{value:.4g}"


def _open(tests: Sequence[Tested], limits: Sequence[Limit]) -> str:
    """Returns the reasons why these are undecided."""
    whys: Counter[str] = Counter()
    for one in tests:
        for limit, known, model in zip(limits, one.estimates, one.models or [None] * len(limits), strict=True):
            whys[verdict(limit, known, model).why] += 1
    return ", ".join(f"{why} {count}" for why, count in whys.most_common() if why) or "none"


def speed(count: int, seed: int, folder: Path) -> Iterator[Row]:
    """Yields rows for the fourth bar: the time for a space of ``count`` systems and a workload of a minute, including
    the complete answer.
    """
    units, question = ["64KiB", "128KiB", "256KiB", "512KiB", "1MiB", "32KiB", "16KiB", "2MiB", "4MiB", "8MiB"], None
    for more in range(len(units) + 1):
        question = parse_question(
            ["file-server"],
            rates=[2000],
            limits=["p99=40ms"],
            capacity="40TB",
            survive=1,
            estimate_prices=True,
            on="2026-01",
            chunk_sizes=units[:more],
            requests=120_000,
        )
        total = candidates(question.space, question.job, question.book, True).total
        if total >= count:
            break
    assert question is not None
    began, cpu_s = time.monotonic(), time.process_time()
    answer = question.answer()
    took, cpu_s = time.monotonic() - began, time.process_time() - cpu_s
    print(f"{cpu_s:.0f} s of processor time")
    print(
        f"{total} systems: {answer.best and answer.best.name}, {answer.simulated} simulated, {answer.requests} requests"
    )
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    bar = 60 if count <= 10_000 else 480
    yield row(f"{total} systems, a minute of requests, {os.cpu_count()} cores: time", took, "s", bar, "at most")
    yield row(f"{total} systems, a minute of requests: memory", peak_gib, "GiB", 1, "at most")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("optimum", "binding", "statements", "speed"), action="append")
    parser.add_argument("--jobs", type=int, help="so many of each (default: 50, and 100 statements)")
    parser.add_argument("--first", type=int, default=1, help="the number of the first job")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=128_000, help="of one system at most, as `choose` has it")
    parser.add_argument("--candidates", type=int, default=10_000, help="of the speed's space")
    parser.add_argument("--smoke", action="store_true", help="one statement with short runs")
    given = parser.parse_args()
    if given.smoke:
        given.only, given.jobs, given.requests = ["statements"], 1, SMOKE_REQUESTS
    only = given.only or ["binding", "statements"]
    with tempfile.TemporaryDirectory(prefix="headstack-choosing-") as temporary:
        folder = Path(temporary)

        def numbers(usual: int) -> range:
            return range(given.first, given.first + (given.jobs or usual))

        found: list[Row] = []
        if "optimum" in only or "binding" in only:
            found += optimum_and_binding(given.seed, numbers(50), folder, given.requests, "binding" in only)
        if "statements" in only:
            least = SMOKE_REQUESTS if given.smoke else HOLDS_LEAST
            found += statements(given.seed, numbers(100), folder, given.requests, least)
        if "speed" in only:
            found += speed(given.candidates, given.seed, folder)
    for one in found:
        print(f"row: {json.dumps(one)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
