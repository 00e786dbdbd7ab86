"""``Outcome``: a phase of a job file that was run."""

from __future__ import annotations

from dataclasses import dataclass

from headstack.measurement.jobfiles.phases import JobPhase


@dataclass(frozen=True)
class Outcome:
    """A phase that was run."""

    phase: JobPhase
    """The phase with its actual values; a point of a curve has its rates."""
    elapsed_s: float
    """Time from the start of the first phase to the end of this phase."""
