"""Simulates measured points on a system, with the settings in their results."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.array import Array
from headstack.catalogue.demand import Phase, Replayed, stated
from headstack.catalogue.drive import Drive
from headstack.catalogue.options import Spec
from headstack.catalogue.scenario import Scenario
from headstack.catalogue.stack import Stack
from headstack.catalogue.system import load_system
from headstack.catalogue.workload import Workload
from headstack.comparison.points import SidePoint
from headstack.results.intervals.described import described
from headstack.results.intervals.model_errors import DESCRIBED
from headstack.results.results import Results
from headstack.simulation.runs import Progress, System, run_specs


def simulated_again(measured: list[SidePoint], system: System, progress: Progress | None) -> Results:
    """Simulates every measured point on a system with the workload, range, length and seed from the results.

    Without a range in the results, the measurement used the whole target; of a larger system, the simulation uses the
    capacity of that target.
    """
    loaded = load_system(system) if isinstance(system, str | os.PathLike) else system
    return run_specs([_spec(point, loaded) for point in measured], {}, progress)


def _spec(point: SidePoint, system: Drive | Array | Stack) -> Spec:
    if point.origin is None:
        raise InputError("a table contains no workload to simulate; name a file of whole results (.json)")
    clients = None
    match stated(dict(point.origin.workload)):
        case Workload() as workload:
            demand = workload.demand
        case Scenario() as scenario:
            demand = scenario.demand
            clients = int(point.load.split()[0]) if point.load.endswith(" clients") else None
        case Replayed():
            raise InputError(
                f"{point.workload}: the result of a replay does not contain the trace; also replay it on the system "
                "(headstack trace replay), and compare both results"
            )
        case Phase():
            raise InputError(f"{point.workload}: only workloads and scenarios can be simulated; compare two results")
    spec: Spec = {
        "system_name": system.name,
        "system": copy.deepcopy(system.system),
        **demand,
        "span": system.span if system.span is not None else _span(point, system),
        "seed": point.seed,
        "interval_ns": _interval_ns(point),
        "preload": 0,
        "labels": [],
        DESCRIBED: described(system),
    }
    if clients is not None:
        spec["clients"] = clients
    return spec


def _span(point: SidePoint, system: Drive | Array | Stack) -> tuple[int, int] | None:
    """Returns the first byte and the length of the used part of the system; ``None`` for the whole system."""
    if point.origin is None or any("lun" in stream for stream in _streams(point.origin.workload)):
        return None
    capacity, sector = system.capacity_bytes, system.size.sector_bytes
    used = _capacity_bytes(point.origin.description)
    start, length = (0, used) if point.part is None else _native.parse_range(point.part, used, sector)
    if point.part is not None and start + length > capacity:
        held = _native.format_bytes(capacity)
        raise InputError(f"{point.part}: the measured range exceeds the capacity of {system.name}, {held}")
    return None if start == 0 and length >= capacity else (start, length // sector * sector)


def _streams(workload: Mapping[str, Any]) -> list[Mapping[str, object]]:
    return workload["streams"] if isinstance(workload.get("streams"), list) else []


def _capacity_bytes(description: Mapping[str, Any]) -> int:
    """Returns the capacity in bytes of the system that results describe, real or simulated."""
    if "targets" in description:
        return sum(map(_capacity_bytes, description["targets"]))
    if "capacity_bytes" in description:
        return int(description["capacity_bytes"])
    return _native.system_size(description).capacity_bytes


def _interval_ns(point: SidePoint) -> int | None:
    return round(point.intervals[0]["duration_s"] * 1e9) if point.intervals else None
