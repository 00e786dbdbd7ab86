"""``Analysis``: one pass over a trace as figures, JSON, a picture and a workload; see docs/design/traces.md."""

from __future__ import annotations

import html
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headstack.report.figures import Report
from headstack.traces.analysed import Analysed


class Analysis(Analysed):
    """Mix, sizes, rates, sequences, blocks, re-use and times of a trace; figures that the trace does not support are
    ``None``.
    """

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws addresses, rates, sizes, gaps, re-use and latency, and figures over time. The suffix is png, svg or
        pdf."""
        from headstack.report.plots import save  # start-up time
        from headstack.traces.plots import overview  # start-up time

        save(overview(self), path)

    def to_report(self) -> Report:
        """Returns addresses, rates, sizes, gaps, re-use and times as a report, which notebooks show."""
        from headstack.traces.analysis_report import report_of  # start-up time

        return report_of(self)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes ``to_report`` as one HTML file. Needs the page, which every built package contains."""
        from headstack.report.html import write_html  # start-up time

        write_html(self.to_report(), path)

    def _repr_html_(self) -> str:
        return f"<b>{html.escape(self.name)}</b> ({self.report['requests']:,} requests)"
