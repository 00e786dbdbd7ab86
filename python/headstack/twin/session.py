"""``Session``: the requests run so far on a device under calibration, the time used, and the time left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headstack.twin.device import Answers, Device, Requests

Again = Callable[[np.random.Generator], Requests]


PLANNED = 0.8
"""Share of a budget that is planned: some answers take longer than expected."""


class OutOfTimeError(Exception):
    """The budget is spent; the answers so far are kept."""


@dataclass
class ProbeRun:
    """Requests and their answers, which a model of the device must explain."""

    test: str
    """The test: the name of the probe and of its part."""
    requests: Requests
    answers: Answers
    rested_s: float = 0.0
    """Idle time of the device before."""
    again: Again | None = None
    """Draws other requests of the same kind, so that a model can be run more often than the device."""


@dataclass
class Session:
    """A device, and all requests it has run, in order."""

    device: Device
    seed: int = 1
    budget_s: float = float("inf")
    """Maximum time on the device."""
    progress: Callable[[str, float], object] | None = None
    """Called with the current test, and the estimated seconds of device time left."""
    usual_s: float = 114.0
    """Estimated maximum time of all probes of its family."""
    recorded: list[ProbeRun] = field(default_factory=list)
    """Answers of an earlier calibration of this device, which are reused as long as the same requests follow."""
    runs: list[ProbeRun] = field(default_factory=list)
    member: Session | None = None
    """The device accessed as one member of the array that it turned out to be."""
    device_s: float = 0.0
    requests: int = 0
    _rested_s: float = 0.0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    @property
    def left_s(self) -> float:
        """Time left on the device."""
        return max(0.0, self.budget_s - self.device_s)

    def draw(self, test: str, again: Again) -> Answers:
        """Runs requests of a kind that can be drawn again."""
        return self.ask(test, again(self.random), again=again)

    def ask(self, test: str, requests: Requests, again: Again | None = None) -> Answers:
        """Runs requests, and keeps the answers.

        Raises ``OutOfTimeError`` if the budget is already spent.
        """
        if self.left_s <= 0:
            raise OutOfTimeError
        if self.progress is not None:
            self.progress(test, max(0.0, min(self.budget_s, self.usual_s) - self.device_s))
        answers = self._recorded(test, requests) or self.device.ask(requests)
        self.device_s += answers.seconds
        self.requests += len(answers.issued_ns)
        self.runs.append(ProbeRun(test, requests, answers, self._rested_s, again))
        self._rested_s = 0.0
        return answers

    def _recorded(self, test: str, requests: Requests) -> Answers | None:
        if not self.recorded:
            return None
        next_ = self.recorded.pop(0)
        if next_.test == test and next_.requests == requests:
            return next_.answers
        # From here on it is another calibration.
        self.recorded.clear()
        return None

    def part_s(self, usual_s: float, to_come_s: float) -> float:
        """Returns the time in seconds for a probe that usually takes ``usual_s``, if it and the following ones usually
        take ``to_come_s``: its share of the time left, so that all together stay within the budget on a device of any
        speed."""
        left = min(PLANNED * self.budget_s, self.usual_s) - self.device_s
        return max(0.0, min(left / to_come_s, 1.5)) * usual_s

    def rest(self, seconds: float) -> None:
        """Leaves the device idle, which counts as device time."""
        if not self.recorded:
            self.device.rest(seconds)
        self.device_s += seconds
        self._rested_s += seconds

    def runs_of(self, test: str) -> list[ProbeRun]:
        """Returns the requests of a test, in order."""
        return [run for run in self.runs if run.test == test]


def places(random: np.random.Generator, count: int, end: int, size: int = 4096, start: int = 0) -> NDArray[np.uint64]:
    """Returns random offsets of requests of this size between two bytes, aligned to their size."""
    first, last = -(-start // size), end // size
    return random.integers(first, max(first + 1, last), count).astype(np.uint64) * np.uint64(size)
