"""Sentences of reports: `headline` returns the answer with its interval, `with_says` adds a sentence to each figure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack.report.figures import Axis, Bars, Figure, Grid, Heat, Lines, Series, Table
from headstack.results.answers import is_of_arrivals, load_of
from headstack.results.intervals.conformal import LEVEL, percent

if TYPE_CHECKING:
    from headstack.results.table import ResultTable, Row

NAMED_MAX = 3
"""Maximum number of systems named in one sentence."""
UNDECIDED = "not enough data for a verdict"
"""The beginning of an answer without a verdict."""
UNITS = re.compile(r"_(ns|us|ms|s|min|h|rpm|percent|bytes|per_s|[kmgtp]?i?b(?:_per_s)?)$", re.IGNORECASE)
"""The unit at the end of a column's name."""
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
"""Share of a system's highest throughput above which more load gains little."""


def headline(results: ResultTable) -> str:
    """Returns the answer with its interval: throughput under the load, or latency if arrivals set the rate."""
    synchronous = [_synchronous(results, run) for run in range(len(results))]
    if all(synchronous):
        return _of_synchronous([writes for writes in synchronous if writes is not None], results)
    commits = [_commits(results, run) for run in range(len(results))]
    if all(commits):
        return _of_commits([each for each in commits if each is not None])
    at_most = {name: max(runs, key=lambda run: _worth(results[run])) for name, runs in results.curves().items()}
    order = sorted(at_most, key=lambda name: _worth(results[at_most[name]]), reverse=True)
    if len(order) == 1:
        return _of_one(results, order[0])
    best = at_most[order[0]]
    gain = results.gains()[best]
    base = next(name for name, runs in results.curves().items() if 0 in runs)
    first = f", {gain} times {base}" if gain is not None and gain.times > 1 else ""
    others = [
        f"{_stated(results, name, at_most[name])}: {_performance(results[at_most[name]])}"
        for name in order[1 : NAMED_MAX + 1]
    ]
    rest = len(order) - 1 - len(others)
    others += [f"{rest} more are slower"] * (rest > 0)
    fastest = _stated(results, order[0], best)
    return f"{fastest} is fastest: {_performance(results[best])}{first}; {'; '.join(others)}."


def _stated(results: ResultTable, name: str, run: int) -> str:
    """Returns the name of a system, with its state if requests met an array with a missing or unfilled drive."""
    counters = {counter["name"]: counter["value"] for counter in results.whole(run)["counters"]}
    return f"{name} (degraded)" if counters.get("degraded_requests") else name


@dataclass(frozen=True)
class _Synchronous:
    """The synchronous writes of a run: each write is followed by a flush."""

    name: str
    load: str
    per_s: float
    """Pairs of a write and its flush per second."""
    write_ms: float
    """Mean latency of a write."""
    flush_ms: float
    """Mean latency of a flush."""
    width_ms: float | None
    """95 % confidence half-width of the mean latency of a pair; ``None`` if the run is too short."""
    flush_p99_ms: float | None
    measured: tuple[int, int, int] | None
    """Low and high end of the 90 % prediction interval of drives of its class, in synchronous writes/s of one writer,
    and the number of measured drives; ``None`` if the cost of flushes is not assumed."""

    @property
    def range(self) -> str:
        """The prediction interval, for example ``; 90 % of such SSDs do 150 to 3,000/s (25 measured)``."""
        if self.measured is None:
            return ""
        low, high, drives = self.measured
        return f"; 90 % of such SSDs do {low:,} to {high:,}/s ({drives} measured)"

    @property
    def rate(self) -> str:
        """The rate with its 95 % confidence interval and the load, for example ``1,360 synchronous writes/s``."""
        width = self.width_ms and self.per_s * self.width_ms / (self.write_ms + self.flush_ms)
        figure = with_error(self.per_s, width) if width else number(self.per_s)
        return f"{figure} synchronous writes/s {self.load}".rstrip()

    @property
    def each(self) -> str:
        """The mean latency of a pair with its 95 % confidence interval."""
        total = self.write_ms + self.flush_ms
        factor, unit = time_unit(total)
        return f"{with_error(factor * total, factor * self.width_ms)} {unit}" if self.width_ms else time(total)


