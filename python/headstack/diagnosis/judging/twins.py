"""``SystemTwin``: the simulator's latencies of healthy disks, from a calibrated model or a drive of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import polars as pl

from headstack._native import InputError
from headstack.catalogue.system import load_system
from headstack.diagnosis.judging.expectation import Expected
from headstack.results.intervals.described import described
from headstack.simulation.runs import run

REQUESTS, WARM_UP = "2000", "200"
"""Length of a run: means are within about 3 % of those of longer ones."""
DEPTH_MAX = 256
SHARES = 20
"""Shares of reads are rounded to 1/20: intervals were learned from workloads of at least 80 % of a kind."""
SIZES = 4
"""Sizes are rounded to four per factor of two, which changes a transfer by at most 9 %."""


class SystemTwin:
    """A system that is simulated under loads near the observed ones: random requests in a closed loop."""

    def __init__(self, system: str) -> None:
        """Raises ``InputError`` if there is no such system."""
        loaded = load_system(system)
        self.system = system
        # Disks in use are worn in. The state of a calibrated model is that of its measurements.
        is_worn = "ssd" in loaded.system.get("drive", {}) and not described(loaded).is_twin
        self._worn: dict[str, Any] = {"state": "steady"} if is_worn else {}
        self._cached_mean = cache(self._mean)

    def expected(self, stream: str, depth: float, size_bytes: float | None, read_share: float) -> Expected | None:
        """Returns the mean latency of a kind of request with the model's error; ``None`` if the size is unknown, or the
        kind does not occur.

        It is interpolated between depths that are powers of two.
        """
        share = round(SHARES * read_share) / SHARES
        never = {"read": 0.0, "write": 1.0}.get(stream)
        if size_bytes is None or not size_bytes > 0 or share == never:
            return None
        rounded = 2 ** (round(SIZES * math.log2(min(max(size_bytes, 512.0), 2.0**22))) / SIZES)
        size = 512 * round(rounded / 512)
        at = math.log2(min(max(depth, 1.0), DEPTH_MAX))
        low, part = int(at), at - int(at)
        below = self._cached_mean(stream, 2**low, size, share)
        if below is None or not part:
            return below
        above = self._cached_mean(stream, 2 ** (low + 1), size, share)
        return None if above is None else below.towards(above, part)

    def _mean(self, stream: str, depth: int, size: int, share: float) -> Expected | None:
        try:
            results = run(
                self.system,
                depth=str(depth),
                size=f"{size}B",
                read=f"{100 * share:g}%",
                random="100%",
                requests=REQUESTS,
                warm_up=WARM_UP,
                **self._worn,
            )
        except InputError:
            # No such request fits the system.
            return None
        (row,) = results
        mean_s = float(row["mean_ms"]) / 1e3
        high_ms, why = row.get("mean_model_high_ms"), row.get("model_error") or "not known"
        apart, level = (None, None) if high_ms is None else (math.log(high_ms / row["mean_ms"]), row["model_level"])
        if stream != "all":
            of = pl.DataFrame(results.histograms()).filter(kind=stream, figure="latency")
            total, count = of.select((pl.col("middle_ms") * pl.col("count")).sum(), pl.col("count").sum()).row(0)
            if not count:
                return None
            mean_s = total / count / 1e3
        return Expected(mean_s, apart, level, why.removeprefix("no interval: ").split("; ")[0])


def twins_of(named: Sequence[str]) -> dict[str, SystemTwin]:
    """Returns twins by disk or model, from texts ``DISK=SYSTEM`` or ``MODEL=SYSTEM``; a ``SYSTEM`` alone applies to
    disks of unknown model.
    """
    twins: dict[str, SystemTwin] = {}
    for text in named:
        model, equals, system = text.rpartition("=")
        if model in twins:
            raise InputError(f"--twin: {model or 'disks without a model'}: two calibrated models; give one for each")
        twins[model] = SystemTwin(system if equals else text)
    return twins
