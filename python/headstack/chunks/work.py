"""What a worker does, here or elsewhere: bytes in, bytes out."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headstack import _native
from headstack._native import RunError
from headstack.chunks.chunk import engine
from headstack.chunks.points import specifications_of_points


def answer(contents: Sequence[bytes], progress: Callable[[float], object] | None = None) -> tuple[list[bytes], float]:
    """Carries out chunks of one kind on all cores: the table of each as Parquet, and the seconds it took.

    A run that is impossible or fails is a row that says so. ``progress`` is called with the share done. Raises
    ``RunError`` when the chunks are for another build of headstack.
    """
    started = time.monotonic()
    asked = [json.loads(content) for content in contents]
    for chunk in asked:
        if chunk["engine"] != engine():
            raise RunError(f"a chunk of headstack {chunk['engine']} cannot be carried out by headstack {engine()}")
    specs = [specifications(chunk) for chunk in asked]
    whole = any(chunk["whole"] for chunk in asked)
    outcomes = _native.run_each([spec for each in specs for spec in each], whole, progress)
    first, answers = 0, []
    for each in specs:
        answers.append(parquet(outcomes.table(first, len(each))))
        first += len(each)
    return answers, time.monotonic() - started


def specifications(chunk: dict[str, Any]) -> list[str]:
    """The runs of a chunk, each as JSON."""
    if "points" in chunk:
        return specifications_of_points(chunk)
    return [json.dumps(spec) for spec in chunk["runs"]]


def parquet(table: _native.Table) -> bytes:
    """A table as a Parquet file."""
    import duckdb

    # One thread keeps the order of rows.
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(config={"threads": 1}) as connection:
        path = Path(folder, "table.parquet")
        connection.register("answer", table)
        connection.table("answer").write_parquet(str(path), compression="zstd")
        return path.read_bytes()
