"""``Scenario``, several kinds of clients at once, from the catalogue or a TOML file."""

from __future__ import annotations

import copy
import html
import os
from dataclasses import dataclass
from typing import Any

from headstack import _native

KINDS = ("access", "web", "boot", "video", "transactions", "sequential", "prefill", "database")
"""Kinds of streams: each is the table of that name in its stream."""


@dataclass(frozen=True)
class Scenario:
    """Streams of clients, each on its own LUN and range, with warm-up and run length."""

    description: dict[str, Any]
    """The content as in a TOML file of the catalogue, with all defaults filled in; quantities are text with a unit."""

    @property
    def name(self) -> str:
        """The name in the catalogue or the file."""
        return str(self.description["name"])

    @classmethod
    def load(cls, name: str | os.PathLike[str]) -> Scenario:
        """Loads the scenario of that id in the catalogue, or of that TOML file.

        Raises ``InputError`` with file, line and key if there is none, or it is not a scenario.

        >>> hs.Scenario.load("serverbench").name
        'serverbench'
        """
        return cls(_native.load_scenario(os.fspath(name)))

    @property
    def demand(self) -> dict[str, Any]:
        """The load for a run, as a copy that may be changed."""
        return {"scenario": self.copy()}

    def copy(self) -> dict[str, Any]:
        """Returns a copy of the description, which may be changed.

        >>> sorted(hs.Scenario.load("serverbench").copy())[:2]
        ['cpus', 'name']
        """
        return copy.deepcopy(self.description)

    def with_clients(self, clients: int) -> Scenario:
        """Returns the scenario with this number of clients in every stream that has a number of clients.

        Raises ``InputError`` if none has.

        >>> hs.Scenario.load("serverbench").with_clients(20).name
        'serverbench'
        """
        return Scenario(_native.scenario_with_clients(self.description, clients))

    def _repr_html_(self) -> str:
        streams = ", ".join(f"{stream['name']}: {kind_of(stream)}" for stream in self.description["streams"])
        return f"<b>{html.escape(self.name)}</b> ({html.escape(streams)})"


def kind_of(stream: dict[str, Any]) -> str:
    """Returns the kind of clients of a stream."""
    return next(kind for kind in KINDS if kind in stream)


def plain(value: Any) -> str:
    """Formats a value for people: ``requests 5000``, ``closed queue_depth 8, think fixed 1ms``."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(inner)}" for key, inner in value.items())
    return " to ".join(map(plain, value)) if isinstance(value, list) else str(value)
