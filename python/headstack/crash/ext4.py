"""Reads the ext4 file system in an image without mounting it, or repairs and reads it with e2fsprogs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from headstack import _native
from headstack._native import InputError, RunError
from headstack.crash import files

REPAIRED = 3
"""Bits of e2fsck's exit code that mean that all errors were corrected."""


def fetch(image: str, names: tuple[str, ...], copies: list[Path]) -> str | None:
    """Copies files of the ext4 file system in an image; missing ones have no copy afterwards. Returns the reason if it
    cannot be read."""
    for copy in copies:
        copy.unlink(missing_ok=True)
    try:
        contents = _native.ext4_files(image, list(names))
    except InputError:
        return fetch_repaired(image, names, copies)
    except RunError as error:
        return f"ext4: {error}"
    for copy, data in zip(copies, contents, strict=True):
        if data is not None:
            copy.write_bytes(data)
    return None


def fetch_repaired(image: str, names: tuple[str, ...], copies: list[Path]) -> str | None:
    """Copies files with the programs of e2fsprogs, for file systems with features that only they support."""
    return dump_files(image, [f'dump "{name}" "{copy}"' for name, copy in zip(names, copies, strict=True)])


def fetch_folder(image: str, path: str, to: Path) -> str | None:
    """Copies a folder of the ext4 file system in an image to a path that does not exist yet; a missing one has no copy.
    Returns the reason if it cannot be read."""
    try:
        _native.ext4_folder(image, path, str(to))
    except InputError:
        shutil.rmtree(to, ignore_errors=True)
        # It is copied under its own name.
        dump = to.with_name(f"{to.name}-dumped")
        shutil.rmtree(dump, ignore_errors=True)
        dump.mkdir()
        problem = dump_files(image, [f'rdump "{path}" "{dump}"'])
        copied = dump / Path(path).name
        if copied.is_dir():
            copied.rename(to)
        shutil.rmtree(dump)
        return problem
    except RunError as error:
        return f"ext4: {error}"
    return None


def dump_files(image: str, commands: list[str]) -> str | None:
    """Repairs the file system in an image, and copies files out of it with debugfs."""
    debugfs = require_program("debugfs")
    done = e2fsck("-fy", image)
    if done.returncode & ~REPAIRED:
        return f"e2fsck: {complaints_of(done)}"
    lines = "".join(f"{command}\n" for command in commands)
    subprocess.run([debugfs, "-f", "-", image], input=lines.encode(), capture_output=True, check=False)
    return None


def e2fsck(options: str, image: str) -> subprocess.CompletedProcess[bytes]:
    """Repairs the file system in an image."""
    return subprocess.run(
        [require_program("e2fsck"), options, image], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )


def complaints_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """Returns e2fsck's complaints without their headings."""
    lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()
    complaints = [line.strip() for line in lines if line.strip() and not line.startswith(("e2fsck ", "Pass "))]
    return " ".join(complaints) or f"exit code {done.returncode}"


def require_program(program: str) -> str:
    """Returns the path of a file system's program. Raises ``InputError`` if it is not installed."""
    place = files.find_program(program)
    if place is None:
        raise InputError(f"needs {program}, which is not installed", key="check")
    return place
