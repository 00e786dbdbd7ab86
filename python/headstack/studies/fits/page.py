"""The page with the results of headstack's inverse studies, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headstack.studies.fits.files import RESULT_FILE, listed, load
from headstack.studies.fits.found import Fitted
from headstack.studies.fits.shown import finding, rows_table, unknowns_table
from headstack.studies.scorecard import markdown_table

HEAD = """# What inverse studies found

Which settings of what documents leave unsaid give all of their figures at once? Some figures are held out: the
settings that reproduce the others predict them. [How to read it, and to make one](inverse-studies.md). Written from
what is stored beside each inverse study; `make validate` carries all of them out again.
"""


def stored() -> list[Fitted]:
    """Returns the stored results: ``benches/fits.py`` reports missing ones."""
    fits = [fit for fit in map(load, listed()) if (fit.folder / RESULT_FILE).is_file()]
    return [replace(Fitted.read(fit.folder / RESULT_FILE), summary=" ".join(fit.summary.split())) for fit in fits]


def page(found: Sequence[Fitted]) -> str:
    """Returns the page of these inverse studies."""
    return "\n".join([HEAD, _summary(found), *map(_section, found)])


def _summary(found: Sequence[Fitted]) -> str:
    rows = []
    for one in found:
        held = [row for row in one.rows if row.held_out]
        within = f"{sum(row.is_within for row in held)} of {len(held)}" if one.reproducing else "no setting does"
        away = "" if one.distance is None else f"{one.distance:.2f}"
        rows.append([one.fit, f"{one.tried:,}", f"{one.reproducing:,}", str(one.tolerance), within, away])
    head = ["", "settings tried", "reproduce all fitted figures", "within", "held-out figures within"]
    return markdown_table([*head, "nearest, in tolerances"], rows, 1)


def _section(found: Fitted) -> str:
    columns, rows = rows_table(found)
    unknowns, left = unknowns_table(found)
    wider = ", ".join(f"{count:,} with {times:g} times that" for times, count in found.wider[1:])
    lines = [
        f"## {found.title}\n",
        f"`headstack lab fit {found.fit} --settings {found.settings}`: {found.question}\n",
        f"**{finding(found)}**\n",
        *([f"{found.summary}\n"] if found.summary else []),
        markdown_table(columns, rows, 2),
        f"Settings that would do if {found.tolerance} were wider: {wider}.\n",
        markdown_table(unknowns, left, len(unknowns)),
    ]
    return "\n".join(lines)
