"""``Cell``: one figure under one load on both sides, with the difference and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from headstack.comparison.differences.estimates import (
    NO_ESTIMATE,
    Estimate,
    batches,
    holm_corrected,
    is_mixed,
    outliers,
    paired,
    sequence,
    unpaired,
)
from headstack.comparison.differences.runs import MORE_IS_BETTER, NAMES, Run, logarithms
from headstack.comparison.pairs import CERTAIN
from headstack.io.counts import agreed

Verdict = Literal["differs", "same", "too short"]
ALPHA = 0.05
"""Family-wise error rate: probability that a comparison of equal systems shows a difference in any figure."""
EQUAL_LEVEL = 0.9
"""Two one-sided tests at 5 %: the 90 % interval is within the bounds."""
RUNS_MAX = 200
"""Maximum practical number of runs per side."""
FOLLOWING_SHARE = 1e-3
"""Relative deviation below which bandwidth follows throughput and is not tested separately."""


@dataclass(frozen=True)
class Order:
    """The order in which the runs of both sides ended, if known."""

    ours: tuple[int, ...] = ()
    theirs: tuple[int, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether the times of all runs are known."""
        return bool(self.ours)

    def pairs(self) -> list[tuple[int, int]] | None:
        """Returns the indexes of pairs of runs next to each other in time, one of each side; ``None`` if the runs are
        not paired."""
        if len(self.ours) != len(self.theirs) or len(self.ours) < 2:
            return None
        sides = sorted(
            [(at, 0, n) for n, at in enumerate(self.ours)] + [(at, 1, n) for n, at in enumerate(self.theirs)]
        )
        pairs = []
        for (_, side, n), (_, other_side, m) in zip(sides[::2], sides[1::2], strict=True):
            if side == other_side:
                return None
            pairs.append((n, m) if side == 0 else (m, n))
        return pairs


def order_of(ours: Sequence[Run], theirs: Sequence[Run]) -> Order:
    """Returns the order of the runs by time; the order is unknown if a time is missing or two times are equal."""
    times = [run.at_s for run in (*ours, *theirs)]
    stamps = [at for at in times if at is not None]
    if len(stamps) < len(times) or len(set(stamps)) < len(stamps):
        return Order()
    ranks = {at: rank for rank, at in enumerate(sorted(stamps))}
    places = [ranks[at] for at in stamps]
    return Order(tuple(places[: len(ours)]), tuple(places[len(ours) :]))


@dataclass(frozen=True)
class Cell:
    """A figure under a load on both sides, with its estimate and verdict."""

    load: str
    figure: str
    ours: float
    theirs: float
    """Geometric mean over the runs of the other side, like ``ours``."""
    estimate: Estimate
    apart: tuple[str, ...]
    """Source files of outliers among the runs of their side."""
    values: tuple[tuple[float, ...], tuple[float, ...]]
    """Logarithms of the figure on each side, in the order of the runs."""
    sources: tuple[tuple[str, ...], tuple[str, ...]]
    """Source files of the runs of each side."""
    order: Order
    p_held: float = 1.0
    """P-value corrected for all cells of the comparison."""
    interval: tuple[float, float] = (-math.inf, math.inf)
    """95 % confidence interval of the logarithm of the ratio; valid at any stopping time, and for all cells
    together, if runs continue until a decision."""
    equal: tuple[float, float] = (-math.inf, math.inf)
    """The 90 % interval, for equivalence within bounds."""
    verdict: Verdict = "too short"
    least_seen: float = math.inf
    """Smallest difference, as a share, that this number of runs would detect with a probability of 80 %."""
    more_runs: int | None = None
    """Number of further runs per side to detect the requested difference; ``None`` if the spread is unknown."""
    reach: float | None = None
    """The smallest difference, as a share, that ``RUNS_MAX`` runs per side would detect."""
    within: tuple[float, float] | None = None
    """With one run of each side, the 95 % interval from the variation within the runs, as logarithms."""

    @property
    def name(self) -> str:
        """Display name of the figure."""
        return NAMES[self.figure]

    @property
    def worse(self) -> float:
        """Logarithm of the relative degradation of our side."""
        return -self.estimate.log if self.figure in MORE_IS_BETTER else self.estimate.log

    @property
    def worst(self) -> float:
        """One-sided 95 % upper confidence limit of the degradation."""
        return -self.equal[0] if self.figure in MORE_IS_BETTER else self.equal[1]

    def in_words(self, same: float, detect: float) -> str:
        """Returns the verdict in words, with the difference or what is missing for a verdict."""
        match self.verdict:
            case "differs":
                return self._size()
            case "same":
                most = max(abs(math.expm1(end)) for end in self.equal)
                return (
                    f"no difference larger than {share_text(most, up=True)} (90 %; {share_text(same)} counts as none)"
                )
            case "too short":
                return self._missing(detect)
        assert_never(self.verdict)

    def _size(self) -> str:
        ends = sorted(abs(math.expm1(min(end, 700.0))) for end in self.interval)
        return f"{self.direction} by {between(*ends)}"

    @property
    def direction(self) -> str:
        """The direction of our difference, such as ``higher``."""
        words = ("higher", "lower") if self.figure in MORE_IS_BETTER else ("longer", "shorter")
        return words[self.estimate.log < 0]

    def _missing(self, detect: float) -> str:
        if self.more_runs is None:
            return "undecided: one run does not show the variation between runs"
        could = f"undecided: {share_text(self.least_seen, up=True)} would have been detected"
        if self.more_runs == 0:
            return f"{could}; as many runs again would narrow it"
        more = f"{self.more_runs:,} more {agreed(self.more_runs, 'run', 'runs')}"
        further_runs = f"{could}; {more} of each would detect {share_text(detect)}"
        if self.reach is None or self.more_runs + min(self.estimate.counts) <= RUNS_MAX:
            return further_runs
        return f"{further_runs}, and {RUNS_MAX} in total {share_text(self.reach, up=True)}"


