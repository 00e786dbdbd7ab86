"""Readers of pressure stall information and of control groups: ``io.pressure``, ``io.stat`` and ``io.max``."""

from __future__ import annotations

import re
from collections import defaultdict

from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.suspects.thresholds import AT_LIMIT, BELOW_LIMIT, PRESSURE
from headstack.diagnosis.judging.verdict import Suspect

PRESSURES = re.compile(
    r"^(some|full)\s+avg10=(\d+(?:\.\d+)?)\s+avg60=(\d+(?:\.\d+)?)\s+avg300=(\d+(?:\.\d+)?)\s+total=(\d+)", re.MULTILINE
)
RESOURCES = ("cpu", "memory", "io")
RESOURCE = re.compile(r"^\D*?/?\b(cpu|memory|io)(?:\.pressure)?(?: <==)?:?\s*$", re.MULTILINE)
"""A line before the figures of a resource, such as ``$ cat /proc/pressure/io``."""
IO_STAT = re.compile(r"^(\d+:\d+)\s+rbytes=\d+.*\bwios=\d+", re.MULTILINE)
IO_MAX = re.compile(r"^(\d+:\d+)\s+(?=.*\b[rw](?:bps|iops)=)(.+)$", re.MULTILINE)
PAIR = re.compile(r"(\w+)=(\d+|max)")
TIME = re.compile(r"^(?:\D*\s)?(\d{10}(?:\.\d+)?)\s*$", re.MULTILINE)
LIMITS = {"rbps": "rbytes", "wbps": "wbytes", "riops": "rios", "wiops": "wios"}
"""Limits of ``io.max`` and the counters of ``io.stat`` that they bound."""
DISKS = "iostat -x 5 of the same time, for rates and latencies of the disks"


def pressures(text: str, name: str) -> list[Statement]:
    """Reads PSI: the shares of time in which some or all tasks waited for I/O."""
    sections = [*RESOURCE.finditer(text)]
    if sections:
        ends = [*(of.start() for of in sections[1:]), len(text)]
        parts = [(of[1], text[of.end() : end]) for of, end in zip(sections, ends, strict=True)]
        return [_of_resource(part, name, resource) for resource, part in parts if PRESSURES.search(part)]
    return [_of_resource(text, name, next((word for word in RESOURCES if re.search(rf"\b{word}\b", name)), ""))]


def _of_resource(text: str, name: str, resource: str) -> Statement:
    last = {kind: values for kind, *values in PRESSURES.findall(text)}
    shown = "; ".join(f"{kind}: {', '.join(f'{float(v):g} %' for v in of[:3])}" for kind, of in last.items())
    evidence = f"tasks wait {'for ' + resource if resource else ''} ({shown} of the last 10, 60 and 300 s)".replace(
        "  ", " "
    )
    some = float(last["some"][0]) / 100 if "some" in last else 0.0
    weights: dict[Suspect, float] = {}
    if resource == "cpu" and some >= PRESSURE:
        weights = {"host": 2.5}
    elif resource != "memory" and some >= PRESSURE:
        weights = {"none": -2.0}
    elif resource in ("io", ""):
        weights = {"none": 1.0}
    return Statement(name, evidence, weights, True, "pressure stall information", DISKS)


def control_group(text: str, name: str) -> list[Statement]:
    """Reads ``io.stat`` with the limits of ``io.max``: rates between two readings, relative to the limits."""
    stated = pressures(text, "io") if PRESSURES.search(text) else []
    limits = {
        device: {key: float(value) for key, value in PAIR.findall(pairs) if key in LIMITS and value != "max"}
        for device, pairs in IO_MAX.findall(text)
    }
    rates = _rates(text)
    for device in {**limits, **rates}:
        for key, limit in limits.get(device, {}).items():
            rate = rates.get(device, {}).get(LIMITS[key])
            stated.append(_of_limit(device, key, limit, rate))
        if device in rates and not limits.get(device):
            of = rates[device]
            shown = (
                f"{of.get('rios', 0):,.0f} reads and {of.get('wios', 0):,.0f} writes a second, and no limit in io.max"
            )
            stated.append(Statement(device, shown, {"limit": -1.0}, source="io.stat", needed=DISKS))
    if not stated:
        needed = "two readings of io.stat, each after a line with the time, and io.max"
        stated.append(Statement(name, "one reading of counters has no rates", source="io.stat", needed=needed))
    return stated


def _of_limit(device: str, key: str, limit: float, rate: float | None) -> Statement:
    needed = "two readings of io.stat, each after a line with the time"
    if rate is None:
        return Statement(device, f"io.max limits {key} to {limit:,.0f}", {"limit": 1.0}, source="io.max", needed=needed)
    share = rate / limit
    weight = 6.0 if share >= AT_LIMIT else -4.0 if share < BELOW_LIMIT else 1.0
    evidence = f"{rate:,.0f} of {limit:,.0f} ({key} of io.max): {share:.0%} of the limit"
    return Statement(device, evidence, {"limit": weight}, source="io.stat and io.max", needed=DISKS)


def _rates(text: str) -> dict[str, dict[str, float]]:
    """Returns the rates of each device between the first and the last reading with times."""
    readings: dict[str, list[tuple[float, dict[str, float]]]] = defaultdict(list)
    now_s = None
    for line in text.splitlines():
        if match := TIME.match(line):
            now_s = float(match[1])
        elif IO_STAT.match(line) and now_s is not None:
            counts = {key: float(value) for key, value in PAIR.findall(line) if value != "max"}
            readings[line.split()[0]].append((now_s, counts))
    rates = {}
    for device, of in readings.items():
        (begin_s, first), (end_s, last) = of[0], of[-1]
        if end_s > begin_s:
            rates[device] = {key: (last[key] - first[key]) / (end_s - begin_s) for key in first if key in last}
    return rates
