"""The formats in which commands write results: every format is a :class:`Format`, and ``FORMATS`` lists all of them.

A command names the class of its result in ``output_options`` and in :class:`~headstack.cli.output.Outputs`: each format
that can write this class is an option of the command. To add a format, see docs/design/python-package.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from headstack.cli.formats.csv_table import CSV
from headstack.cli.formats.document import JSON
from headstack.cli.formats.format import Command, Format, Writer
from headstack.cli.formats.page import HTML
from headstack.cli.formats.parquet_table import PARQUET
from headstack.cli.formats.picture import PLOT
from headstack.cli.formats.ticket import MARKDOWN

FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        JSON,
        CSV,
        PARQUET,
        PLOT,
        HTML,
        MARKDOWN,
    )
}
"""Formats by name, in the order of their options in help."""


def formats_of(result: type) -> list[Format]:
    """Returns the formats that can write results of this class."""
    return [each for each in FORMATS.values() if each.can_write(result)]


def output_options(result: type | None = None, **helps: str | None) -> Callable[[Command], Command]:
    """Adds the options ``--json FILE``, ``--csv FILE`` and so on to a command.

    The options are those of the formats that can write ``result``, and of the formats in ``helps``, which maps a name
    to a help text, or to ``None`` for the help of the format itself.
    """
    of_class = formats_of(result) if result is not None else []
    options = [
        each.options(helps.get(each.name)) for each in FORMATS.values() if each in of_class or each.name in helps
    ]
    return lambda command: reduce(lambda inner, add: add(inner), reversed(options), command)


def writers_of(result: type) -> dict[str, Writer]:
    """Returns the functions that write results of this class, by format name."""
    return {each.name: each.write for each in formats_of(result)}


def report_writers(report_of: Callable[[Any], Any]) -> dict[str, Writer]:
    """Returns the writers of report formats for results that ``report_of`` turns into a report."""
    return {each.name: each.writer_of_reports(report_of) for each in (HTML, MARKDOWN)}
