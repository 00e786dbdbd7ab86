"""Many runs, cut into chunks that are carried out here or on a cluster, kept when finished, and never done twice.

A chunk is bytes: the build of headstack and the runs, fully specified, as canonical JSON. Its name is their hash, its
answer a table, stored under that name. Whoever asks for the same runs again gets what is stored and computes the rest,
so that work that was interrupted goes on where it was. Neither where chunks end nor who carries them out changes a byte
of what comes of it.
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
    """Carries out chunks of ``runs`` runs together, but for those that are stored; their files, in order.

    The chunks are asked for as they are needed, and memory does not grow with their number. ``progress`` is called with
    the share done. What is finished stays in the store, whatever ends the rest: Ctrl-C, or a failure. Raises
    ``InputError`` for a store or an executor that cannot be, ``RunError`` when workers die of a run.
    """
    kept = Store(store)
    paths: dict[int, Path] = {}
    done = 0

    def missing() -> Iterator[Chunk]:
        nonlocal done
        for chunk in chunks:
            path = kept.find(chunk)
            if path is None:
                yield chunk
            else:
                paths[chunk.first] = path
                done += chunk.runs

    def tell(under_way: float) -> None:
        if progress is not None:
            progress((done + under_way) / max(runs, 1))

    # Closed before the pool is, which would wait for what is under way.
    with opened(executor) as pool, closing(answers(pool, missing(), tell)) as answered:
        for chunk, answer in answered:
            paths[chunk.first] = kept.keep(chunk, answer)
            done += chunk.runs
    if done < runs:
        # Chunks that were taken for the death of their workers, and of whose runs none was it.
        raise RunError(f"workers died over {runs - done} runs; finished chunks are kept, the same command goes on")
    return [paths[first] for first in sorted(paths)]


def run_chunks(
    specs: Sequence[Spec],
    *,
    swept: Sequence[str] = (),
    store: str | os.PathLike[str] | None = None,
    executor: str = "local",
    progress: Progress | None = None,
) -> Results:
    """Carries out the runs that ``runs.specify`` has specified, as ``finish`` does; their results, in order.

    ``swept`` names the options that tell curves apart (``runs.swept``). Raises ``InputError`` naming a run that is
    impossible, ``RunError`` naming one that failed, or failed its own check.
    """
    paths = finish(chunks_of_runs(specs), len(specs), store=store, executor=executor, progress=progress)
    asked: list[str] = []
    whole: list[str] = []
    for path in paths:
        for row in rows(path, ("impossible", "failed", "asked", "whole")):
            impossible, failed = row[:2]
            for reason, error in ((impossible, InputError), (failed, RunError)):
                if reason is not None:
                    name = ", ".join([str(specs[len(asked)]["system_name"]), *_labels(specs[len(asked)])])
                    raise error(f"run {len(asked) + 1} ({name}): {reason}")
            asked.append(row[2])
            whole.append(row[3])
    return Results(_native.results_of_kept(asked, whole), swept)


def _labels(spec: Spec) -> list[str]:
    return [f"{name} {value}" for name, value in spec["labels"]]


def rows(path: Path | Sequence[Path], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Some columns of a chunk's table, or of the tables of several, one after the other."""
    paths = [path] if isinstance(path, Path) else path
    if not paths:
        return []
    with database() as connection:
        return connection.read_parquet([str(one) for one in paths]).select(*columns).fetchall()
