"""What other hosts' clocks say when ours says something, and how far that may be wrong.

As in NTP, a message goes there and comes back: the other clock was read somewhere between the two ends, and nobody
knows where, so that half of the way's length is how far the middle may be off. Of many trips the shortest says most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TRIPS = 24
"""So many there and back: the shortest of them had to wait for nobody."""


@dataclass(frozen=True)
class Trip:
    """A message there and back, in ns."""

    sent_ns: int
    """By our clock."""
    came_ns: int
    """By theirs, the one that measurements go by."""
    left_ns: int
    """By theirs: when the answer went off."""
    back_ns: int
    """By ours."""
    our_wall_ns: int
    """Our time of day when it was sent."""
    their_wall_ns: int
    """Their time of day when it came."""
    looking_ns: int = 0
    """How long it took both to look at their two clocks one after the other."""

    @property
    def way_ns(self) -> int:
        """There and back, without the time that they took to answer.

        >>> Trip(0, 1_050, 1_060, 110, 0, 0).way_ns
        100
        """
        return (self.back_ns - self.sent_ns) - (self.left_ns - self.came_ns)


@dataclass(frozen=True)
class Reading:
    """What another host's clocks were found to say."""

    at_ns: int
    """When, by our clock."""
    ahead_ns: int
    """Their clock of measurements less ours: of any size, since each counts from its own start."""
    error_ns: int
    """By how much that may be wrong either way, and ``wall_ahead_ns`` too."""
    wall_ahead_ns: int
    """Their time of day less ours."""


def reading_of(trips: Sequence[Trip]) -> Reading:
    """What the shortest of several trips says.

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
    """How far another clock was ahead of ours at a moment."""

    ns: int
    error_ns: int


def ahead_at(readings: Sequence[Reading], their_ns: int) -> Ahead:
    """How far a clock was ahead when it said ``their_ns``, between the readings before and after that, or as the one
    reading there is says. Clocks drift evenly, as far as anybody can tell from two readings.

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
