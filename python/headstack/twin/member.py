"""``Member``: one member of an array, accessed through the array as a device for the probes of its family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headstack.twin.device import READ, Answers, Requests
from headstack.twin.layout import Layout


@dataclass(frozen=True)
class Member:
    """The first member, or the first pair of mirrors, of an array.

    A request that fits a chunk goes to that member only; a longer one goes to whole stripes, of which each member
    serves an equal part. For mirrors each read is issued twice, once for each copy, so that they behave as one drive.
    """

    layout: Layout
    array_bytes: int
    block_bytes: int
    asks: Callable[[Requests], Answers]
    rests: Callable[[float], None]
    may_write: bool
    name: str = "a member"

    @property
    def capacity_bytes(self) -> int:
        """The bytes of a member that the array uses."""
        return self.layout.rows(self.array_bytes) * self.layout.unit_bytes

    def ask(self, requests: Requests, progress: Callable[[float], object] | None = None) -> Answers:
        """Runs the requests of this member on the array."""
        offsets, lengths = self._placed(requests)
        copies = 1
        kinds, times = requests.kinds, requests.times_ns
        if self.layout.level == "raid10" and bool((kinds == READ).all()):
            copies = 2
            kinds, offsets, lengths, times = (np.repeat(column, 2) for column in (kinds, offsets, lengths, times))
        depth = requests.depth * copies
        answers = self.asks(Requests(kinds, offsets, lengths, depth, times))
        return Answers(answers.issued_ns[::copies], answers.completed_ns[::copies], answers.failed)

    def rest(self, seconds: float) -> None:
        """Leaves the array idle."""
        self.rests(seconds)

    def _placed(self, requests: Requests) -> tuple[np.ndarray, np.ndarray]:
        layout, unit = self.layout, self.layout.unit_bytes
        at, lengths = requests.offsets.astype(np.int64), requests.lengths.astype(np.int64)
        rows, within = np.divmod(at, unit)
        last = layout.rows(self.array_bytes) - 1
        # A request that would cross the end of its chunk begins slightly earlier.
        alone = layout.of_member(rows, 0, last) + np.minimum(within, np.maximum(unit - lengths, 0))
        many = np.minimum(-(-lengths // unit), last + 1)
        begin = np.minimum(rows, last + 1 - many)
        is_long = lengths > unit
        row_bytes = layout.data_units * unit
        return (
            np.where(is_long, begin * row_bytes, alone).astype(np.uint64),
            np.where(is_long, many * row_bytes, lengths).astype(np.uint32),
        )
