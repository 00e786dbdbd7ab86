"""A workload: of the catalogue, of a TOML file, or of one size."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass
from typing import Any

from headstack import _native


@dataclass(frozen=True)
class Workload:
    """An access specification with its addresses, arrivals, warm-up and run length."""

    description: dict[str, Any]
    """As in a TOML file of the catalogue, every default filled in; quantities are text with a unit."""

    @property
    def name(self) -> str:
        """The name in the catalogue, or that of the one size."""
        return str(self.description["name"])

    @classmethod
    def load(cls, name: str | os.PathLike[str]) -> Workload:
        """The workload of that id or name in the catalogue, or of that TOML file.

        Raises ``InputError`` with file, line and key when there is none, or it is not a workload.

        >>> hs.Workload.load("file-server").name
        'file-server'
        """
        return cls(_native.load_workload(os.fspath(name)))

    @classmethod
    def uniform(cls, size: str = "4KiB", read: str = "100", random: str = "100") -> Workload:
        """Requests of one size, at multiples of it as fio's are; ``read`` and ``random`` are the percentages that read
        and that go to a random place.

        >>> hs.Workload.uniform("8KiB", read="70").name
        '8KiB, 70 % read, 100 % random'
        """
        return cls(_native.uniform_workload(size, read, random))

    @property
    def demand(self) -> dict[str, Any]:
        """What a run puts its system under, to be changed."""
        return {"workload": self.copy()}

    def copy(self) -> dict[str, Any]:
        """The description, to be changed.

        >>> description = hs.Workload.load("file-server").copy()
        >>> description["name"] = "mine"
        >>> hs.Workload(description).name
        'mine'
        """
        return copy.deepcopy(self.description)

    def _repr_html_(self) -> str:
        import html  # start-up time

        lines = len(self.description["lines"])
        return f"<b>{html.escape(self.name)}</b> ({lines} line{'s' * (lines > 1)})"
