"""``Outcome``: requests and results that the classic tests share."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack._native import InputError, version
from headstack.io import tables
from headstack.io.stored import Stored
from headstack.io.tables import Tabular
from headstack.measurement.access import Access, is_null
from headstack.measurement.measurement import Opened, is_export
from headstack.report.figures import Figure, Report, Section, Table
from headstack.results.report import provenance, requests_of, runs_table
from headstack.results.results import Results
from headstack.results.words import words_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

STORED = Stored("test")
NOTHING_ALLOWED = Access()
"""Default access: read, without the page cache."""


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
) -> Mapping[str, Any]:
    """Returns the description of a closed loop of requests of one size; ``count`` of them unless limits are given."""
    line = {"size": f"{size_bytes}B", "read_percent": read_percent, "random_percent": random_percent}
    think = {"fixed": f"{think_ns}ns"} if think_ns else "none"
    form = {
        "name": name,
        "lines": [line],
        "flush_every": flush_every,
        "arrivals": {"closed": {"queue_depth": depth, "think": think}},
        "warm_up": {"requests": warm_up},
        "run_length": {"requests": depth if count is None else count},
    }
    described: Mapping[str, Any] = _native.complete_workload(form)
    return described


def part_of(opened: Opened, text: str | None, target: int = 0) -> tuple[int, int]:
    """Returns the first byte and the length in bytes of a range of an open target, by default all whole blocks."""
    described = opened.described[target]
    capacity_bytes, block_bytes = described["capacity_bytes"], max(512, described["block_bytes"])
    if text is not None:
        return _native.parse_range(text, capacity_bytes, block_bytes)
    return 0, capacity_bytes // block_bytes * block_bytes


def whole_blocks(opened: Opened, size_bytes: int, target: int = 0) -> int:
    """Rounds a size up to whole blocks of a target, which direct I/O requires."""
    block_bytes = max(512, int(opened.described[target]["block_bytes"]))
    return -(-size_bytes // block_bytes) * block_bytes


def reason_not_to_write(path: str, access: Access) -> str | None:
    """Returns the reason why tests that write are left out; ``None`` if they are permitted."""
    if is_null(path) or access.destroy or access.overwrite or (access.create is not None and not os.path.exists(path)):
        return None
    if is_export(path):
        return "writing an export needs --destroy with its address"
    if path.startswith("/dev/"):
        return "writing a device needs --destroy with its name"
    return "writing an existing file needs --overwrite"


@contextmanager
def own_file(path: str, access: Access, size: str) -> Iterator[tuple[str, Access]]:
    """Yields the target with its permissions. For a folder, yields a file of this size in the folder, and removes it
    afterwards."""
    if not os.path.isdir(path):
        yield path, access
        return
    file = os.path.join(path, f".headstack-{os.getpid()}.tmp")
    try:
        yield file, replace(access, create=access.create or size)
    finally:
        if os.path.exists(file):
            os.unlink(file)


def join_results(parts: Iterable[Results]) -> Results:
    """Concatenates the results of several measurements."""
    return reduce(Results.and_others, parts)


def at_least(name: str, value: int, least: int) -> int:
    """Checks that a number is not below its minimum."""
    if value < least:
        raise InputError(f"{value} is out of range; must be {least} or more", key=name)
    return value


@dataclass(frozen=True)
class Outcome(Tabular):
    """The result of a test: its figures, and the results of its runs."""

    results: Results
    ended_early: str | None
    """Reason why the test ended early, during a measurement or between two measurements."""

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Returns the figures of the test."""
        return self.rows()

    @property
    @abstractmethod
    def test(self) -> str:
        """The name of the test."""

    @abstractmethod
    def figures(self) -> Mapping[str, object]:
        """The figures of the test, with units in the names."""

    @abstractmethod
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Returns the figures as a table."""

    @abstractmethod
    def answer(self) -> str:
        """The answer of the test, in one sentence with its figures."""

    @abstractmethod
    def plot(self, path: str | os.PathLike[str] | None = None) -> Picture:
        """Plots the picture, and writes it if ``path`` is given. Needs the extra ``headstack[plot]``."""

    def main_figures(self) -> list[Figure]:
        """Returns figures specific to this test, in addition to its table and its runs."""
        return []

    def report(self) -> Report:
        """Returns the figures of the test and its runs as a report, which notebooks show."""
        return report_of(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes ``report`` as one HTML file. Needs the page, which every built package contains."""
        from headstack.report.html import write_html  # start-up time

        write_html(self.report(), path)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns an object: ``test``, ``version``, ``ended_early``, the figures of the test, ``runs`` (complete
        results).
        """
        runs = [self.results.whole(run) for run in range(len(self.results))]
        head = STORED.head | {"test": self.test, "version": _native.version(), "ended_early": self.ended_early}
        return tables.to_json({**head, **self.figures(), "runs": runs}, path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table of the runs as Parquet."""
        self.results.to_parquet(path)


def report_of(test: Outcome) -> Report:
    """Returns the result of a test as a report."""
    rows = test.rows()
    columns = [_words(name) for name in rows[0]] if rows else []
    table = Table("figures", "Figures", columns, [list(row.values()) for row in rows])
    own = test.main_figures()
    sections = [
        # The figure already lists these values.
        Section("Figures", "", own or [table]),
        Section("Runs", "", [runs_table(test.results)]),
    ]
    systems = dict.fromkeys(row["system"] for row in test.results)
    answers = [test.answer(), *([f"Ended early: {test.ended_early}."] if test.ended_early else [])]
    remarks = "\n\n".join(f"{note[:1].upper()}{note[1:]}." for note in test.results.notes)
    title = f"{test.test.capitalize()}: {', '.join(systems)}"
    queries = partial(requests_of, test.results)
    return Report(
        title,
        "",
        "\n\n".join(answers),
        sections,
        (),
        provenance(test.results),
        version(),
        remarks=remarks,
        inputs=queries,
    )


def _words(name: str) -> str:
    return " ".join(words_of(name)).rstrip()
