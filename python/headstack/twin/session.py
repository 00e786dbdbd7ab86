"""A device under calibration: what was asked of it so far, what that took, and how much is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from headstack.twin.device import Answers, Device, Requests


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


@dataclass
class Session:
    """A device, and all that was asked of it in order."""

    device: Device
    seed: int = 1
    budget_s: float = float("inf")
    """Time of the device that may be spent."""
    progress: Callable[[str, float], object] | None = None
    """Hears what is tested, and the share of the budget that is spent."""
    asked: list[Asked] = field(default_factory=list)
    device_s: float = 0.0
    requests: int = 0
    _rested_s: float = 0.0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    @property
    def left_s(self) -> float:
        """Time of the device that is left."""
        return max(0.0, self.budget_s - self.device_s)

    def ask(self, test: str, requests: Requests, keep: bool = True) -> Answers:
        """Asks, and keeps what came of it for the inference unless it is too much to keep.

        Raises ``OutOfTimeError`` where the budget was spent before.
        """
        if self.left_s <= 0:
            raise OutOfTimeError
        if self.progress is not None:
            self.progress(test, min(1.0, self.device_s / self.budget_s))
        answers = self.device.ask(requests)
        self.device_s += answers.seconds
        self.requests += len(answers.issued_ns)
        if keep:
            self.asked.append(Asked(test, requests, answers, self._rested_s))
            self._rested_s = 0.0
        return answers

    def rest(self, seconds: float) -> None:
        """Leaves the device alone, which is time of the device too."""
        self.device.rest(seconds)
        self.device_s += seconds
        self._rested_s += seconds

    def of(self, test: str) -> list[Asked]:
        """What was asked in a test, in order."""
        return [one for one in self.asked if one.test == test]

    def places(self, count: int, size: int = 4096, start: int = 0, end: int | None = None) -> np.ndarray:
        """Random offsets of requests of this size between two bytes, aligned to their size."""
        align = max(size, self.device.block_bytes)
        first, last = -(-start // align), (self.device.capacity_bytes if end is None else end) // align
        return self.random.integers(first, max(first + 1, last), count).astype(np.uint64) * np.uint64(align)
