"""Files that appear whole or not at all, at the place that links lead to; other than regular files are written through.

Where that is, and how a file is replaced, the compiled part knows (``crates/files``), which writes traces by itself.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from headstack import _native
from headstack.io import signals

File = str | os.PathLike[str]
Write = Callable[[Path], object]


class WriteError(OSError):
    """What was made could not be written: a full disk, a device that is gone."""


def write_all(files: Iterable[tuple[File, Write]]) -> None:
    """Has files written beside their places, then moves them there: each appears whole, or none at all.

    A file keeps the owner and the permissions of the one that it replaces. Pipes, terminals and descriptors are given
    what was written when all of it is; whoever reads them may stop at any time. ``-`` is standard output. Raises
    ``InputError`` for a place that no file can have, ``WriteError`` naming what could not be written.
    """
    # Reading commands need no folder, and loading this takes a while.
    drafts: list[tuple[File, _native.AtomicFile]] = []
    streams: list[tuple[File, int | str, Path]] = []
    with signals.deferred(), tempfile.TemporaryDirectory(prefix="headstack-") as folder:
        try:
            for given, write in files:
                through = _native.written_through(os.fspath(given))
                if through is None:
                    with failing(given):
                        draft = _native.AtomicFile(os.fspath(given))
                    drafts.append((given, draft))
                    path = Path(draft.draft)
                else:
                    # The suffix names the format of a picture.
                    path = Path(folder, f"{len(streams)}{Path(given).suffix}")
                    streams.append((given, through, path))
                with failing(given):
                    write(path)
            for given, draft in drafts:
                with failing(given):
                    draft.finish()
        finally:
            for _, draft in drafts:
                draft.discard()
        for given, through, path in streams:
            with failing(given), signals.raising():
                _send(path, through)


def write_text(path: File, text: str) -> None:
    """Writes a text, in UTF-8."""
    write_all([(path, partial(Path.write_text, data=text, encoding="utf-8"))])


@contextmanager
def opened_pipe(path: File) -> Iterator[str]:
    """What the compiled part may write to in place of ``path``: a named pipe is opened here, where signals end the
    waiting for its reader."""
    through = _native.written_through(os.fspath(path))
    with failing(path):
        if not isinstance(through, str) or not Path(through).is_fifo():
            yield os.fspath(path)
            return
        with signals.raising():
            descriptor = os.open(through, os.O_WRONLY)
        try:
            yield f"/dev/fd/{descriptor}"
        finally:
            os.close(descriptor)


def cache_folder() -> Path:
    """``headstack`` in the user's cache: ``$XDG_CACHE_HOME``, ``~/.cache`` where that is not set."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headstack"


@contextmanager
def failing(given: File) -> Iterator[None]:
    """Lets what goes wrong name the file that is to be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise WriteError(error.errno, error.strerror or str(error), os.fspath(given)) from None


def _send(written: Path, through: int | str) -> None:
    """Copies a file to a descriptor, or to a pipe or device, which waits here for its reader."""
    # No terminal becomes this process's own by being written to.
    number = os.dup(through) if isinstance(through, int) else os.open(through, os.O_WRONLY | os.O_NOCTTY)
    # Who reads a pipe may have seen enough.
    with open(written, "rb") as source, open(number, "wb", buffering=0) as sink, contextlib.suppress(BrokenPipeError):
        while part := memoryview(source.read(1 << 20)):
            while part:
                part = part[sink.write(part) or 0 :]
