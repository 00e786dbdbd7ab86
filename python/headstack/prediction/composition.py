"""``Composition``: characterizations of arrays composed from the tests of their member drive.

The time of an array's test is computed from the member's tests and the layout: the commands of a request, the members
they go to, and the queue at each. Some of the array's own tests, 12.5 % of them and half as long, give corrections for
its controller, links and cache, which are interpolated linearly. The total error is determined by random environments,
as for any system: they run on the array itself.
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.prediction.environment import Closed, Environment, Open, Spread
from headstack.prediction.grid import (
    CLOSED,
    MIXED,
    OPEN,
    PAGE,
    RANDOM,
    SEQUENTIAL,
    SKEWED,
    Axes,
    Axis,
    Bench,
    Progress,
    Table,
    axes_of,
    run_closed_loops,
    run_open_loops,
)
from headstack.prediction.loops import Rates, solve_open
from headstack.prediction.model import Model
from headstack.prediction.request_class import RequestClass

ENVIRONMENTS = 64
"""Number of random environments for an array: 12 of each kind, which is enough for an interval."""
FORK = 0.25
"""Relative delay of the last of several answers for each doubling of their number: 0.5 for two exponential times, 0 for
constant ones. This value in between is corrected by the array's own tests."""


class Controller(NamedTuple):
    """Service times of a controller."""

    request_ns: float
    """Time for each request."""
    command_ns: float
    """Time for each command to a member."""
    processors: int

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> Controller:
        """Returns the controller of an array's description."""
        return cls(description["request_ns"], description["command_ns"], description["processors"])


