"""A format of results and its option: :class:`Format`."""

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
"""Writes a result to a path. A writer of text returns the text, and writes a file only if it gets a path."""


def makes_report(result: type) -> bool:
    """Whether a class of results has a method that returns a report."""
    return any(callable(getattr(result, name, None)) for name in ("report", "to_report"))


def report_of(result: Any) -> Report:
    """Returns the report of a result."""
    report: Report = result.to_report() if hasattr(result, "to_report") else result.report()
    return report


def _accept(_path: str) -> None:
    """Accepts any file."""


@dataclass(frozen=True)
class Format:
    """A format of results: ``--NAME FILE`` of every command whose results it can write."""

    name: str
    metavar: str
    help: str
    can_write: Callable[[type], bool]
    """Whether the format can write results of a class."""
    write: Writer
    is_text: bool = False
    """Whether ``write`` returns text, which is printed if the file is ``-``."""
    check: Callable[[str], None] = _accept
    """Raises ``InputError`` if a file of this name cannot be written. Called before any measurement."""

    @property
    def parameter(self) -> str:
        """Name of the command's parameter for the file; its value is ``None`` if the format is not requested."""
        return f"{self.name}_path"

    def options(self, help_: str | None = None) -> Callable[[Command], Command]:
        """Adds the option to a command."""
        return click.option(
            f"--{self.name}", self.parameter, type=OUTPUT, metavar=self.metavar, help=help_ or self.help
        )


@dataclass(frozen=True)
class ReportFormat(Format):
    """A format of reports."""

    write_report: Callable[[Report, str], None] = lambda _report, _path: None

    def writer_of_reports(self, report_of: Callable[[Any], Report]) -> Writer:
        """Returns a writer of the report that a function builds from a result."""
        return lambda result, path: self.write_report(report_of(result), path)
