"""``Bounds``: upper bounds on the throughput of a number of drives, from low-level tests of one drive and the layout of
requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headstack import _native
from headstack._native import Level
from headstack.choice.blueprint import Blueprint, system_blueprint
from headstack.choice.job import Job
from headstack.choice.simulated import Carried, Points
from headstack.choice.space import Candidate, Model
from headstack.prediction.composition import Controller, Layout
from headstack.prediction.request_class import RequestClass
from headstack.simulation.chunks.chunk import Chunk
from headstack.simulation.chunks.chunked import finish, rows

SHARES = (1 / 16, 1 / 4, 1.0)
"""Tested shares of a drive; the next smaller one than the used share, on which the drive is faster, gives the bound."""
DEPTH = 64
REQUESTS = 2000
OPTIONS = ("range", "depth", "requests", "warm_up", "seed")
"""Options of a test."""
SLACK = 2.0
"""Factor by which a drive of an array may exceed it: commands are shorter than requests, a write after a read goes to
the same place, and a controller sorts writes. A bound must not exclude a valid system, so it is wide."""
CARRIES = 1.15
"""Factor by which a system that was overloaded may exceed its throughput in another question: a short run has an error
of some percent, and with 10 % less of the drives in use, seeks are some percent shorter."""


@dataclass
class Bounds:
    """Bounds for the candidates of a job."""

    job: Job
    store: Any = None
    executor: str = "local"
    carried: Carried = field(default_factory=Carried)
    progress: Callable[[float], object] | None = None
    """Called with the share of the tests that is done."""
    _rates: dict[tuple[str, float, bool], float] = field(default_factory=dict)

    @property
    def rate_per_s(self) -> float | None:
        """The required requests per second; ``None`` if the job does not state them."""
        if self.job.demand.rate_per_s is not None:
            return self.job.demand.rate_per_s
        return max((limit.value for limit in self.job.limits if limit.figure == "iops"), default=None)

    @property
    def classes(self) -> tuple[RequestClass, ...]:
        """The requests that cannot be merged: the random ones."""
        return tuple(one for one in self.job.demand.classes if one.is_random)

    def test(self, models: Sequence[Model]) -> None:
        """Tests all drives together: reads and writes of the job at its queue depth, over parts of the drive."""
        if self.rate_per_s is None or not self.classes:
            return
        chunks: list[Chunk] = []
        keys: list[tuple[Any, ...]] = []
        for model in models:
            system = system_blueprint(model.drive.path or model.name)
            for is_read in sorted({one.is_read for one in self.classes}):
                points = Points(model.name, system, self._mix(is_read), (), OPTIONS)
                values = [
                    [f"0%..{100 * share:g}%", str(DEPTH), str(REQUESTS), str(REQUESTS // 4), "1"] for share in SHARES
                ]
                chunks.append(Chunk.of(points.asked(values), len(keys)))
                keys += [(model.name, share, is_read) for share in SHARES]
        paths = finish(iter(chunks), len(keys), store=self.store, executor=self.executor, progress=self.progress)
        found = [row[0] for row in rows(paths, ("iops",))]
        self._rates |= {key: iops for key, iops in zip(keys, found, strict=True) if iops}

    def _mix(self, is_read: bool) -> Blueprint:
        """Returns a workload with the reads or the writes of the job, all of them random."""
        own = [one for one in self.classes if one.is_read == is_read]
        total = sum(one.share for one in own)
        lines = "\n".join(
            f'[[lines]]\nsize = "{one.size_bytes}B"\nshare_percent = {100 * one.share / total:.6f}\n'
            f"read_percent = {100 * is_read}\nrandom_percent = 100"
            for one in own
        )
        return {"kind": "workload", "text": f'name = "low-level test"\n{lines}\n', "drives": {}}

    def busy(self, candidate: Candidate) -> float | None:
        """Returns a lower bound on the utilization of its drives, 1 being full; ``None`` if there is no bound."""
        model, rate = candidate.family.model, self.rate_per_s
        if model is None or rate is None or not self.classes:
            return None
        layout = self._layout(candidate)
        used = min(1.0, self.job.stored_bytes / candidate.usable_bytes) if not self.job.spread else 1.0
        share = max((one for one in SHARES if one <= used), default=SHARES[0])
        spent = 0.0
        for one in self.classes:
            if layout is not None:
                reads, writes, _ = layout.commands(one.size_bytes, one.is_read, 4096.0)
            else:
                # A read of a record needs at least one drive; writes are aggregated.
                reads, writes = float(one.is_read), 0.0
            for count, is_read in ((reads, True), (writes, False)):
                # A write that starts with a read does so even if only writes were tested.
                at = self._rates.get((model.name, share, is_read)) or self._rates.get((model.name, share, one.is_read))
                if at is None:
                    return None
                spent += rate * one.share * count / at
        return spent / candidate.drives

    def _layout(self, candidate: Candidate) -> Layout | None:
        """Returns the layout that maps requests to commands of drives; ``None`` for a level that stores records."""
        host = candidate.family.host
        assert host is not None
        shape = Level(candidate.level).stripe(candidate.drives // candidate.spans)
        if shape is None:
            return None
        data, parity, copies = shape
        unit = dict(candidate.family.settings).get("stripe unit", host.stripe_unit)
        unit_bytes = _native.parse_bytes(unit) if unit else 64 << 10
        return Layout(candidate.drives, data, parity, copies, unit_bytes, 0.0, Controller(0.0, 0.0, 1))

    def first(self, members: Sequence[Candidate]) -> int:
        """Returns the first of a family, by number of drives, that the bounds do not exclude."""
        for place, candidate in enumerate(members):
            busy = self.busy(candidate)
            if (busy is None or busy <= SLACK) and (self.rate_per_s or 0) <= CARRIES * self.carried.most(candidate):
                return place
        return len(members)
