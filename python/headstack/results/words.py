"""What reports say of results in words: the answer first, with its interval, then a sentence for each figure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from headstack.report.figures import Axis, Bars, Figure, Grid, Heat, Lines, Series, Table
from headstack.results.answers import is_of_arrivals, load_of

if TYPE_CHECKING:
    from headstack.results.table import ResultTable, Row

NAMED_MAX = 3
"""So many systems are named in one sentence."""
UNDECIDED = "not enough data for a verdict"
"""The beginning of an answer without a verdict."""
DEVICES = ", 90 % prediction interval"
UNITS = re.compile(r"_(ns|us|ms|s|min|h|rpm|percent|bytes|per_s|[kmgtp]?i?b(?:_per_s)?)$", re.IGNORECASE)
"""At the end of a column's name."""
WRITTEN = {
    "us": "µs",
    "percent": "%",
    "bytes": "B",
    "per_s": "1/s",
    "mb": "MB",
    "mb_per_s": "MB/s",
    "gb": "GB",
    "tb": "TB",
    "kib": "KiB",
}
NEAR = 0.9
"""Of the most that a system does: from there on more load gives little."""


def headline(results: ResultTable) -> str:
    """States the answer with its interval: throughput under the load, or latency where arrivals set the rate."""
    at_most = {name: max(runs, key=lambda run: _worth(results[run])) for name, runs in results.curves().items()}
    order = sorted(at_most, key=lambda name: _worth(results[at_most[name]]), reverse=True)
    if len(order) == 1:
        return _of_one(results, order[0])
    best = at_most[order[0]]
    gain = results.gains()[best]
    base = next(name for name, runs in results.curves().items() if 0 in runs)
    first = f", {gain} times {base}" if gain is not None and gain.times > 1 else ""
    others = [f"{name}: {_performance(results[at_most[name]])}" for name in order[1 : NAMED_MAX + 1]]
    rest = len(order) - 1 - len(others)
    others += [f"{rest} more are slower"] * (rest > 0)
    return f"{order[0]} is fastest: {_performance(results[best])}{first}; {'; '.join(others)}."


def _worth(row: Row) -> tuple[bool, float]:
    """Orders runs: those that keep up before others, then by latency where arrivals set the rate, or by throughput."""
    keeps_up = not row["saturated"]
    return keeps_up, -row["mean_ms"] if is_of_arrivals(row) and keeps_up else row["iops"]


def _of_one(results: ResultTable, name: str) -> str:
    runs = results.curves()[name]
    first = results[runs[0]]
    tail = f", p99 {time(first['p99_ms'])}" if first["p99_ms"] is not None else ""
    if first["saturated"]:
        return f"{name} cannot keep up with {number(first['rate_per_s'])} IOPS: it serves {number(first['iops'])}."
    if is_of_arrivals(first):
        with_rate = f"keeps up with {number(first['rate_per_s'])} IOPS" if first["rate_per_s"] else "keeps up"
        return f"{name} {with_rate}: mean latency {_mean(first)}{tail}."
    if len(runs) == 1:
        return f"{name} serves {_performance(first)}; mean latency {_mean(first)}{tail}."
    most = results[max(runs, key=lambda run: results[run]["iops"])]
    return f"{name} serves {_performance(first)} and up to {_performance(most)}."


def _performance(row: Row) -> str:
    """``161 IOPS at depth 1 (155 to 167)``: the 90 % prediction interval, or else ± the 95 % confidence interval."""
    load = load_of(row)
    if row["saturated"]:
        return f"{number(row['iops'])} IOPS, saturated {load}".rstrip()
    if is_of_arrivals(row):
        return f"mean latency {_mean(row)} {load}".rstrip()
    low, high = row["iops_model_low"], row["iops_model_high"]
    if low is not None and high is not None:
        return f"{known(row['iops'], (high - low) / 2)} IOPS {load} ({number(low)} to {number(high)})"
    width = row["half_width_ms"] and row["iops"] * row["half_width_ms"] / row["mean_ms"]
    # Clients of several kinds have no throughput in common.
    if not width or row["depth"] is None:
        return f"{number(row['iops'])} IOPS {load}".rstrip()
    return f"{with_error(row['iops'], width)} IOPS {load}"


def _mean(row: Row) -> str:
    low, high = row["mean_model_low_ms"], row["mean_model_high_ms"]
    if low is not None and high is not None:
        return f"{time(row['mean_ms'])} ({time(low)} to {time(high)})"
    factor, unit = _unit(row["mean_ms"])
    width = row["half_width_ms"]
    return f"{with_error(factor * row['mean_ms'], factor * width)} {unit}" if width else time(row["mean_ms"])


# Columns.


def words_of(column: str) -> tuple[str, str]:
    """What a column is called, in words, and its unit."""
    found = UNITS.search(column)
    words = column[: found.start()] if found else column
    return re.sub(r"[._]", " ", words), WRITTEN.get(found[1], found[1].replace("_per_", "/")) if found else ""


# A sentence for each figure.


