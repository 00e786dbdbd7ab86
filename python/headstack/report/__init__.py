"""Figures and reports as data, and their renderers: HTML pages, matplotlib pictures and text. This package knows
nothing of storage.
"""

from headstack.report.figures import Figure, InNotebook, Report


def _page(shown: Figure | Report) -> str:
    # Only notebooks need the page.
    from headstack.report.html import inline  # start-up time

    return inline(shown)


InNotebook.page = _page
