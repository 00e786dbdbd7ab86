"""Results of several hosts on one time scale, with the errors of their clocks and the hosts that are missing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack._native import InputError
from headstack.io import tables
from headstack.io.json_text import page_of
from headstack.measurement.hosts.clock import Ahead, Reading, ahead_at
from headstack.measurement.hosts.host import Host
from headstack.measurement.jobfiles.fio_clients import Client, fio_clients
from headstack.measurement.jobfiles.job_file import JobFile
from headstack.measurement.jobfiles.targets import called
from headstack.results.columns import SHOWN_STREAMS, Shown
from headstack.results.results import Results
from headstack.results.table import described

if TYPE_CHECKING:
    from headstack.measurement.jobfiles.fio_json import Fields
    from headstack.measurement.jobfiles.phases import DiskUse

HOSTS_TOLD = 8
"""So many hosts have a remark of their own on their clocks."""
SSH_PORT = 22
WRONG_NS = 1_000_000
"""A clock that is wrong by less is as right as NTP makes it on most networks."""


@dataclass(frozen=True)
class Part:
    """The result of one host in one round."""

    began_ns: int
    """When, by its own clock."""
    whole: str
    """The result as JSON."""
    labels: dict[str, str]

    @cached_property
    def result(self) -> Mapping[str, Any]:
        """The result, as ``Results.whole`` has it."""
        result: Mapping[str, Any] = json.loads(self.whole)
        return result


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

    place: Host
    parts: Sequence[tuple[int, Part]]
    """Each with the number of its round."""
    readings: Sequence[Reading]
    lost: Lost | None
    disks: Sequence[DiskUse] = ()
    """The use of the disks below its targets, where it carried out a job file."""

    @property
    def host(self) -> str:
        """Its name."""
        return self.place.name


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
        """Facts about its clock, as figures."""
        whole = self.part.result
        found = [
            ("measured_s", whole["duration_ns"] / 1e9),
            ("began_after_us", self.late_ns / 1e3),
            ("clock_within_us", self.error_ns / 1e3),
            ("clock_ahead_ms", self.before.wall_ahead_ns / 1e6),
        ]
        drift_ns = self.drift_ns
        return found if drift_ns is None else [*found, ("clock_drift_us", drift_ns / 1e3)]

    def told(self) -> str | None:
        """A note where its time of day differs from ours."""
        ahead_ns = self.before.wall_ahead_ns
        if abs(ahead_ns) < max(WRONG_NS, 2 * self.before.error_ns):
            return None
        way = "ahead of" if ahead_ns > 0 else "behind"
        error_ms = self.before.error_ns / 1e6
        return (
            f"{self.host}: its clock is {abs(ahead_ns) / 1e6:.3f} ms {way} ours, ± {error_ms:.3f} ms: it is allowed for"
        )


@dataclass(frozen=True)
class SeenHost:
    """The clock of a host in one round, and whether the host is missing."""

    host: str
    began_after_us: float | None
    """When it began, after the agreed moment; absent where it did not."""
    clock_within_us: float | None
    """Bound on the error of that."""
    clock_ahead_ms: float | None
    """How far its time of day is ahead of ours."""
    clock_drift_us: float | None
    """How far its clock went away from ours meanwhile."""
    missing_since_s: float | None
    """Since when it is missing, after the start of the round: 0 where it never began; absent where it is not."""
    requests_lost: int
    """Requests that it had completed until then, which are in no other figure."""
    why: str | None
    """Why it is missing."""


class HostResults(Results):
    """For each round a run of all hosts together, whose streams are the hosts, and then that of each."""

    def __init__(
        self, native: _native.Results, swept: Sequence[str], rounds: Sequence[int], measured: Sequence[Measured]
    ) -> None:
        super().__init__(native, swept)
        self._rounds = list(rounds)
        """The runs of all hosts together."""
        self._measured = list(measured)
        self.remarks: list[str] = []
        """Remarks of hosts, such as what they do not do as job files ask."""
        self.files: dict[str, JobFile] = {}
        """The job file of each host that carried out one, by the host's name."""

    @property
    def rounds(self) -> int:
        """How many runs all hosts had together.

        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> hs.measure_hosts("a,b", "null:1ms", depth=[1, 2], time="200ms", ssh_command=shell).rounds
        2
        """
        return len(self._rounds)

    @property
    def missing(self) -> dict[str, str]:
        """The hosts that failed, each with why.

        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> hs.measure_hosts("a,b", "null:1ms", time="200ms", ssh_command=shell).missing
        {}
        """
        return {one.host: one.lost.why for one in self._measured if one.lost is not None}

    def hosts(self, number: int = 0) -> tuple[SeenHost, ...]:
        """What is known of the hosts in a round, the first unless another is named: their clocks, and who is missing.

        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> results = hs.measure_hosts("a,b", "null:1ms", time="200ms", ssh_command=shell)
        >>> [(seen.host, seen.missing_since_s) for seen in results.hosts()]
        [('a', None), ('b', None)]
        """
        streams = {stream["stream"]: stream["facts"] for stream in self.streams_of(self._rounds[number])}
        seen = []
        for one in self._measured:
            facts = streams.get(one.host, {})
            # A host that went missing in a later round was still there in this.
            is_missing = "missing_since_s" in facts or (one.lost is not None and one.lost.round <= number)
            seen.append(
                SeenHost(
                    one.host,
                    began_after_us=facts.get("began_after_us"),
                    clock_within_us=facts.get("clock_within_us"),
                    clock_ahead_ms=facts.get("clock_ahead_ms"),
                    clock_drift_us=facts.get("clock_drift_us"),
                    missing_since_s=facts.get("missing_since_s", 0.0 if is_missing else None),
                    requests_lost=int(facts.get("requests_lost", 0)),
                    why=one.lost.why if is_missing and one.lost is not None else None,
                )
            )
        return tuple(seen)

    def fio_json(self, plus: bool = False) -> Fields:
        """What ``fio --client=... --output-format=json`` prints: an entry for each job of each host, and one of all
        clients; with ``plus`` that of ``json+``. Raises ``InputError`` where hosts carried out no job files of fio.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=1M\\nnumber_ios=50\\n")
        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> results = hs.measure_hosts("a,b", "null:1ms", file="job.fio", ssh_command=shell)
        >>> [entry["jobname"] for entry in results.fio_json()["client_stats"]]
        ['reads', 'reads', 'All clients']
        """
        if not self.files:
            raise InputError("fio's JSON tells of job files: these hosts carried out none")
        clients = [
            Client(
                one.host,
                one.place.port or SSH_PORT,
                self.files[one.host],
                [(number, part.result) for number, part in one.parts],
                one.disks,
            )
            for one in self._measured
            if one.parts
        ]
        return fio_clients(clients, plus)

    def to_fio_json(self, path: str | os.PathLike[str] | None = None, plus: bool = False) -> str:
        """The same as text, written to ``path`` where one is given.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=1M\\nnumber_ios=50\\n")
        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> results = hs.measure_hosts("a,b", "null:1ms", file="job.fio", ssh_command=shell)
        >>> results.to_fio_json("clients.json").startswith("{")
        True
        """
        return tables.written(page_of(self.fio_json(plus)), path)

    def together(self) -> Results:
        """The runs of all hosts together, which say what any of them failed in.

        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> results = hs.measure_hosts("a,b", "null:1ms", depth=[1, 2], time="200ms", ssh_command=shell)
        >>> [row["system"] for row in results.together()]
        ['a, b', 'a, b']
        """
        return self.chosen(self._rounds)

    def shown_streams(self) -> tuple[list[Shown], list[list[str]]]:
        """The hosts of each run of all together, with what is known of their clocks: columns, and rows of text.

        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> results = hs.measure_hosts("a,b", "null:1ms", time="200ms", ssh_command=shell)
        >>> columns, rows = results.shown_streams()
        >>> [len(rows), "host" in {column.heading for column in columns}]
        [2, True]
        """
        columns = [column for column in SHOWN_STREAMS if column.name != "system"]
        columns = [replace(column, heading="host") if column.name == "stream" else column for column in columns]
        rows = [
            stream | {"run": run + 1, "facts": described(stream["facts"])}
            for run in self._rounds
            for stream in self.streams_of(run)
        ]
        return columns, [[column.format(row[column.name]) for column in columns] for row in rows]


def joined(rounds: Sequence[Round], measured: Sequence[Measured], swept: Sequence[str]) -> HostResults:
    """The results of all rounds."""
    results: _native.Results | None = None
    together = []
    for number, one in enumerate(rounds):
        found = _round(number, one, measured)
        if found is not None:
            together.append(0 if results is None else len(results))
            results = found if results is None else results.and_(found)
    assert results is not None, "some host has measured something"
    return HostResults(results, swept, together, measured)


def _round(number: int, one: Round, measured: Sequence[Measured]) -> _native.Results | None:
    placed = [_Placed.of(host, part, one.start_ns) for host in measured for at, part in host.parts if at == number]
    if not placed:
        return None
    lost = {host.host: host.lost for host in measured if host.lost is not None and host.lost.round <= number}
    words = [loss.told(host, number) for host, loss in lost.items()]
    there = {part.host for part in placed}
    done = [host for host in measured if host.host not in there and host.lost is None]
    first = placed[0].part.result
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
    return _native.join_hosts(asked)


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
