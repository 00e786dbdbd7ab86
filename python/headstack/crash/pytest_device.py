"""``Device``, the disk of a test: a live export with faults, and the exploration of crash states."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import pytest

from headstack._native import InputError, RunError
from headstack.crash.inconclusive import InconclusiveError
from headstack.crash.recording import open as open_recording
from headstack.crash.replaying import replay_finding
from headstack.io.values import duration_ns
from headstack.live.control import Control
from headstack.live.filesystems import (
    UnreadableError,
    close_failed_files,
    file_system,
    loop_device,
    new_file_system,
    recovered_file_system,
)
from headstack.live.serving import Live, Serving, serve
from headstack.live.writeback import Writeback, background_syncs

if TYPE_CHECKING:
    from headstack.crash import Exploration
    from headstack.live.status import Fidelity, Injected, PowerLoss

SYSTEM = "970-evo-1tb@0..64MiB"
"""The default disk of a test."""
WRITEBACK = "4ms"
"""Default interval of background syncs of a disk's file system whose crashes are explored, as in headstack's own crash
tests of stores."""
CONSTANT, SIZE = "constant:", "64MiB"
BUDGET = "10s"
LEAST = 30
"""Minimum number of states of a conclusive exploration."""
JOURNAL, CONTROL = "journal", "control"

Check = Callable[[Path, Sequence[str]], object]
"""A check of an image or a folder, given the marks before the power loss: raises, or returns the fault."""


@dataclass(frozen=True)
class DiskMark:
    """The arguments of a test's ``disk`` marker."""

    system: str | os.PathLike[str] = SYSTEM
    faults: str | None = None
    crash: str | None = None
    size: str | None = None
    require: str | None = None

    @classmethod
    def of(cls, request: pytest.FixtureRequest) -> DiskMark:
        """Returns the arguments of the closest marker. Raises ``InputError`` for unknown ones."""
        marker = request.node.get_closest_marker("disk")
        if marker is None:
            return cls()
        if len(marker.args) > 1:
            raise InputError(
                f"{marker.args[1]!r} needs a keyword, such as faults=...",
                key="disk",
            )
        allowed = [field.name for field in fields(cls)]
        for word in marker.kwargs:
            if word not in allowed:
                raise InputError(f"{word!r} is unknown; allowed: {', '.join(allowed)}", key="disk")
        return cls(**{**dict(zip(("system",), marker.args, strict=False)), **marker.kwargs})


