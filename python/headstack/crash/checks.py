"""``Check``: checks of a device's image after a crash."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from headstack._native import InputError, RunError
from headstack.crash.ext4 import REPAIRED, complaints_of, e2fsck, fetch, require_program
from headstack.crash.postgres import check_cluster as check_postgres

Function = Callable[[str, list[str]], object]
"""A function that checks an image, given the marks made before the crash; it raises, or returns a message, if there is
a fault.
"""

MESSAGE_MAX = 500
"""Maximum number of characters kept of a check's message, from its end."""
NOT_RUN = (126, 127)
"""Exit codes of shells for a command that cannot be run."""


@dataclass(frozen=True)
class Check:
    """A check with the name under which it can be repeated."""

    name: str
    run: Callable[[str, list[str], Path], object]
    """A ``Function`` with an additional argument: a folder of its own."""
    is_named: bool = True
    """Whether the check can be found by its name; a function cannot."""
    takes_address: bool = False
    """Whether the check accepts the address of an NBD server instead of a file."""

    def find_fault(self, image: str, marks: list[str], folder: Path) -> str | None:
        """Returns the fault of an image. Raises ``RunError`` if the check cannot be run."""
        try:
            fault = self.run(image, marks, folder)
        except (RunError, KeyboardInterrupt):
            raise
        except Exception as error:
            fault = str(error) or type(error).__name__
        return None if fault is None or fault is True else one_line(str(fault))


def check_of(check: str | Function, over: str = "file") -> Check:
    """Returns a check from a function, a name, or a command, to which states are presented as ``over``, one of
    ``WAYS``.
    """
    parsed = parse_check(check)
    if over == "nbd" and not parsed.takes_address:
        raise InputError(f"{parsed.name} needs a file; use --over file or --over fuse", key="over")
    return parsed


def parse_check(check: str | Function) -> Check:
    """Returns a check from a function, a name, or a command."""
    if callable(check):
        function = check
        name = getattr(check, "__qualname__", type(check).__name__)
        return Check(name, lambda image, marks, folder: function(image, marks), is_named=False, takes_address=True)
    if check == "ext4":
        require_program("e2fsck")
        return Check(check, ext4)
    if check.startswith("sqlite:"):
        path, query = parse_location(check, "file", "app.db")
        return Check(check, lambda image, marks, folder: sqlite(image, marks, folder, path, query))
    if check == "btrfs":
        require_program("btrfs")
        return Check(check, btrfs)
    if check.startswith("postgres:"):
        path, query = parse_location(check, "folder", "data")
        return Check(check, lambda image, marks, folder: postgres(image, marks, folder, path, query))
    if "{device}" not in check:
        raise InputError(
            f"{check!r} does not contain {{device}}, the placeholder of the image; "
            "other checks are ext4, btrfs, sqlite:/PATH and postgres:/PATH, the last two with ?QUERY",
            key="check",
        )
    return Check(check, lambda image, marks, folder: command(check, image, marks, folder), takes_address=True)


def parse_location(check: str, kind: str, example: str) -> tuple[str, str]:
    """Returns the path in a file system that a check names, and its query, if any."""
    word, _, rest = check.partition(":")
    path, _, query = rest.partition("?")
    if not path.startswith("/"):
        raise InputError(
            f"{check!r} names no {kind}; use {word}:/{example} for /{example} in the ext4 file system",
            key="check",
        )
    return path, query


def acknowledged(
    marks: Iterable[str], there: Iterable[object], word: str = "", among: Iterable[object] | None = None
) -> None:
    """Raises if something acknowledged is missing. Acknowledged names are the marks that begin with ``word``, without
    this word. If ``among`` has all names ever written, the function also raises for any other name.

    >>> hs.crash.acknowledged(["begin", "commit 1", "commit 2"], [1, 2, 3], "commit ")
    >>> hs.crash.acknowledged(["commit 1", "commit 2"], [1], "commit ")
    Traceback (most recent call last):
    ...
    AssertionError: acknowledged but missing: 2
    >>> hs.crash.acknowledged(["commit 1"], [1, 2, 7], "commit ", among=[1, 2, 3])
    Traceback (most recent call last):
    ...
    AssertionError: present but never written: 7
    """
    present = {str(entry) for entry in there}
    lost = [
        mark.removeprefix(word) for mark in marks if mark.startswith(word) and mark.removeprefix(word) not in present
    ]
    if lost:
        raise AssertionError(f"acknowledged but missing: {first_names(lost)}")
    others = set() if among is None else present - {str(entry) for entry in among}
    if others:
        raise AssertionError(f"present but never written: {first_names(sorted(others))}")


def first_names(names: list[str]) -> str:
    """Lists the first names, and the number of others."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def command(text: str, image: str, marks: list[str], folder: Path) -> str | None:
    """Runs a shell command; the marks are in the file that ``HEADSTACK_MARKS`` names, one per line."""
    noted = folder / "marks"
    noted.write_text("".join(f"{mark}\n" for mark in marks), encoding="utf-8")
    done = subprocess.run(
        text.replace("{device}", shlex.quote(image)),
        shell=True,
        env=os.environ | {"HEADSTACK_MARKS": str(noted)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    output = done.stdout.decode(errors="replace").strip()
    if done.returncode in NOT_RUN:
        raise RunError(f"the check cannot run: {one_line(output) or text}")
    if done.returncode == 0:
        return None
    ended = f"ended by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return f"{output} ({ended})" if output else ended


def ext4(image: str, marks: list[str], folder: Path) -> str | None:
    """Returns a fault unless e2fsck replays the journal and finds nothing that needs a decision."""
    done = e2fsck("-fp", image)
    return None if done.returncode & ~REPAIRED == 0 else f"e2fsck: {complaints_of(done)}"


def btrfs(image: str, marks: list[str], folder: Path) -> str | None:
    """Returns a fault unless the trees and checksums of btrfs are intact, as of the last commit."""
    done = subprocess.run(
        [require_program("btrfs"), "check", "--readonly", image],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return None if done.returncode == 0 else f"btrfs check: {complaints_of(done)}"


def postgres(image: str, marks: list[str], folder: Path, path: str, query: str) -> str | None:
    """Returns a fault unless PostgreSQL recovers with all rows and indexes intact; with a query, it must return all
    marks.
    """
    # Rarely used.
    problem, rows = check_postgres(image, folder, path, query)
    if problem is None and query:
        acknowledged(marks, rows)
    return problem


def sqlite(image: str, marks: list[str], folder: Path, path: str, query: str) -> str | None:
    """Returns a fault unless SQLite opens a database with its log and finds it intact; with a query, its first column
    must contain all marks."""
    names = (path, f"{path}-wal", f"{path}-journal")
    copies = [folder / Path(name).name for name in names]
    problem = fetch(image, names, copies)
    if problem is not None:
        return problem
    if not copies[0].exists():
        return f"{path} is missing"
    connection = sqlite3.connect(copies[0])
    try:
        faults = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        if faults != ["ok"]:
            return "; ".join(faults[:3])
        if query:
            acknowledged(marks, (row[0] for row in connection.execute(query)))
    finally:
        connection.close()
        copies[0].with_name(f"{copies[0].name}-shm").unlink(missing_ok=True)
    return None


def one_line(text: str) -> str:
    """Returns the end of a text, on one line."""
    joined = " ".join(text.split())
    return joined if len(joined) <= MESSAGE_MAX else f"... {joined[-MESSAGE_MAX:]}"
