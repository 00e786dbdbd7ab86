"""Checks: what looks at the image of a device after a crash, and says whether something is wrong."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from headstack._native import InputError, RunError
from headstack.crash.ext4 import REPAIRED, e2fsck, fetch, needed, said_of
from headstack.crash.postgres import look as look_at_postgres

Function = Callable[[str, list[str]], object]
"""Looks at an image with the marks made before the crash; raises, or returns a message, where something is wrong."""

MESSAGE_MAX = 500
"""Of what a check says, at most so much is kept: its end."""
NOT_RUN = (126, 127)
"""What shells answer for a command that cannot be carried out."""


@dataclass(frozen=True)
class Check:
    """A check with the name that repeats it."""

    name: str
    look: Callable[[str, list[str], Path], object]
    """As a ``Function``, with a folder of its own for what it needs."""
    is_named: bool = True
    """Its name says what it is: a function has none that a command would find."""
    takes_address: bool = False
    """It may be given the address of an NBD server in place of a file."""

    def violated(self, image: str, marks: list[str], folder: Path) -> str | None:
        """What is wrong with an image. Raises ``RunError`` where the check cannot be carried out."""
        try:
            said = self.look(image, marks, folder)
        except (RunError, KeyboardInterrupt):
            raise
        except Exception as error:
            said = str(error) or type(error).__name__
        return None if said is None or said is True else one_line(str(said))


def check_of(given: str | Function, over: str = "file") -> Check:
    """The check that is meant: a function, the name of one, or a command, shown states ``over`` one of ``WAYS``."""
    check = meant(given)
    if over == "nbd" and not check.takes_address:
        raise InputError(f"{check.name} looks at a file, which nbd is none; file and fuse are allowed", key="over")
    return check


def meant(given: str | Function) -> Check:
    """The check that is meant: a function, the name of a check, or a command."""
    if callable(given):
        function = given
        name = getattr(given, "__qualname__", type(given).__name__)
        return Check(name, lambda image, marks, folder: function(image, marks), is_named=False, takes_address=True)
    if given == "ext4":
        needed("e2fsck")
        return Check(given, ext4)
    if given.startswith("sqlite:"):
        path, query = placed(given, "file", "app.db")
        return Check(given, lambda image, marks, folder: sqlite(image, marks, folder, path, query))
    if given == "btrfs":
        needed("btrfs")
        return Check(given, btrfs)
    if given.startswith("postgres:"):
        path, query = placed(given, "folder", "data")
        return Check(given, lambda image, marks, folder: postgres(image, marks, folder, path, query))
    if "{device}" not in given:
        raise InputError(
            f"{given!r} has no {{device}}, which stands for the image; "
            "other checks are ext4, btrfs, sqlite:/PATH and postgres:/PATH, the last two with ?QUERY",
            key="check",
        )
    return Check(given, lambda image, marks, folder: command(given, image, marks, folder), takes_address=True)


def placed(given: str, what: str, example: str) -> tuple[str, str]:
    """The path in a file system that a check names, and its query, if any."""
    word, _, rest = given.partition(":")
    path, _, query = rest.partition("?")
    if not path.startswith("/"):
        raise InputError(
            f"{given!r} names no {what}; {word}:/{example} means /{example} in the ext4 file system", key="check"
        )
    return path, query


def acknowledged(
    marks: Iterable[str], there: Iterable[object], word: str = "", among: Iterable[object] | None = None
) -> None:
    """Raises where something is not there that was acknowledged: a mark that begins with ``word``, without it. Given
    all that was ever written, ``among``, it raises where anything else is there, too.

    >>> hs.crash.acknowledged(["begin", "commit 1", "commit 2"], [1, 2, 3], "commit ")
    >>> hs.crash.acknowledged(["commit 1", "commit 2"], [1], "commit ")
    Traceback (most recent call last):
    ...
    AssertionError: acknowledged and not there: 2
    >>> hs.crash.acknowledged(["commit 1"], [1, 2, 7], "commit ", among=[1, 2, 3])
    Traceback (most recent call last):
    ...
    AssertionError: there and never written: 7
    """
    has = {str(one) for one in there}
    lost = [mark.removeprefix(word) for mark in marks if mark.startswith(word) and mark.removeprefix(word) not in has]
    if lost:
        raise AssertionError(f"acknowledged and not there: {some(lost)}")
    others = set() if among is None else has - {str(one) for one in among}
    if others:
        raise AssertionError(f"there and never written: {some(sorted(others))}")


def some(names: list[str]) -> str:
    """The first of them, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def command(text: str, image: str, marks: list[str], folder: Path) -> str | None:
    """Carries out a shell command; the marks are in the file that ``HEADSTACK_MARKS`` names, one a line."""
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
    said = done.stdout.decode(errors="replace").strip()
    if done.returncode in NOT_RUN:
        raise RunError(f"the check cannot be carried out: {one_line(said) or text}")
    if done.returncode == 0:
        return None
    ended = f"ended by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return f"{said} ({ended})" if said else ended


def ext4(image: str, marks: list[str], folder: Path) -> str | None:
    """Whether e2fsck replays the journal and finds nothing that a person would have to decide."""
    done = e2fsck("-fp", image)
    return None if done.returncode & ~REPAIRED == 0 else f"e2fsck: {said_of(done)}"


def btrfs(image: str, marks: list[str], folder: Path) -> str | None:
    """Whether btrfs finds its trees and their checksums whole, as the last commit has left them."""
    done = subprocess.run(
        [needed("btrfs"), "check", "--readonly", image], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return None if done.returncode == 0 else f"btrfs check: {said_of(done)}"


def postgres(image: str, marks: list[str], folder: Path, path: str, query: str) -> str | None:
    """Whether PostgreSQL recovers and finds all rows and indexes whole; with a query, whether it brings all marks."""
    # Few ask for it.
    problem, found = look_at_postgres(image, folder, path, query)
    if problem is None and query:
        acknowledged(marks, found)
    return problem


def sqlite(image: str, marks: list[str], folder: Path, path: str, query: str) -> str | None:
    """Whether SQLite opens a database with its log and finds it whole; with a query, whether all marks are in its first
    column."""
    names = (path, f"{path}-wal", f"{path}-journal")
    copies = [folder / Path(name).name for name in names]
    problem = fetch(image, names, copies)
    if problem is not None:
        return problem
    if not copies[0].exists():
        return f"{path} is not there"
    connection = sqlite3.connect(copies[0])
    try:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        if found != ["ok"]:
            return "; ".join(found[:3])
        if query:
            acknowledged(marks, (row[0] for row in connection.execute(query)))
    finally:
        connection.close()
        copies[0].with_name(f"{copies[0].name}-shm").unlink(missing_ok=True)
    return None


def one_line(text: str) -> str:
    """The end of a text, on one line."""
    joined = " ".join(text.split())
    return joined if len(joined) <= MESSAGE_MAX else f"... {joined[-MESSAGE_MAX:]}"
