"""``examine``: chooses the phase of a disk in question and the one to compare it with, and weighs the suspects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from headstack.diagnosis.judging.suspects.facts import Change, Facts, change_of, log_ratio
from headstack.diagnosis.judging.suspects.limits import Limit, limit_for
from headstack.diagnosis.judging.suspects.phases import Phase, phases_of
from headstack.diagnosis.judging.suspects.record import Record
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.suspects.weighing import weigh
from headstack.diagnosis.judging.verdict import Weighed

WORSE = math.log(1.3)
"""Growth of latency from which a phase is in question: double the tolerance of the comparison at equal load."""
LESS = math.log(1.15)
"""Loss of rate from which it is."""
AGAIN = 0.35
"""Difference of the logarithms of latencies of two episodes of one kind."""


class Course(NamedTuple):
    """The phases of a disk."""

    phases: list[Phase]

    @property
    def now(self) -> Phase:
        return self.phases[-1]


class Examined(NamedTuple):
    """The suspects for a disk, and the phase in question."""

    weighed: tuple[Weighed, ...]
    """All suspects, the likeliest first."""
    facts: Facts

    @property
    def rests_on(self) -> str:
        """How much data the answer rests on, in words."""
        now, before = self.facts.now, self.facts.before
        said = _extent(now)
        return said if before is None else f"{said}, compared with {_extent(before)} before"


def _extent(phase: Phase) -> str:
    seconds = phase.length_s
    long = (
        f"{seconds / 3600:.1f} h"
        if seconds >= 7200
        else f"{seconds / 60:.0f} min"
        if seconds >= 120
        else f"{seconds:.0f} s"
    )
    count = f"{phase.intervals:.0f} interval" + "s" * (phase.intervals != 1)
    return f"{count} of {long}" if phase.intervals == 1 else f"{count} in {long}"


def examine(
    records: Mapping[tuple[str, str], Record],
    slower: Mapping[tuple[str, str], float],
    limits: Mapping[str, Limit],
    statements: Sequence[Statement] = (),
) -> dict[tuple[str, str], Examined]:
    """Weighs the suspects for every disk with requests. ``slower`` has the logarithm of the slowdown of disks with an
    alarm at equal load, ``statements`` what the inputs report of disks besides."""
    courses = {key: Course(phases) for key, record in records.items() if (phases := phases_of(record.rows()))}
    chosen = {key: _choose(course.phases) for key, course in courses.items()}
    examined = {}
    for key, (now, before, has_ended, episodes) in chosen.items():
        stated = tuple(of for of in statements if of.concerns(key[1]))
        facts = Facts(key[1], now, before, limit_for(key[1], limits), slower.get(key), statements=stated)
        if before is None:
            others = tuple(of.now for other, of in chosen.items() if other != key and other[0] == key[0])
            facts = replace(facts, others=others)
        # An alarm at equal load is about this disk alone, and lasts; the phases of its load do not matter then.
        if key not in slower:
            facts = replace(facts, together=_together(key, chosen), has_ended=has_ended, episodes=episodes)
        examined[key] = Examined(weigh(facts), facts)
    return examined


class Choice(NamedTuple):
    """The phase in question."""

    now: Phase
    before: Phase | None
    has_ended: bool = False
    episodes: int = 1


def _choose(phases: Sequence[Phase]) -> Choice:
    """Returns the last phase if it is worse than an earlier one, else the worst earlier one."""
    for end in range(len(phases), 1, -1):
        before = _better(phases[:end])
        if before is not None:
            now = phases[end - 1]
            is_last = end == len(phases) or _better([now, *phases[end:]]) is not None
            return Choice(now, before, not is_last, _episodes(phases, before, now))
    return Choice(phases[-1], phases[-2] if len(phases) > 1 else None)


def _better(phases: Sequence[Phase]) -> Phase | None:
    """Returns the earlier phase than the last one with the lowest latency, if the last is worse than it; else the one
    of the highest rate, if the last has less."""
    *earlier, now = phases
    if not earlier:
        return None
    changes = [(change_of(phase, now), phase) for phase in earlier]
    slower = max(changes, key=lambda of: of[0].latency)
    if slower[0].latency > WORSE:
        return slower[1]
    fewer = min(changes, key=lambda of: of[0].rate)
    return fewer[1] if fewer[0].rate < -LESS else None


def _episodes(phases: Sequence[Phase], before: Phase, now: Phase) -> int:
    """Returns how often a phase like this one came, with better ones between."""

    def is_like(phase: Phase) -> bool:
        change: Change = change_of(before, phase)
        return change.latency > WORSE and abs(log_ratio(phase.latency_s, now.latency_s)) < AGAIN

    likes = [is_like(phase) for phase in phases]
    return max(1, sum(like and not was for like, was in zip(likes, [False, *likes[:-1]], strict=True)))


def _together(key: tuple[str, str], chosen: Mapping[tuple[str, str], Choice]) -> float:
    """Returns the share of the other disks of a host that became slower within the same phase."""
    host, disk = key
    now = chosen[key].now
    others = [choice for (of, name), choice in chosen.items() if of == host and name != disk]
    if len(others) < 2:
        return 0.0
    apart_s = 3.0 * now.length_s / now.intervals

    def is_same(choice: Choice) -> bool:
        if choice.before is None or abs(choice.now.start_s - now.start_s) > apart_s:
            return False
        return change_of(choice.before, choice.now).latency > WORSE

    return sum(map(is_same, others)) / len(others)
