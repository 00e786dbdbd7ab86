"""Figures of a data sheet: numbers with the units that makers write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

NUMBER = r"\d+(?:[,  ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
SCALES = {"": 1.0, "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6}
TIMES_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "usec": 1e3, "msec": 1e6, "ms": 1e6, "s": 1e9}
BYTES = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15}
BINARY = {"k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40}
DECIMAL = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
RATE = re.compile(rf"({NUMBER})\s*([kmgt])(i?)(bits?|bytes?|b)\s*(?:/\s*s(?:ec)?|ps)\b", re.IGNORECASE)


def numbers(text: str) -> list[float]:
    """Returns every number of a text, with thousands and millions expanded.

    >>> numbers("Up to 1,450K / 1.5M")
    [1450000.0, 1500000.0]
    """
    # Skips digits within names: `QD16`, `4KB`.
    pattern = rf"(?<![\w.])({NUMBER})\s*(k|m|thousand|million)?(?![\w]|\.\d)"
    matches = re.finditer(pattern, re.sub(r"(?i)(k|m)?iops|hours?\b|hrs?\b|h\b", r"\g<1> ", text), re.IGNORECASE)
    return [_number(match[1]) * SCALES[(match[2] or "").lower()] for match in matches]


def first(text: str) -> float | None:
    """Returns the first number, with any unit.

    >>> first("7,200 RPM")
    7200.0
    """
    match = re.search(NUMBER, text)
    return _number(match[0]) if match else None


def pair(text: str) -> tuple[float | None, float | None]:
    """Returns two numbers separated by a slash, as for reads and writes; otherwise one for both.

    >>> pair("8.5 / 9.5 ms"), pair("<8.5")
    ((8.5, 9.5), (8.5, None))
    """
    digits = re.findall(NUMBER, text)
    both = re.search(rf"({NUMBER})[^\d/]*/[^\d/]*({NUMBER})", text)
    if both:
        return _number(both[1]), _number(both[2])
    return (_number(digits[0]) if digits else None), None


def _number(text: str) -> float:
    return float(re.sub(r"[,  ]", "", text))


def unit_of(label: str, value: str, units: Iterable[str]) -> str | None:
    """Returns the unit from the value, or else from the label."""
    names = "|".join(sorted(map(re.escape, units), key=len, reverse=True))
    for text in (value, label):
        match = re.search(rf"(?<![a-zA-Zµμ])({names})(?![a-zA-Z])", text, re.IGNORECASE)
        if match:
            return match[1].lower()
    return None


def times_ms(label: str, value: str) -> tuple[float | None, float | None]:
    """Returns one or two times, in milliseconds if no unit is written."""
    scale = TIMES_NS[unit_of(label, value, TIMES_NS) or "ms"] / 1e6
    return _scaled(pair(value), scale)


def times_us(label: str, value: str) -> tuple[float | None, float | None]:
    """Returns one or two times, in microseconds if no unit is written."""
    scale = TIMES_NS[unit_of(label, value, TIMES_NS) or "us"] / 1e3
    return _scaled(pair(value), scale)


def _scaled(both: tuple[float | None, float | None], scale: float) -> tuple[float | None, float | None]:
    first_value, second_value = both
    return (
        None if first_value is None else first_value * scale,
        None if second_value is None else second_value * scale,
    )


def bytes_of(label: str, value: str, units: Mapping[str, float] = BYTES) -> float | None:
    """Returns a size in bytes; units are binary if they are written so."""
    match = re.search(rf"({NUMBER})\s*([kmgt])(i?)(?:b|bytes?)\b", value, re.IGNORECASE)
    if match:
        scales = BINARY if match[3] else DECIMAL
        return _number(match[1]) * scales[match[2].lower()]
    number, unit = first(value), unit_of(label, "", units)
    return None if number is None or unit is None else number * units[unit]


def rates(label: str, value: str) -> list[float]:
    """Returns one or two rates, in bytes per second.

    >>> rates("Max sustained transfer rate OD (MB/s)", "285"), rates("", "268 MiB/s"), rates("", "6.0 Gb/s")
    ([285000000.0], [281018368.0], [750000000.0])
    """
    stated = [_rate(match) for match in RATE.finditer(value)]
    if stated:
        if len(stated) == 1 and None not in (both := pair(value)):
            # `3,500/2,100 MB/s`
            return [stated[0] * number / max(both[1] or 1.0, 1e-9) for number in both if number is not None]
        return stated
    match = RATE.search(re.sub(r"\(", "(1 ", label) if "(" in label else f"1 {label.split()[-1] if label else ''}")
    scale = _rate(match) if match else 1e6
    return [number * scale for number in pair(value) if number is not None]


def _rate(match: re.Match[str]) -> float:
    letter, is_binary, unit = match[2].lower(), match[3], match[4]
    bits = unit.lower().startswith("bit") or unit == "b"
    return _number(match[1]) * (BINARY if is_binary else DECIMAL)[letter] / (8 if bits else 1)
