"""Applications on a live export whose power fails: file system and data base must find what they were promised."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import is_privileged, lacks
from headstack.live.control import Control

PATIENCE_S = 100
POSTGRES = Path("/usr/lib/postgresql/15/bin")
TRANSACTIONS = 40
"""Acknowledged before the power fails."""


def missing(*programs: str) -> str | None:
    """What a test lacks on this machine."""
    if not is_privileged():
        return "loop devices and mounts need root"
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not os.access(device, os.R_OK | os.W_OK):
            return f"no {device}"
    absent = [program for program in ("mkfs.ext4", "fsck.ext4", "losetup", "mount", *programs) if not which(program)]
    return f"not installed: {', '.join(absent)}" if absent else None


def which(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin:{POSTGRES}")


def run(*command: str | Path, allowed: tuple[int, ...] = (0,)) -> str:
    """Runs a program to its end; what it says."""
    words = [which(str(command[0])) or str(command[0]), *map(str, command[1:])]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode in allowed, f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class Machine:
    """A drive with a volatile write cache as a loop device, an ext4 file system on it, and a switch for its power."""

    def __init__(self, folder: Path) -> None:
        self.control = Control(folder / "control")
        self.file = folder / "fuse" / "disk"
        self.mounted = folder / "mounted"
        self.mounted.mkdir()
        self.loop: str | None = None

    def attach(self) -> str:
        self.loop = run("losetup", "--find", "--show", "--direct-io=on", self.file).strip()
        return self.loop

    def detach(self) -> None:
        if os.path.ismount(self.mounted):
            # What cannot be written any more makes no difference to that.
            run("umount", self.mounted, allowed=(0, 32))
        if self.loop is not None:
            run("losetup", "-d", self.loop)
            self.loop = None

    def mount(self) -> None:
        assert self.loop is not None
        run("mount", "-t", "ext4", self.loop, self.mounted)

    def make(self) -> None:
        run("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", self.attach())
        run("fsck.ext4", "-fn", self.loop or "")
        self.mount()

    def cut(self) -> dict[str, Any]:
        """Power fails; what that took."""
        answer = self.control.order({"do": "inject", "fault": {"what": "power-cut", "tear": "sector"}})
        assert isinstance(answer, dict)
        loss: dict[str, Any] = answer["loss"]
        assert loss["at_ns"] == answer["at_ns"]
        return loss

    def restart(self) -> None:
        """Power is back: the journal is replayed, and the file system whole after it."""
        self.detach()
        self.control.order({"do": "inject", "fault": {"what": "power-on"}})
        loop = self.attach()
        run("fsck.ext4", "-fy", loop, allowed=(0, 1))
        run("fsck.ext4", "-fn", loop)
        self.mount()


@contextmanager
def machine(speed: str) -> Iterator[Machine]:
    # PostgreSQL's user has to reach it.
    folder = Path(tempfile.mkdtemp(prefix="headstack-power-"))
    folder.chmod(0o755)
    words = ["wd1200bb@0..1GiB", "--fuse", "fuse", "--control", "control", "--speed", speed, "--no-realtime"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from headstack.cli.main import main; main()", "serve", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    drive = None
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving"), line + process.stdout.read()
        drive = Machine(folder)
        yield drive
    finally:
        if drive is not None:
            drive.detach()
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        shutil.rmtree(folder)


def acknowledged(process: subprocess.Popen[str], count: int) -> list[int]:
    """The first so many numbers that a program says are committed."""
    assert process.stdout is not None
    numbers: list[int] = []
    while len(numbers) < count:
        line = process.stdout.readline()
        assert line, f"it ended after {numbers}"
        numbers.append(int(line))
    return numbers


def rest(process: subprocess.Popen[str]) -> list[int]:
    """What it said until its end, which a disk without power brings."""
    # The same reader as before: ``communicate`` would miss the lines that it has read ahead.
    assert process.stdout is not None
    patience = threading.Timer(20, process.kill)
    patience.start()
    said = process.stdout.read()
    patience.cancel()
    process.wait(PATIENCE_S)
    return [int(line) for line in said.split("\n")[:-1] if line.isdigit()]


SQLITE_WRITER = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute("PRAGMA journal_mode=" + sys.argv[2])
base.execute("PRAGMA synchronous=" + sys.argv[3])
base.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY, filling BLOB)")
for number in range(1, 1000000):
    base.execute("INSERT INTO entries VALUES (?, randomblob(3000))", (number,))
    print(number, flush=True)
"""


