"""From a question to its answer: the search, and what would change what it comes to."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headstack._native import InputError, format_bytes
from headstack.array import Array
from headstack.choosing.answer import Answer, Choice, Durability, Reason, Relaxed, Sensitivity
from headstack.choosing.bounds import Bounds
from headstack.choosing.candidates import Candidates, candidates, cost_of, in_words
from headstack.choosing.durability import durability_of
from headstack.choosing.job import OBJECTIVES, Job
from headstack.choosing.limits import off, verdict
from headstack.choosing.rebuilding import rebuild_h
from headstack.choosing.search import KINDS, REACH, Found, Key, Search, Tested
from headstack.choosing.simulated import Ask, Simulated
from headstack.choosing.space import Candidate, Space, array_of, toml_of
from headstack.prices import PriceBook
from headstack.shards import Shard

LOOSER = 0.1
"""By so much a constraint is relaxed to see what it costs."""
HEADROOM_REQUESTS = 8000
"""Of each run that looks for the most load that a system takes."""
FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Loads that are tried first, as factors of the job's. Small steps first: a system far beyond what it can carry takes
long to simulate, since its queues have no end."""
BISECTIONS = 3
"""Then halved so often, by ratios: to a fiftieth of the load, where it lies between the first factors."""
FRONTIER_STEPS = 8
"""Points of a frontier beside the first, at most."""
FRONTIER_STEP = 0.2
"""So much less of the response time from one point of the frontier to the next."""


