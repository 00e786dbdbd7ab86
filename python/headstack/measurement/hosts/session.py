"""``Session``: one measurement from many hosts, which begins on all hosts at the same time and continues while at least
one host is left.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from headstack._native import InputError, RunError
from headstack.io import signals
from headstack.measurement.access import Progress
from headstack.measurement.hosts.agent import hello
from headstack.measurement.hosts.clock import TRIPS, Reading, Trip, reading_of
from headstack.measurement.hosts.host import Host
from headstack.measurement.hosts.joined import HostResults, Lost, Measured, Part, Round, join_rounds
from headstack.measurement.hosts.link import Link, ReceivedMessage
from headstack.measurement.measurement import BY_HAND

if TYPE_CHECKING:
    from headstack.measurement.hosts.messages import FromAgent, Hello, HostRequest
    from headstack.measurement.jobfiles.phases import DiskUse
    from headstack.measurement.specs import ProgressReport

HELLO_S = 60.0
"""Time limit in seconds for the first message of an agent. ssh times out sooner; a slow machine has to load Python."""
TRIPS_S = 5.0
LEAD_S = 0.25
"""Time in seconds between announcing the start of a run and the start; longer for slow connections."""
ALIVE_EVERY_S = 2.0
SILENT_S = 20.0
"""Silence in seconds after which a host is considered lost."""
END_S = 20.0
"""Time in seconds to wait for results after an interruption."""
LOOK_S = 0.05

Open = Callable[[Host, "queue.SimpleQueue[ReceivedMessage]"], Link]
Remark = Callable[[str], object]


class State(Enum):
    """Progress of a host through the protocol."""

    CALLED = "not answered yet"
    PREPARING = "preparing"
    READY = "ready"
    RUNNING = "measuring"
    OVER = "done"
    MISSING = "missing"


@dataclass
class RemoteHost:
    """A host as seen from the controller."""

    host: Host
    link: Link
    state: State = State.CALLED
    heard_s: float = field(default_factory=time.monotonic)
    readings: list[Reading] = field(default_factory=list)
    trips: list[Trip] = field(default_factory=list)
    parts: list[tuple[int, Part]] = field(default_factory=list)
    """Results of the host, each with the number of its round. A host takes part in all rounds until it is missing."""
    now: ProgressReport | None = None
    """Progress of the host in this round."""
    lost: Lost | None = None
    is_refused: bool = False
    """Whether the host is missing because of bad input."""
    remarks: list[str] = field(default_factory=list)
    disks: list[DiskUse] = field(default_factory=list)
    """Use of the disks below the host's targets, if it ran a job file."""

    @property
    def is_there(self) -> bool:
        """Whether the host is still connected."""
        return self.state is not State.MISSING


