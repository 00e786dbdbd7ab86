"""``Store``, which keeps finished chunks: one file each, written atomically."""

from __future__ import annotations

import hashlib
import logging
import os
from functools import partial
from pathlib import Path

from headstack._native import InputError
from headstack.io.atomic_files import cache_folder, write_all
from headstack.simulation.chunks.chunk import Chunk, engine

log = logging.getLogger("headstack")


class Store:
    """A folder of answers with a subfolder per build of headstack; those of other builds may be deleted at any time.

    A file is called ``CHUNK-HASH``, with ``.parquet`` if it is a table: the id of the chunk and the hash of the file's
    bytes, which detects damage. Several processes may use a store at a time.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        """Raises ``InputError`` if the folder cannot be written."""
        self._folder = (Path(folder) if folder is not None else cache_folder() / "chunks") / engine()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{error.filename}: {error.strerror}", key="store") from None
        if not os.access(self._folder, os.W_OK):
            raise InputError(f"{self._folder}: no permission to write", key="store")
        self._found = {path.name.partition("-")[0]: path for path in self._folder.glob("[!.]*-*")}

    def find(self, chunk: Chunk) -> Path | None:
        """Returns the answer to a chunk, or ``None``; a damaged file is removed with a note."""
        path = self._found.get(chunk.id)
        if path is None:
            return None
        try:
            if path.name == _name(chunk, path.read_bytes()):
                return path
        except FileNotFoundError:
            return None
        log.warning("%s is damaged and computed again", path)
        path.unlink(missing_ok=True)
        return None

    def keep(self, chunk: Chunk, answer: bytes) -> Path:
        """Stores the answer to a chunk."""
        path = self._folder / _name(chunk, answer)
        write_all([(path, partial(Path.write_bytes, data=answer))])
        return path


def _name(chunk: Chunk, answer: bytes) -> str:
    return f"{chunk.id}-{hashlib.sha256(answer).hexdigest()[:16]}{'' if chunk.is_part else '.parquet'}"
