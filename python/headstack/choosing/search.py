"""The search: by cost, from the cheapest on, until it is known which system is the first that meets every limit.

Nothing is guessed by a black box. Of systems that are alike but for the number of their drives, more drives are never
slower, so that of each family only the place is looked for from which on it may do: in few short runs. From there on
candidates are tested one after the other as they cost more, in runs that grow until an interval of 95 % lies on one
side of the limit. What is left out is left out by what is stated of it, by a bound, since fewer drives than it has
failed already, by its own run, or since it costs more than the answer.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from headstack.choosing.answer import Says
from headstack.choosing.bounds import Bounds
from headstack.choosing.candidates import Candidates, cost_of
from headstack.choosing.job import Job
from headstack.choosing.limits import FAR, FILLING, Known, Limit, judged, off, together, verdict
from headstack.choosing.simulated import Ask, Simulated
from headstack.choosing.space import Candidate
from headstack.intervals.of_runs import columns_of
from headstack.shards import Shard

RACE_REQUESTS = 2000
"""Of the first runs, at least: so many know a 99th percentile to a quarter."""
GROWTH = 4
"""Each further run of a candidate is so many times as long."""
LONGER_REQUESTS = 32_000
"""Of the runs that look for the next of a family of which one has failed: what misses a limit by a quarter still, after
so many, is passed over. A cache that takes writes is found out by then where it is too small."""
PLAIN_REQUESTS = 8_000
"""Of the runs that answer questions beside the first by their figures alone: a 99th percentile of so many is known to a
tenth, and the question is what a tenth changes."""
BLOCK = 64
"""Families whose first runs are carried out together. What is in a block follows from costs alone, so that neither the
number of cores nor who carries it out changes what is run."""
BATCH = 8
"""Candidates that are tested together, though the first may be the answer: the others are those that follow it."""
KINDS = 5
"""The answer and those that follow, each of another kind."""
REACH = 1.1
"""So much dearer than the answer a candidate is looked at still, for what happens when prices change by a tenth."""

Key = tuple[float, float, str]


@dataclass(frozen=True)
class Tested:
    """What is known of a candidate."""

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
    """What is known of the error of the model."""


@dataclass
class Found:
    """What a search has come to."""

    meets: list[Tested] = field(default_factory=list)
    """By cost."""
    undecided: list[Tested] = field(default_factory=list)
    fails: list[Tested] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Candidates that no run was needed for, by why."""

    @property
    def best(self) -> Tested | None:
        """The least that meets every limit."""
        return self.meets[0] if self.meets else None


