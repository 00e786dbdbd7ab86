"""JSON as text: for files, for lines between processes, and as keys of values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """Reads the value in a file. Raises ``OSError``, or ``ValueError`` if the text is not JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def page_of(value: object) -> str:
    """Formats a value for people, indented by two spaces per level, as fio writes it.

    >>> page_of([1])
    '[\\n  1\\n]\\n'
    """
    return json.dumps(value, indent=2) + "\n"


def key_of(value: object) -> str:
    """Returns a canonical text, equal for equal values regardless of key order, to use as a lookup key or to hash.

    >>> key_of({"b": 1, "a": [2]})
    '{"a": [2], "b": 1}'
    """
    return json.dumps(value, sort_keys=True)


def line_of(value: object) -> bytes:
    """Encodes a value as one line for another process."""
    return json.dumps(value).encode() + b"\n"


def quoted(text: object) -> str:
    """Formats a text, a number or a list of them as TOML.

    >>> quoted("Müller"), quoted([1, 2])
    ('"Müller"', '[1, 2]')
    """
    return json.dumps(text, ensure_ascii=False)
