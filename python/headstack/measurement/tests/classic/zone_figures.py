"""Figures of a zone test's report: transfer rates over position, and times of random accesses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headstack.report.figures import Axis, Figure, Lines, Series
from headstack.results.report import PERCENTS
from headstack.results.words import NAMED_MAX, number, with_says

if TYPE_CHECKING:
    from headstack.measurement.tests.classic.figures import Profile


def zone_figures(profiles: Sequence[Profile], by_share: bool) -> list[Figure]:
    """Returns the transfer rate over position, and the times of single random accesses by percentile."""
    figures: list[Figure] = [_rates(profiles, by_share)]
    accesses = [_accesses(profile) for profile in profiles if profile.accesses]
    if accesses:
        axes = Axis("Percentile (%)"), Axis("Access time (ms)")
        accessed = Lines("accesses", "Single random accesses", *axes, accesses, x_is_percentile=True)
        figures.append(with_says(accessed))
    return figures


def _rates(profiles: Sequence[Profile], by_share: bool) -> Lines:
    def places(profile: Profile) -> list[float]:
        if by_share:
            return [100 * (at - profile.start_bytes) / profile.length_bytes for at, _ in profile.rates]
        return [at / 1e9 for at, _ in profile.rates]

    series = [
        Series(f"{profile.system} ({profile.mode})", places(profile), [rate for _, rate in profile.rates])
        for profile in profiles
    ]
    position = Axis("Position (% of each system)" if by_share else "Position (GB)", log=False)
    title = f"Transfer rate from the outer to the inner edge: {profiles[0].kind}s"
    ends = [(profile.system, profile.rates[0][1], profile.rates[-1][1]) for profile in profiles if profile.rates]
    ranges = [f"{system} from {number(outer)} to {number(inner)} MB/s" for system, outer, inner in ends[:NAMED_MAX]]
    says = f"From the outer to the inner edge: {'; '.join(ranges)}." if ranges else ""
    return Lines("rates", title, position, Axis("Transfer rate (MB/s)"), series, says=says)


def _accesses(profile: Profile) -> Series:
    times = sorted(ms for _, ms in profile.accesses)
    # A percentile needs ten accesses above it, otherwise it is nearly the maximum.
    percents = [p for p in PERCENTS if len(times) * (1 - p / 100) >= 10]
    percentiles = [times[max(0, math.ceil(p / 100 * len(times)) - 1)] for p in percents]
    return Series(f"{profile.system} ({profile.mode})", [*percents, 100], [*percentiles, times[-1]])
