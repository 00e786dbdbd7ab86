"""Faults of a store after a crash, and how they are detected."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from stores.model import COUNT, digest, numbers


class Kind(StrEnum):
    """The kind of a fault. 33 % of the bugs lose acknowledged data, and look healthy to every other oracle."""

    LOST = "lost"
    """A transaction was acknowledged, but the contents are from before it."""
    TORN = "not atomic"
    """The contents match no number of transactions."""
    CORRUPT = "corrupt"
    """The store itself reports a fault, or cannot be opened."""
    UNOPENED = "unopened"
    """The same before anything was acknowledged: no data are lost, but repair is required."""
    DIED = "checker died"
    """Killed by a signal while it read."""
    ZEROS = "zeros"
    """A file, or a record in it, has its length but no contents."""
    EMPTY = "empty file"
    NO_FILE_SYSTEM = "no file system"
    AHEAD = "ahead"
    """More than the requested transactions: a fault of this test."""


class BrokenError(Exception):
    """A store broken by a crash; ``transaction`` is the first affected one."""

    def __init__(self, kind: Kind, what: str, transaction: int = 1) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind, self.what, self.transaction = kind, what, transaction


def kind_of(message: str) -> Kind:
    """Returns the kind at the start of a finding's message."""
    return Kind(message.partition(":")[0])


def judge(rows: Mapping[bytes, bytes], acknowledged: int, transactions: int) -> None:
    """Raises `BrokenError` unless the rows are those after all acknowledged transactions, or one more."""
    number = numbers(transactions).get(digest(rows))
    if number is None:
        said = rows.get(COUNT, b"none").decode(errors="replace")
        raise BrokenError(
            Kind.TORN, f"{len(rows)} rows, which no transaction leaves; the last that is there says {said[:20]}"
        )
    if number < acknowledged:
        raise BrokenError(Kind.LOST, f"{acknowledged} transactions were acknowledged, {number} are there")
    if number > acknowledged + 1:
        raise BrokenError(Kind.AHEAD, f"{acknowledged} transactions were acknowledged, {number} are there")
