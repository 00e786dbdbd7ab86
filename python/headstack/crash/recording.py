"""``Recording`` of the requests to a device, and its exploration."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from headstack._native import InputError
from headstack.crash.showing import WAYS
from headstack.io.values import choice, duration_ns

if TYPE_CHECKING:
    from headstack.crash.checks import Function
    from headstack.crash.findings import Exploration
from headstack.crash.recorded import ProgressCallback, Recorded


def patience_s(text: str) -> float:
    """Parses the time limit of a check. Raises ``InputError``."""
    seconds = duration_ns("check-timeout", text) / 1e9
    if seconds <= 0:
        raise InputError(f"check-timeout: {text} is out of range; must be above 0s, for example 60s")
    return seconds


def open(path: str | os.PathLike[str]) -> Recording:
    """Opens the recording in a journal, or in a log of dm-log-writes."""
    return Recording(os.fspath(path))


class Recording(Recorded):
    """The requests to a device, in order, with its answers.

    >>> hs.crash.open("no.journal")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no.journal'
    """

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
        check_timeout: str = "60s",
        progress: ProgressCallback | None = None,
    ) -> Exploration:
        """Checks states that a crash may leave, until the ``budget`` is spent: a time, or a number of states.

        Reductions of findings are part of the budget. If it is ``None``, the exploration ends when there are no new
        states. ``base`` is the initial content of the device, by default zeros. ``over`` selects how states are
        presented to the check: as a ``"file"`` of its own, as the address of an ``"nbd"`` server, or as a file of a
        ``"fuse"`` mount, which is no copy. ``tear`` selects where writes may be torn: ``"none"``, ``"prefix"`` after
        any ``atom``, ``"any"`` of the atoms. An atom is by default a block of the device (``"4KiB"``). ``start`` is
        ``"mark"`` for the first mark, ``"begin"``, or the text of a mark. Within each of ``regions``, which begin at
        these offsets, the device keeps the order of writes. Up to ``findings`` failing states are reduced to minimal
        ones; the others are counted. ``state`` names a file from which an interrupted exploration continues,
        ``reproducers`` a folder for the findings. A check that does not end within ``check_timeout`` fails. Equal seeds
        give equal states in the same order, for any number of ``jobs``.
        """
        from headstack.crash.exploration import explore  # start-up time

        return explore(
            self.over(base),
            check,
            budget=budget,
            request=self.search_request(tear, atom, start, regions, seed),
            over=choice("over", over, WAYS),
            jobs=jobs,
            findings_max=findings,
            kept=None if state is None else Path(state),
            reproducers=None if reproducers is None else Path(reproducers),
            patience_s=patience_s(check_timeout),
            progress=progress,
        )
