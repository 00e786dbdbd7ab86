"""What reports say of results in words: the answer first, with its interval, then a sentence for each figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from headstack.answers import is_of_arrivals, load_of

if TYPE_CHECKING:
    from headstack.results import Results, Row

NAMED_MAX = 3
"""So many systems are named in one sentence."""
DEVICES = " in nine of ten devices"
NEAR = 0.9
"""Of the most that a system does: from there on more load gives little."""


def headline(results: Results) -> str:
    """What systems do, the first answer to who has asked for runs: throughput under the load that was tried, or how
    fast they respond where arrivals set the rate."""
    at_most = {name: max(runs, key=lambda run: _worth(results[run])) for name, runs in results.curves().items()}
    order = sorted(at_most, key=lambda name: _worth(results[at_most[name]]), reverse=True)
    if len(order) == 1:
        return _of_one(results, order[0])
    best = at_most[order[0]]
    gain = results.gains()[best]
    first = f", {gain} times {results[0]['system']}" if gain is not None and gain.times > 1 else ""
    others = [f"{name} {_does(results[at_most[name]])}" for name in order[1 : NAMED_MAX + 1]]
    rest = len(order) - 1 - len(others)
    others += [f"{rest} more do less"] * (rest > 0)
    most = "responds fastest" if is_of_arrivals(results[best]) else "does most"
    return f"{order[0]} {most}: {_does(results[best])}{first}; {', '.join(others)}."


def _worth(row: Row) -> float:
    worth: float = -row["mean_ms"] if is_of_arrivals(row) else row["iops"]
    return worth


def _of_one(results: Results, name: str) -> str:
    runs = results.curves()[name]
    first = results[runs[0]]
    if is_of_arrivals(first) or len(runs) == 1:
        tail = f", 99 of 100 within {time(first['p99_ms'])}" if first["p99_ms"] is not None else ""
        if is_of_arrivals(first):
            return f"{name} responds {_does(first)}{tail}."
        return f"{name} serves {_does(first)}; a request takes {_mean(first)} on average{tail}."
    most = results[max(runs, key=lambda run: results[run]["iops"])]
    return f"{name} serves {_does(first)}, and at most {_does(most)}."


def _does(row: Row) -> str:
    """``161 IO/s at depth 1, 155 to 167``: nine of ten devices, or else ± by sampling."""
    load = load_of(row)
    if is_of_arrivals(row):
        return f"in {_mean(row)} on average {load}".rstrip()
    low, high = row["iops_model_low"], row["iops_model_high"]
    if low is not None and high is not None:
        return f"{known(row['iops'], (high - low) / 2)} IO/s {load} ({number(low)} to {number(high)}{DEVICES})"
    width = row["half_width_ms"] and row["iops"] * row["half_width_ms"] / row["mean_ms"]
    # Of clients of several kinds nobody's throughput is that of all.
    if not width or row["depth"] is None:
        return f"{number(row['iops'])} IO/s {load}".rstrip()
    return f"{with_error(row['iops'], width)} IO/s {load}"


def _mean(row: Row) -> str:
    low, high = row["mean_model_low_ms"], row["mean_model_high_ms"]
    if low is not None and high is not None:
        return f"{time(row['mean_ms'])} ({time(low)} to {time(high)}{DEVICES})"
    factor, unit = _unit(row["mean_ms"])
    width = row["half_width_ms"]
    return f"{with_error(factor * row['mean_ms'], factor * width)} {unit}" if width else time(row["mean_ms"])


# A sentence for each figure.


def of_curves(results: Results, curves: Mapping[str, Sequence[int]]) -> str:
    """What load gains and costs."""
    said = []
    for name, runs in list(curves.items())[:NAMED_MAX]:
        rows = [results[run] for run in runs]
        first, most = rows[0], max(row["iops"] for row in rows)
        near = next(row for row in rows if row["iops"] >= NEAR * most)
        if near is not first and first["iops"] and first["mean_ms"]:
            more, longer = near["iops"] / first["iops"], near["mean_ms"] / first["mean_ms"]
            does = f"{name} does {more:.3g} times as much as {load_of(first)}"
            said.append(f"{load_of(near)} {does}, in {longer:.3g} times the time")
        else:
            said.append(f"{name} hardly does more under more load than {number(first['iops'])} IO/s")
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
        f"{name}: half within {time(times[50])}, 99 of 100 within {time(times[99])}"
        for name, times in list(found.items())[:NAMED_MAX]
        if 50 in times and 99 in times
    ]
    return _joined(said, len(found))


def of_course(values: Iterable[float], unit: str) -> str:
    """Between what figures stayed over time."""
    known_values = list(values)
    return f"Between {number(min(known_values))} and {number(max(known_values))} {unit}."


def _joined(said: Sequence[str], count: int) -> str:
    if not said:
        return ""
    rest = f"; {count - len(said)} more below" if count > len(said) else ""
    return f"{'; '.join(said)}{rest}."


# Numbers.


def number(value: float) -> str:
    """With three digits that count, or all of a whole part."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def time(ms: float) -> str:
    factor, unit = _unit(ms)
    return f"{number(factor * ms)} {unit}"


def _unit(ms: float) -> tuple[float, str]:
    return (1000, "µs") if ms < 1 else (1, "ms") if ms < 10_000 else (0.001, "s")


def known(value: float, half_width: float) -> str:
    """A value with the digits that are known of it."""
    return f"{value:,.{_decimals(half_width)}f}"


def with_error(value: float, half_width: float) -> str:
    """``1.30 ± 0.02``: both to the same digit, which is the first or second of the error."""
    decimals = _decimals(half_width)
    return f"{value:,.{decimals}f} ± {half_width:,.{decimals}f}"


def _decimals(half_width: float) -> int:
    """As many that the error has one digit, or two where the first is a 1."""
    if not half_width > 0:
        return 2
    place = math.floor(math.log10(half_width))
    return max(0, -place + (half_width / 10.0**place < 2))
