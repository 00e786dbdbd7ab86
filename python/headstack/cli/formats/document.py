"""A complete result as JSON."""

from __future__ import annotations

from headstack.cli.formats.format import Format

JSON = Format(
    "json",
    "FILE",
    "Write all results as JSON (- for stdout).",
    can_write=lambda result: hasattr(result, "to_json"),
    write=lambda result, path=None: result.to_json(path),
    is_text=True,
)
