"""``Question``: a question with its searches, and its candidates as reported in answers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from headstack import _native
from headstack.catalogue.array import Array
from headstack.catalogue.prices import PriceBook
from headstack.choice.answer import SSD_STATE, Choice, Durability
from headstack.choice.bottleneck import Bottleneck, bottlenecks
from headstack.choice.bounds import Bounds
from headstack.choice.candidates import Candidates, candidates, cost_of, loaded
from headstack.choice.durability import afr_percent, durability_of
from headstack.choice.job import Job
from headstack.choice.limits import verdict
from headstack.choice.rebuilding import rebuild_h
from headstack.choice.search import KINDS, Key, Search, SearchResult, Tested
from headstack.choice.simulations import OverloadRates, Simulations, Trial
from headstack.choice.space import Candidate, Space, array_of, toml_of
from headstack.report.figures import RunInputs
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
    on_progress: Callable[[str, float], object] | None = None
    """Callback for the current step and the number of finished runs, including the completed share of current runs."""
    _simulated: dict[tuple[float | None, int | None], Simulations] = field(default_factory=dict)
    _overload_rates: OverloadRates = field(default_factory=OverloadRates)
    _durabilities: dict[str, Durability] = field(default_factory=dict)
    _stage: str = "looking for the cheapest"

    def race(self, shard: Shard) -> int:
        """Runs one shard of the first short runs, which the store keeps; returns their number."""
        space_candidates = candidates(self.space, self.job, self.book, self.estimate)
        search = Search(space_candidates, self.runs(self.job), self._bounds_of(self.job, space_candidates))
        search.first_runs(shard)
        return self.runs(self.job).runs

    def _bounds_of(self, job: Job, space_candidates: Candidates) -> Bounds:
        bounds = Bounds(job, self.store, self.executor, self._overload_rates, self._heard)
        bounds.test(
            list(
                {
                    family.model.name: family.model
                    for family, _ in space_candidates.families
                    if family.model is not None
                }.values()
            )
        )
        return bounds

    def runs(self, job: Job) -> Simulations:
        """Returns the runs of a job, shared by all questions with the same load."""
        demand = job.demand
        key = (demand.rate_per_s, demand.depth)
        if key not in self._simulated:
            self._simulated[key] = Simulations(
                job, self.store, self.executor, lambda _: self._heard(), self._overload_rates
            )
        shared = self._simulated[key]
        shared.job = job
        return shared

    def _heard(self, tests: float = 0.0) -> None:
        """Reports the progress; ``tests`` is the share of the drives' tests that is done."""
        if self.on_progress is not None:
            self.on_progress(
                self._stage,
                tests + sum(simulations.runs + simulations.under_way for simulations in self._simulated.values()),
            )

    def search(
        self,
        job: Job,
        book: PriceBook,
        below: Key | None = None,
        kinds: int = KINDS,
        above: Key | None = None,
        by_value: bool = False,
    ) -> tuple[SearchResult, Candidates]:
        """Returns the result of a search for a variation of the job, at given prices. Under more load, systems cheaper
        than the answer fail as well: ``above`` is then the answer's cost."""
        capped_job = job if below is None or job.objectives[0] != "usd" else replace(job, usd=below[0])
        space_candidates = candidates(self.space, capped_job, book, self.estimate)
        is_durable = None if job.loss_a_year is None else partial(self._is_durable, job.loss_a_year)
        search = Search(
            space_candidates, self.runs(job), self._bounds_of(job, space_candidates), above, by_value, is_durable
        )
        if job.objectives[0] == "latency":
            limit = job.limits[job.latency_place]
            return search.run_for_latency(limit), space_candidates
        return search.run(kinds, below), space_candidates

    def key(self, tested: Tested) -> Key:
        candidate = tested.candidate
        return cost_of(candidate, self.job), candidate.usd, candidate.name

    def _figure(self, tested: Tested) -> float:
        """Returns the objective of a simulated candidate."""
        if self.job.objectives[0] == "latency":
            return tested.estimates[self.job.latency_place].value or math.inf
        return cost_of(tested.candidate, self.job)

    def to_choice(
        self,
        tested: Tested,
        space_candidates: Candidates,
        load: tuple[float, str] | None = None,
        detailed: bool = False,
    ) -> Choice:
        """Returns a candidate as reported in the answer; details take further runs."""
        candidate, family, job = tested.candidate, tested.candidate.family, self.job
        slowest = bottlenecks(self.runs(job), job, [candidate])[0] if detailed else Bottleneck("", None)
        verdicts = tuple(
            verdict(limit, estimate, model)
            for limit, estimate, model in zip(
                job.limits, tested.estimates, tested.models or [None] * len(job.limits), strict=True
            )
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
            cost=self._figure(tested),
            usd=candidate.usd,
            parts=space_candidates.parts(candidate) if detailed else (),
            usable_bytes=candidate.usable_bytes,
            bays=candidate.bays,
            watts=candidate.watts,
            survives=candidate.survives,
            verdicts=verdicts,
            says=tested.decision,
            bottleneck=slowest.name,
            utilization_percent=None if family.model is None else slowest.utilization_percent,
            relief_percent=slowest.saves_percent,
            rate_per_s=job.demand.rate_per_s or slowest.iops,
            rate_at_limit=None if load is None or job.demand.rate_per_s is None else load[0] * job.demand.rate_per_s,
            breaks_first="" if load is None else load[1],
            durability=self.durability(candidate) if detailed else None,
            model_error=tested.model_error,
            toml=toml_of(candidate) if detailed else "",
            inputs=self._inputs_of(tested) if detailed else None,
            costs=tuple(self._cost_by(name, tested) for name in job.objectives) if len(job.objectives) > 1 else (),
        )

    def _inputs_of(self, tested: Tested) -> RunInputs:
        """Returns the inputs of the run behind the answer, so that a page can recompute it."""
        runs, trial = self.runs(self.job), Trial(tested.candidate, tested.requests)
        (row,) = runs.rows([trial])
        return runs.inputs_of(trial, row)

    def _cost_by(self, objective: str, tested: Tested) -> float:
        match objective:
            case "watts":
                return tested.candidate.watts
            case "bays":
                return float(tested.candidate.bays)
            case "latency":
                return tested.estimates[self.job.latency_place].value or math.inf
            case _:
                return tested.candidate.usd

    def durability(self, candidate: Candidate) -> Durability | None:
        """Returns the expected losses at the given failure rates; ``None`` if the system is not an array, or if the
        first failure loses data."""
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

    def _is_durable(self, most: float, candidate: Candidate) -> bool:
        return self.loss_a_year(candidate) <= most

    def _warnings(self, space_candidates: Candidates, shown: Sequence[Candidate]) -> tuple[str, ...]:
        """Returns warnings on the prices of shown systems, and on those excluded without a price."""
        items = list(
            dict.fromkeys(part.item for candidate in shown for part in space_candidates.parts(candidate) if part.date)
        )
        warnings = list(self.book.warnings(item for item in items if self.book.price(item) is not None))
        if space_candidates.no_price:
            names = ", ".join(space_candidates.no_price[:5]) + (" …" if len(space_candidates.no_price) > 5 else "")
            warnings.append(f"left out because they have no price: {len(space_candidates.no_price)}: {names}")
        hosts = {candidate.family.host for candidate in shown if candidate.family.host is not None}
        without = sorted(host.name for host in hosts if host.price is None)
        if without:
            warnings.append(f"hosts without a price count only the price of their bays: {', '.join(without)}")
        carried = {name for host in hosts for name, _ in host.others}
        if free := sorted(name for name in carried if self.book.price(name) is None):
            warnings.append(f"drives of hosts without a price count $0: {', '.join(free)}")
        if self.job.years and self.book.price("kWh") is None and any(candidate.family.host for candidate in shown):
            warnings.append("power is not included, because there is no price of a kWh for this date")
        assumed = sorted(
            {
                candidate.family.model.name
                for candidate in shown
                if candidate.family.model and candidate.family.model.is_power_assumed
            }
        )
        if assumed:
            warnings.append(f"power assumed from the interface, because the file states none: {', '.join(assumed)}")
        if any(candidate.family.host is not None and candidate.family.host.has_records for candidate in shown):
            warnings.append(_native.NOTE_OF_OPENZFS)
        models = [model for candidate in shown if (model := candidate.family.model)]
        if flash := sorted({model.name for model in models if model.drive.kind == "ssd"}):
            warnings.append(f"{SSD_STATE}: {', '.join(flash)}")
        return tuple(warnings)
