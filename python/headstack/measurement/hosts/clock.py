"""Offsets between our clock and those of other hosts, with bounds on their errors.

As in NTP, a message makes a round trip. The other clock was read at an unknown time within it, so the midpoint is
wrong by at most half of the round trip. The shortest of many round trips gives the best bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TRIPS = 24
"""Number of round trips, enough for the shortest to be free of queueing."""


@dataclass(frozen=True)
class Trip:
    """A round trip of a message, with times in ns."""

    sent_ns: int
    """Time of sending, by our clock."""
    came_ns: int
    """Time of arrival, by the other host's monotonic clock."""
    left_ns: int
    """Time of the answer, by the other host's clock."""
    back_ns: int
    """Time of the answer's arrival, by our clock."""
    our_wall_ns: int
    """Our time of day at sending."""
    their_wall_ns: int
    """Time of day of the other host at arrival."""
    looking_ns: int = 0
    """Total time that both hosts took to read their two clocks one after the other."""

    @property
    def way_ns(self) -> int:
        """The round trip without the time between arrival and answer.

        >>> Trip(0, 1_050, 1_060, 110, 0, 0).way_ns
        100
        """
        return (self.back_ns - self.sent_ns) - (self.left_ns - self.came_ns)


@dataclass(frozen=True)
class Reading:
    """A reading of another host's clocks."""

    at_ns: int
    """Time of the reading, by our clock."""
    ahead_ns: int
    """Monotonic clock of the other host minus ours; any value, because each clock counts from its own start."""
    error_ns: int
    """Maximum error of ``ahead_ns`` and ``wall_ahead_ns``, in either direction."""
    wall_ahead_ns: int
    """Time of day of the other host minus ours."""


def reading_of(trips: Sequence[Trip]) -> Reading:
    """Returns the reading of the shortest of several round trips.

    >>> reading_of([Trip(0, 1_050, 1_060, 110, 0, 7_050), Trip(0, 1_500, 1_510, 1_010, 0, 0)])
    Reading(at_ns=55, ahead_ns=1000, error_ns=50, wall_ahead_ns=7000)
    """
    best = min(trips, key=lambda trip: trip.way_ns + trip.looking_ns)
    half_ns = -(-best.way_ns // 2)
    return Reading(
        at_ns=(best.sent_ns + best.back_ns) // 2,
        ahead_ns=((best.came_ns - best.sent_ns) + (best.left_ns - best.back_ns)) // 2,
        error_ns=half_ns + best.looking_ns,
        wall_ahead_ns=best.their_wall_ns - best.our_wall_ns - half_ns,
    )


@dataclass(frozen=True)
class Ahead:
    """The offset of another clock at a moment."""

    ns: int
    error_ns: int


def ahead_at(readings: Sequence[Reading], their_ns: int) -> Ahead:
    """Returns the offset of a clock at ``their_ns``, interpolated between the readings before and after (linear drift),
    or taken from a single reading.

    >>> ahead_at([Reading(0, 100, 5, 0), Reading(1_000, 140, 7, 0)], 620)
    Ahead(ns=120, error_ns=7)
    >>> ahead_at([Reading(0, 100, 5, 0)], 900)
    Ahead(ns=100, error_ns=5)
    """
    before = max((r for r in readings if r.at_ns + r.ahead_ns <= their_ns), key=lambda r: r.at_ns, default=readings[0])
    after = min((r for r in readings if r.at_ns + r.ahead_ns > their_ns), key=lambda r: r.at_ns, default=before)
    between_ns = (after.at_ns + after.ahead_ns) - (before.at_ns + before.ahead_ns)
    if between_ns <= 0:
        return Ahead(before.ahead_ns, before.error_ns)
    passed = (their_ns - before.at_ns - before.ahead_ns) / between_ns
    drift_ns = after.ahead_ns - before.ahead_ns
    return Ahead(before.ahead_ns + round(drift_ns * passed), max(before.error_ns, after.error_ns))
