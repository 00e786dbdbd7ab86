"""The search: by cost, from the cheapest on, until it is known which system is the first that meets every limit.

Nothing is guessed by a black box. Of systems that are alike but for the number of their drives, more drives are never
slower, so that of each family only the place is looked for from which on it may do: in few short runs. From there on
candidates are tested one after the other as they cost more, in runs that grow until an interval of 95 % lies on one
side of the limit. What is left out is left out by what is stated of it, by a bound, since more drives of the same have
failed already, by its own run, or since it costs more than the answer.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from headstack.choice.answer import Says
from headstack.choice.bounds import Bounds
from headstack.choice.candidates import Candidates, cost_of
from headstack.choice.job import Job
from headstack.choice.limits import FAR, FILLING, Known, Limit, judged, off, together, verdict
from headstack.choice.simulated import Ask, Simulated
from headstack.choice.space import Candidate
from headstack.results.intervals.of_runs import ends_of
from headstack.simulation.shards import Shard

RACE_REQUESTS = 2000
"""Fewest requests of the first runs: so many know a 99th percentile to 25 %."""
GROWTH = 4
"""Each further run of a candidate is so many times as long."""
PLAIN_REQUESTS = 8_000
"""Of the runs that look for the next of a family of which one has failed, and that answer questions beside the first
by their figures alone: a 99th percentile of so many is known to a tenth. What misses a limit by a quarter is passed
over."""
NEAR = 1.1
"""A figure of these that is within this factor of a limit is looked at again in a longer run."""
FIRST_REQUESTS = 32_000
"""Of the runs by which the answer is found; those of which it cannot be told then are run on where they cost less."""
BLOCK = 64
"""Families whose first runs are carried out together. What is in a block follows from costs alone, so that neither the
number of cores nor who carries it out changes what is run."""
BATCH = 8
"""Candidates that are tested together, though the first may be the answer: the others are those that follow it."""
KINDS = 5
"""The answer and those that follow, each of another kind."""
REACH = 1.5
"""So much dearer than the answer those that follow may be."""

Key = tuple[float, float, str]


@dataclass(frozen=True)
class Tested:
    """A candidate and its verdicts."""

    candidate: Candidate
    known: tuple[Known, ...]
    """By limit, in the job's order."""
    says: Says
    requests: int
    is_race: bool = False
    """Whether the first short run dropped it."""
    models: tuple[tuple[float, float] | None, ...] = ()
    """By limit, from where to where nine of ten devices lie; empty where nobody asked."""
    model_error: str = ""
    """The error of the model, in words."""
    is_lost: bool = False
    """Whether no limit is known to be missed, and data are lost more often than they may be."""


