"""Chunks: runs as bytes that name themselves, small enough that losing one costs little."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from headstack import _native
from headstack.catalogue.options import Spec

T = TypeVar("T")

CHUNK_S = 0.5
"""A chunk ends when its runs are estimated to take one core this long. Where it ends follows from the runs alone, so
that whoever asks for the same runs again finds those that are finished. How many are handed over at a time is
measured."""

RUNS_MAX = 256
"""Nor has it more runs than this whose whole results are kept: what is answered has to be held in memory."""

POINTS_MAX = 4096
"""Nor more points of a sweep, of each of which a row is kept."""

_PACKAGE = Path(__file__).parents[2]
_SPECIFYING = (
    "catalogue/array.py",
    "catalogue/drive.py",
    "catalogue/options.py",
    "catalogue/scenario.py",
    "catalogue/workload.py",
    "io/values.py",
    "simulation/chunks/parts.py",
    "simulation/chunks/work.py",
)
"""What turns the points of a sweep into specifications, and takes parts of traces, beside the compiled part."""


@cache
def engine(others: tuple[str, ...] = ()) -> str:
    """What computes: the version, and a hash of the compiled part, of what specifies runs for it, and of ``others``,
    files of the package that a result depends on besides.

    The hash tells one build from another, so that nothing is taken from the store that an older build has left.
    """
    digest = hashlib.sha256()
    for path in (Path(_native.__file__), *(_PACKAGE / name for name in (*_SPECIFYING, *others))):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{_native.version()}-{digest.hexdigest()[:16]}"


@dataclass(frozen=True)
class Chunk:
    """Some runs that follow each other, to be carried out together."""

    content: bytes
    """What is asked for, as canonical JSON: the same runs are the same bytes."""
    first: int
    """Place of its first run among all."""
    runs: int

    @cached_property
    def id(self) -> str:
        """Hash of the content."""
        return hashlib.sha256(self.content).hexdigest()[:32]

    @classmethod
    def of(cls, asked: dict[str, Any], first: int) -> Chunk:
        """A chunk of ``runs``, of the ``points`` of a sweep or of ``parts`` of a trace, whichever ``asked`` has."""
        content = json.dumps({"engine": engine()} | asked, sort_keys=True, separators=(",", ":")).encode()
        return cls(content, first, len(asked[_items(asked)]))

    @cached_property
    def asked(self) -> dict[str, Any]:
        """What is asked for."""
        asked: dict[str, Any] = json.loads(self.content)
        return asked

    @property
    def is_part(self) -> bool:
        """Whether its answer is a part of an analysis, not a table."""
        return _items(self.asked) == "parts"

    def halves(self) -> list[Chunk]:
        """Two chunks of half the runs each."""
        asked = self.asked
        items = asked[_items(asked)]
        middle = len(items) // 2
        parts = ((0, items[:middle]), (middle, items[middle:]))
        return [Chunk.of(asked | {_items(asked): part}, self.first + start) for start, part in parts]

    def describe(self) -> str:
        """Its first run in words: the system and what tells the run from others."""
        asked = self.asked
        if "parts" in asked:
            return f"part {self.first + 1} of {asked['name']}"
        if "runs" in asked:
            name, labels = asked["runs"][0]["system_name"], asked["runs"][0]["labels"]
        else:
            name, labels = asked["system"]["name"], zip(asked["fields"], asked["points"][0], strict=True)
        return ", ".join([f"run {self.first + 1} ({name}", *(f"{field} {value}" for field, value in labels)]) + ")"


def _items(asked: dict[str, Any]) -> str:
    return next(items for items in ("runs", "points", "parts") if items in asked)


def chunks_of_runs(specs: Iterable[Spec]) -> Iterator[Chunk]:
    """The runs of specifications, whose whole results are kept."""
    first = 0
    for runs in cut(specs, cost_s, RUNS_MAX):
        yield Chunk.of({"runs": runs, "whole": True}, first)
        first += len(runs)


def cut(items: Iterable[T], cost: Callable[[T], float], most: int) -> Iterator[list[T]]:
    """The items in portions, each of ``CHUNK_S`` by their estimated costs in seconds, and of at most so many."""
    portion: list[T] = []
    sum_s = 0.0
    for item in items:
        portion.append(item)
        sum_s += cost(item)
        if sum_s >= CHUNK_S or len(portion) == most:
            yield portion
            portion, sum_s = [], 0.0
    if portion:
        yield portion


_START_S = 2e-4
_REQUEST_S = {"drive": 4e-7, "array": 3e-6}
"""What a run and each of its requests take, roughly: docs/performance.md."""

_REQUESTS_PER_S = 300
"""Of each device, where a run is of so much time."""

_REQUESTS_UNSTATED = 100_000
"""Where a run goes on until something is known."""


def cost_s(spec: Spec) -> float:
    """A rough estimate of the time that a run takes one core."""
    kind = "array" if "array" in spec["system"] else "drive"
    members = len(spec["system"]["array"]["members"]) if kind == "array" else 1
    demand = spec["scenario"] if "scenario" in spec else spec["workload"]
    requests = int(spec.get("preload", 0))
    for length in (demand.get("warm_up"), demand.get("run_length")):
        if not isinstance(length, dict):
            continue
        if "requests" in length:
            requests += length["requests"]
        elif "time" in length:
            requests += int(_native.parse_duration_ns(length["time"]) / 1e9 * _REQUESTS_PER_S * members)
        else:
            requests += _REQUESTS_UNSTATED
    return _START_S + requests * _REQUEST_S[kind]
