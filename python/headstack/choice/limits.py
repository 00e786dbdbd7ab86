"""``Limit``: the limits of a job on latency and throughput, and verdicts on them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, assert_never

from headstack._native import InputError, parse_duration_ns
from headstack.choice.answer import Decision, Verdict
from headstack.choice.run_rows import RunRow
from headstack.choice.sustained import SustainedLoad
from headstack.io.values import number, rate_bytes_per_s
from headstack.results.reasons import NOT_STEADY, TooShort

PERCENTILES = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p999": "p999", "p99.9": "p999"}
"""Percentiles with confidence intervals in runs, with the names of their columns."""
EXAMPLES = "use for example p99=20ms, mean=5ms, read.p99=10ms, iops=4000 or mb_per_s=400"
FEW_BEYOND = "too few requests above this percentile"
"""Reason for a percentile without an interval of a run whose mean has one."""


@dataclass(frozen=True)
class Limit:
    """A limit: a maximum response time or a minimum rate."""

    text: str
    """The limit as requested."""
    figure: str
    """``mean``, ``p50`` … ``p999``, ``iops`` or ``mb_per_s``."""
    value: float
    """Value in ms, requests per second or MB/s."""
    kind: str = ""
    """``read`` or ``write``; empty for all requests together."""
    rebuilding: bool = False
    """Whether the limit applies during a rebuild instead of normal service."""

    @property
    def is_most(self) -> bool:
        """Whether the limit is a maximum; otherwise it is a minimum."""
        return self.figure not in ("iops", "mb_per_s")

    @property
    def unit(self) -> str:
        """The unit of the value."""
        return {"iops": "1/s", "mb_per_s": "MB/s"}.get(self.figure, "ms")

    @property
    def name(self) -> str:
        """Display name of the figure: ``p99``, ``mean of reads``, ``p99 while rebuilding``."""
        shown = {"p999": "p99.9", "iops": "IOPS", "mb_per_s": "MB/s"}.get(self.figure, self.figure)
        return shown + (f" of {self.kind}s" if self.kind else "") + (" while rebuilding" if self.rebuilding else "")

    @property
    def column(self) -> str:
        """The column of results, for limits on all requests."""
        return {"mean": "mean_ms", "iops": "iops", "mb_per_s": "mb_per_s"}.get(self.figure, f"{self.figure}_ms")

    @property
    def quantile(self) -> float | None:
        """0.99 for ``p99``; ``None`` if it is no percentile."""
        return int(self.figure[1:]) / 10 ** len(self.figure[1:]) if self.figure.startswith("p") else None

    @property
    def requests_min(self) -> int:
        """Minimum number of requests; a percentile with twenty requests above it has an error of about 25 %."""
        return 1000 if self.quantile is None else math.ceil(20 / (1 - self.quantile))

    def relaxed(self, share: float) -> Limit:
        """Returns the limit relaxed by a share: 0.1 makes 20 ms 22 ms, and 4,000 requests per second 3,600."""
        value = self.value * (1 + share if self.is_most else 1 - share)
        shown = f"{value:g}ms" if self.is_most else f"{value:g}"
        return Limit(f"{self.text.partition('=')[0]}={shown}", self.figure, value, self.kind, self.rebuilding)


def limit_of(text: str) -> Limit:
    """Parses a limit: ``p99=20ms``, ``read.mean=5ms``, ``iops=4000``, ``mb_per_s=400``.

    Raises ``InputError`` for other text.

    >>> from headstack.choice.limits import limit_of
    >>> limit_of("read.p99=20ms").name
    'p99 of reads'
    """
    match = re.fullmatch(r"(?:(read|write)\.)?([a-z0-9_.]+)=(.+)", text.strip())
    if match is None:
        raise InputError(f"{text}: not a limit; {EXAMPLES}", key="limit")
    kind, figure, value = match[1] or "", match[2], match[3].strip()
    if figure in ("iops", "mb_per_s"):
        if kind:
            raise InputError(f"{text}: rates apply to all requests together; use {figure}={value}", key="limit")
        named = f"limit: {text}"
        is_bytes = figure == "mb_per_s" and value[-1].isalpha()
        least = rate_bytes_per_s(named, value) / 1e6 if is_bytes else number(named, value.removesuffix("/s"))
        if least <= 0:
            raise InputError(f"{named}: must be above 0")
        return Limit(text.strip(), figure, least)
    if figure != "mean" and figure not in PERCENTILES:
        raise InputError(
            f"{text}: {figure} is unknown; allowed: mean, {', '.join(PERCENTILES)}, iops, mb_per_s", key="limit"
        )
    try:
        value_ms = parse_duration_ns(value) / 1e6
    except InputError as error:
        raise InputError(f"{text}: {error}", key="limit") from None
    if value_ms <= 0:
        raise InputError(f"{text}: must be above 0", key="limit")
    return Limit(text.strip(), PERCENTILES.get(figure, figure), value_ms, kind)


@dataclass(frozen=True)
class Estimate:
    """The figure of a limit from the runs of one system, with its interval."""

    value: float | None
    """The figure; ``None`` if no request completed."""
    low: float | None
    high: float | None
    requests: int
    why: str = ""
    """The reason why the interval is unknown."""
    code: TooShort | None = None
    """Code of this reason, if it concerns the length of the run."""
    piles_up: bool = False
    """Whether the queue grows without bound, so that there is no steady state."""
    impossible: bool = False
    """Whether no run was possible, with the reason in ``why``."""

    def __post_init__(self) -> None:
        low, high = self.low, self.high
        if self.value is not None and low is not None and high is not None and not low <= self.value <= high:
            raise ValueError(f"the interval {low:g} to {high:g} excludes its estimate {self.value:g}")

    @staticmethod
    def around(value: float | None, low: float | None, high: float | None, requests: int, **others: Any) -> Estimate:
        """Returns an estimate whose interval is extended to its value. The interval of a run excludes requests that
        turned out to belong to the warm-up, but its figures include them. Both must be on one side of a limit."""
        if value is not None and low is not None and high is not None:
            low, high = min(low, value), max(high, value)
        return Estimate(value, low, high, requests, **others)

    def under(self, limit: Limit, load: SustainedLoad, run_requests: int) -> Estimate:
        """Returns the estimate from a run of ``run_requests`` under this load on the limits of a volume: without a
        steady state at a limit, and without an interval from a run that is too short for the queue at it."""
        if self.impossible or self.piles_up:
            return self
        if load.is_overload:
            most = {"iops": load.iops_max, "mb_per_s": load.bytes_per_s_max / 1e6}.get(limit.figure, math.inf)
            value = None if self.value is None else min(self.value, most)
            low, high = (None, None) if limit.is_most else (value, value)
            return Estimate(value, low, high, self.requests, piles_up=True)
        if limit.is_most and run_requests < load.requests_min:
            why = f"runs of {load.requests_min:,.0f} requests are needed at {load.utilization:.1%} of a limit"
            return Estimate(self.value, None, None, self.requests, why.replace("%", " %"), "correlated")
        return self


def estimate_from_row(limit: Limit, row: RunRow) -> Estimate:
    """Returns the figure of a limit on all requests from a row of a run. The interval of a rate in a closed loop
    follows from that of the mean response time, by Little's law; an open loop's rate is the offered one, unless the
    queue grows without bound."""
    value, requests, piles_up = row.figures[limit.column], row.requests, row.saturated
    why, code = row.sampling, row.sampling_code
    if limit.is_most:
        name = limit.column.removesuffix("_ms")
        low, high = row.figures[f"{name}_low_ms"], row.figures[f"{name}_high_ms"]
        if low is None and code is None:
            why, code = FEW_BEYOND, "few_beyond"
        return Estimate.around(value, low, high, requests, why=why, code=code, piles_up=piles_up)
    mean, low_ms, high_ms = (row.figures[name] for name in ("mean_ms", "mean_low_ms", "mean_high_ms"))
    if row.figures["rate_per_s"] is not None:
        return (
            Estimate(value, value, value, requests, piles_up=piles_up)
            if value is not None
            else Estimate(None, None, None, 0)
        )
    if value is None or mean is None or low_ms is None or high_ms is None:
        return Estimate(value, None, None, requests, why, code, piles_up)
    low, high = value * mean / high_ms, value * mean / low_ms
    return Estimate.around(value, low, high, requests, piles_up=piles_up)


DECISIVE_MISS_FACTOR = 2.0
"""Factor by which a figure without an interval must miss a limit for a decided miss: at a p99 of twice the limit, far
more requests are slow than permitted, more than chance explains among twenty. A percentile within a limit by this
factor meets it, if it only lacks an interval because few requests are slower."""
CACHE_FILLING_FACTOR = 1.25
"""The same factor while data in a write cache still change: starting from an empty cache, later requests are no faster
than earlier ones; starting at the steady dirty level, means were within 15 % of those of runs sixty times as long. An
SSD of a catalogue array that writes to erased flash is judged as a new drive, with this factor in both directions."""


def judge(limit: Limit, estimate: Estimate) -> Decision:
    """Returns the verdict: met, missed or undecided. The long-run value has a 95 % confidence interval, of which one
    end matters: either decision is wrong in 2.5 % of cases."""
    if estimate.value is None:
        return "does not"
    if estimate.piles_up and limit.is_most:
        return "does not"
    if estimate.low is None or estimate.high is None:
        missed = miss_factor(limit, estimate)
        is_sampled = estimate.code == "few_beyond" and estimate.requests >= limit.requests_min
        if (estimate.code == NOT_STEADY and missed <= 1 / CACHE_FILLING_FACTOR) or (
            is_sampled and missed <= 1 / DECISIVE_MISS_FACTOR
        ):
            return "meets"
        fills = estimate.code in ("write_cache_moves", NOT_STEADY)
        return "does not" if missed > (CACHE_FILLING_FACTOR if fills else DECISIVE_MISS_FACTOR) else "undecided"
    if limit.is_most:
        return "meets" if estimate.high <= limit.value else "does not" if estimate.low > limit.value else "undecided"
    return "meets" if estimate.low >= limit.value else "does not" if estimate.high < limit.value else "undecided"


def miss_factor(limit: Limit, estimate: Estimate) -> float:
    """Returns the factor by which the limit is missed: above 1 if missed, infinite if the queue grows without bound."""
    if estimate.value is None or (estimate.piles_up and limit.is_most):
        return math.inf
    if limit.is_most:
        return estimate.value / limit.value
    return math.inf if estimate.value == 0 else limit.value / estimate.value


def verdict(limit: Limit, estimate: Estimate, model: tuple[float, float, float] | None = None) -> Verdict:
    """Returns the verdict on a limit; if the model's error is known (ends and level of the prediction interval), both
    intervals must permit it."""
    decision = judge(limit, estimate)
    if decision == "meets" and model is not None:
        is_met = model[1] <= limit.value if limit.is_most else model[0] >= limit.value
        decision = "meets" if is_met else "undecided"
    why = estimate.why
    if decision == "undecided" and not why:
        why = (
            "the limit is within the confidence interval"
            if judge(limit, estimate) == decision
            else "the limit is within the prediction interval"
        )
    return Verdict(
        limit.text + (" while rebuilding" if limit.rebuilding else ""),
        decision,
        limit.unit,
        limit.value,
        None if estimate.piles_up and limit.is_most else estimate.value,
        estimate.low,
        estimate.high,
        None if model is None else model[0],
        None if model is None else model[1],
        why if decision == "undecided" else "",
        estimate.requests,
        None if model is None else model[2],
    )


def combine_decisions(decisions: list[Decision]) -> Decision:
    """Returns the verdict on several limits, which is the worst single verdict."""
    return max(decisions, key=_badness, default="meets")


def _badness(decision: Decision) -> int:
    match decision:
        case "meets":
            return 0
        case "undecided":
            return 1
        case "does not":
            return 2
    assert_never(decision)