def of_curves(results: ResultTable, curves: Mapping[str, Sequence[int]]) -> str:
    """What load gains and costs."""
    said = []
    for name, runs in list(curves.items())[:NAMED_MAX]:
        rows = [results[run] for run in runs]
        first, most = rows[0], max(row["iops"] for row in rows)
        near = next(row for row in rows if row["iops"] >= NEAR * most)
        if near is not first and first["iops"] and first["mean_ms"]:
            more, longer = near["iops"] / first["iops"], near["mean_ms"] / first["mean_ms"]
            does = f"{name} serves {more:.3g} times the IOPS that it serves {load_of(first)}"
            said.append(f"{load_of(near)} {does}, at {longer:.3g} times the latency")
        else:
            said.append(f"{name} serves about {number(first['iops'])} IOPS at any load")
    text = _joined(said, len(curves))
    # A name is written as it is.
    return f"A{text[1:]}" if text.startswith("at ") else text


def of_most(values: Mapping[str, float], unit: str) -> str:
    """Who has most and who least."""
    most, least = max(values, key=values.__getitem__), min(values, key=values.__getitem__)
    if most == least:
        return ""
    return f"Most: {most} with {number(values[most])} {unit}; least: {least} with {number(values[least])} {unit}."


def of_percentiles(found: Mapping[str, Mapping[float, float]]) -> str:
    """How long half of the requests take, and nearly all."""
    said = [
        f"{name}: p50 {time(times[50])}, p99 {time(times[99])}"
        for name, times in list(found.items())[:NAMED_MAX]
        if 50 in times and 99 in times
    ]
    return _joined(said, len(found))


def of_course(values: Iterable[float], unit: str) -> str:
    """Between what figures stayed over time."""
    known_values = list(values)
    return f"Between {number(min(known_values))} and {number(max(known_values))} {unit}."


# A sentence for figures of any table: what a study asks for is known to its authors alone.


def with_says(figure: Figure) -> Figure:
    """The figure with a sentence of what it shows: how far it is from what was published, or else what is most and
    least. Tables are read."""
    if figure.says:
        return figure
    match figure:
        case Lines():
            says = _of_errors(list(_pairs_of_lines(figure)), unit_of(figure.y)) or _of_lines(figure)
        case Bars():
            says = _of_errors(list(_pairs_of_bars(figure)), unit_of(figure.y)) or _of_bars(figure)
        case Grid():
            says = _of_errors(list(_pairs_of_grid(figure)), figure.unit) or _of_grid(figure)
        case Heat():
            says = _of_heat(figure)
        case Table():
            says = ""
    return replace(figure, says=says) if says else figure


def unit_of(axis: Axis) -> str:
    """The unit of an axis, which begins what stands in parentheses at the end of its label."""
    return re.split("[,;]| of ", axis.label.rpartition("(")[2].removesuffix(")"))[0] if axis.label.endswith(")") else ""


Pair = tuple[str, float, float]
"""What was found and what was published of it, by name."""


def _pairs_of_lines(figure: Lines) -> Iterator[Pair]:
    """Points of a series and of its namesake under the same load, or else over the same x."""
    for one in figure.series:
        for other in figure.series if one.published else ():
            if other.published or other.name != one.name:
                continue
            has_labels = all(any(series.labels) for series in (one, other))
            ours = {
                (other.labels[n] if has_labels else x): y for n, (x, y) in enumerate(zip(other.x, other.y, strict=True))
            }
            for n, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
                key = one.labels[n] if has_labels else x
                found = ours.get(key) if key not in (None, "") else None
                if found is not None and y is not None and x is not None:
                    at = key if isinstance(key, str) else f"{number(x)} {unit_of(figure.x)}".rstrip()
                    yield f"{one.name}, {at}", found, y


def _pairs_of_bars(figure: Bars) -> Iterator[Pair]:
    """Bars of a group: of namesakes, or of all that is ours beside all that was published where that is one series."""
    published = [one for one in figure.series if one.published]
    ours = [one for one in figure.series if not one.published]
    for one in published:
        for other in ours:
            if other.name != one.name and len(published) > 1:
                continue
            for group, found, stated in zip(figure.groups, other.y, one.y, strict=True):
                if found is not None and stated is not None:
                    yield group if len(ours) == 1 else f"{group}, {other.name}", found, stated


def _pairs_of_grid(figure: Grid) -> Iterator[Pair]:
    for row, found, published in zip(figure.rows, figure.values, figure.published, strict=False):
        for column, value, stated in zip(figure.columns, found, published, strict=True):
            if value is not None and stated is not None:
                yield f"{row}, {column}", value, stated


def _of_errors(pairs: Sequence[Pair], unit: str) -> str:
    """How far off: in points where figures are percent, else in percent of what was published."""
    in_points = unit.startswith("%") or unit == "points"
    errors = {
        name: found - stated if in_points else 100 * (found / stated - 1)
        for name, found, stated in pairs
        if in_points or stated
    }
    if not errors:
        return ""
    of, worst = "points" if in_points else "%", max(errors, key=lambda name: abs(errors[name]))
    count = f"{len(errors)} published figures" if len(errors) > 1 else "the published figure"
    sign = "+" if errors[worst] > 0 else "\u2212"
    most = f", at most {sign}{_short(errors[worst])} {of} ({worst})" if len(errors) > 1 else ""
    return f"Differs from {count} by {_short(fmean(map(abs, errors.values())))} {of}{' on average' * bool(most)}{most}."


