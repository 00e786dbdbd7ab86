"""Loads environments by name, from files, workloads, scenarios and traces."""

from __future__ import annotations

import os
from pathlib import Path

from headstack.catalogue.demand import load_demand
from headstack.catalogue.scenario import Scenario
from headstack.catalogue.workload import Workload
from headstack.prediction.environment import (
    Environment,
    of_scenario,
    of_trace,
    of_workload,
)
from headstack.prediction.environment_file import load_environment_file
from headstack.traces.traces import Trace


def load_environment(source: str | os.PathLike[str] | Environment | Workload | Scenario | Trace) -> Environment:
    """Returns the environment of a workload or scenario, of the catalogue or a TOML file, or of a trace, which is
    analysed.

    Raises ``InputError`` if there is no such name, or it has a property that low-level tests do not cover.

    >>> hs.load_environment("file-server").name
    'file-server'
    """
    if isinstance(source, Environment):
        return source
    if isinstance(source, Trace):
        return of_trace(source)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_file():
            if path.suffix != ".toml":
                return of_trace(Trace(path))
            environment = load_environment_file(path)
            if environment is not None:
                return environment
        source = load_demand(source)
    return of_workload(source) if isinstance(source, Workload) else of_scenario(source)
