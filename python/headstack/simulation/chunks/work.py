"""The work of a worker, local or remote: bytes in, bytes out."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from headstack import _native
from headstack._native import RunError
from headstack.simulation.chunks.chunk import engine
from headstack.simulation.chunks.parts import answer_of

if TYPE_CHECKING:
    import duckdb


def answer(contents: Sequence[bytes], progress: Callable[[float], object] | None = None) -> tuple[list[bytes], float]:
    """Computes chunks of one kind on all cores; returns the table or part of each, and the seconds they took.

    An impossible or failed run is a row with the reason. ``progress`` is called with the share done. Raises
    ``RunError`` if the chunks are for another build of headstack.
    """
    started = time.monotonic()
    requests = [json.loads(content) for content in contents]
    for chunk in requests:
        if chunk["engine"] != engine():
            raise RunError(f"a chunk of headstack {chunk['engine']} cannot be run by headstack {engine()}")
    if "parts" in requests[0]:
        return [answer_of(chunk, progress) for chunk in requests], time.monotonic() - started
    outcomes = _native.run_chunks([content.decode() for content in contents], progress)
    first, answers = 0, []
    for chunk in requests:
        runs = len(chunk["points"] if "points" in chunk else chunk["runs"])
        answers.append(parquet(outcomes.table(first, runs)))
        first += runs
    return answers, time.monotonic() - started


@cache
def _database() -> duckdb.DuckDBPyConnection:
    import duckdb  # start-up time

    # One thread keeps the order of rows.
    return duckdb.connect(config={"threads": 1})


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yields a connection to one in-memory database per process, which is slow to open: many chunks are small.

    Raises ``KeyboardInterrupt`` for a signal during a query, which DuckDB would turn into an error of its own.
    """
    with _database().cursor() as connection:
        try:
            yield connection
        except RuntimeError as error:
            if str(error) == "Query interrupted":
                raise KeyboardInterrupt from error
            raise


def parquet(table: _native.Table) -> bytes:
    """Returns a table as the bytes of a Parquet file."""
    with tempfile.TemporaryDirectory() as folder, database() as connection:
        path = Path(folder, "table.parquet")
        connection.register("answer", table)
        connection.table("answer").write_parquet(str(path), compression="zstd")
        return path.read_bytes()
