"""The table of cases."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstack.live.filesystems import UnreadableError, recovered_file_system
from stores.apart import apart
from stores.programs import STORES, Store
from stores.verdicts import BrokenError, Kind, judge

FOLDER = "store"
"""Folder of the file system for the files of a store."""
TABLE = Path(__file__).with_name("cases.toml")


@dataclass(frozen=True)
class Case:
    """A row of the table."""

    name: str
    store: str
    settings: dict[str, Any] = field(default_factory=dict)
    file_system: str = "ext4"
    drive: str = "wd1200bb"
    """A disk with a volatile write cache, which writes sector by sector."""
    mount: str = ""
    background_ms: float = 4
    neighbour: bool = False
    """Whether another program permanently syncs a file of its own."""
    speed: float = 50
    """Speed of the device, whose times are mostly not tested."""
    torn: int = 0
    """Size of pieces of which any may be stored; 0 if writes are complete or absent."""
    budget: str = "10s"
    must: frozenset[Kind] = frozenset()
    may: frozenset[Kind] = frozenset()

    @property
    def program(self) -> Store:
        return STORES[self.store]

    def __str__(self) -> str:
        settings = " ".join(f"{name}={value}" for name, value in self.settings.items())
        torn = f"torn at {self.torn} bytes" if self.torn else ""
        words = (self.store, settings, "" if self.file_system == "ext4" else self.file_system, self.mount, torn)
        return " ".join(filter(None, words))

    def check(self, image: Path, marks: Sequence[str]) -> None:
        """Raises `BrokenError` for acknowledged data, by the marks, that an image lacks."""
        acknowledged = max((int(mark) for mark in marks if mark.isdecimal()), default=0)
        try:
            with recovered_file_system(image, self.file_system) as root:
                rows = apart(lambda: self.program.read(root / FOLDER, self.settings))
        except UnreadableError as error:
            raise BrokenError(Kind.NO_FILE_SYSTEM, str(error)) from None
        except BrokenError as broken:
            if acknowledged < broken.transaction and broken.kind in (Kind.CORRUPT, Kind.DIED):
                raise BrokenError(Kind.UNOPENED, broken.what) from None
            raise
        judge(rows, acknowledged, self.program.transactions)

    def verdict(self, seen: set[Kind]) -> str:
        """Returns the verdict for the kinds that were seen."""
        if wrong := seen - self.must - self.may:
            return "wrong: " + ", ".join(sorted(wrong))
        if missed := self.must - seen:
            return ("missed: " if missed == self.must else "not seen: ") + ", ".join(sorted(missed))
        return "found" if self.must else "none"


def cases() -> list[Case]:
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["case"]
    return [Case(**row | {k: frozenset(map(Kind, row.get(k, []))) for k in ("must", "may")}) for row in rows]


def named(name: str) -> Case:
    return next(case for case in cases() if case.name == name)
