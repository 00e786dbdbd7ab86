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
from pathlib import Path
from typing import Any

from headstack._native import InputError
from headstack.atomic_files import write_text
from headstack.report.axes import with_axes
from headstack.report.figures import Figure, Report, Section
from headstack.report.looks import with_looks
from headstack.report.plain import body_of

FOLDER = Path(__file__).parent
# What the page may load: nothing. Maps are images made in the page.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
INLINE_HEIGHT = 470
"""Pixels of a figure's frame until its page says how high it is."""


def to_html(report: Report) -> str:
    """The report as a page. Equal reports give equal text.

    Raises ``InputError`` when the page was not built, figures of a section share a name, or a number is not finite.
    """
    return _page(report, is_inline=False)


def write_html(report: Report, path: str | os.PathLike[str]) -> None:
    """Writes ``to_html`` to a file, which appears whole or not at all."""
    write_text(path, to_html(report))


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


def built(name: str) -> str:
    """A part of a page, by its name. Raises ``InputError`` when it was not built."""
    try:
        return (FOLDER / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            "HTML reports need the page built once: npm ci && npm run build in web/ (Node 20 or newer), or make web"
        ) from None


def _page(report: Report, *, is_inline: bool) -> str:
    _check(report)
    decided = _decided(report)
    return page_of(report.title, "report", as_json(_given(decided, is_inline)), body_of(decided, is_inline), POLICY)


def page_of(title: str, part: str, data: str, plain: str, policy: str) -> str:
    """A page: the script and the style of a part, ``report`` or ``explore``, the JSON that the script reads, and the
    HTML that is there without it."""
    name = "bundle" if part == "report" else part
    # A script ends at the first of these, wherever it stands.
    script, style = built(f"{name}.js").replace("</script", r"<\/script"), built(f"{name}.css")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>{style.strip()}</style>
</head>
<body>
<div id="plain">{plain}</div>
<script type="application/json" id="{part}">{data}</script>
<script>{script.strip()}</script>
</body>
</html>
"""


def _decided(report: Report) -> Report:
    """The report with the axes and looks of all its figures."""
    figures = [with_axes(figure) for section in report.sections for figure in section.figures]
    looked = iter(with_looks(figures))
    sections = [replace(section, figures=[next(looked) for _ in section.figures]) for section in report.sections]
    return replace(report, sections=sections)


def _given(report: Report, is_inline: bool) -> dict[str, Any]:
    """What the page reads: see ``Given`` in web/src/report.ts."""
    told = asdict(report)
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


def as_json(told: dict[str, Any]) -> str:
    """JSON that may stand in a script element: no ``</`` and no ``<!--`` is left in it."""
    text = json.dumps(_plain(told), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _plain(value: Any) -> Any:
    """Whole numbers without their ``.0``, which JavaScript would not write: maps have a hundred thousand of them."""
    if isinstance(value, dict):
        return {key: _plain(of) for key, of in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(of) for of in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


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
