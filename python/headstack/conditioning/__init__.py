"""Conditioning of a module: all of its devices written and read as one stream, which the slowest holds up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headstack import tables
from headstack._native import Field, InputError
from headstack.conditioning.log import (
    PASSES,
    LogFile,
    Record,
    Settings,
    course_of,
    module_of,
    read_log,
    refuse_others,
    settings_of,
)
from headstack.conditioning.report import Device, Interval, Pass, judgement, passes_of, verdict
from headstack.measurement import BY_HAND, Access, Opened, is_null
from headstack.stored import Stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PASSES", "Conditioning", "Device", "Interval", "Pass", "Settings", "condition"]

STORED = Stored("conditioning")
FIELDS = (
    Field("pass", "text", "", "what the pass does: write or read"),
    Field("position_bytes", "count", "bytes", "where on the module the interval begins"),
    Field("bytes", "count", "bytes", "what was streamed over the module in it"),
    Field("elapsed_s", "figure", "s", "from the start of the pass to the end of the interval, interruptions apart"),
    Field("duration_s", "figure", "s", "how long the interval lasted"),
    Field("mbit_per_s", "figure", "10^6 bit/s", "rate of the module"),
    Field("device", "text", "", "the device that the row is about"),
    Field("blocks", "count", "blocks", "blocks that the device was given"),
    Field("errors", "count", "blocks", "of these, blocks that failed"),
    Field("mean_ms", "figure", "ms", "mean time of a block that did not fail"),
    Field("max_ms", "figure", "ms", "longest time of a block"),
    Field("busy_share", "figure", "", "share of the interval in which the device had a block, 0 to 1"),
    Field("held_share", "figure", "", "share of the interval in which the others waited for this device, 0 to 1"),
)
"""The columns of the rows, before those that count the blocks of each class of times."""
FIGURES = (0.5, 0.99, 0.999)
"""Quantiles that are told."""


@dataclass
class Conditioning:
    """A module that was streamed over, wholly or in part: what its log says."""

    records: list[Record]
    """The lines of the log."""
    require_mbit_per_s: float | None = None
    """The rate that is to be kept everywhere, in 10^6 bits per second."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Conditioning:
        """Reads a log. Raises ``InputError`` where it is none."""
        return cls(read_log(os.fspath(path))[0])

    @property
    def module(self) -> Record:
        """The targets and how they were streamed over."""
        return self.records[0]

    @cached_property
    def passes(self) -> list[Pass]:
        """Each pass with its intervals and devices."""
        return passes_of(self.records)

    @property
    def is_whole(self) -> bool:
        """Whether all passes came to the end of the module."""
        return [one.kind for one in self.passes if one.is_whole] == list(self.module["passes"])

    @property
    def ended_early(self) -> str | None:
        """Why it ended before that; ``None`` where it did not, or was killed."""
        last = self.records[-1]
        return str(last["ended_early"]) if last["record"] == "pass" and last["ended_early"] is not None else None

    @property
    def sessions(self) -> int:
        """How many times it was begun or resumed."""
        return 1 + [record["record"] for record in self.records].count("resumed")

    @property
    def failures(self) -> list[str]:
        """The first failures of each session, in words."""
        return [words for record in self.records if record["record"] == "pass" for words in record["failures"]]

    @property
    def is_kept(self) -> bool:
        """Whether no interval of any pass is below the required rate and no block failed."""
        limit = self.require_mbit_per_s
        slow = limit is not None and any(one.below(limit) for one in self.passes)
        return not slow and not any(device.errors for one in self.passes for device in one.devices)

    def judgements(self) -> list[str]:
        """Each pass in one line."""
        return [judgement(one, self.require_mbit_per_s) for one in self.passes]

    def verdict(self, lane: int) -> str:
        """What is wrong with the device of this number, or ``ok``."""
        return verdict(lane, self.passes, self.module["block_bytes"], self.require_mbit_per_s)

    @property
    def fields(self) -> list[Field]:
        """The columns of the rows."""
        counts = [
            Field(f"blocks {name}", "count", "blocks", "blocks whose time is in this class")
            for name in class_names(self.module)
        ]
        return [*FIELDS, *counts]

    @property
    def columns(self) -> list[str]:
        """Their names."""
        return [field.name for field in self.fields]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each interval and device."""
        rows, columns = [], self.columns
        for one in self.passes:
            for interval in one.intervals:
                for device, share in zip(one.devices, interval.devices, strict=True):
                    good = share["blocks"] - share["errors"]
                    cells = (
                        one.kind,
                        interval.position_bytes,
                        interval.bytes,
                        round(interval.elapsed_s, 6),
                        round(interval.duration_s, 6),
                        round(interval.mbit_per_s, 3),
                        device.path,
                        share["blocks"],
                        share["errors"],
                        round(share["sum_ns"] / good / 1e6, 6) if good else None,
                        share["max_ns"] / 1e6,
                        round(share["busy_ns"] / 1e9 / interval.duration_s, 6),
                        round(interval.held_share(device.number), 6),
                        *share["classes"],
                    )
                    rows.append(dict(zip(columns, cells, strict=True)))
        return rows

    def figures(self) -> dict[str, Any]:
        """Everything that is computed from the log, as JSON values."""
        return {
            **STORED.head,
            "module": self.module,
            "sessions": self.sessions,
            "is_whole": self.is_whole,
            "ended_early": self.ended_early,
            "require_mbit_per_s": self.require_mbit_per_s,
            "is_kept": self.is_kept,
            "failures": self.failures,
            "verdicts": {target["path"]: self.verdict(number) for number, target in enumerate(self.module["targets"])},
            "passes": [self._figures_of(one) for one in self.passes],
        }

    def _figures_of(self, one: Pass) -> dict[str, Any]:
        lowest, holder = one.lowest, one.devices[one.lowest.holder]
        devices = [
            {
                "path": device.path,
                "blocks": device.blocks,
                "errors": device.errors,
                "mean_ms": device.mean_ms,
                "max_ms": device.max_ms,
                **{f"p{100 * q:g}_ms": device.quantile_ms(q) for q in FIGURES},
                "own_mb_per_s": device.own_mb_per_s(self.module["block_bytes"]),
                "held_share": device.held_share,
                "classes": device.classes,
            }
            for device in one.devices
        ]
        return {
            "kind": one.kind,
            "bytes": one.bytes,
            "duration_s": one.duration_s,
            "flush_s": one.flush_s,
            "mean_mbit_per_s": one.mean_mbit_per_s,
            "lowest_mbit_per_s": lowest.mbit_per_s,
            "lowest_at_bytes": lowest.position_bytes,
            "lowest_held_up_by": holder.path,
            "judgement": judgement(one, self.require_mbit_per_s),
            "devices": devices,
            "intervals": [
                {"position_bytes": i.position_bytes, "elapsed_s": i.elapsed_s, "mbit_per_s": i.mbit_per_s}
                for i in one.intervals
            ],
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Everything that is computed from the log."""
        return tables.written(json.dumps(self.figures(), indent=1) + "\n", path)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """A row for each interval and device."""
        return tables.to_csv(self.columns, self.rows(), path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """The same as Parquet."""
        tables.to_parquet(self.fields, self.rows(), path)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Rates over the module, who held it up, and the block times of each device. Written to ``path`` where one is
        given. Needs the extra ``headstack[plot]``."""
        from headstack import plots
        from headstack.conditioning.picture import overview

        figure = overview(self)
        if path is not None:
            plots.save(figure, path)
        return figure


def class_names(module: Record) -> list[str]:
    """The classes of block times: ``<1.125ms`` and so on."""
    limits = [limit / 1e6 for limit in module["class_limits_ns"]]
    return [f"<{limit:g}ms" for limit in limits] + [f">={limits[-1]:g}ms"]


@dataclass(frozen=True)
class Now:
    """How far a conditioning is."""

    kind: str
    position_bytes: int
    module_bytes: int
    last: Record | None
    """The last interval since this process began, as in the log."""


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

    Writing takes ``access`` with the devices' names or serial numbers, or the word to overwrite files. Each interval is
    appended to ``log``; with ``resume`` a log that was interrupted is gone on with, by its own settings, after a look
    at whether the targets are the same. Ctrl-C, a device that vanishes, or a log that cannot be written end it, and
    what was measured is kept: ``ended_early``.
    """
    paths = [os.fspath(target) for target in targets]
    if resume and log is None:
        raise InputError("resume: there is no log to go on with; name one")
    old, whole_bytes = read_log(os.fspath(log)) if resume and log is not None else ([], 0)
    if old:
        stated = settings_of(old[0])
        if settings is not None and settings != stated:
            raise InputError(f"{log}: was begun with other settings ({stated}); what is resumed goes on with the same")
        settings = stated
    settings, access = settings or Settings(), access or Access()
    _check(paths, settings)
    left = settings.passes[course_of(old).number :]
    if not left:
        return Conditioning(old)
    # What is resumed exists, or is not the same.
    access = replace(access, create=None if old else access.create)
    opened = Opened(paths, access, writing="write" in left)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    module = module_of(paths, opened.described, settings, now)
    if module["module_bytes"] == 0:
        raise InputError(f"block: {settings.block_bytes} bytes have no room on the smallest target")
    first = {"record": "resumed", "at": now} if old else module
    if old:
        refuse_others(os.fspath(log or ""), old[0], module)
    file = None
    if log is not None:
        file = LogFile.resume(os.fspath(log), whole_bytes) if old else LogFile.create(os.fspath(log))
    session = _Session(opened, settings, file, old, progress)
    try:
        session.keep(first)
        session.run()
    except OSError as error:
        session.end(f"{log}: {error.strerror}")
    except KeyboardInterrupt:
        session.end(BY_HAND)
    finally:
        if file is not None:
            file.close()
    return Conditioning(session.records)


def _check(paths: list[str], settings: Settings) -> None:
    if not paths:
        raise InputError("name the targets of the module")
    if not settings.passes or not set(settings.passes) <= set(PASSES):
        raise InputError(f"pass: {','.join(settings.passes)!r} is unknown; allowed: {', '.join(PASSES)}")
    if settings.block_bytes <= 0 or settings.interval_ns <= 0:
        raise InputError("block, interval: values above 0 are allowed")
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        if is_null(path) or not os.path.exists(path):
            continue
        status = os.stat(path)
        place = (status.st_rdev, 0) if status.st_rdev else (status.st_dev, status.st_ino)
        if place in seen:
            raise InputError(f"{path}: is {seen[place]} once more; a module has each device once")
        seen[place] = path


@dataclass
class _Session:
    """A conditioning from where it is to its end."""

    opened: Opened
    settings: Settings
    file: LogFile | None
    records: list[Record]
    progress: Callable[[Now], object] | None

    def keep(self, record: Record) -> None:
        """Keeps a record, in the log too. Raises ``OSError`` where that cannot be written, once."""
        self.records.append(record)
        if self.file is not None:
            self.file.append(record)

    def end(self, why: str) -> None:
        """Says why it ended before its time."""
        course = course_of(self.records)
        ended = {"record": "pass", "pass": course.number, "end_bytes": course.position_bytes, "is_whole": False}
        self.records.append(ended | {"flush_ns": None, "ended_early": why, "failures": [], "engine": ""})

    def run(self) -> None:
        """Carries out what is left of the passes."""
        course = course_of(self.records)
        for number in range(course.number, len(self.settings.passes)):
            start_bytes = course.position_bytes if number == course.number else 0
            passed = self._pass(number, start_bytes)
            self.keep({"record": "pass", "pass": number, **passed})
            if passed["ended_early"] is not None:
                return

    def _pass(self, number: int, start_bytes: int) -> Record:
        kind, module_bytes = self.settings.passes[number], self.records[0]["module_bytes"]
        last: Record | None = None

        def keep(stretch: Record) -> None:
            nonlocal last
            last = {"record": "stretch", "pass": number, **stretch}
            self.keep(last)

        def tell(position_bytes: int) -> None:
            if self.progress is not None:
                self.progress(Now(kind, position_bytes, module_bytes, last))

        asked = {
            "write": kind == "write",
            "block_bytes": self.settings.block_bytes,
            "ahead": self.settings.ahead,
            "device_bytes": self.settings.device_bytes,
            "start_bytes": start_bytes,
            "interval_ns": self.settings.interval_ns,
        }
        return self.opened.stream(asked, keep, tell)
