"""A report as one HTML file that needs no network: the page (web/) with its data."""

from __future__ import annotations

import base64
import html
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, TypeAlias

from headstack._native import InputError
from headstack.io.atomic_files import write_text
from headstack.report.axes import with_axes
from headstack.report.figures import Figure, Report, Section
from headstack.report.looks import with_looks
from headstack.report.pages import SIMULATOR_POLICY, as_json, built, page_of
from headstack.report.plain import body_of

# The page may load nothing; maps are images created in the page.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
INLINE_HEIGHT = 470
"""Height of a figure's frame in pixels until its page reports the real one."""


Simulator: TypeAlias = Callable[[Report, list[dict[str, Any]]], str]
"""Returns the scripts that recompute the curves of a report in its page. It gets the report and its sections as the
page reads them, and marks in each figure what can be varied."""


def to_html(report: Report, simulator: Simulator | None = None) -> str:
    """Returns the report as a page; with a simulator its curves can be varied, which adds 1.3 MB. Equal reports give
    equal text.

    Raises ``InputError`` if the page was not built, or if figures of a section share a name.
    """
    return _page(report, is_inline=False, simulator=simulator)


def write_html(report: Report, path: str | os.PathLike[str], simulator: Simulator | None = None) -> None:
    """Writes ``to_html`` to a file atomically."""
    write_text(path, to_html(report, simulator))


def inline(shown: Figure | Report) -> str:
    """Returns a figure or report for a notebook in a frame, so that pages do not disturb each other."""
    is_report = isinstance(shown, Report)
    report = shown if isinstance(shown, Report) else Report(shown.title, "", "", (Section("", "", (shown,)),))
    page = html.escape(_page(report, is_inline=not is_report))
    height = 2 * INLINE_HEIGHT if is_report else INLINE_HEIGHT
    style = f"width:100%;height:{height}px;border:0"
    return f'<iframe title="{html.escape(report.title)}" style="{style}" srcdoc="{page}"></iframe>'


def check_built() -> None:
    """Raises ``InputError`` if the page was not built; call it before a run starts."""
    built("bundle.js")


def _page(report: Report, *, is_inline: bool, simulator: Simulator | None = None) -> str:
    _check(report)
    decided = _decide_looks(report)
    page_data, plain = _page_data(decided, is_inline), body_of(decided, is_inline)
    if simulator is None:
        return page_of(report.title, "bundle", as_json(page_data), plain, POLICY)
    # Before axes get their units: runs are identified by their figures.
    scripts = simulator(report, page_data["report"]["sections"])
    return page_of(report.title, "alive", as_json(page_data), plain, SIMULATOR_POLICY, scripts)


def _decide_looks(report: Report) -> Report:
    """Returns the report with the axes and looks of all figures filled in."""
    figures = [with_axes(figure) for section in report.sections for figure in section.figures]
    looked = iter(with_looks(figures))
    sections = [replace(section, figures=[next(looked) for _ in section.figures]) for section in report.sections]
    return replace(report, sections=sections)


def _page_data(report: Report, is_inline: bool) -> dict[str, Any]:
    """Returns the data that the page reads: see ``Given`` in web/src/report.ts."""
    content = asdict(replace(report, inputs=tuple))
    del content["inputs"]
    descriptions: dict[str, int] = {}
    by_hash: dict[str, int] = {}
    for run in content["runs"]:
        if run["description"]:
            place = descriptions.setdefault(run["description"], len(descriptions))
            by_hash.setdefault(run["description_hash"], place)
        else:
            place = by_hash.get(run["description_hash"], -1)
        run["description"] = place
    # Descriptions are large and similar: compressed together, each takes a few bytes.
    packed = zlib.compress(json.dumps(list(descriptions), ensure_ascii=False).encode(), 9)
    return {"report": content, "descriptions": base64.b64encode(packed).decode(), "inline": is_inline}


def _check(report: Report) -> None:
    for section in report.sections:
        names = Counter(figure.name for figure in section.figures)
        for name in (name for name, count in names.items() if count > 1):
            raise InputError(f"two figures of a section have the name {name!r}; names must be unique", key="report")
