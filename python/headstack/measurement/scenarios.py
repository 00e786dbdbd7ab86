"""Runs scenarios on real files and devices, with clients on the wall clock, and a target for each LUN."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from headstack import _native
from headstack._native import InputError, RunError
from headstack.catalogue.options import IN_RESULTS, OPTIONS, Spec, applied
from headstack.catalogue.scenario import Scenario
from headstack.results.results import Results
from headstack.simulation.runs import swept

if TYPE_CHECKING:
    from headstack.measurement.access import Access, Progress

WHOLE = "target"
"""Name of the only target of a scenario that names no LUNs."""

SCENARIO_OPTIONS = tuple(
    option for option in OPTIONS if option.name in ("depth", "requests", "time", "warm_up", "interval", "seed")
)
"""Options of a scenario that can be varied on real targets, as in a run."""


def measure_scenario(
    path: str,
    scenario: Scenario,
    luns: Mapping[str, str],
    access: Access,
    values: Mapping[str, list[str]],
    progress: Progress | None,
) -> Results:
    """Opens the targets of a scenario's LUNs, and runs it with each combination of options.

    ``luns`` maps names of LUNs to paths. The remaining LUN, or the whole target if the scenario names no LUN, is at
    ``path``. Only LUNs that streams write to are opened for writing.
    """
    supported = {option.name for option in SCENARIO_OPTIONS}
    for name in values:
        if name not in supported:
            raise InputError("does not apply to a scenario on real targets; remove the option", key=name)
    if access.threads != 1:
        raise InputError(f"{access.threads} is out of range; a scenario uses 1 thread", key="threads")
    if access.zoned is not None:
        raise InputError("applies only to workloads and job files; remove the option", key="zoned")
    places = places_of(scenario, path, luns)
    specs = [replace(access, write=_is_written(scenario, lun)).target_spec(place) for lun, place in places.items()]
    real = [spec["path"] for spec in specs if spec["null_bytes"] is None]
    if len(set(real)) < len(real):
        raise InputError(f"{', '.join(real)}: each LUN needs its own file or device", key="lun")
    engines = [access.engine_of(place) for place in places.values()]
    if any(engine != engines[0] for engine in engines):
        raise InputError(f"{path}: null targets cannot be mixed with other targets; use one kind for all LUNs")
    targets = _native.Targets(specs)
    several = [f"{lun}={place}" for lun, place in places.items()]
    plays = []
    ordered = [option for option in SCENARIO_OPTIONS if option.name in values]
    for point in itertools.product(*(values[option.name] for option in ordered)):
        chosen = {option.name: text for option, text in zip(ordered, point, strict=True)}
        spec: Spec = {"scenario": copy.deepcopy(scenario.description), "seed": 1, "interval_ns": None, "clients": None}
        spec = applied(spec, chosen)
        plays.append(
            {
                "system_name": path if len(places) == 1 else ", ".join(several),
                "luns": list(places),
                **spec,
                "engine": engines[0],
                "slots": access.slots,
                "labels": [pair for pair in chosen.items() if pair[0] not in IN_RESULTS],
            }
        )
    results = Results(targets.play(plays, progress), swept(values))
    failed = results.failed_checks()
    if failed:
        raise RunError(f"a measurement failed an internal check, so its figures are not reliable: {failed[0]}")
    return results


def places_of(scenario: Scenario, path: str, luns: Mapping[str, str]) -> dict[str, str]:
    """Returns the path of each LUN of a scenario, in the order in which its streams name them."""
    named = list(dict.fromkeys(stream["lun"] for stream in scenario.description["streams"] if "lun" in stream))
    unknown = [name for name in luns if name not in named]
    if unknown:
        allowed = ", ".join(named) if named else "none"
        raise InputError(f"{scenario.name} has no LUN {unknown[0]!r}; allowed: {allowed}", key="lun")
    left = [name for name in named if name not in luns]
    if not named:
        return {WHOLE: path}
    if len(left) != 1:
        state = f"{', '.join(left)} have no target" if left else f"all have a target already, so {path} has no LUN"
        raise InputError(
            f"{scenario.name} names the LUNs {', '.join(named)}; {state}: TARGET is one of them; set the target "
            "of each other LUN with --lun NAME=PATH",
            key="lun",
        )
    return {name: luns.get(name, path) for name in named}


def _is_written(scenario: Scenario, lun: str) -> bool:
    """Whether clients write to a LUN, considering its own streams and streams that use all LUNs."""
    streams = scenario.description["streams"]
    writes = _native.scenario_writes(scenario.description)
    return any(writing and stream.get("lun", lun) == lun for stream, writing in zip(streams, writes, strict=True))
