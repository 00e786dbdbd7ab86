"""What results say to those who choose between systems: gains, who keeps within a limit, and how few drives do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstack.catalogue.options import OPTIONS

Row = dict[str, Any]

YES, NO, CLOSE = "yes", "no", "close"
"""Whether a limit is kept; close: it lies within the sampling error."""

OF_SYSTEMS = {"range", *(option.name for option in OPTIONS if option.group in ("Array", "Drive"))}
"""Options that make another system of one."""

_LOAD = ("workload", "mode", "depth", "rate_per_s", "seed")
_PERCENTILES = {0.5: "p50", 0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p999"}


@dataclass(frozen=True)
class Gain:
    """What a system does of the first one's."""

    times: float
    """As many IO/s; where arrivals set the rate, as fast in its mean response."""
    half_width: float | None
    """Sampling error of both runs at 95 %, where it is known, without the error of the model itself."""

    def __str__(self) -> str:
        if self.half_width is None:
            return f"{self.times:.2f}" if self.times < 100 else f"{self.times:,.0f}"
        digits = 0 if self.half_width >= 2 else 2 if self.half_width >= 0.005 else 3
        return f"{self.times:,.{digits}f} ± {self.half_width:,.{digits}f}"


def gains(rows: Sequence[Row], swept: Sequence[str]) -> list[Gain | None]:
    """Of each run over that of the first system at the same load; ``None`` for the first, and where there is none."""
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
    """In words, each system that the errors of the models leave no telling from the first one, and at which loads.

    Parts of one system, or the same with other options, err alike: of these nothing is said.
    """
    loads: dict[str, list[str]] = {}
    first = {tuple(row[name] for name in _LOAD): row for row in reversed(rows) if row["system"] == rows[0]["system"]}
    for row, gain in zip(rows, gains(rows, swept), strict=True):
        other = first.get(tuple(row[name] for name in _LOAD))
        if gain is not None and other is not None and whole(other) != whole(row) and overlap(other, row):
            loads.setdefault(row["system"], []).append(load_of(row))
    return [
        f"indistinguishable: {system} and {rows[0]['system']} {', '.join(dict.fromkeys(at))}".rstrip()
        + ": their 90 % intervals overlap"
        for system, at in loads.items()
    ]


def whole(row: Row) -> str:
    """The system of a run without the range that was used."""
    system: str = row["system"]
    name, _, part = system.rpartition("@")
    return system if not name or "/" in part else name


def overlap(one: Row, other: Row) -> bool:
    """Whether the model's errors leave no telling which of two systems does more: their intervals overlap."""
    figure = "mean_model_{}_ms" if is_of_arrivals(one) else "iops_model_{}"
    low, high = ([row[figure.format(end)] for row in (one, other)] for end in ("low", "high"))
    return None not in low + high and low[0] <= high[1] and low[1] <= high[0]


def _gain(first: Row, row: Row) -> Gain | None:
    is_open = is_of_arrivals(row)
    # Of clients of several kinds nobody's throughput is that of all.
    if first["saturated"] or row["saturated"] or (row["depth"] is None and not is_open):
        return None
    over, under = (first["mean_ms"], row["mean_ms"]) if is_open else (row["iops"], first["iops"])
    if not over or not under:
        return None
    widths = [one["half_width_ms"] and one["half_width_ms"] / one["mean_ms"] for one in (first, row)]
    times = over / under
    return Gain(times, None if None in widths else times * math.hypot(*widths))


def is_of_arrivals(row: Row) -> bool:
    """Whether requests of a run come when they come, so that they set the rate."""
    return row["depth"] is None and (row["rate_per_s"] is not None or row["mode"] is not None)


def within(row: Row, quantile: float | None, value_ms: float, limit_ms: float) -> str:
    """Whether a run keeps within a limit: of a quantile, or of the mean."""
    if row["saturated"]:
        return NO
    figure = "mean" if quantile is None else _PERCENTILES.get(round(quantile, 9))
    low, high = (row[f"{figure}_low_ms"], row[f"{figure}_high_ms"]) if figure is not None else (None, None)
    if low is None or high is None:
        low = high = value_ms
    return YES if high <= limit_ms else NO if low > limit_ms else CLOSE


