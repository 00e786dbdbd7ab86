"""``Model``: combines the times of low-level tests.

The time of a request in a mix is the mean of the times of its classes (random and sequential, reads and writes), each
of which is interpolated linearly in size between two tests. Their interaction is a factor from tests of mixes: reads
between writes, and random requests that interrupt sequential runs. Interleaved streams have tests of their own, by the
number of requests between two switches: a drive's switching time is spread over them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, product
from math import exp, inf, log

from headstack._native import InputError, format_bytes
from headstack.prediction.environment import Environment, Open, Spread
from headstack.prediction.grid import INTERLEAVED, MIXED, OPEN, RANDOM, SEQUENTIAL, SKEWED, Axis, Table, interpolate
from headstack.prediction.loops import LoopResult, Rates, solve_open
from headstack.prediction.percentiles import FIGURES, Percentile, Percentiles
from headstack.prediction.request_class import RequestClass
from headstack.prediction.responses import MixturePart, Responses, Terms

WHOLE = (Spread(1.0, inf),)
HELD_TIMES = 8
MIXED_FROM = 0.02
"""Minimum share of a class in tests of mixes: the effect of smaller ones cannot be measured."""


@dataclass(frozen=True)
class Blend:
    """An environment in the terms of one system's tables."""

    random: Terms
    sequential: Terms
    """Sequential requests, at the mean number of switches between streams over the whole system, or with ``excess``
    without any."""
    excess: Terms
    """The additional time of switches over the whole system."""
    near: Terms
    """Random requests like those of the streams, over the ranges of the environment."""
    far: Terms
    """Random requests like those of the streams, over the whole system."""
    factor: Terms
    skew: Terms
    """Tests with a hot part around it."""
    kind: str
    """Random, skewed, sequential, mixed or interleaved: errors differ between them."""
    alike: list[MixturePart]
    """Tests whose response times are similar, by shares of the requests."""


