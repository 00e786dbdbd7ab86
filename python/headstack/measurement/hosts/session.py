"""``Session``: one measurement from many hosts, which begins on all of them at one moment and continues while at least
one is left.
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
from headstack.measurement.hosts.joined import HostResults, Lost, Measured, Part, Round, joined
from headstack.measurement.hosts.link import Heard, Link
from headstack.measurement.measurement import BY_HAND

if TYPE_CHECKING:
    from headstack.measurement.hosts.messages import FromAgent, Hello, HostRequest
    from headstack.measurement.jobfiles.phases import DiskUse
    from headstack.measurement.specs import ProgressReport

HELLO_S = 60.0
"""Time limit in seconds for an agent's hello: ssh times out sooner, and a slow machine has to load Python."""
TRIPS_S = 5.0
LEAD_S = 0.25
"""Time in seconds between announcing the start of a run and the start; longer for slow connections."""
ALIVE_EVERY_S = 2.0
SILENT_S = 20.0
"""Silence in seconds after which a host is considered lost."""
END_S = 20.0
"""Time in seconds to wait for results after an interruption."""
LOOK_S = 0.05

Open = Callable[[Host, "queue.SimpleQueue[Heard]"], Link]
Remark = Callable[[str], object]


class State(Enum):
    """Progress of a host through the protocol."""

    CALLED = "has not answered"
    PREPARING = "prepares"
    READY = "stands ready"
    RUNNING = "measures"
    OVER = "is done"
    MISSING = "is missing"


@dataclass
class Far:
    """A host as seen from the controller."""

    host: Host
    link: Link
    state: State = State.CALLED
    heard_s: float = field(default_factory=time.monotonic)
    readings: list[Reading] = field(default_factory=list)
    trips: list[Trip] = field(default_factory=list)
    parts: list[tuple[int, Part]] = field(default_factory=list)
    """Its results, each with the number of its round: it takes part in all rounds until it is missing."""
    now: ProgressReport | None = None
    """Its progress in this round."""
    lost: Lost | None = None
    is_refused: bool = False
    """Whether it is missing because of bad input."""
    remarks: list[str] = field(default_factory=list)
    disks: list[DiskUse] = field(default_factory=list)
    """Use of the disks below its targets, if it ran a job file."""

    @property
    def is_there(self) -> bool:
        """Whether it is still connected."""
        return self.state is not State.MISSING


