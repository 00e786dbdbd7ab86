"""``FileSystem``: makes and mounts file systems on a live device, and reads their state after a crash."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headstack._native import InputError, RunError

PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
TIMEOUT_S = 60
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Folder for temporary files."""
DETACH_ATTEMPTS, DETACH_INTERVAL_S = 20, 0.05
"""Number of attempts, and interval in seconds, to wait until a loop device is detached."""
CAUSES_MAX = 16
"""Maximum number of causes of an error to follow."""
MOUNTS_MAX = 3
"""Number of attempts to mount: another process may be probing the device."""


class UnreadableError(Exception):
    """A file system that its own recovery cannot restore."""


@dataclass(frozen=True)
class FileSystem:
    """A file system: the command that makes it, the options to mount its state after a crash, and its minimum size."""

    make: tuple[str, ...]
    reading: str
    least_mib: int


FILE_SYSTEMS = {
    # A small journal, which wraps several times, and no delayed initialization.
    "ext4": FileSystem(
        (
            "mkfs.ext4",
            "-q",
            "-F",
            "-b",
            "1024",
            "-J",
            "size=4",
            "-E",
            "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
        ),
        "",
        16,
    ),
    "btrfs": FileSystem(("mkfs.btrfs", "-q", "-f", "-K", "-M"), "", 64),
    # An image has the same UUID as the device whose state it is.
    "xfs": FileSystem(("mkfs.xfs", "-q", "-f", "-K"), "nouuid", 304),
}


def file_system(kind: str) -> FileSystem:
    """Returns the file system of this name. Raises ``InputError`` for others."""
    if kind not in FILE_SYSTEMS:
        raise InputError(f"file system: {kind!r} is unknown; allowed: {', '.join(FILE_SYSTEMS)}")
    return FILE_SYSTEMS[kind]


def _run_tool(*command: str | Path, allowed: tuple[int, ...] = (0,)) -> str:
    """Runs a system program and returns its output. Raises ``OSError`` if it fails."""
    program = shutil.which(str(command[0]), path=PATH)
    if program is None:
        raise RunError(f"{command[0]} is not installed")
    process = subprocess.run([program, *map(str, command[1:])], capture_output=True, text=True, timeout=TIMEOUT_S)
    if process.returncode not in allowed:
        # e2fsck prints its name on standard error, and the problem on standard output.
        output = " ".join(f"{process.stderr} {process.stdout}".split())
        raise OSError(f"{command[0]}: exit code {process.returncode}: {output[:300]}")
    return process.stdout


@contextmanager
def loop_device(file: Path, *, direct: bool) -> Iterator[str]:
    """Yields a block device for a file; ``direct`` bypasses the page cache, as a device's writes do. Raises
    ``RunError`` if the machine has none available."""
    if os.geteuid() != 0:
        raise RunError("loop devices and mounts need root")
    try:
        device = _run_tool("losetup", "--find", "--show", f"--direct-io={'on' if direct else 'off'}", file).strip()
    except OSError as error:
        raise RunError(f"no loop device: {error}") from None
    try:
        yield device
    finally:
        detach(device)


def detach(device: str) -> None:
    """Detaches a loop device, and waits a short time until it is unused."""
    _run_tool("losetup", "--detach", device)
    backing = Path("/sys/block", Path(device).name, "loop", "backing_file")
    for _ in range(DETACH_ATTEMPTS):
        if not backing.exists():
            return
        close_failed_files()
        time.sleep(DETACH_INTERVAL_S)


def unmount(folder: str) -> None:
    """Unmounts a folder. If it is in use, for example by a file that a failing test left open, it is detached from the
    tree at once, and its device is released when the last file is closed."""
    try:
        _run_tool("umount", folder)
    except OSError:
        close_failed_files()
        _run_tool("umount", "--lazy", folder)


def close_failed_files() -> None:
    """Closes files that only frames of a failure keep open, including those of a test that pytest still holds."""
    error: BaseException | None = getattr(sys, "last_value", None) or sys.exception()
    seen = 0
    while error is not None and seen < CAUSES_MAX:
        traceback.clear_frames(error.__traceback__)
        error, seen = error.__cause__ or error.__context__, seen + 1
    gc.collect()


@contextmanager
def mounted_folder(device: str, kind: str, options: str = "") -> Iterator[Path]:
    """Yields the folder on which a device is mounted."""
    with tempfile.TemporaryDirectory(prefix="headstack-mount-") as name:
        # Databases run as other users, who need access.
        os.chmod(name, 0o755)
        _run_tool("mount", "-t", kind, "-o", ",".join(filter(None, ("noatime", options))), device, name)
        try:
            yield Path(name)
        finally:
            unmount(name)


@contextmanager
def new_file_system(file: Path, kind: str, options: str = "") -> Iterator[Path]:
    """Yields a new mounted file system on the device behind a file, synced beforehand."""
    with loop_device(file, direct=True) as device:
        _run_tool(*file_system(kind).make, device)
        with mounted_folder(device, kind, options) as folder:
            _run_tool("sync", "-f", folder)
            yield folder


@contextmanager
def recovered_file_system(image: Path, kind: str) -> Iterator[Path]:
    """Yields the contents of an image after the file system's own recovery. Raises `UnreadableError` if that fails.

    ext4 is recovered and read by its tools, which need no root; others are mounted.
    """
    if kind == "ext4":
        with tempfile.TemporaryDirectory(prefix="headstack-left-", dir=MEMORY) as name:
            os.chmod(name, 0o755)
            try:
                # 1 means errors were corrected, which is normal after a crash.
                _run_tool("e2fsck", "-fy", image, allowed=(0, 1))
            except OSError as error:
                raise UnreadableError(str(error)) from None
            _run_tool("debugfs", "-R", f"rdump / {name}", image)
            yield Path(name)
        return
    with loop_device(image, direct=False) as device, _mount_with_retries(device, kind) as folder:
        yield folder


@contextmanager
def _mount_with_retries(device: str, kind: str) -> Iterator[Path]:
    for attempt in range(1, MOUNTS_MAX + 1):
        mount = mounted_folder(device, kind, file_system(kind).reading)
        try:
            folder = mount.__enter__()
        except OSError as error:
            if attempt == MOUNTS_MAX:
                raise UnreadableError(str(error)) from None
            time.sleep(0.05 * attempt)
            continue
        try:
            yield folder
        finally:
            mount.__exit__(None, None, None)
        return
