"""``Question``: a question with its searches, and its candidates as reported in answers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from headstack import _native
from headstack.catalogue.array import Array
from headstack.catalogue.flash_state import STEADY, flash_states
from headstack.catalogue.prices import PriceBook
from headstack.choice.answer import Choice, Durability
from headstack.choice.bottleneck import Bottleneck, bottlenecks
from headstack.choice.bounds import Bounds
from headstack.choice.candidates import Candidates, candidates, cost_of, loaded
from headstack.choice.durability import afr_percent, durability_of
from headstack.choice.job import Job
from headstack.choice.limits import verdict
from headstack.choice.rebuilding import rebuild_h
from headstack.choice.search import KINDS, Found, Key, Search, Tested
from headstack.choice.simulated import Ask, Carried, Simulated
from headstack.choice.space import Candidate, Space, array_of, toml_of
from headstack.report.figures import Asked
from headstack.simulation.shards import Shard


@dataclass
class Question:
    """A question and its searches."""

    job: Job
    space: Space
    book: PriceBook
    estimate: bool = False
    store: str | os.PathLike[str] | None = None
    executor: str = "local"
    told: Callable[[str, float], object] | None = None
    """Called with the current step, and the number of finished runs, including the share of a current one."""
    _simulated: dict[tuple[float | None, int | None], Simulated] = field(default_factory=dict)
    _carried: Carried = field(default_factory=Carried)
    _durabilities: dict[str, Durability] = field(default_factory=dict)
    _stage: str = "looking for the cheapest"

    def race(self, shard: Shard) -> int:
        """Runs one shard of the first short runs, which the store keeps; returns their number."""
        some = candidates(self.space, self.job, self.book, self.estimate)
        search = Search(some, self.runs(self.job), self._bounds_of(self.job, some))
        search.first_runs(shard)
        return self.runs(self.job).runs

    def _bounds_of(self, job: Job, some: Candidates) -> Bounds:
        bounds = Bounds(job, self.store, self.executor, self._carried, self._heard)
        bounds.test(list({one.model.name: one.model for one, _ in some.families if one.model is not None}.values()))
        return bounds

    def runs(self, job: Job) -> Simulated:
        """Returns the runs of a job, shared by all questions with the same load."""
        demand = job.demand
        key = (demand.rate_per_s, demand.depth)
        if key not in self._simulated:
            self._simulated[key] = Simulated(job, self.store, self.executor, lambda _: self._heard(), self._carried)
        shared = self._simulated[key]
        shared.job = job
        return shared

    def _heard(self, tests: float = 0.0) -> None:
        """Reports the progress; ``tests`` is the share of the drives' tests that is done."""
        if self.told is not None:
            self.told(self._stage, tests + sum(one.runs + one.under_way for one in self._simulated.values()))

    def found(
        self,
        job: Job,
        book: PriceBook,
        below: Key | None = None,
        kinds: int = KINDS,
        above: Key | None = None,
        by_value: bool = False,
    ) -> tuple[Found, Candidates]:
        """Returns the result of a search for a variation of the job, at given prices. Under more load, systems cheaper
        than the answer fail as well: ``above`` is then the answer's cost."""
        asked = job if below is None or job.objectives[0] != "usd" else replace(job, usd=below[0])
        some = candidates(self.space, asked, book, self.estimate)
        keeps = None if job.loss_a_year is None else partial(self._keeps, job.loss_a_year)
        search = Search(some, self.runs(job), self._bounds_of(job, some), above, by_value, keeps)
        if job.objectives[0] == "latency":
            limit = job.limits[job.latency_place]
            return search.least(limit), some
        return search.carried_out(kinds, below), some

    def key(self, one: Tested) -> Key:
        candidate = one.candidate
        return cost_of(candidate, self.job), candidate.usd, candidate.name

    def _figure(self, one: Tested) -> float:
        """Returns the objective of a simulated candidate."""
        if self.job.objectives[0] == "latency":
            return one.known[self.job.latency_place].value or math.inf
        return cost_of(one.candidate, self.job)

    def choice(
        self, one: Tested, some: Candidates, load: tuple[float, str] | None = None, detailed: bool = False
    ) -> Choice:
        """Returns a candidate as reported in the answer; details take further runs."""
        candidate, family, job = one.candidate, one.candidate.family, self.job
        slowest = bottlenecks(self.runs(job), job, [candidate])[0] if detailed else Bottleneck("", None)
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
            bottleneck=slowest.name,
            busy_percent=None if family.model is None else slowest.busy_percent,
            relief_percent=slowest.saves_percent,
            rate_per_s=job.demand.rate_per_s or slowest.iops,
            rate_at_limit=None if load is None or job.demand.rate_per_s is None else load[0] * job.demand.rate_per_s,
            breaks_first="" if load is None else load[1],
            durability=self.durability(candidate) if detailed else None,
            model_error=one.model_error,
            toml=toml_of(candidate) if detailed else "",
            asked=self._inputs_of(one) if detailed else None,
            costs=tuple(self._cost_by(name, one) for name in job.objectives) if len(job.objectives) > 1 else (),
        )

    def _inputs_of(self, one: Tested) -> Asked:
        """Returns the inputs of the run behind the answer, so that a page can recompute it."""
        runs, ask = self.runs(self.job), Ask(one.candidate, one.requests)
        (row,) = runs.rows([ask])
        return runs.asked(ask, row)

    def _cost_by(self, objective: str, one: Tested) -> float:
        match objective:
            case "watts":
                return one.candidate.watts
            case "bays":
                return float(one.candidate.bays)
            case "latency":
                return one.known[self.job.latency_place].value or math.inf
            case _:
                return one.candidate.usd

    def durability(self, candidate: Candidate) -> Durability | None:
        """Returns the expected losses at the given failure rates; ``None`` if it is no array, or if the first failure
        loses data."""
        family = candidate.family
        if family.model is None or candidate.survives == 0:
            return None
        if candidate.name not in self._durabilities:
            system = array_of(candidate)
            assert isinstance(system, Array)
            hours, source = rebuild_h(system)
            rebuild = (hours, f"{source}; under load it takes longer")
            layout = (candidate.level, candidate.drives, candidate.spans)
            overrides = dict(self.space.afr)
            self._durabilities[candidate.name] = durability_of(*layout, family.model.drive, rebuild, overrides)
        return self._durabilities[candidate.name]

    def loss_a_year(self, candidate: Candidate) -> float:
        """Returns the probability of data loss within a year: of more failures than survived, which without redundancy
        is the first one; for a cloud volume, of its own failure."""
        family = candidate.family
        durability = self.durability(candidate)
        if durability is not None:
            return durability.loss_a_year
        if family.model is None:
            percent, _ = afr_percent(loaded(family.base), dict(self.space.afr))
            return percent / 100
        return -math.expm1(candidate.drives * math.log1p(-family.model.afr_percent / 100))

    def _keeps(self, most: float, candidate: Candidate) -> bool:
        return self.loss_a_year(candidate) <= most

    def _warnings(self, some: Candidates, shown: Sequence[Candidate]) -> tuple[str, ...]:
        """Returns warnings on the prices of shown systems, and on those excluded without a price."""
        items = list(dict.fromkeys(part.item for one in shown for part in some.parts(one) if part.date))
        told = list(self.book.warnings(one for one in items if self.book.price(one) is not None))
        if some.no_price:
            listed = ", ".join(some.no_price[:5]) + (" …" if len(some.no_price) > 5 else "")
            told.append(f"left out, since no price is known: {len(some.no_price)}: {listed}")
        hosts = {one.family.host for one in shown if one.family.host is not None}
        without = sorted(host.name for host in hosts if host.price is None)
        if without:
            told.append(f"hosts without a price count by their bays alone: {', '.join(without)}")
        carried = {name for host in hosts for name, _ in host.others}
        if free := sorted(name for name in carried if self.book.price(name) is None):
            told.append(f"drives of hosts without a price count nothing: {', '.join(free)}")
        if self.job.years and self.book.price("kWh") is None and any(one.family.host for one in shown):
            told.append("power is not counted, since no price of a kWh is known then")
        assumed = sorted(
            {one.family.model.name for one in shown if one.family.model and one.family.model.is_power_assumed}
        )
        if assumed:
            told.append(f"watts assumed by interface, since the file states none: {', '.join(assumed)}")
        models = {model.name: model for one in shown if (model := one.family.model) and not model.is_disk}
        flash = [name for name, model in models.items() if flash_states(model.drive.system) != [STEADY]]
        if flash:
            told.append(
                "SSDs are simulated filled, not steady: writes find erased flash, and garbage collection has not "
                "begun; in service writes may be several times slower. Try the winner with `run --preconditioned "
                f"yes`, two minutes for each TB: {', '.join(sorted(flash))}"
            )
        if any(one.family.host is not None and one.family.host.has_records for one in shown):
            told.append(_native.NOTE_OF_OPENZFS)
        return tuple(told)
