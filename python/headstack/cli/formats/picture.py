"""The chart of a result as PNG, SVG or PDF."""

from __future__ import annotations

from headstack.cli.formats.format import Format


def check_ending(path: str) -> None:
    """Raises ``InputError`` if the file name does not end with a picture format."""
    from headstack.report.plots import picture_format  # start-up time

    picture_format(path)


PLOT = Format(
    "plot",
    "FILE.png",
    "Draw the chart (PNG, SVG or PDF).",
    can_write=lambda result: hasattr(result, "plot"),
    write=lambda result, path: result.plot(path),
    check=check_ending,
)
