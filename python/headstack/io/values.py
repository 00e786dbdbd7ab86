"""Parsers of values as users write them; they raise ``InputError`` with the name of the option."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from headstack import _native
from headstack._native import InputError


def whole(name: str, text: str) -> int:
    """Parses a whole number of 0 or more."""
    if not (text.isascii() and text.isdecimal() and int(text) < 2**64):
        raise InputError(f"{text!r} is not a whole number below 2^64", key=name)
    return int(text)


def number(name: str, text: str) -> float:
    """Parses a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{text!r} is not a number; write for example 4 or 2.5", key=name)
    return value


def percent(name: str, text: str) -> float:
    """Parses a percentage, with or without its sign."""
    return number(name, text.removesuffix("%").rstrip())


def size_bytes(name: str, text: str) -> int:
    """Parses a size with its unit, in bytes."""
    try:
        return _native.parse_bytes(text)
    except InputError as error:
        raise InputError(f"{error}", key=name) from None


def duration_ns(name: str, text: str) -> int:
    """Parses a duration with its unit, in nanoseconds."""
    try:
        return _native.parse_duration_ns(text)
    except InputError as error:
        raise InputError(f"{error}", key=name) from None


def choice(name: str, text: str, allowed: tuple[str, ...]) -> str:
    """Accepts one of several words."""
    if text not in allowed:
        raise InputError(f"{text!r} is unknown; allowed: {', '.join(allowed)}", key=name)
    return text


def spread(name: str, text: str, parse: Callable[[str, str], float], about: float) -> Callable[[float], bool]:
    """Returns a predicate for a range: ``LOW..HIGH`` (inclusive), ``LOW..`` or ``..HIGH``; or for a single value,
    within the relative tolerance ``about``. It is enough to give the unit at the upper end."""
    low_text, separator, high_text = (part.strip() for part in text.partition(".."))
    if not separator:
        try:
            value = parse(name, text.strip())
        except InputError as error:
            raise InputError(f"{error.message}; write a range as LOW..HIGH, LOW.. or ..HIGH", key=name) from None
        return lambda candidate: abs(candidate - value) <= about * value
    unit = re.sub(r"^[\d._ ]+", "", high_text)
    if low_text and unit and not low_text[-1].isalpha():
        low_text += unit
    low = parse(name, low_text) if low_text else -math.inf
    high = parse(name, high_text) if high_text else math.inf
    if low > high or (not low_text and not high_text):
        raise InputError(f"the range {text} is empty; put the lower end first", key=name)
    return lambda candidate: low <= candidate <= high


def plain(value: str, unit: str | None) -> str:
    """Removes the unit of a value if its column names it."""
    return value if unit is None else value.removesuffix(unit).rstrip().replace("_", "")


def rate_bytes_per_s(name: str, text: str) -> float:
    """Parses a positive rate with its unit, in bytes per second."""
    try:
        rate = _native.parse_rate(text)
    except InputError as error:
        raise InputError(f"{error}", key=name) from None
    if rate <= 0:
        raise InputError(f"{text!r} must be above 0", key=name)
    return rate
