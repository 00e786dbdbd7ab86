"""The order of notes: notes that require action come before notes that only describe a run."""

from __future__ import annotations

import re
from collections.abc import Iterable

STANDING = re.compile(
    r"warm-up, left out: "
    r"|\d+ threads: the depth is the sum of theirs"
    r"|requests were answered by "
    r"|.*\bwere made ready in [\d.]+ s$"
    r"|.*\bremoved \d+ files, \d+ folders$"
    r"|.*\bthat were written were read again in [\d.]+ s$"
)
"""Notes that describe how a run was made and require no action."""


def is_standing(note: str) -> bool:
    """Whether a note describes how a run was made and requires no action.

    >>> is_standing("warm-up, left out: 14 requests in 0.10 s")
    True
    >>> is_standing("warm-up: ended after 60.00 s with 3 of 200 requests, which are left out; a time makes it longer")
    False
    """
    return STANDING.match(note) is not None


def actionable_first(notes: Iterable[str]) -> list[str]:
    """Sorts notes: actionable ones first, otherwise in their order.

    >>> actionable_first(["warm-up, left out: 14 requests in 0.10 s", "3 requests failed; the first: EIO"])[0]
    '3 requests failed; the first: EIO'
    """
    return sorted(notes, key=is_standing)
