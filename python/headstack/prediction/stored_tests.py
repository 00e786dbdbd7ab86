"""``StoredTests``: finished parts of characterizations, so that an interrupted command resumes.

Each build of headstack has a folder with a file for each complete characterization, and a folder of tests for each
incomplete one. Those of other builds may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from headstack.catalogue.options import Spec
from headstack.io.atomic_files import cache_folder, write_text
from headstack.io.json_text import key_of
from headstack.prediction.grid import Bench, Progress, RunSummary, StoppedError
from headstack.simulation.chunks.chunk import engine

log = logging.getLogger("headstack")

BATCH = 96
"""Number of tests of a simulated system per batch: progress is reported between batches."""
EVERY_S = 1.0
"""Interval in seconds at which tests are written, as well as at the end; this much is lost if a process is killed."""

_MAKING = tuple(
    f"prediction/{name}.py"
    for name in (
        "calibration",
        "characterization",
        "composition",
        "environment",
        "grid",
        "loops",
        "model",
        "percentiles",
        "responses",
    )
)
"""Files that determine a characterization, in addition to the runs."""


def folder_of(store: str | os.PathLike[str] | None) -> Path:
    """Returns the folder for characterizations of this build: in a store, or the user's cache."""
    return (cache_folder() if store is None else Path(store)) / "characterizations" / engine(_MAKING)


class StoredTests:
    """The finished tests of one characterization, in files that are written atomically.

    Several processes may make the same characterization at a time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, RunSummary] = {}
        self._new: dict[str, RunSummary] = {}
        self._written_s = time.monotonic()
        # Temporary files of a killed process begin with a dot.
        for path in sorted(folder.glob("[0-9a-f]*.json")):
            try:
                self._found |= {key: RunSummary(*values) for key, values in json.loads(path.read_bytes()).items()}
            except (ValueError, TypeError, AttributeError):
                log.warning("%s is damaged; its tests run again", path)
                path.unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self._found)

    def finished(self, specs: Sequence[Spec]) -> list[RunSummary]:
        """Returns the results of tests up to the first that is not finished."""
        stored = (self._found.get(_key(spec)) for spec in specs)
        return [ran for ran in takewhile(bool, stored) if ran]

    def missing(self, specs: Sequence[Spec]) -> list[Spec]:
        """Returns the unfinished tests."""
        return [spec for spec in specs if _key(spec) not in self._found]

    def add(self, specs: Sequence[Spec], results: Sequence[RunSummary]) -> None:
        """Adds the results of tests; ``results`` may cover only the first ones."""
        new = {_key(spec): ran for spec, ran in zip(specs, results, strict=False)}
        self._found |= new
        self._new |= new
        if time.monotonic() - self._written_s >= EVERY_S:
            self.write()

    def write(self) -> None:
        """Writes new results."""
        self._written_s = time.monotonic()
        if not self._new:
            return
        text = json.dumps(self._new, separators=(",", ":"))
        self._folder.mkdir(parents=True, exist_ok=True)
        write_text(self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json", text)
        self._new = {}

    def remove(self) -> None:
        """Removes the tests after their characterization is complete."""
        self._new = {}
        for path in self._folder.glob("*.json"):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()


@contextmanager
def open_stored_tests(folder: Path) -> Iterator[StoredTests]:
    """Yields the tests of a characterization in progress, and writes them however it ends."""
    tests = StoredTests(folder)
    try:
        yield tests
    finally:
        tests.write()


def skip_finished(bench: Bench, tests: StoredTests, at_once: int | None = None) -> Bench:
    """Returns a bench that skips finished tests, and runs others in batches of this number, or of ``BATCH``."""
    at_once = at_once or BATCH

    def run(specs: Sequence[Spec], progress: Progress | None) -> list[RunSummary]:
        missing = tests.missing(specs)
        for first in range(0, len(missing), at_once):
            some = missing[first : first + at_once]
            try:
                tests.add(some, bench.run(some, None))
            except StoppedError as stopped:
                tests.add(some, stopped.results)
                stopped.results = tests.finished(specs)
                raise
            if progress is not None:
                progress(1 - max(0, len(missing) - first - at_once) / len(specs))
        return tests.finished(specs)

    return replace(bench, run=run)


def _key(spec: Spec) -> str:
    """Returns a key that identifies a test within a characterization."""
    key = key_of([spec["workload"], spec["span"], spec["seed"]])
    return hashlib.sha256(key.encode()).hexdigest()[:32]