def share_text(share: float, up: bool = False) -> str:
    """Formats a share in percent with two digits; a bound is rounded up."""
    percent = 100 * share
    if not math.isfinite(percent):
        return "nothing"
    digits = 2 if percent < 0.095 else 1 if percent < 9.95 else 0
    step = 10.0**-digits
    shown = math.ceil(percent / step - 1e-9) * step if up else percent
    return f"{shown:,.{digits}f}".rstrip("0").rstrip(".") + " %" if digits else f"{shown:,.0f} %"


def between(low: float, high: float) -> str:
    """Formats an interval in percent."""
    first, last = share_text(low).removesuffix(" %"), share_text(high)
    return last if f"{first} %" == last else f"{first} to {last}"


def cells_of(
    ours: Sequence[Run], theirs: Sequence[Run], loads: tuple[str, str, str], figures: Sequence[str]
) -> list[Cell]:
    """Returns the figures that all runs with a load have. ``load`` has a name for both sides, and the name on each
    side."""
    _, our_load, their_load = loads
    own = [run for run in ours if our_load in run.outcomes and run.outcomes[our_load].figures]
    others = [run for run in theirs if their_load in run.outcomes and run.outcomes[their_load].figures]
    if not own or not others:
        return []
    order = order_of(own, others)
    cells = (_cell_of(own, others, order, loads, figure) for figure in figures)
    return [cell for cell in cells if cell is not None]


def _cell_of(
    ours: Sequence[Run], theirs: Sequence[Run], order: Order, loads: tuple[str, str, str], figure: str
) -> Cell | None:
    load, our_load, their_load = loads
    sides = logarithms(ours, our_load, figure), logarithms(theirs, their_load, figure)
    if sides[0] is None or sides[1] is None:
        return None
    values = sides[0], sides[1]
    resolution = max(run.resolution for run in (*ours, *theirs)) if figure.startswith("p") else 0.0
    estimate = _estimate(values, order, resolution)
    if estimate is NO_ESTIMATE and len(ours) == len(theirs) == 1:
        courses = ours[0].outcomes[our_load].course, theirs[0].outcomes[their_load].course
        if all(figure in course for course in courses):
            estimate = batches(courses[0][figure], courses[1][figure])
    apart = [runs[n].source for runs, side in zip((ours, theirs), values, strict=True) for n in outliers(side)]
    means = [math.exp(math.fsum(side) / len(side)) for side in values]
    if estimate.design == "none":
        estimate = replace(NO_ESTIMATE, log=math.log(means[0] / means[1]), counts=(len(ours), len(theirs)))
    sources = tuple(run.source for run in ours), tuple(run.source for run in theirs)
    kept = tuple(values[0]), tuple(values[1])
    within = None
    if len(ours) == len(theirs) == 1 and estimate.design == "none":
        errors = [run.outcomes[name].within.get(figure) for run, name in ((ours[0], our_load), (theirs[0], their_load))]
        if all(errors):
            half = CERTAIN * math.hypot(*(error for error in errors if error))
            within = estimate.log - half, estimate.log + half
    return Cell(load, figure, means[0], means[1], estimate, tuple(apart), kept, sources, order, within=within)


