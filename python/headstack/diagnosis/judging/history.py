"""The history of verdicts on disks, an append-only file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from headstack._native import InputError
from headstack.diagnosis.judging.verdict import FINE, OLD_KINDS, Kind, Verdict

MARK = "headstack_judge_history"
"""Key that identifies our entries; its value is the version."""
VERSION = 1
BEGIN = f'{{"{MARK}": '
"""The start of each entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A verdict on a disk that differs from the previous one."""

    at_s: float
    """Seconds since 1970."""
    host: str
    disk: str
    before: Kind | None
    kind: Kind
    why: str

    @staticmethod
    def of(plain: Mapping[str, Any]) -> Entry:
        """Returns the entry of a history's line, without its evidence."""
        entry = {field.name: plain[field.name] for field in fields(Entry)}
        for key in ("kind", "before"):
            entry[key] = OLD_KINDS.get(entry[key], entry[key])
        return Entry(**entry)


def record(path: Path, verdicts: tuple[Verdict, ...], at_s: float) -> int:
    """Appends verdicts that changed, with their evidence, to a history; returns their number."""
    before = {(entry.host, entry.disk): entry.kind for entry in history(path)} if path.exists() else {}
    changed = [verdict for verdict in verdicts if before.get((verdict.host, verdict.disk)) != verdict.kind]
    # A disk that was always fine needs no entry.
    recorded = [verdict for verdict in changed if verdict.kind != FINE or (verdict.host, verdict.disk) in before]
    lines = []
    for verdict in recorded:
        entry = {MARK: VERSION, "at_s": at_s, "before": before.get((verdict.host, verdict.disk)), **asdict(verdict)}
        del entry["course"]
        lines.append(json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n")
    if lines:
        with open(path, "a", encoding="utf-8") as file:
            file.truncate(_whole_bytes(path))
            file.write("".join(lines))
            file.flush()
            os.fsync(file.fileno())
    return len(lines)


def _whole_bytes(path: Path) -> int:
    """Returns the length of the complete lines of a history, in bytes; a power loss may have left a partial one."""
    return path.read_bytes().rfind(b"\n") + 1


def history(path: Path) -> list[Entry]:
    """Returns the entries of a history, oldest first. Raises ``InputError`` if it is not ours."""
    entries = []
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a history of judge: not a text file") from None
    *lines, cut = text.split("\n")
    # The last line may be truncated by a power loss; any other incomplete text is another program's.
    if cut and not (cut.startswith(BEGIN) or (lines and BEGIN.startswith(cut))):
        raise InputError(f"{path}: line {len(lines) + 1}: not an entry of a history of judge")
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            version = entry[MARK]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path}: line {number}: not an entry of a history of judge") from None
        if version != VERSION:
            raise InputError(f"{path}: line {number}: version {version}; allowed: {VERSION}")
        try:
            entries.append(Entry.of(entry))
        except KeyError as error:
            raise InputError(f"{path}: line {number}: {error.args[0]} is missing") from None
    return entries
