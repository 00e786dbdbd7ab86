"""Many runs, cut into chunks that are run here or on a cluster, stored when finished, and never repeated.

A chunk is bytes: the build of headstack and the fully specified runs as canonical JSON. Its hash is its id; its answer
is a table stored under that id. Repeating the same runs uses the stored answers and computes the rest, so that
interrupted work resumes. Neither the boundaries of chunks nor the executor changes a byte of the result.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from headstack import _native
from headstack._native import InputError, RunError
from headstack.catalogue.options import Spec
from headstack.results.results import Results
from headstack.simulation.chunks.chunk import Chunk, chunks_of_runs
from headstack.simulation.chunks.executors import answers
from headstack.simulation.chunks.pools import opened
from headstack.simulation.chunks.store import Store
from headstack.simulation.chunks.work import database
from headstack.simulation.runs import Progress


def finish(
    chunks: Iterable[Chunk],
    runs: int,
    *,
    store: str | os.PathLike[str] | None = None,
    executor: str = "local",
    progress: Progress | None = None,
) -> list[Path]:
    """Computes the chunks, ``runs`` runs in total, that are not stored yet; returns the files of all answers in order.

    Chunks are generated as needed, and memory does not grow with their number. ``progress`` is called with the share
    done. Finished chunks stay in the store when the rest is interrupted or fails. Raises ``InputError`` for an invalid
    store or executor, and ``RunError`` if workers die of a run.
    """
    answer_store = Store(store)
    paths: dict[int, Path] = {}
    done = 0

    def missing() -> Iterator[Chunk]:
        nonlocal done
        for chunk in chunks:
            path = answer_store.find(chunk)
            if path is None:
                yield chunk
            else:
                paths[chunk.first] = path
                done += chunk.runs

    def on_progress(under_way: float) -> None:
        if progress is not None:
            progress((done + under_way) / max(runs, 1))

    # Closed before the pool, which would otherwise wait for tasks in progress.
    with opened(executor) as pool, closing(answers(pool, missing(), on_progress)) as answered:
        for chunk, answer in answered:
            paths[chunk.first] = answer_store.keep(chunk, answer)
            done += chunk.runs
    if done < runs:
        # These chunks were suspected when their workers died, but none of their runs was the cause.
        raise RunError(f"workers died over {runs - done} runs; finished chunks are kept; repeat the command to resume")
    return [paths[first] for first in sorted(paths)]


def run_chunks(
    specs: Sequence[Spec],
    *,
    swept: Sequence[str] = (),
    store: str | os.PathLike[str] | None = None,
    executor: str = "local",
    progress: Progress | None = None,
) -> Results:
    """Computes the runs specified by ``runs.specify`` as ``finish`` does; returns their results in order.

    ``swept`` names the options that distinguish curves (``runs.swept``). Raises ``InputError`` with the name of an
    impossible run, and ``RunError`` with the name of a run that failed or did not pass its own check.
    """
    paths = finish(chunks_of_runs(specs), len(specs), store=store, executor=executor, progress=progress)
    requests: list[str] = []
    whole: list[str] = []
    for path in paths:
        for row in rows(path, ("impossible", "failed", "asked", "whole")):
            impossible, failed = row[:2]
            for reason, error in ((impossible, InputError), (failed, RunError)):
                if reason is not None:
                    name = ", ".join([str(specs[len(requests)]["system_name"]), *_labels(specs[len(requests)])])
                    raise error(f"run {len(requests) + 1} ({name}): {reason}")
            requests.append(row[2])
            whole.append(row[3])
    return Results(_native.results_of_kept(requests, whole), swept)


def _labels(spec: Spec) -> list[str]:
    return [f"{name} {value}" for name, value in spec["labels"]]


def rows(path: Path | Sequence[Path], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Returns some columns of a chunk's table, or of several tables concatenated."""
    paths = [path] if isinstance(path, Path) else path
    if not paths:
        return []
    with database() as connection:
        return connection.read_parquet([str(table) for table in paths]).select(*columns).fetchall()
