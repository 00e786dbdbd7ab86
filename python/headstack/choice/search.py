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

from headstack.choice.answer import Decision
from headstack.choice.bounds import Bounds
from headstack.choice.candidates import Candidates, cost_of
from headstack.choice.job import Job
from headstack.choice.limits import (
    CACHE_FILLING_FACTOR,
    DECISIVE_MISS_FACTOR,
    Estimate,
    Limit,
    combine_decisions,
    judge,
    miss_factor,
    verdict,
)
from headstack.choice.simulations import Simulations, Trial
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
    """A candidate with its estimates and the decision on them."""

    candidate: Candidate
    estimates: tuple[Estimate, ...]
    """Estimates by limit, in the order of the job's limits."""
    decision: Decision
    requests: int
    is_race: bool = False
    """Whether the first short run excluded the candidate."""
    models: tuple[tuple[float, float, float] | None, ...] = ()
    """Prediction intervals for devices by limit, with their level; empty if not requested."""
    model_error: str = ""
    """Description of the model error."""
    is_lost: bool = False
    """Whether the candidate misses no limit but loses data more often than permitted."""


@dataclass
class SearchResult:
    """The result of a search."""

    meets: list[Tested] = field(default_factory=list)
    """Candidates that meet all limits, by cost."""
    undecided: list[Tested] = field(default_factory=list)
    fails: list[Tested] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Number of candidates excluded without a run, by reason."""

    def of(self, decision: Decision) -> list[Tested]:
        """Returns the list of candidates with this decision."""
        match decision:
            case "meets":
                return self.meets
            case "does not":
                return self.fails
            case "undecided":
                return self.undecided
        assert_never(decision)

    @property
    def best(self) -> Tested | None:
        """The cheapest candidate that meets every limit."""
        return self.meets[0] if self.meets else None


@dataclass(frozen=True)
class _Bracket:
    """Bounds on the first member of a family that meets the limits: above ``low``, which fails, and at most ``high``,
    which may meet them."""

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
        simulated: Simulations,
        bounds: Bounds | None = None,
        above: Key | None = None,
        by_value: bool = False,
        is_durable: Callable[[Candidate], bool] | None = None,
    ) -> None:
        """Creates a search.

        ``is_durable`` returns whether a system loses data no more often than permitted. ``above`` is the minimum cost
        of evaluated candidates, if cheaper ones are known to fail. ``by_value`` accepts the figures of shorter runs
        without an interval, for secondary questions.
        """
        self.job: Job = candidates.job
        self._by_value = by_value
        self._is_durable = is_durable
        self._families = candidates.families
        if above is not None:
            left = (
                (family, [member for member in members if self.key(member) >= above])
                for family, members in self._families
            )
            self._families = sorted((pair for pair in left if pair[1]), key=lambda pair: self.key(pair[1][0]))
        self._simulated = simulated
        self._bounds = bounds
        self._limits = self.job.limits
        needed = max(limit.requests_min for limit in self._limits)
        self._first = min(max(RACE_REQUESTS, needed), self.job.requests_max)
        self._plain = min(max(PLAIN_REQUESTS, needed), self.job.requests_max)

    def key(self, candidate: Candidate) -> Key:
        """Returns the key of the order in which candidates are evaluated."""
        return cost_of(candidate, self.job), candidate.usd, candidate.name

    def run(self, kinds: int = KINDS, below: Key | None = None) -> SearchResult:
        """Returns the answer, and the runners-up of other kinds, with a cost below ``below``."""
        result = SearchResult()
        heap: list[tuple[Key, int, _Bracket]] = []
        next_family = 0
        while True:
            stop = self._stop(result, kinds, below)
            ahead = self.key(self._families[next_family][1][0]) if next_family < len(self._families) else None
            if ahead is not None and ahead < stop and (not heap or heap[0][0] >= ahead):
                block = range(next_family, min(next_family + BLOCK, len(self._families)))
                next_family = block.stop
                for number, place in self._find_boundaries(block, result):
                    self._queue_family(heap, _Bracket(number, place - 1, place), result)
                continue
            batch: list[_Bracket] = []
            while heap and len(batch) < BATCH and heap[0][0] < stop and (ahead is None or heap[0][0] < ahead):
                batch.append(heapq.heappop(heap)[2])
            if not batch:
                break
            for bracket in self._advance(batch, result):
                self._queue_family(heap, bracket, result)
        if not self._by_value:
            self._extend_undecided(result)
        for tests in (result.meets, result.undecided, result.fails):
            tests.sort(key=lambda tested: self.key(tested.candidate))
        evaluated = len(result.meets) + len(result.undecided) + len(result.fails)
        total = sum(len(members) for _, members in self._families)
        result.skipped["more expensive"] = total - evaluated - sum(result.skipped.values())
        return result

    def _queue_family(self, heap: list[tuple[Key, int, _Bracket]], bracket: _Bracket, result: SearchResult) -> None:
        """Queues a family by its cheapest member that may meet the limits, unless a cheaper candidate of the same kind
        does already."""
        family, members = self._families[bracket.number]
        if bracket.low + 1 == len(members):
            return
        key = self.key(members[bracket.low + 1])
        if not any(
            tested.candidate.family.kind == family.kind and self.key(tested.candidate) < key for tested in result.meets
        ):
            heapq.heappush(heap, (key, bracket.number, bracket))

    def _advance(self, batch: Sequence[_Bracket], result: SearchResult) -> Iterator[_Bracket]:
        """Runs each family once more: the member that may be the first to meet the limits is tested, others get short
        runs. Yields the families to continue."""
        ready = [
            (bracket, bracket.high) for bracket in batch if bracket.high is not None and bracket.high == bracket.low + 1
        ]
        racing = [bracket for bracket in batch if bracket.high != bracket.low + 1]
        tested = self._decide([self._families[bracket.number][1][high] for bracket, high in ready], FIRST_REQUESTS)
        for (bracket, high), test in zip(ready, tested, strict=True):
            result.of(test.decision).append(test)
            if test.decision != "meets":
                yield _Bracket(bracket.number, high, None)
        probes = [bracket.probe(len(self._families[bracket.number][1]) - 1) for bracket in racing]
        raced = self._race_longer(
            [self._families[bracket.number][1][place] for bracket, place in zip(racing, probes, strict=True)]
        )
        for bracket, place, test in zip(racing, probes, raced, strict=True):
            if test.is_race:
                result.fails.append(test)
                result.skipped["more of the same drives failed"] += place - bracket.low - 1
                yield _Bracket(bracket.number, place, bracket.high, 2 * bracket.step)
            else:
                yield _Bracket(bracket.number, bracket.low, place, bracket.step)

    def _extend_undecided(self, result: SearchResult) -> None:
        """Continues undecided candidates that cost less than the answer, the cheapest first, until one meets the
        limits."""
        dearest = min((self.key(tested.candidate) for tested in result.meets), default=(math.inf, math.inf, ""))
        waiting = sorted(result.undecided, key=lambda tested: self.key(tested.candidate))
        waiting = [tested for tested in waiting if self.key(tested.candidate) < dearest]
        while waiting and self.job.requests_max > FIRST_REQUESTS:
            batch, waiting = waiting[: BATCH // 2], waiting[BATCH // 2 :]
            result.undecided = [tested for tested in result.undecided if tested not in batch]
            retested = self._decide([tested.candidate for tested in batch], self.job.requests_max, FIRST_REQUESTS)
            for tested in retested:
                result.of(tested.decision).append(tested)
            if any(tested.decision == "meets" for tested in retested):
                break

    def first_runs(self, shard: Shard) -> None:
        """Does the first runs of a shard of the families, by blocks: they do not depend on other blocks."""
        for first in range(0, len(self._families), BLOCK)[shard.number - 1 :: shard.count]:
            self._find_boundaries(range(first, min(first + BLOCK, len(self._families))), SearchResult())

    def _stop(self, result: SearchResult, kinds: int, below: Key | None) -> Key:
        """Returns the cost above which no candidate is evaluated."""
        firsts: dict[tuple[str, str, str], Key] = {}
        for tested in result.meets:
            kind, key = tested.candidate.family.kind, self.key(tested.candidate)
            firsts[kind] = min(key, firsts.get(kind, key))
        ends = [sorted(firsts.values())[kinds - 1]] if len(firsts) >= kinds else []
        ends += [(min(firsts.values())[0] * RUNNER_UP_COST_MAX, math.inf, "")] if firsts else []
        ends += [below] if below is not None else []
        return min(ends, default=(math.inf, math.inf, ""))

    def _find_boundaries(self, block: range, result: SearchResult) -> list[tuple[int, int]]:
        """Returns the first member of each family that may meet the limits, by short runs of a few members of all
        families together.
        """
        begins = {}
        for number in block:
            members = self._families[number][1]
            begin = 0 if self._bounds is None else self._bounds.first(members)
            result.skipped["cannot carry the rate"] += begin
            if begin < len(members):
                begins[number] = begin
        return self._bisect(begins, result)

    def _bisect(self, begins: dict[int, int], result: SearchResult) -> list[tuple[int, int]]:
        """Returns the first member of each family, from a position on, that a short run does not exclude: steps that
        double, then bisection.
        """
        low = {number: begin - 1 for number, begin in begins.items()}
        high: dict[int, int] = {}
        steps = dict.fromkeys(begins, 1)
        probes = dict(begins)
        failed: set[tuple[int, int]] = set()
        while probes:
            sorted_probes = sorted(probes.items())
            raced = self._race([self._families[number][1][place] for number, place in sorted_probes])
            probes = {}
            for (number, place), tested in zip(sorted_probes, raced, strict=True):
                if tested.is_race:
                    low[number] = place
                    failed.add((number, place))
                    result.fails.append(tested)
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
            result.skipped["more of the same drives failed"] += passed
        return sorted(high.items())

    def _race(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """Returns verdicts of short runs: whether a limit is missed by far."""
        results = []
        for tested in self._estimate_all(candidates, self._first):
            misses = self._misses(tested)
            is_out = misses > DECISIVE_MISS_FACTOR
            results.append(replace(tested, decision="does not" if is_out else "undecided", is_race=is_out))
        return results

    def _race_longer(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """Returns verdicts of longer runs, after a candidate of the family has failed, to find one nearer to the limit.
        For secondary questions these runs decide."""
        if self._by_value:
            # More drives lose data more often, but not with more groups, so all members that lose data are evaluated.
            return [
                replace(tested, is_race=tested.decision == "does not" and not tested.is_lost)
                for tested in self._decide(candidates)
            ]
        results = []
        for tested in self._estimate_all(candidates, self._plain):
            pairs = list(zip(self._limits, tested.estimates, strict=True))
            misses = max(miss_factor(limit, estimate) for limit, estimate in pairs)
            decision = combine_decisions([judge(limit, estimate) for limit, estimate in pairs])
            is_out = misses > CACHE_FILLING_FACTOR or decision == "does not"
            results.append(replace(tested, decision="does not" if is_out else "undecided", is_race=is_out))
        return results

    def _decide(self, candidates: Sequence[Candidate], requests_max: int | None = None, after: int = 0) -> list[Tested]:
        """Returns verdicts of growing runs, from above ``after`` to the maximum length, until every limit is met or a
        limit is missed."""
        if self._by_value:
            return self._decide_by_value(candidates)
        most = min(requests_max or self.job.requests_max, self.job.requests_max)
        done: dict[int, Tested] = {}
        undecided = list(range(len(candidates)))
        requests = min(self._first * GROWTH if not after else after * GROWTH, most)
        while undecided:
            still_undecided = []
            for number, tested in zip(
                undecided, self._estimate_all([candidates[n] for n in undecided], requests), strict=True
            ):
                decision = combine_decisions(
                    [judge(limit, estimate) for limit, estimate in zip(self._limits, tested.estimates, strict=True)]
                )
                done[number] = replace(tested, decision=decision)
                if decision == "meets":
                    done[number] = self._apply_model_error(self._confirm(done[number]))
                done[number] = self._check_durability(done[number])
                if decision == "undecided" and not done[number].is_lost:
                    still_undecided.append(number)
            if requests >= most:
                break
            undecided, requests = still_undecided, min(requests * GROWTH, most)
        return [done[number] for number in range(len(candidates))]

    def _confirm(self, tested: Tested) -> Tested:
        """Returns the candidate after the longest run if a controller's cache takes writes: the cache's dirty level is
        only known to some percent from the initial short runs, and under heavy load the response time only to 25 %."""
        host, most = tested.candidate.family.host, self.job.requests_max
        if host is None or not host.cache_bytes or tested.requests >= most:
            return tested
        (longest,) = self._estimate_all([tested.candidate], most)
        decision = combine_decisions([judge(*each) for each in zip(self._limits, longest.estimates, strict=True)])
        return replace(longest, decision=decision)

    def _decide_by_value(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """Returns verdicts by the figures of single runs, or of longer runs if the figures are near a limit."""
        results = []
        for tested in self._estimate_all(candidates, self._plain):
            figures = tested
            if 1 / RETEST_FACTOR < self._misses(tested) < RETEST_FACTOR:
                longer = min(GROWTH * self._plain, self.job.requests_max)
                (figures,) = self._estimate_all([tested.candidate], longer)
            results.append(
                self._check_durability(replace(figures, decision="meets" if self._misses(figures) <= 1 else "does not"))
            )
        return results

    def _misses(self, tested: Tested) -> float:
        """Returns the largest factor by which a limit is missed."""
        return max(miss_factor(limit, estimate) for limit, estimate in zip(self._limits, tested.estimates, strict=True))

    def _check_durability(self, tested: Tested) -> Tested:
        """Returns the candidate, marked as failed if it meets all limits but loses data too often."""
        if tested.decision == "does not" or self._is_durable is None or self._is_durable(tested.candidate):
            return tested
        return replace(tested, decision="does not", is_lost=True)

    def _apply_model_error(self, tested: Tested) -> Tested:
        """Returns the candidate with the model error, if known. A limit is then met only if devices also meet it."""
        error = self._simulated.model_error(Trial(tested.candidate, tested.requests))
        if error is None:
            return tested
        columns = ends_of(error)
        models: list[tuple[float, float, float] | None] = []
        for limit in self._limits:
            name = limit.column.removesuffix("_ms")
            unit = "_ms" if limit.is_most else ""
            low, high = (columns.get(f"{name}_model_{end}{unit}") for end in ("low", "high"))
            has_interval = low is not None and high is not None and not limit.kind and not limit.rebuilding
            models.append((low or 0.0, high or 0.0, error["level"]) if has_interval else None)
        decision = combine_decisions(
            [verdict(*each).says for each in zip(self._limits, tested.estimates, models, strict=True)]
        )
        return replace(tested, decision=decision, models=tuple(models), model_error=error["learnt_from"])

    def run_for_latency(self, limit: Limit, kinds: int = KINDS) -> SearchResult:
        """Returns the candidates with the lowest figure of a limit: of each family the one with most drives, since it
        is the fastest. Their number is halved repeatedly, in longer runs of the same requests."""
        result = SearchResult()
        pool = [members[-1] for _, members in self._families]
        result.skipped["fewer of the same drives"] = sum(len(members) - 1 for _, members in self._families)
        requests, place = self._first, self._limits.index(limit)
        while len(pool) > 2 * kinds and requests < self.job.requests_max:
            evaluated = self._race(pool) if requests == self._first else self._estimate_all(pool, requests)
            result.fails += [tested for tested in evaluated if tested.is_race]
            remaining = sorted(
                (tested for tested in evaluated if not tested.is_race), key=lambda tested: self._figure(tested, place)
            )
            half = max(2 * kinds, math.ceil(len(remaining) / 2))
            result.fails += remaining[half:]
            pool = [tested.candidate for tested in remaining[:half]]
            if len(remaining) <= 2 * kinds:
                break
            requests *= 2
        for tested in sorted(self._decide(pool), key=lambda tested: self._figure(tested, place)):
            result.of(tested.decision).append(tested)
        return result

    def _estimate_all(self, candidates: Sequence[Candidate], requests: int) -> list[Tested]:
        """Returns the figures after this many requests, without verdicts on the limits."""
        estimates = [self._simulated.estimate(limit, candidates, requests) for limit in self._limits]
        return [
            Tested(candidate, tuple(by_limit[number] for by_limit in estimates), "undecided", requests)
            for number, candidate in enumerate(candidates)
        ]

    def _figure(self, tested: Tested, place: int) -> tuple[float, Key]:
        value = tested.estimates[place].value
        return math.inf if value is None else value, self.key(tested.candidate)
