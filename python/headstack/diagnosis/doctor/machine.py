"""``Machine``: files of the kernel below ``/proc`` and ``/sys``, or below another root for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """A tree with ``proc`` and ``sys``, of which files are read and never written."""

    root: Path = Path("/")
    refused: set[str] = field(default_factory=set, compare=False)
    """Files that exist and that this user may not read."""

    @property
    def is_this(self) -> bool:
        """True for the running machine, whose counters advance and whose devices can be inspected."""
        return self.root == Path("/")

    def path(self, name: str) -> Path:
        """Returns the path of a file, which ``name`` states from the root."""
        return self.root / name.lstrip("/")

    def text(self, name: str) -> str | None:
        """Returns the content of a file; ``None`` if it cannot be read."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace").strip()
        except PermissionError:
            self.refused.add("/" + name.lstrip("/"))
            return None
        except OSError:
            # Some files, such as wbt_lat_usec, cannot be read if the driver has no value.
            return None

    def number(self, name: str) -> int | None:
        """Returns the number in a file; ``None`` if there is none."""
        text = self.text(name)
        return int(text) if text is not None and text.lstrip("-").isdigit() else None

    def lines(self, name: str) -> list[str]:
        """Returns the lines of a file; empty if it cannot be read."""
        return (self.text(name) or "").splitlines()

    def names(self, folder: str) -> list[str]:
        """Returns the names in a folder, sorted; empty if it cannot be read."""
        try:
            return sorted(os.listdir(self.path(folder)))
        except PermissionError:
            self.refused.add("/" + folder.lstrip("/"))
            return []
        except OSError:
            return []

    def link(self, name: str) -> str | None:
        """Returns the last part of a link's target, such as the name of a driver; ``None`` if it is no link."""
        try:
            return os.path.basename(os.readlink(self.path(name)))
        except OSError:
            return None

    def pairs(self, name: str) -> dict[str, int]:
        """Returns the counters of a file with a name and a number on each line, such as ``/proc/vmstat``."""
        return dict(self._pairs(name))

    def _pairs(self, name: str) -> Iterator[tuple[str, int]]:
        for line in self.lines(name):
            key, _, value = line.partition(" ")
            if value.strip().lstrip("-").isdigit():
                yield key, int(value)