def _synchronous(results: ResultTable, run: int) -> _Synchronous | None:
    """Returns the synchronous writes of a run; ``None`` if it reads, trims, or does not flush after every write."""
    whole, row = results.whole(run), results[run]
    kinds = whole["kinds"]
    writes, flushes = kinds["write"]["count"], kinds["flush"]["count"]
    # A workload has lines; a phase of a job file has processors.
    if not {"lines", "cpus"} & whole["workload"].keys() or row["saturated"] or is_of_arrivals(row):
        return None
    if not flushes or kinds["read"]["count"] or kinds["trim"]["count"] or abs(writes - flushes) > max(1, 0.01 * writes):
        return None
    write_ms, flush_ms = (
        kinds[kind]["latency"]["sum_ns"] / kinds[kind]["latency"]["count"] / 1e6 for kind in ("write", "flush")
    )
    return _Synchronous(
        name=_stated(results, next(name for name, runs in results.curves().items() if run in runs), run),
        load=load_of(row),
        per_s=flushes / (whole["duration_ns"] / 1e9),
        write_ms=write_ms,
        flush_ms=flush_ms,
        # The mean of writes and flushes is half of a pair.
        width_ms=None if row["half_width_ms"] is None else 2 * row["half_width_ms"],
        flush_p99_ms=percentile_of(kinds["flush"]["latency"], 0.99),
        measured=_sync_writes_of_class(whole["system"]["description"]) if row["depth"] == 1 else None,
    )


