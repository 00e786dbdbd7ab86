"""Parts of the analysis of a stored trace, as a worker carries them out: the files are there for it too."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headstack import _native
from headstack._native import InputError, RunError

ONE_AT_A_TIME = threading.Lock()
"""A part uses the cores by itself, and memory for its tables: a process has one under way."""


def answer_of(chunk: dict[str, Any], progress: Callable[[float], object] | None = None) -> bytes:
    """What a worker does: one part, as bytes.

    Raises ``InputError`` where the files are not there, or not those that were meant.
    """
    (part,) = chunk["parts"]
    if identity(chunk["trace"]["paths"]) != chunk["files"]:
        raise RunError(
            f"{chunk['name']}: other files are there where this part is to be analysed, or they have changed"
        )

    def tell(_requests: int) -> None:
        # How many there are of it is not known; it is asked whether to go on.
        if progress is not None:
            progress(0.0)

    with ONE_AT_A_TIME:
        return _native.trace_analyze_part(chunk["trace"], chunk["options"], part, tell)


def identity(paths: list[str]) -> list[str]:
    """What tells stored traces from others: a hash of each one's metadata, which say where every column of it lies and
    between which values.
    """
    return [hashed(path) for given in paths for path in ([Path(given)] if not Path(given).is_dir() else stored(given))]


def stored(folder: str) -> list[Path]:
    """The stored traces in a folder, as the compiled part reads them."""
    return sorted(path for path in Path(folder).glob("*.parquet") if not path.name.startswith("."))


def hashed(path: Path) -> str:
    """A hash of the end of a Parquet file, and its length."""
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(0, length - 8))
            ends = file.read(8)
            file.seek(max(0, length - 8 - int.from_bytes(ends[:4], "little")))
            return f"{length}-{hashlib.sha256(file.read()).hexdigest()[:32]}"
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
