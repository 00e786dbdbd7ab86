"""Stored JSON states its format and version; older versions are upgraded, unknown ones refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headstack._native import InputError

Fields = dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """A file format with its upgrades from older versions."""

    format: str
    """The format's name in files, such as ``characterization``."""
    steps: tuple[Callable[[Fields], Fields], ...] = ()
    """Upgrades from each version to the next, the first from version 1."""

    @property
    def version(self) -> int:
        """The version that is written.

        >>> Stored("survey").version
        1
        """
        return 1 + len(self.steps)

    @property
    def head(self) -> Fields:
        """The fields that state a file's format and version.

        >>> Stored("survey").head
        {'format': 'headstack survey', 'schema': 1}
        """
        return {"format": f"headstack {self.format}", "schema": self.version}

    def upgraded(self, file: str, content: Fields) -> Fields:
        """Upgrades a file's content to the current version; a file without a version is version 1.

        Raises ``InputError`` if the file has another format or an unknown version.

        >>> survey = Stored("survey", steps=(lambda content: content | {"trees": content["tries"]},))
        >>> survey.upgraded("old.json", {"schema": 1, "tries": 3})
        {'schema': 2, 'tries': 3, 'trees': 3}
        >>> survey.upgraded("new.json", {"schema": 3})
        Traceback (most recent call last):
        headstack.InputError: new.json: unknown schema 3 of a survey; this build reads 1 to 2
        """
        if content.get("format", self.head["format"]) != self.head["format"]:
            raise InputError(f"{file}: is a {content['format']}, not a {self.head['format']}")
        schema = content.get("schema", 1)
        if type(schema) is not int or not 1 <= schema <= self.version:
            supported = "1" if self.version == 1 else f"1 to {self.version}"
            article = "an" if self.format[0] in "aei" else "a"
            raise InputError(
                f"{file}: unknown schema {schema} of {article} {self.format}; this build reads {supported}"
            )
        for step in self.steps[schema - 1 :]:
            content = step(content)
        return content | {"schema": self.version} if schema != self.version else content
