"""Reader of small tables of summaries, such as rates at several limits or percentiles of a load, without disks and
times."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from statistics import fmean

from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.suspects.level import by_depth, by_latency
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.suspects.thresholds import AT_LIMIT
from headstack.diagnosis.judging.suspects.weighing import host_weights
from headstack.diagnosis.judging.verdict import Suspect

RATE = re.compile(r"(?i)iops|ops|(?:mb|mib|kb)(?:_|/|p)?s|rate|throughput|bandwidth|bw")
LIMIT = re.compile(r"(?i)limit|quota|cap(?:ped)?$|throttle|provisioned")
NO_RATE = re.compile(r"(?i)std|dev|min|max|limit|run|count|percent|%|lat|_us|_ms|p\d")
PERCENTILE = re.compile(r"(?i)^p(\d{2,4})(?:[_ (]*(ns|us|ms|s)\)?)?$")
OTHER = re.compile(r"(?i)laten|await|wait|util|queue|depth|fsync|steal|throttl|credit|balance")
LATENCY = re.compile(r"(?i)^(?:avg|mean|lat\w*|p50|await|clat)\w*?[_ (](ns|us|ms|s)\)?$")
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
ROWS_MAX = 200
"""Maximum number of lines of a summary; longer tables are data."""
IOPS = re.compile(r"(?i)iops|ops/s|ops_s|requests/s")
EMPTY = 1.0
"""Rest of burst credits in percent at which the base rate is in force."""
ABOVE = 1.02
"""Mean rate relative to a limit above which it was not in force."""
GAP, FLAT_TAIL = 20.0, 0.05
"""Ratio of p99 to the median of two modes, and difference of p99 and p99.9 behind a limiter's clock."""
COLUMNS = "the data behind it with a time and a disk per line, and --columns"


def table_of(text: str) -> list[dict[str, str]] | None:
    """Returns the lines of a small CSV table with a rate, a limit or percentiles; ``None`` for other text."""
    lines = text.strip().splitlines()
    if not 2 <= len(lines) <= ROWS_MAX or "," not in lines[0]:
        return None
    names = next(csv.reader(lines[:1]))
    is_long = len(names) > 1 and names[0].lower() in ("metric", "name", "counter", "figure") and "value" in names
    is_summary = is_long or any(RATE.search(name) or PERCENTILE.match(name) or OTHER.search(name) for name in names)
    has_time = any(re.search(r"(?i)^(time|ts|timestamp|at|date)", name) for name in names)
    if not is_summary or has_time or len(set(names)) < len(names) or any(_number(name) is not None for name in names):
        return None
    return [dict(zip(names, words, strict=False)) for words in csv.reader(lines[1:])]


def summary(text: str, name: str) -> list[Statement]:
    """Reads rates relative to limits, and percentiles with two modes."""
    rows = table_of(text) or []
    stated = _of_limits(rows, name) + _of_percentiles(rows, name) + _of_metrics(rows, name)
    stated = stated or _of_loads(rows, name)
    if stated:
        return stated
    shown = "; ".join(", ".join(f"{k} {v}" for k, v in row.items() if v) for row in rows[:3])
    return [Statement(name, f"a summary without requests in flight: {shown}", source="table", needed=COLUMNS)]


def _of_limits(rows: Sequence[Mapping[str, str]], name: str) -> list[Statement]:
    names = [*rows[0]] if rows else []
    limits = [column for column in names if LIMIT.search(column)]
    rates = [column for column in names if RATE.search(column) and not NO_RATE.search(column)]
    rates = rates or [column for column in names if RATE.search(column) and re.search(r"mean|avg", column)]
    if not limits or not rates:
        return []
    shares: dict[float, list[float]] = {}
    for row in rows:
        limit, rate = _number(row.get(limits[0], "")), _number(row.get(rates[0], ""))
        if limit and rate is not None:
            shares.setdefault(limit, []).append(rate / limit)
    held = {limit: fmean(of) for limit, of in shares.items() if AT_LIMIT <= fmean(of) <= ABOVE}
    if not held:
        shown = ", ".join(f"{fmean(of):.0%} of {limit:g}" for limit, of in shares.items())
        return [Statement(name, f"rates are {shown}", {"limit": -4.0}, False, "table", COLUMNS)] if shares else []
    shown = ", ".join(f"{share:.1%} of {limit:g}" for limit, share in held.items())
    weights: dict[Suspect, float] = {"limit": 6.0 if len(held) > 1 else 4.0}
    return [Statement(name, f"mean rates are {shown}: held at the stated limit", weights, False, "table", COLUMNS)]


def _of_percentiles(rows: Sequence[Mapping[str, str]], name: str) -> list[Statement]:
    stated = []
    for row in rows:
        of = {}
        for column, text in row.items():
            match, value = PERCENTILE.match(column), _number(text)
            if match and value is not None:
                of[float(f"{match[1][:2]}.{match[1][2:] or 0}")] = value * SECONDS[match[2] or "us"]
        median_s, p99_s, p999_s = (of.get(percent, math.nan) for percent in (50.0, 99.0, 99.9))
        if p99_s > GAP * median_s and abs(p999_s / p99_s - 1) <= FLAT_TAIL:
            evidence = (
                f"two modes: {time_text(median_s)} at the median, and a flat {time_text(p99_s)} from p99 to p99.9: "
                "requests are held until a limiter's clock lets them pass, as a queue would spread them"
            )
            stated.append(Statement(name, evidence, {"limit": 3.5, "none": -1.0}, False, "table", COLUMNS))
    return stated


def _of_loads(rows: Sequence[Mapping[str, str]], name: str) -> list[Statement]:
    """Reads rates with latencies: the requests in flight by Little's law."""
    stated = []
    for row in rows:
        rates = [of for column, text in row.items() if IOPS.search(column) and (of := _number(text)) is not None]
        latencies = [
            of * SECONDS[match[1]]
            for column, text in row.items()
            if (match := LATENCY.match(column)) and (of := _number(text)) is not None
        ]
        if rates and latencies:
            in_flight = rates[0] * latencies[0]
            evidence = (
                f"{rates[0]:,.0f} IOPS at {time_text(latencies[0])} are {in_flight:,.3g} in flight (Little's law)"
            )
            weights = {**by_depth(in_flight)}
            for suspect, weight in by_latency(latencies[0]).items():
                weights[suspect] = weights.get(suspect, 0.0) + weight
            stated.append(Statement(name, evidence, weights, False, "table", COLUMNS))
    return stated[-1:]


def _of_metrics(rows: Sequence[Mapping[str, str]], name: str) -> list[Statement]:
    """Reads a metric and its value per line: steal, exceeded limits, burst credits."""
    stated = []
    for row in rows:
        metric, value = next(iter(row.values()), ""), _number(row.get("value", ""))
        if value is None or "value" not in row:
            continue
        weights: dict[Suspect, float] = {}
        if re.search(r"(?i)steal", metric):
            weights = host_weights(math.nan, value / 100)
        elif re.search(r"(?i)exceeded|throttled", metric):
            weights = {"limit": 4.0 if value > 0 else -2.0}
        elif re.search(r"(?i)credit|balance", metric) and not re.search(r"(?i)used", metric):
            weights = {"limit": 4.0 if value <= EMPTY else 0.0}
        stated.append(
            Statement(name, f"{metric} {value:g} {row.get('unit', '')}".strip(), weights, False, "table", COLUMNS)
        )
    return stated


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return float(text)
    return None
