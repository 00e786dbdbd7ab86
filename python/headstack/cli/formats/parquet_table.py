"""The table of a result as Parquet."""

from __future__ import annotations

from headstack.cli.formats.format import Format
from headstack.io.tables import Tabular

PARQUET = Format(
    "parquet",
    "FILE",
    "Write the table as Parquet.",
    can_write=lambda result: issubclass(result, Tabular),
    write=lambda result, path: result.to_parquet(path),
)
