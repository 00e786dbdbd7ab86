"""The formats in which commands write results: every format is a :class:`Format`, and ``FORMATS`` lists all of them.

A command names the class of its result in ``output_options`` and in :class:`~headstack.cli.output.Outputs`: each format
that can write this class is an option of the command. docs/design/python-package.md tells how a format is added.
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
    one.name: one
    for one in (
        JSON,
        CSV,
        PARQUET,
        PLOT,
        HTML,
        MARKDOWN,
    )
}
"""By name, in the order in which help lists their options."""


def formats_of(result: type) -> list[Format]:
    """The formats that can write results of this class."""
    return [one for one in FORMATS.values() if one.can_write(result)]


def output_options(result: type | None = None, **helps: str | None) -> Callable[[Command], Command]:
    """Adds the options ``--json FILE``, ``--csv FILE`` and so on to a command.

    They are those of the formats that can write ``result``, and of the formats that ``helps`` names: each with the text
    that is given there, or with what the format says of itself.
    """
    of_class = formats_of(result) if result is not None else []
    options = [one.options(helps.get(one.name)) for one in FORMATS.values() if one in of_class or one.name in helps]
    return lambda command: reduce(lambda inner, add: add(inner), reversed(options), command)


def writers_of(result: type) -> dict[str, Writer]:
    """The functions that write results of this class, by the names of the formats."""
    return {one.name: one.write for one in formats_of(result)}


def report_writers(report_of: Callable[[Any], Any]) -> dict[str, Writer]:
    """Writers of the formats of a report, for results whose report ``report_of`` makes."""
    return {one.name: one.writer_of_reports(report_of) for one in (HTML, MARKDOWN)}
