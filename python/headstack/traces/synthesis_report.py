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


def report_of(found: Scored) -> Report:
    """Returns miss ratios, dispersion and replayed response times of both traces, and lost properties."""
    made = found.made
    loop = "" if made["clients"] is None else f", a closed loop of {made['clients']} clients"
    summary = f"A twin of {made['requests']:,} requests{loop}, learnt from {made['learnt_requests']:,}."
    replayed = Section("Replayed", "", [table_of(found)] if card_of(found)["replays"] else [])
    sections = [Section("Caches and bursts", "", curves(found)), replayed]
    lost = "\n\n".join(f"Lost: {words}." for words in found.lost)
    shown = [section for section in sections if section.figures]
    return Report(f"{found.name} and its twin", "", summary, shown, version=version(), remarks=lost)


def curves(found: Scored) -> list[Lines]:
    """Returns miss ratios of caches and dispersion of counts of the original and the synthetic trace."""
    card, lines = card_of(found), []
    misses = card["misses"]
    if misses is not None and misses["cache_bytes"]:
        factor, name = unit(max(misses["cache_bytes"]), BYTES)
        caches = [size / factor for size in misses["cache_bytes"]]
        series = [Series(which, caches, [100 * ratio for ratio in misses[which]]) for which in WHICH]
        says = f"At most {misses['max_error']:.3f} apart, {misses['mean_error']:.3f} on average."
        axes = Axis(f"Cache of the trace ({name})", log=True), Axis("Misses (%)", log=False)
        lines.append(Lines("misses", "Misses of an LRU cache", *axes, series, says=says))
    rows = card["dispersion"]
    if rows:
        bins = [row["bin_ns"] / 1e9 for row in rows]
        series = [Series(which, bins, [row[which] for row in rows]) for which in WHICH]
        axes = Axis("Length of a bin (s)", log=True), Axis("Variance over mean of the requests in a bin", log=True)
        lines.append(Lines("dispersion", "Bursts at every scale", *axes, series, "1 is a Poisson process."))
    return lines


def table_of(found: Scored) -> Table:
    """Returns response times of both on each system."""
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
        for row in card_of(found)["replays"]
    ]
    return Table("replayed", "Response times when replayed", columns, rows, "Both simulated, with the same seed.")


def card_of(found: Scored) -> Scorecard:
    """Returns the scorecard, which a report requires."""
    if found.scorecard is None:
        raise InputError(f"{found.name}: the twin was made without its scorecard")
    return found.scorecard
