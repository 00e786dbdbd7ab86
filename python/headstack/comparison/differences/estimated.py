"""``Estimated``, the data of a difference between two sets of runs: estimates, intervals and conclusions."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from headstack._native import Field
from headstack.comparison.differences.cells import Cell
from headstack.comparison.differences.estimates import is_mixed
from headstack.comparison.differences.headline import digits, headline_of, name_of, unit_of
from headstack.comparison.differences.runs import Side
from headstack.io import tables
from headstack.io.columns import Column, Figures, Names, Prose, Words, format_repr
from headstack.io.counts import counted
from headstack.io.stored import Stored
from headstack.io.tables import Tabular

STORED = Stored("difference")

Value: TypeAlias = str | int | float | bool | None
"""Value of a cell in the table of comparisons."""

LABEL_MAX = 14
"""Maximum length in characters of a file name that heads a column."""

CORRELATED_FACTOR = 2.0
"""Multiple of the chance level above which consecutive runs count as correlated."""

FIELDS = (
    Field("load", "text", "", "the load of both sides"),
    Field("figure", "text", "", "compared figure: throughput, bandwidth, mean, p50, p99, p99.9, elapsed"),
    Field("ours", "figure", "", "geometric mean over our runs, in 1/s, 10^6 bytes/s, ms, or s (elapsed)"),
    Field("theirs", "figure", "", "geometric mean over theirs"),
    Field("difference", "figure", "", "ours over theirs, minus 1, without the drift if one is removed"),
    Field("difference_low", "figure", "", "lower bound of its 95 % confidence interval"),
    Field("difference_high", "figure", "", "upper bound"),
    Field("equal_low", "figure", "", "lower bound of its 90 % confidence interval, which decides equivalence"),
    Field("equal_high", "figure", "", "upper bound"),
    Field("verdict", "text", "", "differs, same, or too short"),
    Field("p", "figure", "", "p-value by Student's t"),
    Field("p_held", "figure", "", "p-value corrected for all cells of the comparison (Holm)"),
    Field("p_permuted", "figure", "", "p-value by permutation of the runs"),
    Field("p_least", "figure", "", "smallest p-value that this number of runs can give"),
    Field("design", "text", "", "paired, unpaired, batches of one run each, or none"),
    Field("with_drift", "flag", "", "whether a drift over the order of the runs is removed"),
    Field("correlation", "figure", "", "correlation of consecutive pairs or runs"),
    Field("runs_ours", "count", "", "our runs, pairs, or batches"),
    Field("runs_theirs", "count", "", "theirs"),
    Field("least_seen", "figure", "", "smallest difference that these runs detect with 80 % power"),
    Field("more_runs", "count", "", "further runs of each side to detect the requested difference with 90 % power"),
    Field("reach", "figure", "", "smallest difference that 200 runs of each side would detect"),
    Field(
        "pairs_below",
        "count",
        "",
        "pairs far below the others, if a trimmed mean decides because of long tails",
    ),
    Field(
        "pairs_above",
        "count",
        "",
        "pairs far above the others, if a trimmed mean decides because of long tails",
    ),
    Field("apart", "text", "", "outliers among the runs of each side"),
)
"""Columns of the table of comparisons."""


@dataclass(frozen=True, repr=False)
class Estimated(Tabular):
    """The difference between two sets of runs with its conclusions. ``Difference`` adds pictures and files."""

    ours: Side
    theirs: Side
    cells: tuple[Cell, ...]
    same: float
    detect: float
    follows: tuple[str, ...]
    """Loads whose bandwidth is not tested separately."""
    left_out: tuple[str, ...]
    """Loads that only one side has."""
    at_any_time: bool

    fields = FIELDS

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Returns a row for each question."""
        return self.figures()

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __repr__(self) -> str:
        return format_repr(*self.shown(), self.headline, "to_csv has them")

    @property
    def is_decided(self) -> bool:
        """Whether every question has an answer."""
        return all(cell.verdict != "too short" for cell in self.cells)

    @cached_property
    def design(self) -> str:
        """Describes the design of the runs."""
        estimate = self.cells[0].estimate
        ours, theirs = estimate.counts
        match estimate.design:
            case "paired":
                drift = ", corrected for drift over their order" if estimate.with_drift else ""
                return f"{ours} pairs of consecutive runs{drift}"
            case "unpaired":
                drift = ", corrected for drift over their order" if estimate.with_drift else ""
                return f"{counted(ours, 'run')} against {theirs}{drift}"
            case "batches":
                return f"one run each, in {ours} and {theirs} batches of 5 correlation times or more"
            case "none":
                return f"{counted(ours, 'run')} against {counted(theirs, 'run')}"

    @property
    def headline(self) -> str:
        """Returns the answer in a sentence."""
        return headline_of(self.cells, (self.ours.name, self.theirs.name))

    def shown(self) -> tuple[list[Column], list[list[str]]]:
        """Returns the columns, and the cells as text.

        >>> a = [hs.run("cheetah-x15-36lp", "file-server", requests=300, seed=n) for n in (1, 2, 3)]
        >>> b = [hs.run("atlas-10k-iii-73", "file-server", requests=300, seed=n) for n in (1, 2, 3)]
        >>> columns, cells = hs.difference(a, b).shown()
        >>> [cell[0] for cell in cells]
        ['throughput, IOPS', 'bandwidth, MB/s', 'mean, ms', 'p50, ms', 'p99, ms', 'p99.9, ms']
        """
        has_loads = len({cell.load for cell in self.cells}) > 1
        columns: list[Column] = [
            *([Names("load")] if has_loads else []),
            Names("figure"),
            *(Figures(label, 2) for label in self._labels()),
            Figures("difference\n95 % interval", 0),
            Figures("p", 3),
            Figures("p\n(Holm)", 1),
            Figures("p\npermuted", 4),
            Prose("verdict", 0, least=24),
            Words("outliers", 5),
        ]
        if not any(math.isfinite(cell.interval[1]) for cell in self.cells):
            # One run of each has no interval, and no p-value.
            columns[-6:] = [Figures("difference\n%", 0)]
            return columns, [
                [
                    *([cell.load] if has_loads else []),
                    f"{cell.name}, {unit_of(cell.figure)}",
                    digits(cell.theirs),
                    digits(cell.ours),
                    _signed(math.expm1(cell.estimate.log)),
                ]
                for cell in self.cells
            ]
        rows = []
        for cell in self.cells:
            low, high = (math.expm1(min(end, 700.0)) for end in cell.interval)
            ends = f"{_signed(low)} to {_signed(high)} %" if math.isfinite(cell.interval[1]) else "unknown"
            permuted = cell.estimate.p_permuted
            rows.append(
                [
                    *([cell.load] if has_loads else []),
                    f"{cell.name}, {unit_of(cell.figure)}",
                    digits(cell.theirs),
                    digits(cell.ours),
                    f"{_signed(math.expm1(cell.estimate.log))} %\n{ends}",
                    f"{cell.estimate.p:.2g}",
                    "" if math.isnan(cell.p_held) else f"{cell.p_held:.2g}",
                    "" if permuted is None else f"{permuted:.2g}",
                    cell.in_words(self.same, self.detect),
                    "\n".join(cell.apart),
                ]
            )
        return columns, rows

    def _labels(self) -> tuple[str, str]:
        """Returns headings for the baseline and our side: the names of the files, if the names are short and differ."""
        stems = [Path(side.name).stem for side in (self.theirs, self.ours)]
        if stems[0] == stems[1] or any(len(stem) > LABEL_MAX or "*" in stem for stem in stems):
            return "baseline", "new"
        return stems[0], stems[1]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on the runs, which may require action, then on the method."""
        return (*self.remarks_on_runs, *self.remarks_on_method)

    @cached_property
    def remarks_on_method(self) -> tuple[str, ...]:
        """Remarks that describe the method and its limitations, and require no action."""
        remarks = [f"{self.design}; each run is one sample, on a logarithmic scale"]
        if self.at_any_time:
            remarks.append("intervals are valid at any stopping time, and for all figures together")
        elif len(self.cells) > 1:
            remarks.append(f"{len(self.cells)} questions at once: 5 % for all of them together (Holm)")
        estimate = self.cells[0].estimate
        if estimate.p_least is not None and estimate.p_least > 0.05:
            remarks.append(
                f"few runs: permutations give p = {estimate.p_least:.2g} or more, so verdicts assume normal "
                "distributions"
            )
        if estimate.design == "batches":
            remarks.append("one run of each: these intervals do not include the variation between runs")
        remarks += ["bandwidth follows throughput and is not tested separately"] if self.follows else []
        return tuple(remarks)

    @cached_property
    def remarks_on_runs(self) -> tuple[str, ...]:
        """Remarks on the runs, which may require action."""
        loads = list(dict.fromkeys(cell.load for cell in self.cells))
        remarks = [f"of {loads[0]}"] if len(loads) == 1 and loads[0] else []
        remarks += self._tail_remarks()
        remarks += self._effort()
        estimate, order = self.cells[0].estimate, self.cells[0].order
        if order.is_known and estimate.design == "unpaired" and not is_mixed(order.ours, order.theirs):
            remarks.append("all runs of one side came first: a drift would look like a difference; alternate the runs")
        elif not order.is_known and estimate.design == "unpaired":
            remarks.append("the runs have no times, so they are not paired")
        alike = [c for c in self.cells if c.estimate.correlation is not None and self._is_alike(c)]
        if alike:
            most = max(alike, key=lambda c: c.estimate.correlation or 0.0)
            remarks.append(
                f"consecutive runs are correlated ({most.name}: {most.estimate.correlation:.2f}): intervals may be too "
                "narrow"
            )
        apart = list(dict.fromkeys(source for cell in self.cells for source in cell.apart))
        remarks += [f"outliers, included: {', '.join(apart)}"] if apart else []
        remarks += [f"only on one side, left out: {'; '.join(self.left_out)}"] if self.left_out else []
        runs = (*self.ours.runs, *self.theirs.runs)
        idle = [run.source for run in runs if any(not outcome.figures for outcome in run.outcomes.values())]
        remarks += [f"no request completed, left out: {', '.join(idle)}"] if idle else []
        failed = [run.source for run in runs if run.errors]
        remarks += [f"some requests failed, the others are included: {', '.join(failed)}"] if failed else []
        remarks += [f"left out: {bad}" for bad in (*self.ours.bad, *self.theirs.bad)]
        return tuple(remarks)

    def _tail_remarks(self) -> list[str]:
        """Describes figures whose verdict is from a trimmed mean of the pairs, with the mean of all pairs."""
        remarks = []
        for cell in self.cells:
            estimate = cell.estimate
            if estimate.stalls is None or estimate.of_all is None:
                continue
            below, above = estimate.stalls
            low, high = (100 * math.expm1(min(end, 700.0)) for end in estimate.of_all)
            remarks.append(
                f"{name_of(self.cells, cell)}: pairs have long tails, equally on both sides ({below} far below "
                f"the others, {above} far above): the middle 60 % decide; the mean of all pairs differs by "
                f"{low:+.2g} to {high:+.2g} %"
            )
        return remarks

    def _effort(self) -> list[str]:
        """Estimates the duration of further runs, if the runs have times."""
        more = max((cell.more_runs or 0 for cell in self.cells if cell.verdict == "too short"), default=0)
        times = [run.at_s for run in (*self.ours.runs, *self.theirs.runs)]
        stamps = [at for at in times if at is not None]
        if not more or len(stamps) < len(times) or len(stamps) < 3:
            return []
        minutes = 2 * more * (max(stamps) - min(stamps)) / (len(stamps) - 1) / 60
        shown = f"{minutes:,.1f}" if minutes < 9.95 else f"{minutes:,.0f}"
        return [f"{more:,} more runs of each would take {shown} minutes at the current rate"]

    def _is_alike(self, cell: Cell) -> bool:
        correlation = cell.estimate.correlation
        return correlation is not None and correlation > CORRELATED_FACTOR / math.sqrt(min(cell.estimate.counts))

    def figures(self) -> list[dict[str, Value]]:
        """Returns a row for each question.

        >>> a = [hs.run("cheetah-x15-36lp", "file-server", requests=300, seed=n) for n in (1, 2, 3)]
        >>> b = [hs.run("atlas-10k-iii-73", "file-server", requests=300, seed=n) for n in (1, 2, 3)]
        >>> hs.difference(a, b).figures()[0]["design"]
        'unpaired'
        """
        return [_row(cell) for cell in self.cells]

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns all data as one JSON object.

        >>> a = [hs.run("cheetah-x15-36lp", "file-server", requests=300, seed=n) for n in (1, 2, 3)]
        >>> hs.difference(a, a).to_json().startswith("{")
        True
        """
        document = {
            **STORED.head,
            "ours": self.ours.name,
            "theirs": self.theirs.name,
            "headline": self.headline,
            "same_within": self.same,
            "detect": self.detect,
            "at_any_time": self.at_any_time,
            "figures": self.figures(),
            "remarks": self.remarks,
            "runs": {
                side: [{"source": run.source, "at_s": run.at_s} for run in runs]
                for side, runs in (("ours", self.ours.runs), ("theirs", self.theirs.runs))
            },
        }
        return tables.to_json(document, path)