@dataclass
class Choosing:
    """A question under way."""

    job: Job
    space: Space
    book: PriceBook
    estimate: bool = False
    store: str | os.PathLike[str] | None = None
    executor: str = "local"
    told: Callable[[str, int], object] | None = None
    """Hears what is done, and how many runs are finished."""
    _simulated: dict[tuple[float | None, int | None], Simulated] = field(default_factory=dict)
    _stage: str = "looking for the cheapest"

    def answer(self) -> Answer:
        """Carries out the search, and looks at what would change its answer."""
        found, some = self._found(self.job, self.book)
        first = found.best
        if first is None:
            return self._without(found, some)
        kinds: dict[tuple[str, str, str], Tested] = {}
        for one in found.meets:
            kinds.setdefault(one.candidate.family.kind, one)
        shown = list(kinds.values())[:KINDS]
        key = self._key(first)
        cheaper = [one for one in found.undecided if self._key(one) < key]
        self._stage = "how much more load they take"
        loads = self._loads(shown)
        choices = {
            one.candidate.name: self._choice(one, some, loads.get(one.candidate.name), detailed=True) for one in shown
        }
        best = choices[first.candidate.name]
        relaxed, sensitivity, upgrade = [], [], None
        plain = None if self.job.objectives[0] == "latency" else self._plainly(self.job, self.book)
        if plain is not None:
            self._stage = "what each constraint costs"
            relaxed = self._relaxed(plain)
            self._stage = "what other prices change"
            sensitivity = self._sensitivity(plain, some)
            self._stage = "the next upgrade"
            upgrade = self._upgrade(plain, best)
        self._stage = "the frontier"
        frontier = self._frontier(found, some)
        looked = [
            choices.get(one.candidate.name) or self._choice(one, some)
            for one in sorted((*found.meets, *found.undecided, *found.fails), key=self._key)
        ]
        alike = self._alike(first, found)
        return Answer(
            question=(*self.job.in_words(), in_words(self.space, some)),
            objective=self.job.objectives[0],
            unit=OBJECTIVES[self.job.objectives[0]],
            best=best,
            runners_up=tuple(choices[one.candidate.name] for one in shown if one is not first),
            undecided=tuple(self._choice(one, some) for one in cheaper),
            upgrade=upgrade,
            frontier=frontier,
            looked_at=tuple(looked),
            nearest=None,
            relaxed=tuple(relaxed),
            sensitivity=tuple(sensitivity),
            alike=tuple(one.candidate.name for one in alike),
            tell_apart=_tell_apart(alike),
            candidates=some.total,
            left_out=_left_out(found, some),
            simulated=len(looked),
            requests=sum(one.requests for one in self._simulated.values()),
            warnings=self._warnings(some, [first.candidate, *(one.candidate for one in shown)]),
            objectives=tuple((name, OBJECTIVES[name]) for name in self.job.objectives)
            if len(self.job.objectives) > 1
            else (),
        )

    def race(self, shard: Shard) -> int:
        """Carries out a part of the first short runs alone, which the store keeps; how many there were."""
        some = candidates(self.space, self.job, self.book, self.estimate)
        search = Search(some, self._runs(self.job), self._bounds_of(self.job, some))
        search.raced(shard)
        return self._runs(self.job).runs

    def _bounds_of(self, job: Job, some: Candidates) -> Bounds:
        bounds = Bounds(job, self.store, self.executor)
        bounds.test(list({one.model.name: one.model for one, _ in some.families if one.model is not None}.values()))
        return bounds

    def _runs(self, job: Job) -> Simulated:
        """The runs of a job, shared by all that put systems under the same."""
        demand = job.demand
        key = (demand.rate_per_s, demand.depth)
        if key not in self._simulated:
            self._simulated[key] = Simulated(job, self.store, self.executor, self._heard)
        shared = self._simulated[key]
        shared.job = job
        return shared

    def _heard(self, _: int) -> None:
        if self.told is not None:
            self.told(self._stage, sum(one.runs for one in self._simulated.values()))

    def _found(
        self,
        job: Job,
        book: PriceBook,
        below: Key | None = None,
        kinds: int = KINDS,
        reach: float = REACH,
        above: Key | None = None,
        by_value: bool = False,
    ) -> tuple[Found, Candidates]:
        """What a search comes to for a job like the one that was asked, at such prices. Under more load than that, what
        is cheaper than its answer fails all the more: ``above`` is the answer's cost then."""
        asked = job if below is None or job.objectives[0] != "usd" else replace(job, usd=below[0])
        some = candidates(self.space, asked, book, self.estimate)
        search = Search(some, self._runs(job), self._bounds_of(job, some), above, by_value)
        if job.objectives[0] == "latency":
            limit = next(limit for limit in job.limits if limit.is_most)
            return search.least(limit), some
        return search.carried_out(kinds, reach, below), some

    def _key(self, one: Tested) -> Key:
        candidate = one.candidate
        return cost_of(candidate, self.job), candidate.usd, candidate.name

    def _figure(self, one: Tested) -> float:
        """What is to be least, of a candidate that was simulated."""
        if self.job.objectives[0] == "latency":
            place = next(place for place, limit in enumerate(self.job.limits) if limit.is_most)
            return one.known[place].value or math.inf
        return cost_of(one.candidate, self.job)

    def _choice(
        self, one: Tested, some: Candidates, load: tuple[float, str] | None = None, detailed: bool = False
    ) -> Choice:
        """A candidate as the answer tells of it; details take further runs."""
        candidate, family, job = one.candidate, one.candidate.family, self.job
        row: dict[str, Any] = {}
        if detailed:
            (row,) = self._runs(job).rows([Ask(candidate, one.requests)])
        verdicts = tuple(
            verdict(limit, known, model)
            for limit, known, model in zip(job.limits, one.known, one.models or [None] * len(job.limits), strict=True)
        )
        host = family.host
        return Choice(
            name=candidate.name,
            host="" if host is None else host.name,
            drive=family.model.name if family.model is not None else family.name,
            drives=candidate.drives,
            spares=0 if host is None else job.spares,
            level=candidate.level,
            stripe_unit_bytes=None,
            settings=family.settings,
            cost=self._figure(one),
            usd=candidate.usd,
            parts=some.parts(candidate) if detailed else (),
            usable_bytes=candidate.usable_bytes,
            bays=candidate.bays,
            watts=candidate.watts,
            survives=candidate.survives,
            verdicts=verdicts,
            says=one.says,
            bottleneck=row.get("bottleneck") or "",
            busy_percent=row.get("utilisation_percent"),
            rate_per_s=job.demand.rate_per_s or row.get("iops"),
            rate_at_limit=None if load is None or job.demand.rate_per_s is None else load[0] * job.demand.rate_per_s,
            breaks_first="" if load is None else load[1],
            durability=self._durability(one) if detailed else None,
            model_error=one.model_error,
            toml=toml_of(candidate) if detailed else "",
            costs=tuple(self._cost_by(name, one) for name in job.objectives) if len(job.objectives) > 1 else (),
        )

    def _cost_by(self, objective: str, one: Tested) -> float:
        match objective:
            case "watts":
                return one.candidate.watts
            case "bays":
                return float(one.candidate.bays)
            case "latency":
                place = next(place for place, limit in enumerate(self.job.limits) if limit.is_most)
                return one.known[place].value or math.inf
            case _:
                return one.candidate.usd

    def _loads(self, tested: Sequence[Tested]) -> dict[str, tuple[float, str]]:
        """The most load at which all limits hold, as a factor, and what gives way beyond it; all at a time."""
        demand = self.job.demand
        if demand.rate_per_s is None and demand.depth is None:
            return {}
        some = [one.candidate for one in tested]
        low, high = dict.fromkeys(range(len(some)), 1.0), dict.fromkeys(range(len(some)), math.inf)
        why: dict[int, str] = {}
        requests = min(self.job.requests_max, max(HEADROOM_REQUESTS, *(one.requests_min for one in self.job.limits)))

        def at(factors: dict[int, float]) -> None:
            runs = self._runs(self.job)
            by_factor: dict[float, list[int]] = {}
            for number, factor in factors.items():
                by_factor.setdefault(factor, []).append(number)
            for factor, numbers in sorted(by_factor.items()):
                asked = [some[number] for number in numbers]
                known = [runs.known(limit, asked, requests, factor) for limit in self.job.limits]
                rows = runs.rows([Ask(one, requests, factor) for one in asked])
                for place, number in enumerate(numbers):
                    misses = [off(limit, own[place]) for limit, own in zip(self.job.limits, known, strict=True)]
                    worst = max(range(len(misses)), key=misses.__getitem__)
                    if misses[worst] <= 1:
                        low[number] = factor
                    else:
                        high[number] = factor
                        row = rows[place]
                        busy = (
                            f" ({row['bottleneck']} {row['utilisation_percent']:.0f} % busy)"
                            if row["bottleneck"]
                            else ""
                        )
                        why[number] = f"{self.job.limits[worst].text}{busy}"

        for factor in FACTORS:
            if left := {number: factor for number in low if math.isinf(high[number])}:
                at(left)
        for _ in range(BISECTIONS):
            if left := {n: math.sqrt(low[n] * high[n]) for n in low if math.isfinite(high[n])}:
                at(left)
        return {one.name: (low[number], why.get(number, "")) for number, one in enumerate(some)}

    def _relaxations(self) -> list[tuple[str, str, Job]]:
        """Each constraint, what it is relaxed to, and the job with that."""
        job = self.job
        found: list[tuple[str, str, Job]] = []
        for place, limit in enumerate(job.limits):
            looser = limit.relaxed(LOOSER)
            limits = (*job.limits[:place], looser, *job.limits[place + 1 :])
            to = looser.text.partition("=")[2]
            found.append((limit.text, to.replace("ms", " ms"), replace(job, limits=limits)))
        demand = job.demand
        if demand.rate_per_s is not None or demand.depth is not None:
            less = demand.scaled(1 - LOOSER)
            to = f"{less.rate_per_s:,.4g}/s" if less.rate_per_s is not None else f"depth {less.depth}"
            now = f"{demand.rate_per_s:,.4g}/s" if demand.rate_per_s is not None else f"depth {demand.depth}"
            found.append((f"load={now}", to, replace(job, demand=less)))
        if job.capacity_bytes:
            less_bytes = round(job.capacity_bytes * (1 - LOOSER))
            found.append(
                (
                    f"capacity={format_bytes(job.capacity_bytes)}",
                    format_bytes(less_bytes),
                    replace(job, capacity_bytes=less_bytes),
                )
            )
        if job.survive:
            found.append((f"survive={job.survive}", str(job.survive - 1), replace(job, survive=job.survive - 1)))
        if job.spares:
            found.append((f"spares={job.spares}", str(job.spares - 1), replace(job, spares=job.spares - 1)))
        if job.bays is not None:
            more = max(job.bays + 1, math.floor(job.bays * (1 + LOOSER)))
            found.append((f"bays={job.bays}", str(more), replace(job, bays=more)))
        if job.watts is not None:
            found.append(
                (
                    f"watts={job.watts:g}",
                    f"{job.watts * (1 + LOOSER):g} W",
                    replace(job, watts=job.watts * (1 + LOOSER)),
                )
            )
        if job.usd is not None and job.objectives[0] != "usd":
            found.append(
                (f"usd={job.usd:,.0f}", f"${job.usd * (1 + LOOSER):,.0f}", replace(job, usd=job.usd * (1 + LOOSER)))
            )
        return found

    def _plainly(self, job: Job, book: PriceBook, below: Key | None = None, above: Key | None = None) -> Tested | None:
        """The answer to a question beside the first, by figures of single runs without their intervals."""
        found, _ = self._found(job, book, below, kinds=1, reach=1.0, above=above, by_value=True)
        return found.best

    def _relaxed(self, plain: Tested) -> list[Relaxed]:
        """What wins where a constraint is a tenth looser, and what that saves."""
        told = []
        for constraint, to, job in self._relaxations():
            wins = self._plainly(job, self.book, below=self._key(plain))
            if wins is None:
                told.append(Relaxed(constraint, to, plain.candidate.name, 0.0, False))
            else:
                saves = cost_of(plain.candidate, self.job) - cost_of(wins.candidate, job)
                told.append(Relaxed(constraint, to, wins.candidate.name, saves, True))
        return told

    def _sensitivity(self, plain: Tested, some: Candidates) -> list[Sensitivity]:
        """Who wins at other prices, and under a fifth more load."""
        model = plain.candidate.family.model
        changes: list[tuple[str, Job, PriceBook]] = []
        if self.job.objectives[0] == "usd":
            if model is not None and self.book.price(model.name) is not None:
                changes.append((f"{model.name} 10 % dearer", self.job, self.book.changed(model.name, 1.1)))
            classes = {name for family, _ in some.families if family.model is not None for name in family.model.classes}
            if {"disk", "flash"} <= classes:
                changes.append(("flash at half its price", self.job, self.book.changed("flash", 0.5)))
                changes.append(("flash at twice its price", self.job, self.book.changed("flash", 2.0)))
        demand = self.job.demand
        if demand.rate_per_s is not None or demand.depth is not None:
            changes.append(("a fifth more load", replace(self.job, demand=demand.scaled(1.2)), self.book))
        told = []
        for change, job, book in changes:
            found = self._plainly(job, book, above=self._key(plain) if job is not self.job else None)
            if found is not None:
                wins = found.candidate
                told.append(Sensitivity(change, wins.name, wins.usd, wins.name != plain.candidate.name))
        return told

    def _upgrade(self, plain: Tested, best: Choice) -> Choice | None:
        """The cheapest that carries a tenth more than the best can."""
        demand = self.job.demand
        if best.rate_at_limit is None or demand.rate_per_s is None:
            return None
        factor = max(1.0, best.rate_at_limit / demand.rate_per_s) * (1 + LOOSER)
        job = replace(self.job, demand=demand.scaled(factor))
        found, some = self._found(job, self.book, kinds=1, reach=1.0, above=self._key(plain), by_value=True)
        if found.best is None:
            return None
        return replace(self._choice(found.best, some), rate_per_s=job.demand.rate_per_s)

    def _frontier(self, found: Found, some: Candidates) -> tuple[Choice, ...]:
        """Those that nothing beats in all objectives: the least of the first under ever less of the second."""
        objectives = self.job.objectives
        if len(objectives) < 2 or found.best is None:
            return ()
        points: list[Choice] = []
        one: Tested | None = found.best
        job = self.job
        while one is not None and len(points) <= FRONTIER_STEPS:
            points.append(self._choice(one, some))
            match objectives[1]:
                case "watts":
                    job = replace(job, watts=math.nextafter(one.candidate.watts, 0))
                case "bays":
                    job = replace(job, bays=one.candidate.bays - 1)
                case "usd":
                    job = replace(job, usd=math.nextafter(one.candidate.usd, 0))
                case _:
                    place = next(place for place, limit in enumerate(job.limits) if limit.is_most)
                    value = one.known[place].value
                    if value is None:
                        break
                    least = min(job.limits[place].value, value)
                    limit = replace(job.limits[place], value=least)
                    limits = (*job.limits[:place], limit.relaxed(-FRONTIER_STEP), *job.limits[place + 1 :])
                    job = replace(job, limits=limits)
            if job.bays is not None and job.bays < 1:
                break
            try:
                found, some = self._found(job, self.book, kinds=1, reach=1.0)
            except InputError:
                break
            one = found.best
        return tuple(points)

    def _alike(self, first: Tested, found: Found) -> list[Tested]:
        """Those that cannot be told apart from the best: cheaper ones of which it is not known whether they do, or
        where the response time is to be least, those whose intervals overlap."""
        if self.job.objectives[0] != "latency":
            key = self._key(first)
            return [one for one in found.undecided if self._key(one) < key]
        place = next(place for place, limit in enumerate(self.job.limits) if limit.is_most)
        high = first.known[place].high
        return [
            one
            for one in found.meets[1:]
            if high is not None and (low := one.known[place].low) is not None and low <= high
        ]

    def _durability(self, one: Tested) -> Durability | None:
        """What is expected to be lost, by the rates of failure that are put in."""
        candidate, family = one.candidate, one.candidate.family
        if family.model is None or candidate.survives == 0:
            return None
        system = array_of(candidate)
        assert isinstance(system, Array)
        hours, source = rebuild_h(system)
        rebuild = (hours, f"{source}; under load it takes longer")
        overrides = dict(self.space.afr)
        return durability_of(candidate.level, candidate.drives, candidate.spans, family.model.drive, rebuild, overrides)

    def _without(self, found: Found, some: Candidates) -> Answer:
        """The answer where nothing meets every limit: what comes nearest, and what binds."""
        looked = sorted((*found.undecided, *found.fails), key=self._key)
        nearest = min(looked, key=lambda one: (self._misses(one), self._key(one)), default=None)
        relaxed = []
        if not some.families:
            for constraint, _, job in self._without_one():
                try:
                    left = candidates(self.space, job, self.book, self.estimate).families
                except InputError:
                    left = []
                if left:
                    relaxed.append(Relaxed(constraint, "without", left[0][1][0].name, 0.0, True))
        return Answer(
            question=(*self.job.in_words(), in_words(self.space, some)),
            objective=self.job.objectives[0],
            unit=OBJECTIVES[self.job.objectives[0]],
            best=None,
            runners_up=(),
            undecided=tuple(self._choice(one, some) for one in found.undecided),
            upgrade=None,
            frontier=(),
            looked_at=tuple(self._choice(one, some) for one in looked),
            nearest=None if nearest is None else self._choice(nearest, some, detailed=True),
            relaxed=tuple(relaxed),
            sensitivity=(),
            alike=(),
            tell_apart="",
            candidates=some.total,
            left_out=_left_out(found, some),
            simulated=len(looked),
            requests=sum(one.requests for one in self._simulated.values()),
            warnings=self._warnings(some, []),
        )

    def _without_one(self) -> list[tuple[str, str, Job]]:
        """The job without one of what is stated of systems."""
        job = self.job
        found: list[tuple[str, str, Job]] = []
        if job.capacity_bytes:
            found.append((f"capacity={format_bytes(job.capacity_bytes)}", "", replace(job, capacity_bytes=0)))
        if job.survive:
            found.append((f"survive={job.survive}", "", replace(job, survive=0)))
        if job.bays is not None:
            found.append((f"bays={job.bays}", "", replace(job, bays=None)))
        if job.watts is not None:
            found.append((f"watts={job.watts:g}", "", replace(job, watts=None)))
        if job.usd is not None:
            found.append((f"usd={job.usd:,.0f}", "", replace(job, usd=None)))
        return found

    def _misses(self, one: Tested) -> float:
        return max(off(limit, known) for limit, known in zip(self.job.limits, one.known, strict=True))

    def _warnings(self, some: Candidates, shown: Sequence[Candidate]) -> tuple[str, ...]:
        """What has to be said of the prices of those that are shown, and of those that are left out without one."""
        items = list(dict.fromkeys(part.item for one in shown for part in some.parts(one) if part.date))
        told = list(self.book.warnings(one for one in items if self.book.price(one) is not None))
        if some.no_price:
            listed = ", ".join(some.no_price[:5]) + (" …" if len(some.no_price) > 5 else "")
            told.append(f"left out, since no price is known: {len(some.no_price)}: {listed}")
        assumed = sorted(
            {one.family.model.name for one in shown if one.family.model and one.family.model.is_power_assumed}
        )
        if assumed:
            told.append(f"watts assumed by interface, since the file states none: {', '.join(assumed)}")
        return tuple(told)


def _tell_apart(alike: Sequence[Tested]) -> str:
    """Which measurement would tell."""
    if not alike:
        return ""
    one = alike[0]
    model = one.candidate.family.model
    longer = f"longer runs (--requests {4 * one.requests})"
    if model is None or one.model_error.startswith("not known") or not one.model_error:
        return f"{longer} narrow the interval of the simulation"
    return f"{longer} narrow the interval of the simulation, a twin of {model.name} (headstack twin) that of the model"


def _left_out(found: Found, some: Candidates) -> tuple[Reason, ...]:
    """Why candidates were not chosen, and how that is known."""
    told = [Reason(why, count, "stated") for why, count in some.left_out.most_common()]
    hows = {
        "cannot carry the rate": "bound",
        "more drives of the same failed": "monotone",
        "dearer": "dearer",
        "fewer drives of the same": "monotone",
    }
    for why, how in hows.items():
        if found.skipped[why]:
            told.append(Reason(why, found.skipped[why], how))  # type: ignore[arg-type]
    if found.fails:
        names = tuple(one.candidate.name for one in found.fails)
        told.append(Reason("misses a limit", len(found.fails), "simulated", names))
    return tuple(told)
