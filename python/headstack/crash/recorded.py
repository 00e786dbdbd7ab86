"""``Recorded``: the requests to a device in a journal or a log of dm-log-writes, open for reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from headstack import _native
from headstack._native import InputError
from headstack.io.values import choice, size_bytes

if TYPE_CHECKING:
    from headstack.crash.states import MarkName, Moment, RecordingSummary, Reproduced, Rules, SearchRequest

TEARS = ("none", "prefix", "any")

FORMS = ("journal", "dm-log-writes")


ProgressCallback = Callable[[int, float, int], object]
"""Called with the progress: number of states, spent share of the budget, number of findings."""


class Recorded:
    """The requests to a device, open for reading. ``Recording`` explores the states that a crash may leave."""

    def __init__(self, path: str, base: str | None = None) -> None:
        self.path = path
        self.base = base
        """The image of the device at the start of the recording; ``None`` for zeros."""
        self.native = _native.CrashRecording(path, base)
        """Recording of the compiled module."""
        self.described: RecordingSummary = self.native.described()
        """Device, counts and end of the recording."""

    def over(self, base: str | os.PathLike[str] | None) -> Self:
        """Returns the recording with another initial image, by default the image that the recording names."""
        image = self.described["image"]
        if base is not None:
            return type(self)(self.path, os.fspath(base))
        if image is None:
            return self
        initial = Path(self.path).parent / image
        if not initial.exists():
            raise InputError(f"{self.path}: the initial image {image} of the device is missing; set base (--base)")
        return type(self)(self.path, os.fspath(initial))

    def search_request(
        self, tear: str, atom: str | None, start: str, regions: Iterable[str], seed: int
    ) -> SearchRequest:
        """Returns the states to search, as the compiled part takes them. Raises ``InputError``."""
        rules: Rules = {
            "tear": choice("tear", tear, TEARS),
            "atom_bytes": 0 if atom is None else size_bytes("atom", atom),
            "regions": sorted(size_bytes("regions", region) for region in regions),
        }
        mark: MarkName = {"mark": start}
        begins: Literal["first-mark", "beginning"] | MarkName = (
            "first-mark" if start == "mark" else "beginning" if start == "begin" else mark
        )
        return {"rules": rules, "from": begins, "seed": seed}

    def moments(self, tear: str = "none", atom: str | None = None, start: str = "begin") -> list[Moment]:
        """Returns the windows: moments at which crashes are tried, with their open changes and number of states."""
        search = _native.CrashSearch(self.native, self.base, self.search_request(tear, atom, start, (), 0))
        moments: list[Moment] = search.moments()
        return moments

    def convert(self, path: str | os.PathLike[str], to: str = "journal") -> int:
        """Writes it as a ``"journal"`` or as ``"dm-log-writes"``; returns the number of failed changes, which are left
        out.
        """
        if choice("to", to, FORMS) == "journal":
            self.native.write_journal(os.fspath(path))
            return 0
        return self.native.write_dm_log(os.fspath(path))

    def digest(self) -> str:
        """Returns a hash that is equal for recordings of the same requests: of all events, in order, with the data and
        the marks, but without times and the name of the initial image."""
        return self.native.digest()

    @property
    def reproduced(self) -> Reproduced | None:
        """The state of a reproducer; ``None`` for other recordings."""
        reproduced: Reproduced | None = self.native.reproduced()
        return reproduced
