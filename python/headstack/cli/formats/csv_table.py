"""The table of a result as CSV."""

from __future__ import annotations

from headstack.cli.formats.format import Format
from headstack.io.tables import Tabular

CSV = Format(
    "csv",
    "FILE",
    "Write the table as CSV (- for stdout).",
    can_write=lambda result: issubclass(result, Tabular),
    write=lambda result, path=None: result.to_csv(path),
    is_text=True,
)