@pytest.mark.parametrize(
    ("journal", "synchronous", "at_risk"), [("WAL", "FULL", 0), ("DELETE", "EXTRA", 0), ("DELETE", "FULL", 1)]
)
def test_sqlite_keeps_what_it_committed(journal: str, synchronous: str, at_risk: int) -> None:
    # With a rollback journal FULL does not sync the directory after the journal was unlinked, which is the commit:
    # until the next transaction does, a power cut may bring the journal back and roll the last one back. EXTRA does
    # (sqlite.org/pragma.html, synchronous).
    if (what := missing()) is not None:
        lacks("kernel", what)
    with machine("20") as drive:
        drive.make()
        base = drive.mounted / "base.db"
        writer = subprocess.Popen(
            [sys.executable, "-c", SQLITE_WRITER, str(base), journal, synchronous],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        committed = acknowledged(writer, TRANSACTIONS)
        drive.cut()
        committed += rest(writer)
        drive.restart()
        connection = sqlite3.connect(base)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = {number for (number,) in connection.execute("SELECT number FROM entries")}
        connection.close()
        assert found >= set(committed[: len(committed) - at_risk])
        assert len(found) <= len(committed) + 1, "one more at most was under way"


AS_POSTGRES: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": [], "cwd": "/"}
"""It refuses to be root's."""


def postgres(folder: Path, mounted: Path) -> subprocess.Popen[str]:
    """A server that listens in `folder` alone, as the user postgres."""
    words = ["-D", str(mounted / "base"), "-k", str(folder), "-c", "listen_addresses="]
    server = subprocess.Popen(
        [str(POSTGRES / "postgres"), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **AS_POSTGRES,
    )
    deadline = time.monotonic() + PATIENCE_S
    ready = [str(POSTGRES / "pg_isready"), "-q", "-h", str(folder)]
    while subprocess.run(ready, cwd="/").returncode != 0:
        assert server.poll() is None, server.stderr.read() if server.stderr else ""
        assert time.monotonic() < deadline, "it does not come up"
        time.sleep(0.05)
    return server


def end(server: subprocess.Popen[str], number: int) -> None:
    """Ends a server with all of its processes."""
    if server.poll() is None:
        os.killpg(server.pid, number)
    server.communicate(timeout=PATIENCE_S)


def psql(folder: Path, *words: str, **streams: Any) -> subprocess.Popen[str]:
    command = [str(POSTGRES / "psql"), "-h", str(folder), "-XAtq", *words, "postgres"]
    return subprocess.Popen(command, text=True, **AS_POSTGRES, **streams)


def test_postgresql_recovers_every_committed_row() -> None:
    if (what := missing("initdb", "postgres", "psql")) is not None:
        lacks("programs", what)
    with machine("50") as drive, tempfile.TemporaryDirectory(prefix="headstack-pg-") as name:
        folder = Path(name)
        shutil.chown(folder, "postgres")
        drive.make()
        shutil.chown(drive.mounted, "postgres")
        initdb = [str(POSTGRES / "initdb"), "-N", "-D", str(drive.mounted / "base")]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_S, **AS_POSTGRES)
        run("sync", "-f", drive.mounted)
        server = postgres(folder, drive.mounted)
        try:
            script = "CREATE TABLE entries (number int PRIMARY KEY, filling text);\n"
            entry = "INSERT INTO entries VALUES ({0}, repeat('x', 500)) RETURNING number;\n"
            script += "".join(entry.format(number) for number in range(1, 20_000))
            (folder / "script.sql").write_text(script)
            shutil.chown(folder / "script.sql", "postgres")
            client = psql(folder, "-f", str(folder / "script.sql"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            committed = acknowledged(client, TRANSACTIONS)
            drive.cut()
            committed += rest(client)
        finally:
            end(server, signal.SIGKILL)
        drive.restart()
        server = postgres(folder, drive.mounted)
        try:
            asked = psql(folder, "-c", "SELECT number FROM entries", stdout=subprocess.PIPE)
            said, _ = asked.communicate(timeout=PATIENCE_S)
        finally:
            end(server, signal.SIGINT)
        found = {int(line) for line in said.split()}
        assert found >= set(committed)
        assert len(found) <= len(committed) + 1, "one more at most was under way"
