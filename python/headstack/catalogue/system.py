"""The system of a run: a drive, an array or a stack, by name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.catalogue.stack import Stack
from headstack.catalogue.unmodelled import unmodelled
from headstack.io.atomic_files import write_text


def load_system(system: str | os.PathLike[str], changes: Mapping[str, str] | None = None) -> Drive | Array | Stack:
    """Loads the drive, array or stack ``ID`` or ``FILE.toml``, or the part ``ID@RANGE``.

    ``changes`` are those of ``Array.load``. Raises ``InputError`` if there is no such name, or it is none of them.
    """
    name, separator, part = os.fspath(system).partition("@")
    try:
        resolved = _native.load_system(name, changes or {})
    except InputError:
        _refuse_other_things(os.fspath(system))
        raise
    called = os.path.basename(name).removesuffix(".toml")
    loaded: Drive | Array | Stack
    if "array" in resolved:
        loaded = Array(called, path=name, **resolved["array"])
    elif "stack" in resolved:
        loaded = Stack(called, path=name, **resolved["stack"])
    else:
        loaded = Drive(called, path=name, **resolved["drive"])
    return loaded.part(part) if separator else loaded


def load_blueprint(name: str, drives: Sequence[str] = ()) -> dict[str, Any]:
    """Loads the blueprint of a drive or array, in which the page of ``explore`` and ``choose`` replace keys.

    ``drives`` are drive files that may replace its drives. Raises ``InputError`` if there is no such name, or it is
    neither.

    >>> load_blueprint("va-7100")["kind"]
    'array'
    """
    try:
        return _native.system_blueprint(name, list(drives))
    except InputError:
        _refuse_other_things(name)
        raise


def _refuse_other_things(path: str) -> None:
    """Raises ``InputError`` if the name of a system is that of a real file or device, of an option, or of something
    that is not modelled."""
    is_real = os.path.isfile(path) and not path.partition("@")[0].endswith(".toml")
    if path.startswith(("/dev/", "nbd:", "nbd+unix:")) or is_real:
        raise InputError(f"{path}: this is a real file or device; use headstack measure {path}") from None
    if path.startswith("--"):
        raise InputError(f"{path}: fio's options follow --fio --, for example --fio -- --rw=randread") from None
    if (answer := unmodelled(path)) is not None:
        raise InputError(f"{path}: {answer}") from None


def parse_system(text: str) -> Drive | Array | Stack:
    """Parses the drive or array from the text of a file.

    Raises ``InputError`` if it is neither.
    """
    # Few callers need it, and this import is slow.
    with tempfile.TemporaryDirectory(prefix="headstack-") as folder:
        path = os.path.join(folder, "system.toml")
        write_text(path, text)
        return load_system(path)
