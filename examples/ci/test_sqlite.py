"""SQLite's WAL with synchronous=FULL keeps each commit; with NORMAL it is consistent, and may lose the last ones."""

import sqlite3
from pathlib import Path

import pytest


def entries(folder: Path) -> list[int]:
    """What is there, after SQLite's own check."""
    base = sqlite3.connect(folder / "base.db")
    try:
        assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [number for (number,) in base.execute("SELECT number FROM entries ORDER BY number")]
    finally:
        base.close()


def fill(disk, folder: Path, synchronous: str) -> None:
    base = sqlite3.connect(folder / "base.db", isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY, filling BLOB)")
    base.execute(f"PRAGMA synchronous={synchronous}")
    for number in range(20):
        base.execute("INSERT INTO entries VALUES (?, randomblob(3000))", (number,))
        disk.mark(number)
    base.close()


@pytest.mark.disk("wd1200bb@0..64MiB", crash="explore")
def test_commits_survive(disk):
    with disk.mounted("ext4") as folder:
        fill(disk, folder, "FULL")

    def check(folder, marks):
        found = entries(folder)
        assert found == list(range(len(found))), "a transaction in the middle is missing"
        assert len(found) >= len(marks), f"{len(marks)} commits were acknowledged, {len(found)} are there"

    disk.explore(check)


@pytest.mark.disk("wd1200bb@0..64MiB", crash="explore")
def test_without_a_sync_it_is_consistent_all_the_same(disk):
    with disk.mounted("ext4") as folder:
        fill(disk, folder, "NORMAL")

    def check(folder, marks):
        found = entries(folder)
        assert found == list(range(len(found)))

    disk.explore(check)
