"""The verification of the data that a run read."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

BlockClass: TypeAlias = Literal[
    "intact",
    "mixed",
    "trimmed",
    "unwritten",
    "unsettled",
    "ahead",
    "stale",
    "torn",
    "misplaced",
    "corrupt",
    "zeros",
    "foreign",
    "unreadable",
]
"""Classes of verified blocks; each block that was read is in exactly one class."""


class Integrity(TypedDict):
    """Counts of the blocks that were read and verified, by class."""

    block_bytes: int
    checked: int
    intact: int
    mixed: int
    trimmed: int
    unwritten: int
    unsettled: int
    ahead: int
    stale: int
    torn: int
    misplaced: int
    corrupt: int
    zeros: int
    foreign: int
    unreadable: int
    torn_requests: int
    damaged: int
    lost: int
    unflushed: int
    undecided: int
    findings: list[str]
    """The first findings, in words."""
    cannot_tell: list[str]
    """Questions that the verification cannot decide, in words."""
