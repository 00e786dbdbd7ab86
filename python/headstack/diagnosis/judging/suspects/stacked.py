"""``Stack``: devices built from others (md, dm), compared with the disks below: requests that wait in between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.suspects.statements import Statement

ABOVE = 5.0
"""Ratio of latencies from which requests wait above the disks: a small write of RAID 6 takes two rounds of its members,
each as long as the slowest of them, so 2 to 3 times the mean of one."""
LEAST_S = 0.001
"""Latency of the upper device from which waiting above the disks matters."""
IDLE = 0.3
"""Utilization below which the disks are not what the upper device waits for: at random arrivals a request then waits
0.4 service times on average (M/M/1)."""

Figures = Mapping[str, float | None]


@dataclass
class Waited:
    """Sums over intervals."""

    requests: float = 0.0
    wait_s: float = 0.0
    busy_s: float = 0.0
    length_s: float = 0.0

    def add(self, figures: Figures, length_s: float) -> None:
        """Adds an interval."""
        for count, latency in (("reads", "read_latency_s"), ("writes", "write_latency_s")):
            if figures.get(latency) is not None:
                self.requests += figures.get(count) or 0.0
                self.wait_s += (figures.get(count) or 0.0) * (figures[latency] or 0.0)
        if figures.get("reads") is None and figures.get("latency_s") is not None:
            self.requests += figures.get("requests") or 0.0
            self.wait_s += (figures.get("requests") or 0.0) * (figures["latency_s"] or 0.0)
        self.busy_s += (figures.get("busy") or 0.0) * length_s
        self.length_s += length_s

    @property
    def latency_s(self) -> float:
        return self.wait_s / self.requests if self.requests else 0.0

    @property
    def busy(self) -> float:
        return self.busy_s / self.length_s if self.length_s else 0.0


@dataclass
class Stack:
    """Sums over devices built from others, and over the disks observed with them."""

    upper: dict[str, Waited] = field(default_factory=lambda: defaultdict(Waited))
    disks: dict[str, Waited] = field(default_factory=lambda: defaultdict(Waited))

    def add(self, devices: Mapping[str, Figures], disks: Iterable[str], length_s: float) -> None:
        """Adds an interval of devices, of which ``disks`` are judged."""
        judged = set(disks)
        if judged >= devices.keys():
            return
        for name, figures in devices.items():
            (self.disks if name in judged else self.upper)[name].add(figures, length_s)

    def statements(self) -> list[Statement]:
        """Returns where requests wait, if that is above the disks."""
        used_disks = {name: disk for name, disk in self.disks.items() if disk.requests > 0}
        if not used_disks:
            return []
        slowest = max(used_disks, key=lambda name: used_disks[name].latency_s)
        busiest = max(self.disks, key=lambda name: self.disks[name].busy)
        return [
            _statement(name, device, (slowest, used_disks[slowest]), (busiest, self.disks[busiest].busy))
            for name, device in self.upper.items()
            if device.latency_s >= LEAST_S and device.latency_s >= ABOVE * used_disks[slowest].latency_s
        ]


def _statement(name: str, device: Waited, slow: tuple[str, Waited], used: tuple[str, float]) -> Statement:
    (slowest, disk), (busiest, busy) = slow, used
    evidence = (
        f"requests of {name} take {time_text(device.latency_s)}, those of the slowest disk ({slowest}) "
        f"{time_text(disk.latency_s)}, and the disks are at most {busy:.0%} busy: requests wait above the disks"
    )
    if busy < IDLE:
        weights = {"host": 4.0, "device": -4.0, "limit": -2.0, "neighbour": -2.0, "queue": -1.0}
        return Statement(name, evidence, weights, is_for_all=True, source="iostat")  # type: ignore[arg-type]
    # Disks that work serve what the layer above passes on: more is used_disks than they take at once.
    weights = {"queue": 1.5, "device": -3.0, "neighbour": -1.0, "none": 1.0}
    return Statement(busiest, evidence, weights, source="iostat")  # type: ignore[arg-type]