class DiskRequest:
    """The disk that a test's marker and the command line request."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        mark = DiskMark.of(request)
        self.system = os.fspath(mark.system)
        is_constant = self.system.startswith(CONSTANT)
        self.size = SIZE if mark.size is None and is_constant else mark.size
        # Paths are relative to the test's file.
        self.faults = None if mark.faults is None else str(request.path.parent / mark.faults)
        self.crash = mark.crash
        if self.crash not in (None, "explore"):
            raise InputError(f"crash: {self.crash!r} is unknown; allowed: explore", key="disk")
        if self.crash is not None and is_constant:
            raise InputError(f"crash: {self.system} has no volatile cache; name a drive or an array", key="disk")
        option = request.config.getoption
        self.required_ns = _valid_from_ns(option("--disk-require") or mark.require)
        self.budget: str | None = option("--disk-budget")
        self.replayed: str | None = option("--disk-replay")
        # Node ids are relative to the root folder, independent of the folder in which pytest was started.
        here = request.config.invocation_params.dir
        self.test = "::".join((os.path.relpath(request.path, here), *request.node.nodeid.split("::")[1:]))
        findings = option("--disk-findings")
        name = re.sub(r"[^\w.-]+", "-", request.node.nodeid).strip("-")[-120:]
        self.findings = Path(here, findings, name) if findings else request.getfixturevalue("tmp_path") / "findings"


def _valid_from_ns(text: str | None) -> int | None:
    if text is None:
        return None
    word, _, time = text.partition(":")
    if word != "valid" or not time:
        raise InputError(f"{text!r} is unknown; allowed: valid:TIME, such as valid:1ms", key="require")
    return duration_ns("require", time)


class Device:
    """A simulated disk that a test writes to; stores that need files find them in ``with disk.mounted() as folder``."""

    def __init__(
        self, request: DiskRequest, live: Live, folder: Path, report: Callable[[tuple[str, object]], None]
    ) -> None:
        self._request, self._live, self._folder, self._report = request, live, folder, report
        self._kind: str | None = None
        self._writeback: Writeback | None = None
        self._explored = False

    @property
    def path(self) -> Path:
        """A file that represents the disk, through FUSE without root. It is read and written in whole blocks, like a
        disk.
        """
        if not self._live.files:
            raise RunError("disk.path: cannot open /dev/fuse; use disk.uri, which does not need it")
        return Path(self._live.files[0])

    @property
    def uri(self) -> str:
        """Address of the disk for NBD clients, such as fio, qemu and nbdcopy."""
        return f"nbd+unix:///{self._live.exports[0][0]}?socket={self._folder / 'nbd'}"

    @contextmanager
    def attached(self) -> Iterator[str]:
        """Yields the disk as a block device (``/dev/loopN``), for root."""
        with loop_device(self.path, direct=True) as device:
            yield device

    @contextmanager
    def mounted(self, kind: str = "ext4", options: str = "", writeback: str = WRITEBACK) -> Iterator[Path]:
        """Yields a folder in a new file system on the disk (ext4, btrfs, xfs), for root. A later exploration checks
        this folder after crashes.

        With ``crash="explore"`` the file system is synced in the background, every ``writeback``, and each mark waits
        for half of that time: unsynced data reach the disk during the program's work, as through the kernel's writeback
        within half a minute. Without it (``writeback="0s"``), the recording contains little more than the program syncs
        itself, and a missing fsync is rarely found."""
        file_system(kind)
        self._kind = kind
        every_s = duration_ns("writeback", writeback) / 1e9 if self._request.crash is not None else 0.0
        with new_file_system(self.path, kind, options) as folder:
            if not every_s:
                yield folder
                return
            with background_syncs(folder, every_s) as self._writeback:
                try:
                    yield folder
                finally:
                    self._writeback = None

    def mark(self, text: object) -> None:
        """Records a mark in the journal, in the order of the writes, and returns when the mark is recorded. Use a mark
        to record that something was acknowledged."""
        with Control(self._folder / CONTROL) as control:
            control.order({"do": "mark", "text": str(text)})
        if self._writeback is not None:
            self._writeback.pause()

    def inject(self, fault: str, lasting: str | None = None, **keys: Any) -> Injected:
        """Injects a fault of the page "Faults" now: ``disk.inject("latency-spike", percent=5, time="50ms")``."""
        lasts = {} if lasting is None else {"for": lasting}
        answer: Injected = self._live.order({"do": "inject", "fault": {"what": fault, **keys}, **lasts})
        return answer

    def cut_power(self, tear: Literal["sector", "track"] = "sector") -> PowerLoss:
        """Cuts the power now, and returns the lost data. NBD clients are disconnected."""
        return self.inject("power-cut", tear=tear)["loss"]

    def restore_power(self) -> None:
        """Restores the power; the disk has the data that survived."""
        self.inject("power-on")

    @property
    def fidelity(self) -> Fidelity:
        """The agreement of the disk's times with the model so far, as in ``headstack serve --json``."""
        if self._live.fidelity is not None:
            return self._live.fidelity
        so_far: Fidelity = self._live.order({"do": "status"})["fidelity"]
        return so_far

    @property
    def verdict(self) -> str:
        """Describes the fidelity in words: ``valid for latencies above 3.1 ms ...``."""
        return self.fidelity["verdict"]

    def unused(self) -> str | None:
        """Returns the reason why a passed test has not made the exploration that it declares."""
        if self._request.crash is not None and not self._explored:
            return 'disk: the test has crash="explore" but did not call disk.explore(check)'
        return None

    def doubt(self) -> str | None:
        """Returns the reason why a passed test is not conclusive."""
        if self._request.required_ns is None:
            return None
        valid_above_ns = self.fidelity["valid_above_ns"]
        return None if valid_above_ns is not None and valid_above_ns <= self._request.required_ns else self.verdict

    def explore(self, check: Check | str, budget: str = BUDGET, least: int = LEAST, **how: Any) -> Exploration | None:
        """Ends the disk, and runs ``check`` on the states that power losses may leave, from the first mark on.

        ``check(path, marks)`` gets an image of the disk, or the folder of a mounted disk, and the marks before the
        power loss; it raises, or returns the fault. A command or the name of a check may be given instead, as in
        ``headstack crash explore``; ``how`` are the other settings of :meth:`Recording.explore`: ``tear``, ``atom``,
        ``seed``, ``jobs``, ``check_timeout``. A finding fails the test; fewer states than ``least`` within the budget
        are inconclusive. With ``--disk-replay`` there is one state, that of a reproducer, and nothing is returned.
        """
        if self._request.crash is None:
            raise InputError('disk.explore: needs a journal; write @pytest.mark.disk(SYSTEM, crash="explore")')
        self._explored = True
        self._live.stop()
        checked = _Checked(self._kind, check) if callable(check) else check
        if self._request.replayed is not None:
            self._replay(self._request.replayed, checked)
            return None
        recording = open_recording(self._folder / JOURNAL)
        how = {"reproducers": self._request.findings, **how}
        exploration = recording.explore(checked, budget=self._request.budget or budget, **how)
        self._report(("crash_coverage", exploration.coverage.describe()))
        for finding in exploration.findings:
            if finding.reproducer is not None:
                self._report(("crash_reproducer", finding.reproducer))
        if exploration:
            kept = exploration.findings[0].reproducer if exploration.findings else None
            again = (
                f"\nto reproduce: {pytest_command()} {quote(self._request.test)} --disk-replay {quote(kept)}"
                if kept
                else ""
            )
            pytest.fail(f"the check fails after a power loss\n{exploration}{again}", pytrace=False)
        if exploration.coverage.states < least and exploration.ended_by != "complete":
            raise InconclusiveError(
                f"{exploration.coverage.states} states checked, but at least {least} are required: {exploration}"
            )
        return exploration

    def _replay(self, reproducer: str, check: _Checked | str) -> None:
        message = replay_finding(open_recording(reproducer), check)
        if message is not None:
            pytest.fail(f"the check fails after a power loss: {message}", pytrace=False)


