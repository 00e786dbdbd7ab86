"""One member of an array, seen through the array: a device of its own for the probes of its family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headstack.twin.device import READ, Answers, Requests
from headstack.twin.layout import Layout


@dataclass(frozen=True)
class Member:
    """The first member, or the first pair of mirrors, of an array.

    A request that fits a stripe unit goes to that member alone; a longer one goes to whole rows, of which each member
    does as much. Mirrors are asked each read twice, once for each copy, and so do as one drive does.
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
        """Bytes of a member that the array uses."""
        return self.layout.rows(self.array_bytes) * self.layout.unit_bytes

    def ask(self, requests: Requests, progress: Callable[[float], object] | None = None) -> Answers:
        """Asks the array what falls on this member."""
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
        """Leaves the array alone."""
        self.rests(seconds)

    def _placed(self, requests: Requests) -> tuple[np.ndarray, np.ndarray]:
        layout, unit = self.layout, self.layout.unit_bytes
        at, lengths = requests.offsets.astype(np.int64), requests.lengths.astype(np.int64)
        rows, within = np.divmod(at, unit)
        last = layout.rows(self.array_bytes) - 1
        # What would cross the end of its unit begins a little sooner.
        alone = layout.of_member(rows, 0, last) + np.minimum(within, np.maximum(unit - lengths, 0))
        many = np.minimum(-(-lengths // unit), last + 1)
        begin = np.minimum(rows, last + 1 - many)
        is_long = lengths > unit
        row_bytes = layout.data_units * unit
        return (
            np.where(is_long, begin * row_bytes, alone).astype(np.uint64),
            np.where(is_long, many * row_bytes, lengths).astype(np.uint32),
        )
