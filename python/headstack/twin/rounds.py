"""Comparison of a real device with its calibrated model: workloads that no probe runs, measured in rounds, with the
variation between rounds.

Reads are measured before any write. The writes of all rounds follow in random order, and one of them, the anchor, is
repeated among them: its rate is the same each time, unless the state of the device moved, for example because its SLC
cache was used up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headstack.results.intervals.calibration import Learnt as Within
from headstack.results.intervals.calibration import Load, twin_scores
from headstack.twin.device import Device, SimulatedDevice
from headstack.twin.hidden import FIGURES, SPREAD_OF, HeldOut, figures
from headstack.twin.learning import Calibration

ROUNDS = 3
NINE_OF_TEN = 1.645
"""Standard deviations that contain 90 % of a normal distribution."""
READS = (
    HeldOut("reads alone", "read", 1, 8192, 1500),
    HeldOut("reads alone", "read", 1, 32768, 1500),
    HeldOut("reads", "read", 2, 8192, 2500),
    HeldOut("reads", "read", 3, 4096, 3000),
    HeldOut("reads", "read", 6, 16384, 4000),
    HeldOut("reads", "read", 8, 8192, 5000),
    HeldOut("reads", "read", 12, 4096, 8000),
    HeldOut("reads", "read", 24, 8192, 10000),
    HeldOut("long reads", "read", 2, 65536, 2000),
    HeldOut("long reads", "read", 8, 131072, 2000),
    HeldOut("long reads", "read", 4, 1 << 19, 800),
    HeldOut("reads", "read", 48, 4096, 12000),
)
"""Workloads if writing is not permitted."""
WRITES = (
    HeldOut("writes alone", "write", 1, 8192, 1500, reads=0.0),
    HeldOut("writes", "write", 6, 16384, 4000, reads=0.0),
    HeldOut("mix", "mix", 4, 8192, 4000, reads=0.7),
    HeldOut("mix", "mix", 16, 4096, 8000, reads=0.5),
)
"""Replacements for the last four reads if writing is permitted."""


def held_out(may_write: bool) -> tuple[HeldOut, ...]:
    """Returns twelve workloads."""
    return (*READS[: len(READS) - len(WRITES)], *WRITES) if may_write else READS


ANCHOR = HeldOut("anchor", "write", 16, 16384, 4000, reads=0.0)
"""Writes that saturate a drive, hence show its state."""
CELLS_PER_ANCHOR = 4
"""Number of other writes between two anchors."""
ANCHORS_APART = 0.15
"""Relative difference between two anchors at which the state of the device moved; 1 to 3 % in one state."""
STATES_APART = 3.0
"""Ratio of the fastest to the slowest anchor at which the device alternates between two states."""

Round = list[dict[str, float]]
"""Figures of each workload, as in ``hidden.figures``."""


@dataclass(frozen=True)
class Rounds:
    """Figures of several rounds, and the state of the device while it was written."""

    rounds: list[Round]
    anchors: list[float]
    """Rate of each anchor, in order; empty if nothing was written."""

    @property
    def moved(self) -> str:
        """How the device's state moved while it was written; empty if it did not."""
        if not self.anchors or max(self.anchors) <= (1 + ANCHORS_APART) * min(self.anchors):
            return ""
        low, high = min(self.anchors), max(self.anchors)
        cell = f"write, depth {ANCHOR.depth}, {ANCHOR.size_bytes // 1024} KiB"
        if high > STATES_APART * low:
            fast = [rate for rate in self.anchors if rate**2 > low * high]
            slow = [rate for rate in self.anchors if rate**2 <= low * high]
            levels = f"{float(np.median(fast)):,.0f}/s and {float(np.median(slow)):,.0f}/s"
            return (
                f"the drive's state changed between writes: {cell} ran at {levels} ({len(slow)} of {len(self.anchors)})"
            )
        return f"the drive's state moved between writes: {cell} ran at {low:,.0f} to {high:,.0f}/s"


