"""``Layout``: the placement of an array's data: the member of a read, the position of parity, and the contents of a
member.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from headstack.twin.device import Integers

UNITS: Final = tuple(4096 << power for power in range(9))
"""Chunk sizes of commercial arrays: 4 KiB to 1 MiB."""
MEMBERS_MOST: Final = 24
"""Number of drives in a shelf."""


@dataclass(frozen=True)
class Layout:
    """Chunks distributed over members, left-symmetric with parity."""

    level: str
    """``raid0``, ``raid10``, ``raid5`` or ``raid6``."""
    members: int
    unit_bytes: int

    @property
    def places(self) -> int:
        """Number of members, or mirrored pairs, over which reads are spread."""
        return self.members // 2 if self.level == "raid10" else self.members

    @property
    def data_units(self) -> int:
        """Chunks of a stripe that hold data."""
        return self.places - {"raid5": 1, "raid6": 2}.get(self.level, 0)

    def rows(self, capacity_bytes: int) -> int:
        """Returns the number of stripes of an array with this capacity."""
        return capacity_bytes // (self.data_units * self.unit_bytes)

    def member_of(self, offsets: np.ndarray) -> Integers:
        """Returns the member, or the mirrored pair, that serves a read."""
        number = np.asarray(offsets).astype(np.int64) // self.unit_bytes
        if self.level == "raid6":
            # Left-symmetric: parity moves back by one member per stripe, and data begin after it.
            row, unit = np.divmod(number, self.members - 2)
            return np.asarray((1 - row + unit) % self.members)
        return np.asarray(number % self.places)

    def parity_of(self, offsets: np.ndarray) -> Integers:
        """Returns the member that holds the parity of an offset (RAID 5)."""
        return (
            np.asarray(-1 - np.asarray(offsets).astype(np.int64) // (self.unit_bytes * (self.members - 1)))
            % self.members
        )

    def of_member(self, rows: np.ndarray, member: int, last: int) -> Integers:
        """Returns the first byte of the array that a member, or the first of mirrored pairs, has in each stripe, or in
        a neighbouring stripe if it has parity there; ``last`` is the last stripe."""
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
    """Returns every combination of member count and chunk size that places reads differently. Further tests are needed
    to distinguish mirrors from single parity.
    """
    counts = {"raid0": range(2, MEMBERS_MOST + 1), "raid6": range(4, MEMBERS_MOST + 1)}
    return [Layout(level, count, unit) for level in counts for count in counts[level] for unit in UNITS]
