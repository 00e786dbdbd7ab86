"""Parses the choices of a study file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headstack._native import InputError

KEY = "choices"

TABLES = (KEY, f"{KEY}_looked")
"""Tables with a row for each question, and one for each system that was simulated for it."""

HEADER = re.compile(r"\[\[?\s*([A-Za-z0-9_.-]+)\s*\]\]?\s*(#.*)?")


def choices_in(file: Path, text: str) -> tuple[str, list[Mapping[str, Any]], dict[str, int]]:
    """Returns the text of a study with the lines of its choices blanked, the choices, and the line of each of their
    keys by its path.

    Raises ``InputError`` if they are invalid.
    """
    if KEY not in text:
        return text, [], {}
    kept, lines = [], {}
    number, inside, under = -1, False, ""
    for place, line in enumerate(text.split("\n"), 1):
        header = HEADER.fullmatch(line.rstrip())
        if header is not None:
            inside = header[1].partition(".")[0] == KEY
            number += line.startswith("[[") and header[1] == KEY
            under = header[1].removeprefix(KEY)
            if inside:
                lines[f"{KEY}[{number}]{under}"] = place
        key = re.match(r"\s*([A-Za-z0-9_-]+)\s*=", line) if inside else None
        if key is not None:
            lines.setdefault(f"{KEY}[{number}]{under}.{key[1]}", place)
        kept.append("" if inside else line)
    rest = "\n".join(kept)
    try:
        whole, left = tomllib.loads(text), tomllib.loads(rest)
    except tomllib.TOMLDecodeError as error:
        if number < 0:
            return text, [], {}
        raise InputError(f"{file}: {error}") from None
    choices = whole.pop(KEY, [])
    if number < 0:
        return text, [], {}
    if not isinstance(choices, list) or whole != left:
        raise InputError(f"{file}: {KEY}: blocks [[{KEY}]] are allowed, each of whose headings has a line of its own")
    return rest, choices, lines
