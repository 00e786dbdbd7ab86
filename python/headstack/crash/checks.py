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
from headstack.crash.ext4 import REPAIRED, e2fsck, fetch, needed, said_of
from headstack.crash.postgres import look as look_at_postgres

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
    look: Callable[[str, list[str], Path], object]
    """A ``Function`` with an additional folder of its own."""
    is_named: bool = True
    """Whether its name identifies it: a function has none that a command would find."""
    takes_address: bool = False
    """Whether it accepts the address of an NBD server instead of a file."""

    def violated(self, image: str, marks: list[str], folder: Path) -> str | None:
        """Returns the fault of an image. Raises ``RunError`` if the check cannot be run."""
        try:
            said = self.look(image, marks, folder)
        except (RunError, KeyboardInterrupt):
            raise
        except Exception as error:
            said = str(error) or type(error).__name__
        return None if said is None or said is True else one_line(str(said))


def check_of(given: str | Function, over: str = "file") -> Check:
    """Returns a check from a function, a name, or a command, to which states are presented as ``over``, one of
    ``WAYS``.
    """
    check = meant(given)
    if over == "nbd" and not check.takes_address:
        raise InputError(f"{check.name} looks at a file, which nbd is none; file and fuse are allowed", key="over")
    return check


def meant(given: str | Function) -> Check:
    """Returns a check from a function, a name, or a command."""
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
    """Returns the path in a file system that a check names, and its query, if any."""
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
    """Raises if something acknowledged is missing: a mark that begins with ``word``, without that word. If everything
    ever written is given as ``among``, it also raises for anything else.

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
    said = done.stdout.decode(errors="replace").strip()
    if done.returncode in NOT_RUN:
        raise RunError(f"the check cannot be carried out: {one_line(said) or text}")
    if done.returncode == 0:
        return None
    ended = f"ended by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return f"{said} ({ended})" if said else ended


def ext4(image: str, marks: list[str], folder: Path) -> str | None:
    """Returns a fault unless e2fsck replays the journal and finds nothing that needs a decision."""
    done = e2fsck("-fp", image)
    return None if done.returncode & ~REPAIRED == 0 else f"e2fsck: {said_of(done)}"


def btrfs(image: str, marks: list[str], folder: Path) -> str | None:
    """Returns a fault unless the trees and checksums of btrfs are intact, as of the last commit."""
    done = subprocess.run(
        [needed("btrfs"), "check", "--readonly", image], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return None if done.returncode == 0 else f"btrfs check: {said_of(done)}"


def postgres(image: str, marks: list[str], folder: Path, path: str, query: str) -> str | None:
    """Returns a fault unless PostgreSQL recovers with all rows and indexes intact; with a query, it must return all
    marks.
    """
    # Rarely used.
    problem, found = look_at_postgres(image, folder, path, query)
    if problem is None and query:
        acknowledged(marks, found)
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
    """Returns the end of a text, on one line."""
    joined = " ".join(text.split())
    return joined if len(joined) <= MESSAGE_MAX else f"... {joined[-MESSAGE_MAX:]}"
