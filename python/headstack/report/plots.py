"""The style of pictures, and how they are written to files."""

from __future__ import annotations

import os
from typing import Any

from headstack._native import InputError
from headstack.io.atomic_files import write_all

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise InputError("plots need matplotlib: pip install 'headstack[plot]'") from error

# Colours of the page (web/src/page.css) on white: hues near Paul Tol's bright scheme (SRON/EPS/TN/09-002), moved apart
# until people with a colour vision deficiency can distinguish all of them.
COLOURS = ("#5364bd", "#f37864", "#157b20", "#ab2071", "#c89919", "#2e98c0")
INK, FAINT = "#222222", "#777777"
DPI = 160

STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#999999",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
}


FORMATS = ("png", "svg", "pdf")


def picture_format(path: str | os.PathLike[str]) -> str:
    """Returns the format of a path's suffix. Raises ``InputError`` for unknown ones."""
    suffix = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
    if suffix not in FORMATS:
        raise InputError(f"{os.fspath(path)}: unknown picture format; allowed: {', '.join(FORMATS)}")
    return suffix


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes the figure in the format of the path's suffix. Equal figures give equal PNG files."""
    form = picture_format(path)
    write_all([(path, lambda draft: figure.savefig(draft, dpi=DPI, format=form))])
