"""The files of a command: what it writes is looked at, all of it, before it does anything."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

from headstack import _native
from headstack._native import InputError

META = f"{__name__}.outputs"
"""Where a command's context has its files."""


class AnyFile(click.ParamType[str]):
    """What shells complete by files."""

    name = "file"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """The shell's own."""
        from click.shell_completion import CompletionItem  # start-up time

        return [CompletionItem(incomplete, type="file")]


class OutputFile(AnyFile):
    """A file that an option has a command write, refused where no file belongs or where another of its files is."""

    name = "output"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Looks at it."""
        if value:
            _files(ctx).write(value)
        return value


class KeptFile(AnyFile):
    """A file that is written in place and read again: a log, a ledger, a database; or one of ``words`` instead."""

    name = "kept"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Looks at it."""
        if value and value not in self._words:
            _files(ctx).keep(value)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """The words that begin so; files where none does."""
        from click.shell_completion import CompletionItem  # start-up time

        found = [CompletionItem(word) for word in self._words if word.startswith(incomplete)]
        return found or super().shell_complete(ctx, param, incomplete)


class OutputFolder(click.ParamType[str]):
    """A folder that gets files, none of which is an input; the files are looked at as they get their names."""

    name = "folder"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Looks at it."""
        if value:
            _files(ctx).fill(value)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """The shell's own."""
        from click.shell_completion import CompletionItem  # start-up time

        return [CompletionItem(incomplete, type="dir")]


class Source(AnyFile):
    """An input of a command, which none of its outputs replaces: a file, a folder, a device; else a name.

    The files in a text that names more than a path count, too: ``a.toml,b.toml``, ``a.toml@0%..50%``, ``data=a``,
    ``@list``.
    """

    name = "source"
    searches = True
    """Whether a folder stands for the files in it."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Remembers it."""
        files = _files(ctx)
        files.measure(value)
        if self.searches and os.path.isdir(value):
            files.search(value)
        for part in _parts(value):
            files.measure(part)
        return value


class Target(Source):
    """What is measured: a file, a device, or a folder in which files of headstack's own are made and removed."""

    name = "target"
    searches = False


class SourceFolder(Source):
    """The same, where only a folder makes sense."""

    name = "folder"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """The shell's own."""
        from click.shell_completion import CompletionItem  # start-up time

        return [CompletionItem(incomplete, type="dir")]


def _parts(text: str) -> set[str]:
    """The paths in a text that exist, beside the whole text."""
    words = {word for part in text.split(",") for word in (part, part.partition("=")[2])}
    words |= {word.partition("@")[0] for word in words} | {word.removeprefix("@") for word in words}
    return {word for word in words - {text} if word and os.path.exists(word)}


OUTPUT, KEPT, SOURCE, TARGET = OutputFile(), KeptFile(), Source(), Target()
OUTPUT_FOLDER, SOURCE_FOLDER = OutputFolder(), SourceFolder()


def check_outputs(*paths: str | os.PathLike[str]) -> None:
    """As for options of type ``OUTPUT``, of files that are named otherwise. Raises ``InputError``."""
    for path in paths:
        _files(None).write(os.fspath(path))


def check_kept(path: str | os.PathLike[str]) -> None:
    """As for options of type ``KEPT``."""
    _files(None).keep(os.fspath(path))


def check_sources(*paths: str) -> None:
    """As for what is of type ``SOURCE``."""
    for path in paths:
        _files(None).measure(path)


def check_folder(folder: str | os.PathLike[str], *names: str) -> None:
    """Raises ``InputError`` where no folder of that name can be, or one of these files in it."""
    path = Path(folder)
    if path.is_dir():
        check_outputs(*(path / name for name in names))
        return
    if os.path.lexists(path):
        raise InputError(f"{path}: not a folder; name a folder, or a path that does not exist")
    above = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"{path}: cannot create a folder in {above}; choose another path")


def read_from(path: str) -> str:
    """The file that is read for a path: of ``-``, one that has what came on the standard input, which is read more than
    once and from any place."""
    return path if path != "-" else _stdin()


@cache
def _stdin() -> str:
    if sys.stdin is None:
        raise InputError("-: the standard input is closed")
    folder = tempfile.mkdtemp(prefix="headstack-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "stdin")
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return path


def _files(ctx: click.Context | None) -> _native.Outputs:
    """Those of the command that is carried out."""
    context = ctx if ctx is not None else click.get_current_context()
    if META not in context.meta:
        context.meta[META] = _native.Outputs()
        context.find_root().call_on_close(context.meta[META].close)
    files: _native.Outputs = context.meta[META]
    return files
