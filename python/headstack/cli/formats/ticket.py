"""The report of a result as Markdown, for a ticket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headstack.cli.formats.format import ReportFormat, makes_report, report_of
from headstack.io.atomic_files import write_text

if TYPE_CHECKING:
    from headstack.report.figures import Report


def write_ticket(report: Report, path: str) -> None:
    """Writes a report as Markdown."""
    from headstack.report.markdown import to_markdown  # start-up time

    write_text(path, to_markdown(report))


MARKDOWN = ReportFormat(
    "markdown",
    "FILE.md",
    "Write a summary as Markdown, for a ticket.",
    can_write=makes_report,
    write=lambda result, path: write_ticket(report_of(result), path),
    write_report=write_ticket,
)
