"""The report of a difference between two sets of runs: each figure with its interval, and the runs in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headstack._native import version
from headstack.comparison.differences.cells import share_text
from headstack.io.counts import agreed, counted
from headstack.report.figures import Axis, Bars, Lines, Report, Section, Series, Table

if TYPE_CHECKING:
    from headstack.comparison.differences.cells import Cell
    from headstack.comparison.differences.estimated import Estimated

LOADS_MAX = 6
"""Maximum number of loads whose runs are drawn, the most different first."""
STROKES = "Error bars: 95 % confidence intervals. An interval that includes 0 shows no difference."
HEADS = ("load", "figure", "first", "second", "difference", "from", "to", "p", "p (Holm)", "verdict")


def report_of(difference: Estimated) -> Report:
    """Returns all results as a report."""
    headline, title = difference.headline, f"{difference.ours.name} against {difference.theirs.name}"
    sections = [
        Section("Differences", "", [differences(difference), _table(difference)]),
        Section("Runs", "", [_runs(difference, load) for load in _shown_loads(difference)]),
    ]
    remarks = "\n\n".join(f"{remark[:1].upper()}{remark[1:]}." for remark in difference.remarks)
    return Report(title, "", f"{headline}.", sections, (), (), version(), remarks=remarks)


def differences(difference: Estimated) -> Bars:
    """Returns the difference of each figure with its interval, in percent; an interval that includes 0 shows no
    difference."""
    figures = list(dict.fromkeys(cell.name for cell in difference.cells))
    loads = list(dict.fromkeys(cell.load for cell in difference.cells))
    by = {(cell.load, cell.name): cell for cell in difference.cells}
    if len(loads) == 1:
        groups, series = figures, [_bars("difference", [by[loads[0], name] for name in figures])]
    else:
        groups, series = loads, [_bars(name, [by.get((load, name)) for load in loads]) for name in figures]
    counts = {verdict: sum(cell.verdict == verdict for cell in difference.cells) for verdict in ("differs", "same")}
    differ, same = counts["differs"], counts["same"]
    return Bars(
        "differences",
        "Difference of each figure",
        Axis("First over second, minus 1 (%)", log=False),
        groups,
        series,
        note=" ".join([*([f"{loads[0]}."] if len(loads) == 1 and loads[0] else []), STROKES]),
        says=f"Of {counted(len(difference), 'figure')} {differ} {agreed(differ, 'differs', 'differ')}, "
        f"and {same} {agreed(same, 'is', 'are')} equivalent.",
    )


def _bars(name: str, cells: Sequence[Cell | None]) -> Series:
    ends = [(None, None) if cell is None else tuple(_percent(end) for end in cell.interval) for cell in cells]
    values = [None if cell is None else _percent(cell.estimate.log) for cell in cells]
    return Series(name, (), values, low=[low for low, _ in ends], high=[high for _, high in ends])


def _percent(logarithm: float) -> float | None:
    return 100 * math.expm1(logarithm) if math.isfinite(logarithm) else None


def _table(difference: Estimated) -> Table:
    rows, texts = [], []
    for cell in difference.cells:
        low, high = (_percent(end) for end in cell.interval)
        p_holm = None if math.isnan(cell.p_held) else cell.p_held
        verdict = cell.in_words(difference.same, difference.detect)
        ends = _percent(cell.estimate.log), low, high
        rows.append((cell.load, cell.name, cell.ours, cell.theirs, *ends, cell.estimate.p, p_holm, verdict))
        texts.append(
            (
                *(cell.load, cell.name, f"{cell.ours:,.4g}", f"{cell.theirs:,.4g}", *map(_signed, ends)),
                *(f"{cell.estimate.p:.2g}", "" if p_holm is None else f"{p_holm:.2g}", verdict),
            )
        )
    note = f"Differences in %. A figure is equivalent if its 90 % interval is within ±{share_text(difference.same)}."
    return Table("figures", "Figure by figure", HEADS, rows, note=note, texts=texts)


def _signed(percent: float | None) -> str:
    return "" if percent is None else f"{percent:+.2g}"


def _shown_loads(difference: Estimated) -> list[str]:
    first = {cell.load: cell for cell in reversed(difference.cells)}
    ranked = sorted(first, key=lambda load: -abs(first[load].estimate.log))
    return ranked[:LOADS_MAX]


def _runs(difference: Estimated, load: str) -> Lines:
    """Returns the first figure of a load in each run, in the order of the runs if known."""
    cell = next(cell for cell in difference.cells if cell.load == load)
    sides = zip(
        (difference.ours, difference.theirs),
        cell.values,
        cell.sources,
        (cell.order.ours, cell.order.theirs),
        strict=True,
    )
    series = []
    for side, values, sources, order in sides:
        places = [at + 1 for at in order] or list(range(1, len(values) + 1))
        shown = sorted(zip(places, values, sources, strict=True))
        series.append(
            Series(
                side.name,
                [place for place, _, _ in shown],
                [math.exp(value) for _, value, _ in shown],
                marks=["full"] * len(shown),
                names=[source for _, _, source in shown],
            )
        )
    where = "Run, by time" if cell.order.is_known else "Run, in the order of files"
    names = list(dict.fromkeys(cell.load for cell in difference.cells))
    title = f"{cell.name[:1].upper()}{cell.name[1:]} of each run" + (f": {load}" if len(names) > 1 else "")
    return Lines(f"runs-{names.index(load) + 1}", title, Axis(where, log=False), Axis(_axis(cell)), series)


def _axis(cell: Cell) -> str:
    units = {"iops": "IOPS", "mb_per_s": "MB/s", "elapsed_s": "s"}
    return f"{cell.name[:1].upper()}{cell.name[1:]} ({units.get(cell.figure, 'ms')})"
