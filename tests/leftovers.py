"""Processes, mounts and loop devices that a test has left behind: found, ended and named.

A test that fails or is ended half-way cannot tidy up. The process that runs tests becomes the parent of what they
orphan, and looks here afterwards. It touches only its own descendants, and mounts and loop devices below one folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
"""From linux/prctl.h: orphaned descendants become children of this process instead of init's."""
PATIENCE_S = 5.0
"""How long a process or a loop device may take to end by itself: detaching a loop device is asynchronous."""


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> set[int]:
    """Processes whose parent is this one; those that have ended and were not waited for are none."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        state, parent, *_ = rest.split()
        if int(parent) == os.getpid() and state not in "ZX":
            found.add(int(path.parent.name))
    return found


def command(process: int) -> str:
    """The command line of a process."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "a process that has ended"


def wait_until_gone(find: Callable[[], Collection[Any]]) -> None:
    """Waits until nothing is found any more, or for as long as that may take."""
    deadline_s = time.monotonic() + PATIENCE_S
    while find() and time.monotonic() < deadline_s:
        time.sleep(0.02)


def end_processes(keep: set[int]) -> list[str]:
    """Kills all children but some, and what they orphan in turn; returns their command lines."""
    wait_until_gone(lambda: children() - keep)
    ended = []
    while left := children() - keep:
        for process in left:
            ended.append(f"process: {command(process)}")
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
    return ended


def mounts_below(folder: Path) -> list[str]:
    """Mount points below a folder, the innermost first."""
    points = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        point = line.split()[1].replace("\\040", " ")
        if Path(point).is_relative_to(folder):
            points.append(point)
    return sorted(points, key=len, reverse=True)


def loops_below(folder: Path) -> list[str]:
    """Loop devices of files below a folder."""
    devices = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = path.read_text().strip()
        except OSError:
            continue
        if Path(backing).is_relative_to(folder):
            devices.append(f"/dev/{path.parts[3]}")
    return devices


def end_mounts_and_loops(folder: Path, keep: Collection[str] = ()) -> list[str]:
    """Unmounts and detaches what is below a folder, but for some; returns what that was."""

    def left() -> list[str]:
        return [name for name in [*mounts_below(folder), *loops_below(folder)] if name not in keep]

    wait_until_gone(left)
    ended = []
    for name in left():
        kind, undo = ("loop device", "losetup --detach") if name.startswith("/dev/loop") else ("mount", "umount --lazy")
        subprocess.run([*undo.split(), name], check=False, capture_output=True)
        ended.append(f"{kind}: {name}")
    return ended