class Search:
    """A search among the candidates of a job."""

    def __init__(
        self,
        candidates: Candidates,
        simulated: Simulated,
        bounds: Bounds | None = None,
        above: Key | None = None,
        by_value: bool = False,
    ) -> None:
        """``above`` is the cost from which on anything is looked at: what costs less is known to fail. ``by_value``
        takes the figures of shorter runs for what they are, without an interval: for questions beside the answer."""
        self.job: Job = candidates.job
        self._by_value = by_value
        self._families = candidates.families
        if above is not None:
            dear = [(family, [one for one in own if self.key(one) >= above]) for family, own in self._families]
            self._families = sorted((one for one in dear if one[1]), key=lambda one: self.key(one[1][0]))
        self._simulated = simulated
        self._bounds = bounds
        self._limits = self.job.limits
        needed = max(limit.requests_min for limit in self._limits)
        self._first = min(max(RACE_REQUESTS, needed), self.job.requests_max)

    def key(self, candidate: Candidate) -> Key:
        """The order in which candidates are looked at."""
        return cost_of(candidate, self.job), candidate.usd, candidate.name

    def carried_out(self, kinds: int = KINDS, reach: float = REACH, below: Key | None = None) -> Found:
        """The answer, those of other kinds that follow it, and what costs up to ``reach`` times as much; nothing that
        costs as much as ``below`` or more."""
        found = Found()
        heap: list[tuple[Key, int, int]] = []
        next_family = 0
        while True:
            stop = self._stop(found, kinds, reach, below)
            ahead = self.key(self._families[next_family][1][0]) if next_family < len(self._families) else None
            if ahead is not None and ahead < stop and (not heap or heap[0][0] >= ahead):
                block = range(next_family, min(next_family + BLOCK, len(self._families)))
                next_family = block.stop
                for number, place in self._boundaries(block, found):
                    heapq.heappush(heap, (self.key(self._families[number][1][place]), number, place))
                continue
            batch: list[tuple[Key, int, int]] = []
            while heap and len(batch) < BATCH and heap[0][0] < stop and (ahead is None or heap[0][0] < ahead):
                batch.append(heapq.heappop(heap))
            if not batch:
                break
            tested = self._decided([self._families[number][1][place] for _, number, place in batch])
            begins = {}
            for (_, number, place), one in zip(batch, tested, strict=True):
                {"meets": found.meets, "does not": found.fails, "cannot tell": found.undecided}[one.says].append(one)
                if one.says != "meets" and place + 1 < len(self._families[number][1]):
                    begins[number] = place + 1
            for number, place in self._firsts(begins, self._raced_longer, found):
                heapq.heappush(heap, (self.key(self._families[number][1][place]), number, place))
        for tests in (found.meets, found.undecided, found.fails):
            tests.sort(key=lambda one: self.key(one.candidate))
        looked = len(found.meets) + len(found.undecided) + len(found.fails)
        total = sum(len(members) for _, members in self._families)
        found.skipped["dearer"] = total - looked - sum(found.skipped.values())
        return found

    def raced(self, shard: Shard) -> None:
        """Carries out the first runs of a part of the families, by blocks: nothing of them depends on other blocks."""
        for first in range(0, len(self._families), BLOCK)[shard.number - 1 :: shard.count]:
            self._boundaries(range(first, min(first + BLOCK, len(self._families))), Found())

    def _stop(self, found: Found, kinds: int, reach: float, below: Key | None) -> Key:
        """From which cost on nothing is looked at any more."""
        ends = [below] if below is not None else []
        if found.meets:
            firsts: dict[tuple[str, str, str], Key] = {}
            for one in found.meets:
                kind, key = one.candidate.family.kind, self.key(one.candidate)
                firsts[kind] = min(key, firsts.get(kind, key))
            if len(firsts) >= kinds:
                last = sorted(firsts.values())[kinds - 1]
                best = min(firsts.values())
                ends.append(max(last, (best[0] * reach, math.inf, "")))
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
        return self._firsts(begins, self._raced, found)

    def _firsts(
        self, begins: dict[int, int], race: Callable[[Sequence[Candidate]], list[Tested]], found: Found
    ) -> list[tuple[int, int]]:
        """Of families the first member from a place on that a race lets pass: steps that double, then halves."""
        low = {number: begin - 1 for number, begin in begins.items()}
        high: dict[int, int] = {}
        steps = dict.fromkeys(begins, 1)
        probes = dict(begins)
        failed: set[tuple[int, int]] = set()
        while probes:
            asked = sorted(probes.items())
            tested = race([self._families[number][1][place] for number, place in asked])
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
        """What short runs say: whether a limit is missed by far."""
        known = [self._simulated.known(limit, candidates, self._first) for limit in self._limits]
        tested = []
        for number, candidate in enumerate(candidates):
            own = tuple(by_limit[number] for by_limit in known)
            misses = max(off(limit, one) for limit, one in zip(self._limits, own, strict=True))
            dropped = misses > FAR
            tested.append(Tested(candidate, own, "does not" if dropped else "cannot tell", self._first, dropped))
        return tested

    def _raced_longer(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """What longer runs say, after a candidate of the family has failed: one that is nearer to the limit is looked
        for. Of questions beside the answer, these runs decide."""
        if self._by_value:
            return [replace(one, is_race=one.says == "does not") for one in self._decided(candidates)]
        tested = []
        for one in self._at(candidates, min(LONGER_REQUESTS, self.job.requests_max)):
            pairs = list(zip(self._limits, one.known, strict=True))
            misses = max(off(limit, known) for limit, known in pairs)
            says = together([judged(limit, known) for limit, known in pairs])
            is_out = misses > FILLING or says == "does not"
            tested.append(replace(one, says="does not" if is_out else "cannot tell", is_race=is_out))
        return tested

    def _decided(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """What runs say that grow until every limit is known to hold, or one not to."""
        if self._by_value:
            return self._valued(candidates)
        done: dict[int, Tested] = {}
        open_ = list(range(len(candidates)))
        requests = min(self._first * GROWTH, self.job.requests_max)
        while open_:
            some = [candidates[number] for number in open_]
            known = [self._simulated.known(limit, some, requests) for limit in self._limits]
            left = []
            for place, number in enumerate(open_):
                own = tuple(by_limit[place] for by_limit in known)
                says = together([judged(limit, one) for limit, one in zip(self._limits, own, strict=True)])
                done[number] = Tested(candidates[number], own, says, requests)
                if says == "meets":
                    done[number] = self._with_model(done[number])
                if says == "cannot tell":
                    left.append(number)
            if requests >= self.job.requests_max:
                break
            open_, requests = left, min(requests * GROWTH, self.job.requests_max)
        return [done[number] for number in range(len(candidates))]

    def _valued(self, candidates: Sequence[Candidate]) -> list[Tested]:
        """What single runs say, longer ones where a cache has to fill."""
        short = min(max(self._first, PLAIN_REQUESTS), self.job.requests_max)
        long = min(max(short, LONGER_REQUESTS), self.job.requests_max)
        caches = [one.family.host is not None and one.family.host.cache_bytes > 0 for one in candidates]
        tested: dict[str, Tested] = {}
        # All at a time; each is taken from there below.
        self._simulated.rows([Ask(one, long if own else short) for one, own in zip(candidates, caches, strict=True)])
        for has_cache, requests in ((False, short), (True, long)):
            some = [one for one, own in zip(candidates, caches, strict=True) if own == has_cache]
            for one in self._at(some, requests) if some else ():
                misses = max(off(limit, known) for limit, known in zip(self._limits, one.known, strict=True))
                tested[one.candidate.name] = replace(one, says="meets" if misses <= 1 else "does not")
        return [tested[one.name] for one in candidates]

    def _with_model(self, one: Tested) -> Tested:
        """The same with the error of the model, where that is known: a limit is met where devices meet it, too."""
        told = self._simulated.model_error(Ask(one.candidate, one.requests))
        if told is None:
            return one
        columns = columns_of(told)
        models: list[tuple[float, float] | None] = []
        for limit in self._limits:
            name = limit.column.removesuffix("_ms")
            unit = "_ms" if limit.is_most else ""
            low, high = (columns.get(f"{name}_model_{end}{unit}") for end in ("low", "high"))
            is_known = low is not None and high is not None and not limit.kind and not limit.rebuilding
            models.append((float(low or 0.0), float(high or 0.0)) if is_known else None)
        says = together([verdict(*each).says for each in zip(self._limits, one.known, models, strict=True)])
        return replace(one, says=says, models=tuple(models), model_error=columns["model_error"])

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
            {"meets": found.meets, "does not": found.fails, "cannot tell": found.undecided}[one.says].append(one)
        return found

    def _at(self, candidates: Sequence[Candidate], requests: int) -> list[Tested]:
        known = [self._simulated.known(limit, candidates, requests) for limit in self._limits]
        return [
            Tested(candidate, tuple(by_limit[number] for by_limit in known), "cannot tell", requests)
            for number, candidate in enumerate(candidates)
        ]

    def _figure(self, one: Tested, place: int) -> tuple[float, Key]:
        value = one.known[place].value
        return math.inf if value is None else value, self.key(one.candidate)
