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
from headstack.choice.simulations import OverloadRates, Points
from headstack.choice.space import Candidate, Model
from headstack.prediction.composition import Controller, Layout
from headstack.prediction.request_class import RequestClass
from headstack.simulation.chunks.chunk import Chunk
from headstack.simulation.chunks.chunked import finish, rows

SHARES = (1 / 16, 1 / 4, 1.0)
"""Tested shares of a drive. The bound is from the next share below the used share, where the drive is faster."""
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
    overload_rates: OverloadRates = field(default_factory=OverloadRates)
    progress: Callable[[float], object] | None = None
    """Callback for the completed share of the tests."""
    _iops_by_test: dict[tuple[str, float, bool], float] = field(default_factory=dict)

    @property
    def rate_per_s(self) -> float | None:
        """Required requests per second; ``None`` if the job has no rate."""
        if self.job.demand.rate_per_s is not None:
            return self.job.demand.rate_per_s
        return max((limit.value for limit in self.job.limits if limit.figure == "iops"), default=None)

    @property
    def classes(self) -> tuple[RequestClass, ...]:
        """Classes of random requests, which cannot be merged."""
        return tuple(request_class for request_class in self.job.demand.classes if request_class.is_random)

    def test(self, models: Sequence[Model]) -> None:
        """Tests all drives together: reads and writes of the job at its queue depth, over parts of the drive."""
        if self.rate_per_s is None or not self.classes:
            return
        chunks: list[Chunk] = []
        keys: list[tuple[Any, ...]] = []
        for model in models:
            system = system_blueprint(model.drive.path or model.name)
            for is_read in sorted({request_class.is_read for request_class in self.classes}):
                points = Points(model.name, system, self._mix(is_read), (), OPTIONS)
                values = [
                    [f"0%..{100 * share:g}%", str(DEPTH), str(REQUESTS), str(REQUESTS // 4), "1"] for share in SHARES
                ]
                chunks.append(Chunk.of(points.chunk_content(values), len(keys)))
                keys += [(model.name, share, is_read) for share in SHARES]
        paths = finish(iter(chunks), len(keys), store=self.store, executor=self.executor, progress=self.progress)
        iops_by_test = [row[0] for row in rows(paths, ("iops",))]
        self._iops_by_test |= {key: iops for key, iops in zip(keys, iops_by_test, strict=True) if iops}

    def _mix(self, is_read: bool) -> Blueprint:
        """Returns a workload with the reads or the writes of the job, all of them random."""
        classes = [request_class for request_class in self.classes if request_class.is_read == is_read]
        total = sum(request_class.share for request_class in classes)
        lines = "\n".join(
            f'[[lines]]\nsize = "{request_class.size_bytes}B"\n'
            f"share_percent = {100 * request_class.share / total:.6f}\n"
            f"read_percent = {100 * is_read}\nrandom_percent = 100"
            for request_class in classes
        )
        return {"kind": "workload", "text": f'name = "low-level test"\n{lines}\n', "drives": {}}

    def busy(self, candidate: Candidate) -> float | None:
        """Returns a lower bound on the utilization of the candidate's drives, from 0 to 1; ``None`` without a bound."""
        model, rate = candidate.family.model, self.rate_per_s
        if model is None or rate is None or not self.classes:
            return None
        layout = self._layout(candidate)
        used = min(1.0, self.job.stored_bytes / candidate.usable_bytes) if not self.job.spread else 1.0
        share = max((request_class for request_class in SHARES if request_class <= used), default=SHARES[0])
        drive_seconds = 0.0
        for request_class in self.classes:
            if layout is not None:
                reads, writes, _ = layout.commands(request_class.size_bytes, request_class.is_read, 4096.0)
            else:
                # A read of a record needs at least one drive; writes are aggregated.
                reads, writes = float(request_class.is_read), 0.0
            for count, is_read in ((reads, True), (writes, False)):
                # A write that starts with a read does so even if only writes were tested.
                drive_iops = self._iops_by_test.get((model.name, share, is_read)) or self._iops_by_test.get(
                    (model.name, share, request_class.is_read)
                )
                if drive_iops is None:
                    return None
                drive_seconds += rate * request_class.share * count / drive_iops
        return drive_seconds / candidate.drives

    def _layout(self, candidate: Candidate) -> Layout | None:
        """Returns the layout that maps requests to commands of drives; ``None`` for a level that stores records."""
        host = candidate.family.host
        assert host is not None
        shape = Level(candidate.level).stripe(candidate.drives // candidate.spans)
        if shape is None:
            return None
        data, parity, copies = shape
        unit = dict(candidate.family.settings).get("chunk size", host.chunk_size)
        unit_bytes = _native.parse_bytes(unit) if unit else 64 << 10
        return Layout(candidate.drives, data, parity, copies, unit_bytes, 0.0, Controller(0.0, 0.0, 1))

    def first(self, members: Sequence[Candidate]) -> int:
        """Returns the smallest number of drives of a family that the bounds do not exclude."""
        for place, candidate in enumerate(members):
            busy = self.busy(candidate)
            if (busy is None or busy <= SLACK) and (self.rate_per_s or 0) <= CARRIES * self.overload_rates.max_rate(
                candidate
            ):
                return place
        return len(members)
