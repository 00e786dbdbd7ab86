"""``Blueprint``: the text of the files that define a system or a load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from headstack import _native
from headstack.catalogue.system import load_blueprint


class Blueprint(TypedDict):
    """The complete input of a description: the file, and the files that it names."""

    kind: Literal["drive", "array", "workload", "scenario"]
    text: str
    """TOML text; for an array, merged with the files that it is based on."""
    drives: dict[str, str]
    """TOML text of the drives that an array names by path, by this path."""


def system_blueprint(name: str, drives: Sequence[str] = ()) -> Blueprint:
    """Returns the blueprint of a drive or an array; ``drives`` are files that may be put into the array. Raises
    ``InputError`` if the name is unknown or a file cannot be read."""
    return _checked_blueprint(load_blueprint(name, drives))


def demand_blueprint(name: str) -> Blueprint:
    """Returns the blueprint of a workload or a scenario. Raises ``InputError`` if the name is unknown."""
    return _checked_blueprint(_native.demand_blueprint(name))


def _checked_blueprint(native: Any) -> Blueprint:
    return {"kind": native["kind"], "text": native["text"], "drives": native["drives"]}
