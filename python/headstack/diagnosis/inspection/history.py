"""Snapshots of devices in an SQLite file, by serial number."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from headstack._native import InputError
from headstack.diagnosis.inspection import stored
from headstack.diagnosis.inspection.fields import Fields
from headstack.diagnosis.inspection.joining import contradicts, names_a_device
from headstack.diagnosis.inspection.model import Inspection
from headstack.diagnosis.inspection.raw import decode

APPLICATION_ID = 0x48534E50
"""Application ID in the header of the file, ``HSNP``, which identifies headstack's database."""

VERSION = 1

TABLES = """
CREATE TABLE snapshot (
    serial TEXT NOT NULL,
    taken_unix_s INTEGER NOT NULL,
    digest TEXT NOT NULL,
    model TEXT,
    inspection TEXT NOT NULL,
    PRIMARY KEY (serial, taken_unix_s, digest)
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between a snapshot and the previous one."""

    taken_unix_s: int
    power_on_hours: int | None
    property_name: str
    before: str
    after: str

    def to_dict(self) -> dict[str, object]:
        """Returns the change in JSON's form."""
        return {
            "taken_unix_s": self.taken_unix_s,
            "power_on_hours": self.power_on_hours,
            "what": self.property_name,
            "before": self.before,
            "after": self.after,
        }


