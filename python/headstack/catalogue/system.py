"""The system of a run: a drive or an array, by name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.catalogue.unmodelled import unmodelled
from headstack.io.atomic_files import write_text


def load_system(system: str | os.PathLike[str], changes: Mapping[str, str] | None = None) -> Drive | Array:
    """Loads the drive or array ``ID`` or ``FILE.toml``, or the part ``ID@RANGE``.

    ``changes`` are those of ``Array.load``. Raises ``InputError`` if there is no such name, or it is neither.
    """
    name, separator, part = os.fspath(system).partition("@")
    try:
        resolved = _native.load_system(name, changes or {})
    except InputError:
        path = os.fspath(system)
        if path.startswith(("/dev/", "nbd:", "nbd+unix:")) or (os.path.isfile(path) and not name.endswith(".toml")):
            message = f"{path}: this is a real file or device; use headstack measure {path}"
            raise InputError(message) from None
        if path.startswith("--"):
            raise InputError(f"{path}: fio's options follow --fio --, for example --fio -- --rw=randread") from None
        if (answer := unmodelled(path)) is not None:
            raise InputError(f"{path}: {answer}") from None
        raise
    called = os.path.basename(name).removesuffix(".toml")
    loaded: Drive | Array = (
        Array(called, path=name, **resolved["array"])
        if "array" in resolved
        else Drive(called, path=name, **resolved["drive"])
    )
    return loaded.part(part) if separator else loaded


def parse_system(text: str) -> Drive | Array:
    """Parses the drive or array from the text of a file.

    Raises ``InputError`` if it is neither.
    """
    # Few callers need it, and this import is slow.
    with tempfile.TemporaryDirectory(prefix="headstack-") as folder:
        path = os.path.join(folder, "system.toml")
        write_text(path, text)
        return load_system(path)
