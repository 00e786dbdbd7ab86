"""The files of a command: all outputs are checked before it starts."""

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
"""Key of the command's context for its files."""


class AnyFile(click.ParamType[str]):
    """Base of parameter types that shells complete with files."""

    name = "file"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Completes files."""
        from click.shell_completion import CompletionItem  # start-up time

        return [CompletionItem(incomplete, type="file")]


class OutputFile(AnyFile):
    """An output file. The command refuses a path that it cannot write or that is another of its files."""

    name = "output"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Checks the path."""
        if value:
            _files(ctx).write(value)
        return value


class KeptFile(AnyFile):
    """A file that is updated in place, such as a log, a ledger or a database; or one of ``words`` in place of a
    path."""

    name = "kept"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Checks the path."""
        if value and value not in self._words:
            _files(ctx).keep(value)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Completes words, or files if none matches."""
        from click.shell_completion import CompletionItem  # start-up time

        items = [CompletionItem(word) for word in self._words if word.startswith(incomplete)]
        return items or super().shell_complete(ctx, param, incomplete)


class OutputFolder(click.ParamType[str]):
    """A folder for output files, none of which may be an input. Each file is checked as soon as its name is known."""

    name = "folder"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Checks the path."""
        if value:
            _files(ctx).fill(value)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Completes folders."""
        from click.shell_completion import CompletionItem  # start-up time

        return [CompletionItem(incomplete, type="dir")]


class Source(AnyFile):
    """An input of a command: a file, a folder, a device, or a name. No output may replace it.

    Paths within a longer text count too: ``a.toml,b.toml``, ``a.toml@0%..50%``, ``data=a``, ``@list``.
    """

    name = "source"
    searches = True
    """Whether a folder stands for the files in it."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Registers the input."""
        files = _files(ctx)
        files.measure(value)
        if self.searches and os.path.isdir(value):
            files.search(value)
        for part in _parts(value):
            files.measure(part)
        return value


class Target(Source):
    """A target of a measurement: a file, a device, or a folder in which headstack creates and removes files."""

    name = "target"
    searches = False


class SourceFolder(Source):
    """An input that must be a folder."""

    name = "folder"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Completes folders."""
        from click.shell_completion import CompletionItem  # start-up time

        return [CompletionItem(incomplete, type="dir")]


def _parts(text: str) -> set[str]:
    """Returns the parts of a text that are existing paths, except the text itself."""
    words = {word for part in text.split(",") for word in (part, part.partition("=")[2])}
    words |= {word.partition("@")[0] for word in words} | {word.removeprefix("@") for word in words}
    return {word for word in words - {text} if word and os.path.exists(word)}


OUTPUT, KEPT, SOURCE, TARGET = OutputFile(), KeptFile(), Source(), Target()
OUTPUT_FOLDER, SOURCE_FOLDER = OutputFolder(), SourceFolder()


def check_outputs(*paths: str | os.PathLike[str]) -> None:
    """Checks output files that no option of type ``OUTPUT`` names. Raises ``InputError`` if one cannot be written."""
    for path in paths:
        _files(None).write(os.fspath(path))


def check_kept(path: str | os.PathLike[str]) -> None:
    """Checks a file in the same way as an option of type ``KEPT``."""
    _files(None).keep(os.fspath(path))


def check_sources(*paths: str) -> None:
    """Registers inputs in the same way as options of type ``SOURCE``."""
    for path in paths:
        _files(None).measure(path)


def check_folder(folder: str | os.PathLike[str], *names: str) -> None:
    """Raises ``InputError`` if the folder, or one of these files in it, cannot be created."""
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
    """Returns the file to read for a path; for ``-``, a temporary copy of the standard input, which allows seeking and
    repeated reads."""
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
    """Returns the files of the running command."""
    context = ctx if ctx is not None else click.get_current_context()
    if META not in context.meta:
        context.meta[META] = _native.Outputs()
        context.find_root().call_on_close(context.meta[META].close)
    files: _native.Outputs = context.meta[META]
    return files
