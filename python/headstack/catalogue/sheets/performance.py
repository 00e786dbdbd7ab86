"""Readers of rates and latencies: random and sequential requests, their queue depth and the state of the drive."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from headstack.catalogue.sheets import figures

KeyValues: TypeAlias = dict[str, Any]
Both: TypeAlias = tuple[float | None, float | None]

KIB = 1024
STATED_SIZE = 4 * KIB
"""Request size of the rates that a drive file states."""
SIZE = re.compile(r"(?<![\d.,])(1|2|4|8|16|32|64|128|256|512|1024)\s*-?(k(?:i?b(?:ytes?)?)?)\b(?!\s*i?ops)")
DEPTH = re.compile(
    r"\bqd?\s*[=:]?\s*(\d+)|queue[ -]?depth\s*(?:of\s*)?[=:]?\s*(\d+)|\b(\d+)\s*q\b|\b(\d+)\s*(?:queue[ -]?depth|qd)\b"
)
THREADS = re.compile(
    r"(?<=\d)t\s*(\d+)\b|\b(\d+)\s*(?:threads?|workers?|jobs?)\b|\b(?:threads?|workers?|jobs?)\s*[=:]?\s*(\d+)"
)
MIXED = re.compile(r"\d0\s*/\s*\d0|\bmix|\b[1-9]0\s*%\s*(?:r|w)")
NO_RATE = re.compile(
    r"latency|\bqos\b|quality|response|consisten|percentile|access time|\bpower\b|\(m?w\)|\b9\d?(\.9+)?\s*%"
)
STEADY = re.compile(r"steady|sustain")
BURST = re.compile(r"burst|fresh|\bfob\b|\bpeak\b")
EITHER = re.compile(r"\br\s*/\s*w\b|read\s*(?:/|and|&|or)\s*(?:random\s*)?write")


def directions(label: str, value: str) -> tuple[bool, bool]:
    """Whether a line is about reads, and about writes; both if it names neither."""
    lower = value.lower()
    for text in (label, lower):
        if re.search(r"\br\s*/\s*w\b", text):
            return True, True
        reads, writes = "read" in text, "write" in text or "writing" in text
        if reads or writes:
            return reads, writes
    return True, True


def directed(label: str, value: str, values: list[float], places: list[int] | None = None) -> Both:
    """Returns the figures for reads and for writes. A single figure of a line that names both is that of both."""
    reads, writes = directions(label, value)
    if not values:
        return None, None
    if reads and writes:
        if len(values) == 1:
            return values[0], values[0] if EITHER.search(f"{label} {value.lower()}") else None
        named = figures.named_directions(value, places[:2]) if places else None
        return (values[1], values[0]) if named and named[0] == "write" else (values[0], values[1])
    return (values[0], None) if reads else (None, values[0])


def per_second(rate: float) -> str:
    """Returns a rate in bytes per second as drive files write it."""
    return f"{rate / 1e9:.6g}GB/s" if rate >= 1e9 else f"{rate / 1e6:.6g}MB/s"


def rate_to(key: str) -> Callable[[str, str], KeyValues]:
    """Returns a reader of a rate to this key."""

    def read(label: str, value: str) -> KeyValues:
        rates = figures.rates(label, value)
        return {key: per_second(rates[0]) if rates else None}

    return read


def sequential(label: str, value: str) -> KeyValues:
    """Reads rates of sequential reads and writes."""
    if re.search(r"latency|time|written|\b[tp]bw\b|size", label):
        return {}
    places = [match.start() for match in figures.RATE.finditer(value)] or figures.number_places(value)
    reads, writes = directed(label, value, figures.rates(label, value), places)
    return {
        "stated.sequential_read": None if reads is None else per_second(reads),
        "stated.sequential_write": None if writes is None else per_second(writes),
    }


def speeds(label: str, value: str) -> KeyValues:
    """Reads rates whose label names a direction, such as `Read speed (MB/s)`, if their unit is one of rates."""
    if figures.rate_unit(label) is None and not figures.RATE.search(value):
        return {}
    return sequential(label, value)


def depth_of(text: str) -> int | None:
    """Returns the number of requests in flight: the queue depth of each thread times the threads.

    >>> depth_of("4kb, qd32"), depth_of("q32t16"), depth_of("queue depth 32, 4 workers")
    (32, 512, 128)
    """
    match = DEPTH.search(text)
    # `Q32T16`
    compact = re.search(r"\bqd?\s*(\d+)\s*t\s*(\d+)\b", text)
    if compact:
        return int(compact[1]) * int(compact[2])
    if not match:
        return None
    threads = THREADS.search(text)
    depth = int(next(part for part in match.groups() if part))
    return depth * (int(next(part for part in threads.groups() if part)) if threads else 1)


def request_bytes(label: str, value: str) -> int:
    """Returns the size of a request; 4 KiB if none is written.

    >>> request_bytes("random 8kb read", "up to 48,000 iops"), request_bytes("random read", "128k")
    (8192, 4096)
    """
    for text, sure in ((label, True), (value, False)):
        for match in SIZE.finditer(text):
            # `128K` in a value is a rate, `4KB`, `(4K` and `4K blocks` are sizes.
            blocks = re.match(r"\s*(?:blocks?|random|aligned|qd|,\s*qd)", text[match.end() :])
            if sure or len(match[2]) > 1 or blocks or text[: match.start()].endswith("("):
                return int(match[1]) * KIB
    return STATED_SIZE


def random(label: str, value: str) -> KeyValues:
    """Reads rates of random requests; rates at queue depth 1 are converted to latencies."""
    lower = value.lower()
    text = f"{label} {lower}"
    if MIXED.search(label) or re.search(r"\bseq", label) or NO_RATE.search(label):
        return {}
    if figures.RATE.search(value) and "iops" not in text:
        return {}
    if "iops" not in text and re.search(r"\d\s*(?:[nµum]?s(?:ec)?|m?w|%)\b", lower):
        return {}
    size, depth = request_bytes(label, lower), depth_of(text)
    figure = _without_conditions(value)
    values = figures.numbers(figure)
    reads, writes = directed(label, figure, values, figures.number_places(figure))
    scale = 1e6 if re.search(r"miops|\(m\b", label) else 1e3 if re.search(r"kiops|\(k\b|iops \(k|\(000", label) else 1.0
    if re.search(rf"(?:{figures.NUMBER})\s*/\s*(?:{figures.NUMBER})\s*k", lower):
        # The unit of the second figure is that of the first: `98/90K`
        scale = 1e3
    if scale > 1:
        reads, writes = (rate * scale if rate is not None and rate < 1e4 else rate for rate in (reads, writes))
    if reads is None and writes is None:
        return {}
    if depth == 1 and size == STATED_SIZE:
        return {
            "?read_alone": f"{1e6 / reads:.4g}us" if reads else None,
            "?write_alone": f"{1e6 / writes:.4g}us" if writes else None,
        }
    common: KeyValues = {} if depth is None else {"depth": depth}
    common |= {"size": f"{size // KIB}KiB"}
    return {
        "stated.random_read": {"iops": round(reads), **common} if reads and size == STATED_SIZE else None,
        "stated.random_write": {"iops": round(writes), **common, **_state(text)} if writes else None,
    }


def _without_conditions(value: str) -> str:
    """Returns a value without the conditions of a rate: sizes, depths, threads, percentages and what is in brackets."""
    kept = re.sub(r"\([^)]*\)", lambda match: " " * len(match[0]), value)
    kept = re.sub(r"(?i)@\s*\S*", lambda match: " " * len(match[0]), kept)
    for pattern in (DEPTH, THREADS, re.compile(r"(?i)\b\d+\s*k(?:i?b(?:ytes?)?)\b|\d+(?:\.\d+)?\s*%")):
        kept = re.compile(pattern.pattern, re.IGNORECASE).sub(lambda match: " " * len(match[0]), kept)
    return kept


def _state(text: str) -> KeyValues:
    """Returns the state of the drive and of its write cache in which random writes were measured."""
    state: KeyValues = {"state": "steady"} if STEADY.search(text) else {"state": "burst"} if BURST.search(text) else {}
    if re.search(r"\bwc[de]\b|write cache", text):
        state["cache"] = "off" if re.search(r"\bwcd\b|disabled|\boff\b", text) else "on"
    return state


def latency(label: str, value: str) -> KeyValues:
    """Reads typical latencies of single random requests."""
    text = f"{label} {value.lower()}"
    if re.search(r"\bseq", label) or re.search(r"\b9\d?(\.9+)?\s*%|\bqos\b|quality|percentile|\bmax", text):
        return {}
    first, second = figures.times_us(label, value)
    reads, writes = directed(label, value, [time for time in (first, second) if time is not None])
    return {
        "stated.read_latency": None if reads is None else f"{reads:g}us",
        "stated.write_latency": None if writes is None else f"{writes:g}us",
    }
