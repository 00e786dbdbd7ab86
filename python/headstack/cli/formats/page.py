"""The report of a result as one HTML page, which can hold the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from headstack._native import InputError
from headstack.cli.formats.format import Command, ReportFormat, makes_report, report_of

if TYPE_CHECKING:
    from headstack.report.figures import Report
    from headstack.report.html import Simulator

SIMULATOR = f"{__name__}.simulator"
"""Key in the command's context; true if the page includes the simulator."""


def has_simulator() -> bool:
    """Whether the page of the running command includes the simulator."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(SIMULATOR))


def chosen_simulator() -> Simulator | None:
    """Returns the simulator for a page if ``--with-simulator`` is set."""
    from headstack.results.explorer import simulator  # start-up time

    return simulator if has_simulator() else None


def check_page(_path: str | None = None) -> None:
    """Raises ``InputError`` if this installation was built without the requested page."""
    from headstack.report import html  # start-up time
    from headstack.results import explorer  # start-up time

    html.check_built()
    if has_simulator():
        explorer.check_built()


def refuse_simulator_without_page() -> None:
    """Raises ``InputError`` if the simulator is requested without a page."""
    if has_simulator():
        raise InputError("--with-simulator: needs a page; add --html FILE.html")


def _remember(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta[SIMULATOR] = value


simulator_option = click.option(
    "--with-simulator",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Include the simulator in the HTML report, to vary its curves (1.3 MB).",
)
"""The option ``--with-simulator`` of commands that write a page."""


def write_page(report: Report, path: str) -> None:
    """Writes a report as a page."""
    from headstack.report.html import write_html  # start-up time

    write_html(report, path, chosen_simulator())


class _Page(ReportFormat):
    def options(self, help_: str | None = None) -> Callable[[Command], Command]:
        """Adds the options for the file and for the simulator in the page."""
        option = super().options(help_)
        return lambda command: option(simulator_option(command))


HTML = _Page(
    "html",
    "FILE.html",
    "Write a report as one HTML page.",
    can_write=makes_report,
    write=lambda result, path: write_page(report_of(result), path),
    check=check_page,
    write_report=write_page,
)
