"""``collect``: reads devices, and recognises saved outputs by their content, joined per device."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

from headstack._native import InputError
from headstack.diagnosis.inspection import hdparm, nvme, smartctl_text, stored, sysfs
from headstack.diagnosis.inspection.fields import Fields
from headstack.diagnosis.inspection.joining import join_by_device
from headstack.diagnosis.inspection.model import Inspection, joined
from headstack.diagnosis.inspection.smartctl import BRIDGE_TYPES, read_smartctl
from headstack.io.atomic_files import write_all
from headstack.io.encodings import decoded

LARGEST_OUTPUT_BYTES = 4 << 20
"""Maximum size of a saved output; a larger file is a data file, and selects the device that it is on."""

PROGRAM_LIMIT_S = 90
"""Time limit of a program in seconds; a disk that has to spin up or retries bad sectors takes tens of seconds to
answer."""

PROGRAM_FOLDERS = "/usr/sbin:/sbin:/usr/local/sbin"
"""Folders of administration programs, which are not always in the path."""

LIVE = "devices"
"""Key of the reports on all devices of a live export (``headstack ctl SOCKET smart``)."""

ALLOWED = "smartctl -a or -x (text or JSON), hdparm -I, nvme id-ctrl, id-ns or smart-log, or headstack inspect --json"

COMMANDS = {
    "smartctl.json": ("smartctl", "-j", "-x"),
    "hdparm.txt": ("hdparm", "-I"),
    "nvme-id-ctrl.json": ("nvme", "id-ctrl", "-o", "json"),
    "nvme-id-ns.json": ("nvme", "id-ns", "-o", "json"),
    "nvme-smart-log.json": ("nvme", "smart-log", "-o", "json"),
}
"""Commands run for a device, by the name that ``--save`` gives the output."""

PROVIDES = {
    "smartctl": "SMART attributes, health and self-tests",
    "hdparm": "the identify data of the drive",
    "nvme": "the controller's own description",
}


def collect(
    targets: list[str], save: str | None, device_type: str | None, limit_s: float = PROGRAM_LIMIT_S
) -> list[Inspection]:
    """Returns an inspection for each device and point in time. ``limit_s`` is the time limit of each program. Raises
    ``InputError`` if a target cannot be read."""
    parts: list[Inspection] = []
    whole: list[Inspection] = []
    for target in targets:
        if (files := saved_files(target)) is not None:
            parts.extend(_saved(target, files))
        else:
            whole.append(_read_device(sysfs.block_device(target), target, save, device_type, limit_s))
    return sorted(join_by_device(parts) + whole, key=lambda inspection: inspection.taken_unix_s or 0)


def saved_files(target: str) -> list[str] | None:
    """Returns the saved outputs of a target; ``None`` if it is a device."""
    try:
        status = os.stat(target)
    except OSError as error:
        raise InputError(f"{target}: {(error.strerror or str(error)).lower()}") from None
    if stat.S_ISDIR(status.st_mode):
        files = sorted(str(path) for path in Path(target).iterdir() if path.is_file() and not path.name.startswith("."))
        if not files:
            raise InputError(f"{target}: a folder without files; allowed: saved outputs of {ALLOWED}")
        return files
    if stat.S_ISREG(status.st_mode):
        return None if status.st_size > LARGEST_OUTPUT_BYTES else [target]
    if stat.S_ISFIFO(status.st_mode):
        return [target]
    return None


def _saved(target: str, files: list[str]) -> list[Inspection]:
    """Reads the saved outputs of a target, and adds a note on other files of a folder."""
    inspections: list[Inspection] = []
    unknown: list[str] = []
    for file in files:
        parts = _recognised(file, _read(file))
        inspections.extend(parts)
        if not parts:
            unknown.append(os.path.basename(file))
    if not inspections and unknown:
        problem = "contains no saved outputs" if os.path.isdir(target) else "not a saved output"
        raise InputError(f"{target}: {problem}; allowed: {ALLOWED}; for a device, name its node in /dev")
    note = f"{target}: skipped files that are not saved outputs: {', '.join(unknown)}"
    return [replace(part, notes=(*part.notes, note)) for part in inspections] if unknown else inspections


def _read(file: str) -> str:
    try:
        with open(file, "rb") as source:
            data = source.read(LARGEST_OUTPUT_BYTES + 1)
    except OSError as error:
        raise InputError(f"{file}: {(error.strerror or str(error)).lower()}") from None
    if len(data) > LARGEST_OUTPUT_BYTES:
        raise InputError(f"{file}: larger than {LARGEST_OUTPUT_BYTES >> 20} MiB; allowed: {ALLOWED}")
    return decoded(data)


def read_saved(file: str) -> list[Inspection]:
    """Returns the inspections in a saved output; empty for any other file. Raises ``InputError`` if the file cannot be
    read."""
    return _recognised(file, _read(file))


def _recognised(file: str, text: str) -> list[Inspection]:
    """Returns the inspections in a saved output, which is recognised by its content; empty for other content."""
    inspections = _parsed(file, text)
    if os.path.exists(file) and any(part.taken_unix_s is None for part in inspections):
        # For programs that do not print the time, use the time of the file.
        written = max(int(os.stat(file).st_mtime), 0)
        inspections = [
            part if part.taken_unix_s is not None else replace(part, taken_unix_s=written) for part in inspections
        ]
    return inspections


def _parsed(file: str, text: str) -> list[Inspection]:
    if text.lstrip()[:1] == "[":
        try:
            documents = json.loads(text)
        except (ValueError, RecursionError):
            return []
        # jq -s makes one list of documents.
        objects = [(number, document) for number, document in enumerate(documents) if isinstance(document, dict)]
        return [
            part for number, document in objects for part in _parsed_object(Fields(f"{file}: [{number}]", document))
        ]
    if text.lstrip()[:1] == "{":
        return _parsed_object(Fields.parse(file, text))
    if smartctl_text.is_smartctl_text(text):
        return [read_smartctl(fields) for fields in smartctl_text.read_text(file, text)]
    if hdparm.is_listing(text):
        return hdparm.read_hdparm(file, text)
    if (kind := nvme.text_kind(text)) is not None:
        return [nvme.read_nvme(kind, nvme.read_text(file, text))]
    return []


def _parsed_object(data: Fields) -> list[Inspection]:
    """Returns the inspections in a JSON object; empty if the object is not a saved output."""
    if stored.MARK in data.data:
        return stored.read(data)
    if "smartctl" in data.data:
        return [read_smartctl(data)]
    if LIVE in data.data:
        listed = data.data[LIVE]
        reports = (
            [report for report in listed if isinstance(report, dict) and "smartctl" in report]
            if isinstance(listed, list)
            else []
        )
        return [
            read_smartctl(Fields(f"{data.file}: {LIVE}[{number}]", report)) for number, report in enumerate(reports)
        ]
    if sysfs.MARK in data.data:
        return [sysfs.read_sysfs(data)]
    if (kind := nvme.json_kind(data.data)) is not None:
        return [nvme.read_nvme(kind, data)]
    return []


def _read_device(
    name: str, target: str, save: str | None, device_type: str | None, limit_s: float = PROGRAM_LIMIT_S
) -> Inspection:
    """Reads a device through the kernel and the installed programs."""
    raw = sysfs.record(name)
    parts = [sysfs.read_sysfs(Fields(f"/sys/class/block/{name}", raw))]
    notes: list[str] = []
    if os.path.realpath(target) != f"/dev/{name}":
        notes.append(f"{target}: a file on /dev/{name}, which was inspected instead")
    outputs = {"sysfs.json": json.dumps(raw, indent=1) + "\n"}
    missing: set[str] = set()
    for file, command in _commands(name, parts[0].identity.protocol or "", device_type).items():
        program = shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:{PROGRAM_FOLDERS}")
        if program is None:
            if command[0] not in missing:
                notes.append(f"{command[0]} is not installed: {PROVIDES[command[0]]} are missing")
            missing.add(command[0])
            continue
        _run(file, [program, *command[1:], f"/dev/{name}"], f"/dev/{name}", limit_s, outputs, parts, notes)
    if not raw.get("driver") or parts[0].identity.protocol not in ("ATA", "NVMe", "SCSI"):
        below = " ".join(raw["slaves"]) or raw["files"].get("loop/backing_file")
        notes.append(f"{name}: not a drive, so it has no health data" + (f"; below it: {below}" if below else ""))
    if save is not None:
        _save(save, name, outputs)
    whole = joined(parts)
    if device_type is None and sysfs.is_behind_usb(name) and not (whole.attributes or whole.nvme):
        notes.append(f"{name}: the drive behind this USB bridge did not answer; try --smartctl-type: {BRIDGE_TYPES}")
    return replace(whole, name=f"/dev/{name}", taken_unix_s=raw["taken_unix_s"], notes=(*notes, *whole.notes))


def _commands(name: str, protocol: str, device_type: str | None) -> dict[str, tuple[str, ...]]:
    """Returns the commands for a device of this kind."""
    programs = {"ATA": ("smartctl", "hdparm"), "SCSI": ("smartctl",), "NVMe": ("smartctl", "nvme")}
    chosen = programs.get(protocol, ("smartctl",) if device_type else ())
    commands = {file: command for file, command in COMMANDS.items() if command[0] in chosen}
    if device_type and "smartctl.json" in commands:
        commands["smartctl.json"] = (*COMMANDS["smartctl.json"], "-d", device_type)
    return commands


def _run(
    file: str,
    command: list[str],
    device: str,
    limit_s: float,
    outputs: dict[str, str],
    parts: list[Inspection],
    notes: list[str],
) -> None:
    """Runs a program and keeps its output; adds a note of one line if it fails."""
    program = os.path.basename(command[0])
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=limit_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        notes.append(f"{program}: {' '.join(str(error).split())}")
        return
    text = done.stdout.decode("utf-8", errors="replace")
    if text.strip():
        outputs[file] = text
    try:
        inspections = _parsed(device, text)
    except InputError as error:
        messages = done.stderr.decode("utf-8", errors="replace").strip().splitlines()
        notes.append(f"{program}: {messages[-1].strip() if messages else error}")
        return
    parts.extend(inspections)
    if not inspections:
        messages = done.stderr.decode("utf-8", errors="replace").strip().splitlines()
        notes.append(f"{program}: {messages[-1].strip() if messages else f'no output, exit code {done.returncode}'}")


def _save(folder: str, name: str, outputs: dict[str, str]) -> None:
    """Writes the raw outputs atomically."""
    try:
        os.makedirs(folder, exist_ok=True)
        write_all(
            (Path(folder) / f"{name}.{file}", partial(Path.write_text, data=text, encoding="utf-8"))
            for file, text in outputs.items()
        )
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {(error.strerror or str(error)).lower()}") from None
