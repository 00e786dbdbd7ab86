"""Tables of the scoreboard, for the terminal, for pages and for docs/scoreboard.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import NamedTuple

from headstack._native import version
from headstack.comparison.scoreboard.scored_devices import GROUPS, ScoredDevices, error_of, group_of
from headstack.io.counts import counted
from headstack.report.figures import Report, Section, Table
from headstack.results.intervals import conformal
from headstack.results.intervals.calibration import CLASSES, Cell, Device

SHOWN = ("rate", "p50", "p99", "p99.9")
"""Figures of the tables; the mean latency of a closed loop follows from the rate by Little's law."""

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
"""Queue depths of the columns of ``depth_table``."""


class Rows(NamedTuple):
    """A table of text."""

    heads: Sequence[str]
    words: int
    """Number of the first columns that are text; the others are figures."""
    rows: Sequence[Sequence[str]]


def summary_table(board: ScoredDevices) -> Rows:
    """Returns mean, median and worst errors by class and group of requests, with the coverage of intervals."""
    heads = ["class", "requests", "basis", "models"]
    heads += [f"{figure}: mean, median, worst" for figure in SHOWN]
    heads += ["left out, inside: rate", "left out, inside: p99"]
    rows = []
    for summary in board.summaries():
        errors = [summary.errors.get(figure) for figure in SHOWN]
        held = [summary.held.get(figure) for figure in ("rate", "p99")]
        rows.append(
            [
                CLASSES[summary.of_class][1],
                summary.group,
                "fitted" if summary.is_fitted else "predicted",
                str(summary.devices),
                *("" if own is None else _percents(own.mean, own.median, own.worst) for own in errors),
                *("" if own is None else f"{100 * own.share:.0f} % ({conformal.percent(own.level)})" for own in held),
            ]
        )
    return Rows(heads, 3, rows)


def device_table(board: ScoredDevices) -> Rows:
    """Returns the mean and worst error of each device, and how many measurements are inside their intervals."""
    heads = ["device", "class", "described", "requests", "points"]
    heads += [f"{figure}: mean, worst" for figure in SHOWN]
    heads += ["inside", "fitted"]
    rows = []
    for of_class, device, group, cells in _grouped(board):
        errors = {figure: [abs(error_of(cell)) for cell in cells if cell.figure == figure] for figure in SHOWN}
        held = [interval.is_inside for cell in cells if (interval := board.left_out_interval(device, cell)) is not None]
        rows.append(
            [
                device.name,
                CLASSES[of_class][0],
                ", ".join(device.described),
                group,
                str(len({(cell.workload, cell.load) for cell in cells})),
                *(_percents(fmean(own), max(own)) if own else "" for own in errors.values()),
                f"{sum(held)} of {len(held)}" if held else "not known",
                device.fitted or "",
            ]
        )
    return Rows(heads, 4, rows)


def depth_table(board: ScoredDevices, figure: str) -> Rows:
    """Returns the mean error of a figure by device, workload and queue depth, with its sign."""
    heads = ["device", "requests", "size", *map(str, DEPTHS)]
    rows = []
    for _, device, _, cells in _grouped(board):
        lines: dict[tuple[str, float], dict[int, list[float]]] = {}
        for cell in cells:
            if cell.figure == figure and cell.load.depth in DEPTHS and not cell.load.kind.startswith("open"):
                depths = lines.setdefault((cell.load.words, round(cell.load.size_bytes)), {})
                depths.setdefault(cell.load.depth, []).append(error_of(cell))
        for (words, size), depths in lines.items():
            errors = [f"{100 * fmean(depths[depth]):+.0f}" if depth in depths else "" for depth in DEPTHS]
            rows.append([device.name, words, f"{size / 1024:.0f} KiB", *errors])
    return Rows(heads, 2, rows)


def _grouped(board: ScoredDevices) -> Iterator[tuple[str, Device, str, list[Cell]]]:
    """Yields each device with the measurements of each group of requests."""
    for of_class, device in board.devices():
        for group in GROUPS:
            cells = [cell for cell in device.cells if group_of(cell.load.kind) == group]
            if cells:
                yield of_class, device, group, cells


def _percents(*shares: float) -> str:
    return f"{', '.join(f'{100 * share:.1f}' for share in shares)} %"


def report_of(board: ScoredDevices) -> Report:
    """Returns the scoreboard as a report."""
    summary = _figure("summary", "Errors by class", summary_table(board))
    devices = _figure("devices", "Errors by device", device_table(board))
    depths = [
        _figure(f"depths-{figure.replace('.', '')}", f"Error of {figure}, %, by depth", depth_table(board, figure))
        for figure in SHOWN
    ]
    sections = [
        Section("Classes", "", [summary]),
        Section("Devices", "", [devices]),
        Section("Queue depths", "", [figure for figure in depths if figure.rows]),
    ]
    question = "How far are predictions from measured devices?"
    return Report("Scoreboard", question, headline(board), sections, version=version())


def _figure(name: str, title: str, table: Rows) -> Table:
    return Table(name, title, table.heads, table.rows)


def headline(board: ScoredDevices) -> str:
    """Returns the number of devices and the mean error of predicted rates, in one sentence.

    >>> from headstack.comparison.scoreboard.tables import headline
    >>> "predicted" in headline(hs.Scoreboard.shipped())
    True
    """
    devices = [device for _, device in board.devices()]
    predicted = [device for device in devices if device.fitted is None]
    fitted = len(devices) - len(predicted)
    others = f", {fitted} fitted" if fitted else ""
    rates = [
        [abs(error_of(cell)) for cell in device.cells if cell.figure == "rate" and cell.load.kind != "replay"]
        for device in predicted
    ]
    means = [fmean(own) for own in rates if own]
    error = ""
    if means:
        error = f"; half of the predicted models have a mean error of rates of at most {100 * median(means):.1f} %"
    return f"{counted(len(devices), 'measured model')}: {len(predicted)} predicted{others}{error}."
