"""Compares a value with its declared type, mainly a ``TypedDict`` for values returned by Rust."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints, is_typeddict


def differences(value: object, expected: Any, where: str = "value") -> Iterator[str]:
    """Yields lines such as ``value.reads[0].count: str, not int``; none if the value has the type.

    A ``TypedDict`` declares all keys of its values: an undeclared key is a difference, like a missing one.
    """
    origin, arguments = get_origin(expected), get_args(expected)
    if expected is Any or expected is object:
        return
    if origin in (NotRequired, Required):
        yield from differences(value, arguments[0], where)
    elif origin in (Union, types.UnionType):
        tried = [list(differences(value, one, where)) for one in arguments]
        if all(tried):
            yield from min(tried, key=len)
    elif origin is Literal:
        if value not in arguments:
            yield f"{where}: {value!r}, not one of {arguments}"
    elif is_typeddict(expected):
        yield from _differences_of_keys(value, expected, where)
    elif origin in (dict, Mapping):
        if isinstance(value, dict):
            for key, one in value.items():
                yield from differences(one, arguments[1], f"{where}[{key!r}]")
        else:
            yield f"{where}: {type(value).__name__}, not dict"
    elif origin in (list, Sequence):
        if isinstance(value, list):
            for place, one in enumerate(value):
                yield from differences(one, arguments[0], f"{where}[{place}]")
        else:
            yield f"{where}: {type(value).__name__}, not list"
    elif not _is(value, expected):
        yield f"{where}: {type(value).__name__}, not {getattr(expected, '__name__', expected)}"


def _differences_of_keys(value: object, expected: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: {type(value).__name__}, not {expected.__name__}"
        return
    hints = get_type_hints(expected, include_extras=True)
    yield from (f"{where}.{key}: not stated by {expected.__name__}" for key in value.keys() - hints.keys())
    # String annotations hide ``NotRequired`` from the class itself.
    required = {key for key in expected.__required_keys__ if get_origin(hints[key]) is not NotRequired}
    yield from (f"{where}.{key}: missing" for key in required - value.keys())
    for key in hints.keys() & value.keys():
        yield from differences(value[key], hints[key], f"{where}.{key}")


def _is(value: object, expected: Any) -> bool:
    if expected is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if expected is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return value is None if expected in (None, type(None)) else isinstance(value, expected)
