"""Periodic results of a job file, as with fio's ``--status-interval``: cumulative from the start of the run, not from
the previous report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headstack import _native
from headstack.measurement.jobfiles.fio_json import bin_index, bin_middle_ns, entries, entries_of, head, is_loop

if TYPE_CHECKING:
    from headstack.measurement.jobfiles.fio_json import Fields
    from headstack.measurement.jobfiles.fio_logs import Row
    from headstack.measurement.jobfiles.job_file import JobFile
    from headstack.measurement.jobfiles.phase_results import PhaseResults
    from headstack.measurement.jobfiles.phases import JobPhase
    from headstack.measurement.specs import StoredHistogram, StoredKind

KINDS = ("read", "write", "trim", "flush")


@dataclass
class Histogram:
    """Latencies in fio's bins, as results store them."""

    count: int = 0
    sum_ns: int = 0
    sum_squares_ns2: int = 0
    min_ns: int = 0
    max_ns: int = 0
    bins: dict[int, int] = field(default_factory=dict)

    def add(self, ns: int) -> None:
        """Adds a request."""
        self.min_ns = ns if self.count == 0 else min(self.min_ns, ns)
        self.max_ns = max(self.max_ns, ns)
        self.count += 1
        self.sum_ns += ns
        self.sum_squares_ns2 += ns * ns
        middle_ns = bin_middle_ns(bin_index(ns))
        self.bins[middle_ns] = self.bins.get(middle_ns, 0) + 1

    def stored(self) -> StoredHistogram:
        """Returns the histogram in the form of results."""
        return {
            "count": self.count,
            "sum_ns": self.sum_ns,
            "sum_squares_ns2": self.sum_squares_ns2,
            "min_ns": self.min_ns,
            "max_ns": self.max_ns,
            "bins": sorted(self.bins.items()),
            "overflow": 0,
        }


@dataclass
class Counted:
    """Requests of one kind."""

    count: int = 0
    bytes: int = 0
    errors: int = 0
    latency: Histogram = field(default_factory=Histogram)
    service: Histogram = field(default_factory=Histogram)
    handing_over: Histogram = field(default_factory=Histogram)

    def stored(self) -> StoredKind:
        """Returns the requests in the form of results."""
        return {
            "count": self.count,
            "bytes": self.bytes,
            "errors": self.errors,
            "latency": self.latency.stored(),
            "service": self.service.stored(),
            "handing_over": self.handing_over.stored(),
        }


class Status:
    """Counts the requests of the current phase, and prints a status at each interval."""

    def __init__(self, every_s: float, tell: Callable[[Fields], object], plus: bool = False) -> None:
        self._every_s, self._tell, self._plus = every_s, tell, plus
        self._due_s = time.monotonic() + every_s
        self._began_s = time.monotonic()
        self._streams: dict[str, dict[str, Counted]] = {}

    def begin(self) -> None:
        """Begins a phase."""
        self._began_s = time.monotonic()
        self._streams = {}

    def take(self, file: JobFile, phase: JobPhase, rows: Iterable[Row], so_far: PhaseResults | None) -> None:
        """Adds completed requests of the phase; ``so_far`` has the results of earlier phases."""
        names = [name for copies in _native.phase_stream_names(phase) for name in copies]
        for name in names:
            self._streams.setdefault(name, {kind: Counted() for kind in KINDS})
        for index, kind, _, length, _, response_ns, failed, handing_ns in rows:
            counted = self._streams[names[index]][kind]
            if failed:
                counted.errors += 1
                continue
            counted.count += 1
            counted.bytes += length
            counted.latency.add(response_ns)
            counted.service.add(response_ns - handing_ns)
            if handing_ns > 0:
                counted.handing_over.add(handing_ns)
        now_s = time.monotonic()
        if now_s >= self._due_s:
            while self._due_s <= now_s:
                self._due_s += self._every_s
            self._tell(self._document(file, phase, so_far, now_s - self._began_s))

    def _document(self, file: JobFile, phase: JobPhase, so_far: PhaseResults | None, elapsed_s: float) -> Fields:
        document = head(file)
        done = (
            []
            if so_far is None
            else [
                entry
                for run, outcome in enumerate(so_far.outcomes)
                if not is_loop(outcome.phase)
                for entry in entries(so_far, run, self._plus)
            ]
        )
        streams = [
            {
                "name": name,
                "kinds": {kind: counted.stored() for kind, counted in kinds.items()},
                "facts": [{"name": "duration_s", "value": elapsed_s}],
            }
            for name, kinds in self._streams.items()
        ]
        result = {"duration_ns": int(elapsed_s * 1e9), "depth": {"time_at_depth_ns": []}}
        run = 0 if so_far is None else len(so_far)
        return {
            **document,
            "jobs": done + list(entries_of(file, phase, run, elapsed_s, streams, result, self._plus)),
            "disk_util": [],
        }
