"""``Limit``: a limit on the degradation by a change, for continuous integration. A limit is met, exceeded or
undecided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from headstack._native import InputError
from headstack.comparison.differences.cells import ALPHA, Cell, share_text
from headstack.comparison.differences.estimates import holm_corrected
from headstack.comparison.differences.runs import MORE_IS_BETTER, NAMES
from headstack.io.values import percent

LimitVerdict = Literal["met", "exceeded", "undecided"]
SLOWER_FIGURES = ("iops", "mean_ms", "elapsed_s")
"""Figures that the limit ``slower`` applies to."""
ALLOWED = {"slower": SLOWER_FIGURES, **{name: (figure,) for figure, name in NAMES.items()}}


@dataclass(frozen=True)
class Limit:
    """A limit such as ``slower=3%``."""

    text: str
    figures: tuple[str, ...]
    share: float

    def logarithm(self, cell: Cell) -> float:
        """Returns the limit as a logarithm of the degradation."""
        return -math.log1p(-self.share) if cell.figure in MORE_IS_BETTER else math.log1p(self.share)


@dataclass(frozen=True)
class LimitResult:
    """A limit on a figure under a load, with its verdict."""

    limit: Limit
    cell: Cell
    verdict: LimitVerdict

    @property
    def in_words(self) -> str:
        """Verdict in words."""
        cell, of = self.cell, f"{self.cell.load}: {self.cell.name}" if self.cell.load else self.cell.name
        match self.verdict:
            case "met":
                return f"{of}: {self.limit.text} is met"
            case "exceeded":
                return f"{of} is worse by {share_text(_share(cell, cell.worse))}, more than {self.limit.text}"
            case "undecided":
                undecided = f"{of}: undecided whether {self.limit.text} is met; make more runs"
                if math.isinf(cell.worst):
                    return f"{undecided} of each side, because one run does not show the variation between runs"
                return f"{undecided}; it may be worse by {share_text(_share(cell, cell.worst), up=True)}"
        assert_never(self.verdict)


def _share(cell: Cell, worse: float) -> float:
    """Converts a logarithm of the degradation to the reported share."""
    return -math.expm1(-worse) if cell.figure in MORE_IS_BETTER else math.expm1(min(worse, 700.0))


def limits_of(texts: Sequence[str]) -> list[Limit]:
    """Parses a comma-separated list of limits, for example ``slower=3%,p99=5%``."""
    return [_limit(text.strip()) for joined in texts for text in joined.split(",")]


def _limit(text: str) -> Limit:
    name, equals, share = text.partition("=")
    if not equals or name not in ALLOWED:
        raise InputError(
            f"--fail-if: {text!r} is not a limit; use {' or '.join(ALLOWED)} with a share, for example slower=3%"
        )
    fraction = percent("--fail-if", share) / 100
    if not 0 < fraction < 1:
        raise InputError(f"--fail-if: {text}: must be above 0 % and below 100 %")
    return Limit(text, ALLOWED[name], fraction)


def judge_limits(limits: Sequence[Limit], cells: Sequence[Cell]) -> list[LimitResult]:
    """Returns the verdict of each limit on each figure that it applies to.

    A limit is exceeded if a difference is significant (5 % for all limits together) and the estimate reaches the limit;
    met if our side is better than the limit with 95 % confidence; otherwise undecided. Raises ``InputError`` for a
    limit on a figure that no run has.
    """
    questions = [(limit, cell) for limit in limits for cell in cells if cell.figure in limit.figures]
    for limit in limits:
        if not any(limited is limit for limited, _ in questions):
            raise InputError(f"--fail-if: {limit.text}: not all runs have this figure")
    ps = holm_corrected(
        [cell.estimate.p if math.isfinite(cell.p_held) else _p_at_any_time(cell) for _, cell in questions]
    )
    results = []
    for (limit, cell), p in zip(questions, ps, strict=True):
        verdict: LimitVerdict = "met" if cell.worst < limit.logarithm(cell) else "undecided"
        if p <= ALPHA and cell.worse >= limit.logarithm(cell):
            verdict = "exceeded"
        results.append(LimitResult(limit, cell, verdict))
    return results


def _p_at_any_time(cell: Cell) -> float:
    """Returns 0 for a difference that is significant at any stopping time, otherwise 1."""
    return 0.0 if cell.verdict == "differs" else 1.0
