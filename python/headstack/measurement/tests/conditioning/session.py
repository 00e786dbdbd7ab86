"""``Conditioning``: writes and reads all devices of a module as one stream, whose rate is limited by the
slowest device."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headstack._native import InputError
from headstack.measurement.access import Access, is_null
from headstack.measurement.measurement import BY_HAND, Opened
from headstack.measurement.specs import PassEnd, PassSpec, Stretch
from headstack.measurement.tests.conditioning.log import (
    PASSES,
    LogFile,
    Settings,
    check_same_targets,
    course_of,
    module_of,
    read_log,
    settings_of,
)
from headstack.measurement.tests.conditioning.records import (
    Line,
    ModuleRecord,
    PassRecord,
    Record,
    ResumedRecord,
    StretchRecord,
)
from headstack.measurement.tests.conditioning.report import Device, Interval, Pass

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from headstack.measurement.tests.conditioning.logged import ConditioningData

__all__ = ["PASSES", "Conditioning", "Device", "Interval", "Pass", "Settings", "condition"]


class Conditioning(ConditioningData):
    """A completely or partly streamed module, with the data of its log."""

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plots rates over the module, the limiting device, and the block times of each device, and writes the figure
        if ``path`` is given. Needs the extra ``headstack[plot]``."""
        from headstack.measurement.tests.conditioning.picture import overview  # start-up time
        from headstack.report import plots  # start-up time

        figure = overview(self)
        if path is not None:
            plots.save(figure, path)
        return figure


@dataclass(frozen=True)
class Now:
    """The current progress of a conditioning."""

    kind: str
    position_bytes: int
    module_bytes: int
    last: StretchRecord | None
    """Last interval since this process started, in the form of the log."""


def condition(
    targets: Sequence[str | os.PathLike[str]],
    settings: Settings | None = None,
    access: Access | None = None,
    *,
    log: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[Now], object] | None = None,
) -> Conditioning:
    """Streams over a module of devices or files, in 64 KiB blocks round robin, to the end of each pass.

    Writing needs ``access`` with the devices' names or serial numbers, or the permission to overwrite files. Each
    interval is appended to ``log``; ``resume`` continues an interrupted log with its own settings, after a check that
    the targets are the same. The conditioning ends at Ctrl-C, a lost device, or a log that cannot be written; the
    results so far are kept, and ``ended_early`` has the reason.
    """
    paths = [os.fspath(target) for target in targets]
    if resume and log is None:
        raise InputError("needs a log to resume; name a log", key="resume")
    old = read_log(os.fspath(log)) if resume and log is not None else None
    if old is not None:
        stated = settings_of(old.module)
        if settings is not None and settings != stated:
            raise InputError(f"{log}: was started with other settings ({stated}); resume with these settings")
        settings = stated
    settings, access = settings or Settings(), access or Access()
    _check(paths, settings)
    left = settings.passes[0 if old is None else course_of(old.module, old.lines).number :]
    if old is not None and not left:
        return Conditioning(old.module, old.lines)
    # The targets of a resumed conditioning must already exist.
    access = replace(access, create=access.create if old is None else None)
    opened = Opened(paths, access, writing="write" in left)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    module = module_of(paths, opened.described, settings, now)
    if module["module_bytes"] == 0:
        raise InputError(f"{settings.block_bytes} bytes do not fit on the smallest target", key="block")
    if old is not None:
        check_same_targets(os.fspath(log or ""), old.module, module)
    file = None
    if log is not None:
        path = os.fspath(log)
        file = LogFile.create(path) if old is None else LogFile.resume(path, old.whole_bytes)
    session = _Session(opened, settings, file, module, [], progress)
    if old is not None:
        session.module, session.lines = old.module, old.lines
    try:
        if old is None:
            session.store(module)
        else:
            session.keep(ResumedRecord(record="resumed", at=now))
        session.run()
    except OSError as error:
        session.end(f"{log}: {error.strerror}")
    except KeyboardInterrupt:
        session.end(BY_HAND)
    finally:
        if file is not None:
            file.close()
    return Conditioning(session.module, session.lines)


def _check(paths: list[str], settings: Settings) -> None:
    if not paths:
        raise InputError("name the targets of the module")
    if not settings.passes or not set(settings.passes) <= set(PASSES):
        raise InputError(f"{','.join(settings.passes)!r} is unknown; allowed: {', '.join(PASSES)}", key="pass")
    if settings.block_bytes <= 0 or settings.interval_ns <= 0:
        raise InputError("block, interval: must be above 0")
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        if is_null(path) or not os.path.exists(path):
            continue
        status = os.stat(path)
        place = (status.st_rdev, 0) if status.st_rdev else (status.st_dev, status.st_ino)
        if place in seen:
            raise InputError(f"{path}: same device as {seen[place]}; name each device once")
        seen[place] = path


@dataclass
class _Session:
    """A conditioning from its current position to its end."""

    opened: Opened
    settings: Settings
    file: LogFile | None
    module: ModuleRecord
    lines: list[Line]
    progress: Callable[[Now], object] | None

    def keep(self, line: Line) -> None:
        """Keeps a line, and writes it to the log. The first failure raises ``OSError``."""
        self.lines.append(line)
        self.store(line)

    def store(self, record: Record) -> None:
        """Writes a record to the log, if there is a log. The first failure raises ``OSError``."""
        if self.file is not None:
            self.file.append(record)

    def end(self, why: str) -> None:
        """Records the reason for an early end."""
        course = course_of(self.module, self.lines)
        ended: PassRecord = {
            "record": "pass",
            "pass": course.number,
            "end_bytes": course.position_bytes,
            "is_whole": False,
            "flush_ns": None,
            "ended_early": why,
            "failures": [],
            "engine": "",
        }
        self.lines.append(ended)

    def run(self) -> None:
        """Runs the remaining passes."""
        course = course_of(self.module, self.lines)
        for number in range(course.number, len(self.settings.passes)):
            start_bytes = course.position_bytes if number == course.number else 0
            passed = self._pass(number, start_bytes)
            self.keep({"record": "pass", "pass": number, **passed})
            if passed["ended_early"] is not None:
                return

    def _pass(self, number: int, start_bytes: int) -> PassEnd:
        kind, module_bytes = self.settings.passes[number], self.module["module_bytes"]
        last: StretchRecord | None = None

        def keep(stretch: Stretch) -> None:
            nonlocal last
            last = {"record": "stretch", "pass": number, **stretch}
            self.keep(last)

        def report(position_bytes: int) -> None:
            if self.progress is not None:
                self.progress(Now(kind, position_bytes, module_bytes, last))

        spec: PassSpec = {
            "write": kind == "write",
            "block_bytes": self.settings.block_bytes,
            "ahead": self.settings.ahead,
            "device_bytes": self.settings.device_bytes,
            "start_bytes": start_bytes,
            "interval_ns": self.settings.interval_ns,
        }
        return self.opened.stream(spec, keep, report)
