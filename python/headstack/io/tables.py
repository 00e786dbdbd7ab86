"""Tables: rows under columns whose kinds are declared, as CSV and as Parquet."""

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
    """A result that is a table, too: a row for each of the things that it holds."""

    @property
    @abstractmethod
    def fields(self) -> Sequence[Field]:
        """The columns."""

    @abstractmethod
    def table_rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows, by the names of the columns."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, with their units."""
        return [field.name for field in self.fields]

    def table(self) -> Table:
        """The table, which any consumer of Arrow reads without a copy."""
        return Table(self.fields, self.table_rows())

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """The table as CSV text; written to ``path`` where one is given."""
        return to_csv(self.column_names, self.table_rows(), path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as Parquet."""
        table_to_parquet(self.table(), path)


PARQUET = "format parquet, compression zstd"
CSV = "format csv, header"


def to_json(value: object, path: str | os.PathLike[str] | None = None) -> str:
    """A value as JSON text, written to ``path`` where one is given; numbers that are not finite, which JSON does not
    have, are ``null``."""
    return written(json.dumps(finite(value), indent=1, allow_nan=False) + "\n", path)


def finite(value: Any) -> Any:
    """The same with ``None`` in place of numbers that are not finite, in lists and mappings, too."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list | tuple) else value


def to_csv(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], path: str | os.PathLike[str] | None = None
) -> str:
    """The rows as CSV, written to ``path`` where one is given."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written(text.getvalue(), path)


def to_parquet(fields: Sequence[Field], rows: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """The rows as Parquet, each column of the kind that its field declares."""
    table_to_parquet(Table(fields, rows), path)


def table_to_parquet(table: Table, path: str | os.PathLike[str]) -> None:
    """A table as Parquet."""
    import duckdb  # start-up time

    with duckdb.connect() as connection:
        connection.register("given", table)
        write_all([(path, lambda draft: copy_to(connection, "given", draft, PARQUET))])


_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")


def sql_type(texts: Iterable[str]) -> str:
    """The type in SQL that holds all of these texts without loss.

    What only looks like a number stays text: ``0012``, ``12E45678``, which no float holds, ``nan``, or whole numbers of
    more than 64 bits.
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


def copy_to(connection: DuckDBPyConnection, table: str, path: str | os.PathLike[str], how: str) -> None:
    """Writes a table of a connection, in one of its formats. Raises ``OSError`` where the disk refuses."""
    import duckdb  # start-up time

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
