"""Processes that look at states: each has an image and keeps its check ready."""

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
from headstack.crash.showing import shown
from headstack.io.json_text import line_of

if TYPE_CHECKING:
    from headstack.crash.recorded import Recorded
    from headstack.crash.states import CrashState, Rules

AHEAD = 2
"""States that a process has at a time: the next is there when it is done with one."""
PATIENCE_S = 60.0
"""A check that takes longer than this does not end, where no other time is set."""
WAIT_S = 1.0
"""Between two looks at whether a check still goes on."""
FORK_MESSAGE = "this process is multi-threaded"


@dataclass(frozen=True)
class Bench:
    """The recording, the rules and the check of processes that look at states."""

    recording: Recorded
    rules: Rules
    check: Check
    over: str
    """How it is shown states: one of ``WAYS``."""
    folder: Path
    patience_s: float = PATIENCE_S
    """A check that takes longer than this does not end."""


@dataclass
class Worker:
    """One of the processes."""

    number: int
    process: int
    asks: int
    answers: int
    given: deque[tuple[int, CrashState]] = field(default_factory=deque)
    """States that it was given and has not answered, by number."""
    since_s: float = 0.0
    heard: bytes = b""


class Workers:
    """Some processes, to be closed."""

    def __init__(self, bench: Bench, count: int) -> None:
        self._bench = bench
        self._selector = selectors.DefaultSelector()
        self._workers: list[Worker] = []
        for number in range(count):
            self._begin(number)

    def free(self) -> bool:
        """Whether somebody can take another state."""
        return any(len(worker.given) < AHEAD for worker in self._workers)

    def busy(self) -> bool:
        """Whether somebody has a state that was not answered."""
        return any(worker.given for worker in self._workers)

    def give(self, number: int, state: CrashState) -> None:
        """Has somebody look at a state."""
        worker = min(self._workers, key=lambda worker: len(worker.given))
        if not worker.given:
            worker.since_s = time.monotonic()
        worker.given.append((number, state))
        # Of one that has ended meanwhile, ``answers`` hears; another takes its place then.
        with suppress(BrokenPipeError):
            _send(worker.asks, (number, state))

    def answers(self) -> Iterator[tuple[int, str | None]]:
        """Waits a while for what somebody found: numbers of states with what is wrong with them. Raises ``RunError``
        where the check cannot be carried out."""
        ready = self._selector.select(min(WAIT_S, self._bench.patience_s))
        for key, _ in ready:
            worker: Worker = key.data
            part = os.read(worker.answers, 1 << 16)
            if not part:
                yield from self._ended(worker)
                continue
            *lines, worker.heard = (worker.heard + part).split(b"\n")
            for line in lines:
                answer = json.loads(line)
                if "failed" in answer:
                    raise RunError(answer["failed"])
                worker.given.popleft()
                worker.since_s = time.monotonic()
                yield answer["number"], answer["message"]
        for worker in list(self._workers):
            if worker.given and time.monotonic() - worker.since_s > self._bench.patience_s:
                os.killpg(worker.process, signal.SIGKILL)

    def look(self, state: CrashState) -> str | None:
        """The fault that the check finds in a state; no other state is handed out meanwhile."""
        self.give(-1, state)
        while True:
            for number, message in self.answers():
                if number == -1:
                    return message

    def close(self) -> None:
        """Ends the processes, and whatever their checks have begun."""
        for worker in self._workers:
            with suppress(ProcessLookupError):
                os.killpg(worker.process, signal.SIGKILL)
            self._forget(worker)
        self._workers.clear()
        self._selector.close()

    def _begin(self, number: int) -> None:
        theirs, asks = os.pipe()
        answers, ours = os.pipe()
        with warnings.catch_warnings():
            # The compiled part keeps no threads between calls.
            warnings.filterwarnings("ignore", message=f".*{FORK_MESSAGE}", category=DeprecationWarning)
            process = os.fork()
        if process == 0:
            code = 1
            try:
                os.setpgid(0, 0)
                os.close(asks)
                os.close(answers)
                for other in self._workers:
                    os.close(other.asks)
                    os.close(other.answers)
                _serve(self._bench, number, theirs, ours)
                code = 0
            finally:
                os._exit(code)
        os.close(theirs)
        os.close(ours)
        # Whichever of the two comes first.
        with suppress(PermissionError, ProcessLookupError):
            os.setpgid(process, process)
        worker = Worker(number, process, asks, answers)
        self._workers.append(worker)
        self._selector.register(answers, selectors.EVENT_READ, worker)

    def _ended(self, worker: Worker) -> Iterator[tuple[int, str | None]]:
        """The check took its process with it: that is an answer. Another goes on with what was not looked at."""
        self._workers.remove(worker)
        status = self._forget(worker)
        if not worker.given:
            raise RunError("a process that looks at states has ended by itself")
        (number, _), *others = worker.given
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
            self.give(other, state)
        yield number, message

    def _forget(self, worker: Worker) -> int:
        self._selector.unregister(worker.answers)
        os.close(worker.asks)
        os.close(worker.answers)
        status = os.waitpid(worker.process, 0)[1]
        # One that was ended has unmounted nothing.
        _native.CrashedDevice.clear(str(self._bench.folder / str(worker.number)))
        return status


def _serve(bench: Bench, number: int, asks: int, answers: int) -> None:
    """The life of a process: it ends when nobody asks any more."""
    # Ctrl-C is for whoever asks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # A check that takes this process with it is an answer, which needs no stacks.
    faulthandler.disable()
    folder = bench.folder / str(number)
    folder.mkdir(exist_ok=True)
    (folder / "image").unlink(missing_ok=True)
    (folder / "check").mkdir(exist_ok=True)
    try:
        with shown(bench.recording, bench.rules, bench.over, folder) as (device, address):
            for line in os.fdopen(asks, "rb", closefd=False):
                asked, state = json.loads(line)
                device.take(state)
                marks = bench.recording.native.marks_before(state["events"])
                message = bench.check.violated(address, marks, folder / "check")
                device.restore()
                _send(answers, {"number": asked, "message": message})
    except Exception as error:
        # What a check raises is its answer; this is ours.
        with suppress(BrokenPipeError):
            _send(answers, {"failed": str(error) or repr(error)})


def _send(pipe: int, what: object) -> None:
    data = line_of(what)
    while data:
        data = data[os.write(pipe, data) :]
