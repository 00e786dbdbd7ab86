"""The reports of the classic tests: figures of their own, their table, and the runs that they are made of."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from headstack._native import version
from headstack.report.figures import Axis, Figure, Lines, Report, Section, Series, Table
from headstack.report.results_report import PERCENTS, asked_for, provenance, runs_table
from headstack.report.words import NAMED_MAX, number, with_says, words_of

if TYPE_CHECKING:
    from headstack.classic.outcome import Outcome
    from headstack.classic.zones import Profile, Zones


def report_of(test: Outcome) -> Report:
    """What a test has found, as a report."""
    rows = test.rows()
    columns = [_words(name) for name in rows[0]] if rows else []
    table = Table("figures", "Figures", columns, [list(row.values()) for row in rows])
    own = test.main_figures()
    sections = [
        # What is drawn has its values behind it.
        Section("Figures", "", own or [table]),
        Section("Runs", "", [runs_table(test.results)]),
    ]
    systems = dict.fromkeys(row["system"] for row in test.results)
    said = [test.answer(), *([f"Ended early: {test.ended_early}."] if test.ended_early else [])]
    remarks = "\n\n".join(f"{note[:1].upper()}{note[1:]}." for note in test.results.notes)
    title = f"{test.test.capitalize()}: {', '.join(systems)}"
    asked = partial(asked_for, test.results)
    return Report(
        title, "", "\n\n".join(said), sections, (), provenance(test.results), version(), remarks=remarks, asked=asked
    )


def _words(name: str) -> str:
    return " ".join(words_of(name)).rstrip()


def zone_figures(test: Zones) -> list[Figure]:
    """The transfer rate over position, and the times of single random accesses by percentile."""
    figures: list[Figure] = [_rates(test)]
    accesses = [_accesses(profile) for profile in test.profiles if profile.accesses]
    if accesses:
        axes = Axis("Percentile (%)"), Axis("Access time (ms)")
        accessed = Lines("accesses", "Single random accesses", *axes, accesses, x_is_percentile=True)
        figures.append(with_says(accessed))
    return figures


def _rates(test: Zones) -> Lines:
    def places(profile: Profile) -> list[float]:
        if test.by_share:
            return [100 * (at - profile.start_bytes) / profile.length_bytes for at, _ in profile.rates]
        return [at / 1e9 for at, _ in profile.rates]

    series = [
        Series(f"{profile.system} ({profile.mode})", places(profile), [rate for _, rate in profile.rates])
        for profile in test.profiles
    ]
    position = Axis("Position (% of each system)" if test.by_share else "Position (GB)", log=False)
    title = f"Transfer rate from the outer to the inner edge: {test.profiles[0].kind}s"
    ends = [(profile.system, profile.rates[0][1], profile.rates[-1][1]) for profile in test.profiles if profile.rates]
    said = [f"{system} from {number(outer)} to {number(inner)} MB/s" for system, outer, inner in ends[:NAMED_MAX]]
    says = f"From the outer to the inner edge: {'; '.join(said)}." if said else ""
    return Lines("rates", title, position, Axis("Transfer rate (MB/s)"), series, says=says)


def _accesses(profile: Profile) -> Series:
    times = sorted(ms for _, ms in profile.accesses)
    # A percentile takes ten accesses beyond it, lest it is the largest by another name.
    known = [p for p in PERCENTS if len(times) * (1 - p / 100) >= 10]
    found = [times[max(0, math.ceil(p / 100 * len(times)) - 1)] for p in known]
    return Series(f"{profile.system} ({profile.mode})", [*known, 100], [*found, times[-1]])
