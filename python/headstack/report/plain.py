"""A report as HTML without scripts: text, pictures and tables. The page shows it until its script has drawn the
interactive report, and permanently if scripts are off."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from headstack.report.figures import Bars, Cell, Claim, Figure, Grid, Heat, Lines, Report, Table
from headstack.report.stills import DASHES, is_alone, still

ROWS_MAX = 40
"""Maximum number of rows of a table; the script, or the figures' file, has the rest."""
ADDRESS = re.compile(r"(https?://[^\s)>\]]*[^\s)>\].,;:])")


def body_of(report: Report, is_inline: bool) -> str:
    """Returns the body of the page for a report whose looks and axes are decided.

    For a notebook it contains only the figures."""
    sections = [
        f"{'' if is_inline else f'<h2>{escape(section.title)}</h2>{_paragraphs(section.text)}'}"
        f'<div class="figures">{"".join(map(_figure, section.figures))}</div>'
        for section in report.sections
    ]
    if is_inline:
        return "".join(sections)
    question = f'<p class="question">{escape(report.question)}</p>' if report.question else ""
    answer = f'<div class="answer">{_paragraphs(report.summary)}</div>'
    head = f"<header><h1>{escape(report.title)}</h1>{question}{answer}</header>"
    return f"{head}<main>{''.join(sections)}{''.join(_rest(report))}</main>"


def _rest(report: Report) -> Iterable[str]:
    if report.remarks:
        yield f"<h2>Method</h2>{_paragraphs(report.remarks)}"
    if report.claims:
        yield f"<h2>Claims</h2><dl>{''.join(map(_claim, report.claims))}</dl>"
    if report.sources:
        yield f"<h2>Sources</h2><ul>{''.join(f'<li>{_linked(source)}</li>' for source in report.sources)}</ul>"
    if report.runs:
        columns = ("system", "workload", "seed", "version", "hash")
        rows: list[list[Cell]] = [
            [run.system, run.workload, run.seed, run.version, run.description_hash[:12]] for run in report.runs
        ]
        yield f"<h2>Provenance</h2>{_table('Runs', columns, rows)}"


def _claim(claim: Claim) -> str:
    term = f"<dt>{escape(claim.id)} {escape(claim.says)}: <b>{escape(claim.verdict)}</b></dt>"
    return f"{term}<dd>{_paragraphs(claim.evidence)}</dd>"


def _figure(figure: Figure) -> str:
    note = f'<p class="note">{_linked(figure.note)}</p>' if figure.note else ""
    match figure:
        case Table():
            shown = _table(figure.title, figure.columns, figure.texts or figure.rows)
        case Grid():
            shown = _grid(figure)
        case Lines() | Bars():
            shown = _legend(figure) + still(figure)
        case Heat():
            shown = still(figure)
    headline = f'<p class="says">{_linked(figure.says)}</p>' if figure.says else ""
    kind = ' class="wide"' if isinstance(figure, Table | Grid) else ""
    return f"<figure{kind}><figcaption>{escape(figure.title)}</figcaption>{headline}{shown}{note}</figure>"


def _legend(figure: Lines | Bars) -> str:
    if len(figure.series) < 2 or (isinstance(figure, Bars) and is_alone(figure)):
        return ""
    names = "".join(
        f'<span class="key"><svg class="sample" width="26" height="12" aria-hidden="true">'
        f'<path class="{series.colour} line" stroke-dasharray="{DASHES[series.dash or 0]}" d="M1 6H25"/></svg>'
        f"{escape(series.name)}"
        f"{' (published)' if series.published and 'published' not in series.name.lower() else ''}</span>"
        for series in figure.series
    )
    return f'<div class="legend">{names}</div>'


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:ROWS_MAX])
    rest = f'<p class="note">and {len(rows) - ROWS_MAX:,} more rows</p>' if len(rows) > ROWS_MAX else ""
    caption = f'<caption class="unseen">{escape(title)}</caption>'
    table = f'<table style="--columns: {len(columns)}">{caption}'
    table += f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(title)}">{table}</div>{rest}'


def _grid(figure: Grid) -> str:
    rows = [[name, *values] for name, values in zip(figure.rows, figure.values, strict=True)]
    unit = f'<p class="note">{escape(figure.unit)}</p>'
    return unit + _table(figure.title, [f"{figure.row_label} \\ {figure.column_label}", *figure.columns], rows)


def _cell(value: Cell) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    text = str(value) if isinstance(value, int) and abs(value) < 10_000 else f"{value:,.5g}"
    return f'<td class="figure">{f"{value:,.0f}" if "e" in text else text}</td>'


def _paragraphs(text: str) -> str:
    parts = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    return "".join(f"<p>{_linked(part)}</p>" for part in parts)


def _linked(text: str) -> str:
    """Returns the text as HTML with its addresses as links."""
    parts = ADDRESS.split(text)
    return "".join(
        f'<a href="{escape(part)}" rel="noreferrer">{escape(part)}</a>' if n % 2 else escape(part)
        for n, part in enumerate(parts)
    )
