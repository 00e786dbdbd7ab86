"""Values as people write them: text in, or ``InputError`` with the name of what was being stated."""

from __future__ import annotations

import math

from headstack import _native
from headstack._native import InputError


def whole(name: str, text: str) -> int:
    """A whole number, 0 or more."""
    if not (text.isascii() and text.isdecimal() and int(text) < 2**64):
        raise InputError(f"{name}: {text!r} is not a whole number below 2^64")
    return int(text)


def number(name: str, text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{name}: {text!r} is not a number")
    return value


def percent(name: str, text: str) -> float:
    """A percentage, with or without its sign."""
    return number(name, text.removesuffix("%").rstrip())


def size_bytes(name: str, text: str) -> int:
    """A size with its unit, in bytes."""
    try:
        return _native.parse_bytes(text)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def duration_ns(name: str, text: str) -> int:
    """A duration with its unit, in nanoseconds."""
    try:
        return _native.parse_duration_ns(text)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def duration(name: str, text: str) -> str:
    """The text of a duration, as workloads hold it."""
    duration_ns(name, text)
    return text


def choice(name: str, text: str, allowed: tuple[str, ...]) -> str:
    """One of some words."""
    if text not in allowed:
        raise InputError(f"{name}: {text!r} is unknown; allowed: {', '.join(allowed)}")
    return text


RATES = {
    f"{prefix}{unit}/s": factor * size
    for prefix, factor in (
        ("", 1),
        ("k", 10**3),
        ("M", 10**6),
        ("G", 10**9),
        ("Ki", 2**10),
        ("Mi", 2**20),
        ("Gi", 2**30),
    )
    for unit, size in (("b", 1), ("B", 8))
    if unit == "B" or not prefix.endswith("i")
}
"""Units of rates, in bits per second: a small b is a bit, a capital one a byte."""


def rate_bits_per_s(name: str, text: str) -> float:
    """A positive rate with its unit, in bits per second."""
    unit = text.lstrip("0123456789.,_ +-eE")
    value = text.removesuffix(unit).strip()
    if unit not in RATES:
        raise InputError(f"{name}: {text!r} is no rate; units are Mb/s, Gb/s (bits), MB/s, GB/s, MiB/s (bytes)")
    rate = number(name, value) * RATES[unit]
    if rate <= 0:
        raise InputError(f"{name}: {text!r} is not above 0")
    return rate
