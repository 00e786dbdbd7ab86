"""The exceptions of ``headstack._native``, in Python because compiled classes cannot extend exceptions before 3.12."""

from __future__ import annotations

from typing import Literal

Kind = Literal["failed", "stopped", "in use"]
"""Why a run ended: it failed, the user stopped it, or another process began to use its target."""


class InputError(ValueError):
    """Invalid input.

    The text is one line, ``FILE:LINE: KEY: MESSAGE``; unknown parts are omitted.

    >>> error = InputError("must be 1 or more, not 0", file="own.toml", line=3, key="depth")
    >>> print(error)
    own.toml:3: depth: must be 1 or more, not 0
    """

    def __init__(self, message: str, file: str | None = None, line: int | None = None, key: str | None = None) -> None:
        place = [] if file is None else [file if line is None else f"{file}:{line}"]
        if file is None and line is not None:
            place = [f"line {line}"]
        super().__init__(": ".join([*place, *([] if key is None else [key]), message]))
        self.message = message
        """The error, with the allowed values."""
        self.file = file
        """The file as named by the user."""
        self.line = line
        """The line number in the file, counted from 1."""
        self.key = key
        """The key in the file, or the command-line option."""

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str | None, int | None, str | None]]:
        return type(self), (self.message, self.file, self.line, self.key)


class RunError(RuntimeError):
    """A run that failed or was stopped."""

    def __init__(self, message: str, kind: Kind = "failed") -> None:
        super().__init__(message)
        self.kind: Kind = kind
        """Why the run ended."""

    def __reduce__(self) -> tuple[type[RunError], tuple[str, Kind]]:
        return type(self), (str(self), self.kind)
