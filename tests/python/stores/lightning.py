"""LMDB, from the distribution `lmdb`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stores.model import Rows, written
from stores.verdicts import BrokenError, Kind

MAP_BYTES = 8 << 20


def run(folder: Path, settings: dict[str, bool], transactions: int, acknowledge: Callable[[int], None]) -> None:
    import lmdb

    base = lmdb.open(str(folder / "base"), map_size=MAP_BYTES, **settings)
    for number in range(1, transactions + 1):
        with base.begin(write=True) as transaction:
            for key, value in written(number).items():
                transaction.put(key, value)
        acknowledge(number)
    base.close()


def read(folder: Path, settings: dict[str, bool]) -> Rows:
    import lmdb

    if not (folder / "base" / "data.mdb").exists():
        return {}
    try:
        base = lmdb.open(str(folder / "base"), map_size=MAP_BYTES)
        with base.begin() as transaction:
            return {bytes(key): bytes(value) for key, value in transaction.cursor()}
    except lmdb.Error as error:
        raise BrokenError(Kind.CORRUPT, str(error)) from None
