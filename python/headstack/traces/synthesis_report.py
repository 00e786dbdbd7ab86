"""The scorecard of a synthetic trace as a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from headstack._native import InputError, version
from headstack.report.figures import Axis, Lines, Report, Section, Series, Table
from headstack.traces.analysis_report import BYTES, unit
from headstack.traces.synthesis_types import Scorecard

if TYPE_CHECKING:
    from headstack.traces.scored import Scored


WHICH: tuple[Literal["trace", "twin"], ...] = ("trace", "twin")


def report_of(scores: Scored) -> Report:
    """Returns miss ratios, dispersion and replayed response times of both traces, and lost properties."""
    made = scores.made
    loop = "" if made["clients"] is None else f", a closed loop of {made['clients']} clients"
    summary = f"A synthetic trace of {made['requests']:,} requests{loop}, modelled on {made['learnt_requests']:,}."
    replayed = Section("Replayed", "", [table_of(scores)] if card_of(scores)["replays"] else [])
    sections = [Section("Caches and bursts", "", curves(scores)), replayed]
    lost = "\n\n".join(f"Lost: {words}." for words in scores.lost)
    shown = [section for section in sections if section.figures]
    return Report(f"{scores.name} and its synthetic trace", "", summary, shown, version=version(), remarks=lost)


def curves(scores: Scored) -> list[Lines]:
    """Returns miss ratios of caches and dispersion of counts of the original and the synthetic trace."""
    card, lines = card_of(scores), []
    misses = card["misses"]
    if misses is not None and misses["cache_bytes"]:
        factor, name = unit(max(misses["cache_bytes"]), BYTES)
        caches = [size / factor for size in misses["cache_bytes"]]
        series = [Series(which, caches, [100 * ratio for ratio in misses[which]]) for which in WHICH]
        says = f"Difference of miss ratios: {misses['max_error']:.3f} at most, {misses['mean_error']:.3f} on average."
        axes = Axis(f"Cache of the trace ({name})", log=True), Axis("Misses (%)", log=False)
        lines.append(Lines("misses", "Misses of an LRU cache", *axes, series, says=says))
    rows = card["dispersion"]
    if rows:
        bins = [row["bin_ns"] / 1e9 for row in rows]
        series = [Series(which, bins, [row[which] for row in rows]) for which in WHICH]
        axes = Axis("Length of a bin (s)", log=True), Axis("Variance over mean of the requests in a bin", log=True)
        lines.append(Lines("dispersion", "Bursts at every scale", *axes, series, "1 is a Poisson process."))
    return lines


def table_of(scores: Scored) -> Table:
    """Returns latencies of both traces on each system."""
    columns = ("system", "mode", "mean ms, trace", "mean ms, twin", "p99 ms, trace", "p99 ms, twin")
    rows = [
        [
            row["system"],
            row["twin_mode"],
            row["trace_mean_ms"],
            row["twin_mean_ms"],
            row["trace_p99_ms"],
            row["twin_p99_ms"],
        ]
        for row in card_of(scores)["replays"]
    ]
    return Table("replayed", "Response times when replayed", columns, rows, "Both are simulated with the same seed.")


def card_of(scores: Scored) -> Scorecard:
    """Returns the scorecard, which a report requires."""
    if scores.scorecard is None:
        raise InputError(f"{scores.name}: the synthetic trace has no scorecard")
    return scores.scorecard
