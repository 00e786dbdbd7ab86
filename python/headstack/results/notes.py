"""The order of notes: notes that require action come before notes that only describe a run."""

from __future__ import annotations

import re
from collections.abc import Iterable

STANDING = re.compile(
    r"warm-up, excluded: "
    r"|\d+ threads: the queue depth is the sum over threads"
    r"|requests were answered by "
    r"|.*\bwere prepared in [\d.]+ s$"
    r"|.*\bremoved \d+ files, \d+ directories$"
    r"|.*\bverified [\d.]+ MB of written data in [\d.]+ s$"
)
"""Notes that describe how a run was made and require no action."""


def is_standing(note: str) -> bool:
    """Whether a note describes how a run was made and requires no action.

    >>> is_standing("warm-up, excluded: 14 requests in 0.10 s")
    True
    >>> is_standing("warm-up: ended after 60.00 s with 3 of 200 requests, which are excluded; set a time")
    False
    """
    return STANDING.match(note) is not None


def actionable_first(notes: Iterable[str]) -> list[str]:
    """Sorts notes: actionable ones first, otherwise in their order.

    >>> actionable_first(["warm-up, excluded: 14 requests in 0.10 s", "3 requests failed; the first: EIO"])[0]
    '3 requests failed; the first: EIO'
    """
    return sorted(notes, key=is_standing)
