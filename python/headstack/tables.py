"""Tables of a test: rows of figures under named columns, as CSV and as Parquet."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def to_csv(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], path: str | os.PathLike[str] | None = None
) -> str:
    """The rows as CSV, written to ``path`` where one is given."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written(text.getvalue(), path)


def to_parquet(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """The rows as Parquet, with the types that their values have."""
    import duckdb

    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
        file.write(to_csv(columns, rows))
        file.flush()
        with duckdb.connect() as connection:
            table = connection.read_csv(file.name, header=True, sample_size=-1)
            table.write_parquet(os.fspath(path), compression="zstd")


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """The text, written to ``path`` where one is given."""
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return text
