"""What hosts have measured, on one time, with what is known of their clocks and of those that are missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headstack import _native
from headstack.hosts.clock import Ahead, Reading, ahead_at
from headstack.jobfiles.targets import called
from headstack.results import SHOWN_STREAMS, Results, Shown, described

HOSTS_TOLD = 8
"""So many hosts have a remark of their own on their clocks."""
WRONG_NS = 1_000_000
"""A clock that is wrong by less is as right as NTP makes it on most networks."""


@dataclass(frozen=True)
class Part:
    """What one host has measured in one round."""

    began_ns: int
    """When, by its own clock."""
    whole: str
    """The result as JSON."""
    labels: dict[str, str]


@dataclass
class Round:
    """A run that begins on all hosts at one moment."""

    start_ns: int
    """The moment, by our clock."""
    ended_early: str | None = None


@dataclass(frozen=True)
class Lost:
    """Since when a host is missing, and why."""

    why: str
    round: int
    """The first run that it has not measured, or not to its end."""
    since_s: float | None
    """After the start of that; absent where it did not begin it."""
    completed: int
    """Requests that it had completed in that, as far as it had said."""

    def told(self, host: str, number: int) -> str:
        """In words, of the run of that number."""
        if self.since_s is None or number > self.round:
            return f"{host}: missing from the start: {self.why}"
        return f"{host}: missing since {self.since_s:.2f} s after the start: {self.why}"

    def facts(self, number: int) -> list[tuple[str, float]]:
        """As figures of the host."""
        if self.since_s is None or number > self.round:
            return [("missing_since_s", 0.0)]
        return [("missing_since_s", round(self.since_s, 6)), ("requests_lost", float(self.completed))]


@dataclass(frozen=True)
class Measured:
    """A host with all that it has measured."""

    host: str
    parts: Sequence[tuple[int, Part]]
    """Each with the number of its round."""
    readings: Sequence[Reading]
    lost: Lost | None


@dataclass(frozen=True)
class _Placed:
    """A part on our time."""

    host: str
    part: Part
    began_ns: int
    error_ns: int
    late_ns: int
    """When it began, after the moment that was agreed."""
    before: Reading
    after: Reading

    @classmethod
    def of(cls, one: Measured, part: Part, start_ns: int) -> _Placed:
        ahead: Ahead = ahead_at(one.readings, part.began_ns)
        began_ns = part.began_ns - ahead.ns
        before = max((r for r in one.readings if r.at_ns <= began_ns), key=lambda r: r.at_ns, default=one.readings[0])
        after = min((r for r in one.readings if r.at_ns > began_ns), key=lambda r: r.at_ns, default=before)
        return cls(one.host, part, began_ns, ahead.error_ns, began_ns - start_ns, before, after)

    @property
    def drift_ns(self) -> int | None:
        """How far its clock went away from ours from before the run to behind it."""
        return None if self.after is self.before else self.after.ahead_ns - self.before.ahead_ns

    def facts(self) -> list[tuple[str, float]]:
        """What is known of its time, as figures."""
        whole = json.loads(self.part.whole)
        found = [
            ("measured_s", whole["duration_ns"] / 1e9),
            ("began_after_us", self.late_ns / 1e3),
            ("clock_within_us", self.error_ns / 1e3),
            ("clock_ahead_ms", self.before.wall_ahead_ns / 1e6),
        ]
        drift_ns = self.drift_ns
        return found if drift_ns is None else [*found, ("clock_drift_us", drift_ns / 1e3)]

    def told(self) -> str | None:
        """That its time of day is not ours, where that is so."""
        ahead_ns = self.before.wall_ahead_ns
        if abs(ahead_ns) < max(WRONG_NS, 2 * self.before.error_ns):
            return None
        way = "ahead of" if ahead_ns > 0 else "behind"
        error_ms = self.before.error_ns / 1e6
        return (
            f"{self.host}: its clock is {abs(ahead_ns) / 1e6:.3f} ms {way} ours, ± {error_ms:.3f} ms: it is allowed for"
        )


class HostResults(Results):
    """For each round a run of all hosts together, whose streams are the hosts, and then that of each."""

    def __init__(self, native: _native.Results, swept: Sequence[str], rounds: Sequence[int]) -> None:
        super().__init__(native, swept)
        self._rounds = list(rounds)
        """The runs of all hosts together."""

    def together(self) -> Results:
        """The runs of all hosts together, which say what any of them failed in."""
        return self.chosen(self._rounds)

    def shown_streams(self) -> tuple[list[Shown], list[list[str]]]:
        """The hosts of each run of all together, with what is known of their clocks."""
        columns = [column for column in SHOWN_STREAMS if column.name != "system"]
        columns = [replace(column, heading="host") if column.name == "stream" else column for column in columns]
        rows = [
            stream | {"run": run + 1, "facts": described(stream["facts"])}
            for run in self._rounds
            for stream in self.streams_of(run)
        ]
        return columns, [[column.format(row[column.name]) for column in columns] for row in rows]


def joined(rounds: Sequence[Round], measured: Sequence[Measured], swept: Sequence[str]) -> HostResults:
    """What all rounds have come to."""
    results: _native.Results | None = None
    together = []
    for number, one in enumerate(rounds):
        found = _round(number, one, measured)
        if found is not None:
            together.append(0 if results is None else len(results))
            results = found if results is None else results.and_(found)
    assert results is not None, "some host has measured something"
    return HostResults(results, swept, together)


def _round(number: int, one: Round, measured: Sequence[Measured]) -> _native.Results | None:
    placed = [_Placed.of(host, part, one.start_ns) for host in measured for at, part in host.parts if at == number]
    if not placed:
        return None
    lost = {host.host: host.lost for host in measured if host.lost is not None and host.lost.round <= number}
    words = [loss.told(host, number) for host, loss in lost.items()]
    there = {part.host for part in placed}
    done = [host for host in measured if host.host not in there and host.lost is None]
    first: dict[str, Any] = json.loads(placed[0].part.whole)
    asked = {
        "name": called([host.host for host in measured]),
        "labels": list(placed[0].part.labels.items()),
        "clients": None,
        "interval_ns": first["intervals"][0]["duration_ns"] if first["intervals"] else None,
        "ended_early": one.ended_early or ("; ".join(words) or None),
        "notes": [
            *words,
            *(f"{host.host}: was done after {len(host.parts)} runs" for host in done),
            *_of_clocks(placed),
        ],
        "runs": [
            {"host": part.host, "began_ns": part.began_ns, "facts": part.facts(), "result": part.part.whole}
            for part in placed
        ],
        "missing": [(host, loss.facts(number)) for host, loss in lost.items() if host not in there],
    }
    return _native.join_hosts(json.dumps(asked))


def _of_clocks(placed: Sequence[_Placed]) -> list[str]:
    """Whose clock is wrong, and when all began."""
    wrong = [words for part in placed if (words := part.told()) is not None]
    if len(wrong) > HOSTS_TOLD:
        wrong = [
            *wrong[:HOSTS_TOLD],
            f"the clocks of {len(wrong) - HOSTS_TOLD} more hosts are not ours: see clock_ahead_ms",
        ]
    late_ms = max(part.late_ns for part in placed) / 1e6
    error_ms = max(part.error_ns for part in placed) / 1e6
    drifts = [abs(part.drift_ns) for part in placed if part.drift_ns is not None]
    drift = f"no clock went away by more than {max(drifts) / 1e6:.3f} ms meanwhile" if drifts else "drift is not known"
    began = f"the last began {late_ms:.3f} ms after the agreed moment, by clocks known to ± {error_ms:.3f} ms"
    return [*wrong, f"{len(placed)} hosts: {began}; {drift}"]
