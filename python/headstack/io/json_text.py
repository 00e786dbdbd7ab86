"""JSON as text: of files, of lines between processes, and as the key of a value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """The value in a file. Raises ``OSError``, or ``ValueError`` where the text is no JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def page_of(value: object) -> str:
    """A value as text for people, two spaces deeper at each level, as fio writes it.

    >>> page_of([1])
    '[\\n  1\\n]\\n'
    """
    return json.dumps(value, indent=2) + "\n"


def key_of(value: object) -> str:
    """The same text for equal values, whatever the order of their keys: to look them up by, or to hash.

    >>> key_of({"b": 1, "a": [2]})
    '{"a": [2], "b": 1}'
    """
    return json.dumps(value, sort_keys=True)


def line_of(value: object) -> bytes:
    """A value as one line for another process."""
    return json.dumps(value).encode() + b"\n"


def quoted(text: object) -> str:
    """A text, number or list of them as TOML writes it.

    >>> quoted("Müller"), quoted([1, 2])
    ('"Müller"', '[1, 2]')
    """
    return json.dumps(text, ensure_ascii=False)
