"""Terminal output: text, but control characters only if this program writes them itself.

Names of devices, jobs and hosts, monitoring files and the output of ssh come from elsewhere and may hold sequences that
change a terminal's title, its clipboard or earlier output.
"""

from __future__ import annotations

import io
import re
from typing import Any, TextIO

CONTROLS = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except line ends and tabs, and characters that change the direction of text."""
CLEAR_LINE = "\r\x1b[K"


def visible(text: str) -> str:
    r"""Escapes the control characters of a text.

    >>> from headstack.io.terminal import visible
    >>> print(visible("sda\x1b]0;title\x07"))
    sda\x1b]0;title\x07
    """
    return CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)


class Guarded(io.TextIOWrapper):
    """A stream that escapes the control characters of a text when it writes to a terminal."""

    def write(self, text: str, /) -> int:
        """Writes a text; a file gets it unchanged."""
        super().write(visible(text) if self.isatty() else text)
        return len(text)

    def send(self, text: str) -> None:
        """Writes text made by the program itself, including control characters."""
        super().write(text)


class Sending(io.TextIOBase):
    """A guarded stream with the interface that drawing libraries expect."""

    def __init__(self, stream: Guarded) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Writes the text unchanged."""
        self._stream.send(text)
        return len(text)

    def flush(self) -> None:
        """Flushes the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The stream's file descriptor."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's encoding."""
        return self._stream.encoding


def drawable(stream: TextIO) -> Any:
    """Returns the stream for a library that draws on terminals."""
    return Sending(stream) if isinstance(stream, Guarded) else stream


def send(stream: TextIO, text: str) -> None:
    """Writes text made by this program itself, including control characters."""
    if isinstance(stream, Guarded):
        stream.send(text)
    else:
        stream.write(text)


def rewrite(stream: TextIO, line: str, on_terminal: bool) -> None:
    """Shows a progress line: on a terminal it replaces the previous one, elsewhere it is a new line."""
    send(stream, f"{CLEAR_LINE}{visible(line)}" if on_terminal else f"{visible(line)}\n")
    stream.flush()


def clear(stream: TextIO) -> None:
    """Removes the progress line from a terminal."""
    send(stream, CLEAR_LINE)
    stream.flush()


def remark(stream: TextIO, line: str, on_terminal: bool) -> None:
    """Prints a permanent line in place of the progress line."""
    send(stream, f"{CLEAR_LINE if on_terminal else ''}{visible(line)}\n")
    stream.flush()
