"""The exceptions of ``headstack._native``, in Python: no compiled class extends an exception before 3.12."""

from __future__ import annotations

from typing import Literal

Kind = Literal["failed", "stopped", "in use"]
"""Why a run ended: it failed, somebody stopped it, or another process began to use its target."""


class InputError(ValueError):
    """Input that cannot be accepted.

    Its text is one line, ``FILE:LINE: KEY: MESSAGE``, without the parts that are not known.

    >>> error = InputError("0 is not allowed; 1 or more is", file="own.toml", line=3, key="depth")
    >>> print(error)
    own.toml:3: depth: 0 is not allowed; 1 or more is
    """

    def __init__(self, message: str, file: str | None = None, line: int | None = None, key: str | None = None) -> None:
        place = [] if file is None else [file if line is None else f"{file}:{line}"]
        if file is None and line is not None:
            place = [f"line {line}"]
        super().__init__(": ".join([*place, *([] if key is None else [key]), message]))
        self.message = message
        """The fault, and the values that are allowed."""
        self.file = file
        """The file, as the user named it."""
        self.line = line
        """The line in the file, from 1."""
        self.key = key
        """The key of a file, or the option."""

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str | None, int | None, str | None]]:
        return type(self), (self.message, self.file, self.line, self.key)


class RunError(RuntimeError):
    """A run that failed or was stopped."""

    def __init__(self, message: str, kind: Kind = "failed") -> None:
        super().__init__(message)
        self.kind: Kind = kind
        """The reason."""

    def __reduce__(self) -> tuple[type[RunError], tuple[str, Kind]]:
        return type(self), (str(self), self.kind)
