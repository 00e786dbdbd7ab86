"""The history of verdicts on disks: a file that is only ever appended to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from headstack._native import InputError
from headstack.diagnosis.judging.verdict import FINE, Kind, Verdict

MARK = "headstack_judge_history"
"""The key that tells an entry of ours; its value is the version."""
VERSION = 1
BEGIN = f'{{"{MARK}": '
"""How each entry begins."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A verdict on a disk that differs from the one before."""

    at_s: float
    """Seconds since 1970."""
    host: str
    disk: str
    before: Kind | None
    kind: Kind
    why: str

    @staticmethod
    def of(plain: Mapping[str, Any]) -> Entry:
        """The entry that a line of a history has; its evidence is left out."""
        return Entry(**{one.name: plain[one.name] for one in fields(Entry)})


def record(path: Path, verdicts: tuple[Verdict, ...], at_s: float) -> int:
    """Appends to a history what is said otherwise than before of a disk, with its evidence; returns how many."""
    before = {(one.host, one.disk): one.kind for one in history(path)} if path.exists() else {}
    changed = [one for one in verdicts if before.get((one.host, one.disk)) != one.kind]
    # Of a disk that was always fine there is nothing to tell.
    told = [one for one in changed if one.kind != FINE or (one.host, one.disk) in before]
    lines = []
    for one in told:
        entry = {MARK: VERSION, "at_s": at_s, "before": before.get((one.host, one.disk)), **asdict(one)}
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
    """Length of the whole lines of a history, in bytes; a power cut may have left a part of another."""
    return path.read_bytes().rfind(b"\n") + 1


def history(path: Path) -> list[Entry]:
    """The entries of a history, oldest first. Raises ``InputError`` where it is not ours."""
    found = []
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: no history of judge: it is not text") from None
    *lines, cut = text.split("\n")
    # The last line may have been cut when the power went; any other text without an end is another program's.
    if cut and not (cut.startswith(BEGIN) or (lines and BEGIN.startswith(cut))):
        raise InputError(f"{path}: line {len(lines) + 1}: no entry of a history of judge")
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            version = entry[MARK]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path}: line {number}: no entry of a history of judge") from None
        if version != VERSION:
            raise InputError(f"{path}: line {number}: version {version}; allowed: {VERSION}")
        try:
            found.append(Entry.of(entry))
        except KeyError as error:
            raise InputError(f"{path}: line {number}: {error.args[0]} is missing") from None
    return found
