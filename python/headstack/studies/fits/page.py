"""The page with the results of headstack's inverse studies, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headstack.studies.fits.files import RESULT_FILE, listed, load
from headstack.studies.fits.fit_result import Fitted
from headstack.studies.fits.render import finding, format_posterior, rows_table
from headstack.studies.scorecard import markdown_table

HEAD = """# What inverse studies found

Which values of settings that a document omits reproduce all of its figures at once? Some figures are held out: the
settings that reproduce the others predict them. See [inverse studies](inverse-studies.md) to read or write one. Run
`headstack lab fit NAME`, for example `headstack lab fit compaq/neds`, to print the range of every unknown and the
reason for it. `make validate` repeats all studies and compares the stored results.
"""


def stored() -> list[Fitted]:
    """Returns the stored results: ``benches/fits.py`` reports missing ones."""
    fits = [fit for fit in map(load, listed()) if (fit.folder / RESULT_FILE).is_file()]
    return [replace(Fitted.read(fit.folder / RESULT_FILE), summary=" ".join(fit.summary.split())) for fit in fits]


def page(results: Sequence[Fitted]) -> str:
    """Returns the page of these inverse studies."""
    return "\n".join([HEAD, _summary(results), *map(_section, results)])


def _summary(results: Sequence[Fitted]) -> str:
    rows = []
    for result in results:
        held = [row for row in result.rows if row.held_out]
        within = f"{sum(row.is_within for row in held)} of {len(held)}" if result.reproducing else "no setting does"
        away = "" if result.distance is None else f"{result.distance:.2f}"
        rows.append([result.fit, f"{result.tried:,}", f"{result.reproducing:,}", str(result.tolerance), within, away])
    head = ["", "settings tried", "reproduce all fitted figures", "within", "held-out figures within"]
    return markdown_table([*head, "nearest, in tolerances"], rows, 1)


def _section(result: Fitted) -> str:
    columns, rows = rows_table(result)
    # Shares of settings exist only if some reproduce the figures; each figure is then reached alone, too.
    left_out = {"kind", "nearest alone" if result.reproducing else "of settings"}
    rows = [[cells[0] + " (held out)" * row.held_out, *cells[1:]] for cells, row in zip(rows, result.rows, strict=True)]
    kept = [place for place, column in enumerate(columns) if column not in left_out]
    columns, *rows = ([cells[place] for place in kept] for cells in (columns, *rows))
    lines = [
        f"## {result.title}\n",
        f"`headstack lab fit {result.fit} --settings {result.settings}`: {result.question}\n",
        f"**{finding(result)}**\n",
        *([f"{result.summary}\n"] if result.summary else []),
        markdown_table(columns, rows, 1),
        *_unknowns(result),
    ]
    return "\n".join(lines)


def _unknowns(result: Fitted) -> list[str]:
    """Returns the table of determined unknowns; nothing if no setting reproduces the figures."""
    if not result.reproducing:
        return []
    head = ["unknown", "description", "posterior"]
    determined = [each for each in result.unknowns if each.is_determined]
    rows = [[each.name, each.description, format_posterior(result, each)] for each in determined]
    undetermined = ", ".join(f"`{each.name}`" for each in result.unknowns if not each.is_determined)
    table = [markdown_table(head, rows, len(head))] if rows else []
    return [*table, *([f"Not determined by these figures: {undetermined}.\n"] if undetermined else [])]
