"""The picture of a synthetic trace's scorecard: miss ratios and dispersion, compared with its original."""

from __future__ import annotations

from typing import TYPE_CHECKING

# This import prints one line if matplotlib is missing.
from headstack.report.plots import COLOURS, FAINT, STYLE

import matplotlib as mpl  # isort: skip
from matplotlib.figure import Figure  # isort: skip

if TYPE_CHECKING:
    from headstack.traces.scored import Scored


def overview(scores: Scored) -> Figure:
    """Draws miss ratios of caches, and the dispersion of requests in bins of growing length."""
    from headstack.traces.synthesis_report import curves  # start-up time

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.4, 4.2), layout="constrained")
        drawn = curves(scores)
        panels = figure.subplots(1, max(1, len(drawn)), squeeze=False)[0]
        if not drawn:
            panels[0].set_axis_off()
            panels[0].text(0.5, 0.5, "no cache reuse and no bursts to compare", ha="center", va="center", color=FAINT)
        for axes, data in zip(panels, drawn, strict=False):
            for series, colour, style in zip(data.series, COLOURS, ("-", "--"), strict=False):
                axes.plot(series.x, series.y, style, color=colour, lw=1.8, label=series.name)
            axes.set_xscale("log")
            axes.set_yscale("log" if data.y.log else "linear")
            axes.set_xlabel(data.x.label)
            axes.set_ylabel(data.y.label)
            axes.set_title(data.title, loc="left")
            axes.grid(axis="both")
            axes.legend(frameon=False)
        figure.suptitle(f"{scores.name} and its synthetic trace", x=0.012, ha="left", weight="bold")
    return figure
