"""``SystemTwin``: the simulator's latencies of healthy disks, from a calibrated model or a drive of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import polars as pl

from headstack._native import InputError
from headstack.catalogue.system import load_system
from headstack.simulation.runs import run

REQUESTS, WARM_UP = "2000", "200"
"""Length of a run: means are within about 3 % of those of longer ones."""
DEPTH_MAX = 256


class SystemTwin:
    """A system that is simulated under loads near the observed ones: random requests in a closed loop."""

    def __init__(self, system: str) -> None:
        """Raises ``InputError`` if there is no such system."""
        load_system(system)
        self.system = system
        self._cached_mean_s = cache(self._mean_s)

    def latency_s(self, stream: str, depth: float, size_bytes: float | None, read_share: float) -> float | None:
        """Returns the mean latency of a kind of request; ``None`` if the size is unknown, or the kind does not occur.

        It is interpolated between depths that are powers of two; sizes are rounded to one, shares to 0.25.
        """
        share = round(4 * read_share) / 4
        never = {"read": 0.0, "write": 1.0}.get(stream)
        if size_bytes is None or not size_bytes > 0 or share == never:
            return None
        size = 2 ** min(max(round(math.log2(size_bytes)), 9), 22)
        at = math.log2(min(max(depth, 1.0), DEPTH_MAX))
        low, part = int(at), at - int(at)
        below = self._cached_mean_s(stream, 2**low, size, share)
        if below is None or not part:
            return below
        above = self._cached_mean_s(stream, 2 ** (low + 1), size, share)
        return None if above is None else below * (above / below) ** part

    def _mean_s(self, stream: str, depth: int, size: int, share: float) -> float | None:
        read = f"{100 * share:g}%"
        try:
            results = run(
                self.system,
                depth=str(depth),
                size=f"{size}B",
                read=read,
                random="100%",
                requests=REQUESTS,
                warm_up=WARM_UP,
            )
        except InputError:
            # No such request fits the system.
            return None
        (row,) = results
        if stream == "all":
            return float(row["mean_ms"]) / 1e3
        of = pl.DataFrame(results.histograms()).filter(kind=stream, figure="latency")
        total, count = of.select((pl.col("middle_ms") * pl.col("count")).sum(), pl.col("count").sum()).row(0)
        return total / count / 1e3 if count else None


def twins_of(named: Sequence[str]) -> dict[str, SystemTwin]:
    """Returns twins by model, from texts ``MODEL=SYSTEM``; a ``SYSTEM`` without model applies to disks of unknown
    model.
    """
    twins: dict[str, SystemTwin] = {}
    for text in named:
        model, equals, system = text.rpartition("=")
        if model in twins:
            raise InputError(f"--twin: {model or 'disks without a model'}: two calibrated models; give one for each")
        twins[model] = SystemTwin(system if equals else text)
    return twins
