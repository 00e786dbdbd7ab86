"""``Difference``: the difference between two sets of runs and its significance, with the run as the unit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headstack._native import InputError
from headstack.comparison.differences.cells import cells_of, questions, with_verdicts
from headstack.comparison.differences.report import differences, report_of
from headstack.comparison.differences.runs import FIGURES, NAMES, Side, Source, loads_of, side_of
from headstack.io.values import choice, percent
from headstack.results.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headstack.report.figures import Report
from headstack.comparison.differences.estimated import Estimated

SAME, DETECT = "1%", "3%"
"""Default share within which figures are equivalent, and default difference that further runs should detect."""


class Difference(Estimated):
    """Our runs compared with theirs, figure by figure and load by load."""

    def report(self) -> Report:
        """Returns all results as a report, which notebooks show.

        >>> a = [hs.run("cheetah-x15-36lp", "file-server", requests=300, seed=n) for n in (1, 2, 3)]
        >>> [section.title for section in hs.difference(a, a).report().sections]
        ['Differences', 'Runs']
        """
        return report_of(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plots the differences with their intervals. Needs the extra ``headstack[plot]``.

        >>> a = [hs.run("cheetah-x15-36lp", "file-server", requests=300, seed=n) for n in (1, 2, 3)]
        >>> _ = hs.difference(a, a).plot("differences.png")
        """
        from headstack.report.draw import draw  # start-up time

        return draw(differences(self), path)


def share_of(name: str, text: str | float) -> float:
    """Parses a share between 0 and 1, such as 3 %."""
    share = percent(name, str(text)) / 100
    if not 0 < share < 1:
        raise InputError(f"{text}: must be above 0 % and below 100 %", key=name)
    return share


def figures_of(text: str | None) -> tuple[str, ...]:
    """Returns the figures in a comma-separated list of names, or all figures by default."""
    if text is None:
        return FIGURES
    by_name = {name: figure for figure, name in NAMES.items()}
    return tuple(by_name[choice("--figures", name.strip(), tuple(by_name))] for name in text.split(","))


def difference(
    ours: Source | Sequence[Source],
    theirs: Source | Sequence[Source],
    *,
    same_within: str | float = SAME,
    detect: str | float = DETECT,
    figures: str | None = None,
) -> Difference:
    """Tests whether the difference between two sets of runs is significant.

    Each set is one or several sources. A source is a ``Results`` object, which counts as one run; a file of results or
    of fio's JSON; a folder or a pattern of such files; or a baseline. Runs that alternate in time are paired. A
    difference is reported if it is significant at 5 % over all figures together; figures are equivalent if their 90 %
    interval is within ``same_within``; otherwise the result is undecided, with the number of further runs that would
    detect a difference of size ``detect`` with a probability of 90 %.

    Raises ``InputError`` if a file cannot be read, or if the sides have no load in common.

    >>> a = [hs.run("cheetah-x15-36lp", "file-server", requests=300, seed=n) for n in (1, 2, 3)]
    >>> b = [hs.run("atlas-10k-iii-73", "file-server", requests=300, seed=n) for n in (1, 2, 3)]
    >>> {cell.verdict for cell in hs.difference(a, b)} <= {"differs", "same", "too short"}
    True
    """
    sides = [side_of(_several(sources), name) for sources, name in ((ours, "first"), (theirs, "second"))]
    return compare_sides(sides[0], sides[1], share_of("same_within", same_within), share_of("detect", detect), figures)


def _several(sources: Source | Sequence[Source]) -> list[Source]:
    return [sources] if isinstance(sources, str | os.PathLike | Results) else list(sources)


def compare_sides(
    ours: Side, theirs: Side, same: float, detect: float, figures: str | None, at_any_time: bool = False
) -> Difference:
    """Computes the difference of parsed runs."""
    named, left_out = loads_of(ours.runs, theirs.runs)
    if not named:
        # If each side has a single load, both are compared even if their names differ.
        each = [{load for run in side.runs for load in run.outcomes} for side in (ours, theirs)]
        if [len(names) for names in each] != [1, 1]:
            mine, yours = ("; ".join(sorted(names)[:3]) for names in each)
            raise InputError(f"the sides have no load in common: first {mine}; second {yours}")
        (mine,), (yours,) = each
        named, left_out = [(f"{mine} against {yours}", mine, yours)], []
    selected = figures_of(figures)
    cells = [cell for load in named for cell in cells_of(ours.runs, theirs.runs, load, selected)]
    if not cells:
        raise InputError(f"no figure of {', '.join(NAMES[figure] for figure in selected)} is in every run")
    own, follows = questions(cells)
    judged = with_verdicts(own, same, detect, at_any_time)
    return Difference(ours, theirs, tuple(judged), same, detect, tuple(follows), tuple(left_out), at_any_time)
