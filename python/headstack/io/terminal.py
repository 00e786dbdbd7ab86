"""What reaches a terminal: text, and of control characters only those that this program writes itself.

Names of devices, jobs and hosts, files of monitoring and what ssh prints come from elsewhere, and may hold sequences by
which a terminal changes its title, its clipboard or what was printed before.
"""

from __future__ import annotations

import io
import re
from typing import Any, TextIO

CONTROLS = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but line ends and tabs, and those that turn the direction of text."""
CLEAR_LINE = "\r\x1b[K"


def visible(text: str) -> str:
    r"""Text whose control characters are written out.

    >>> from headstack.io.terminal import visible
    >>> print(visible("sda\x1b]0;title\x07"))
    sda\x1b]0;title\x07
    """
    return CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


class Guarded(io.TextIOWrapper):
    """A stream that shows control characters of a text on a terminal instead of sending them."""

    def write(self, text: str, /) -> int:
        """Writes a text; a file gets it as it is."""
        super().write(visible(text) if self.isatty() else text)
        return len(text)

    def send(self, text: str) -> None:
        """Writes what the program itself made, control characters and all."""
        super().write(text)


class Sending(io.TextIOBase):
    """A guarded stream as other libraries draw on it."""

    def __init__(self, stream: Guarded) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Writes as it is."""
        self._stream.send(text)
        return len(text)

    def flush(self) -> None:
        """Flushes the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """That of the stream."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream."""
        return self._stream.encoding


def drawable(stream: TextIO) -> Any:
    """The stream for a library that draws on terminals."""
    return Sending(stream) if isinstance(stream, Guarded) else stream


def send(stream: TextIO, text: str) -> None:
    """Writes what this program itself made, control characters and all."""
    if isinstance(stream, Guarded):
        stream.send(text)
    else:
        stream.write(text)


def rewrite(stream: TextIO, line: str, on_terminal: bool) -> None:
    """Shows a line of progress: on a terminal in place of the one before, else as a line of its own."""
    send(stream, f"{CLEAR_LINE}{visible(line)}" if on_terminal else f"{visible(line)}\n")
    stream.flush()


def clear(stream: TextIO) -> None:
    """Takes the line of progress off a terminal."""
    send(stream, CLEAR_LINE)
    stream.flush()


def remark(stream: TextIO, line: str, on_terminal: bool) -> None:
    """Prints a line in place of a line of progress, which stays."""
    send(stream, f"{CLEAR_LINE if on_terminal else ''}{visible(line)}\n")
    stream.flush()
