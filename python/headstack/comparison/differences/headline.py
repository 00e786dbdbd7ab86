"""The answer of a comparison of runs in one sentence, and the next steps if there is no verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from headstack.comparison.differences.cells import RUNS_MAX, Cell, share_text
from headstack.io.counts import agreed, counted
from headstack.results.words import UNDECIDED

CELLS_MAX = 4
"""Maximum number of figures that the sentence names."""
UNITS = {"iops": "IOPS", "mb_per_s": "MB/s", "elapsed_s": "s"}
"""Units of figures; a figure that is not listed is a time in ms."""
REPEATS = 5
"""Number of runs of each side to suggest if there is only one run."""


def unit_of(figure: str) -> str:
    """Returns the unit of a figure.

    >>> unit_of("iops"), unit_of("p99_ms")
    ('IOPS', 'ms')
    """
    return UNITS.get(figure, "ms")


def digits(value: float) -> str:
    """Formats a figure with four digits, or all of a longer integer part.

    >>> digits(0.1), digits(9923.4), digits(12345.6)
    ('0.1000', '9,923', '12,346')
    """
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:#.4g}".rstrip(".")


def headline_of(cells: Sequence[Cell], names: tuple[str, str]) -> str:
    """Returns a sentence that states which of two sides is better, by how much, with the interval, or that there are
    not enough data for a verdict."""
    ours, theirs = names
    differing = [cell for cell in cells if cell.verdict == "differs"]
    if differing:
        first, *others = differing[:CELLS_MAX]
        figures = [f"{name_of(cells, first)} {size_of(first, with_level=True)}"]
        figures += [f"{name_of(cells, cell)} {size_of(cell)}" for cell in others]
        more = len(differing) - len(figures)
        rest = f"; {more} more of {counted(len(cells), 'figure')} {agreed(more, 'differs', 'differ')}" if more else ""
        return f"{ours} {_verb(differing)} {theirs}: {', '.join(figures)}{rest}"
    equivalent = [cell for cell in cells if cell.verdict == "same"]
    if len(equivalent) == len(cells):
        largest = max(abs(math.expm1(end)) for cell in equivalent for end in cell.equal)
        return f"{ours} and {theirs} are equivalent: no difference above {share_text(largest, up=True)} (90 % interval)"
    first = next(cell for cell in cells if cell.verdict == "too short")
    count = len(equivalent)
    rest = f"; {count} of {counted(len(cells), 'figure')} {agreed(count, 'is', 'are')} equivalent" * (count > 0)
    return f"{UNDECIDED}: {_undecided(cells, names, first)}{rest}"


def size_of(cell: Cell, with_level: bool = False) -> str:
    """Formats a significant difference with its 95 % interval: ``23 % lower (22 to 24 %)``."""
    ends = sorted(abs(math.expm1(min(end, 700.0))) for end in cell.interval)
    low, high = (share_text(end) for end in ends)
    level = "95 % interval " if with_level else ""
    return (
        f"{share_text(abs(math.expm1(cell.estimate.log)))} {cell.direction} ({level}{low.removesuffix(' %')} to {high})"
    )


def name_of(cells: Sequence[Cell], cell: Cell) -> str:
    """Returns the name of a figure, with its load if there are several."""
    has_loads = len({other.load for other in cells}) > 1
    name = f"{cell.name} latency" if unit_of(cell.figure) == "ms" else cell.name
    return f"{name} of {cell.load}" if cell.load and has_loads else name


def _verb(cells: Sequence[Cell]) -> str:
    is_worse = {cell.worse > 0 for cell in cells}
    if len(is_worse) > 1:
        return "differs from"
    return "is slower than" if is_worse == {True} else "is faster than"


def _undecided(cells: Sequence[Cell], names: tuple[str, str], cell: Cell) -> str:
    """Describes an undecided figure: the estimate, its interval, and why there is no verdict."""
    ours, theirs = names
    name = name_of(cells, cell)
    if not math.isfinite(cell.interval[1]):
        values = f"{digits(cell.ours)} and {digits(cell.theirs)} {unit_of(cell.figure)}"
        size = share_text(abs(math.expm1(cell.estimate.log)))
        within = f"; {_signed(cell.within)} from the variation within the runs" if cell.within else ""
        runs = "one run of each does" if cell.estimate.counts == (1, 1) else "one run does"
        return (
            f"{ours} has {size} {cell.direction} {name} than {theirs} ({values}{within}), but {runs} not show how much "
            "runs vary"
        )
    return (
        f"{name} of {ours} differs by {_percent(cell.estimate.log)} % from {theirs} (95 % interval "
        f"{_signed(cell.interval)}), which may be chance"
    )


def _percent(logarithm: float) -> str:
    percent = 100 * math.expm1(min(logarithm, 700.0))
    return f"{percent:+,.0f}" if abs(percent) >= 99.5 else f"{percent:+.2g}"


def _signed(ends: tuple[float, float]) -> str:
    return f"{_percent(ends[0])} to {_percent(ends[1])} %"


def next_steps(cells: Sequence[Cell], tell: float, files: tuple[str, str] | None = None) -> list[str]:
    """Returns the next step to a verdict on differences of size ``tell``. ``files`` are our file and their file, if
    each side is one file."""
    undecided = [cell for cell in cells if cell.verdict == "too short"]
    if not undecided:
        return []
    if any(not math.isfinite(cell.interval[1]) for cell in undecided):
        example = "headstack compare NEW*.json --against OLD*.json"
        if files is not None:
            example = f"headstack compare {_pattern(files[0])} --against {_pattern(files[1])}"
        return [
            f"make {REPEATS} runs of each, alternating, then: {example}",
            "or let headstack alternate them: headstack compare --run 'NEW_COMMAND {}' --run 'OLD_COMMAND {}'",
        ]
    more = max((cell.more_runs or 0 for cell in undecided), default=0)
    if not more:
        return []
    reaches = [cell.reach for cell in undecided if cell.reach is not None]
    limit = ""
    if reaches and more + min(undecided[0].estimate.counts) > RUNS_MAX:
        limit = f"; {RUNS_MAX} runs of each would detect {share_text(max(reaches), up=True)}"
    return [f"{counted(more, 'more run')} of each would detect {share_text(tell)} in every figure{limit}"]


def _pattern(file: str) -> str:
    """Returns a pattern for repeats of a run: ``after.json`` becomes ``after*.json``."""
    return re.sub(r"(\.\w+)$", r"*\1", file)
