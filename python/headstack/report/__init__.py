"""Figures and reports as data, and how they are drawn: as pages, by matplotlib, as text. It knows no storage."""

from headstack.report.figures import Figure, InNotebook, Report


def _page(shown: Figure | Report) -> str:
    # Only notebooks need the page.
    from headstack.report.html import inline  # start-up time

    return inline(shown)


InNotebook.page = _page
