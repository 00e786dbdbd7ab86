"""A report as one HTML file, which needs no network: the page (web/) with its data in it."""

from __future__ import annotations

import base64
import html
import json
import math
import os
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from headstack._native import InputError
from headstack.atomic_files import write_text
from headstack.report import explorer
from headstack.report.axes import with_axes
from headstack.report.figures import Figure, Report, Section
from headstack.report.looks import with_looks
from headstack.report.pages import as_json, built, page_of
from headstack.report.plain import body_of
from headstack.report.taken_up import put_into, taken

# What the page may load: nothing. Maps are images made in the page.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
INLINE_HEIGHT = 470
"""Pixels of a figure's frame until its page says how high it is."""


def to_html(report: Report, with_simulator: bool = False) -> str:
    """The report as a page, whose curves can be varied in it where it comes with the simulator: 1.3 MB more. Equal
    reports give equal text.

    Raises ``InputError`` when the page was not built, figures of a section share a name, or a number is not finite.
    """
    return _page(report, is_inline=False, with_simulator=with_simulator)


def write_html(report: Report, path: str | os.PathLike[str], with_simulator: bool = False) -> None:
    """Writes ``to_html`` to a file, which appears whole or not at all."""
    write_text(path, to_html(report, with_simulator))


def inline(shown: Figure | Report) -> str:
    """A figure or a report for a notebook: a frame of its own, so that pages on one page do not disturb each other."""
    is_report = isinstance(shown, Report)
    report = shown if isinstance(shown, Report) else Report(shown.title, "", "", (Section("", "", (shown,)),))
    page = html.escape(_page(report, is_inline=not is_report))
    height = 2 * INLINE_HEIGHT if is_report else INLINE_HEIGHT
    style = f"width:100%;height:{height}px;border:0"
    return f'<iframe title="{html.escape(report.title)}" style="{style}" srcdoc="{page}"></iframe>'


def check_built() -> None:
    """Raises ``InputError`` when the page was not built: to be known before anything is run."""
    built("bundle.js")


def _page(report: Report, *, is_inline: bool, with_simulator: bool = False) -> str:
    _check(report)
    decided = _decided(report)
    given, plain = _given(decided, is_inline), body_of(decided, is_inline)
    if not with_simulator:
        return page_of(report.title, "bundle", as_json(given), plain, POLICY)
    # Before axes have units of their own: runs are known by their figures.
    found = taken(report)
    put_into(given["report"]["sections"], found)
    simulator = explorer.beside(found.files)
    return page_of(report.title, "alive", as_json(given), plain, explorer.POLICY, simulator)


def _decided(report: Report) -> Report:
    """The report with the axes and looks of all its figures."""
    figures = [with_axes(figure) for section in report.sections for figure in section.figures]
    looked = iter(with_looks(figures))
    sections = [replace(section, figures=[next(looked) for _ in section.figures]) for section in report.sections]
    return replace(report, sections=sections)


def _given(report: Report, is_inline: bool) -> dict[str, Any]:
    """What the page reads: see ``Given`` in web/src/report.ts."""
    told = asdict(replace(report, asked=tuple))
    del told["asked"]
    descriptions: dict[str, int] = {}
    by_hash: dict[str, int] = {}
    for run in told["runs"]:
        if run["description"]:
            place = descriptions.setdefault(run["description"], len(descriptions))
            by_hash.setdefault(run["description_hash"], place)
        else:
            place = by_hash.get(run["description_hash"], -1)
        run["description"] = place
    # Descriptions are large and alike: together they shrink to a few bytes each.
    packed = zlib.compress(json.dumps(list(descriptions), ensure_ascii=False).encode(), 9)
    return {"report": told, "descriptions": base64.b64encode(packed).decode(), "inline": is_inline}


def _check(report: Report) -> None:
    for section in report.sections:
        names = Counter(figure.name for figure in section.figures)
        for name in (name for name, count in names.items() if count > 1):
            raise InputError(f"report: two figures of a section are named {name!r}; each needs a name of its own")
    for figure in (figure for section in report.sections for figure in section.figures):
        if not all(map(math.isfinite, _numbers(asdict(figure)))):
            raise InputError(f"report: figure {figure.name!r} holds a number that is not finite")


def _numbers(value: Any) -> Iterable[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list | tuple):
        for of in value.values() if isinstance(value, dict) else value:
            yield from _numbers(of)
