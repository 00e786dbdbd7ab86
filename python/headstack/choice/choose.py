"""``Choosing``: runs the search for a question, and determines the sensitivity of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headstack._native import InputError
from headstack.choice.answer import Answer, Choice, Reason, Relaxed, Sensitivity
from headstack.choice.beside import frontier, loads, plainly, relaxed, sensitivity, upgrade, without_one
from headstack.choice.candidates import Candidates, candidates, in_words
from headstack.choice.job import OBJECTIVES
from headstack.choice.limits import off
from headstack.choice.question import Question
from headstack.choice.search import KINDS, Found, Key, Tested


@dataclass
class Choosing(Question):
    """A question that can be answered."""

    def answer(self) -> Answer:
        """Runs the search, and determines the sensitivity of its answer."""
        found, some = self.found(self.job, self.book)
        first = found.best
        if first is None:
            return self._without(found, some)
        kinds: dict[tuple[str, str, str], Tested] = {}
        for one in found.meets:
            kinds.setdefault(one.candidate.family.kind, one)
        shown = list(kinds.values())[:KINDS]
        key = self.key(first)
        cheaper = [one for one in found.undecided if self.key(one) < key]
        self._stage = "how much more load they take"
        most = loads(self, shown)
        choices = {
            one.candidate.name: self.choice(one, some, most.get(one.candidate.name), detailed=True) for one in shown
        }
        best = choices[first.candidate.name]
        looser: list[Relaxed] = []
        others: list[Sensitivity] = []
        next_: Choice | None = None
        plain = None if self.job.objectives[0] == "latency" else plainly(self, self.job, self.book)
        if plain is not None:
            self._stage = "what each constraint costs"
            looser = relaxed(self, plain)
            self._stage = "what other prices change"
            others = sensitivity(self, plain, some)
            self._stage = "the next upgrade"
            next_ = upgrade(self, plain, best)
        self._stage = "the frontier"
        points = frontier(self, found, some)
        looked = [
            choices.get(one.candidate.name) or self._looked_at(one, some, key)
            for one in sorted((*found.meets, *found.undecided, *found.fails), key=self.key)
        ]
        alike = self._alike(first, found)
        return Answer(
            question=(*self.job.in_words(), in_words(self.space, some)),
            objective=self.job.objectives[0],
            unit=OBJECTIVES[self.job.objectives[0]],
            best=best,
            runners_up=tuple(choices[one.candidate.name] for one in shown if one is not first),
            undecided=tuple(self.choice(one, some) for one in cheaper),
            upgrade=next_,
            frontier=points,
            looked_at=tuple(looked),
            nearest=None,
            relaxed=tuple(looser),
            sensitivity=tuple(others),
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

    def _looked_at(self, one: Tested, some: Candidates, answer: Key) -> Choice:
        """Returns an evaluated system. If it is undecided because it costs more than the answer, that is its reason."""
        choice = self.choice(one, some)
        if choice.says != "cannot tell" or self.key(one) < answer or one.requests >= self.job.requests_max:
            return choice
        why = f"not pursued beyond {one.requests:,} requests, since it costs more than the answer"
        open_ = (replace(known, why=why) if known.says == "cannot tell" else known for known in choice.verdicts)
        return replace(choice, verdicts=tuple(open_))

    def _alike(self, first: Tested, found: Found) -> list[Tested]:
        """Returns the systems that cannot be distinguished from the best: cheaper ones that are undecided, or if the
        objective is the response time, those with overlapping intervals."""
        if self.job.objectives[0] != "latency":
            key = self.key(first)
            return [one for one in found.undecided if self.key(one) < key]
        place = self.job.latency_place
        high = first.known[place].high
        return [
            one
            for one in found.meets[1:]
            if high is not None and (low := one.known[place].low) is not None and low <= high
        ]

    def _without(self, found: Found, some: Candidates) -> Answer:
        """Returns the answer if no system meets every limit: the nearest one, and the binding constraint."""
        looked = sorted((*found.undecided, *found.fails), key=self.key)
        nearest = min(looked, key=lambda one: (self._misses(one), self.key(one)), default=None)
        dropped: list[Relaxed] = []
        if not some.families:
            for constraint, _, job in without_one(self):
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
            question=(*self.job.in_words(), in_words(self.space, some)),
            objective=self.job.objectives[0],
            unit=OBJECTIVES[self.job.objectives[0]],
            best=None,
            runners_up=(),
            undecided=tuple(self.choice(one, some) for one in found.undecided),
            upgrade=None,
            frontier=(),
            looked_at=tuple(self.choice(one, some) for one in looked),
            nearest=None if nearest is None else self.choice(nearest, some, detailed=True),
            relaxed=tuple(dropped),
            sensitivity=(),
            alike=(),
            tell_apart="",
            candidates=some.total,
            left_out=_left_out(found, some),
            simulated=len(looked),
            requests=sum(one.requests for one in self._simulated.values()),
            warnings=self._warnings(some, []),
        )

    def _misses(self, one: Tested) -> float:
        misses = max(off(limit, known) for limit, known in zip(self.job.limits, one.known, strict=True))
        if one.is_lost and self.job.loss_a_year is not None:
            misses = max(misses, self.loss_a_year(one.candidate) / self.job.loss_a_year)
        return misses


def _tell_apart(alike: Sequence[Tested]) -> str:
    """Returns the measurement that would distinguish them."""
    if not alike:
        return ""
    one = alike[0]
    model = one.candidate.family.model
    longer = f"longer runs (--requests {4 * one.requests})"
    if model is None or one.model_error.startswith("not known") or not one.model_error:
        return f"{longer} narrow the interval of the simulation"
    return f"{longer} narrow the interval of the simulation, a twin of {model.name} (headstack twin) that of the model"


def _left_out(found: Found, some: Candidates) -> tuple[Reason, ...]:
    """Returns the reasons why candidates were excluded, and how."""
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
    lost = [one.candidate.name for one in found.fails if one.is_lost]
    impossible: dict[str, list[str]] = {}
    fails = []
    for one in found.fails:
        reason = next((known.why for known in one.known if known.impossible), None)
        if reason is not None:
            impossible.setdefault(reason, []).append(one.candidate.name)
        elif not one.is_lost:
            fails.append(one.candidate.name)
    if fails:
        told.append(Reason("misses a limit", len(fails), "simulated", tuple(fails)))
    if lost:
        told.append(Reason("loses data too often", len(lost), "simulated", tuple(lost)))
    told += [Reason(f"cannot be: {why}", len(names), "stated", tuple(names)) for why, names in impossible.items()]
    return tuple(told)
