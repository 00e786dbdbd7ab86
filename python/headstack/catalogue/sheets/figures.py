"""Figures of a data sheet: numbers with the units that makers write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

NUMBER = r"\d{1,3}(?:[, ']\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
SCALES = {"": 1.0, "k": 1e3, "thousand": 1e3, "m": 1e6, "mio": 1e6, "mil": 1e6, "million": 1e6, "millionen": 1e6}
WORDS = {word: count for count, word in enumerate(("one", "two", "three", "four", "five", "six"), 1)}
TIMES_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "usec": 1e3, "msec": 1e6, "ms": 1e6, "s": 1e9}
DECIMAL = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
BINARY = {"k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40, "p": 2.0**50}
PER_SECOND = r"(?:\s*/\s*s(?:ec)?|p?s|\s+per\s+s(?:ec(?:ond)?)?)\b"
RATE = re.compile(rf"({NUMBER})\s*([kmgt])(i?)(bits?|bytes?|b){PER_SECOND}", re.IGNORECASE)
SIZE_UNIT = r"([kmgtp])(i?)(?:b|bytes?)\b(?!\s*/\s*s|\s+per\s+s)"
SIZE = re.compile(rf"({NUMBER})\s*(?:{SIZE_UNIT}|(kilo|mega|giga|tera|peta)bytes?\b)", re.IGNORECASE)

Direction = Literal["read", "write"]


def numbers(text: str) -> list[float]:
    """Returns every number of a text, with thousands and millions expanded.

    >>> numbers("Up to 1,450K / 1.5M")
    [1450000.0, 1500000.0]
    """
    return [value for value, _ in _placed_numbers(text)]


def _placed_numbers(text: str) -> list[tuple[float, int]]:
    """Returns every number of a text with its place."""
    # Skips digits within names: `QD16`, `4KB`.
    pattern = rf"(?<![\w.])({NUMBER})\s*(k|millionen|million|mio|mil|m|thousand)?(?![\w]|\.\d)"
    spaced = re.sub(
        r"(?i)(k|m)?iops|hours?\b|hrs?\b|h\b",
        lambda match: (match[1] or "").ljust(len(match[0])),
        text,
    )
    matches = re.finditer(pattern, spaced, re.IGNORECASE)
    return [(_number(match[1]) * SCALES[(match[2] or "").lower()], match.start()) for match in matches]


def first(text: str) -> float | None:
    """Returns the first number, with any unit; up to six also in letters.

    >>> first("7,200 RPM"), first("two")
    (7200.0, 2.0)
    """
    match = re.search(NUMBER, text)
    if match:
        return _number(match[0])
    word = re.search(rf"\b({'|'.join(WORDS)})\b", text.lower())
    return float(WORDS[word[1]]) if word else None


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


def span(text: str) -> tuple[float, float] | None:
    """Returns the ends of a range, the lower one first.

    >>> span("506 - 753"), span("244 minimum, 400 maximum"), span("400 maximum")
    ((506.0, 753.0), (244.0, 400.0), None)
    """
    ends = [_number(digits) for digits in re.findall(NUMBER, text)]
    return (min(ends), max(ends)) if len(ends) == 2 else None


def _number(text: str) -> float:
    return float(re.sub(r"[, ']", "", text))


def unit_of(label: str, value: str, units: Iterable[str]) -> str | None:
    """Returns the unit from the value, or else from the label."""
    names = "|".join(sorted(map(re.escape, units), key=len, reverse=True))
    for text in (value, label):
        match = re.search(rf"(?<![a-zA-Zµ])({names})(?![a-zA-Z])", text, re.IGNORECASE)
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
        None if first_value is None else round(first_value * scale, 9),
        None if second_value is None else round(second_value * scale, 9),
    )


def bytes_of(label: str, value: str) -> float | None:
    """Returns a size in bytes; units are binary if they are written so. Rates are no sizes.

    >>> bytes_of("", "40,021 MB"), bytes_of("Capacity (GB)", "1024"), bytes_of("", "3200 MB/s")
    (40021000000.0, 1024000000000.0, None)
    """
    match = SIZE.search(value)
    if match:
        scales = BINARY if match[3] else DECIMAL
        return _number(match[1]) * scales[(match[2] or match[4][0]).lower()]
    number, unit = first(value), re.search(rf"\b{SIZE_UNIT}", label, re.IGNORECASE)
    if number is None or unit is None or re.search(r"[a-z]/s|bps", value, re.IGNORECASE):
        return None
    return number * (BINARY if unit[2] else DECIMAL)[unit[1].lower()]


def memory_kib(label: str, value: str) -> float | None:
    """Returns a memory size in KiB, which is a power of two in either unit.

    >>> [memory_kib("", text) for text in ("1024 MB", "1 GB DRAM", "512KB", "2x 512 MB")]
    [1048576.0, 1048576.0, 512.0, 1048576.0]
    """
    binary = re.sub(r"(?i)(?<=[kmgt])b(?:ytes?)?\b", "iB", re.sub(r"(?i)(?<=[kmgt])ib\b", "B", value))
    size = bytes_of(re.sub(r"(?i)\b([kmgt])i?b(?:ytes?)?\b", r"\1iB", label), binary)
    times = re.match(r"\s*(\d)\s*[x×]\s*\d", value)
    return None if size is None else size / 1024 * (int(times[1]) if times else 1)


def rates(label: str, value: str) -> list[float]:
    """Returns one or two rates, in bytes per second.

    >>> rates("Max sustained transfer rate OD (MB/s)", "285"), rates("", "268 MiB/s"), rates("", "6.0 Gb/s")
    ([285000000.0], [281018368.0], [750000000.0])
    """
    stated = [_rate(match) for match in RATE.finditer(value)]
    if stated:
        # `3,500/2,100 MB/s`
        both = re.search(rf"({NUMBER})\s*/\s*({NUMBER})\s*[kmgt]i?b", value, re.IGNORECASE)
        if both and len(stated) == 1:
            return [stated[0] * _number(both[1]) / max(_number(both[2]), 1e-9), stated[0]]
        return stated
    unit = rate_unit(label)
    if unit is None and re.search(
        r"\d\s*[a-zµ]", re.sub(r"(?i)\s*(?:read|write|max|typ)\w*", "", value), re.IGNORECASE
    ):
        # Another unit, such as `300K` cycles or `85 µs`.
        return []
    return [number * (unit or 1e6) for number in pair(value) if number is not None]


def rate_unit(label: str) -> float | None:
    """Returns the unit of rates that a label names, in bytes per second."""
    unit = re.search(rf"(?<![a-z])([kmgt])(i?)(bits?|bytes?|b){PER_SECOND}", label, re.IGNORECASE)
    return _rate(RATE.search(f"1 {unit[0]}")) if unit else None


def is_in_bits(label: str, value: str) -> bool:
    """Whether a rate is written in bits, from the value or else from the label."""
    for text in (value, label):
        unit = re.search(rf"(?<![a-z])[kmgt]i?(bits?|bytes?|b){PER_SECOND}", text, re.IGNORECASE)
        if unit:
            return unit[1].lower().startswith("bit") or unit[1] == "b"
    return False


def _rate(match: re.Match[str] | None) -> float:
    if match is None:
        raise ValueError("no rate")
    letter, is_binary, unit = match[2].lower(), match[3], match[4]
    bits = unit.lower().startswith("bit") or unit == "b"
    return _number(match[1]) * (BINARY if is_binary else DECIMAL)[letter] / (8 if bits else 1)


def named_directions(value: str, places: list[int]) -> list[Direction] | None:
    """Returns the direction of each figure of a value that names reads and writes; the names precede the figures or
    follow them.

    >>> named_directions("read 560, write 530 MB/s", [5, 16]), named_directions("65K write / 94K read", [0, 12])
    (['read', 'write'], ['write', 'read'])
    """
    words: list[tuple[int, Direction]] = [
        (match.start(), "read" if match[0].lower() == "read" else "write")
        for match in re.finditer(r"(?i)read|write", value)
    ]
    if len(places) != 2 or {word for _, word in words} != {"read", "write"}:
        return None
    leading = words[0][1]
    if words[0][0] < places[0]:
        # `read/write 94,000/65,000` and `read 94,000, write 65,000`
        return [leading, "write" if leading == "read" else "read"]
    between = [word for at, word in words if places[0] < at < places[1]]
    leading = between[0] if between else leading
    return [leading, "write" if leading == "read" else "read"]


def number_places(text: str) -> list[int]:
    """Returns the places of the numbers of a text, as in :func:`numbers`."""
    return [place for _, place in _placed_numbers(text)]
