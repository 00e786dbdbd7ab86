#!/usr/bin/env python3
"""Commits transactions to SQLite on ext4 on the device of ``headstack serve --loop``, and marks each acknowledged one.

Run it as root, with ``--run 'examples/crash/record_sqlite.py $device'``. Add NORMAL after ``$device`` to commit without
a sync, which loses acknowledged transactions.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading

CONTROL = "ctl"
"""The socket given to ``--control``."""
WRITEBACK_S = 0.004
"""Seconds between background syncs, which show a missing sync; the kernel itself waits 30 s."""


def sync_until(done: threading.Event, folder: str) -> None:
    """Writes back the file system until the commits are done."""
    while not done.wait(WRITEBACK_S):
        subprocess.run(["sync", "-f", folder], check=True)


def commit(folder: str, synchronous: str) -> None:
    """Commits a table and five transactions."""
    database = sqlite3.connect(f"{folder}/app.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA synchronous = {synchronous}")
    with socket.socket(socket.AF_UNIX) as control, control.makefile("rw") as lines:
        control.connect(CONTROL)

        def mark(text: str) -> None:
            print(json.dumps({"do": "mark", "text": text}), file=lines, flush=True)
            lines.readline()

        database.execute("CREATE TABLE t AS SELECT 'begin' AS id")
        mark("begin")
        for number in range(1, 6):
            database.execute("INSERT INTO t VALUES (?)", (str(number),))
            mark(str(number))
    database.close()


def main() -> None:
    """Makes and mounts the file system, and commits to it."""
    device, synchronous = [*sys.argv[1:], "FULL"][:2]
    folder = tempfile.mkdtemp()
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    subprocess.run(["mount", device, folder], check=True)
    done = threading.Event()
    syncing = threading.Thread(target=sync_until, args=(done, folder))
    syncing.start()
    try:
        commit(folder, synchronous)
    finally:
        done.set()
        syncing.join()
        subprocess.run(["umount", folder], check=True)
        os.rmdir(folder)


if __name__ == "__main__":
    main()
