"""Streaming readers of monitoring files."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import IO, Any, cast

from headstack._native import InputError
from headstack.diagnosis.judging.sources.times import Times
from headstack.diagnosis.judging.suspects.stacked import Stack
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.io.encodings import encoding_of

HEAD_BYTES = 1 << 16
"""Number of bytes from which a file's kind is recognised."""
PIECE = 1 << 20
LARGEST = 1 << 26
"""Maximum number of characters of one JSON element; one with 36 disks has some ten thousand."""
COMPRESSED: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}


@dataclass(frozen=True, slots=True)
class Row:
    """The activity of a disk in an interval."""

    host: str
    disk: str
    start_s: float
    """Seconds since 1970."""
    length_s: float
    figures: Mapping[str, float | None]
    """Values by the columns of observations, as far as the source has them."""
    model: str | None = None

    def cells(self) -> dict[str, str | float | None]:
        """Returns all values by the columns of observations."""
        named = {"host": self.host, "disk": self.disk, "model": self.model}
        return {**named, "start_s": self.start_s, "length_s": self.length_s, **self.figures}


@dataclass
class How:
    """Information on files that they do not contain themselves, and remarks collected while reading."""

    zone: tzinfo | None = None
    """The zone of local times."""
    every_s: float | None = None
    """Time between blocks without times."""
    host: str | None = None
    """The host of the disks."""
    readings: dict[str, list[Any]] = field(default_factory=dict)
    """The last reading of each disk's counters, host and disk joined by a tab: time and counts. They are kept between
    runs, so that the time between is an interval, too."""
    remarks: Counter[str] = field(default_factory=Counter)
    """Remarks on the data, with the number of times each applies."""
    statements: list[Statement] = field(default_factory=list)
    """Facts of the inputs beside rates and latencies of disks."""
    stack: Stack = field(default_factory=Stack)
    """Devices built from others, compared with the disks below."""

    def caveats(self) -> list[str]:
        """Returns the remarks as sentences."""
        return [remark if count == 1 else f"{remark} ({count} times)" for remark, count in sorted(self.remarks.items())]


@dataclass(frozen=True)
class Block:
    """The lines written at one time."""

    time_s: float | None
    lines: list[str]


def opened(path: Path) -> IO[str]:
    """Opens a text, compressed or not."""
    with open(path, "rb") as raw:
        begin = raw.read(6)
    opener: Callable[..., Any] = next((of for magic, of in COMPRESSED.items() if begin.startswith(magic)), open)
    with opener(path, "rb") as plain:
        encoding = encoding_of(plain.read(4))
    return cast("IO[str]", opener(path, "rt", encoding=encoding, errors="replace"))


def head(path: Path) -> str:
    """Returns the beginning of a file; for a binary file, its first bytes."""
    with open(path, "rb") as raw:
        if raw.read(4) == b"PAR1":
            return "PAR1"
    try:
        with opened(path) as stream:
            return stream.read(HEAD_BYTES)
    except (EOFError, OSError, lzma.LZMAError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def stem(path: Path) -> str:
    """Returns a file's name without suffixes, the default name of its host."""
    return path.name.split(".")[0] or path.name


def blocks(paths: list[Path], how: How) -> Iterator[Block]:
    """Yields the data of consecutive times: below lines with a time, or in files with a time in their name."""
    times = Times(how.zone)
    if len(paths) > 1:
        named = [(times.of_name(path), path) for path in paths]
        if all(time_s is not None for time_s, _ in named):
            named.sort(key=lambda timed: timed[0] or 0.0)
        for time_s, path in named:
            with opened(path) as stream:
                yield from _timed(stream, times, time_s)
    else:
        with opened(paths[0]) as stream:
            yield from _timed(stream, times, None)
    times.note_zone(how.remarks)


def _timed(stream: IO[str], times: Times, time_s: float | None) -> Iterator[Block]:
    lines: list[str] = []
    for line in stream:
        # Data lines are long or contain characters that no time contains; only others are parsed.
        found_s = times.of_line(line) if len(line) < 80 and "\t" not in line and "{" not in line else None
        if found_s is None:
            lines.append(line)
            continue
        if any(map(str.strip, lines)):
            yield Block(time_s, lines)
        time_s, lines = found_s, []
    if any(map(str.strip, lines)):
        yield Block(time_s, lines)


class Clock:
    """The times of readings of counters, which they need, or the given interval."""

    def __init__(self, path: Path, how: How) -> None:
        self.path, self.how = path, how
        self.now_s: float | None = None
        self._next_s = 0.0

    def moment(self, time_s: float | None) -> float:
        """Returns the time of a reading. Raises ``InputError`` if neither the file nor the user states it."""
        if time_s is None:
            if self.how.every_s is None:
                raise InputError(
                    f"{self.path}: no times; state the interval with --every TIME, or write a line with the time "
                    "before each reading, such as date +%s"
                )
            self.how.remarks["no times: they are counted from the date in the file, or from 1970"] = 1
            time_s = self._next_s = self._next_s + self.how.every_s
        return time_s


def elements(path: Path, how: How) -> Iterator[tuple[str, Any]]:
    """Yields the elements of the lists ``statistics`` of a JSON file, each with the text before its list."""
    decoder = json.JSONDecoder()
    with opened(path) as stream:
        text, before, is_inside, at_end = "", "", False, False
        while True:
            if not is_inside:
                key = text.find('"statistics"')
                begin = text.find("[", key) if key >= 0 else -1
                if begin >= 0:
                    before, text, is_inside = text[:begin], text[begin + 1 :], True
                    continue
            else:
                text = text.lstrip(" \t\r\n,")
                if text.startswith("]"):
                    text, is_inside = text[1:], False
                    continue
                try:
                    element, end = decoder.raw_decode(text)
                except json.JSONDecodeError as error:
                    if at_end and text:
                        # iostat completes its JSON when it ends itself, not when it is killed.
                        how.remarks["the file ends in the middle of a block, which is dropped"] += 1
                        return
                    if len(text) > LARGEST:
                        raise InputError(f"{path}: not valid JSON: {error.msg}") from None
                else:
                    text = text[end:]
                    yield before, element
                    continue
            if at_end:
                return
            # Doubling avoids parsing a long element many times.
            piece = stream.read(max(PIECE, len(text)))
            at_end, text = not piece, text + piece
