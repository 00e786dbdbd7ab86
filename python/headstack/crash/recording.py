"""Recordings of what a device was sent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack._native import InputError
from headstack.crash.showing import WAYS
from headstack.values import choice, size_bytes

if TYPE_CHECKING:
    from headstack.crash.checks import Function
    from headstack.crash.findings import Exploration

TEARS = ("none", "prefix", "any")
FORMS = ("journal", "dm-log-writes")

Told = Callable[[int, float, int], object]
"""Is told of progress: states, the share of the budget, findings."""


def open(path: str | os.PathLike[str]) -> Recording:
    """The recording in a journal, or in a log of dm-log-writes."""
    return Recording(os.fspath(path))


class Recording:
    """What a device was sent, in order, and how it answered.

    >>> hs.crash.open("no.journal")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no.journal'
    """

    def __init__(self, path: str, base: str | None = None) -> None:
        self.path = path
        self.base = base
        """What the device held when it began; None for zeros."""
        self.native = _native.CrashRecording(path, base)
        """As the compiled part has it."""
        self.described: dict[str, Any] = json.loads(self.native.described())
        """What it is: capacity, counts, how it ends."""

    def over(self, base: str | os.PathLike[str] | None) -> Recording:
        """The same over what the device held when it began: the image that the recording names where none is given."""
        image = self.described["image"]
        if base is not None:
            return Recording(self.path, os.fspath(base))
        if image is None:
            return self
        beside = Path(self.path).parent / image
        if not beside.exists():
            raise InputError(f"{self.path}: the device began with the image {image}, which is not there; give base")
        return Recording(self.path, os.fspath(beside))

    def explore(
        self,
        check: str | Function,
        *,
        base: str | os.PathLike[str] | None = None,
        over: str = "file",
        budget: str | int | None = "60s",
        tear: str = "none",
        atom: str | None = None,
        start: str = "mark",
        regions: Iterable[str] = (),
        jobs: int | None = None,
        seed: int = 0,
        findings: int = 8,
        state: str | os.PathLike[str] | None = None,
        reproducers: str | os.PathLike[str] | None = None,
        progress: Told | None = None,
    ) -> Exploration:
        """Looks at states that a crash may leave, until the ``budget`` is spent: a time, or a number of states.

        With None for a budget it ends when there is nothing new. ``base`` is what the device held when it began, if
        not zeros. ``over`` says what the check finds: a ``"file"`` of its own, the address of an ``"nbd"`` server, or
        a file of a ``"fuse"`` mount, which is no copy. ``tear`` says where writes may stop: ``"none"``, ``"prefix"``
        after any ``atom``, ``"any"`` of the atoms. An atom is a block of the device unless said otherwise
        (``"4KiB"``). ``start`` is ``"mark"`` for the first mark, ``"begin"``, or the text of a mark. Within each of
        ``regions``, which begin at these offsets, the device keeps order. Up to ``findings`` of what is found are
        reduced to the least that fails; the others are counted. ``state`` names a file from which an exploration goes
        on that was ended before, ``reproducers`` a folder for the findings. The same seed gives the same states in
        the same order, whatever the number of ``jobs``.
        """
        from headstack.crash.exploration import explore

        return explore(
            self.over(base),
            check,
            budget=budget,
            asked=self.asked(tear, atom, start, regions, seed),
            over=choice("over", over, WAYS),
            jobs=jobs,
            findings_max=findings,
            kept=None if state is None else Path(state),
            reproducers=None if reproducers is None else Path(reproducers),
            progress=progress,
        )

    def asked(self, tear: str, atom: str | None, start: str, regions: Iterable[str], seed: int) -> dict[str, Any]:
        """What is searched, as the compiled part understands it. Raises ``InputError``."""
        rules = {
            "tear": choice("tear", tear, TEARS),
            "atom_bytes": 0 if atom is None else size_bytes("atom", atom),
            "regions": sorted(size_bytes("regions", region) for region in regions),
        }
        begins: object = {"mark": "first-mark", "begin": "beginning"}.get(start, {"mark": start})
        return {"rules": rules, "from": begins, "seed": seed}

    def moments(self, tear: str = "none", atom: str | None = None, start: str = "begin") -> list[dict[str, Any]]:
        """The windows: moments at which crashes are tried, with what is open and how many states that makes."""
        search = _native.CrashSearch(self.native, self.base, json.dumps(self.asked(tear, atom, start, (), 0)))
        found: list[dict[str, Any]] = json.loads(search.moments())
        return found

    def convert(self, path: str | os.PathLike[str], to: str = "journal") -> int:
        """Writes it as a ``"journal"`` or as ``"dm-log-writes"``; how many changes are left out, since they failed."""
        if choice("to", to, FORMS) == "journal":
            self.native.write_journal(os.fspath(path))
            return 0
        return self.native.write_dm_log(os.fspath(path))

    def digest(self) -> str:
        """What two recordings of the same requests have in common: a hash of all that happened, in order, with the data
        and the marks. Times are left out, and the name of the image that the device began with."""
        return self.native.digest()

    @property
    def reproduced(self) -> dict[str, Any] | None:
        """The state of which this is a reproducer; None for other recordings."""
        found = self.native.reproduced()
        return None if found is None else json.loads(found)
