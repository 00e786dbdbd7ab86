"""``Writeback``: periodic syncs of a file system while a program runs, like the kernel's every half minute."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)


def sync_file_system(folder: Path) -> None:
    """Syncs only the file system of a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if LIBC.syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), "syncfs")
    finally:
        os.close(descriptor)


class Writeback:
    """Periodic syncs in a background thread."""

    def __init__(self, folder: Path, every_s: float) -> None:
        self._folder, self._every_s = folder, every_s
        self._took_s = 0.0
        self._error: OSError | None = None

    def pause(self) -> None:
        """Waits for half of the interval between two syncs, so that about every second transaction is followed by
        one."""
        time.sleep((self._every_s + self._took_s) / 2)

    def repeat(self, ended: threading.Event) -> None:
        """Syncs until the event is set, or a sync fails."""
        while not ended.wait(self._every_s):
            began_s = time.monotonic()
            try:
                sync_file_system(self._folder)
            except OSError as error:
                self._error = error
                return
            self._took_s = time.monotonic() - began_s

    def check(self) -> None:
        """Raises ``OSError`` if a sync failed."""
        if self._error is not None:
            raise self._error


@contextmanager
def background_syncs(folder: Path, every_s: float) -> Iterator[Writeback]:
    """Syncs the file system every ``every_s`` seconds: unsynced data reach the device at any time and in any order, as
    through the kernel's writeback. Without it, a recording of a program that forgets to sync contains nothing to lose.
    """
    writeback = Writeback(folder, every_s)
    with background_thread(writeback.repeat):
        yield writeback
    writeback.check()


@contextmanager
def background_thread(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Runs a function in a thread until the context ends, which is signalled by its event."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=[ended])
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
