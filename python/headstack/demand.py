"""What a system is put under: a workload or a scenario, by name."""

from __future__ import annotations

import json
import os

from headstack import _native
from headstack.scenario import Scenario
from headstack.workload import Workload


def load_demand(name: str | os.PathLike[str]) -> Workload | Scenario:
    """The workload or scenario of that id or name in the catalogue, or of that TOML file.

    Raises ``InputError`` with file, line and key when there is none, or it is neither.
    """
    loaded = json.loads(_native.load_demand(os.fspath(name)))
    return Scenario(loaded["scenario"]) if "scenario" in loaded else Workload(loaded["workload"])
