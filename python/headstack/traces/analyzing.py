"""Analysis of a stored trace in parts, locally or on a cluster, with the report of a single pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

from headstack import _native
from headstack.simulation.chunks.chunk import Chunk
from headstack.simulation.chunks.chunked import finish
from headstack.simulation.chunks.parts import identity
from headstack.traces.trace_types import Analyzed, Source

PART_REQUESTS = 1 << 21
"""Minimum number of requests per part, which ends with a row group. The analysis of a part takes a second or two, and
its result some megabytes. """


def analyze_in_parts(
    source: Source,
    options: Mapping[str, object],
    name: str,
    *,
    store: str | os.PathLike[str] | None,
    executor: str,
    progress: Callable[[int], object] | None,
) -> Analyzed:
    """Computes the parts of ``source`` that are not stored yet, and merges all parts into metadata and report.

    ``progress`` is called with the number of requests. The parts depend only on the files, so the result does
    not depend on the executor or the number of workers.
    """
    # Workers get absolute paths, because they may have another working directory.
    located: Source = {**source, "paths": [os.path.abspath(path) for path in source["paths"]]}
    planned = _native.trace_parts(located, PART_REQUESTS)
    request = {"name": name, "trace": located, "files": identity(located["paths"]), "options": options}
    parts = planned["parts"]
    chunks = (Chunk.of(request | {"parts": [part]}, first) for first, part in enumerate(parts))

    def report(share: float) -> None:
        if progress is not None:
            progress(round(share * planned["requests"]))

    paths = finish(chunks, len(parts), store=store, executor=executor, progress=report)
    return cast(Analyzed, _native.trace_merge_parts(source, options, reading(iter(paths))))


def reading(paths: Iterator[Path]) -> Callable[[], bytes | None]:
    """Returns a function that reads one file after the other, and returns ``None`` at the end."""

    def read() -> bytes | None:
        path = next(paths, None)
        return None if path is None else path.read_bytes()

    return read
