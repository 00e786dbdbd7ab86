"""Readers of the host's processors: vmstat, top, mpstat and ``sar -u``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.suspects.weighing import host_weights
from headstack.diagnosis.judging.verdict import Suspect

VMSTAT = re.compile(r"^\s*r\s+b\s+swpd\s+free\b.*\bbi\s+bo\b.*$", re.MULTILINE)
TOP = re.compile(r"^%?Cpu\(s\):\s*(.+)$", re.MULTILINE)
TOP_SHARE = re.compile(r"(\d+(?:[.,]\d+)?)\s*%?\s*(us|sy|ni|id|wa|hi|si|st)\b")
TABLE = re.compile(r"^.*\bCPU\s+%usr?e?r?\s.*%idle.*$", re.MULTILINE)
"""The heading of mpstat and of ``sar -u``."""
DISKS = "iostat -x 5 of the same time, for rates and latencies of the disks"
WAITING_PERCENT = 30.0
"""Share of processors that wait for I/O from which this is no matter of accounting."""
STOPPED = 0.02
"""Share of the usual rate of writes below which they have stopped."""
STOPS_MIN = 2
"""Samples in a row without writes that are no pause between two bursts."""


def vmstat(text: str, name: str) -> list[Statement]:
    """Reads vmstat: shares of processors, blocked processes, and blocks of all devices together."""
    heading = VMSTAT.search(text)
    assert heading is not None
    columns = heading[0].split()
    samples = [
        dict(zip(columns, map(float, words[: len(columns)]), strict=True))
        for line in text[heading.end() :].splitlines()
        if len(words := line.split()) >= len(columns) and all(map(str.isdigit, words[: len(columns)]))
    ]
    if len(samples) > 1:
        # The first line holds means since boot.
        samples = samples[1:]
    if not samples:
        return [Statement(name, "vmstat without values", is_for_all=True, source="vmstat", needed=DISKS)]
    means = {column: sum(sample[column] for sample in samples) / len(samples) for column in columns}
    stated = [_of_shares(name, {k: means.get(k, 0.0) for k in ("id", "wa", "st") if k in means}, "vmstat", means["b"])]
    if stop := _stop(samples):
        stated.append(Statement(name, stop, {"queue": -1.0, "none": -2.0}, True, "vmstat", DISKS))
    return stated


def _stop(samples: Sequence[Mapping[str, float]]) -> str | None:
    """Returns how long writes stopped while processes waited for I/O, in words."""
    usual = sorted(sample["bo"] for sample in samples)[len(samples) // 2]
    stopped = [sample for sample in samples if sample["bo"] <= STOPPED * usual and sample["b"] > 0]
    if usual <= 0 or len(stopped) < STOPS_MIN:
        return None
    return (
        f"writes of {usual:,.0f} blocks a sample stop in {len(stopped)} of {len(samples)} samples while "
        f"{max(sample['b'] for sample in stopped):.0f} processes wait for I/O: something holds the device; discards, a "
        "limit and a stall look the same here"
    )


def top(text: str, name: str) -> list[Statement]:
    """Reads the lines of top with the shares of all processors."""
    lines = [
        {key: float(value.replace(",", ".")) for value, key in TOP_SHARE.findall(match[1])}
        for match in TOP.finditer(text)
    ]
    shares = {key: sum(line.get(key, 0.0) for line in lines) / len(lines) for key in lines[0]}
    return [_of_shares(name, shares, "top")]


def table(text: str, name: str) -> list[Statement]:
    """Reads mpstat or ``sar -u``: the lines of all processors together, without averages."""
    columns: list[str] = []
    samples: list[dict[str, float]] = []
    for line in text.splitlines():
        words = line.split()
        if "CPU" in words and "%idle" in words:
            columns = [word.lstrip("%") for word in words[words.index("CPU") + 1 :]]
        elif columns and "all" in words and words[0].rstrip(":") != "Average":
            values = [word.replace(",", ".") for word in words[words.index("all") + 1 :]]
            if len(values) == len(columns) and all(re.fullmatch(r"\d+(\.\d+)?", value) for value in values):
                samples.append(dict(zip(columns, map(float, values), strict=True)))
    if not samples:
        return [Statement(name, "no line of all processors", is_for_all=True, source="sar -u", needed=DISKS)]
    means = {key: sum(sample[key] for sample in samples) / len(samples) for key in samples[0]}
    named = {"id": means.get("idle", 0.0), "wa": means.get("iowait", 0.0), "st": means.get("steal", 0.0)}
    return [_of_shares(name, named, "sar -u or mpstat")]


def _of_shares(name: str, percent: Mapping[str, float], source: str, blocked: float = 0.0) -> Statement:
    """Returns what shares of processors in percent mean. One that waits for I/O is idle too."""
    idle, steal = (percent.get("id", 0.0) + percent.get("wa", 0.0)) / 100, percent.get("st", 0.0) / 100
    evidence = (
        f"processors {idle:.0%} idle ({percent.get('wa', 0.0) / 100:.0%} of it waiting for I/O), {steal:.0%} stolen"
    )
    if blocked:
        evidence += f", {blocked:.2g} processes waiting for I/O"
    weights: dict[Suspect, float] = {**host_weights(idle, steal)}
    if blocked >= 1 or percent.get("wa", 0.0) >= WAITING_PERCENT:
        # Processes do wait for I/O.
        weights["none"] = -1.5
    return Statement(name, evidence, weights, True, source, DISKS)
