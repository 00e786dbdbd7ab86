"""Values as people write them: text in, or ``InputError`` with the name of what was being stated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from headstack import _native
from headstack._native import InputError


def whole(name: str, text: str) -> int:
    """A whole number, 0 or more."""
    if not (text.isascii() and text.isdecimal() and int(text) < 2**64):
        raise InputError(f"{text!r} is not a whole number below 2^64", key=name)
    return int(text)


def number(name: str, text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{text!r} is not a number", key=name)
    return value


def percent(name: str, text: str) -> float:
    """A percentage, with or without its sign."""
    return number(name, text.removesuffix("%").rstrip())


def size_bytes(name: str, text: str) -> int:
    """A size with its unit, in bytes."""
    try:
        return _native.parse_bytes(text)
    except InputError as error:
        raise InputError(f"{error}", key=name) from None


def duration_ns(name: str, text: str) -> int:
    """A duration with its unit, in nanoseconds."""
    try:
        return _native.parse_duration_ns(text)
    except InputError as error:
        raise InputError(f"{error}", key=name) from None


def choice(name: str, text: str, allowed: tuple[str, ...]) -> str:
    """One of some words."""
    if text not in allowed:
        raise InputError(f"{text!r} is unknown; allowed: {', '.join(allowed)}", key=name)
    return text


def spread(name: str, text: str, parse: Callable[[str, str], float], about: float) -> Callable[[float], bool]:
    """Whether a value lies in a range: ``LOW..HIGH``, both ends in it, ``LOW..`` or ``..HIGH``; or near a value alone,
    by so much of it. A unit may stand at the higher end alone."""
    low_text, separator, high_text = (part.strip() for part in text.partition(".."))
    if not separator:
        try:
            value = parse(name, text.strip())
        except InputError as error:
            raise InputError(f"{error}; a range is written LOW..HIGH, LOW.. or ..HIGH") from None
        return lambda found: abs(found - value) <= about * value
    unit = re.sub(r"^[\d._ ]+", "", high_text)
    if low_text and unit and not low_text[-1].isalpha():
        low_text += unit
    low = parse(name, low_text) if low_text else -math.inf
    high = parse(name, high_text) if high_text else math.inf
    if low > high or (not low_text and not high_text):
        raise InputError(f"the range {text} is empty; the lower end comes first", key=name)
    return lambda found: low <= found <= high


def plain(value: str, unit: str | None) -> str:
    """A value without its unit, if it has one; its column names that."""
    return value if unit is None else value.removesuffix(unit).rstrip().replace("_", "")


def rate_bytes_per_s(name: str, text: str) -> float:
    """A positive rate with its unit, in bytes per second."""
    try:
        rate = _native.parse_rate(text)
    except InputError as error:
        raise InputError(f"{error}", key=name) from None
    if rate <= 0:
        raise InputError(f"{text!r} is not above 0", key=name)
    return rate
