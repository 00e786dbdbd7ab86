"""Parts of the analysis of a stored trace as a worker computes them; the worker needs access to the same files."""

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
"""A part uses all cores, and memory for its tables, so a process computes one at a time."""


def answer_of(chunk: dict[str, Any], progress: Callable[[float], object] | None = None) -> bytes:
    """Computes one part and returns it as bytes.

    Raises ``InputError`` if the files are missing or are not the expected ones.
    """
    (part,) = chunk["parts"]
    if identity(chunk["trace"]["paths"]) != chunk["files"]:
        raise RunError(f"{chunk['name']}: the files to analyze are missing here, or they have changed")

    def on_progress(_requests: int) -> None:
        # The total number of requests is unknown; the call only checks for an interruption.
        if progress is not None:
            progress(0.0)

    with ONE_AT_A_TIME:
        return _native.trace_analyze_part(chunk["trace"], chunk["options"], part, on_progress)


def identity(paths: list[str]) -> list[str]:
    """Returns the identities of stored traces: a hash of each file's metadata, which holds the position and the value
    range of every column.
    """
    return [hashed(path) for name in paths for path in ([Path(name)] if not Path(name).is_dir() else stored(name))]


def stored(folder: str) -> list[Path]:
    """Returns the stored traces in a folder, as the compiled part reads them."""
    return sorted(path for path in Path(folder).glob("*.parquet") if not path.name.startswith("."))


def hashed(path: Path) -> str:
    """Returns a hash of the end of a Parquet file, and the file's length."""
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(0, length - 8))
            ends = file.read(8)
            file.seek(max(0, length - 8 - int.from_bytes(ends[:4], "little")))
            return f"{length}-{hashlib.sha256(file.read()).hexdigest()[:32]}"
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