@dataclass(frozen=True)
class Layout:
    """Maps requests to commands of members."""

    members: int
    data: int
    """Number of members that hold data of a stripe."""
    parity: int
    copies: int
    unit_bytes: int
    member_bytes: float
    """Bytes of each member that are used."""
    controller: Controller

    @classmethod
    def of(cls, system: Array) -> Layout | None:
        """Returns the layout of an array with one RAID group of identical drives; ``None`` for any other."""
        description = system.description
        groups, controller = description["groups"], description["controller"]
        if len(groups) != 1 or len(description["devices"]) != 1 or groups[0]["pool"] is not None:
            return None
        group = groups[0]
        count, spans = len(group["members"]), group["spans"]
        shape = stripe_of(group["level"], count // spans)
        if shape is None:
            return None
        data, parity, copies = shape
        used = Bench.of(system).capacity_bytes * (data + parity) * copies / data / count
        return cls(count, data, parity, copies, group["chunk_bytes"], used, Controller.of(controller))

    def commands(self, size: float, is_read: bool, align: float) -> tuple[float, float, float]:
        """Returns the reads and the writes of members for a request, and the bytes of each."""
        unit = self.unit_bytes
        units = math.ceil(size / unit) if align >= unit else 1 + max(0.0, size - align) / unit
        touched = min(units, float(self.data))
        each = size / touched
        if is_read:
            return touched, 0.0, each
        if self.parity == 0:
            return 0.0, touched * self.copies, each
        if touched >= self.data:
            return 0.0, touched + self.parity, each
        # Reads the old data and parity, or the rest of the stripe, whichever is less; then writes the new ones.
        return min(touched + self.parity, self.data - touched), touched + self.parity, min(each, float(self.unit_bytes))


def stripe_of(level: str, members: int) -> tuple[int, int, int] | None:
    """Returns the numbers of members with data and with parity, and of copies, in a stripe."""
    coded = re.fullmatch(r"(\d+)\+(\d+)", level)
    if coded:
        return int(coded[1]), int(coded[2]), 1
    match level:
        case "raid0" | "jbod":
            return members, 0, 1
        case "raid1":
            return 1, 0, members
        case "raid10":
            return max(1, members // 2), 0, 2
        case "raid5" | "raid50":
            return members - 1, 1, 1
        case "raid6" | "raid60":
            return members - 2, 2, 1
    return None


def member_of(system: Array) -> Drive:
    """Returns a single member drive."""
    (device,) = system.description["devices"]
    kind = next(name for name in ("disk", "ssd", "volume") if name in device)
    return Drive(f"member of {system.name}", device[kind], kind=kind)


def compose_tables(
    bench: Bench, layout: Layout, member: Model, axes: Axes, progress: Progress | None
) -> dict[str, Table]:
    """Returns the tables of an array, from a few tests of its own."""
    report = progress or (lambda share: None)
    whole = {name: axes_of(name, axes, bench) for name in CLOSED}
    held_share = bench.held_bytes / bench.capacity_bytes
    few = {name: tuple(Axis(axis.name, _few(axis, held_share)) for axis in of) for name, of in whole.items()}
    short = replace(axes, requests=axes.requests // 2)
    # Writes to a hot part only reach their steady rate once a cache has seen all of it: these tests have full length.
    hot = {SKEWED: few.pop(SKEWED)}
    own = run_closed_loops(bench, short, few, lambda share: report(0.6 * share))
    own |= run_closed_loops(bench, axes, hot, lambda share: report(0.6 + 0.2 * share))
    array = Composition(layout, member, bench.block_bytes)
    tables = {name: corrected(of, own[name], partial(array.time_ns, name)) for name, of in whole.items()}
    thin = replace(short, loads=_few(Axis("load", axes.loads), held_share))
    arrivals = run_open_loops(bench, thin, own[MIXED], lambda share: report(0.8 + 0.2 * share))
    mixed = tables[MIXED]
    shares = Axis("random", tuple(mixed.knots("random")[n] for n in axes.open_shares))
    of = (mixed.axes[0], shares, mixed.axes[2], mixed.axes[3], Axis("load", axes.loads))
    depths, range_ = mixed.knots("depth"), mixed.knots("range")[-1]

    def waiting_ns(at: dict[str, float]) -> float:
        rates = Rates(depths, mixed.curve(at["align"], at["random"], at["read"], at["size"], range_))
        return float(solve_open(Open(at["load"] * rates.most), rates).mean_ns)

    return tables | {OPEN: corrected(of, arrivals, waiting_ns)}


def _few(axis: Axis, held_share: float) -> tuple[float, ...]:
    """Returns the knots of an axis at which the array itself is tested."""
    knots = axis.knots
    last, middle = len(knots) - 1, len(knots) // 2
    match axis.name:
        case "depth":
            chosen = {*range(0, last, 2), last}
        case "range":
            # The cache's capacity is between two of them.
            beyond = min(bisect_left(knots, held_share), last)
            chosen = {0, max(0, beyond - 1), beyond, last}
        case "streams":
            chosen = {0, last}
        case "read":
            # With a few reads between writes, the cache is never empty.
            chosen = {0, min(1, last), middle, last}
        case "align" | "size" | "switch" | "random" | "hot" | "load":
            chosen = {0, middle, last}
        case name:
            raise AssertionError(name)
    return tuple(knots[n] for n in sorted(chosen))


@dataclass(frozen=True)
class Composition:
    """Computes tests of an array from those of its member."""

    layout: Layout
    member: Model
    block_bytes: int

    def time_ns(self, table: str, at: dict[str, float]) -> float:
        """Returns the time per request of one test."""
        if table == SKEWED:
            size = {"size": self.member.skewed_bytes, "align": float(PAGE)}
            whole = self.time_ns(RANDOM, at | size | {"range": 1.0})
            return (1 - at["hot"]) * whole + at["hot"] * self.time_ns(RANDOM, at | size)
        layout, depth = self.layout, at["depth"]
        random = {RANDOM: 1.0, SEQUENTIAL: 0.0}.get(table, at.get("random", 0.0))
        align = max(at.get("align", 512.0), self.block_bytes)
        shares: dict[tuple[float, bool, bool], float] = {}
        together = commands = alone = 0.0
        for is_read, share in ((True, at["read"]), (False, 1 - at["read"])):
            if share == 0:
                continue
            reads, writes, each = layout.commands(at["size"], is_read, align)
            for count, command_reads in ((reads, True), (writes, False)):
                for is_random, part in ((True, random), (False, 1 - random)):
                    if count * part > 0:
                        key = (each, command_reads, is_random)
                        shares[key] = shares.get(key, 0.0) + share * part * count
            commands += share * (reads + writes)
            together += share * max(reads, writes)
            # Reads precede the writes that need them, and the last of several answers determines the time.
            alone += share * sum(1 + FORK * math.log2(max(1.0, count)) for count in (reads, writes) if count > 0)
        busy = float(layout.members)
        if random == 0:
            # Sequential streams occupy as many members as their outstanding requests span.
            busy = min(busy, at.get("streams", 1.0) + depth * at["size"] / layout.unit_bytes) if depth > 1 else 1.0
            busy = max(busy, together)
        waiting = depth * together / busy
        service_ns = [self._member_ns(shares, at, max(1.0, held)) for held in (1.0, waiting)]
        controller = layout.controller
        overhead_ns = controller.request_ns + commands * controller.command_ns
        first_ns = alone * service_ns[0] + overhead_ns
        # With identical members, each request waits for those before it on the same member.
        time_ns = (first_ns + (depth - 1) * commands * service_ns[1] / busy) / depth
        return float(max(time_ns, overhead_ns / controller.processors))

    def _member_ns(self, shares: dict[tuple[float, bool, bool], float], at: dict[str, float], depth: float) -> float:
        """Returns the time per command of a member at a queue depth."""
        sizes, depths = self.member.sizes_bytes, self.member.depths
        total = sum(shares.values())
        classes = tuple(
            RequestClass(share / total, round(min(max(size, sizes[0]), sizes[-1])), is_read, is_random)
            for (size, is_read, is_random), share in shares.items()
        )
        used = min(self.layout.member_bytes, self.member.capacity_bytes)
        environment = Environment(
            "member",
            classes,
            Closed(depth),
            spread=(Spread(1.0, max(used * at.get("range", 1.0), self.member.least_range_bytes)),),
            streams=int(at.get("streams", 1)) if at.get("switch", 0.0) > 0 else 1,
            switch_share=at.get("switch", 0.0),
            align_bytes=PAGE if at.get("align", 512.0) >= PAGE else 512,
        )
        return self.member.service_at_ns(self.member.blend(environment), min(depth, depths[-1]))


def corrected(axes: tuple[Axis, ...], own: Table, prior: Callable[[dict[str, float]], float]) -> Table:
    """Returns a table of ``prior`` at all knots, multiplied by the interpolated errors of the tests in ``own``."""
    names = [axis.name for axis in axes]
    off = [
        math.log(time_ns / prior(dict(zip(names, at, strict=True))))
        for time_ns, at in zip(own.time_ns, itertools.product(*(axis.knots for axis in own.axes)), strict=True)
    ]
    time_ns, half, bottleneck, shape = [], [], [], []
    for at in itertools.product(*(axis.knots for axis in axes)):
        around = _around(own.axes, at)
        time_ns.append(prior(dict(zip(names, at, strict=True))) * math.exp(sum(w * off[place] for place, w in around)))
        half.append(sum(weight * own.half_width[place] for place, weight in around))
        nearest = max(around, key=lambda term: term[1])[0]
        bottleneck.append(own.bottleneck[nearest])
        shape.append(
            [sum(weight * own.shape[place][n] for place, weight in around) for n in range(len(own.shape[nearest]))]
        )
    return Table(axes, time_ns, half, bottleneck, shape)


def _around(axes: tuple[Axis, ...], at: Sequence[float]) -> list[tuple[int, float]]:
    """Returns the tests around a point with their weights: linear in shares and switches, otherwise in logarithms."""
    places = [(0, 1.0)]
    for axis, value in zip(axes, at, strict=True):
        knots = axis.knots
        upper = min(bisect_left(knots, value), len(knots) - 1)
        ends = [(upper, 1.0)]
        if knots[upper] != value and upper > 0:
            low, high = knots[upper - 1], knots[upper]
            scale = math.log if low > 0 and axis.name not in ("read", "random", "load") else float
            share = (scale(value) - scale(low)) / (scale(high) - scale(low))
            ends = [(upper - 1, 1 - share), (upper, share)]
        places = [(place * len(knots) + knot, weight * part) for place, weight in places for knot, part in ends]
    return places