def _signed(share: float) -> str:
    """Formats a share in percent with two digits and without an exponent."""
    percent = 100 * share
    return f"{percent:+,.0f}" if abs(percent) >= 99.5 else f"{percent:+.2g}"


def _row(cell: Cell) -> dict[str, Value]:
    estimate = cell.estimate

    def finite(value: float) -> float | None:
        return value if math.isfinite(value) else None

    ends = [
        finite(math.expm1(min(end, 700.0))) if math.isfinite(end) else None for end in (*cell.interval, *cell.equal)
    ]
    return {
        "load": cell.load,
        "figure": cell.name,
        "ours": cell.ours,
        "theirs": cell.theirs,
        "difference": math.expm1(estimate.log),
        **dict(zip(("difference_low", "difference_high", "equal_low", "equal_high"), ends, strict=True)),
        "verdict": cell.verdict,
        "p": estimate.p,
        "p_held": finite(cell.p_held),
        "p_permuted": estimate.p_permuted,
        "p_least": estimate.p_least,
        "design": estimate.design,
        "with_drift": estimate.with_drift,
        "correlation": estimate.correlation,
        "runs_ours": estimate.counts[0],
        "runs_theirs": estimate.counts[1],
        "least_seen": finite(cell.least_seen),
        "more_runs": cell.more_runs,
        "reach": cell.reach if cell.reach is None else finite(cell.reach),
        "pairs_below": None if estimate.stalls is None else estimate.stalls[0],
        "pairs_above": None if estimate.stalls is None else estimate.stalls[1],
        "apart": "; ".join(cell.apart),
    }