@dataclass
class Found:
    """The result of a search."""

    meets: list[Tested] = field(default_factory=list)
    """By cost."""
    undecided: list[Tested] = field(default_factory=list)
    fails: list[Tested] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Candidates that no run was needed for, by why."""

    def of(self, says: Says) -> list[Tested]:
        """Those of which so much is known."""
        match says:
            case "meets":
                return self.meets
            case "does not":
                return self.fails
            case "cannot tell":
                return self.undecided
        assert_never(says)

    @property
    def best(self) -> Tested | None:
        """The least that meets every limit."""
        return self.meets[0] if self.meets else None


@dataclass(frozen=True)
class _Sought:
    """Where in a family the first member lies that does: beyond ``low``, which does not, and no further than ``high``,
    which may."""

    number: int
    low: int
    high: int | None
    step: int = 1

    def probe(self, last: int) -> int:
        """The member to be looked at next: steps that double, then halves."""
        return min(self.low + self.step, last) if self.high is None else (self.low + self.high) // 2


class Search:
    """A search among the candidates of a job."""

    def __init__(
        self,
        candidates: Candidates,
        simulated: Simulated,
        bounds: Bounds | None = None,
        above: Key | None = None,
        by_value: bool = False,
        keeps: Callable[[Candidate], bool] | None = None,
    ) -> None:
        """``keeps`` says whether a system that meets every limit loses data as seldom as it must. ``above`` is the cost
        from which on anything is looked at: what costs less is known to fail. ``by_value`` takes the figures of shorter
        runs for what they are, without an interval: for questions beside the answer."""
        self.job: Job = candidates.job
        self._by_value = by_value
        self._keeps = keeps
        self._families = candidates.families
        if above is not None:
            dear = [(family, [one for one in own if self.key(one) >= above]) for family, own in self._families]
            self._families = sorted((one for one in dear if one[1]), key=lambda one: self.key(one[1][0]))
        self._simulated = simulated
        self._bounds = bounds
        self._limits = self.job.limits
        needed = max(limit.requests_min for limit in self._limits)
        self._first = min(max(RACE_REQUESTS, needed), self.job.requests_max)
        self._plain = min(max(PLAIN_REQUESTS, needed), self.job.requests_max)

    def key(self, candidate: Candidate) -> Key:
        """The order in which candidates are looked at."""
        return cost_of(candidate, self.job), candidate.usd, candidate.name

    def carried_out(self, kinds: int = KINDS, below: Key | None = None) -> Found:
        """The answer, and those of other kinds that follow it; nothing that costs as much as ``below`` or more."""
        found = Found()
        heap: list[tuple[Key, int, _Sought]] = []
        next_family = 0
        while True:
            stop = self._stop(found, kinds, below)
            ahead = self.key(self._families[next_family][1][0]) if next_family < len(self._families) else None
            if ahead is not None and ahead < stop and (not heap or heap[0][0] >= ahead):
                block = range(next_family, min(next_family + BLOCK, len(self._families)))
                next_family = block.stop
                for number, place in self._boundaries(block, found):
                    self._seek(heap, _Sought(number, place - 1, place), found)
                continue
            batch: list[_Sought] = []
            while heap and len(batch) < BATCH and heap[0][0] < stop and (ahead is None or heap[0][0] < ahead):
                batch.append(heapq.heappop(heap)[2])
            if not batch:
                break
            for one in self._taken_further(batch, found):
                self._seek(heap, one, found)
        if not self._by_value:
            self._run_on(found)
        for tests in (found.meets, found.undecided, found.fails):
            tests.sort(key=lambda one: self.key(one.candidate))
        looked = len(found.meets) + len(found.undecided) + len(found.fails)
        total = sum(len(members) for _, members in self._families)
        found.skipped["dearer"] = total - looked - sum(found.skipped.values())
        return found

    def _seek(self, heap: list[tuple[Key, int, _Sought]], one: _Sought, found: Found) -> None:
        """Puts what is sought in a family where its cheapest member is that may do; but for those of a kind of which
        another does already, which costs less."""
        family, members = self._families[one.number]
        if one.low + 1 == len(members):
            return
        key = self.key(members[one.low + 1])
        if not any(met.candidate.family.kind == family.kind and self.key(met.candidate) < key for met in found.meets):
            heapq.heappush(heap, (key, one.number, one))

    def _taken_further(self, batch: Sequence[_Sought], found: Found) -> Iterator[_Sought]:
        """One more run of each family: the member that may be the first to do is tested, others are raced. What is to
        be sought next."""
        ready = [(one, one.high) for one in batch if one.high is not None and one.high == one.low + 1]
        racing = [one for one in batch if one.high != one.low + 1]
        tested = self._decided([self._families[one.number][1][high] for one, high in ready], FIRST_REQUESTS)
        for (one, high), test in zip(ready, tested, strict=True):
            found.of(test.says).append(test)
            if test.says != "meets":
                yield _Sought(one.number, high, None)
        probes = [one.probe(len(self._families[one.number][1]) - 1) for one in racing]
        raced = self._raced_longer(
            [self._families[one.number][1][place] for one, place in zip(racing, probes, strict=True)]
        )
        for one, place, test in zip(racing, probes, raced, strict=True):
            if test.is_race:
                found.fails.append(test)
                found.skipped["more drives of the same failed"] += place - one.low - 1
                yield _Sought(one.number, place, one.high, 2 * one.step)
            else:
                yield _Sought(one.number, one.low, place, one.step)

    def _run_on(self, found: Found) -> None:
        """Runs on with those of which it cannot be told, as far as they cost less than the answer: the cheapest first,
        until one meets."""
        dearest = min((self.key(one.candidate) for one in found.meets), default=(math.inf, math.inf, ""))
        waiting = sorted(found.undecided, key=lambda one: self.key(one.candidate))
        waiting = [one for one in waiting if self.key(one.candidate) < dearest]
        while waiting and self.job.requests_max > FIRST_REQUESTS:
            some, waiting = waiting[: BATCH // 2], waiting[BATCH // 2 :]
            found.undecided = [one for one in found.undecided if one not in some]
            tested = self._decided([one.candidate for one in some], self.job.requests_max, FIRST_REQUESTS)
            for one in tested:
                found.of(one.says).append(one)
            if any(one.says == "meets" for one in tested):
                break

    def first_runs(self, shard: Shard) -> None:
        """Carries out the first runs of a part of the families, by blocks: nothing of them depends on other blocks."""
        for first in range(0, len(self._families), BLOCK)[shard.number - 1 :: shard.count]:
            self._boundaries(range(first, min(first + BLOCK, len(self._families))), Found())

    def _stop(self, found: Found, kinds: int, below: Key | None) -> Key:
        """From which cost on nothing is looked at any more."""
        firsts: dict[tuple[str, str, str], Key] = {}
        for one in found.meets:
            kind, key = one.candidate.family.kind, self.key(one.candidate)
            firsts[kind] = min(key, firsts.get(kind, key))
        ends = [sorted(firsts.values())[kinds - 1]] if len(firsts) >= kinds else []
        ends += [(min(firsts.values())[0] * REACH, math.inf, "")] if firsts else []
        ends += [below] if below is not None else []
        return min(ends, default=(math.inf, math.inf, ""))

    def _boundaries(self, block: range, found: Found) -> list[tuple[int, int]]:
        """Of each family the first member that may do, by short runs of few of its members, all families at a time."""
        begins = {}
        for number in block:
            members = self._families[number][1]
            begin = 0 if self._bounds is None else self._bounds.first(members)
            found.skipped["cannot carry the rate"] += begin
            if begin < len(members):
                begins[number] = begin
        return self._firsts(begins, found)

    def _firsts(self, begins: dict[int, int], found: Found) -> list[tuple[int, int]]:
        """Of families the first member from a place on that a short run lets pass: steps that double, then halves."""
        low = {number: begin - 1 for number, begin in begins.items()}
        high: dict[int, int] = {}
        steps = dict.fromkeys(begins, 1)
        probes = dict(begins)
        failed: set[tuple[int, int]] = set()
        while probes:
            asked = sorted(probes.items())
            tested = self._raced([self._families[number][1][place] for number, place in asked])
            probes = {}
            for (number, place), one in zip(asked, tested, strict=True):
                if one.is_race:
                    low[number] = place
                    failed.add((number, place))
                    found.fails.append(one)
                else:
                    high[number] = place
                last = len(self._families[number][1]) - 1
                if number not in high and low[number] < last:
                    probes[number] = min(low[number] + steps[number], last)
                    steps[number] *= 2
                elif number in high and high[number] - low[number] > 1:
                    probes[number] = (high[number] + low[number]) // 2
        for number, begin in begins.items():
            passed = sum((number, place) not in failed for place in range(begin, low[number] + 1))
            found.skipped["more drives of the same failed"] += passed
        return sorted(high.items())

    def _raced(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """Verdicts by short runs: whether a limit is missed by far."""
        tested = []
        for one in self._at(candidates, self._first):
            misses = self._misses(one)
            is_out = misses > FAR
            tested.append(replace(one, says="does not" if is_out else "cannot tell", is_race=is_out))
        return tested

    def _raced_longer(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """What longer runs say, after a candidate of the family has failed: one that is nearer to the limit is looked
        for. Of questions beside the answer, these runs decide."""
        if self._by_value:
            # More drives lose data more often, but not in more groups: of those that lose them, all are looked at.
            return [
                replace(one, is_race=one.says == "does not" and not one.is_lost) for one in self._decided(candidates)
            ]
        tested = []
        for one in self._at(candidates, self._plain):
            pairs = list(zip(self._limits, one.known, strict=True))
            misses = max(off(limit, known) for limit, known in pairs)
            says = together([judged(limit, known) for limit, known in pairs])
            is_out = misses > FILLING or says == "does not"
            tested.append(replace(one, says="does not" if is_out else "cannot tell", is_race=is_out))
        return tested

    def _decided(
        self, candidates: Sequence[Candidate], requests_max: int | None = None, after: int = 0
    ) -> list[Tested]:
        """What runs say that grow, from beyond ``after`` to so many requests, until every limit is known to hold, or
        one not to."""
        if self._by_value:
            return self._valued(candidates)
        most = min(requests_max or self.job.requests_max, self.job.requests_max)
        done: dict[int, Tested] = {}
        open_ = list(range(len(candidates)))
        requests = min(self._first * GROWTH if not after else after * GROWTH, most)
        while open_:
            left = []
            for number, one in zip(open_, self._at([candidates[n] for n in open_], requests), strict=True):
                says = together([judged(limit, known) for limit, known in zip(self._limits, one.known, strict=True)])
                done[number] = replace(one, says=says)
                if says == "meets":
                    done[number] = self._with_model(self._confirmed(done[number]))
                done[number] = self._kept(done[number])
                if says == "cannot tell" and not done[number].is_lost:
                    left.append(number)
            if requests >= most:
                break
            open_, requests = left, min(requests * GROWTH, most)
        return [done[number] for number in range(len(candidates))]

    def _confirmed(self, one: Tested) -> Tested:
        """The same after the longest run where a controller's cache takes writes: how dirty that stays is known to some
        percent from the short runs that it begins with, and beneath a heavy load the response to no better than a
        quarter."""
        host, most = one.candidate.family.host, self.job.requests_max
        if host is None or not host.cache_bytes or one.requests >= most:
            return one
        (longest,) = self._at([one.candidate], most)
        says = together([judged(*each) for each in zip(self._limits, longest.known, strict=True)])
        return replace(longest, says=says)

    def _valued(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """Verdicts by the figures of single runs; by longer ones where these come near to a limit."""
        found = []
        for one in self._at(candidates, self._plain):
            figures = one
            if 1 / NEAR < self._misses(one) < NEAR:
                longer = min(GROWTH * self._plain, self.job.requests_max)
                (figures,) = self._at([one.candidate], longer)
            found.append(self._kept(replace(figures, says="meets" if self._misses(figures) <= 1 else "does not")))
        return found

    def _misses(self, one: Tested) -> float:
        """By what factor the limit is missed that is missed by most."""
        return max(off(limit, known) for limit, known in zip(self._limits, one.known, strict=True))

    def _kept(self, one: Tested) -> Tested:
        """The same, which fails where no limit is missed but it loses data too often."""
        if one.says == "does not" or self._keeps is None or self._keeps(one.candidate):
            return one
        return replace(one, says="does not", is_lost=True)

    def _with_model(self, one: Tested) -> Tested:
        """The same with the error of the model, where that is known: a limit is met where devices meet it, too."""
        told = self._simulated.model_error(Ask(one.candidate, one.requests))
        if told is None:
            return one
        columns = ends_of(told)
        models: list[tuple[float, float] | None] = []
        for limit in self._limits:
            name = limit.column.removesuffix("_ms")
            unit = "_ms" if limit.is_most else ""
            low, high = (columns.get(f"{name}_model_{end}{unit}") for end in ("low", "high"))
            is_known = low is not None and high is not None and not limit.kind and not limit.rebuilding
            models.append((low or 0.0, high or 0.0) if is_known else None)
        says = together([verdict(*each).says for each in zip(self._limits, one.known, models, strict=True)])
        return replace(one, says=says, models=tuple(models), model_error=told["learnt_from"])

    def least(self, limit: Limit, kinds: int = KINDS) -> Found:
        """Those whose figure of a limit is least, of all that may be had: of each family the one with most drives, as
        none of the same is faster. Halved again and again in longer runs, of the same requests."""
        found = Found()
        pool = [members[-1] for _, members in self._families]
        found.skipped["fewer drives of the same"] = sum(len(members) - 1 for _, members in self._families)
        requests, place = self._first, self._limits.index(limit)
        while len(pool) > 2 * kinds and requests < self.job.requests_max:
            tested = self._raced(pool) if requests == self._first else self._at(pool, requests)
            found.fails += [one for one in tested if one.is_race]
            alive = sorted((one for one in tested if not one.is_race), key=lambda one: self._figure(one, place))
            half = max(2 * kinds, math.ceil(len(alive) / 2))
            found.fails += alive[half:]
            pool = [one.candidate for one in alive[:half]]
            if len(alive) <= 2 * kinds:
                break
            requests *= 2
        for one in sorted(self._decided(pool), key=lambda one: self._figure(one, place)):
            found.of(one.says).append(one)
        return found

    def _at(self, candidates: Sequence[Candidate], requests: int) -> list[Tested]:
        """The figures after so many requests to each; whether the limits hold is not judged."""
        known = [self._simulated.known(limit, candidates, requests) for limit in self._limits]
        return [
            Tested(candidate, tuple(by_limit[number] for by_limit in known), "cannot tell", requests)
            for number, candidate in enumerate(candidates)
        ]

    def _figure(self, one: Tested, place: int) -> tuple[float, Key]:
        value = one.known[place].value
        return math.inf if value is None else value, self.key(one.candidate)
