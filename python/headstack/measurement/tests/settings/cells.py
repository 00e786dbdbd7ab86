"""Cells of the plan: loads that are run once or in rounds, and the figures that they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstack.results.results import Results
from headstack.results.words import percentile_of

KIB = 1 << 10


@dataclass(frozen=True)
class Stream:
    """Requests of one size, in a closed loop or at a rate."""

    size_bytes: int
    read_percent: int = 100
    random_percent: int = 100
    depth: int = 1
    rate_per_s: float | None = None
    """Rate of an open loop; ``None`` for a closed loop at ``depth``."""
    flush_every: int = 0
    pointers: int = 1
    """Number of sequential streams; requests go to them in turn."""
    part: tuple[int, int] = (0, 1)
    """Number of this part of the used range, and the number of parts."""

    @property
    def arrivals(self) -> Mapping[str, Any]:
        """The arrivals in the form of a workload."""
        if self.rate_per_s is not None:
            return {"open": {"rate_per_s": self.rate_per_s, "process": "poisson"}}
        return {"closed": {"queue_depth": self.depth, "think": "none"}}

    @property
    def line(self) -> Mapping[str, Any]:
        """Size, kind and randomness in the form of a workload."""
        size = f"{self.size_bytes}B"
        return {
            "size": size,
            "read_percent": self.read_percent,
            "random_percent": self.random_percent,
            "align": size,
        }


@dataclass(frozen=True)
class Cell:
    """Streams that run at the same time."""

    name: str
    streams: tuple[Stream, ...]

    @property
    def writes(self) -> bool:
        """Whether the cell changes the contents."""
        return any(stream.read_percent < 100 for stream in self.streams)


@dataclass(frozen=True)
class Reading:
    """The figures of one run of a cell."""

    results: Results
    """The results of this run alone."""

    @property
    def _whole(self) -> Mapping[str, Any]:
        return self.results.whole(0)

    @property
    def seconds(self) -> float:
        """Duration, in s."""
        return float(self._whole["duration_ns"]) / 1e9

    def per_s(self, kind: str) -> float:
        """Returns the completed requests of a kind (``read``, ``write``, ``flush``) per second."""
        return float(self._whole["kinds"][kind]["count"]) / self.seconds

    def bytes_per_s(self, kind: str) -> float:
        """Returns the throughput of a kind, in bytes/s."""
        return float(self._whole["kinds"][kind]["bytes"]) / self.seconds

    def percentile_ms(self, kind: str, percent: float) -> float:
        """Returns a percentile of the latency of a kind, in ms; 0 if no request completed."""
        return percentile_of(self._whole["kinds"][kind]["latency"], percent / 100) or 0.0

    @property
    def log(self) -> Sequence[float]:
        """IOPS in each complete interval."""
        intervals = self.results.intervals_of(0)
        longest = max((row["duration_s"] for row in intervals), default=0.0)
        return [row["iops"] for row in intervals if row["duration_s"] > 0.99 * longest]
