"""``Fields``: typed access to JSON of other programs, with errors that name file and field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from headstack._native import InputError

LARGEST = 2**128 - 1
"""Limit of a counter; NVMe counters have 16 bytes."""


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of a JSON document."""

    file: str
    data: Mapping[str, object]
    at: str = ""
    """The path of the object within the document, with a trailing dot."""

    @classmethod
    def parse(cls, file: str, text: str) -> Fields:
        """Parses a text as an object. Raises ``InputError`` with the line if the text is not a JSON object."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"{file}: line {error.lineno}: not valid JSON: {error.msg.lower()}") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file}: not valid JSON: {error}") from None
        if not isinstance(data, dict):
            raise InputError(f"{file}: a JSON {type(data).__name__}; allowed: an object")
        return cls(file, data)

    def wrong(self, key: str, value: object, allowed: str) -> InputError:
        """Returns the error of a field."""
        shown = repr(value)
        return InputError(f"{self.file}: {self.at}{key}: {shown[:60]} is not {allowed}")

    def __contains__(self, path: str) -> bool:
        return self._find(path)[2] is not None

    def _find(self, path: str) -> tuple[Fields, str, object]:
        """Returns the object at the end of a dotted path, the last key of the path, and its value."""
        here = self
        *way, key = path.split(".")
        for step in way:
            here = here.object(step)
        return here, key, here.data.get(key)

    def object(self, key: str) -> Fields:
        """Returns a nested object; an empty object if the key is missing."""
        value = self.data.get(key)
        if value is None:
            return Fields(self.file, {}, f"{self.at}{key}.")
        if not isinstance(value, dict):
            raise self.wrong(key, value, "an object")
        return Fields(self.file, value, f"{self.at}{key}.")

    def objects(self, path: str) -> list[Fields]:
        """Returns the objects of a list."""
        here, key, value = self._find(path)
        if value is None:
            return []
        objects = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
        if not isinstance(value, list) or len(objects) < len(value):
            raise here.wrong(key, value, "a list of objects")
        return [Fields(self.file, item, f"{here.at}{key}[{n}].") for n, item in enumerate(objects)]

    def text(self, path: str) -> str | None:
        """Returns a text without surrounding blanks; ``None`` if it is missing or empty."""
        here, key, value = self._find(path)
        if value is None:
            return None
        if not isinstance(value, str):
            raise here.wrong(key, value, "a text")
        # Some drives pad with zero bytes.
        return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", value).split()) or None

    def flag(self, path: str) -> bool | None:
        """Returns a Boolean."""
        here, key, value = self._find(path)
        if value is not None and not isinstance(value, bool):
            raise here.wrong(key, value, "true or false")
        return value

    def integer(self, path: str) -> int | None:
        """Returns a whole number of 0 or more, also from a text with separators, which nvme-cli writes for 128-bit
        numbers."""
        here, key, value = self._find(path)
        if value is None:
            return None
        if isinstance(value, str) and re.fullmatch(r"\s*[0-9][0-9,]{0,60}\s*", value):
            value = int(value.replace(",", ""))
        if isinstance(value, float) and math.isfinite(value) and value == int(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise here.wrong(key, value, "a whole number of 0 or more")
        return value

    def celsius(self, path: str) -> int | None:
        """Returns a temperature, which may be below zero."""
        here, key, value = self._find(path)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not -273 <= value <= 1000:
            raise here.wrong(key, value, "a temperature in whole degrees Celsius")
        return value
