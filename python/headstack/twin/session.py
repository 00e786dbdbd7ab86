"""A device under calibration: what was asked of it so far, what that took, and how much is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headstack.twin.device import Answers, Device, Requests

Again = Callable[[np.random.Generator], Requests]


PLANNED = 0.8
"""Of a budget so much is planned for: some answers take longer than can be foreseen."""


class OutOfTimeError(Exception):
    """The budget is spent; what was learnt is kept."""


@dataclass
class Asked:
    """Requests and what came of them, which a model of the device must explain."""

    test: str
    """What it is for: the name of the probe and of its part."""
    requests: Requests
    answers: Answers
    rested_s: float = 0.0
    """How long the device was left alone before."""
    again: Again | None = None
    """Draws other requests of the same kind, so that a model of the device is asked more often than the device was."""


@dataclass
class Session:
    """A device, and all that was asked of it in order."""

    device: Device
    seed: int = 1
    budget_s: float = float("inf")
    """Time of the device that may be spent."""
    progress: Callable[[str, float], object] | None = None
    """Hears what is tested, and how many seconds of the device are left as far as that is known."""
    usual_s: float = 114.0
    """Time of a device that all probes of its family take at most, as far as they can foresee it."""
    recorded: list[Asked] = field(default_factory=list)
    """What an earlier calibration of this device was answered: it is not asked again, as long as the same comes
    next."""
    asked: list[Asked] = field(default_factory=list)
    member: Session | None = None
    """The same device seen as one member of the array that it turned out to be."""
    device_s: float = 0.0
    requests: int = 0
    _rested_s: float = 0.0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    @property
    def left_s(self) -> float:
        """Time of the device that is left."""
        return max(0.0, self.budget_s - self.device_s)

    def draw(self, test: str, again: Again) -> Answers:
        """Asks requests of a kind that can be drawn again."""
        return self.ask(test, again(self.random), again=again)

    def ask(self, test: str, requests: Requests, again: Again | None = None) -> Answers:
        """Asks, and keeps what came of it.

        Raises ``OutOfTimeError`` where the budget was spent before.
        """
        if self.left_s <= 0:
            raise OutOfTimeError
        if self.progress is not None:
            self.progress(test, max(0.0, min(self.budget_s, self.usual_s) - self.device_s))
        answers = self._recorded(test, requests) or self.device.ask(requests)
        self.device_s += answers.seconds
        self.requests += len(answers.issued_ns)
        self.asked.append(Asked(test, requests, answers, self._rested_s, again))
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
        """Seconds for a probe that usually takes ``usual_s``, where it and those behind it usually take ``to_come_s``:
        its part of what is left, so that all together stay within the budget on a device of any speed."""
        left = min(PLANNED * self.budget_s, self.usual_s) - self.device_s
        return max(0.0, min(left / to_come_s, 1.5)) * usual_s

    def rest(self, seconds: float) -> None:
        """Leaves the device alone, which is time of the device too."""
        if not self.recorded:
            self.device.rest(seconds)
        self.device_s += seconds
        self._rested_s += seconds

    def of(self, test: str) -> list[Asked]:
        """What was asked in a test, in order."""
        return [one for one in self.asked if one.test == test]


def places(random: np.random.Generator, count: int, end: int, size: int = 4096, start: int = 0) -> NDArray[np.uint64]:
    """Random offsets of requests of this size between two bytes, aligned to their size."""
    first, last = -(-start // size), end // size
    return random.integers(first, max(first + 1, last), count).astype(np.uint64) * np.uint64(size)
