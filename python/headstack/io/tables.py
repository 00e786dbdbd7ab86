"""Tables with typed columns, as CSV and Parquet."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headstack._native import Field, Table
from headstack.io.atomic_files import write_all, write_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Tabular(ABC):
    """A result that can be exported as a table, with one row per item."""

    @property
    @abstractmethod
    def fields(self) -> Sequence[Field]:
        """Returns the columns."""

    @abstractmethod
    def table_rows(self) -> Iterable[Mapping[str, Any]]:
        """Returns the rows as mappings from column names to values."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, with their units."""
        return [field.name for field in self.fields]

    def table(self) -> Table:
        """Returns the table, which any Arrow consumer reads without a copy."""
        return Table(self.fields, self.table_rows())

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns the table as CSV text and, if ``path`` is given, writes it there."""
        return to_csv(self.column_names, self.table_rows(), path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as Parquet."""
        table_to_parquet(self.table(), path)


PARQUET = "format parquet, compression zstd"
CSV = "format csv, header"


def to_json(value: object, path: str | os.PathLike[str] | None = None) -> str:
    """Returns a value as JSON text and, if ``path`` is given, writes it there; non-finite numbers, which JSON lacks,
    become ``null``."""
    return written(json.dumps(finite(value), indent=1, allow_nan=False) + "\n", path)


def finite(value: Any) -> Any:
    """Returns the value with ``None`` for non-finite numbers, also within lists and mappings."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(element) for element in value] if isinstance(value, list | tuple) else value


def to_csv(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], path: str | os.PathLike[str] | None = None
) -> str:
    """Returns the rows as CSV and, if ``path`` is given, writes them there."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written(text.getvalue(), path)


def table_to_parquet(table: Table, path: str | os.PathLike[str]) -> None:
    """Writes a table as Parquet."""
    import duckdb  # start-up time

    with duckdb.connect() as connection:
        connection.register("given", table)
        write_all([(path, lambda draft: copy_to(connection, "given", draft, PARQUET))])


_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")


def sql_type(texts: Iterable[str]) -> str:
    """Returns the SQL type that holds all of these texts without loss.

    A text that only resembles a number stays text: ``0012``, ``12E45678`` (too large for a float), ``nan``, or integers
    of more than 64 bits.
    """
    matches = [(text, _NUMBER.fullmatch(text)) for text in texts]
    if matches and all(text in ("true", "false") for text, _ in matches):
        return "boolean"
    if not matches or not all(match and math.isfinite(float(text)) for text, match in matches):
        return "varchar"
    if any(match and (match[1] or match[2]) for _, match in matches):
        return "double"
    least, most = (extreme(int(text) for text, _ in matches) for extreme in (min, max))
    if least >= -(1 << 63) and most < 1 << 63:
        return "bigint"
    return "ubigint" if least >= 0 and most < 1 << 64 else "varchar"


def copy_to(connection: DuckDBPyConnection, table: str, path: str | os.PathLike[str], options: str) -> None:
    """Writes a table of a connection in one of its formats. Raises ``OSError`` if the write fails."""
    import duckdb  # start-up time

    quoted = os.fspath(path).replace("'", "''")
    try:
        connection.execute(f"copy {table} to '{quoted}' ({options}, use_tmp_file false)")
    except duckdb.IOException as error:
        # The error number of the kernel is only in the text.
        match = re.search(r'"errno":"(\d+)"', str(error))
        number = int(match[1]) if match else errno.EIO
        raise OSError(number, os.strerror(number)) from None


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """Returns the text and, if ``path`` is given, writes it there."""
    if path is not None:
        write_text(path, text)
    return text
