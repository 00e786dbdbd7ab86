"""``FalseAlarms``: how many healthy disks a judgement is expected to call slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headstack.diagnosis.judging.verdict import SLOW, Verdict
from headstack.io.counts import agreed, counted

FALSE_ALARMS = 0.001
"""Default false alarms per drive-year."""
MONTHS_A_YEAR = 12.0


@dataclass(frozen=True)
class FalseAlarms:
    """Expected numbers of healthy disks called slow."""

    watched: int
    """Disks that are tested in every interval, by peers, their own past or a model. A single comparison with a model
    has the same result next month, so its doubt counts only among the disks called slow."""
    per_drive_year: float
    """The accepted rate."""
    slow: int
    """Disks called slow with a known confidence."""
    in_this_run: float
    """Expected number of healthy ones among these: the sum of one minus the confidence of each."""
    unknown: int
    """Disks called slow by a rule without a confidence."""

    @staticmethod
    def of(verdicts: Sequence[Verdict], per_drive_year: float) -> FalseAlarms:
        """Returns the false alarms to expect among verdicts."""
        slow = [verdict for verdict in verdicts if verdict.kind == SLOW]
        confidences = [verdict.confidence for verdict in slow if verdict.confidence is not None]
        watched = sum(verdict.method is not None and verdict.predicted is None for verdict in verdicts)
        doubt = sum(1.0 - confidence for confidence in confidences)
        return FalseAlarms(watched, per_drive_year, len(confidences), doubt, len(slow) - len(confidences))

    @property
    def a_month(self) -> float:
        """Expected false alarms in a month of watching these disks."""
        return self.watched * self.per_drive_year / MONTHS_A_YEAR

    def plain(self) -> dict[str, float]:
        """Returns the numbers for JSON."""
        return {"a_month": self.a_month, "in_this_run": self.in_this_run}

    def sentence(self) -> str | None:
        """Returns the numbers in a sentence; ``None`` if no disk was compared or called slow.

        >>> from headstack.diagnosis.judging.false_alarms import FalseAlarms
        >>> FalseAlarms(6000, 0.001, 12, 0.31, 0).sentence()
        'expect 0.5 false alarms a month among 6,000 disks, and 0.31 among the 12 disks called slow in this run'
        """
        parts = []
        if self.watched > 1:
            parts.append(f"{_alarms(self.a_month)} a month among {self.watched:,} disks")
        if self.slow:
            named = f"the {counted(self.slow, 'disk')} called slow in this run"
            amount = _number(self.in_this_run) if parts else _alarms(self.in_this_run)
            parts.append(f"{amount} among {named}")
        if not parts:
            return None
        unknown = f"; unknown for {self.unknown} more, {agreed(self.unknown, 'which was', 'which were')} never in order"
        return f"expect {', and '.join(parts)}{unknown if self.unknown else ''}"


def _number(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-5 else "less than 0.00001"


def _alarms(value: float) -> str:
    return f"{_number(value)} false alarm{'s' * (_number(value) != '1')}"
