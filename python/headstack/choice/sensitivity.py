"""Sensitivity of an answer: the headroom of a system, the cost of constraints, and the effect of other prices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from headstack._native import InputError, format_bytes
from headstack.catalogue.prices import PriceBook
from headstack.choice.answer import Choice, Relaxed, Sensitivity
from headstack.choice.candidates import Candidates, cost_of
from headstack.choice.job import Job
from headstack.choice.limits import miss_factor
from headstack.choice.question import Question
from headstack.choice.search import Key, SearchResult, Tested
from headstack.choice.simulations import Trial

RELAXATION = 0.1
"""Relative amount by which a constraint is relaxed to determine its cost."""
HEADROOM_REQUESTS = 8000
"""Requests of each run in the search for the maximum load of a system."""
FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Factors of the job's load that are tried first. They begin with small steps: a heavily overloaded system takes long
to simulate, since its queues grow without bound."""
BISECTIONS = 3
"""Number of subsequent bisections, by ratios: to 2 % of the load between the first factors."""
FRONTIER_STEPS = 8
"""Maximum number of points of a frontier after the first."""
FRONTIER_STEP = 0.2
"""Relative reduction of the response time from one point of the frontier to the next."""


def find_max_loads(question: Question, tested: Sequence[Tested]) -> dict[str, tuple[float, str]]:
    """Returns for each system the maximum load factor at which all limits are met, and the limit exceeded above it."""
    demand = question.job.demand
    if demand.rate_per_s is None and demand.depth is None:
        return {}
    systems = [system.candidate for system in tested]
    low, high = dict.fromkeys(range(len(systems)), 1.0), dict.fromkeys(range(len(systems)), math.inf)
    why: dict[int, str] = {}
    requests = min(
        question.job.requests_max, max(HEADROOM_REQUESTS, *(limit.requests_min for limit in question.job.limits))
    )

    def run_at(factors: dict[int, float]) -> None:
        runs = question.runs(question.job)
        by_factor: dict[float, list[int]] = {}
        # Run all systems together; the results are used below.
        runs.rows([Trial(systems[number], requests, factor) for number, factor in factors.items()])
        for number, factor in factors.items():
            by_factor.setdefault(factor, []).append(number)
        for factor, numbers in sorted(by_factor.items()):
            candidates = [systems[number] for number in numbers]
            estimates = [runs.estimate(limit, candidates, requests, factor) for limit in question.job.limits]
            rows = runs.rows([Trial(candidate, requests, factor) for candidate in candidates])
            for place, number in enumerate(numbers):
                misses = [
                    miss_factor(limit, by_limit[place])
                    for limit, by_limit in zip(question.job.limits, estimates, strict=True)
                ]
                worst = max(range(len(misses)), key=misses.__getitem__)
                if misses[worst] <= 1:
                    low[number] = factor
                else:
                    high[number] = factor
                    row = rows[place]
                    is_named_drive = row.bottleneck and systems[number].family.model is not None
                    busy = (
                        f" ({row.bottleneck} {row.figures['utilization_percent']:.0f} % busy)" if is_named_drive else ""
                    )
                    why[number] = f"{question.job.limits[worst].text}{busy}"

    for factor in FACTORS:
        if left := {number: factor for number in low if math.isinf(high[number])}:
            run_at(left)
    for _ in range(BISECTIONS):
        if left := {n: math.sqrt(low[n] * high[n]) for n in low if math.isfinite(high[n])}:
            run_at(left)
    return {system.name: (low[number], why.get(number, "")) for number, system in enumerate(systems)}


def relax_constraints(question: Question, reference: Tested) -> list[Relaxed]:
    """Returns for each constraint the winner if it is 10 % looser, and the savings."""
    relaxed = []
    for constraint, to, job in relaxations(question):
        winner = find_best_by_value(question, job, question.book, below=question.key(reference))
        saves = 0.0 if winner is None else cost_of(reference.candidate, question.job) - cost_of(winner.candidate, job)
        if winner is None or saves <= 0:
            relaxed.append(Relaxed(constraint, to, reference.candidate.name, 0.0, False))
        else:
            relaxed.append(Relaxed(constraint, to, winner.candidate.name, saves, True))
    return relaxed


def vary_prices(question: Question, reference: Tested, space_candidates: Candidates) -> list[Sensitivity]:
    """Returns the winner at other prices, and under 20 % more load."""
    model = reference.candidate.family.model
    changes: list[tuple[str, Job, PriceBook]] = []
    if question.job.objectives[0] == "usd":
        if model is not None and question.book.price(model.name) is not None:
            changes.append((f"{model.name} 10 % more expensive", question.job, question.book.changed(model.name, 1.1)))
        classes = {
            name for family, _ in space_candidates.families if family.model is not None for name in family.model.classes
        }
        if {"disk", "flash"} <= classes:
            changes.append(("flash at half its price", question.job, question.book.changed("flash", 0.5)))
            changes.append(("flash at twice its price", question.job, question.book.changed("flash", 2.0)))
    demand = question.job.demand
    if demand.rate_per_s is not None or demand.depth is not None:
        changes.append(("20 % more load", replace(question.job, demand=demand.scaled(1.2)), question.book))
    sensitivities = []
    for change, job, book in changes:
        result = find_best_by_value(
            question, job, book, above=question.key(reference) if job is not question.job else None
        )
        if result is not None:
            winner = result.candidate
            sensitivities.append(Sensitivity(change, winner.name, winner.usd, winner.name != reference.candidate.name))
    return sensitivities