def measure_rounds(
    device: Device,
    workloads: Sequence[HeldOut],
    rounds: int = ROUNDS,
    seed: int = 1,
    progress: Callable[[str, float], object] | None = None,
    anchored: bool = False,
) -> Rounds:
    """Runs all workloads several times: reads in turn, so that changes over time appear between rounds, then writes in
    random order, with anchors if ``anchored``."""
    cells: dict[tuple[int, int], dict[str, float]] = {}

    def measure(number: int, index: int) -> None:
        if progress is not None:
            progress(f"held out, round {number + 1} of {rounds}", 0.0)
        random = np.random.default_rng((seed, number, index))
        cells[number, index] = figures(device.ask(workloads[index].requests(device.capacity_bytes, random)))

    writes = [index for index, workload in enumerate(workloads) if workload.kind != "read"]
    for number, index in itertools.product(range(rounds), range(len(workloads))):
        if index not in writes:
            measure(number, index)
    order = list(itertools.product(range(rounds), writes))
    random = np.random.default_rng(seed)
    anchors = []
    for at, cell in enumerate(random.permutation(len(order))):
        if anchored and at % CELLS_PER_ANCHOR == 0:
            anchors.append(device.ask(ANCHOR.requests(device.capacity_bytes, random)).per_s)
        measure(*order[cell])
    if anchored and order:
        anchors.append(device.ask(ANCHOR.requests(device.capacity_bytes, random)).per_s)
    table = [[cells[number, index] for index in range(len(workloads))] for number in range(rounds)]
    return Rounds(table, anchors)


def repeats(rounds: Sequence[Round], figure: str) -> list[float]:
    """Returns the mean relative difference between two rounds for each workload, a lower bound on any model's error."""
    return [
        float(
            np.mean([abs(math.expm1(math.log(b[figure] / a[figure]))) for a, b in itertools.combinations(results, 2)])
        )
        for results in zip(*rounds, strict=True)
    ]


def chance(rounds: Sequence[Round], figure: str) -> float:
    """Returns the standard deviation of a figure's logarithm between rounds, pooled over all workloads since a few
    rounds of one are too few. Requires two rounds."""
    logarithms = np.log([[figures_of_workload[figure] for figures_of_workload in round_] for round_ in rounds])
    return float(np.sqrt(np.var(logarithms, axis=0, ddof=1).mean()))


@dataclass(frozen=True)
class RoundComparison:
    """A measured and a predicted figure of a workload."""

    workload: HeldOut
    figure: str
    measured: float
    """The median of the rounds."""
    predicted: float
    half_width: float | None
    """Half-width of the 90 % prediction interval for devices measured this many times, as a logarithm; ``None`` if
    refused.
    """
    why: str = ""
    """Reason of the refusal."""

    @property
    def error(self) -> float:
        """Predicted over measured, minus 1."""
        return self.predicted / self.measured - 1

    @property
    def is_within_interval(self) -> bool | None:
        """Whether the device is within the interval."""
        return None if self.half_width is None else abs(math.log(self.predicted / self.measured)) <= self.half_width


def compare_rounds(
    calibration: Calibration, workloads: Sequence[HeldOut], measured: Rounds, seed: int = 1
) -> list[RoundComparison]:
    """Compares the model's prediction for each workload with the measurement.

    The model's intervals are for a device measured without limit; the variation of the rounds, and of the model's own
    run of the same length, is added. Writes of a device whose state moved are refused.
    """
    rounds, moved = measured.rounds, measured.moved
    strays = {figure: NINE_OF_TEN * chance(rounds, figure) * math.sqrt(1 + 1 / len(rounds)) for figure in FIGURES}
    rows = []
    scores = twin_scores().get(calibration.family)
    for number, workload in enumerate(workloads):
        models = []
        for system in [calibration.learnt.best, *calibration.learnt.sample[:SPREAD_OF]]:
            device = SimulatedDevice(system, seed + number)
            random = np.random.default_rng((seed, number))
            models.append(figures(device.ask(workload.requests(device.capacity_bytes, random))))
        load = Load(workload.kind, workload.depth, workload.size_bytes)
        for figure in FIGURES:
            spread = float(np.std([math.log(model[figure]) for model in models[1:]])) if len(models) > 2 else 0.0
            interval = None if scores is None else scores.learnt(load, figure)
            width = math.hypot(interval.half_width(spread), strays[figure]) if isinstance(interval, Within) else None
            if moved and workload.kind != "read":
                width = None
            why = (
                f"{workload.kind}, depth {workload.depth}: {moved}"
                if moved and workload.kind != "read"
                else ""
                if width is not None
                else getattr(interval, "why", "there are no scores of calibrated models of this kind")
            )
            middle = float(np.median([row[number][figure] for row in rounds]))
            rows.append(RoundComparison(workload, figure, middle, models[0][figure], width, why))
    return rows
