"""``Workload``, from the catalogue, a TOML file, or with requests of one size."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass
from typing import Any

from headstack import _native


@dataclass(frozen=True)
class Workload:
    """An access pattern with addresses, arrivals, warm-up and run length."""

    description: dict[str, Any]
    """The content as in a TOML file of the catalogue, with all defaults filled in; quantities are text with a unit."""

    @property
    def name(self) -> str:
        """The name in the catalogue, or one made from the request size."""
        return str(self.description["name"])

    @classmethod
    def load(cls, name: str | os.PathLike[str]) -> Workload:
        """Loads the workload of that id or name in the catalogue, or of that TOML file.

        Raises ``InputError`` with file, line and key if there is none, or it is not a workload.

        >>> hs.Workload.load("file-server").name
        'file-server'
        """
        return cls(_native.load_workload(os.fspath(name)))

    @classmethod
    def uniform(cls, size: str = "4KiB", read: str = "100", random: str = "100") -> Workload:
        """Returns a workload of requests of one size, aligned to it as in fio; ``read`` and ``random`` are the
        percentages of reads and of random requests.

        >>> hs.Workload.uniform("8KiB", read="70").name
        '8KiB, 70 % read, 100 % random'
        """
        return cls(_native.uniform_workload(size, read, random))

    @property
    def demand(self) -> dict[str, Any]:
        """The load for a run, as a copy that may be changed."""
        return {"workload": self.copy()}

    def copy(self) -> dict[str, Any]:
        """Returns a copy of the description, which may be changed.

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
