"""A format of results, and the option that asks for it: :class:`Format`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from headstack.cli.files import OUTPUT

if TYPE_CHECKING:
    from headstack.report.figures import Report

Command: TypeAlias = Callable[..., Any]
Writer: TypeAlias = Callable[..., object]
"""Writes a result to a path. A writer of text returns the text, and writes no file where no path is given."""


def makes_report(result: type) -> bool:
    """Whether results of a class make a report of themselves."""
    return any(callable(getattr(result, name, None)) for name in ("report", "to_report"))


def report_of(result: Any) -> Report:
    """The report that a result makes of itself."""
    report: Report = result.to_report() if hasattr(result, "to_report") else result.report()
    return report


def _accept(_path: str) -> None:
    """Any file will do."""


@dataclass(frozen=True)
class Format:
    """A format of results: ``--NAME FILE`` of every command whose results it can write."""

    name: str
    metavar: str
    help: str
    can_write: Callable[[type], bool]
    """Whether results of a class have what the format writes."""
    write: Writer
    is_text: bool = False
    """Whether ``write`` returns text, which is printed where the file is ``-``."""
    check: Callable[[str], None] = _accept
    """Raises ``InputError`` where a file of this name cannot be made: asked before anything is measured."""

    @property
    def parameter(self) -> str:
        """The parameter of a command that has the file, or ``None`` where the format is not asked for."""
        return f"{self.name}_path"

    def options(self, help_: str | None = None) -> Callable[[Command], Command]:
        """Adds the option to a command."""
        return click.option(
            f"--{self.name}", self.parameter, type=OUTPUT, metavar=self.metavar, help=help_ or self.help
        )


@dataclass(frozen=True)
class ReportFormat(Format):
    """A format of the report that a result makes of itself."""

    write_report: Callable[[Report, str], None] = lambda _report, _path: None

    def writer_of_reports(self, report_of: Callable[[Any], Report]) -> Writer:
        """Writes the report that a function makes of a result."""
        return lambda result, path: self.write_report(report_of(result), path)
