"""``HostResults``: results of several hosts on one time scale, with clock errors and missing hosts."""

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
from headstack.measurement.jobfiles.targets import label_targets
from headstack.results.columns import SHOWN_STREAMS, Shown
from headstack.results.results import Results
from headstack.results.table import described

if TYPE_CHECKING:
    from headstack.measurement.jobfiles.fio_json import Fields
    from headstack.measurement.jobfiles.phases import DiskUse

CLOCK_NOTES_MAX = 8
"""Maximum number of hosts with a separate remark on their clocks."""
SSH_PORT = 22
WRONG_NS = 1_000_000
"""Minimum error of the time of day to report, in ns; on most networks NTP stays below this."""


@dataclass(frozen=True)
class Part:
    """The result of one host in one round."""

    began_ns: int
    """Start, by the clock of the host."""
    whole: str
    """The result as JSON."""
    labels: dict[str, str]

    @cached_property
    def result(self) -> Mapping[str, Any]:
        """The result, in the form of ``Results.whole``."""
        result: Mapping[str, Any] = json.loads(self.whole)
        return result


@dataclass
class Round:
    """A run that begins on all hosts at one moment."""

    start_ns: int
    """The start, by our clock."""
    ended_early: str | None = None


@dataclass(frozen=True)
class Lost:
    """When and why a host went missing."""

    why: str
    round: int
    """Number of the first run that the host did not complete."""
    since_s: float | None
    """Time from the start of this run to the loss; ``None`` if the host did not begin the run."""
    completed: int
    """Number of requests completed in this run by the host's last report."""

    def describe(self, host: str, number: int) -> str:
        """Describes the loss in one line, for the run with this number."""
        if self.since_s is None or number > self.round:
            return f"{host}: missing from the start: {self.why}"
        return f"{host}: missing since {self.since_s:.2f} s after the start: {self.why}"

    def facts(self, number: int) -> list[tuple[str, float]]:
        """Returns the loss as figures of the host."""
        if self.since_s is None or number > self.round:
            return [("missing_since_s", 0.0)]
        return [("missing_since_s", round(self.since_s, 6)), ("requests_lost", float(self.completed))]


@dataclass(frozen=True)
class Measured:
    """A host with all its results."""

    place: Host
    parts: Sequence[tuple[int, Part]]
    """Each result with the number of its round."""
    readings: Sequence[Reading]
    lost: Lost | None
    disks: Sequence[DiskUse] = ()
    """Use of the disks below the host's targets, if it ran a job file."""

    @property
    def host(self) -> str:
        """Name of the host."""
        return self.place.name


@dataclass(frozen=True)
class _Placed:
    """The result of a host on the controller's time scale."""

    host: str
    part: Part
    began_ns: int
    error_ns: int
    late_ns: int
    """Delay of the host's start after the agreed time."""
    before: Reading
    after: Reading

    @classmethod
    def of(cls, host: Measured, part: Part, start_ns: int) -> _Placed:
        ahead: Ahead = ahead_at(host.readings, part.began_ns)
        began_ns = part.began_ns - ahead.ns
        before = max((r for r in host.readings if r.at_ns <= began_ns), key=lambda r: r.at_ns, default=host.readings[0])
        after = min((r for r in host.readings if r.at_ns > began_ns), key=lambda r: r.at_ns, default=before)
        return cls(host.host, part, began_ns, ahead.error_ns, began_ns - start_ns, before, after)

    @property
    def drift_ns(self) -> int | None:
        """Drift between the host's clock and ours over the run."""
        return None if self.after is self.before else self.after.ahead_ns - self.before.ahead_ns

    def facts(self) -> list[tuple[str, float]]:
        """Returns the state of the host's clock, as figures."""
        whole = self.part.result
        facts = [
            ("measured_s", whole["duration_ns"] / 1e9),
            ("began_after_us", self.late_ns / 1e3),
            ("clock_within_us", self.error_ns / 1e3),
            ("clock_ahead_ms", self.before.wall_ahead_ns / 1e6),
        ]
        drift_ns = self.drift_ns
        return facts if drift_ns is None else [*facts, ("clock_drift_us", drift_ns / 1e3)]

    def clock_note(self) -> str | None:
        """Returns a note if the host's time of day differs from ours."""
        ahead_ns = self.before.wall_ahead_ns
        if abs(ahead_ns) < max(WRONG_NS, 2 * self.before.error_ns):
            return None
        way = "ahead of" if ahead_ns > 0 else "behind"
        error_ms = self.before.error_ns / 1e6
        return f"{self.host}: its clock is {abs(ahead_ns) / 1e6:.3f} ms {way} ours, ± {error_ms:.3f} ms (corrected)"


