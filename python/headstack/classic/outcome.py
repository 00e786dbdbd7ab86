"""What the classic tests have in common: the requests they make, and what they hand back."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar

from headstack import _native, tables
from headstack._native import Field, InputError
from headstack.measurement import Access, Opened
from headstack.results import Results
from headstack.stored import Stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from headstack.report.figures import Figure, Report

Workloads = dict[str, Any]
STORED = Stored("test")
NOTHING_ALLOWED = Access()
"""Reading, past the page cache."""


def requests(
    name: str,
    size_bytes: int,
    *,
    read_percent: float = 100,
    random_percent: float = 0,
    depth: int = 1,
    think_ns: int = 0,
    flush_every: int = 0,
    warm_up: int = 0,
    count: int | None = None,
) -> Workloads:
    """The description of a closed loop of requests of one size; ``count`` of them unless limits say otherwise."""
    line = {"size": f"{size_bytes}B", "read_percent": read_percent, "random_percent": random_percent}
    think = {"fixed": f"{think_ns}ns"} if think_ns else "none"
    form = {
        "name": name,
        "lines": [line],
        "flush_every": flush_every,
        "arrivals": {"closed": {"outstanding": depth, "think": think}},
        "warm_up": {"requests": warm_up},
        "run_length": {"requests": depth if count is None else count},
    }
    described: Workloads = json.loads(_native.complete_workload(json.dumps(form)))
    return described


def part_of(opened: Opened, text: str | None, target: int = 0) -> tuple[int, int]:
    """First byte and length in bytes of a range of an open target; all of its whole blocks where no range is given."""
    described = opened.described[target]
    capacity_bytes, block_bytes = described["capacity_bytes"], max(512, described["block_bytes"])
    if text is not None:
        return _native.parse_range(text, capacity_bytes, block_bytes)
    return 0, capacity_bytes // block_bytes * block_bytes


def whole_blocks(opened: Opened, size_bytes: int, target: int = 0) -> int:
    """A size in whole blocks of a target, rounded up: past the page cache nothing else can be transferred."""
    block_bytes = max(512, int(opened.described[target]["block_bytes"]))
    return -(-size_bytes // block_bytes) * block_bytes


@contextmanager
def own_file(path: str, access: Access, size: str) -> Iterator[tuple[str, Access]]:
    """The target and what is allowed; of a folder a file of that size in it, which is removed in the end."""
    if not os.path.isdir(path):
        yield path, access
        return
    file = os.path.join(path, f".headstack-{os.getpid()}.tmp")
    try:
        yield file, replace(access, create=access.create or size)
    finally:
        if os.path.exists(file):
            os.unlink(file)


def joined(parts: Iterable[Results]) -> Results:
    """Results of several measurements, in their order."""
    return reduce(Results.and_others, parts)


def at_least(name: str, value: int, least: int) -> int:
    """A number that is not below the least allowed."""
    if value < least:
        raise InputError(f"{name}: {value} is not allowed; {least} or more is")
    return value


@dataclass(frozen=True)
class Outcome(ABC):
    """What a test came to: its figures, and the results of the runs that they are made of."""

    FIELDS: ClassVar[tuple[Field, ...]]
    """The columns of the table of the figures."""

    results: Results
    ended_early: str | None
    """Why it ended before its time, in a measurement or between two."""

    @property
    @abstractmethod
    def test(self) -> str:
        """The name of the test."""

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """What the test is about, with units in the names."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The figures as a table."""

    @abstractmethod
    def answer(self) -> str:
        """What came out, in a sentence with its figures."""

    @abstractmethod
    def plot(self, path: str | os.PathLike[str] | None = None) -> Picture:
        """The picture, written to ``path`` where one is given. Needs the extra ``headstack[plot]``."""

    def main_figures(self) -> list[Figure]:
        """Figures of a report that are this test's own, beside its table and its runs."""
        return []

    def report(self) -> Report:
        """The figures of the test and its runs as a report, which notebooks show."""
        from headstack.report.tests_report import report_of

        return report_of(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes ``report`` as one HTML file. Needs the page, which a build of the package holds."""
        from headstack.report.html import write_html

        write_html(self.report(), path)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """An object: ``test``, ``version``, ``ended_early``, the figures of the test, ``runs`` (whole results)."""
        runs = json.loads(self.results.to_json())
        head = STORED.head | {"test": self.test, "version": _native.version(), "ended_early": self.ended_early}
        return tables.written(json.dumps(head | self.figures() | {"runs": runs}, indent=1) + "\n", path)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """The table of the figures as CSV."""
        return tables.to_csv([field.name for field in self.FIELDS], self.rows(), path)