class Session:
    """Hosts that measure together."""

    def __init__(self, hosts: Sequence[Host], open_link: Open, report: Remark) -> None:
        """Creates a session. ``report`` is called with a line for each event."""
        self._received: queue.SimpleQueue[ReceivedMessage] = queue.SimpleQueue()
        self._report = report
        self._remotes: dict[str, RemoteHost] = {}
        self._rounds: list[Round] = []
        self._progress: Progress | None = None
        self._alive_s = time.monotonic()
        self._wishes = 0
        self._ended_s: float | None = None
        try:
            for host in hosts:
                self._remotes[host.name] = RemoteHost(host, open_link(host, self._received))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends all agents."""
        for remote in self._remotes.values():
            remote.link.hang_up()
        for remote in self._remotes.values():
            remote.link.close()

    def measure(
        self,
        requests: Mapping[str, HostRequest],
        progress: Progress | None,
        ready_within_s: float,
        swept: Sequence[str] = (),
    ) -> HostResults:
        """Sends each host its request, and measures. ``requests`` are by host name.

        A host that fails is reported and left out. Raises ``InputError`` if a host runs another build, and
        ``InputError`` or ``RunError`` if no host is left before a result.
        """
        self._progress = progress
        self._wait(State.CALLED, min(HELLO_S, ready_within_s), "did not answer in time")
        for remote in self._in_state(State.PREPARING) if not self._wishes else []:
            remote.link.send({"measure": requests[remote.host.name]})
        self._wait(State.PREPARING, ready_within_s, "was not ready in time")
        while (ready := self._in_state(State.READY)) and not self._wishes:
            self._read_clocks(ready)
            self._run_round(self._in_state(State.READY))
        self._read_clocks(self._in_state(State.OVER))
        self._check_any_result()
        measured = [
            Measured(remote.host, remote.parts, remote.readings, remote.lost, remote.disks)
            for remote in self._remotes.values()
        ]
        results = join_rounds(self._rounds, measured, swept)
        results.remarks += [f"{name}: {remark}" for name, remote in self._remotes.items() for remark in remote.remarks]
        return results

    # Steps of a measurement.

    def _run_round(self, remotes: Sequence[RemoteHost]) -> None:
        if not remotes:
            return
        lead_ns = max(int(LEAD_S * 1e9), *(8 * remote.readings[-1].error_ns for remote in remotes))
        start_ns = time.monotonic_ns() + lead_ns
        self._rounds.append(Round(start_ns))
        for remote in self._remotes.values():
            remote.now = None
        for remote in remotes:
            remote.state = State.RUNNING
            remote.link.send({"start": start_ns + remote.readings[-1].ahead_ns})
        self._wait(State.RUNNING, None, "")

    def _read_clocks(self, remotes: Sequence[RemoteHost]) -> None:
        """Reads the clocks of the hosts one after the other, so that no answer waits for another answer."""
        for remote in remotes:
            remote.trips = []
            until_s = time.monotonic() + TRIPS_S
            while len(remote.trips) < TRIPS and time.monotonic() < until_s and remote.is_there:
                before = len(remote.trips)
                remote.link.send({"clock": (time.monotonic_ns(), time.time_ns(), time.monotonic_ns())})
                while len(remote.trips) == before and time.monotonic() < until_s and remote.is_there:
                    self._receive(0.01)
            if remote.trips:
                remote.readings.append(reading_of(remote.trips))
            elif remote.is_there:
                self._lose(remote, "did not report its clock")

    def _check_any_result(self) -> None:
        """Raises the error that kept all hosts from measuring anything."""
        if any(remote.parts for remote in self._remotes.values()):
            return
        if self._wishes:
            raise KeyboardInterrupt
        lost = [
            (remote.is_refused, f"{name}: {remote.lost.why}")
            for name, remote in self._remotes.items()
            if remote.lost is not None
        ]
        refused = [why for is_refused, why in lost if is_refused]
        if refused:
            raise InputError(refused[0])
        raise RunError(lost[0][1] if lost else "no host completed a measurement")

    # Messages, losses and interruptions.

    def _in_state(self, state: State) -> list[RemoteHost]:
        return [remote for remote in self._remotes.values() if remote.state is state]

    def _wait(self, state: State, within_s: float | None, late: str) -> None:
        """Processes messages until no host is in this state; late hosts are left out. An interruption ends the wait,
        except for hosts that are measuring and still have to send their results."""
        until_s = None if within_s is None else time.monotonic() + within_s
        while awaited := self._in_state(state):
            self._receive(LOOK_S)
            self._look_after()
            if self._wishes and state is not State.RUNNING:
                return
            if until_s is not None and time.monotonic() > until_s:
                for remote in awaited:
                    self._lose(remote, late)

    def _receive(self, within_s: float) -> None:
        try:
            received = self._received.get(timeout=within_s)
        except queue.Empty:
            return
        remote = self._remotes.get(received.host)
        if remote is None or remote.state is State.MISSING:
            return
        remote.heard_s = time.monotonic()
        if received.message is None:
            self._lose(remote, remote.link.end_reason(), received.at_ns)
        else:
            self._handle(remote, received.message, received.at_ns)

    def _handle(self, remote: RemoteHost, message: FromAgent, at_ns: int) -> None:
        if "clock" in message:
            (sent_ns, our_wall_ns, sent_by_ns), (came_ns, their_wall_ns, came_by_ns), left_ns = message["clock"]
            looking_ns = (sent_by_ns - sent_ns) + (came_by_ns - came_ns)
            remote.trips.append(Trip(sent_ns, came_ns, left_ns, at_ns, our_wall_ns, their_wall_ns, looking_ns))
        elif "hello" in message:
            self._compare(remote, message["hello"])
            remote.state = State.PREPARING
        elif "ready" in message:
            remote.state = State.READY
        elif "progress" in message:
            remote.now = message["progress"]
            self._show()
        elif "result" in message:
            result = message["result"]
            part = Part(result["began_ns"], result["whole"], result["labels"])
            remote.parts.append((len(remote.parts), part))
        elif "over" in message:
            remote.state = State.OVER
            remote.remarks += message["over"]["remarks"]
            remote.disks = message["over"]["disks"]
            if message["over"]["stopped"] is not None and not self._wishes:
                self._note_loss(remote, message["over"]["stopped"], at_ns, is_running=True)
        elif "failed" in message:
            remote.is_refused = message["failed"]["kind"] == "input"
            self._lose(remote, message["failed"]["message"], at_ns)

    def _compare(self, remote: RemoteHost, theirs: Hello) -> None:
        ours = hello()
        if (theirs["protocol"], theirs["schema"]) != (ours["protocol"], ours["schema"]):
            raise InputError(
                f"{remote.host.name}: has headstack {theirs['version']} with results of schema {theirs['schema']}, "
                f"this host {ours['version']} with schema {ours['schema']}; install the same version on both"
            )

    def _lose(self, remote: RemoteHost, why: str, at_ns: int | None = None) -> None:
        """Drops a host; the other hosts continue."""
        was, remote.state = remote.state, State.MISSING
        if was is not State.OVER and remote.lost is None:
            self._note_loss(remote, why, at_ns or time.monotonic_ns(), is_running=was is State.RUNNING)
        # An agent that is running but unreachable should end too.
        remote.link.hang_up()

    def _note_loss(self, remote: RemoteHost, why: str, at_ns: int, is_running: bool) -> None:
        """Records the time at which a host went missing, and reports the loss."""
        if is_running:
            since_s = (at_ns - self._rounds[-1].start_ns) / 1e9
            remote.lost = Lost(
                why, len(self._rounds) - 1, since_s, 0 if remote.now is None else remote.now["completed"]
            )
            self._report(f"{remote.host.name}: missing since {since_s:.2f} s after the start: {why}")
        else:
            remote.lost = Lost(why, len(self._rounds), None, 0)
            self._report(f"{remote.host.name}: missing before the start: {why}")

    def _look_after(self) -> None:
        """Handles silent hosts, keep-alive messages and interruptions."""
        now_s = time.monotonic()
        if now_s - self._alive_s >= ALIVE_EVERY_S:
            self._alive_s = now_s
            for remote in self._remotes.values():
                if remote.state is not State.MISSING:
                    remote.link.send({"alive": True})
        for remote in self._remotes.values():
            is_awaited = remote.state not in (State.MISSING, State.CALLED)
            if is_awaited and now_s - remote.heard_s > SILENT_S:
                self._lose(remote, f"sent nothing for {SILENT_S:.0f} s")
        wishes = signals.wishes()
        if wishes > self._wishes:
            self._wishes = wishes
            self._ended_s = self._ended_s or now_s
            for remote in self._in_state(State.RUNNING):
                remote.link.send({"end": True})
            if self._rounds:
                self._rounds[-1].ended_early = BY_HAND
        if self._ended_s is not None and now_s - self._ended_s > END_S:
            for remote in self._in_state(State.RUNNING):
                self._lose(remote, "did not end when requested")

    def _show(self) -> None:
        """Shows all hosts in one view: the sum of their counts, and the progress of each."""
        if self._progress is None:
            return
        hosts = [remote for remote in self._remotes.values() if remote.now is not None or not remote.is_there]
        there = [remote.now for remote in hosts if remote.now is not None and remote.is_there]
        if not there:
            return
        # Requests of a host before its loss still count.
        done = [remote.now for remote in hosts if remote.now is not None]
        self._progress(
            {
                "completed": sum(now["completed"] for now in done),
                "bytes": sum(now["bytes"] for now in done),
                "response_s": sum(now["response_s"] for now in done),
                "errors": sum(now["errors"] for now in done),
                "run": max(now["run"] for now in there),
                "runs": max(now["runs"] for now in there),
                "elapsed_s": max(now["elapsed_s"] for now in there),
                "share": min(now["share"] for now in there),
                "under_way": sum(now["under_way"] for now in there),
                "ending": any(now["ending"] for now in there) and self._wishes > 0,
                "hosts": [
                    (remote.host.name, remote.now["completed"] if remote.is_there and remote.now is not None else None)
                    for remote in hosts
                ],
            }
        )