def find_upgrade(question: Question, reference: Tested, best: Choice) -> Choice | None:
    """Returns the cheapest system that carries 10 % more than the best."""
    demand = question.job.demand
    if best.rate_at_limit is None or demand.rate_per_s is None:
        return None
    factor = max(1.0, best.rate_at_limit / demand.rate_per_s) * (1 + RELAXATION)
    job = replace(question.job, demand=demand.scaled(factor))
    result, space_candidates = question.search(
        job, question.book, kinds=1, above=question.key(reference), by_value=True
    )
    if result.best is None:
        return None
    return replace(question.to_choice(result.best, space_candidates), rate_per_s=job.demand.rate_per_s)


def find_frontier(question: Question, result: SearchResult, space_candidates: Candidates) -> tuple[Choice, ...]:
    """Returns the systems that no other beats in all objectives: those with the lowest first objective for decreasing
    values of the second.
    """
    objectives = question.job.objectives
    if len(objectives) < 2 or result.best is None:
        return ()
    points: list[Choice] = []
    tested: Tested | None = result.best
    job = question.job
    while tested is not None and len(points) <= FRONTIER_STEPS:
        points.append(question.to_choice(tested, space_candidates))
        match objectives[1]:
            case "watts":
                job = replace(job, watts=math.nextafter(tested.candidate.watts, 0))
            case "bays":
                job = replace(job, bays=tested.candidate.bays - 1)
            case "usd":
                job = replace(job, usd=math.nextafter(tested.candidate.usd, 0))
            case _:
                place = job.latency_place
                value = tested.estimates[place].value
                if value is None:
                    break
                least = min(job.limits[place].value, value)
                limit = replace(job.limits[place], value=least)
                limits = (*job.limits[:place], limit.relaxed(-FRONTIER_STEP), *job.limits[place + 1 :])
                job = replace(job, limits=limits)
        if job.bays is not None and job.bays < 1:
            break
        try:
            result, space_candidates = question.search(job, question.book, kinds=1)
        except InputError:
            break
        tested = result.best
    return tuple(points)


def find_best_by_value(
    question: Question, job: Job, book: PriceBook, below: Key | None = None, above: Key | None = None
) -> Tested | None:
    """Returns the cheapest system by the figures of single runs, without intervals, for secondary questions."""
    result, _ = question.search(job, book, below, kinds=1, above=above, by_value=True)
    return result.best


def relaxations(question: Question) -> list[tuple[str, str, Job]]:
    """Returns each constraint, its relaxed value, and the job with it."""
    job = question.job
    variants: list[tuple[str, str, Job]] = []
    for place, limit in enumerate(job.limits):
        looser = limit.relaxed(RELAXATION)
        limits = (*job.limits[:place], looser, *job.limits[place + 1 :])
        to = looser.text.partition("=")[2]
        variants.append((limit.text, to.replace("ms", " ms"), replace(job, limits=limits)))
    demand = job.demand
    if demand.rate_per_s is not None or demand.depth is not None:
        less = demand.scaled(1 - RELAXATION)
        to = f"{less.rate_per_s:,.4g}/s" if less.rate_per_s is not None else f"depth {less.depth}"
        now = f"{demand.rate_per_s:,.4g}/s" if demand.rate_per_s is not None else f"depth {demand.depth}"
        variants.append((f"load={now}", to, replace(job, demand=less)))
    if job.capacity_bytes:
        less_bytes = round(job.capacity_bytes * (1 - RELAXATION))
        variants.append(
            (
                f"capacity={format_bytes(job.capacity_bytes)}",
                format_bytes(less_bytes),
                replace(job, capacity_bytes=less_bytes),
            )
        )
    if job.survive:
        variants.append((f"survive={job.survive}", str(job.survive - 1), replace(job, survive=job.survive - 1)))
    if job.loss_a_year is not None:
        more_often = replace(job, loss_a_year=min(job.loss_a_year * (1 + RELAXATION), 0.999999))
        variants.append((f"loss={job.loss_a_year:g}", f"{more_often.loss_a_year:g}", more_often))
    if job.spares:
        variants.append((f"spares={job.spares}", str(job.spares - 1), replace(job, spares=job.spares - 1)))
    if job.bays is not None:
        more = max(job.bays + 1, math.floor(job.bays * (1 + RELAXATION)))
        variants.append((f"bays={job.bays}", str(more), replace(job, bays=more)))
    if job.watts is not None:
        variants.append(
            (
                f"watts={job.watts:g}",
                f"{job.watts * (1 + RELAXATION):g} W",
                replace(job, watts=job.watts * (1 + RELAXATION)),
            )
        )
    if job.usd is not None and job.objectives[0] != "usd":
        variants.append(
            (f"usd={job.usd:,.0f}", f"${job.usd * (1 + RELAXATION):,.0f}", replace(job, usd=job.usd * (1 + RELAXATION)))
        )
    return variants


def jobs_without_constraint(question: Question) -> list[tuple[str, str, Job]]:
    """Returns the job without one of the requirements on systems."""
    job = question.job
    variants: list[tuple[str, str, Job]] = []
    if job.capacity_bytes:
        variants.append((f"capacity={format_bytes(job.capacity_bytes)}", "", replace(job, capacity_bytes=0)))
    if job.survive:
        variants.append((f"survive={job.survive}", "", replace(job, survive=0)))
    if job.bays is not None:
        variants.append((f"bays={job.bays}", "", replace(job, bays=None)))
    if job.watts is not None:
        variants.append((f"watts={job.watts:g}", "", replace(job, watts=None)))
    if job.usd is not None:
        variants.append((f"usd={job.usd:,.0f}", "", replace(job, usd=None)))
    return variants
