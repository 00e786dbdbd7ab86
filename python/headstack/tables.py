"""Tables of a test: rows of figures under named columns, as CSV and as Parquet."""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headstack.atomic_files import write_all, write_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PARQUET = "format parquet, compression zstd"
CSV = "format csv, header"


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

    with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file, duckdb.connect() as connection:
        file.write(to_csv(columns, rows))
        file.flush()
        connection.read_csv(file.name, header=True, sample_size=-1).to_view("rows_of_csv")
        write_all([(path, lambda draft: copy_to(connection, "rows_of_csv", draft, PARQUET))])


def copy_to(connection: DuckDBPyConnection, table: str, path: str | os.PathLike[str], how: str) -> None:
    """Writes a table of a connection, in one of its formats. Raises ``OSError`` where the disk refuses."""
    import duckdb

    quoted = os.fspath(path).replace("'", "''")
    try:
        connection.execute(f"copy {table} to '{quoted}' ({how}, use_tmp_file false)")
    except duckdb.IOException as error:
        # What the kernel said is in the text alone.
        told = re.search(r'"errno":"(\d+)"', str(error))
        number = int(told[1]) if told else errno.EIO
        raise OSError(number, os.strerror(number)) from None


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """The text, written to ``path`` where one is given."""
    if path is not None:
        write_text(path, text)
    return text
