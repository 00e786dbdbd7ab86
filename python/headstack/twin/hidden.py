"""Evaluation of calibrated models of hidden devices on workloads that no probe runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np

from headstack.twin.device import READ, WRITE, Answers, Requests, SimulatedDevice
from headstack.twin.learnt import Learnt, System


class Cell(TypedDict):
    """A figure of the hidden device and of its model, on one workload."""

    workload: str
    kind: str
    """``read``, ``write`` or ``mix``."""
    depth: int
    size_bytes: int
    figure: str
    """One of ``FIGURES``."""
    log_ratio: float
    """Natural logarithm of hidden over model."""
    spread: float
    """Standard deviation of the logarithm over the sample."""


FIGURES: Final = ("rate", "mean", "p50", "p99")
SPREAD_OF: Final = 8
"""Number of descriptions of the sample to run: enough for a standard deviation within 25 %."""
SETTLING_SHARE: Final = 0.05
"""Share of the capacity: drives keep a few of hundreds of blocks of each die collected."""
SETTLING_BYTES: Final = 16384


@dataclass(frozen=True)
class HeldOut:
    """A workload that no probe runs: random, with a share of reads, at a depth."""

    name: str
    kind: str
    """``read``, ``write`` or ``mix``."""
    depth: int
    size_bytes: int
    count: int
    reads: float = 1.0
    settled: bool = False
    """Whether it runs in steady state: flash after random overwrites, a volume without credits."""
    spread_count: int | None = None
    """Number of requests for the sample's spread, if fewer suffice."""

    def requests(self, capacity_bytes: int, random: np.random.Generator, count: int | None = None) -> Requests:
        """Returns requests within a capacity, ``count`` of them or the default number."""
        count = count or self.count
        places = random.integers(0, max(1, capacity_bytes // self.size_bytes), count) * self.size_bytes
        kinds = np.where(random.random(count) < self.reads, READ, WRITE)
        return Requests.of(kinds, places, self.size_bytes, depth=self.depth)


def figures(answers: Answers) -> dict[str, float]:
    """Returns requests per second, and mean and percentiles of response times."""
    took = answers.response_ns
    return {
        "rate": answers.per_s,
        "mean": float(took.mean()),
        "p50": float(np.median(took)),
        "p99": float(np.quantile(took, 0.99)),
    }


def settled(system: System) -> System:
    """Returns flash in the state after random overwrites, and a volume without credits; other systems unchanged."""
    other = copy.deepcopy(system)
    for device in other["array"]["devices"] if "array" in other else [other["drive"]]:
        if "ssd" in device:
            device["ssd"]["state"] = "steady"
        for limit in device.get("volume", {}).get("limits", ()):
            limit["burst"] = None
    return other


def _steady(system: System, seed: int) -> SimulatedDevice | None:
    """Returns an SSD in the steady state of random overwrites; ``None`` for other systems."""
    if "ssd" not in system.get("drive", {}):
        return None
    device = SimulatedDevice(settled(system), seed=seed)
    # Blocks collected ahead are used up first: until then it is faster than in steady state.
    count = max(1, int(SETTLING_SHARE * device.capacity_bytes) // SETTLING_BYTES)
    places = np.random.default_rng(seed).integers(0, device.capacity_bytes // SETTLING_BYTES, count) * SETTLING_BYTES
    device.ask(Requests.writes(places, SETTLING_BYTES, depth=32))
    return device


def score(
    hidden: System,
    learnt: Learnt,
    seed: int,
    workloads: Sequence[HeldOut],
    prepared: Callable[[SimulatedDevice], object] | None = None,
) -> list[Cell]:
    """Returns the cells of every workload, each on a fresh device on which only ``prepared`` ran requests. Workloads in
    the steady state of an SSD, which takes long to reach, run in order on one drive."""
    figures_by_system: list[list[dict[str, float]]] = []
    for place, system in enumerate([hidden, learnt.best, *learnt.sample[:SPREAD_OF]]):
        steady = _steady(system, seed) if any(workload.settled for workload in workloads) else None
        rows = []
        for number, workload in enumerate(workloads):
            if workload.settled and steady is not None:
                device = steady
            else:
                device = SimulatedDevice(settled(system) if workload.settled else system, seed=seed + number)
            if prepared is not None:
                prepared(device)
            count = workload.count if place < 2 else workload.spread_count
            random = np.random.default_rng((seed, number))
            rows.append(figures(device.ask(workload.requests(device.capacity_bytes, random, count))))
        figures_by_system.append(rows)
    cells: list[Cell] = []
    for number, workload in enumerate(workloads):
        for figure in FIGURES:
            logs = np.log([rows[number][figure] for rows in figures_by_system])
            spread = float(np.std(logs[2:])) if len(logs) > 3 else 0.0
            cells.append(
                {
                    "workload": workload.name,
                    "kind": workload.kind,
                    "depth": workload.depth,
                    "size_bytes": workload.size_bytes,
                    "figure": figure,
                    "log_ratio": float(logs[0] - logs[1]),
                    "spread": spread,
                }
            )
    return cells
