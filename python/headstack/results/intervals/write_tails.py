"""`WRITE_TAILS`: 99th percentile of random writes to a worn-in data-center NVMe SSD below saturation.

Measured models have one of two ranges, depending on when their firmware collects garbage, which no data sheet states.
An interval around one simulated value cannot express this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headstack.catalogue.options import Spec
from headstack.results.intervals.calibration import Load
from headstack.results.intervals.workloads import MOSTLY, flash_state

KNEE = 0.92
"""Share of the saturated write rate up to which the ranges hold. Above it, writes wait for the buffer, and the queue
depth determines their latency. The knees of two measured models are at 92 to 98 %."""


class WriteTails(NamedTuple):
    """The ranges of the 99th percentile of writes, in µs, and how many makers have them."""

    paced_us: tuple[float, float]
    """Range for drives that collect garbage at the rate of the host's writes."""
    bursts_us: tuple[float, float]
    """Range for drives that collect garbage in bursts, from 15 % of the saturated write rate."""
    slower_reads: tuple[int, int]
    """Factors by which bursts lengthen the 99th percentile of reads."""
    makers: int
    in_bursts: int
    """Number of makers whose drives collect in bursts."""

    def contains(self, p99_us: float) -> bool:
        """Whether a measured percentile is in one of the ranges.

        >>> from headstack.results.intervals.write_tails import WRITE_TAILS
        >>> [WRITE_TAILS.contains(p99_us) for p99_us in (5, 50, 500, 5000, 50000)]
        [False, True, False, True, False]
        """
        return any(low <= p99_us <= high for low, high in (self.paced_us, self.bursts_us))

    def __str__(self) -> str:
        paced, bursts = (
            f"{low / unit:g} to {high / unit:g} {name}"
            for (low, high), unit, name in ((self.paced_us, 1, "µs"), (self.bursts_us, 1e3, "ms"))
        )
        return (
            f"write p99 is {paced} if the drive paces garbage collection ({self.makers - self.in_bursts} of "
            f"{self.makers} makers), or {bursts} if it collects in bursts ({self.in_bursts} of {self.makers}), where "
            f"read p99 is {self.slower_reads[0]} to {self.slower_reads[1]} times as long"
        )


WRITE_TAILS = WriteTails((14, 330), (700, 13_000), (3, 10), makers=3, in_bursts=1)
"""The extremes of five units of four models (PCIe 4.0, 2021 to 2024) under a probe of reads and writes next to random
4 KiB writes at fixed rates (Haas and others, PVLDB 18(11), 2025). If a model is left out, the ranges of the others
contain 69 % of its percentiles on average (80 % of all), so expect exceptions."""


def write_tails(of_class: str, spec: Spec, row: Mapping[str, float | None]) -> WriteTails | None:
    """Returns the ranges for a run; ``None`` if it does not write at random, or the SSD is of another class, not in
    steady state, or saturated."""
    workload = spec.get("workload", {})
    lines = workload.get("lines", ())
    writes = [line for line in lines if line["read_percent"] < 100 and line["random_percent"] >= MOSTLY]
    is_worn_in = flash_state(Load("write", 1, 4096), spec) == "steady"
    utilization = row.get("utilization_percent") or 0.0
    if of_class != "data-center-nvme" or not writes or not is_worn_in or utilization >= 100 * KNEE:
        return None
    return WRITE_TAILS
