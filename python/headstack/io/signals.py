"""Interruption of commands: Ctrl-C, SIGTERM and SIGHUP mean the same and are handled only here.

A signal raises ``KeyboardInterrupt``, as Ctrl-C does in any Python program. Within ``held`` it does not: the first
signal stops the measurement in the compiled part, and Python continues to save and write its results so far. The second
one makes the compiled part abandon devices that do not answer; it is harmless if results are being written already. The
third one always raises. Several signals in quick succession count once, since closing a terminal sends one from the
kernel and one from the shell.
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
SAME_SIGNAL_S = 0.3
"""Signals within this time of the previous one count as the same."""
SIGNALS_MAX = 2
"""Number of signals accepted within ``held`` before the command is left without saving."""

_heard: list[int] = []
_last_s = float("-inf")
_held = 0


def install() -> None:
    """Installs the handlers, except for signals that the parent ignores, as with ``nohup`` or ``&`` in scripts."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _hear)


def heard() -> bool:
    """Whether a signal was received."""
    return bool(_heard)


def exit_code() -> int:
    """Returns the exit code of a command ended by a signal, as shells number it; 130 for a Ctrl-C that was not handled
    here.
    """
    return 128 + (_heard[0] if _heard else signal.SIGINT)


def wishes() -> int:
    """Returns the number of interruptions so far."""
    return len(_heard)


@contextmanager
def held() -> Iterator[None]:
    """Within this context, or a function decorated with it, signals end measurements but not the command."""
    global _held
    _held += 1
    try:
        yield
    finally:
        _held -= 1


@contextmanager
def deferred() -> Iterator[None]:
    """Delays signals until the end of this context; they raise then, unless the whole command runs within ``held``."""
    with held():
        yield
    if _heard and not _held:
        raise KeyboardInterrupt


@contextmanager
def raising() -> Iterator[None]:
    """Lets signals raise in a part of ``held`` that waits for something they would not end."""
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
    if since_s < SAME_SIGNAL_S:
        return
    _heard.append(number)
    _native.ask_to_end()
    if number == signal.SIGHUP:
        _leave_terminal()
    if not _held or len(_heard) > SIGNALS_MAX:
        raise KeyboardInterrupt


def _leave_terminal() -> None:
    """Redirects output away from a closed terminal: a failed write would prevent the results from being saved."""
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