def pytest_command() -> str:
    """Returns the command that starts pytest: its name, if that is the pytest of this interpreter."""
    program = shutil.which("pytest")
    is_own = program is not None and Path(program).parent == Path(sys.executable).parent
    return "pytest" if is_own else f"{quote(sys.executable)} -m pytest"


class _Checked:
    """A check as the explorer calls it: on a folder, if the image has a file system."""

    def __init__(self, kind: str | None, check: Check) -> None:
        self._kind, self._check = kind, check

    def __call__(self, image: str, marks: list[str]) -> object:
        if self._kind is None:
            return self._check(Path(image), marks)
        try:
            with recovered_file_system(Path(image), self._kind) as folder:
                return self._check(folder, marks)
        except UnreadableError as error:
            return f"the file system cannot be mounted: {error}"


@contextmanager
def opened(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Yields the device of a test, which ends with it."""
    disk = DiskRequest(request)
    # Paths of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="headstack-disk-") as name:
        folder = Path(name)
        has_fuse = os.access("/dev/fuse", os.R_OK | os.W_OK)
        serving = Serving(
            unix=(str(folder / "nbd"),),
            fuse=str(folder / "fuse") if has_fuse else None,
            size=disk.size,
            faults=disk.faults,
            control=str(folder / CONTROL),
            journal=str(folder / JOURNAL) if disk.crash is not None else None,
        )
        with serve(disk.system, serving) as live:
            for note in live.notes:
                request.node.warn(pytest.PytestWarning(f"disk: {note}"))
            try:
                yield Device(disk, live, folder, request.node.user_properties.append)
            finally:
                # Files left open by a failing test would keep the disk in use.
                close_failed_files()
