"""Reports as GitHub's Markdown for tickets: the answer, what each figure shows, a table and the method."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from headstack.io.terminal import visible
from headstack.report.figures import Cell, Report, Table

ROWS_MAX = 20
"""Maximum number of table rows in a ticket."""
REMARKS_MAX = 12
RUNS_MAX = 6
"""Maximum number of runs listed by their hash."""


def to_markdown(report: Report) -> str:
    """Returns the report for a ticket, without its figures. Equal reports give equal text."""
    headline, *rest = _paragraphs(report.summary) or [report.title]
    lines = [f"**{escaped(headline)}**", "", *(f"{escape_line_start(part)}\n" for part in rest)]
    if report.question:
        lines += [f"Question: {escaped(report.question)}", ""]
    figures = [figure for section in report.sections for figure in section.figures]
    shown = [f"- {escape_line_start(figure.title)}: {escaped(figure.says)}" for figure in figures if figure.says]
    lines += [*shown, ""] if shown else []
    if report.claims:
        rows = [[claim.id, claim.says, claim.verdict] for claim in report.claims]
        lines += [*table_lines(["claim", "", "verdict"], [True] * 3, rows), ""]
    else:
        table = next((figure for figure in figures if isinstance(figure, Table)), None)
        lines += [*_table(table), ""] if table is not None else []
    remarks = _paragraphs(report.remarks)
    lines += [f"- {escape_line_start(remark)}" for remark in remarks[:REMARKS_MAX]]
    lines += [f"- and {len(remarks) - REMARKS_MAX} more remarks"] * (len(remarks) > REMARKS_MAX)
    lines += [""] if remarks else []
    return "\n".join([*lines, _origin(report)]).rstrip() + "\n"


def _origin(report: Report) -> str:
    """Returns the version, systems, hashes and seeds needed to reproduce the figures."""
    version = f"headstack {escaped(report.version)}" if report.version else "headstack"
    runs = [f"{escaped(run.system)} `{run.description_hash[:12]}` seed {run.seed}" for run in report.runs]
    sources = list(dict.fromkeys(runs))
    rest = f", and {len(sources) - RUNS_MAX} more" if len(sources) > RUNS_MAX else ""
    return f"{version}: {', '.join(sources[:RUNS_MAX])}{rest}" if sources else version


def _table(table: Table) -> list[str]:
    are_words = [any(isinstance(row[n], str | bool) for row in table.rows) for n in range(len(table.columns))]
    rows = table.texts or [[_text(cell) for cell in row] for row in table.rows]
    kept = [n for n, _ in enumerate(table.columns) if any(row[n] for row in rows)]
    cells = [[row[n] for n in kept] for row in rows[:ROWS_MAX]]
    lines = table_lines([table.columns[n] for n in kept], [are_words[n] for n in kept], cells)
    return [*lines, *([f"\n{len(rows) - ROWS_MAX:,} more rows"] if len(rows) > ROWS_MAX else [])]


def _text(cell: Cell) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return str(cell) if isinstance(cell, int) else f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"


def table_lines(heads: Sequence[str], are_words: Sequence[bool], rows: Iterable[Sequence[str]]) -> list[str]:
    """Formats a table with one line per row; figures are aligned right."""
    rules = [":---" if is_word else "---:" for is_word in are_words]
    lines = [list(map(escaped, heads)), rules, *(list(map(escaped, row)) for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def escaped(text: str) -> str:
    """Escapes a text so that it fits a table cell and contains no mark-up."""
    plain = re.sub(r"([\\|*_`\[\]~$])", r"\\\1", visible(text).replace("\n", " "))
    return plain.replace("&", "&amp;").replace("<", "&lt;")


def escape_line_start(text: str) -> str:
    """Escapes a text at the start of a line, so that it is no heading, list or quotation."""
    plain = re.sub(r"^([#>+-])", r"\\\1", escaped(text.strip()))
    return re.sub(r"^(\d+)([.)])(?= |$)", r"\1\\\2", plain)


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
