"""``Chunk``: runs as bytes whose hash is their id, small enough that losing one costs little."""

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
"""A chunk ends when its runs are estimated to take one core this long, in seconds. Its end depends only on the runs, so
that repeating the same runs finds the finished ones. The number of chunks submitted at a time is measured."""

RUNS_MAX = 256
"""Maximum number of runs per chunk if complete results are kept, since the answer must fit into memory."""

POINTS_MAX = 4096
"""Maximum number of points of a sweep per chunk, each of which adds a row."""

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
"""Files, in addition to the compiled part, that turn points of a sweep into specifications and split traces into
parts."""


@cache
def engine(others: tuple[str, ...] = ()) -> str:
    """Returns the identity of the computing code: the version and a hash of the compiled part, of the files that
    specify its runs, and of ``others``, further files of the package that a result depends on.

    The hash distinguishes builds, so that answers of an older build in the store are not used.
    """
    digest = hashlib.sha256()
    for path in (Path(_native.__file__), *(_PACKAGE / name for name in (*_SPECIFYING, *others))):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{_native.version()}-{digest.hexdigest()[:16]}"


@dataclass(frozen=True)
class Chunk:
    """Consecutive runs that are computed together."""

    content: bytes
    """The request as canonical JSON: equal runs have equal bytes."""
    first: int
    """Index of its first run among all runs."""
    runs: int

    @cached_property
    def id(self) -> str:
        """The hash of the content."""
        return hashlib.sha256(self.content).hexdigest()[:32]

    @classmethod
    def of(cls, request: dict[str, Any], first: int) -> Chunk:
        """Creates a chunk from a request with ``runs``, the ``points`` of a sweep or the ``parts`` of a trace."""
        content = json.dumps({"engine": engine()} | request, sort_keys=True, separators=(",", ":")).encode()
        return cls(content, first, len(request[_items(request)]))

    @cached_property
    def request(self) -> dict[str, Any]:
        """The parsed content."""
        request: dict[str, Any] = json.loads(self.content)
        return request

    @property
    def is_part(self) -> bool:
        """Whether its answer is a part of an analysis, not a table."""
        return _items(self.request) == "parts"

    def halves(self) -> list[Chunk]:
        """Splits the chunk into two of half the runs each."""
        request = self.request
        items = request[_items(request)]
        middle = len(items) // 2
        parts = ((0, items[:middle]), (middle, items[middle:]))
        return [Chunk.of(request | {_items(request): part}, self.first + start) for start, part in parts]

    def describe(self) -> str:
        """Describes its first run: the system, and what distinguishes the run from others."""
        request = self.request
        if "parts" in request:
            return f"part {self.first + 1} of {request['name']}"
        if "runs" in request:
            name, labels = request["runs"][0]["system_name"], request["runs"][0]["labels"]
        else:
            name, labels = request["system"]["name"], zip(request["fields"], request["points"][0], strict=True)
        return ", ".join([f"run {self.first + 1} ({name}", *(f"{field} {value}" for field, value in labels)]) + ")"


def _items(request: dict[str, Any]) -> str:
    return next(items for items in ("runs", "points", "parts") if items in request)


def chunks_of_runs(specs: Iterable[Spec]) -> Iterator[Chunk]:
    """Yields chunks of runs whose complete results are kept."""
    first = 0
    for runs in cut(specs, cost_s, RUNS_MAX):
        yield Chunk.of({"runs": runs, "whole": True}, first)
        first += len(runs)


def cut(items: Iterable[T], cost: Callable[[T], float], most: int) -> Iterator[list[T]]:
    """Splits the items into portions that take ``CHUNK_S`` by their estimated costs in seconds and have at most
    ``most`` items.
    """
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
"""Approximate time per request of a run, in seconds: docs/performance.md."""

_REQUESTS_PER_S = 300
"""Assumed requests per second and device for a run of a fixed duration."""

_REQUESTS_UNSTATED = 100_000
"""Assumed requests for a run that continues until a confidence is reached."""


def cost_s(spec: Spec) -> float:
    """Estimates the time that a run takes one core, in seconds."""
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
