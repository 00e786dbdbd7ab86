"""``Search``: evaluates candidates in order of cost until the cheapest one that meets every limit is known.

It uses no black-box optimizer. Among systems that differ only in the number of drives, more drives are never slower, so
in each family short runs only locate the first size that may meet the limits. From there, candidates are tested in
order of cost, in runs that grow until a 95 % confidence interval is on one side of the limit. A candidate is excluded
by its stated properties, by a bound, because more of the same drives failed, by its own run, or because it costs more
than the answer.
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
from headstack.choice.limits import (
    CACHE_FILLING_FACTOR,
    DECISIVE_MISS_FACTOR,
    Known,
    Limit,
    judged,
    off,
    together,
    verdict,
)
from headstack.choice.simulated import Ask, Simulated
from headstack.choice.space import Candidate
from headstack.results.intervals.model_errors import ends_of
from headstack.simulation.shards import Shard

RACE_REQUESTS = 2000
"""Minimum requests of the first runs: enough for a 99th percentile within 25 %."""
GROWTH = 4
"""Factor between the lengths of a candidate's successive runs."""
PLAIN_REQUESTS = 8_000
"""Requests of the runs that look for the next member of a family after a failure, and that answer secondary questions
by their figures only: enough for a 99th percentile within 10 %. Candidates that miss a limit by 25 % are skipped."""
RETEST_FACTOR = 1.1
"""A figure of these runs within this factor of a limit is checked in a longer run."""
FIRST_REQUESTS = 32_000
"""Requests of the runs that determine the answer; candidates that are still undecided are run longer if they cost
less."""
BLOCK = 64
"""Number of families whose first runs are done together. Blocks depend only on costs, so that neither the number of
cores nor the executor changes the runs."""
BATCH = 8
"""Number of candidates tested together, though the first may be the answer: the others are the next ones."""
KINDS = 5
"""Number of kinds in the answer with its runners-up."""
RUNNER_UP_COST_MAX = 1.5
"""Maximum cost of runners-up relative to the answer."""

Key = tuple[float, float, str]


@dataclass(frozen=True)
class Tested:
    """A candidate and its verdicts."""

    candidate: Candidate
    known: tuple[Known, ...]
    """Results by limit, in the job's order."""
    says: Says
    requests: int
    is_race: bool = False
    """Whether the first short run excluded it."""
    models: tuple[tuple[float, float] | None, ...] = ()
    """90 % prediction intervals for devices by limit; empty if not requested."""
    model_error: str = ""
    """The error of the model, in words."""
    is_lost: bool = False
    """Whether no limit is missed, but data are lost more often than permitted."""