def _estimate(values: tuple[list[float], list[float]], order: Order, resolution: float) -> Estimate:
    ours, theirs = values
    if min(len(ours), len(theirs)) < 2:
        return NO_ESTIMATE
    pairs = order.pairs() if len(ours) > 2 else None
    if pairs is not None:
        ratios = [ours[n] - theirs[m] for n, m in pairs]
        first = [1 if order.ours[n] < order.theirs[m] else -1 for n, m in pairs]
        return paired(ratios, first, resolution)
    is_of_use = order.is_known and is_mixed(order.ours, order.theirs)
    return unpaired(ours, theirs, [*order.ours, *order.theirs] if is_of_use else (), resolution)


def with_verdicts(cells: Sequence[Cell], same: float, detect: float, at_any_time: bool) -> list[Cell]:
    """Returns the cells with verdicts that account for their number."""
    if at_any_time:
        return [_at_any_time(cell, same, detect, ALPHA / len(cells)) for cell in cells]
    p_held = holm_corrected([cell.estimate.p for cell in cells])
    return [_judged(cell, p, same, detect, ALPHA / len(cells)) for cell, p in zip(cells, p_held, strict=True)]


def _judged(cell: Cell, p_held: float, same: float, detect: float, strict: float) -> Cell:
    estimate = cell.estimate
    return _with_sizes(
        replace(
            cell,
            p_held=p_held,
            interval=estimate.interval(1 - ALPHA),
            equal=estimate.interval(EQUAL_LEVEL),
            verdict="differs" if p_held <= ALPHA else "too short",
        ),
        same,
        detect,
        strict,
    )


def _at_any_time(cell: Cell, same: float, detect: float, strict: float) -> Cell:
    """Returns the verdict for pairs that may have been evaluated after every pair. The error probability is split
    evenly over the cells."""
    pairs = cell.order.pairs() or []
    ratios = [cell.values[0][n] - cell.values[1][m] for n, m in pairs]
    interval, equal = sequence(ratios, strict), sequence(ratios, 2 * strict)
    verdict: Verdict = "differs" if interval[0] > 0 or interval[1] < 0 else "too short"
    return _with_sizes(
        replace(cell, interval=interval, equal=equal, verdict=verdict, p_held=math.nan), same, detect, strict
    )


def _with_sizes(cell: Cell, same: float, detect: float, strict: float) -> Cell:
    bound = math.log1p(same)
    verdict = cell.verdict
    if verdict == "too short" and -bound <= cell.equal[0] and cell.equal[1] <= bound:
        verdict = "same"
    needed = cell.estimate.runs_to_detect(detect, strict)
    more = None if needed is None else max(0, needed - min(cell.estimate.counts))
    reach = None if needed is None else cell.estimate.smallest_detected(RUNS_MAX, strict)
    return replace(cell, verdict=verdict, least_seen=cell.estimate.least_seen(strict), more_runs=more, reach=reach)


def questions(cells: Sequence[Cell]) -> tuple[list[Cell], list[str]]:
    """Returns the cells to test separately, and the loads whose bandwidth follows their throughput."""
    follows = []
    for load in dict.fromkeys(cell.load for cell in cells):
        both = {cell.figure: cell for cell in cells if cell.load == load}
        if "iops" in both and "mb_per_s" in both and _is_alike(both["iops"], both["mb_per_s"]):
            follows.append(load)
    return [cell for cell in cells if cell.figure != "mb_per_s" or cell.load not in follows], follows


def _is_alike(first: Cell, second: Cell) -> bool:
    sides = zip(first.values, second.values, strict=True)
    apart = [a - b for mine, yours in sides for a, b in zip(mine, yours, strict=True)]
    return max(apart) - min(apart) < FOLLOWING_SHARE
