"""What the site shows beside its pages: the explorer on the first one, and the studies with their pictures.

Studies are carried out for it, by their shipped code: a minute on two cores that do nothing else, and seconds where
their runs are kept from before. ``HEADSTACK_SITE_WITHOUT_RUNS=1`` leaves their pictures and counts out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import headstack as hs
from headstack.report.draw import draw
from headstack.report.figures import Bars, Figure, Lines
from headstack.report.html import check_built as check_reports
from headstack.report.html import write_html
from headstack.results.explorer import check_built as check_explorer
from headstack.results.explorer import explore
from headstack.studies.outcome import Outcome

DOCUMENTS = ("compaq", "storagereview", "mark5c", "demartek", "hp-va7100")
CHOICES = ("storagereview-2001", "mark5c-2012", "flash-2016")
EXPLORER, FOLDER = "explore.html", "gallery"
WITHOUT_RUNS = "HEADSTACK_SITE_WITHOUT_RUNS"
SYSTEMS = ("cheetah-x15-36lp", "970-evo-1tb")
"""What the explorer on the first page begins with: a disk and a solid-state drive."""

FRAME = f"""
<div class="explorer">
<iframe src="{EXPLORER}" title="The explorer: the simulator in a page"></iframe>
<p>Drag something: the simulator is in this page, and nothing leaves it. <a href="{EXPLORER}">Open it alone</a>.</p>
</div>
"""
PICTURE = """
![Response time over throughput of a disk and an array, with a panel of what can be dragged](explorer.png)

This copy of the site was built without the simulator for pages: above is a picture of it.
"""


class Landing:
    """What is made once for a build of the site, for two of its pages and beside them."""

    def __init__(self) -> None:
        self.has_explorer = _is_built(check_explorer, "the explorer is a picture")
        self.has_reports = _is_built(check_reports, "studies are without their reports")
        self._outcomes: dict[str, Outcome] = {}

    def read(self, page: str, text: str) -> str:
        """The text of a page, with what is made for it where its marks are."""
        if page == "index":
            return text.replace("<!-- explorer -->", FRAME if self.has_explorer else PICTURE)
        if page == "gallery":
            for mark, names in (("<!-- documents -->", DOCUMENTS), ("<!-- choices -->", CHOICES)):
                text = text.replace(mark, "\n".join(self._card(name) for name in names))
        return text

    def write(self, folder: Path) -> None:
        """Writes what the pages lead to."""
        if self.has_explorer:
            explore(folder / EXPLORER, SYSTEMS, "file-server")
        (folder / FOLDER).mkdir(exist_ok=True)
        for name, outcome in self._outcomes.items():
            draw(shown(outcome), folder / FOLDER / f"{name}.svg")
            if self.has_reports:
                write_html(outcome.report(), folder / FOLDER / f"{name}.html")

    def _card(self, name: str) -> str:
        if os.environ.get(WITHOUT_RUNS):
            return card(name, None, has_report=False)
        print(f"site: study {name}", file=sys.stderr)
        self._outcomes[name] = hs.studies.run(name)
        return card(name, self._outcomes[name], self.has_reports)


def _is_built(check: Callable[[], None], else_: str) -> bool:
    try:
        check()
    except hs.InputError as error:
        print(f"site: {else_}: {error}", file=sys.stderr)
        return False
    return True


def shown(outcome: Outcome) -> Figure:
    """The picture that stands for a study: its first one with axes."""
    return next(figure for figure in outcome.figures if isinstance(figure, Lines | Bars))


def card(name: str, outcome: Outcome | None, has_report: bool) -> str:
    """A study in the gallery, as Markdown: what was asked and found, its picture, how it came out, how to repeat it."""
    study = hs.studies.load(name)
    parts = [f"### [{study.title}](study-{name}.md)", f"*{study.question}*", study.summary.strip()]
    if outcome is not None:
        figure = shown(outcome)
        says = escape(f"{figure.title}. {figure.says}", quote=True)
        picture = f'<img src="{FOLDER}/{name}.svg" alt="{says}" loading="lazy">'
        parts += [f'<p class="picture">{picture}</p>', counted(outcome)]
    links = [f"[how it was asked, and what came out](study-{name}.md)"]
    links += [f'<a href="{FOLDER}/{name}.html">the report with every figure and claim</a>'] if has_report else []
    command = f"headstack lab study run {name}"
    return "\n\n".join([*parts, f"```sh\n{command}\n```", f"{' · '.join(links)}\n"])


def counted(outcome: Outcome) -> str:
    """How many claims were predicted, and how many missed, and the rest."""
    found = outcome.verdicts()
    first: Sequence[str] = ("predicted", "missed")
    counts = [f"**{found[name]} {name}**" for name in first]
    counts += [f"{count} {name}" for name, count in found.items() if count and name not in first]
    rows, agree = outcome.rows()
    told = f"{len(outcome.claims)} claims: {', '.join(counts)}"
    return f"{told}; of {rows:,} published figures {agree:,} are met." if rows else f"{told}."
