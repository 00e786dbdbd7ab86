"""A phase of a job file that was carried out."""

from __future__ import annotations

from dataclasses import dataclass

from headstack.measurement.jobfiles.phases import JobPhase


@dataclass(frozen=True)
class Outcome:
    """A phase that was carried out."""

    phase: JobPhase
    """As it was: a point of a curve with its rates."""
    elapsed_s: float
    """From the start of the first phase to its end."""
