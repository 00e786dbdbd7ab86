"""``Chooser``: runs the search for a question, and determines the sensitivity of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headstack._native import InputError
from headstack.choice.answer import Answer, Choice, Reason, Relaxed, Sensitivity
from headstack.choice.candidates import Candidates, candidates, describe_space
from headstack.choice.job import OBJECTIVES
from headstack.choice.limits import miss_factor
from headstack.choice.question import Question
from headstack.choice.search import KINDS, Key, SearchResult, Tested
from headstack.choice.sensitivity import (
    find_best_by_value,
    find_frontier,
    find_max_loads,
    find_upgrade,
    jobs_without_constraint,
    relax_constraints,
    vary_prices,
)


@dataclass
class Chooser(Question):
    """A question that can be answered."""

    def answer(self) -> Answer:
        """Runs the search, and determines the sensitivity of its answer."""
        result, space_candidates = self.search(self.job, self.book)
        first = result.best
        if first is None:
            return self._without(result, space_candidates)
        kinds: dict[tuple[str, str, str], Tested] = {}
        for tested in result.meets:
            kinds.setdefault(tested.candidate.family.kind, tested)
        shown = list(kinds.values())[:KINDS]
        key = self.key(first)
        cheaper = [tested for tested in result.undecided if self.key(tested) < key]
        self._stage = "how much more load they take"
        max_loads = find_max_loads(self, shown)
        choices = {
            tested.candidate.name: self.to_choice(
                tested, space_candidates, max_loads.get(tested.candidate.name), detailed=True
            )
            for tested in shown
        }
        best = choices[first.candidate.name]
        relaxations: list[Relaxed] = []
        price_changes: list[Sensitivity] = []
        next_upgrade: Choice | None = None
        reference = None if self.job.objectives[0] == "latency" else find_best_by_value(self, self.job, self.book)
        if reference is not None:
            self._stage = "what each constraint costs"
            relaxations = relax_constraints(self, reference)
            self._stage = "what other prices change"
            price_changes = vary_prices(self, reference, space_candidates)
            self._stage = "the next upgrade"
            next_upgrade = find_upgrade(self, reference, best)
        self._stage = "the frontier"
        points = find_frontier(self, result, space_candidates)
        evaluated = [
            choices.get(tested.candidate.name) or self._looked_at(tested, space_candidates, key)
            for tested in sorted((*result.meets, *result.undecided, *result.fails), key=self.key)
        ]
        alike = self._alike(first, result)
        return Answer(
            question=(*self.job.in_words(), describe_space(self.space, space_candidates)),
            objective=self.job.objectives[0],
            unit=OBJECTIVES[self.job.objectives[0]],
            best=best,
            runners_up=tuple(choices[tested.candidate.name] for tested in shown if tested is not first),
            undecided=tuple(self.to_choice(tested, space_candidates) for tested in cheaper),
            upgrade=next_upgrade,
            frontier=points,
            looked_at=tuple(evaluated),
            nearest=None,
            relaxed=tuple(relaxations),
            sensitivity=tuple(price_changes),
            alike=tuple(tested.candidate.name for tested in alike),
            tell_apart=_tell_apart(alike),
            candidates=space_candidates.total,
            left_out=_left_out(result, space_candidates),
            simulated=len(evaluated),
            requests=sum(runs.requests for runs in self._simulated.values()),
            warnings=self._warnings(space_candidates, [first.candidate, *(tested.candidate for tested in shown)]),
            objectives=tuple((name, OBJECTIVES[name]) for name in self.job.objectives)
            if len(self.job.objectives) > 1
            else (),
        )

    def _looked_at(self, tested: Tested, space_candidates: Candidates, answer: Key) -> Choice:
        """Returns an evaluated system. If its cost above the answer is why it is undecided, the verdict says so."""
        choice = self.to_choice(tested, space_candidates)
        if choice.says != "undecided" or self.key(tested) < answer or tested.requests >= self.job.requests_max:
            return choice
        why = f"not run beyond {tested.requests:,} requests, because it costs more than the answer"
        open_ = (replace(verdict, why=why) if verdict.says == "undecided" else verdict for verdict in choice.verdicts)
        return replace(choice, verdicts=tuple(open_))

    def _alike(self, first: Tested, result: SearchResult) -> list[Tested]:
        """Returns the systems that cannot be distinguished from the best: cheaper undecided systems, or if the
        objective is the latency, systems with overlapping intervals."""
        if self.job.objectives[0] != "latency":
            key = self.key(first)
            return [tested for tested in result.undecided if self.key(tested) < key]
        place = self.job.latency_place
        high = first.estimates[place].high
        return [
            tested
            for tested in result.meets[1:]
            if high is not None and (low := tested.estimates[place].low) is not None and low <= high
        ]

    def _without(self, result: SearchResult, space_candidates: Candidates) -> Answer:
        """Returns the answer if no system meets every limit, with the nearest system and the binding constraint."""
        evaluated = sorted((*result.undecided, *result.fails), key=self.key)
        nearest = min(evaluated, key=lambda tested: (self._misses(tested), self.key(tested)), default=None)
        dropped: list[Relaxed] = []
        if not space_candidates.families:
            for constraint, _, job in jobs_without_constraint(self):
                try:
                    left = candidates(self.space, job, self.book, self.estimate).families
                except InputError:
                    left = []
                if left:
                    dropped.append(Relaxed(constraint, "without", left[0][1][0].name, 0.0, True))
        if nearest is not None and nearest.is_lost and self.job.loss_a_year is not None:
            to = f"{self.loss_a_year(nearest.candidate):.2g}"
            dropped.append(Relaxed(f"loss={self.job.loss_a_year:g}", to, nearest.candidate.name, 0.0, True))
        return Answer(
            question=(*self.job.in_words(), describe_space(self.space, space_candidates)),
            objective=self.job.objectives[0],
            unit=OBJECTIVES[self.job.objectives[0]],
            best=None,
            runners_up=(),
            undecided=tuple(self.to_choice(tested, space_candidates) for tested in result.undecided),
            upgrade=None,
            frontier=(),
            looked_at=tuple(self.to_choice(tested, space_candidates) for tested in evaluated),
            nearest=None if nearest is None else self.to_choice(nearest, space_candidates, detailed=True),
            relaxed=tuple(dropped),
            sensitivity=(),
            alike=(),
            tell_apart="",
            candidates=space_candidates.total,
            left_out=_left_out(result, space_candidates),
            simulated=len(evaluated),
            requests=sum(runs.requests for runs in self._simulated.values()),
            warnings=self._warnings(space_candidates, []),
        )

    def _misses(self, tested: Tested) -> float:
        worst = max(
            miss_factor(limit, estimate) for limit, estimate in zip(self.job.limits, tested.estimates, strict=True)
        )
        if tested.is_lost and self.job.loss_a_year is not None:
            worst = max(worst, self.loss_a_year(tested.candidate) / self.job.loss_a_year)
        return worst


def _tell_apart(alike: Sequence[Tested]) -> str:
    """Returns the measurement that would distinguish the best from indistinguishable systems."""
    if not alike:
        return ""
    tested = alike[0]
    model = tested.candidate.family.model
    longer = f"longer runs (--requests {4 * tested.requests})"
    if model is None or not any(tested.models):
        return f"{longer} narrow the interval of the simulation"
    return (
        f"{longer} narrow the interval of the simulation; a calibrated model of {model.name} "
        "(headstack measure twin) narrows the interval of the model"
    )


def _left_out(result: SearchResult, space_candidates: Candidates) -> tuple[Reason, ...]:
    """Returns the reasons why candidates were excluded, and how."""
    reasons = [Reason(why, count, "stated") for why, count in space_candidates.left_out.most_common()]
    hows = {
        "cannot carry the rate": "bound",
        "more of the same drives failed": "monotone",
        "more expensive": "dearer",
        "fewer of the same drives": "monotone",
    }
    for why, how in hows.items():
        if result.skipped[why]:
            reasons.append(Reason(why, result.skipped[why], how))  # type: ignore[arg-type]
    lost = [tested.candidate.name for tested in result.fails if tested.is_lost]
    impossible: dict[str, list[str]] = {}
    missed = []
    for tested in result.fails:
        reason = next((estimate.why for estimate in tested.estimates if estimate.impossible), None)
        if reason is not None:
            impossible.setdefault(reason, []).append(tested.candidate.name)
        elif not tested.is_lost:
            missed.append(tested.candidate.name)
    if missed:
        reasons.append(Reason("misses a limit", len(missed), "simulated", tuple(missed)))
    if lost:
        reasons.append(Reason("loses data too often", len(lost), "simulated", tuple(lost)))
    reasons += [Reason(f"impossible: {why}", len(names), "stated", tuple(names)) for why, names in impossible.items()]
    return tuple(reasons)
