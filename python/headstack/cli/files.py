"""The files of a command: what it writes is looked at, all of it, before it does anything."""

from __future__ import annotations

import os
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
        from click.shell_completion import CompletionItem

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
    """A file that is written in place and read again: a log, a ledger, a database."""

    name = "kept"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Looks at it."""
        if value:
            _files(ctx).keep(value)
        return value


class Source(AnyFile):
    """What a command reads or measures, which none of its outputs may destroy: a file, a device; else a name."""

    name = "source"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Remembers it."""
        _files(ctx).measure(value)
        return value


class SourceList(Source):
    """A comma list of what a command reads; ``none`` stands for no file."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Remembers each."""
        for path in value.split(","):
            if path != "none":
                _files(ctx).measure(path)
        return value


OUTPUT, KEPT, SOURCE, SOURCE_LIST = OutputFile(), KeptFile(), Source(), SourceList()


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
        raise InputError(f"{path}: is not a folder; name one, or one that does not exist yet")
    above = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"{path}: no folder can be made in {above}")


def _files(ctx: click.Context | None) -> _native.Outputs:
    """Those of the command that is carried out."""
    context = ctx if ctx is not None else click.get_current_context()
    files: _native.Outputs = context.meta.setdefault(META, _native.Outputs())
    return files
