"""The log of a conditioning: JSON lines that survive interruptions, from which every report is generated.

The first line describes the module; then there is a line for each interval, for the end of each pass, and for each
resumption. Each line is on stable storage before the next line is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from headstack import _native
from headstack._native import InputError
from headstack.io.stored import Stored
from headstack.measurement.specs import TargetDescription
from headstack.measurement.tests.conditioning.records import Line, LoggedTarget, ModuleRecord, Record, StretchRecord

STORED = Stored("conditioning log")
PASSES = ("write", "read")


@dataclass(frozen=True)
class Settings:
    """Settings of a conditioning, which a resumed conditioning must keep."""

    block_bytes: int = 64 << 10
    """Number of bytes that go to a device before the stream moves to the next device."""
    ahead: int = 4
    """Maximum number of blocks by which a device may be ahead of the slowest device (the memory of the recorder)."""
    interval_ns: int = 10_000_000_000
    """Length of the reported intervals."""
    passes: tuple[str, ...] = PASSES
    """``write`` and ``read``, in the order in which they run."""
    device_bytes: int | None = None
    """Maximum number of bytes of each device; ``None`` for the whole device."""


def identity(described: TargetDescription) -> dict[str, str | int]:
    """Returns the properties that identify a target even if it is attached elsewhere: its serial number or the kernel's
    substitute, or the path of a file."""
    description = described["description"]
    properties: dict[str, str | int] = {"kind": described["kind"], "capacity_bytes": described["capacity_bytes"]}
    if described["kind"] == "file":
        path = os.path.abspath(description.get("resolved", description["path"]))
        properties |= {"path": path, "inode": os.stat(path).st_ino}
    elif described["kind"] in ("block device", "NVMe namespace"):
        device = description.get("device", {})
        identifier = next((key for key in ("serial", "backing_file", "name") if device.get(key)), "name")
        properties |= {key: device[key] for key in (identifier, "model", "start_bytes") if device.get(key) is not None}
    elif described["kind"] == "NBD export":
        properties |= {key: description["export"][key] for key in ("server", "name")}
    return properties


def module_of(paths: list[str], described: list[TargetDescription], settings: Settings, began: str) -> ModuleRecord:
    """Returns the first line: the targets and the settings."""
    smallest = min(target["capacity_bytes"] for target in described)
    used = min(smallest, settings.device_bytes or smallest) // settings.block_bytes * settings.block_bytes
    targets: list[LoggedTarget] = [
        {"path": path, "identity": identity(target), "description": target["description"], "notes": target["notes"]}
        for path, target in zip(paths, described, strict=True)
    ]
    return {
        "record": "module",
        "schema": STORED.version,
        "headstack": _native.version(),
        "began": began,
        "targets": targets,
        "module_bytes": used * len(targets),
        "block_bytes": settings.block_bytes,
        "ahead": settings.ahead,
        "interval_ns": settings.interval_ns,
        "passes": list(settings.passes),
        "device_bytes": settings.device_bytes,
        "class_limits_ns": list(_native.CLASS_LIMITS_NS),
    }


def settings_of(module: ModuleRecord) -> Settings:
    """Returns the settings of the conditioning that began a log."""
    return Settings(
        block_bytes=module["block_bytes"],
        ahead=module["ahead"],
        interval_ns=module["interval_ns"],
        passes=tuple(module["passes"]),
        device_bytes=module["device_bytes"],
    )


def check_same_targets(path: str, module: ModuleRecord, now: ModuleRecord) -> None:
    """Raises ``InputError`` unless the targets and their order are those in the log."""
    before, after = module["targets"], now["targets"]
    if len(before) != len(after):
        raise InputError(f"{path}: was started with {len(before)} targets, but {len(after)} are named")
    for number, (was, is_) in enumerate(zip(before, after, strict=True), 1):
        differing = [
            key
            for key in {**was["identity"], **is_["identity"]}
            if was["identity"].get(key) != is_["identity"].get(key)
        ]
        if differing:
            key = differing[0]
            raise InputError(
                f"{path}: target {number} was {was['path']} with {key} {was['identity'].get(key)}; "
                f"{is_['path']} has {is_['identity'].get(key)}; name the same devices in the same order"
            )


@dataclass
class LogFile:
    """A log that is being written."""

    path: str
    descriptor: int
    failed: OSError | None = None
    """Reason why no more lines are written."""

    @classmethod
    def create(cls, path: str) -> LogFile:
        """Creates a log. Raises ``InputError`` if the file exists."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            raise InputError(f"{path}: already exists; resume it with --resume, or name another file") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return cls(path, descriptor)

    @classmethod
    def resume(cls, path: str, whole_bytes: int) -> LogFile:
        """Continues a log after its last complete line."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        os.ftruncate(descriptor, whole_bytes)
        return cls(path, descriptor)

    def append(self, record: Record) -> None:
        """Writes a line and waits until it is on stable storage. The first failure raises ``OSError``; later lines are
        not written."""
        if self.failed is not None:
            return
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self.descriptor, line) :]
            os.fsync(self.descriptor)
        except OSError as error:
            self.failed = error
            raise

    def close(self) -> None:
        """Closes the file."""
        os.close(self.descriptor)


class LogContents(NamedTuple):
    """The records of a log."""

    module: ModuleRecord
    lines: list[Line]
    """All lines except the first."""
    whole_bytes: int
    """Length of all complete lines in bytes."""


def read_log(path: str) -> LogContents:
    """Reads the records of a log.

    An incomplete last line results from an interruption and is not an error. Raises ``InputError`` if the file is not a
    conditioning log.
    """
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    del lines[-1]
    module: ModuleRecord | None = None
    records: list[Line] = []
    whole_bytes, course = 0, Course()
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line, parse_constant=_refuse)
            if module is not None:
                course.follow(module, record)
                records.append(record)
            else:
                module = _module_in(STORED.upgraded(path, record))
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, ZeroDivisionError):
            # A crash may leave blocks of the file that were never written.
            if number == len(lines) and number > 1:
                break
            raise InputError(f"{path}: line {number}: not a line of a conditioning log") from None
        whole_bytes += len(line) + 1
    if module is None:
        raise InputError(f"{path}: empty; not a conditioning log")
    return LogContents(module, records, whole_bytes)


def _refuse(word: str) -> NoReturn:
    """Rejects ``Infinity`` and ``NaN``, which Python reads as numbers but no log contains."""
    raise ValueError(word)


def _module_in(record: Any) -> ModuleRecord:
    """Parses the first line of a log. Raises an exception if it is invalid."""
    if record["record"] != "module":
        raise ValueError
    settings = settings_of(record)
    if not (settings.block_bytes > 0 and settings.interval_ns > 0 and record["module_bytes"] > 0):
        raise ValueError
    if not settings.passes or not set(settings.passes) <= set(PASSES) or not record["targets"]:
        raise ValueError
    if not record["class_limits_ns"] or min(record["class_limits_ns"]) <= 0:
        raise ValueError
    for target in record["targets"]:
        str.upper(target["path"]), dict.keys(target["identity"]), dict.keys(target["description"])
    module: ModuleRecord = record
    return module


@dataclass
class Course:
    """The progress of a conditioning."""

    number: int = 0
    """Index of the current pass."""
    position_bytes: int = 0
    """Position in the current pass."""

    def follow(self, module: ModuleRecord, record: Line) -> None:
        """Advances by a record. Raises ``ValueError`` or similar if the record cannot be the next."""
        if record["record"] == "stretch":
            self._follow_stretch(module, record)
        elif record["record"] == "pass":
            if (record["pass"], record["end_bytes"]) != (self.number, self.position_bytes):
                raise ValueError
            if record["is_whole"]:
                self.number, self.position_bytes = self.number + 1, 0
        elif record["record"] == "resumed":
            str.upper(record["at"])
        else:
            raise ValueError

    def _follow_stretch(self, module: ModuleRecord, record: StretchRecord) -> None:
        if (record["pass"], record["position_bytes"]) != (self.number, self.position_bytes):
            raise ValueError
        left_bytes = module["module_bytes"] - self.position_bytes
        if self.number >= len(module["passes"]) or not (
            record["duration_ns"] > 0 and 0 <= record["bytes"] <= left_bytes
        ):
            raise ValueError
        if len(record["devices"]) != len(module["targets"]):
            raise ValueError
        for device in record["devices"]:
            counts = [device[key] for key in ("blocks", "errors", "busy_ns", "held_ns", "sum_ns", "max_ns")]
            if min(*counts, *device["classes"]) < 0 or len(device["classes"]) != len(module["class_limits_ns"]) + 1:
                raise ValueError
            if any(ns < 0 or count < 0 for ns, count in device["responses"]):
                raise ValueError
        self.position_bytes += record["bytes"]


def course_of(module: ModuleRecord, lines: Iterable[Line]) -> Course:
    """Returns the progress of a conditioning after these lines."""
    course = Course()
    for line in lines:
        course.follow(module, line)
    return course