@dataclass(frozen=True)
class SeenHost:
    """The clock of a host in one round, and whether the host is missing."""

    host: str
    began_after_us: float | None
    """Delay of the host's start after the agreed time; ``None`` if it did not start."""
    clock_within_us: float | None
    """Maximum error of the delay."""
    clock_ahead_ms: float | None
    """Time of day of the host minus ours."""
    clock_drift_us: float | None
    """Drift between the host's clock and ours during the run."""
    missing_since_s: float | None
    """Time from the start of the round to the loss of the host: 0 if it never started, ``None`` if it is not
    missing."""
    requests_lost: int
    """Number of requests completed before the loss of the host, which no other figure includes."""
    why: str | None
    """Reason for the loss of the host."""


class HostResults(Results):
    """Results of each round: a run of all hosts together, with the hosts as its streams, then a run of each host."""

    def __init__(
        self, native: _native.Results, swept: Sequence[str], rounds: Sequence[int], measured: Sequence[Measured]
    ) -> None:
        super().__init__(native, swept)
        self._rounds = list(rounds)
        """The runs of all hosts together."""
        self._measured = list(measured)
        self.remarks: list[str] = []
        """Remarks of hosts, such as options of job files that are not supported."""
        self.files: dict[str, JobFile] = {}
        """The job file of each host that ran one, by the host's name."""

    @property
    def rounds(self) -> int:
        """The number of runs of all hosts together.

        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> hs.measure_hosts("a,b", "null:1ms", depth=[1, 2], time="200ms", ssh_command=shell).rounds
        2
        """
        return len(self._rounds)

    @property
    def missing(self) -> dict[str, str]:
        """The hosts that failed, each with the reason.

        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> hs.measure_hosts("a,b", "null:1ms", time="200ms", ssh_command=shell).missing
        {}
        """
        return {host.host: host.lost.why for host in self._measured if host.lost is not None}

    def hosts(self, number: int = 0) -> tuple[SeenHost, ...]:
        """Returns the clocks and losses of the hosts in a round, the first by default.

        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> results = hs.measure_hosts("a,b", "null:1ms", time="200ms", ssh_command=shell)
        >>> [(seen.host, seen.missing_since_s) for seen in results.hosts()]
        [('a', None), ('b', None)]
        """
        streams = {stream["stream"]: stream["facts"] for stream in self.streams_of(self._rounds[number])}
        seen = []
        for host in self._measured:
            facts = streams.get(host.host, {})
            # A host that went missing in a later round was present in this round.
            is_missing = "missing_since_s" in facts or (host.lost is not None and host.lost.round <= number)
            seen.append(
                SeenHost(
                    host.host,
                    began_after_us=facts.get("began_after_us"),
                    clock_within_us=facts.get("clock_within_us"),
                    clock_ahead_ms=facts.get("clock_ahead_ms"),
                    clock_drift_us=facts.get("clock_drift_us"),
                    missing_since_s=facts.get("missing_since_s", 0.0 if is_missing else None),
                    requests_lost=int(facts.get("requests_lost", 0)),
                    why=host.lost.why if is_missing and host.lost is not None else None,
                )
            )
        return tuple(seen)

    def fio_json(self, plus: bool = False) -> Fields:
        """Returns the output of ``fio --client=... --output-format=json`` (with ``plus``, of ``json+``): an entry for
        each job of each host, and an entry for all clients. Raises ``InputError`` if hosts did not run job files of
        fio.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=1M\\nnumber_ios=50\\n")
        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> results = hs.measure_hosts("a,b", "null:1ms", file="job.fio", ssh_command=shell)
        >>> [entry["jobname"] for entry in results.fio_json()["client_stats"]]
        ['reads', 'reads', 'All clients']
        """
        if not self.files:
            raise InputError("fio's JSON needs fio job files, but these hosts ran none")
        clients = [
            Client(
                host.host,
                host.place.port or SSH_PORT,
                self.files[host.host],
                [(number, part.result) for number, part in host.parts],
                host.disks,
            )
            for host in self._measured
            if host.parts
        ]
        return fio_clients(clients, plus)

    def to_fio_json(self, path: str | os.PathLike[str] | None = None, plus: bool = False) -> str:
        """Returns ``fio_json`` as text, and writes the text if ``path`` is given.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=1M\\nnumber_ios=50\\n")
        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> results = hs.measure_hosts("a,b", "null:1ms", file="job.fio", ssh_command=shell)
        >>> results.to_fio_json("clients.json").startswith("{")
        True
        """
        return tables.written(page_of(self.fio_json(plus)), path)

    def together(self) -> Results:
        """Returns the runs of all hosts together, including their failures.

        >>> shell = "sh -c 'exec headstack measure-agent' ssh"
        >>> results = hs.measure_hosts("a,b", "null:1ms", depth=[1, 2], time="200ms", ssh_command=shell)
        >>> [row["system"] for row in results.together()]
        ['a, b', 'a, b']
        """
        return self.chosen(self._rounds)

    def shown_streams(self) -> tuple[list[Shown], list[list[str]]]:
        """Returns the hosts of each joint run with the state of their clocks, as columns and rows of text.

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


def join_rounds(rounds: Sequence[Round], measured: Sequence[Measured], swept: Sequence[str]) -> HostResults:
    """Returns the results of all rounds."""
    results: _native.Results | None = None
    together = []
    for number, run in enumerate(rounds):
        joined = _join_round(number, run, measured)
        if joined is not None:
            together.append(0 if results is None else len(results))
            results = joined if results is None else results.and_(joined)
    assert results is not None, "at least one host has a result"
    return HostResults(results, swept, together, measured)


def _join_round(number: int, run: Round, measured: Sequence[Measured]) -> _native.Results | None:
    placed = [_Placed.of(host, part, run.start_ns) for host in measured for at, part in host.parts if at == number]
    if not placed:
        return None
    lost = {host.host: host.lost for host in measured if host.lost is not None and host.lost.round <= number}
    words = [loss.describe(host, number) for host, loss in lost.items()]
    there = {part.host for part in placed}
    done = [host for host in measured if host.host not in there and host.lost is None]
    first = placed[0].part.result
    request = {
        "name": label_targets([host.host for host in measured]),
        "labels": list(placed[0].part.labels.items()),
        "clients": None,
        "interval_ns": first["intervals"][0]["duration_ns"] if first["intervals"] else None,
        "ended_early": run.ended_early or ("; ".join(words) or None),
        "notes": [
            *words,
            *(f"{host.host}: ended after {len(host.parts)} runs" for host in done),
            *_clock_notes(placed),
        ],
        "runs": [
            {"host": part.host, "began_ns": part.began_ns, "facts": part.facts(), "result": part.part.whole}
            for part in placed
        ],
        "missing": [(host, loss.facts(number)) for host, loss in lost.items() if host not in there],
    }
    return _native.join_hosts(request)


def _clock_notes(placed: Sequence[_Placed]) -> list[str]:
    """Returns remarks on wrong clocks, and on the start times of the hosts."""
    wrong = [words for part in placed if (words := part.clock_note()) is not None]
    if len(wrong) > CLOCK_NOTES_MAX:
        wrong = [
            *wrong[:CLOCK_NOTES_MAX],
            f"the clocks of {len(wrong) - CLOCK_NOTES_MAX} more hosts differ from ours: see clock_ahead_ms",
        ]
    late_ms = max(part.late_ns for part in placed) / 1e6
    error_ms = max(part.error_ns for part in placed) / 1e6
    drifts = [abs(part.drift_ns) for part in placed if part.drift_ns is not None]
    drift = f"clocks drifted by at most {max(drifts) / 1e6:.3f} ms" if drifts else "clock drift unknown"
    began = f"the last started {late_ms:.3f} ms after the agreed moment (clock error ± {error_ms:.3f} ms)"
    return [*wrong, f"{len(placed)} hosts: {began}; {drift}"]
