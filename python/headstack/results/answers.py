"""Answers for choosing between systems: speedups, systems that meet a latency limit, and the smallest number of drives
that meets the limit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstack.catalogue.options import OPTIONS

Row = dict[str, Any]

YES, NO, CLOSE = "yes", "no", "close"
"""Verdict on a limit; ``close`` means that the limit is within the confidence interval."""

OF_SYSTEMS = {"range", *(option.name for option in OPTIONS if option.group in ("Array", "Drive"))}
"""Options that change the system, not the load."""

_LOAD = ("workload", "mode", "depth", "rate_per_s", "seed")
_PERCENTILES = {0.5: "p50", 0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p999"}


@dataclass(frozen=True)
class Gain:
    """The speedup of a system over the first system."""

    times: float
    """Ratio of throughputs, or ratio of mean latencies if arrivals set the rate."""
    half_width: float | None
    """95 % confidence half-width from both runs, without the model error; ``None`` if a run is too short."""

    def __str__(self) -> str:
        if self.half_width is None:
            return f"{self.times:.2f}" if self.times < 100 else f"{self.times:,.0f}"
        digits = 0 if self.half_width >= 2 else 2 if self.half_width >= 0.005 else 3
        return f"{self.times:,.{digits}f} ± {self.half_width:,.{digits}f}"


def gains(rows: Sequence[Row], swept: Sequence[str]) -> list[Gain | None]:
    """Returns the speedup of each run over the first system at the same load; ``None`` for the first system, and if the
    first system has no run at that load."""
    ours = [name for name in swept if name in OF_SYSTEMS]
    loads = [*_LOAD, *(name for name in swept if name not in OF_SYSTEMS)]
    systems = [(row["system"], *(row[name] for name in ours)) for row in rows]
    at = [tuple(row[name] for name in loads) for row in rows]
    first = {load: row for system, load, row in zip(systems, at, rows, strict=True) if system == systems[0]}
    return [
        None if system == systems[0] or load not in first else _gain(first[load], row)
        for system, load, row in zip(systems, at, rows, strict=True)
    ]


def indistinguishable(rows: Sequence[Row], swept: Sequence[str]) -> list[str]:
    """Returns one line for each system whose prediction interval overlaps the interval of the first system, with the
    loads.

    Parts of one system, and one system with different options, share their model error and are left out.
    """
    loads: dict[str, list[str]] = {}
    first = {tuple(row[name] for name in _LOAD): row for row in reversed(rows) if row["system"] == rows[0]["system"]}
    for row, gain in zip(rows, gains(rows, swept), strict=True):
        other = first.get(tuple(row[name] for name in _LOAD))
        if gain is not None and other is not None and whole(other) != whole(row) and overlap(other, row):
            loads.setdefault(row["system"], []).append(load_of(row))
    return [
        f"indistinguishable: {system} and {rows[0]['system']} {', '.join(dict.fromkeys(at))}".rstrip()
        + ": their prediction intervals overlap"
        for system, at in loads.items()
    ]


def whole(row: Row) -> str:
    """Returns the system's name without the range in use."""
    system: str = row["system"]
    name, _, part = system.rpartition("@")
    return system if not name or "/" in part else name


def overlap(first: Row, second: Row) -> bool:
    """Whether the prediction intervals of two runs overlap, so that the faster system is undecided."""
    figure = "mean_model_{}_ms" if is_of_arrivals(first) else "iops_model_{}"
    low, high = ([row[figure.format(end)] for row in (first, second)] for end in ("low", "high"))
    return None not in low + high and low[0] <= high[1] and low[1] <= high[0]


def _gain(first: Row, row: Row) -> Gain | None:
    is_open = is_of_arrivals(row)
    # Clients of several kinds have no throughput in common.
    if first["saturated"] or row["saturated"] or (row["depth"] is None and not is_open):
        return None
    over, under = (first["mean_ms"], row["mean_ms"]) if is_open else (row["iops"], first["iops"])
    if not over or not under:
        return None
    widths = [run["half_width_ms"] and run["half_width_ms"] / run["mean_ms"] for run in (first, row)]
    times = over / under
    return Gain(times, None if None in widths else times * math.hypot(*widths))


def is_of_arrivals(row: Row) -> bool:
    """Whether arrivals set the rate of a run: an open loop or a replay at its recorded times."""
    return row["depth"] is None and (row["rate_per_s"] is not None or row["mode"] is not None)