class Session:
    """Hosts that measure together."""

    def __init__(self, hosts: Sequence[Host], open_link: Open, tell: Remark) -> None:
        """``tell`` is called with a line for each event."""
        self._heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._tell = tell
        self._fars: dict[str, Far] = {}
        self._rounds: list[Round] = []
        self._progress: Progress | None = None
        self._alive_s = time.monotonic()
        self._wishes = 0
        self._ended_s: float | None = None
        try:
            for host in hosts:
                self._fars[host.name] = Far(host, open_link(host, self._heard))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends all agents."""
        for far in self._fars.values():
            far.link.hang_up()
        for far in self._fars.values():
            far.link.close()

    def measure(
        self,
        asked: Mapping[str, HostRequest],
        progress: Progress | None,
        ready_within_s: float,
        swept: Sequence[str] = (),
    ) -> HostResults:
        """Sends each host its request, by its name, and measures.

        A host that fails is reported and left out. Raises ``InputError`` if one runs another build, or if none is left
        before a result; ``RunError`` likewise.
        """
        self._progress = progress
        self._wait(State.CALLED, min(HELLO_S, ready_within_s), "did not answer in time")
        for far in self._in(State.PREPARING) if not self._wishes else []:
            far.link.say({"measure": asked[far.host.name]})
        self._wait(State.PREPARING, ready_within_s, "was not ready in time")
        while (ready := self._in(State.READY)) and not self._wishes:
            self._read_clocks(ready)
            self._run_round(self._in(State.READY))
        self._read_clocks(self._in(State.OVER))
        self._refuse_nothing()
        measured = [Measured(far.host, far.parts, far.readings, far.lost, far.disks) for far in self._fars.values()]
        results = joined(self._rounds, measured, swept)
        results.remarks += [f"{name}: {remark}" for name, far in self._fars.items() for remark in far.remarks]
        return results

    # The parts of it.

    def _run_round(self, fars: Sequence[Far]) -> None:
        if not fars:
            return
        lead_ns = max(int(LEAD_S * 1e9), *(8 * far.readings[-1].error_ns for far in fars))
        start_ns = time.monotonic_ns() + lead_ns
        self._rounds.append(Round(start_ns))
        for far in self._fars.values():
            far.now = None
        for far in fars:
            far.state = State.RUNNING
            far.link.say({"start": start_ns + far.readings[-1].ahead_ns})
        self._wait(State.RUNNING, None, "")

    def _read_clocks(self, fars: Sequence[Far]) -> None:
        """Reads the clocks of one host after the other, so that no answer waits for another."""
        for far in fars:
            far.trips = []
            until_s = time.monotonic() + TRIPS_S
            while len(far.trips) < TRIPS and time.monotonic() < until_s and far.is_there:
                before = len(far.trips)
                far.link.say({"clock": (time.monotonic_ns(), time.time_ns(), time.monotonic_ns())})
                while len(far.trips) == before and time.monotonic() < until_s and far.is_there:
                    self._hear(0.01)
            if far.trips:
                far.readings.append(reading_of(far.trips))
            elif far.is_there:
                self._lose(far, "did not say what its clock says")

    def _refuse_nothing(self) -> None:
        """Raises the error that kept all hosts from measuring anything."""
        if any(far.parts for far in self._fars.values()):
            return
        if self._wishes:
            raise KeyboardInterrupt
        lost = [(far.is_refused, f"{name}: {far.lost.why}") for name, far in self._fars.items() if far.lost is not None]
        refused = [why for is_refused, why in lost if is_refused]
        if refused:
            raise InputError(refused[0])
        raise RunError(lost[0][1] if lost else "no host has results")

    # What happens meanwhile.

    def _in(self, state: State) -> list[Far]:
        return [far for far in self._fars.values() if far.state is state]

    def _wait(self, state: State, within_s: float | None, late: str) -> None:
        """Processes messages until no host is in a state any more; late hosts are left out. An interruption ends the
        wait, except for hosts that measure, which still send their results."""
        until_s = None if within_s is None else time.monotonic() + within_s
        while waited_for := self._in(state):
            self._hear(LOOK_S)
            self._look_after()
            if self._wishes and state is not State.RUNNING:
                return
            if until_s is not None and time.monotonic() > until_s:
                for far in waited_for:
                    self._lose(far, late)

    def _hear(self, within_s: float) -> None:
        try:
            heard = self._heard.get(timeout=within_s)
        except queue.Empty:
            return
        far = self._fars.get(heard.host)
        if far is None or far.state is State.MISSING:
            return
        far.heard_s = time.monotonic()
        if heard.said is None:
            self._lose(far, far.link.why(), heard.at_ns)
        else:
            self._take(far, heard.said, heard.at_ns)

    def _take(self, far: Far, said: FromAgent, at_ns: int) -> None:
        if "clock" in said:
            (sent_ns, our_wall_ns, sent_by_ns), (came_ns, their_wall_ns, came_by_ns), left_ns = said["clock"]
            looking_ns = (sent_by_ns - sent_ns) + (came_by_ns - came_ns)
            far.trips.append(Trip(sent_ns, came_ns, left_ns, at_ns, our_wall_ns, their_wall_ns, looking_ns))
        elif "hello" in said:
            self._compare(far, said["hello"])
            far.state = State.PREPARING
        elif "ready" in said:
            far.state = State.READY
        elif "progress" in said:
            far.now = said["progress"]
            self._show()
        elif "result" in said:
            result = said["result"]
            part = Part(result["began_ns"], result["whole"], result["labels"])
            far.parts.append((len(far.parts), part))
        elif "over" in said:
            far.state = State.OVER
            far.remarks += said["over"]["remarks"]
            far.disks = said["over"]["disks"]
            if said["over"]["stopped"] is not None and not self._wishes:
                self._note_loss(far, said["over"]["stopped"], at_ns, is_running=True)
        elif "failed" in said:
            far.is_refused = said["failed"]["kind"] == "input"
            self._lose(far, said["failed"]["message"], at_ns)

    def _compare(self, far: Far, theirs: Hello) -> None:
        ours = hello()
        if (theirs["protocol"], theirs["schema"]) != (ours["protocol"], ours["schema"]):
            raise InputError(
                f"{far.host.name}: has headstack {theirs['version']} with results of schema {theirs['schema']}; "
                f"here is {ours['version']} with schema {ours['schema']}: install the same on both"
            )

    def _lose(self, far: Far, why: str, at_ns: int | None = None) -> None:
        """Gives up a host; the others continue."""
        was, far.state = far.state, State.MISSING
        if was is not State.OVER and far.lost is None:
            self._note_loss(far, why, at_ns or time.monotonic_ns(), is_running=was is State.RUNNING)
        # An agent that is running but unreachable should end too.
        far.link.hang_up()

    def _note_loss(self, far: Far, why: str, at_ns: int, is_running: bool) -> None:
        """Records when a host went missing, and reports it at once."""
        if is_running:
            since_s = (at_ns - self._rounds[-1].start_ns) / 1e9
            far.lost = Lost(why, len(self._rounds) - 1, since_s, 0 if far.now is None else far.now["completed"])
            self._tell(f"{far.host.name}: missing since {since_s:.2f} s after the start: {why}")
        else:
            far.lost = Lost(why, len(self._rounds), None, 0)
            self._tell(f"{far.host.name}: missing before the start: {why}")

    def _look_after(self) -> None:
        """Handles silent hosts, keep-alive messages and interruptions."""
        now_s = time.monotonic()
        if now_s - self._alive_s >= ALIVE_EVERY_S:
            self._alive_s = now_s
            for far in self._fars.values():
                if far.state is not State.MISSING:
                    far.link.say({"alive": True})
        for far in self._fars.values():
            is_awaited = far.state not in (State.MISSING, State.CALLED)
            if is_awaited and now_s - far.heard_s > SILENT_S:
                self._lose(far, f"has said nothing for {SILENT_S:.0f} s")
        wishes = signals.wishes()
        if wishes > self._wishes:
            self._wishes = wishes
            self._ended_s = self._ended_s or now_s
            for far in self._in(State.RUNNING):
                far.link.say({"end": True})
            if self._rounds:
                self._rounds[-1].ended_early = BY_HAND
        if self._ended_s is not None and now_s - self._ended_s > END_S:
            for far in self._in(State.RUNNING):
                self._lose(far, "did not end when it was asked to")

    def _show(self) -> None:
        """Shows all hosts in one view: the sum of their counts, and the progress of each."""
        if self._progress is None:
            return
        hosts = [far for far in self._fars.values() if far.now is not None or not far.is_there]
        there = [far.now for far in hosts if far.now is not None and far.is_there]
        if not there:
            return
        # Requests of a host before its loss still count.
        done = [far.now for far in hosts if far.now is not None]
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
                    (far.host.name, far.now["completed"] if far.is_there and far.now is not None else None)
                    for far in hosts
                ],
            }
        )
