"""``Statement``: what an input reports beside rates and latencies of disks, such as a running scrub or a hot device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headstack.diagnosis.judging.verdict import Suspect


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact about one disk, or about all disks of the input."""

    disk: str
    """The device, or the name to show if the input has no disks."""
    evidence: str
    """The fact with its figures, as a clause."""
    weights: Mapping[Suspect, float] = field(default_factory=dict)
    """Logarithms of likelihood ratios, relative to the other suspects."""
    is_for_all: bool = False
    """True for a fact of the host, such as the idle share of processors, which counts for every disk of the input."""
    source: str = ""
    """The program that printed it."""
    needed: str = ""
    """The input that would decide more."""

    def concerns(self, disk: str) -> bool:
        """Whether it is about a disk; a name of an NVMe controller is also that of its namespaces."""
        is_controller = self.disk.startswith("nvme") and disk.startswith(f"{self.disk}n")
        return self.is_for_all or disk == self.disk or is_controller


def evidence_of(suspect: Suspect, statements: Iterable[Statement]) -> str:
    """Returns the statements that speak for a suspect, in words; empty if there are none."""
    return "; ".join(dict.fromkeys(of.evidence for of in statements if of.weights.get(suspect, 0.0) > 0))