@dataclass
class Found:
    """The result of a search."""

    meets: list[Tested] = field(default_factory=list)
    """Candidates that meet all limits, by cost."""
    undecided: list[Tested] = field(default_factory=list)
    fails: list[Tested] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Number of candidates excluded without a run, by reason."""

    def of(self, says: Says) -> list[Tested]:
        """Returns the candidates with this verdict."""
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
        """The cheapest candidate that meets every limit."""
        return self.meets[0] if self.meets else None


@dataclass(frozen=True)
class _Sought:
    """The position of the first member of a family that meets the limits: after ``low``, which does not, and at most
    ``high``, which may."""

    number: int
    low: int
    high: int | None
    step: int = 1

    def probe(self, last: int) -> int:
        """Returns the next member to test: steps that double, then bisection."""
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
        """``keeps`` tells whether a system that meets every limit loses data rarely enough. ``above`` is the cost from
        which candidates are evaluated: cheaper ones are known to fail. ``by_value`` accepts the figures of shorter runs
        without an interval, for secondary questions."""
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
        """Returns the key of the order in which candidates are evaluated."""
        return cost_of(candidate, self.job), candidate.usd, candidate.name

    def carried_out(self, kinds: int = KINDS, below: Key | None = None) -> Found:
        """Returns the answer, and the runners-up of other kinds, with a cost below ``below``."""
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
        """Queues a family by its cheapest member that may meet the limits, unless a cheaper candidate of the same kind
        does already."""
        family, members = self._families[one.number]
        if one.low + 1 == len(members):
            return
        key = self.key(members[one.low + 1])
        if not any(met.candidate.family.kind == family.kind and self.key(met.candidate) < key for met in found.meets):
            heapq.heappush(heap, (key, one.number, one))

    def _taken_further(self, batch: Sequence[_Sought], found: Found) -> Iterator[_Sought]:
        """Runs each family once more: the member that may be the first to meet the limits is tested, others get short
        runs. Yields the families to continue."""
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
        """Continues undecided candidates that cost less than the answer, the cheapest first, until one meets the
        limits."""
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
        """Does the first runs of a shard of the families, by blocks: they do not depend on other blocks."""
        for first in range(0, len(self._families), BLOCK)[shard.number - 1 :: shard.count]:
            self._boundaries(range(first, min(first + BLOCK, len(self._families))), Found())

    def _stop(self, found: Found, kinds: int, below: Key | None) -> Key:
        """Returns the cost from which on no candidate is evaluated any more."""
        firsts: dict[tuple[str, str, str], Key] = {}
        for one in found.meets:
            kind, key = one.candidate.family.kind, self.key(one.candidate)
            firsts[kind] = min(key, firsts.get(kind, key))
        ends = [sorted(firsts.values())[kinds - 1]] if len(firsts) >= kinds else []
        ends += [(min(firsts.values())[0] * RUNNER_UP_COST_MAX, math.inf, "")] if firsts else []
        ends += [below] if below is not None else []
        return min(ends, default=(math.inf, math.inf, ""))

    def _boundaries(self, block: range, found: Found) -> list[tuple[int, int]]:
        """Returns the first member of each family that may meet the limits, by short runs of a few members of all
        families together.
        """
        begins = {}
        for number in block:
            members = self._families[number][1]
            begin = 0 if self._bounds is None else self._bounds.first(members)
            found.skipped["cannot carry the rate"] += begin
            if begin < len(members):
                begins[number] = begin
        return self._firsts(begins, found)

    def _firsts(self, begins: dict[int, int], found: Found) -> list[tuple[int, int]]:
        """Returns the first member of each family, from a position on, that a short run does not exclude: steps that
        double, then bisection.
        """
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
        """Returns verdicts of short runs: whether a limit is missed by far."""
        tested = []
        for one in self._at(candidates, self._first):
            misses = self._misses(one)
            is_out = misses > DECISIVE_MISS_FACTOR
            tested.append(replace(one, says="does not" if is_out else "cannot tell", is_race=is_out))
        return tested

    def _raced_longer(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """Returns verdicts of longer runs, after a candidate of the family has failed, to find one nearer to the limit.
        For secondary questions these runs decide."""
        if self._by_value:
            # More drives lose data more often, but not with more groups, so all members that lose data are evaluated.
            return [
                replace(one, is_race=one.says == "does not" and not one.is_lost) for one in self._decided(candidates)
            ]
        tested = []
        for one in self._at(candidates, self._plain):
            pairs = list(zip(self._limits, one.known, strict=True))
            misses = max(off(limit, known) for limit, known in pairs)
            says = together([judged(limit, known) for limit, known in pairs])
            is_out = misses > CACHE_FILLING_FACTOR or says == "does not"
            tested.append(replace(one, says="does not" if is_out else "cannot tell", is_race=is_out))
        return tested

    def _decided(
        self, candidates: Sequence[Candidate], requests_max: int | None = None, after: int = 0
    ) -> list[Tested]:
        """Returns verdicts of runs that grow, from above ``after`` to the maximum length, until every limit is met or
        one is missed."""
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
        """Returns the candidate after the longest run if a controller's cache takes writes: the cache's dirty level is
        only known to some percent from the initial short runs, and under heavy load the response time only to 25 %."""
        host, most = one.candidate.family.host, self.job.requests_max
        if host is None or not host.cache_bytes or one.requests >= most:
            return one
        (longest,) = self._at([one.candidate], most)
        says = together([judged(*each) for each in zip(self._limits, longest.known, strict=True)])
        return replace(longest, says=says)

    def _valued(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """Returns verdicts by the figures of single runs; by longer runs if these are near a limit."""
        found = []
        for one in self._at(candidates, self._plain):
            figures = one
            if 1 / RETEST_FACTOR < self._misses(one) < RETEST_FACTOR:
                longer = min(GROWTH * self._plain, self.job.requests_max)
                (figures,) = self._at([one.candidate], longer)
            found.append(self._kept(replace(figures, says="meets" if self._misses(figures) <= 1 else "does not")))
        return found

    def _misses(self, one: Tested) -> float:
        """Returns the largest factor by which a limit is missed."""
        return max(off(limit, known) for limit, known in zip(self._limits, one.known, strict=True))

    def _kept(self, one: Tested) -> Tested:
        """Returns the candidate, failed if it meets all limits but loses data too often."""
        if one.says == "does not" or self._keeps is None or self._keeps(one.candidate):
            return one
        return replace(one, says="does not", is_lost=True)

    def _with_model(self, one: Tested) -> Tested:
        """Returns the candidate with the model's error, if known: a limit is met only if devices meet it, too."""
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
        """Returns the candidates with the lowest figure of a limit: of each family the one with most drives, since it
        is the fastest. Their number is halved repeatedly, in longer runs of the same requests."""
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
        """Returns the figures after this many requests, without verdicts on the limits."""
        known = [self._simulated.known(limit, candidates, requests) for limit in self._limits]
        return [
            Tested(candidate, tuple(by_limit[number] for by_limit in known), "cannot tell", requests)
            for number, candidate in enumerate(candidates)
        ]

    def _figure(self, one: Tested, place: int) -> tuple[float, Key]:
        value = one.known[place].value
        return math.inf if value is None else value, self.key(one.candidate)