def within(row: Row, quantile: float | None, value_ms: float, limit_ms: float) -> str:
    """Whether a run meets a limit on a quantile or on the mean: ``YES``, ``NO`` or ``CLOSE``."""
    if row["saturated"]:
        return NO
    figure = "mean" if quantile is None else _PERCENTILES.get(round(quantile, 9))
    low, high = (row[f"{figure}_low_ms"], row[f"{figure}_high_ms"]) if figure is not None else (None, None)
    if low is None or high is None:
        low = high = value_ms
    return YES if high <= limit_ms else NO if low > limit_ms else CLOSE


@dataclass(frozen=True)
class Drives:
    """The smallest number of drives, among those tried, that meets a limit."""

    system: str
    """The system's name, and the values of its options that vary."""
    load: str
    tried: tuple[int, ...]
    values_ms: tuple[float, ...]
    """The latency compared with the limit, for each number tried."""
    verdicts: tuple[str, ...]
    """``yes``, ``no``, or ``close`` if the limit is within the confidence interval."""

    @property
    def fewest(self) -> int | None:
        """The smallest number of drives that meets the limit, if all larger numbers also meet it; otherwise
        ``None``."""
        failing = [n for n, verdict in enumerate(self.verdicts) if verdict != YES]
        first = failing[-1] + 1 if failing else 0
        return self.tried[first] if first < len(self.tried) else None

    def format_answer(self, limit: str) -> str:
        """Returns the answer as a sentence. ``limit`` is the limit as the user wrote it."""
        figure, _, time = limit.rpartition("=")
        kept = f"{figure if figure not in ('', 'mean') else 'the mean'} within {time} {self.load}".rstrip()
        count = self.tried[-1] if self.fewest is None else self.fewest
        value = f"{self.values_ms[self.tried.index(count)]:,.2f} ms"
        tried = f"tried: {', '.join(map(str, self.tried))}"
        close = [str(n) for n, verdict in zip(self.tried, self.verdicts, strict=True) if verdict == CLOSE]
        tried += f"; undecided: {', '.join(close)}" if close else ""
        if self.fewest is None:
            return f"{self.system}: no number of drives meets the limit, {kept}; {count} drives: {value} ({tried})"
        return f"{self.system}: at least {count} drives are needed to meet {kept}: {value} ({tried})"


def most_within(throughputs: Mapping[str, tuple[float, bool] | None], limit: str) -> str:
    """Returns a sentence that names the curve with most IOPS within a limit. The input is the IOPS of each curve, and
    whether that is a lower bound."""
    figure, _, time = limit.rpartition("=")
    kept = f"{figure if figure not in ('', 'mean') else 'the mean'} within {time}"
    ranked = sorted(
        ((*served, name) for name, served in throughputs.items() if served is not None), key=lambda served: -served[0]
    )
    if not ranked:
        return f"no system meets the limit, {kept}"
    (most, is_at_least, name), *others = ranked
    answer = f"{name} serves most IOPS with {kept}: {'at least ' * is_at_least}{most:,.0f}"
    if not others:
        return f"{answer}; no other system meets the limit"
    second, may_be_more, next_name = others[0]
    if is_at_least or may_be_more:
        return f"{answer}; {next_name}: {'at least ' * may_be_more}{second:,.0f}"
    return f"{answer}, {most / second:.2f} times as many as {next_name}, the next best"


def fewest_drives(
    rows: Sequence[Row], swept: Sequence[str], values_ms: Sequence[float], verdicts: Sequence[str]
) -> list[Drives]:
    """Returns the number of drives that meets a limit, for each system and load; empty if the drives did not vary."""
    if "drives" not in swept or "usable" in rows[0]:
        return []
    tried: dict[tuple[str, str], list[tuple[int, float, str]]] = {}
    for row, value_ms, verdict in zip(rows, values_ms, verdicts, strict=True):
        system = named(row, [name for name in swept if name != "drives"])
        tried.setdefault((system, load_of(row)), []).append((int(row["drives"]), value_ms, verdict))
    return [Drives(*key, *map(tuple, zip(*sorted(runs), strict=True))) for key, runs in tried.items()]


def named(row: Row, swept: Sequence[str]) -> str:
    """Returns the system of a run with the values of the options that vary."""
    # The system's name contains the range or LUN in use.
    others = [name for name in swept if name not in ("range", "lun")]
    return ", ".join([row["system"], *(f"{name.replace('_', ' ')} {row[name]}" for name in others)])


def load_of(row: Row) -> str:
    """Returns the load of a run in words."""
    if row["rate_per_s"] is not None:
        rate = row["rate_per_s"]
        return f"at {rate:,.0f} IOPS" if rate >= 100 else f"at {rate:.3g} IOPS"
    return "" if row["depth"] is None else f"at depth {row['depth']}"
