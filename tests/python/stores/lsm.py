"""LevelDB, from the distribution `plyvel-ci`, and RocksDB, from `rocksdict`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stores.model import Rows, written
from stores.verdicts import BrokenError, Kind

MEMTABLE_BYTES = 64 << 10
"""So small that tables are written, and old ones removed, during the few transactions of a test."""


def run_level(folder: Path, settings: dict[str, bool], transactions: int, acknowledge: Callable[[int], None]) -> None:
    import plyvel

    base = plyvel.DB(str(folder / "base"), create_if_missing=True, write_buffer_size=MEMTABLE_BYTES)
    for number in range(1, transactions + 1):
        with base.write_batch(transaction=True, sync=settings["sync"]) as batch:
            for key, value in written(number).items():
                batch.put(key, value)
        acknowledge(number)
    base.close()


def read_level(folder: Path, settings: dict[str, bool]) -> Rows:
    import plyvel

    if not (folder / "base").exists():
        return {}
    try:
        # Not paranoid, which takes the torn end of a log for corruption, though it was never acknowledged.
        base = plyvel.DB(str(folder / "base"), create_if_missing=True)
        return dict(base.iterator(verify_checksums=True))
    except plyvel.Error as error:
        raise BrokenError(Kind.CORRUPT, str(error)) from None


def rocks(folder: Path) -> Any:
    import rocksdict

    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(MEMTABLE_BYTES)
    options.set_keep_log_file_num(1)
    return rocksdict.Rdict(str(folder / "base"), options)


def run_rocks(folder: Path, settings: dict[str, bool], transactions: int, acknowledge: Callable[[int], None]) -> None:
    import rocksdict

    base = rocks(folder)
    how: Any = rocksdict.WriteOptions()
    how.sync = settings["sync"]
    how.disable_wal = not settings["wal"]
    for number in range(1, transactions + 1):
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, value in written(number).items():
            batch.put(key, value)
        base.write(batch, how)
        acknowledge(number)
    base.close()


def read_rocks(folder: Path, settings: dict[str, bool]) -> Rows:
    if not (folder / "base").exists():
        return {}
    try:
        return dict(rocks(folder).items())
    # The binding raises no narrower class.
    except Exception as error:
        raise BrokenError(Kind.CORRUPT, str(error)) from None