def default_path() -> Path:
    """Returns the default path of the database."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(base) / "headstack" / "inspections.sqlite"


def record(path: Path, inspections: list[Inspection]) -> int:
    """Appends snapshots with changes, all or none, and returns their number.

    A snapshot equal to its neighbour in time is skipped. Raises ``InputError`` if a snapshot has no serial number or no
    time, if the serial number is recorded for another device, or if the file is not a headstack database.
    """
    for inspection in inspections:
        if inspection.identity.serial and not names_a_device(inspection.identity.serial):
            raise InputError(
                f"{inspection.name}: the serial number {inspection.identity.serial!r} does not identify a "
                "device, which snapshots require; nothing is recorded"
            )
        if not inspection.identity.serial:
            raise InputError(f"{inspection.name}: no serial number, which snapshots require; nothing is recorded")
        if inspection.taken_unix_s is None or inspection.taken_unix_s >= 2**63:
            raise InputError(
                f"{inspection.name}: taken_unix_s: {inspection.taken_unix_s} is not the time of a snapshot"
            )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: {(error.strerror or str(error)).lower()}") from None
    with _opened(path, create=True) as database:
        return sum(_append(database, path, inspection) for inspection in inspections)


def snapshots(path: Path, serial: str) -> list[Inspection]:
    """Returns the snapshots of a device, oldest first. Raises ``InputError`` if there are none."""
    with _opened(path) as database:
        rows = database.execute(
            "SELECT taken_unix_s, inspection FROM snapshot WHERE serial = ? ORDER BY taken_unix_s, digest", (serial,)
        ).fetchall()
        serials = [row[0] for row in database.execute("SELECT DISTINCT serial FROM snapshot ORDER BY serial")]
    if not rows:
        raise InputError(f"{path}: no snapshot of {serial!r}; recorded: {', '.join(serials) or 'none'}")
    return [_restored(path, serial, taken, text) for taken, text in rows]


def devices(path: Path) -> list[list[Inspection]]:
    """Returns the snapshots of every device, by serial number."""
    with _opened(path) as database:
        serials = [row[0] for row in database.execute("SELECT DISTINCT serial FROM snapshot ORDER BY serial")]
    return [snapshots(path, serial) for serial in serials]


def changes(history: list[Inspection]) -> list[Change]:
    """Returns the changes from each snapshot to the next: identity, capabilities, attributes, health."""
    differences: list[Change] = []
    for before, after in pairwise(history):
        earlier, later = _facts(before), _facts(after)
        for property_name in dict.fromkeys([*earlier, *later]):
            if earlier.get(property_name) != later.get(property_name):
                shown = (earlier.get(property_name, "not read"), later.get(property_name, "not read"))
                differences.append(Change(after.taken_unix_s or 0, after.power_on_hours, property_name, *shown))
    return differences


def _facts(inspection: Inspection) -> dict[str, str]:
    """Returns all properties that may change, as text, without hours and temperatures."""
    identity = inspection.identity
    facts = {
        key: str(value)
        for key in ("model", "firmware", "capacity_bytes", "interface_max_gbps", "interface_now_gbps")
        if (value := getattr(identity, key)) is not None
    }
    facts |= {key: capability.state for key, capability in inspection.capabilities.items()}
    if inspection.passed is not None:
        facts["own health"] = "passed" if inspection.passed else "FAILED"
    for attribute in inspection.attributes:
        decoded = decode(attribute, identity)
        title = f"{attribute.id} {attribute.name}"
        if decoded.count is not None and attribute.id not in (9, 240):
            facts[f"{title} raw"] = decoded.text
        if attribute.value is not None and attribute.threshold:
            facts[f"{title} value"] = str(attribute.value)
        if attribute.when_failed:
            facts[f"{title} failed"] = attribute.when_failed
    for title, log in (("nvme", inspection.nvme), ("sas", inspection.sas)):
        if log is not None:
            facts |= {f"{title} {key}": json.dumps(value) for key, value in asdict(log).items() if value is not None}
    if inspection.self_tests:
        last = inspection.self_tests[0]
        facts["last self-test"] = f"{last.kind}: {last.status}"
    return facts


def _append(database: sqlite3.Connection, path: Path, inspection: Inspection) -> bool:
    _refuse_another(database, path, inspection)
    content = json.dumps(inspection.content(), sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(content.encode("utf-8", errors="surrogatepass")).hexdigest()
    serial, taken = inspection.identity.serial, inspection.taken_unix_s
    neighbours = [
        database.execute(
            f"SELECT digest FROM snapshot WHERE serial = ? AND taken_unix_s {side} ? "
            f"ORDER BY taken_unix_s {order} LIMIT 1",
            (serial, taken),
        ).fetchone()
        for side, order in (("<=", "DESC"), (">=", "ASC"))
    ]
    if (digest,) in neighbours:
        return False
    text = json.dumps(inspection.to_dict(), ensure_ascii=True)
    changed = database.execute(
        "INSERT OR IGNORE INTO snapshot VALUES (?, ?, ?, ?, ?)",
        (serial, taken, digest, inspection.identity.model, text),
    )
    return changed.rowcount > 0


def _refuse_another(database: sqlite3.Connection, path: Path, inspection: Inspection) -> None:
    """Raises ``InputError`` if another device is recorded under this serial number."""
    serial = inspection.identity.serial or ""
    last = database.execute(
        "SELECT taken_unix_s, inspection FROM snapshot WHERE serial = ? ORDER BY taken_unix_s DESC LIMIT 1", (serial,)
    ).fetchone()
    if last is not None and contradicts(recorded := _restored(path, serial, *last), inspection):
        identity = recorded.identity
        raise InputError(
            f"{inspection.name}: {path} has another device under the serial number {serial}: "
            f"{identity.model or 'no model'}, WWN {identity.wwn or 'not read'}, {identity.protocol or 'no protocol'}; "
            "nothing is recorded"
        )


def _restored(path: Path, serial: str, taken: int, text: str) -> Inspection:
    return stored.read_one(Fields.parse(f"{path}: snapshot of {serial} at {taken}", text))


@contextmanager
def _opened(path: Path, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Opens the database in one transaction, and creates the table in a new database. Raises ``InputError`` if the file
    is not a headstack database."""
    if not create and not path.is_file():
        raise InputError(f"{path}: no such database; create one with headstack inspect TARGET --record")
    try:
        with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE" if create else "BEGIN")
            _check(path, database, create)
            yield database
            database.execute("COMMIT")
    except sqlite3.Error as error:
        raise InputError(f"{path}: not a readable database of inspections: {error}") from None


def _check(path: Path, database: sqlite3.Connection, create: bool) -> None:
    """Raises ``InputError`` if the database belongs to another program or has another version."""
    application: Any = database.execute("PRAGMA application_id").fetchone()[0]
    version: Any = database.execute("PRAGMA user_version").fetchone()[0]
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application == 0 and version == 0 and tables == 0 and create:
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {VERSION}")
        database.execute(TABLES)
    elif application != APPLICATION_ID:
        raise InputError(f"{path}: an SQLite database of another program; allowed: one created by inspect --record")
    elif version != VERSION:
        raise InputError(f"{path}: version {version} of the database; allowed: {VERSION}")
