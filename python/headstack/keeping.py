"""Files that appear whole or not at all, and where what can be computed again is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path


def cache_folder() -> Path:
    """``headstack`` in the user's cache: ``$XDG_CACHE_HOME``, ``~/.cache`` where that is not set."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headstack"


def write_all(files: Iterable[tuple[str | os.PathLike[str], Callable[[Path], object]]]) -> None:
    """Writes files beside their places, then moves them there: each appears whole, or none at all."""
    unfinished: list[tuple[Path, Path]] = []
    try:
        for given, write in files:
            path = Path(given)
            # The suffix stays: it names the format of a picture.
            unfinished.append((path.with_name(f".{os.getpid()}.{path.name}"), path))
            write(unfinished[-1][0])
        for written, path in unfinished:
            os.replace(written, path)
    finally:
        for written, _ in unfinished:
            written.unlink(missing_ok=True)
