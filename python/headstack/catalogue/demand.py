"""The load on a system: a workload or a scenario by name or file, and its form in results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypeAlias

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.scenario import Scenario
from headstack.catalogue.unmodelled import unmodelled
from headstack.catalogue.workload import Workload


def load_demand(name: str | os.PathLike[str]) -> Workload | Scenario:
    """Loads a workload or scenario by its id or name in the catalogue, or from a TOML file.

    Raises ``InputError`` with file, line and key if there is none, or it is neither.
    """
    try:
        loaded = _native.load_demand(os.fspath(name))
    except InputError:
        if (answer := unmodelled(os.fspath(name))) is not None:
            raise InputError(f"{name}: no workload; {answer}") from None
        raise
    return Scenario(loaded["scenario"]) if "scenario" in loaded else Workload(loaded["workload"])


@dataclass(frozen=True)
class Replayed:
    """A trace that was replayed."""

    name: str
    """The trace's name."""
    mode: str
    """``timed``, ``asap``, ``closed`` or ``dependent``."""
    settings: dict[str, Any]
    """Settings of the mode: ``time_scale``, ``depth``."""


@dataclass(frozen=True)
class Phase:
    """A phase of a job file that was run."""

    name: str
    description: dict[str, Any]
    """The phase as it was parsed from the file."""


Stated: TypeAlias = Workload | Scenario | Replayed | Phase
"""The load that a result states."""


def stated(description: dict[str, Any]) -> Stated:
    """Parses the ``workload`` of a complete result."""
    if "lines" in description:
        return Workload(description)
    if isinstance(description.get("streams"), list):
        return Scenario(description)
    name = str(description.get("name", ""))
    if "mode" not in description:
        return Phase(name, description)
    mode = description["mode"]
    # A mode without settings is a plain string.
    ((word, settings),) = mode.items() if isinstance(mode, dict) else ((mode, {}),)
    return Replayed(name, word, settings)
