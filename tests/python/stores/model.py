"""The transactions that every store runs, with known contents after each of them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from functools import cache

KEYS = 60
ROWS = 8
"""Rows of a transaction, which also writes its own number under `COUNT`."""
COUNT = b"count"
MASK = 2**64 - 1

Rows = dict[bytes, bytes]


def value(transaction: int, key: int, length: int) -> bytes:
    """Returns incompressible bytes, equal in each language: splitmix64."""
    state, words = transaction * 1000 + key, []
    for _ in range(-(-length // 8)):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        words.append(mixed ^ (mixed >> 31))
    return struct.pack(f"<{len(words)}Q", *words)[:length]


@cache
def written(transaction: int) -> Rows:
    """Returns the rows that a transaction writes."""
    rows = {COUNT: b"%d" % transaction}
    for row in range(ROWS):
        key = (transaction * 7 + row * 13) % KEYS
        rows[b"key%02d" % key] = value(transaction, key, 900 + (transaction * 37 + row * 101) % 300)
    return rows


def contents(transactions: int) -> Iterator[Rows]:
    """Yields the contents before the first, and after each transaction."""
    rows: Rows = {}
    yield dict(rows)
    for transaction in range(1, transactions + 1):
        rows |= written(transaction)
        yield dict(rows)


def digest(rows: Mapping[bytes, bytes]) -> bytes:
    """Returns a digest that is equal for equal contents."""
    hashed = hashlib.blake2b()
    for key in sorted(rows):
        hashed.update(struct.pack("<II", len(key), len(rows[key])) + key + rows[key])
    return hashed.digest()


@cache
def numbers(transactions: int) -> dict[bytes, int]:
    """Returns the number of transactions by the digest of the contents."""
    return {digest(rows): number for number, rows in enumerate(contents(transactions))}
