"""Atomic writes: a file appears complete or not at all.

Symbolic links are followed; pipes, devices and descriptors are written through. The compiled part (``crates/files``)
resolves the target and replaces the file, since it writes traces itself.
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
    """A file could not be written, for example because the disk is full or the device is gone."""


def write_all(files: Iterable[tuple[File, Write]]) -> None:
    """Writes each file to a temporary file in the same folder, then renames all of them: they appear complete, or none
    does.

    A file keeps the owner and the permissions of the one it replaces. Pipes, terminals and descriptors are written once
    the content is complete; their reader may stop at any time. ``-`` is standard output. Raises ``InputError`` for a
    path at which no file can be created, and ``WriteError`` with the name of the file that could not be written.
    """
    # Commands that only read need no folder, and this import is slow.
    drafts: list[tuple[File, _native.AtomicFile]] = []
    streams: list[tuple[File, int | str, Path]] = []
    with signals.deferred(), tempfile.TemporaryDirectory(prefix="headstack-") as folder:
        try:
            for target, write in files:
                through = _native.written_through(os.fspath(target))
                if through is None:
                    with failing(target):
                        draft = _native.AtomicFile(os.fspath(target))
                    drafts.append((target, draft))
                    path = Path(draft.draft)
                else:
                    # The suffix selects the format of a picture.
                    path = Path(folder, f"{len(streams)}{Path(target).suffix}")
                    streams.append((target, through, path))
                with failing(target):
                    write(path)
            for target, draft in drafts:
                with failing(target):
                    draft.finish()
        finally:
            for _, draft in drafts:
                draft.discard()
        for target, through, path in streams:
            with failing(target), signals.raising():
                _send(path, through)


def write_text(path: File, text: str) -> None:
    """Writes a text in UTF-8."""
    write_all([(path, partial(Path.write_text, data=text, encoding="utf-8"))])


@contextmanager
def opened_pipe(path: File) -> Iterator[str]:
    """Yields a path that the compiled part can write to instead of ``path``. A named pipe is opened here, so that
    signals interrupt the wait for its reader."""
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
    """Returns ``headstack`` in the user's cache: below ``$XDG_CACHE_HOME``, or ``~/.cache`` if that is not set."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headstack"


@contextmanager
def failing(target: File) -> Iterator[None]:
    """Converts errors so that they name the file being written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise WriteError(error.errno, error.strerror or str(error), os.fspath(target)) from None


def _send(content: Path, through: int | str) -> None:
    """Copies a file to a descriptor, pipe or device; a pipe blocks until it has a reader."""
    # Without O_NOCTTY a terminal could become the controlling terminal of this process.
    descriptor = os.dup(through) if isinstance(through, int) else os.open(through, os.O_WRONLY | os.O_NOCTTY)
    # The reader of a pipe may have closed it.
    with (
        open(content, "rb") as source,
        open(descriptor, "wb", buffering=0) as sink,
        contextlib.suppress(BrokenPipeError),
    ):
        while chunk := memoryview(source.read(1 << 20)):
            while chunk:
                chunk = chunk[sink.write(chunk) or 0 :]
