"""Programs without a store: a file that is replaced, a log that is appended to, pages that are overwritten."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from stores.model import Rows, value, written
from stores.verdicts import BrokenError, Kind

Acknowledge = Callable[[int], None]


def packed(rows: Rows) -> bytes:
    """Encodes rows as a file."""
    return b"".join(struct.pack("<II", len(key), len(rows[key])) + key + rows[key] for key in sorted(rows))


def unpacked(data: bytes) -> Rows:
    """Decodes the rows of such a file."""
    rows, place = {}, 0
    while place < len(data):
        if place + 8 > len(data):
            raise BrokenError(Kind.CORRUPT, f"{len(data) - place} bytes are over")
        key, length = struct.unpack_from("<II", data, place)
        end = place + 8 + key + length
        if key == 0 or end > len(data):
            raise BrokenError(Kind.CORRUPT, f"no row at byte {place}")
        rows[data[place + 8 : place + 8 + key]] = data[place + 8 + key : end]
        place = end
    return rows


def run_rename(folder: Path, settings: dict[str, bool], transactions: int, acknowledge: Acknowledge) -> None:
    """Replaces the whole file in each transaction."""
    directory = os.open(folder, os.O_RDONLY)
    rows: Rows = {}
    for number in range(1, transactions + 1):
        rows |= written(number)
        with open(folder / "file.new", "wb") as file:
            file.write(packed(rows))
            file.flush()
            if settings["fsync"]:
                os.fsync(file.fileno())
        os.rename(folder / "file.new", folder / "file")
        if settings["fsync_directory"]:
            os.fsync(directory)
        acknowledge(number)
    os.close(directory)


def read_rename(folder: Path, settings: dict[str, bool]) -> Rows:
    if not (folder / "file").exists():
        return {}
    data = (folder / "file").read_bytes()
    if not data:
        raise BrokenError(Kind.EMPTY, "no transaction leaves such a file")
    if not any(data):
        raise BrokenError(Kind.ZEROS, f"a file of {len(data)} bytes")
    return unpacked(data)


def run_log(folder: Path, settings: dict[str, bool], transactions: int, acknowledge: Acknowledge) -> None:
    """Appends a record in each transaction: its length, with or without a checksum, and its rows."""
    log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for number in range(1, transactions + 1):
        data = packed(written(number))
        head = struct.pack("<II", len(data), zlib.crc32(data) if settings["checksum"] else 0)
        os.write(log, head + data)
        if settings["sync"]:
            os.fdatasync(log)
        if number == 1 and settings["sync"]:
            # The directory entry must be durable as well.
            directory = os.open(folder, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)
        acknowledge(number)
    os.close(log)


def read_log(folder: Path, settings: dict[str, bool]) -> Rows:
    """Recovers like such programs: complete records up to the first incomplete one."""
    if not (folder / "log").exists():
        return {}
    data, rows, place = (folder / "log").read_bytes(), Rows(), 0
    while place + 8 <= len(data):
        length, checksum = struct.unpack_from("<II", data, place)
        record = data[place + 8 : place + 8 + length]
        if not settings["checksum"] and not length and any(data[place:]):
            raise BrokenError(Kind.ZEROS, f"no record at byte {place}, and something after it")
        if length == 0 or len(record) < length or (settings["checksum"] and zlib.crc32(record) != checksum):
            break
        if bytes(512) in record:
            raise BrokenError(Kind.ZEROS, f"a hole in the record at byte {place}, of {length} bytes")
        rows |= unpacked(record)
        place += 8 + length
    return rows


PAGE_BYTES = 16 << 10


def run_in_place(folder: Path, settings: dict[str, bool], transactions: int, acknowledge: Acknowledge) -> None:
    """Overwrites one page in each transaction: it is only intact if the device writes it atomically."""
    file = os.open(folder / "page", os.O_CREAT | os.O_RDWR)
    for number in range(transactions + 1):
        os.pwrite(file, page(number), 0)
        os.fsync(file)
        if number == 0:
            directory = os.open(folder, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)
        else:
            acknowledge(number)
    os.close(file)


@cache
def page(number: int) -> bytes:
    """Returns a page in which each sector states its transaction."""
    return b"".join(struct.pack("<Q", number) + value(number, sector, 504) for sector in range(PAGE_BYTES // 512))


def read_in_place(folder: Path, settings: dict[str, bool]) -> Rows:
    data = (folder / "page").read_bytes() if (folder / "page").exists() else b""
    if not data:
        return {}
    number = int.from_bytes(data[:8], "little")
    if data != page(number):
        raise BrokenError(Kind.TORN, f"a page that begins with transaction {number} and goes on with others")
    rows = Rows()
    for transaction in range(1, number + 1):
        rows |= written(transaction)
    return rows
