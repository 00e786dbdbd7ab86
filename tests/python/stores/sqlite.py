"""SQLite, from Python's own library."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from stores.model import Rows, written
from stores.verdicts import BrokenError, Kind

UPSERT = "INSERT INTO entries VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
"""It leaves the index unchanged: pages of two transactions may be consistent, but wrong."""


def run(folder: Path, settings: dict[str, str], transactions: int, acknowledge: Callable[[int], None]) -> None:
    base = sqlite3.connect(folder / "base.db", isolation_level=None)
    base.execute(f"PRAGMA journal_mode={settings['journal']}")
    base.execute(f"PRAGMA synchronous={settings['synchronous']}")
    base.execute("PRAGMA wal_autocheckpoint=20")
    if "cache_pages" in settings:
        base.execute(f"PRAGMA cache_size={settings['cache_pages']}")
    base.execute("CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB)")
    for number in range(1, transactions + 1):
        base.execute("BEGIN IMMEDIATE")
        base.executemany(UPSERT, written(number).items())
        base.execute("COMMIT")
        acknowledge(number)
    base.close()


def read(folder: Path, settings: dict[str, str]) -> Rows:
    if not (folder / "base.db").exists():
        return {}
    base = sqlite3.connect(folder / "base.db")
    try:
        found = base.execute("PRAGMA integrity_check").fetchall()
        if found != [("ok",)]:
            raise BrokenError(Kind.CORRUPT, "; ".join(str(line) for (line,) in found[:2]))
        if not base.execute("SELECT 1 FROM sqlite_schema WHERE name = 'entries'").fetchall():
            return {}
        return dict(base.execute("SELECT key, value FROM entries"))
    except sqlite3.Error as error:
        raise BrokenError(Kind.CORRUPT, str(error)) from None
    finally:
        base.close()