class Model:
    """The tables of one system, ready for predictions."""

    def __init__(self, tables: dict[str, Table], capacity_bytes: int, held_bytes: int) -> None:
        self._random, self._sequential, self._mixed = (tables[name] for name in (RANDOM, SEQUENTIAL, MIXED))
        self.capacity_bytes = capacity_bytes
        self._read_least = self._least_read(held_bytes)
        self.depths = tables[RANDOM].knots("depth")
        self.sizes_bytes = tables[RANDOM].knots("size")
        self.least_range_bytes = capacity_bytes * tables[RANDOM].knots("range")[0]
        self._log_depths = [log(depth) for depth in self.depths]
        whole: Terms = [(len(self._random.axes[3].knots) - 1, 1.0)]
        self._whole = {True: whole, False: whole}
        self._open = tables[OPEN]
        self._skewed = tables[SKEWED]
        aligned = [size for size in self.sizes_bytes if size >= self._random.axes[0].knots[-1]]
        self.skewed_bytes = aligned[0]
        self._skews = self._skew()
        self._factors = self._interference()
        self._arrival_logs = self._arrival_factors()
        self._responses = Responses(tables)
        self._kinds = {name: kinds_of(table) for name, table in tables.items()}

    def blend(self, environment: Environment) -> Blend:
        """Returns the position of the environment in the tables. Raises ``InputError`` outside their range."""
        aligned, spreads = self._aligned(environment), self._spreads(environment)
        random = [
            self._random_terms(environment, [request_class], aligned, spreads)
            for request_class in environment.classes
            if request_class.is_random
        ]
        others = [request_class for request_class in environment.classes if not request_class.is_random]
        streams = [
            self._sequential_terms(environment, [request_class], environment.switch_share) for request_class in others
        ]
        sequential = joined(chain(*streams))
        excess: Terms = []
        near: Terms = []
        far: Terms = []
        if environment.spread and sequential and environment.switch_share > 0:
            still = self._sequential_terms(environment, others, 0.0)
            excess = joined([*sequential, *((place, -weight) for place, weight in still)])
            sequential = still
            near = self._random_terms(environment, others, aligned, spreads)
            far = self._random_terms(environment, others, aligned, self._whole)
        share = environment.random_share
        together = INTERLEAVED if environment.switch_share > 0 else MIXED
        kind = (
            SKEWED
            if environment.hot is not None and share > 0
            else RANDOM
            if share > 1 - MIXED_FROM
            else SEQUENTIAL
            if share < MIXED_FROM
            else together
        )
        factor = [] if kind == SEQUENTIAL else self._factor_terms(environment)
        return Blend(
            joined(chain(*random)),
            sequential,
            excess,
            near,
            far,
            factor,
            self._skew_terms(environment),
            kind,
            self._alike(kind, random, streams, factor),
        )

    def _alike(self, kind: str, random: list[Terms], streams: list[Terms], factor: Terms) -> list[MixturePart]:
        """Returns the tests whose response times are similar to an environment's."""
        if kind in (RANDOM, SKEWED):
            alone = [component for terms in streams for component in self._apart(SEQUENTIAL, terms)]
            return alone + [component for terms in random for component in self._apart(RANDOM, terms)]
        fade = sum([weight for _, weight in factor])
        if fade > 1 - 1e-9:
            return self._apart(MIXED, factor)
        alone = [component for terms in streams for component in self._apart(SEQUENTIAL, terms)]
        if kind == SEQUENTIAL:
            return alone
        rest = [
            MixturePart(component.table, [(at, (1 - fade) * weight) for at, weight in component.terms])
            for component in alone
        ]
        return [*self._apart(MIXED, factor), *rest]

    def _apart(self, table: str, terms: Terms) -> list[MixturePart]:
        """Splits terms by all coordinates except size and load: a share of the requests is near or sequential, is a
        read or random, and the rest is not; sizes apply to all."""
        kinds, depths = self._kinds[table], 1 if table == OPEN else len(self.depths)
        terms_by_kind: dict[int, Terms] = {}
        for place, weight in terms:
            if weight > 0:
                terms_by_kind.setdefault(kinds[place // depths], []).append((place, weight))
        return [MixturePart(table, kind_terms) for kind_terms in terms_by_kind.values()]

    def rates(self, blend: Blend) -> Rates:
        """Returns the saturation curve: requests per second at each depth of the tests."""
        return Rates(self.depths, [self.service_ns(blend, index) for index in range(len(self.depths))])

    def rates_of_classes(self, environment: Environment) -> dict[RequestClass, list[float]]:
        """Returns for each class the service rate per ns by queue length, if its requests are served next among those
        of all others. The rate does not fall with queue length, as for random arrivals."""
        whole = self.blend(environment)
        rates_by_class = {}
        for request_class in environment.classes:
            class_blend = self.blend(replace(environment, classes=(replace(request_class, share=1.0),)))
            rates = self.rates(replace(class_blend, factor=whole.factor))
            served = accumulate((rates.at(depth) / 1e9 for depth in range(1, int(rates.depth_max) + 1)), max)
            rates_by_class[request_class] = [0.0, *served]
        return rates_by_class

    def service_at_ns(self, blend: Blend, depth: float) -> float:
        """Returns the time per request at any depth of the tests' range; below one request, it is that of one."""
        if depth <= 1:
            return self.service_ns(blend, 0) / depth
        upper = min(bisect_left(self.depths, depth), len(self.depths) - 1)
        x0, x1 = self._log_depths[upper - 1], self._log_depths[upper]
        low, high = self.service_ns(blend, upper - 1), self.service_ns(blend, upper)
        return float(low * (high / low) ** ((log(depth) - x0) / (x1 - x0)))

    def service_ns(self, blend: Blend, depth: int) -> float:
        """Returns the time per request at one depth of the tests."""
        random, sequential, factors = self._random.time_ns, self._sequential.time_ns, self._factors
        time = sum([weight * random[place + depth] for place, weight in blend.random])
        if blend.skew:
            time *= exp(sum([weight * self._skews[place + depth] for place, weight in blend.skew]))
        time += sum([weight * sequential[place + depth] for place, weight in blend.sequential])
        if blend.excess:
            # A switch is a seek: its time depends on distance like that of a random request.
            nearness = sum([weight * random[place + depth] for place, weight in blend.near])
            nearness /= sum([weight * random[place + depth] for place, weight in blend.far])
            # Negative values are scatter of two tests.
            time += nearness * max(0.0, sum([weight * sequential[place + depth] for place, weight in blend.excess]))
        return time * exp(sum([weight * factors[place + depth] for place, weight in blend.factor]))

    def arrival_factor(self, environment: Environment, load: float) -> float:
        """Returns the response time of arrivals relative to that of closed loops; ``load`` is relative to their maximum
        throughput.
        """
        return exp(sum([weight * self._arrival_logs[place] for place, weight in self._open_terms(environment, load)]))

    def percentiles(
        self, environment: Environment, blend: Blend, result: LoopResult, open_share: float, load: float
    ) -> Percentiles:
        """Returns the percentiles of a result. ``alone`` is the share of the requests with random arrivals, 0 in loops
        without think time, and ``load`` is relative to the maximum of closed loops."""
        percentiles: Percentiles = dict.fromkeys(FIGURES, Percentile(0.0, 0.0))
        if open_share > 0:
            percentiles = self._responses.of_arrivals(self._apart(OPEN, self._open_terms(environment, load)))
        if open_share < 1:
            closed_percentiles = self._responses.at_depth(blend.alike, blend.factor, result.iops * result.mean_ns / 1e9)
            percentiles = {
                name: percentile.between(closed_percentiles[name], open_share)
                for name, percentile in percentiles.items()
            }
        return percentiles

    def percentiles_by_depth(self, blend: Blend, depths: Sequence[tuple[int, float]]) -> Percentiles:
        """Returns the percentiles of requests by the queue depths that they meet, each with its share."""
        return self._responses.percentiles_by_depth(blend.alike, blend.factor, depths)

    def _open_terms(self, environment: Environment, load: float) -> Terms:
        """Returns the tests with arrivals around an environment."""
        _, random, read, size, loads = self._open.axes
        aligned, name = self._aligned(environment), environment.name
        around = [
            interpolate(random, max(environment.random_share, random.knots[0]), False, name),
            interpolate(read, environment.read_share, False, name),
            interpolate(size, min(max(environment.mean_bytes, size.knots[0]), size.knots[-1]), True, name),
            interpolate(loads, min(max(load, loads.knots[0]), loads.knots[-1]), False, name),
        ]
        terms = []
        for (f, by_share), (r, by_read), (s, by_size), (load_place, by_load) in product(*around):
            place = ((aligned * len(random.knots) + f) * len(read.knots) + r) * len(size.knots) + s
            terms.append((place * len(loads.knots) + load_place, by_share * by_read * by_size * by_load))
        return terms

    def bottleneck(self, blend: Blend, depth: float) -> str:
        """Returns the busiest component in the tests with most of the time."""
        index = min(range(len(self.depths)), key=lambda i: abs(self.depths[i] - depth))
        spent: dict[str, float] = {}
        for table, terms in ((self._random, blend.random), (self._sequential, blend.sequential)):
            for place, weight in terms:
                name = table.bottleneck[place + index]
                spent[name] = spent.get(name, 0.0) + weight * table.time_ns[place + index]
        return max(sorted(spent), key=lambda name: spent[name])

    def _random_terms(
        self, environment: Environment, classes: Iterable[RequestClass], aligned: int, spreads: dict[bool, Terms]
    ) -> Terms:
        _, read, size, range_, depth = self._random.axes
        terms: Terms = []
        for request_class in classes:
            base = (aligned * len(read.knots) + operation(read, environment, request_class)) * len(size.knots)
            for s, by_size in interpolate(
                size, request_class.size_bytes, False, size_text(environment, request_class.size_bytes)
            ):
                for r, by_range in spreads[request_class.is_read]:
                    place = ((base + s) * len(range_.knots) + r) * len(depth.knots)
                    terms.append((place, request_class.share * by_size * by_range))
        return joined(terms)

    def _sequential_terms(self, environment: Environment, classes: Iterable[RequestClass], back: float) -> Terms:
        read, size, streams, switch, depth = self._sequential.axes
        switches = interpolate(switch, back, False, f"{environment.name}: switch_share: {back:g}")
        # Requests that return to the only stream come from random positions, as from another stream.
        several = max(streams.knots[0], environment.streams)
        if back == 0:
            several = streams.knots[0]
        counts = interpolate(streams, several, True, f"{environment.name}: streams: {environment.streams}")
        terms: Terms = []
        for request_class in classes:
            base = operation(read, environment, request_class) * len(size.knots)
            for s, by_size in interpolate(
                size, request_class.size_bytes, False, size_text(environment, request_class.size_bytes)
            ):
                for k, by_count in counts:
                    for w, by_switch in switches:
                        place = (((base + s) * len(streams.knots) + k) * len(switch.knots) + w) * len(depth.knots)
                        terms.append((place, request_class.share * by_size * by_count * by_switch))
        return joined(terms)

    def _factor_terms(self, environment: Environment) -> Terms:
        _, random, read, size, range_, depth = self._mixed.axes
        aligned = self._aligned(environment)
        name = environment.name
        # Requests that return to their stream disturb others, and are disturbed, like random ones.
        share = environment.random_share + (1 - environment.random_share) * environment.switch_share
        # With a vanishing share of random requests the factor tends to 1, which is a logarithm of 0.
        fade = min(1.0, share / random.knots[0])
        shares = interpolate(random, max(share, random.knots[0]), False, f"{name}: random share: {share:g}")
        reads = interpolate(read, environment.read_share, False, f"{name}: read share: {environment.read_share:g}")
        clamped = min(max(environment.mean_bytes, size.knots[0]), size.knots[-1])
        sizes = interpolate(size, clamped, True, name)
        ranges = [
            (place, spread.share * weight)
            for spread in environment.spread or WHOLE
            for place, weight in interpolate(range_, max(self._share(spread), range_.knots[0]), True, name)
        ]
        terms: Terms = []
        for f, by_share in shares:
            for r, by_read in reads:
                for s, by_size in sizes:
                    base = ((aligned * len(random.knots) + f) * len(read.knots) + r) * len(size.knots) + s
                    for g, by_range in ranges:
                        place = (base * len(range_.knots) + g) * len(depth.knots)
                        terms.append((place, fade * by_share * by_read * by_size * by_range))
        return terms

    def _aligned(self, environment: Environment) -> int:
        align = self._random.axes[0]
        return max([i for i, knot in enumerate(align.knots) if environment.align_bytes % knot == 0], default=0)

    def _share(self, spread: Spread) -> float:
        return min(1.0, spread.range_bytes / self.capacity_bytes)

    def _least_read(self, held_bytes: int) -> float:
        """Returns the smallest range, as a share of the capacity, of which buffers and caches hold only a small
        part."""
        ranges = self._random.knots("range")
        return next((share for share in ranges if share * self.capacity_bytes >= HELD_TIMES * held_bytes), ranges[-1])

    def _spreads(self, environment: Environment) -> dict[bool, Terms]:
        """Returns the ranges around those of the environment, for reads and for writes. Raises ``InputError`` if they
        exceed the system, or are below those of any test."""
        axis = self._random.axes[3]
        terms: dict[bool, Terms] = {True: [], False: []}
        for spread in self._with_hot(environment):
            text = format_bytes(round(min(spread.range_bytes, 2**62)))
            if self.capacity_bytes * (1 + 1e-6) < spread.range_bytes < inf:
                held = format_bytes(self.capacity_bytes)
                raise InputError(f"{environment.name}: range: {text} exceeds the capacity of {held}")
            share = self._share(spread)
            label = f"{environment.name}: range: {text}, {share:g} of the capacity,"
            for is_read, least in ((True, self._read_least), (False, axis.knots[0])):
                # If all requests are in one range, reads hit the buffer. Nearby requests of a trace are not
                # repetitions, so their reads do not; writes are sorted in either case.
                near = max(share, least) if spread.share < 1 and environment.hot is None else share
                terms[is_read] += [
                    (place, spread.share * weight) for place, weight in interpolate(axis, near, True, label)
                ]
        return {is_read: joined(range_terms) for is_read, range_terms in terms.items()}

    def _with_hot(self, environment: Environment) -> Sequence[Spread]:
        """Returns the ranges, each with its hot part."""
        spreads, hot = environment.spread or WHOLE, environment.hot
        if hot is None:
            return spreads
        least = self.least_range_bytes
        return [
            part
            for spread in spreads
            for part in (
                Spread(spread.share * (1 - hot.share), spread.range_bytes),
                Spread(spread.share * hot.share, max(least, hot.part * min(spread.range_bytes, self.capacity_bytes))),
            )
        ]

    def _skew_terms(self, environment: Environment) -> Terms:
        """Returns the tests with a hot part around an environment; its effect fades as the share in it tends to 0 or
        1."""
        if environment.hot is None:
            return []
        read, hot, range_, depth = self._skewed.axes
        share, part = environment.hot.share, environment.hot.part
        fade = min(1.0, share / hot.knots[0], (1 - share) / (1 - hot.knots[-1]))
        shares = interpolate(hot, min(max(share, hot.knots[0]), hot.knots[-1]), False, environment.name)
        parts = interpolate(range_, min(max(part, range_.knots[0]), range_.knots[-1]), True, environment.name)
        reads = interpolate(
            read, environment.read_share if len(read.knots) > 1 else read.knots[0], False, environment.name
        )
        terms = []
        for (r, by_read), (h, by_hot), (g, by_part) in product(reads, shares, parts):
            place = ((r * len(hot.knots) + h) * len(range_.knots) + g) * len(depth.knots)
            terms.append((place, fade * by_read * by_hot * by_part))
        return terms

    def _skew(self) -> list[float]:
        """Returns for each test with a hot part the logarithm of its time relative to that of both parts separately."""
        align, size = self._random.axes[0].knots[-1], self.skewed_bytes
        whole = self._random.knots("range")[-1]
        factors = []
        for place, (read, hot, range_, depth) in enumerate(product(*(axis.knots for axis in self._skewed.axes))):
            index = self.depths.index(depth)
            cold_ns, hot_ns = (
                self._random.curve(align, read, size, range_share)[index] for range_share in (whole, range_)
            )
            factors.append(log(self._skewed.time_ns[place] / ((1 - hot) * cold_ns + hot * hot_ns)))
        return factors

    def _interference(self) -> list[float]:
        """Returns for each test of a mix the logarithm of its time relative to that of its classes separately."""
        factors = []
        for place, (*at, depth) in enumerate(product(*(axis.knots for axis in self._mixed.axes))):
            additive_ns = self._additive_ns(at, self.depths.index(depth))
            factors.append(log(self._mixed.time_ns[place] / additive_ns))
        return factors

    def _arrival_factors(self) -> list[float]:
        """Returns for each test with arrivals the logarithm of its response time relative to that of the closed loops'
        rates.
        """
        whole = self._mixed.knots("range")[-1]
        factors = []
        for place, (*at, load) in enumerate(product(*(axis.knots for axis in self._open.axes))):
            rates = Rates(self.depths, self._mixed.curve(*at, whole))
            expected_ns = solve_open(Open(load * rates.most), rates).mean_ns
            factors.append(log(self._open.time_ns[place] / expected_ns))
        return factors

    def _additive_ns(self, at: Sequence[float], depth: int) -> float:
        """Returns the mean of the times of the classes in a test of a mix."""
        align, random, read, size, range_ = at
        time = 0.0
        for is_read, share in ((1.0, read), (0.0, 1 - read)):
            if share * random > 0:
                time += share * random * self._random.curve(align, is_read, size, range_)[depth]
            if share * (1 - random) > 0:
                streams = self._sequential.knots("streams")[0]
                time += share * (1 - random) * self._sequential.curve(is_read, size, streams, 0.0)[depth]
        return time


def operation(read: Axis, environment: Environment, request_class: RequestClass) -> int:
    """Returns the index of the tests of reads or of writes. Raises ``InputError`` if there are none."""
    if float(request_class.is_read) not in read.knots:
        raise InputError(f"{environment.name}: contains writes, but only reads were tested")
    return read.knots.index(float(request_class.is_read))


def size_text(environment: Environment, size_bytes: int) -> str:
    """Describes a size outside the range."""
    return f"{environment.name}: size: {size_bytes} bytes"


def kinds_of(table: Table) -> list[int]:
    """Returns a number for each test without its depth, equal for those that differ only in size or load."""
    axes = [axis for axis in table.axes if axis.name != "depth"]
    numbers: dict[tuple[float, ...], int] = {}
    apart = [n for n, axis in enumerate(axes) if axis.name not in ("size", "load")]
    return [
        numbers.setdefault(tuple(at[n] for n in apart), len(numbers)) for at in product(*(axis.knots for axis in axes))
    ]


def joined(terms: Iterable[tuple[int, float]]) -> Terms:
    """Merges equal places."""
    weights: dict[int, float] = {}
    for place, weight in terms:
        weights[place] = weights.get(place, 0.0) + weight
    return list(weights.items())
