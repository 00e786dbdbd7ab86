"""How commands are ended from outside: Ctrl-C, SIGTERM and SIGHUP are one wish, and are heard here alone.

A signal raises ``KeyboardInterrupt``, as Ctrl-C does in any Python program. Within ``held`` it does not: it ends what
the compiled part measures, and Python goes on to keep and write what that has come to. A second one has the compiled
part leave devices that do not answer; it may come while results are written already, and takes nothing with it. A third
one raises everywhere. Several in quick succession are one, since a terminal's end comes from the kernel and from the
shell.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from headstack import _native

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ONE_WISH_S = 0.3
"""Signals that come within this time of the one before say the same once more."""
PATIENCE = 2
"""So many wishes are heard within ``held`` before it is left with nothing kept."""

_heard: list[int] = []
_last_s = float("-inf")
_held = 0


def install() -> None:
    """Hears the signals from now on, but for those that whoever began this has ignored: ``nohup``, ``&`` in scripts."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _hear)


def heard() -> bool:
    """Whether one came."""
    return bool(_heard)


def exit_code() -> int:
    """That of a command which a signal ended, as shells number it; 130 where Ctrl-C came without being heard here."""
    return 128 + (_heard[0] if _heard else signal.SIGINT)


def wishes() -> int:
    """How often somebody has asked for the end."""
    return len(_heard)


@contextmanager
def held() -> Iterator[None]:
    """Within it, or a function that it decorates, the signals end measurements and not the command."""
    global _held
    _held += 1
    try:
        yield
    finally:
        _held -= 1


@contextmanager
def deferred() -> Iterator[None]:
    """Within it nothing is interrupted; a signal raises behind it, unless all of the command is held."""
    with held():
        yield
    if _heard and not _held:
        raise KeyboardInterrupt


@contextmanager
def raising() -> Iterator[None]:
    """Within ``held``, a part in which signals raise: it waits for something that they would not end."""
    global _held
    before = _held
    try:
        _held = 0
        if _heard:
            raise KeyboardInterrupt
        yield
    finally:
        _held = before


def _hear(number: int, _: FrameType | None) -> None:
    global _last_s
    since_s, _last_s = time.monotonic() - _last_s, time.monotonic()
    if since_s < ONE_WISH_S:
        return
    _heard.append(number)
    _native.ask_to_end()
    if number == signal.SIGHUP:
        _leave_terminal()
    if not _held or len(_heard) > PATIENCE:
        raise KeyboardInterrupt


def _leave_terminal() -> None:
    """What is written to a terminal that is gone would fail, and take with it what is still to be kept."""
    for stream in (sys.stdout, sys.stderr):
        try:
            number = stream.fileno()
        except (AttributeError, OSError, ValueError):
            continue
        poll = select.poll()
        poll.register(number, 0)
        if any(events & select.POLLHUP for _, events in poll.poll(0)):
            gone = os.open(os.devnull, os.O_WRONLY)
            os.dup2(gone, number)
            os.close(gone)
