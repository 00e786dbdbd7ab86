"""Inspections as JSON, as written by ``--json`` and the history."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any

from headstack._native import InputError
from headstack.diagnosis.inspection.fields import LARGEST, Fields
from headstack.diagnosis.inspection.model import STORED, Inspection

MARK = "headstack_inspections"
"""Key that identifies headstack's files; its value is the version of the schema."""


def document(inspections: list[Inspection]) -> dict[str, object]:
    """Returns the content of a file."""
    from headstack.diagnosis.inspection.verdict import judge  # start-up time

    return {
        MARK: STORED.version,
        "devices": [{**inspection.to_dict(), "verdict": judge(inspection).to_dict()} for inspection in inspections],
    }


def read(data: Fields) -> list[Inspection]:
    """Returns the inspections of a file. Raises ``InputError`` with the field."""
    STORED.upgraded(data.file, {"schema": data.data[MARK]})
    return [read_one(device) for device in data.objects("devices")]


def read_one(data: Fields) -> Inspection:
    """Returns an inspection from its JSON form."""
    data = Fields(data.file, STORED.upgraded(data.file, dict(data.data)), data.at)
    made = _made(Inspection, data)
    assert isinstance(made, Inspection)
    return made


def _made(cls: type, data: Fields) -> Any:
    """Creates a dataclass from a JSON object, using the types of its fields."""
    hints = typing.get_type_hints(cls)
    values = {
        f.name: _value(hints[f.name], data.data[f.name], data, f.name) for f in fields(cls) if f.name in data.data
    }
    try:
        return cls(**values)
    except TypeError as error:
        raise InputError(f"{data.file}: {data.at.rstrip('.') or 'document'}: {error}") from None


def _value(kind: Any, value: Any, data: Fields, key: str) -> Any:
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _one_of(arguments, value, data, key)
    if origin is tuple and isinstance(value, list):
        return tuple(_value(arguments[0], item, data, f"{key}[{n}]") for n, item in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {name: _value(arguments[1], item, data, f"{key}.{name}") for name, item in value.items()}
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        return _made(kind, Fields(data.file, value, f"{data.at}{key}."))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if origin is None and type(value) is kind and not (kind is int and not -1000 <= value <= LARGEST):
        return value
    name = getattr(kind, "__name__", str(kind))
    raise data.wrong(key, value, f"of type {'list' if origin is tuple else name}")


def _one_of(kinds: tuple[Any, ...], value: Any, data: Fields, key: str) -> Any:
    """Converts a value to the matching type of a union: a simple type if the value has it, otherwise the type that is
    not ``None``."""
    if value is None and type(None) in kinds:
        return None
    others = [kind for kind in kinds if kind is not type(None)]
    exact = [kind for kind in others if type(value) is kind]
    return _value((exact or others)[0], value, data, key)
