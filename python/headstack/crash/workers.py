"""``Workers``: processes that check states, each with an image and its check."""

from __future__ import annotations

import faulthandler
import json
import os
import selectors
import signal
import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headstack import _native
from headstack._native import RunError
from headstack.crash.checks import Check
from headstack.crash.showing import present_states
from headstack.io.json_text import line_of

if TYPE_CHECKING:
    from headstack.crash.recorded import Recorded
    from headstack.crash.states import CrashState, Rules

AHEAD = 2
"""Number of states assigned to a process at a time: the next is ready when one is done."""
PATIENCE_S = 60.0
"""Default time limit of a check in seconds."""
WAIT_S = 1.0
"""Interval in seconds between two checks for a time-out."""
FORK_MESSAGE = "this process is multi-threaded"


@dataclass(frozen=True)
class Bench:
    """The recording, the rules and the check for worker processes."""

    recording: Recorded
    rules: Rules
    check: Check
    over: str
    """How states are presented: one of ``WAYS``."""
    folder: Path
    patience_s: float = PATIENCE_S
    """Time limit of a check in seconds."""


@dataclass
class Worker:
    """A worker process."""

    number: int
    process: int
    requests: int
    """Pipe to which states are written."""
    answers: int
    """Pipe from which answers are read."""
    assigned: deque[tuple[int, CrashState]] = field(default_factory=deque)
    """States that were assigned and not answered, by number."""
    since_s: float = 0.0
    """Start of the current check."""
    received: bytes = b""
    """Start of an incomplete answer."""


class Workers:
    """Several worker processes, to be closed."""

    def __init__(self, bench: Bench, count: int) -> None:
        self._bench = bench
        self._selector = selectors.DefaultSelector()
        self._workers: list[Worker] = []
        for number in range(count):
            self._begin(number)

    def free(self) -> bool:
        """Whether a process can take another state."""
        return any(len(worker.assigned) < AHEAD for worker in self._workers)

    def busy(self) -> bool:
        """Whether a process has an unanswered state."""
        return any(worker.assigned for worker in self._workers)

    def assign(self, number: int, state: CrashState) -> None:
        """Assigns a state to a process."""
        worker = min(self._workers, key=lambda worker: len(worker.assigned))
        if not worker.assigned:
            worker.since_s = time.monotonic()
        worker.assigned.append((number, state))
        # If the process has ended meanwhile, ``answers`` notices, and another takes its place.
        with suppress(BrokenPipeError):
            _send(worker.requests, (number, state))

    def answers(self) -> Iterator[tuple[int, str | None]]:
        """Waits for answers: numbers of states with their faults. Raises ``RunError`` if the check cannot be run."""
        ready = self._selector.select(min(WAIT_S, self._bench.patience_s))
        for key, _ in ready:
            worker: Worker = key.data
            part = os.read(worker.answers, 1 << 16)
            if not part:
                yield from self._ended(worker)
                continue
            *lines, worker.received = (worker.received + part).split(b"\n")
            for line in lines:
                answer = json.loads(line)
                if "failed" in answer:
                    raise RunError(answer["failed"])
                worker.assigned.popleft()
                worker.since_s = time.monotonic()
                yield answer["number"], answer["message"]
        for worker in list(self._workers):
            if worker.assigned and time.monotonic() - worker.since_s > self._bench.patience_s:
                os.killpg(worker.process, signal.SIGKILL)

    def check(self, state: CrashState) -> str | None:
        """Returns the fault that the check finds in a state; no other state is assigned meanwhile."""
        self.assign(-1, state)
        while True:
            for number, message in self.answers():
                if number == -1:
                    return message

    def close(self) -> None:
        """Ends the processes, including the children of their checks."""
        for worker in self._workers:
            with suppress(ProcessLookupError):
                os.killpg(worker.process, signal.SIGKILL)
            self._forget(worker)
        self._workers.clear()
        self._selector.close()

    def _begin(self, number: int) -> None:
        theirs, requests = os.pipe()
        answers, ours = os.pipe()
        with warnings.catch_warnings():
            # The compiled part keeps no threads between calls.
            warnings.filterwarnings("ignore", message=f".*{FORK_MESSAGE}", category=DeprecationWarning)
            process = os.fork()
        if process == 0:
            code = 1
            try:
                os.setpgid(0, 0)
                os.close(requests)
                os.close(answers)
                for other in self._workers:
                    os.close(other.requests)
                    os.close(other.answers)
                _serve(self._bench, number, theirs, ours)
                code = 0
            finally:
                os._exit(code)
        os.close(theirs)
        os.close(ours)
        # Either may occur first.
        with suppress(PermissionError, ProcessLookupError):
            os.setpgid(process, process)
        worker = Worker(number, process, requests, answers)
        self._workers.append(worker)
        self._selector.register(answers, selectors.EVENT_READ, worker)

    def _ended(self, worker: Worker) -> Iterator[tuple[int, str | None]]:
        """Handles a process killed by its check, which counts as an answer. Another process continues with its
        states."""
        self._workers.remove(worker)
        status = self._forget(worker)
        if not worker.assigned:
            raise RunError("a worker process ended unexpectedly")
        (number, _), *others = worker.assigned
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        hung = ended_by == signal.SIGKILL and time.monotonic() - worker.since_s > self._bench.patience_s
        if hung:
            message = f"the check did not end within {self._bench.patience_s:g} s"
        elif ended_by:
            message = f"the check was ended by {signal.Signals(ended_by).name}"
        else:
            message = "the check ended its process"
        self._begin(worker.number)
        for other, state in others:
            self.assign(other, state)
        yield number, message

    def _forget(self, worker: Worker) -> int:
        self._selector.unregister(worker.answers)
        os.close(worker.requests)
        os.close(worker.answers)
        status = os.waitpid(worker.process, 0)[1]
        # A killed process has not unmounted anything.
        _native.CrashedDevice.clear(str(self._bench.folder / str(worker.number)))
        return status


def _serve(bench: Bench, number: int, requests: int, answers: int) -> None:
    """Runs a worker process until its pipe is closed."""
    # Ctrl-C is handled by the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # A check that kills this process is an answer, which needs no stack traces.
    faulthandler.disable()
    folder = bench.folder / str(number)
    folder.mkdir(exist_ok=True)
    (folder / "image").unlink(missing_ok=True)
    (folder / "check").mkdir(exist_ok=True)
    try:
        with present_states(bench.recording, bench.rules, bench.over, folder) as (device, address):
            for line in os.fdopen(requests, "rb", closefd=False):
                state_number, state = json.loads(line)
                device.take(state)
                marks = bench.recording.native.marks_before(state["events"])
                message = bench.check.find_fault(address, marks, folder / "check")
                device.restore()
                _send(answers, {"number": state_number, "message": message})
    except Exception as error:
        # An exception of the check is an answer, but this exception is an error of headstack.
        with suppress(BrokenPipeError):
            _send(answers, {"failed": str(error) or repr(error)})


def _send(pipe: int, message: object) -> None:
    data = line_of(message)
    while data:
        data = data[os.write(pipe, data) :]