def _sync_writes_of_class(description: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Returns the prediction interval of an SSD's synchronous writes, with the number of measured drives."""
    ssd = description.get("drive", {}).get("ssd")
    if ssd is None:
        return None
    protected = ssd["buffer"]["power_loss_protected"]
    return _native.SYNC_WRITES_PROTECTED if protected else _native.SYNC_WRITES_UNPROTECTED


def percentile_of(histogram: Mapping[str, Any], quantile: float) -> float | None:
    """Returns a percentile of a histogram of a result, in ms, to the width of its bins; ``None`` if it is empty or
    incomplete."""
    if not histogram["count"] or histogram["overflow"]:
        return None
    rank, seen = math.ceil(quantile * histogram["count"]), 0
    for lower_ns, count in histogram["bins"]:
        seen += count
        if seen >= rank:
            return float(lower_ns) / 1e6
    return None


def _of_synchronous(runs: Sequence[_Synchronous], results: ResultTable) -> str:
    by_name = {run.name: run for run in sorted(runs, key=lambda run: run.per_s)}
    best, *others = sorted(by_name.values(), key=lambda run: run.per_s, reverse=True)
    if others:
        slower = [f"{run.name}: {run.rate} ({run.each} each)" for run in others[:NAMED_MAX]]
        rest = len(others) - len(slower)
        slower += [f"{rest} more are slower"] * (rest > 0)
        return f"{best.name} is fastest: {best.rate} ({best.each} each); {'; '.join(slower)}."
    parts = f"write {time(best.write_ms)}, flush {time(best.flush_ms)}"
    tail = f" (flush p99 {time(best.flush_p99_ms)})" if best.flush_p99_ms is not None else ""
    return f"{best.name} completes {best.rate}: {best.each} each, {parts}{tail}{best.range}."


@dataclass(frozen=True)
class _Commits:
    """The transactions of a database in a run."""

    name: str
    per_s: float
    clients: int
    p99_ms: float
    """99th percentile of the time of a commit."""

    def __str__(self) -> str:
        clients = f"{self.clients} client{'s' * (self.clients != 1)}"
        return f"{number(self.per_s)} transactions/s with {clients}, p99 of a commit {time(self.p99_ms)}"


def _commits(results: ResultTable, run: int) -> _Commits | None:
    """Returns the transactions of a run whose only stream is a database; ``None`` for other runs."""
    streams, depth = results.streams_of(run), results[run]["depth"]
    facts = streams[0]["facts"] if len(streams) == 1 else {}
    if depth is None or not {"transactions_per_s", "p99_commit_ms"} <= facts.keys():
        return None
    name = _stated(results, next(name for name, runs in results.curves().items() if run in runs), run)
    return _Commits(name, facts["transactions_per_s"], depth, facts["p99_commit_ms"])


def _of_commits(runs: Sequence[_Commits]) -> str:
    by_name = {run.name: run for run in sorted(runs, key=lambda run: run.per_s)}
    best, *others = sorted(by_name.values(), key=lambda run: run.per_s, reverse=True)
    if not others:
        return f"{best.name} commits {best}."
    slower = [f"{run.name}: {run}" for run in others[:NAMED_MAX]]
    slower += [f"{len(others) - len(slower)} more are slower"] * (len(others) > len(slower))
    return f"{best.name} is fastest: {best}; {'; '.join(slower)}."


def _worth(row: Row) -> tuple[bool, float]:
    """Sorts runs: runs that keep up with their rate first, then by latency if arrivals set the rate, otherwise by
    throughput."""
    keeps_up = not row["saturated"]
    return keeps_up, -row["mean_ms"] if is_of_arrivals(row) and keeps_up else row["iops"]


def _of_one(results: ResultTable, name: str) -> str:
    runs = results.curves()[name]
    first = results[runs[0]]
    name = _stated(results, name, runs[0])
    tail = f", p99 {time(first['p99_ms'])}" if first["p99_ms"] is not None else ""
    if first["saturated"]:
        return f"{name} cannot keep up with {number(first['rate_per_s'])} IOPS: it serves {number(first['iops'])}."
    if is_of_arrivals(first):
        with_rate = f"keeps up with {number(first['rate_per_s'])} IOPS" if first["rate_per_s"] else "keeps up"
        return f"{name} {with_rate}: mean latency {_mean(first)}{tail}."
    if len(runs) == 1:
        return f"{name} serves {_performance(first)}; mean latency {_mean(first)}{tail}.{_parts(results, runs[0])}"
    most = results[max(runs, key=lambda run: results[run]["iops"])]
    return f"{name} serves {_performance(first)} and up to {_performance(most)}."


def _parts(results: ResultTable, run: int) -> str:
    """Returns a sentence with the parts of the mean latency of reads at a queue depth of 1; empty for other runs."""
    row, whole = results[run], results.whole(run)
    kinds = whole["kinds"]
    reads = kinds["read"]["count"]
    is_single = row["depth"] == 1 and "lines" in whole["workload"] and whole["mode"] == "simulated"
    if not is_single or not reads or reads < sum(kind["count"] for kind in kinds.values()):
        return ""
    counters = {counter["name"]: counter["value"] for counter in whole["counters"]}
    parts = {name: counters.get(f"{name}_ns", 0) / reads / 1e6 for name in ("seek", "rotation", "transfer")}
    idle = ""
    if not any(parts.values()):
        components = whole["components"]
        parts = {each["name"]: each["busy_ns"] / reads / 1e6 for each in components if each["servers"] > 1}
        dies = next((each["servers"] for each in components if each["name"] == "dies"), 0)
        idle = f", and {dies - 1} of {dies} dies are idle" if dies > 1 else ""
        if not dies:
            return ""
    # Requests that are served by several components at once have no parts that add up.
    rest = row["mean_ms"] - sum(parts.values())
    if rest < 0:
        return ""
    parts["other"] = rest
    shown = [f"{name} {time(ms)}" for name, ms in parts.items() if ms >= 0.01 * row["mean_ms"]]
    return f" Requests do not overlap{idle}; each takes {' + '.join(shown)}."


def _performance(row: Row) -> str:
    """``161 IOPS at depth 1 (155 to 167)``: the prediction interval, or else ± the 95 % confidence interval."""
    load = load_of(row)
    if row["saturated"]:
        return f"{number(row['iops'])} IOPS, saturated {load}".rstrip()
    if is_of_arrivals(row):
        return f"mean latency {_mean(row)} {load}".rstrip()
    low, high = row["iops_model_low"], row["iops_model_high"]
    if low is not None and high is not None:
        ends = f"{_level(row)}{number(low)} to {number(high)}"
        return f"{format_significant(row['iops'], (high - low) / 2)} IOPS {load} ({ends})"
    width = row["half_width_ms"] and row["iops"] * row["half_width_ms"] / row["mean_ms"]
    # Clients of several kinds have no throughput in common.
    if not width or row["depth"] is None:
        return f"{number(row['iops'])} IOPS {load}".rstrip()
    return f"{with_error(row['iops'], width)} IOPS {load}"


def _level(row: Row) -> str:
    """Returns the level of a prediction interval if it is lower than usual, for example ``80 %: ``."""
    level = row["model_level"]
    return "" if level is None or level >= LEVEL else f"{percent(level)}: "


def _mean(row: Row) -> str:
    low, high = row["mean_model_low_ms"], row["mean_model_high_ms"]
    if low is not None and high is not None:
        return f"{time(row['mean_ms'])} ({_level(row)}{time(low)} to {time(high)})"
    factor, unit = time_unit(row["mean_ms"])
    width = row["half_width_ms"]
    return f"{with_error(factor * row['mean_ms'], factor * width)} {unit}" if width else time(row["mean_ms"])


# Columns.


def words_of(column: str) -> tuple[str, str]:
    """Returns the name of a column in words, and its unit."""
    match = UNITS.search(column)
    words = column[: match.start()] if match else column
    return re.sub(r"[._]", " ", words), WRITTEN.get(match[1], match[1].replace("_per_", "/")) if match else ""


# A sentence for each figure.


def describe_curves(results: ResultTable, curves: Mapping[str, Sequence[int]]) -> str:
    """Returns a sentence with the throughput that each system gains with load, and its latency."""
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
    # A name is not changed.
    return f"A{text[1:]}" if text.startswith("at ") else text


def describe_extremes(values: Mapping[str, float], unit: str) -> str:
    """Returns a sentence with the largest and the smallest value; empty if all values are equal."""
    most, least = max(values, key=values.__getitem__), min(values, key=values.__getitem__)
    if most == least:
        return ""
    return f"Most: {most} with {number(values[most])} {unit}; least: {least} with {number(values[least])} {unit}."


def describe_percentiles(percentiles: Mapping[str, Mapping[float, float]]) -> str:
    """Returns the median and the 99th percentile of each curve in words, from latencies in ms by percentile."""
    said = [
        f"{name}: p50 {time(times[50])}, p99 {time(times[99])}"
        for name, times in list(percentiles.items())[:NAMED_MAX]
        if 50 in times and 99 in times
    ]
    return _joined(said, len(percentiles))


def describe_range(values: Iterable[float], unit: str) -> str:
    """Returns a sentence with the smallest and the largest value over time."""
    figures = list(values)
    return f"Between {number(min(figures))} and {number(max(figures))} {unit}."


# Sentences for figures of any table. Only the authors of a study know which question it answers.


def with_says(figure: Figure) -> Figure:
    """Returns the figure with a sentence on its difference from published values or, without published values, on its
    extremes. A table gets no sentence."""
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
    """Returns the unit of an axis: the start of the text in parentheses at the end of its label."""
    return re.split("[,;]| of ", axis.label.rpartition("(")[2].removesuffix(")"))[0] if axis.label.endswith(")") else ""


Pair = tuple[str, float, float]
"""Name of a point, our value and the published value."""


def _pairs_of_lines(figure: Lines) -> Iterator[Pair]:
    """Yields pairs of a published point and our point, from series of equal name, at equal labels or, without labels,
    at equal x."""
    for published in figure.series:
        for simulated in figure.series if published.published else ():
            if simulated.published or simulated.name != published.name:
                continue
            has_labels = all(any(series.labels) for series in (published, simulated))
            values_at = {
                (simulated.labels[n] if has_labels else x): y
                for n, (x, y) in enumerate(zip(simulated.x, simulated.y, strict=True))
            }
            for n, (x, y) in enumerate(zip(published.x, published.y, strict=True)):
                key = published.labels[n] if has_labels else x
                value = values_at.get(key) if key not in (None, "") else None
                if value is not None and y is not None and x is not None:
                    at = key if isinstance(key, str) else f"{number(x)} {unit_of(figure.x)}".rstrip()
                    yield f"{published.name}, {at}", value, y


def _pairs_of_bars(figure: Bars) -> Iterator[Pair]:
    """Yields pairs of our bar and the published bar of the same group, from series of equal name, or from all our
    series if only one series is published."""
    published = [series for series in figure.series if series.published]
    ours = [series for series in figure.series if not series.published]
    for published_series in published:
        for our_series in ours:
            if our_series.name != published_series.name and len(published) > 1:
                continue
            for group, value, stated in zip(figure.groups, our_series.y, published_series.y, strict=True):
                if value is not None and stated is not None:
                    yield group if len(ours) == 1 else f"{group}, {our_series.name}", value, stated


def _pairs_of_grid(figure: Grid) -> Iterator[Pair]:
    for row, values, stated_values in zip(figure.rows, figure.values, figure.published, strict=False):
        for column, value, stated in zip(figure.columns, values, stated_values, strict=True):
            if value is not None and stated is not None:
                yield f"{row}, {column}", value, stated


def _of_errors(pairs: Sequence[Pair], unit: str) -> str:
    """Returns a sentence with the mean and the largest difference from published values, in percentage points if the
    values are percentages, otherwise in percent."""
    in_points = unit.startswith("%") or unit == "points"
    errors = {
        name: value - stated if in_points else 100 * (value / stated - 1)
        for name, value, stated in pairs
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
    """Returns the first and the last value of each line in words, with their intervals."""
    if figure.x_is_percentile and unit_of(figure.y) == "ms":
        percentiles = {
            series.name: {x: y for x, y in zip(series.x, series.y, strict=True) if x and y} for series in figure.series
        }
        return describe_percentiles(percentiles)
    sentences = []
    for series in figure.series:
        points = [n for n, (x, y) in enumerate(zip(series.x, series.y, strict=True)) if x is not None and y is not None]
        if series.published or not points:
            continue
        ends = [_point(figure, series, n) for n in dict.fromkeys((points[0], points[-1]))]
        sentences.append(f"{series.name} {'from ' * (len(ends) > 1)}{' to '.join(ends)}")
    return _joined(sentences[:NAMED_MAX], len(sentences))


def _point(figure: Lines, series: Series, n: int) -> str:
    x, unit = series.x[n] or 0.0, unit_of(figure.x)
    # Points at whole counts may be drawn slightly beside their x, so that intervals do not overlap.
    return _figure(series.y[n] or 0.0, unit_of(figure.y), series, n) + (f" at {in_unit(x, unit)}" if unit else "")


def _figure(value: float, unit: str, series: Series, n: int) -> str:
    """Formats a value with its unit, and its interval if it has one."""
    low, high = (ends[n] if ends else None for ends in (series.low, series.high))
    factor = time_unit(value)[0] if unit == "ms" else 1
    ends = [number(factor * low), number(factor * high)] if low is not None and high is not None else []
    return in_unit(value, unit) + (f" ({' to '.join(ends)})" if len(set(ends)) > 1 else "")


def _of_bars(figure: Bars) -> str:
    bars = [
        (y, f"{group}, {series.name}" if len(figure.series) > 1 and series.name != group else group, series, n)
        for series in figure.series
        for n, (group, y) in enumerate(zip(figure.groups, series.y, strict=True))
        if y is not None
    ]
    if len(bars) < 2:
        return ""
    unit = unit_of(figure.y)
    most, least = max(bars, key=lambda bar: bar[0]), min(bars, key=lambda bar: bar[0])
    extremes = [f"{name} with {_figure(y, unit, series, n)}" for y, name, series, n in (most, least)]
    return "" if most[0] == least[0] else f"Most: {extremes[0]}; least: {extremes[1]}."


def _of_grid(figure: Grid) -> str:
    cells = [
        (value, f"{row}, {column}")
        for row, values in zip(figure.rows, figure.values, strict=True)
        for column, value in zip(figure.columns, values, strict=True)
        if value is not None
    ]
    if len(cells) < 2:
        return ""
    most, least = (f"{number(value)} ({name})" for value, name in (max(cells), min(cells)))
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
    """Formats a value with three significant digits, or all digits of its integer part."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def in_unit(value: float, unit: str) -> str:
    if unit == "ms":
        return time(value)
    return f"${number(value)}" if unit == "$" else f"{number(value)} {unit}".rstrip()


def time(ms: float) -> str:
    factor, unit = time_unit(ms)
    return f"{number(factor * ms)} {unit}"


def time_unit(ms: float) -> tuple[float, str]:
    return (1000, "µs") if ms < 1 else (1, "ms") if ms < 10_000 else (0.001, "s")


def format_significant(value: float, half_width: float) -> str:
    """Formats a value with the digits that are significant for this half-width of its interval."""
    return f"{value:,.{max(0, _decimals(half_width))}f}"


def with_error(value: float, half_width: float) -> str:
    """Formats ``1.30 ± 0.02``, both rounded to the first or second digit of the half-width."""
    decimals = _decimals(half_width)
    texts = (f"{round(figure, decimals):,.{max(0, decimals)}f}" for figure in (value, half_width))
    return " ± ".join(texts)


def _decimals(half_width: float) -> int:
    """Returns the number of decimals that gives the half-width one significant digit, or two if the first digit is 1;
    negative to round to tens or more."""
    if not half_width > 0:
        return 2
    place = math.floor(math.log10(half_width))
    return -place + (half_width / 10.0**place < 2)
