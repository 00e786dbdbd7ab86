"""Where data of an array lie: the member that answers a read, where parity is, and what is on one member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from headstack.twin.device import Integers

UNITS: Final = tuple(4096 << power for power in range(9))
"""Stripe units of arrays that are sold: 4 KiB to 1 MiB."""
MEMBERS_MOST: Final = 24
"""Drives of a shelf."""


@dataclass(frozen=True)
class Layout:
    """Stripe units dealt over members, left-symmetric where there is parity."""

    level: str
    """``raid0``, ``raid10``, ``raid5`` or ``raid6``."""
    members: int
    unit_bytes: int

    @property
    def places(self) -> int:
        """Members, or pairs of them, over which reads are spread."""
        return self.members // 2 if self.level == "raid10" else self.members

    @property
    def data_units(self) -> int:
        """Stripe units of a row that hold data."""
        return self.places - {"raid5": 1, "raid6": 2}.get(self.level, 0)

    def rows(self, capacity_bytes: int) -> int:
        """Rows of an array of this capacity."""
        return capacity_bytes // (self.data_units * self.unit_bytes)

    def member_of(self, offsets: np.ndarray) -> Integers:
        """The member, or the pair of them, that answers a read."""
        number = np.asarray(offsets).astype(np.int64) // self.unit_bytes
        if self.level == "raid6":
            # Left-symmetric: parity goes back by one member from row to row, and data begin behind it.
            row, unit = np.divmod(number, self.members - 2)
            return np.asarray((1 - row + unit) % self.members)
        return np.asarray(number % self.places)

    def parity_of(self, offsets: np.ndarray) -> Integers:
        """The member that holds the parity of one (RAID 5)."""
        return (
            np.asarray(-1 - np.asarray(offsets).astype(np.int64) // (self.unit_bytes * (self.members - 1)))
            % self.members
        )

    def of_member(self, rows: np.ndarray, member: int, last: int) -> Integers:
        """The first byte of the array that a member, or the first of pairs, has in each row, and in a row beside where
        it has parity; ``last`` is the last row."""
        unit = np.full(len(rows), member)
        if self.level in ("raid5", "raid6"):
            first = 0 if self.level == "raid5" else -1
            unit = (rows + member + first) % self.members
            over = unit - self.data_units + 1
            ahead = self.members - unit
            moved = np.where(over <= 0, 0, np.where(rows + ahead <= last, ahead, -over))
            rows = rows + moved
            unit = (rows + member + first) % self.members
        return np.asarray((rows * self.data_units + unit) * self.unit_bytes)


def layouts() -> list[Layout]:
    """Every number of members and stripe unit whose reads lie differently: mirrors and one parity are told by more."""
    counts = {"raid0": range(2, MEMBERS_MOST + 1), "raid6": range(4, MEMBERS_MOST + 1)}
    return [Layout(level, count, unit) for level in counts for count in counts[level] for unit in UNITS]
