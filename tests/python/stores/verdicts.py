"""What may be wrong with a store after a crash, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from stores.model import COUNT, digest, numbers


class Kind(StrEnum):
    """What is wrong. A third of the bugs lose what was acknowledged, and look healthy to every other oracle."""

    LOST = "lost"
    """A transaction was acknowledged, and what is there is from before it."""
    TORN = "not atomic"
    """Nothing that any number of transactions leaves."""
    CORRUPT = "corrupt"
    """The store itself says that something is wrong, or cannot be opened."""
    UNOPENED = "unopened"
    """The same before anything was acknowledged: nobody has lost anything, and yet somebody has to clean up."""
    DIED = "checker died"
    """Of a signal, while it read."""
    ZEROS = "zeros"
    """A file, or a record in it, has its length and no contents."""
    EMPTY = "empty file"
    NO_FILE_SYSTEM = "no file system"
    AHEAD = "ahead"
    """More than was asked for: a fault of this test."""


class BrokenError(Exception):
    """A store that a crash has broken, or what the first of its transactions that this concerns has written."""

    def __init__(self, kind: Kind, what: str, transaction: int = 1) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind, self.what, self.transaction = kind, what, transaction


def kind_of(message: str) -> Kind:
    """The kind that the message of a finding begins with."""
    return Kind(message.partition(":")[0])


def judge(rows: Mapping[bytes, bytes], acknowledged: int, transactions: int) -> None:
    """Raises `BrokenError` unless rows are those after all acknowledged transactions, or one more."""
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