def _short(error: float) -> str:
    return f"{abs(error):.2g}" if abs(error) < 10 else f"{abs(error):,.0f}"


def _of_lines(figure: Lines) -> str:
    """From where to where each line goes, with its interval at the end."""
    if figure.x_is_percentile and unit_of(figure.y) == "ms":
        found = {one.name: {x: y for x, y in zip(one.x, one.y, strict=True) if x and y} for one in figure.series}
        return of_percentiles(found)
    told = []
    for one in figure.series:
        points = [n for n, (x, y) in enumerate(zip(one.x, one.y, strict=True)) if x is not None and y is not None]
        if one.published or not points:
            continue
        ends = [_point(figure, one, n) for n in dict.fromkeys((points[0], points[-1]))]
        told.append(f"{one.name} {'from ' * (len(ends) > 1)}{' to '.join(ends)}")
    return _joined(told[:NAMED_MAX], len(told))


def _point(figure: Lines, one: Series, n: int) -> str:
    x, unit = one.x[n] or 0.0, unit_of(figure.x)
    # What is counted may stand a little beside its number, lest intervals lie over each other.
    return _figure(one.y[n] or 0.0, unit_of(figure.y), one, n) + (f" at {in_unit(x, unit)}" if unit else "")


def _figure(value: float, unit: str, one: Series, n: int) -> str:
    """With its unit, and the interval where it is known."""
    low, high = (ends[n] if ends else None for ends in (one.low, one.high))
    factor = _unit(value)[0] if unit == "ms" else 1
    ends = [number(factor * low), number(factor * high)] if low is not None and high is not None else []
    return in_unit(value, unit) + (f" ({' to '.join(ends)})" if len(set(ends)) > 1 else "")


def _of_bars(figure: Bars) -> str:
    found = [
        (y, f"{group}, {one.name}" if len(figure.series) > 1 and one.name != group else group, one, n)
        for one in figure.series
        for n, (group, y) in enumerate(zip(figure.groups, one.y, strict=True))
        if y is not None
    ]
    if len(found) < 2:
        return ""
    unit = unit_of(figure.y)
    most, least = max(found, key=lambda bar: bar[0]), min(found, key=lambda bar: bar[0])
    told = [f"{name} with {_figure(y, unit, one, n)}" for y, name, one, n in (most, least)]
    return "" if most[0] == least[0] else f"Most: {told[0]}; least: {told[1]}."


def _of_grid(figure: Grid) -> str:
    found = [
        (value, f"{row}, {column}")
        for row, values in zip(figure.rows, figure.values, strict=True)
        for column, value in zip(figure.columns, values, strict=True)
        if value is not None
    ]
    if len(found) < 2:
        return ""
    most, least = (f"{number(value)} ({name})" for value, name in (max(found), min(found)))
    return f"From {least} to {most}: {figure.unit}."


def _of_heat(figure: Heat) -> str:
    counts = [value for row in figure.values for value in row]
    total = math.fsum(counts)
    densest = sorted(counts, reverse=True)[: max(1, round(len(counts) / 10))]
    share = 100 * math.fsum(densest) / total if total else 0
    return f"The densest 10 % of the map hold {share:.0f} % of the total ({figure.unit})." if total else ""


def _joined(said: Sequence[str], count: int) -> str:
    if not said:
        return ""
    rest = f"; {count - len(said)} more below" if count > len(said) else ""
    return f"{'; '.join(said)}{rest}."


# Numbers.


def number(value: float) -> str:
    """With three digits that count, or all of a whole part."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def in_unit(value: float, unit: str) -> str:
    if unit == "ms":
        return time(value)
    return f"${number(value)}" if unit == "$" else f"{number(value)} {unit}".rstrip()


def time(ms: float) -> str:
    factor, unit = _unit(ms)
    return f"{number(factor * ms)} {unit}"


def _unit(ms: float) -> tuple[float, str]:
    return (1000, "µs") if ms < 1 else (1, "ms") if ms < 10_000 else (0.001, "s")


def known(value: float, half_width: float) -> str:
    """A value with the digits that are known of it."""
    return f"{value:,.{max(0, _decimals(half_width))}f}"


def with_error(value: float, half_width: float) -> str:
    """``1.30 ± 0.02``: both to the same digit, which is the first or second of the error."""
    decimals = _decimals(half_width)
    told = (f"{round(one, decimals):,.{max(0, decimals)}f}" for one in (value, half_width))
    return " ± ".join(told)


def _decimals(half_width: float) -> int:
    """As many that the error has one digit, or two where the first is a 1; negative where tens are not known."""
    if not half_width > 0:
        return 2
    place = math.floor(math.log10(half_width))
    return -place + (half_width / 10.0**place < 2)