@dataclass(frozen=True)
class Drives:
    """How many drives keep within a limit, of the numbers that were tried."""

    system: str
    """Its name, and what else tells it from others."""
    load: str
    tried: tuple[int, ...]
    values_ms: tuple[float, ...]
    """What was held against the limit, for each number that was tried."""
    verdicts: tuple[str, ...]
    """``yes``, ``no``, or ``close`` where sampling cannot tell."""

    @property
    def fewest(self) -> int | None:
        """The fewest that do, as all do that are more."""
        failing = [n for n, verdict in enumerate(self.verdicts) if verdict != YES]
        first = failing[-1] + 1 if failing else 0
        return self.tried[first] if first < len(self.tried) else None

    def told(self, limit: str) -> str:
        """The answer in words; ``limit`` as it was asked for."""
        figure, _, time = limit.rpartition("=")
        kept = f"{figure if figure not in ('', 'mean') else 'the mean'} within {time} {self.load}".rstrip()
        count = self.tried[-1] if self.fewest is None else self.fewest
        value = f"{self.values_ms[self.tried.index(count)]:,.2f} ms"
        tried = f"tried: {', '.join(map(str, self.tried))}"
        close = [str(n) for n, verdict in zip(self.tried, self.verdicts, strict=True) if verdict == CLOSE]
        tried += f"; undecided: {', '.join(close)}" if close else ""
        if self.fewest is None:
            return f"{self.system}: no number of drives meets the limit, {kept}; {count} drives: {value} ({tried})"
        return f"{self.system}: {count} drives are the fewest that meet {kept}: {value} ({tried})"


def most_within(found: Mapping[str, tuple[float, bool] | None], limit: str) -> str:
    """Which curve carries most within a limit, in words: of each the IO/s, and whether it may be more than these."""
    figure, _, time = limit.rpartition("=")
    kept = f"{figure if figure not in ('', 'mean') else 'the mean'} within {time}"
    carried = sorted(((*one, name) for name, one in found.items() if one is not None), key=lambda one: -one[0])
    if not carried:
        return f"no system meets the limit, {kept}"
    (most, is_at_least, name), *others = carried
    said = f"{name} serves most IOPS with {kept}: {'at least ' * is_at_least}{most:,.0f}"
    if not others:
        return f"{said}; no other system meets the limit"
    second, may_be_more, next_name = others[0]
    if is_at_least or may_be_more:
        return f"{said}; {next_name}: {'at least ' * may_be_more}{second:,.0f}"
    return f"{said}, {most / second:.2f} times as many as {next_name}, the next best"


def fewest_drives(
    rows: Sequence[Row], swept: Sequence[str], values_ms: Sequence[float], verdicts: Sequence[str]
) -> list[Drives]:
    """For each system and load, how many drives keep within a limit; none where drives were not varied."""
    if "drives" not in swept or "usable" in rows[0]:
        return []
    tried: dict[tuple[str, str], list[tuple[int, float, str]]] = {}
    for row, value_ms, verdict in zip(rows, values_ms, verdicts, strict=True):
        system = named(row, [name for name in swept if name != "drives"])
        tried.setdefault((system, load_of(row)), []).append((int(row["drives"]), value_ms, verdict))
    found = {key: sorted(one) for key, one in tried.items()}
    return [Drives(*key, *map(tuple, zip(*one, strict=True))) for key, one in found.items()]


def named(row: Row, swept: Sequence[str]) -> str:
    """The system of a run, and what else tells it from others."""
    # What part of a system is used, its name says.
    others = [name for name in swept if name not in ("range", "lun")]
    return ", ".join([row["system"], *(f"{name.replace('_', ' ')} {row[name]}" for name in others)])


def load_of(row: Row) -> str:
    """The load of a run in words."""
    if row["rate_per_s"] is not None:
        rate = row["rate_per_s"]
        return f"at {rate:,.0f} IOPS" if rate >= 100 else f"at {rate:.3g} IOPS"
    return "" if row["depth"] is None else f"at depth {row['depth']}"
