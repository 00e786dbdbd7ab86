"""Runs of simulations: single runs, sweeps of options and saturation curves."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any, TypeAlias, TypedDict, Unpack

from headstack import _native
from headstack._native import InputError, RunError
from headstack.catalogue.array import Array
from headstack.catalogue.demand import load_demand
from headstack.catalogue.drive import Drive
from headstack.catalogue.options import ACCESS, CHANGES, EXCLUSIVE, IN_RESULTS, OPTIONS, STATED, Spec, applied
from headstack.catalogue.scenario import Scenario
from headstack.catalogue.stack import Stack
from headstack.catalogue.system import load_system
from headstack.catalogue.workload import Workload
from headstack.io.atomic_files import opened_pipe
from headstack.results.intervals.described import described
from headstack.results.intervals.model_errors import DESCRIBED, bare
from headstack.results.results import Results

System: TypeAlias = str | os.PathLike[str] | Drive | Array | Stack
Demand: TypeAlias = str | os.PathLike[str] | Workload | Scenario
Value: TypeAlias = str | int | float | bool
Swept: TypeAlias = Value | Iterable[Value]
Progress: TypeAlias = Callable[[float], object]

CURVE_DEPTHS = tuple(2**n for n in range(9))
"""Queue depths, or numbers of clients, of the points of a saturation curve: 1 to 256."""


class Options(TypedDict, total=False):
    """Options that can be varied, each with one value or several that are swept; see ``headstack run --help``.

    Quantities are text with their unit, as on the command line.
    """

    size: Swept
    read: Swept
    random: Swept
    fsync: Swept
    dsync: Swept
    streams: Swept
    range: Swept
    drives: Swept
    drive: Swept
    level: Swept
    usable: Swept
    lun: Swept
    fail: Swept
    policy: Swept
    queue_depth: Swept
    reordering: Swept
    ageing: Swept
    host: Swept
    host_tags: Swept
    elevator: Swept
    write_cache: Swept
    read_ahead: Swept
    state: Swept
    depth: Swept
    rate: Swept
    arrivals: Swept
    think: Swept
    requests: Swept
    time: Swept
    confidence: Swept
    warm_up: Swept
    interval: Swept
    preload: Swept
    seed: Swept
    faults: Swept


def run(
    systems: System | Iterable[System],
    workload: Demand | Iterable[Demand] | None = None,
    *,
    progress: Progress | None = None,
    record: str | os.PathLike[str] | None = None,
    **options: Unpack[Options],
) -> Results:
    """Runs every system under every workload and combination of options, on all cores.

    The runs are in this order: systems, workloads, then the options in the order of ``Options``, the last varying
    fastest. Without a workload, requests have one ``size`` (4 KiB), ``read`` and ``random`` (100 %). A scenario may be
    given instead of a workload; ``depth`` is then its number of clients. ``progress`` is called with the share done.
    ``record`` writes the requests of a single run as a trace, including those of the warm-up.

    Raises ``InputError`` before anything runs when something is not acceptable, ``RunError`` when a run fails, or does
    not pass its own checks.

    >>> results = hs.run(["cheetah-x15-36lp", "atlas-10k-iii-73"], "file-server", depth=4, requests=300)
    >>> [row["system"] for row in results]
    ['cheetah-x15-36lp', 'atlas-10k-iii-73']
    """
    return run_specs(specify_described(systems, workload, options), options, progress, record)


def curve(
    systems: System | Iterable[System],
    workload: Demand | Iterable[Demand] | None = None,
    *,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Results:
    """Runs like ``run`` at queue depths, or numbers of clients, of 1 to 256, unless depths or rates are given.

    >>> results = hs.curve("cheetah-x15-36lp", "file-server", depth=[1, 4, 16], requests=300)
    >>> [row["depth"] for row in results]
    [1, 4, 16]
    """
    if "depth" not in options and "rate" not in options:
        options["depth"] = CURVE_DEPTHS
    return run(systems, workload, progress=progress, **options)


def run_specs(
    specs: list[Spec],
    options: Mapping[str, Any],
    progress: Progress | None,
    record: str | os.PathLike[str] | None = None,
) -> Results:
    """Runs the specifications that ``specify_described`` or ``specify`` made from ``options``."""
    with nullcontext() if record is None else opened_pipe(record) as place:
        results = Results(_native.run([bare(spec) for spec in specs], progress, place), swept(options))
    failed = results.failed_checks()
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise RunError(f"a run failed an internal check, so its figures are not reliable: {failed[0]}{more}")
    return results.with_model_errors(specs, lambda sampled: _native.run(sampled))


def specify(
    systems: System | Iterable[System],
    workload: Demand | Iterable[Demand] | None,
    options: Mapping[str, Any],
) -> list[Spec]:
    """Returns the specifications of the runs, in order."""
    return [bare(spec) for spec in specify_described(systems, workload, options)]


def specify_described(
    systems: System | Iterable[System],
    workload: Demand | Iterable[Demand] | None,
    options: Mapping[str, Any],
) -> list[Spec]:
    """Returns specifications as ``specify`` does, each with the origin of its system's description, which determines
    the model's error.
    """
    values = {name: texts(options[name]) for name in options}
    demands = [load_demand(d) if isinstance(d, str | os.PathLike) else d for d in several(workload)]
    check(values, demands)
    ordered = [option for option in OPTIONS if option.name in values]
    specs = []
    for system, demand in itertools.product(loaded(systems, values), demands):
        for point in itertools.product(*(values[option.name] for option in ordered)):
            chosen = {option.name: text for option, text in zip(ordered, point, strict=True)}
            changed_system = changed(system, chosen)
            spec = shared_spec(changed_system, demand or one_size(chosen))
            spec = applied(spec, chosen) if chosen else copy.deepcopy(spec)
            spec["labels"] = labels_of(spec["system"], chosen)
            spec[DESCRIBED] = described(changed_system, changing(spec, chosen))
            specs.append(spec)
    return specs


def changing(spec: Spec, chosen: Mapping[str, str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Returns a function that applies the options to other descriptions of the same system."""
    ours = {option.name: chosen[option.name] for option in OPTIONS if option.name in chosen and option.group == "Drive"}

    def change(system: dict[str, Any]) -> dict[str, Any]:
        changed: dict[str, Any] = applied(bare(spec) | {"system": system}, ours)["system"]
        return changed

    return change


def loaded(systems: System | Iterable[System], values: Mapping[str, list[str]]) -> list[System]:
    """Loads the systems; returns names unchanged if options replace the drives in them."""
    changes = [name for name in CHANGES if name in values]
    if not changes:
        return [load_system(s) if isinstance(s, str | os.PathLike) else s for s in several(systems)]
    for system in several(systems):
        if isinstance(system, Drive | Array | Stack):
            raise InputError(f"{changes[0]}: {system.name} is already loaded; pass its name, or change its description")
    return several(systems)


def changed(system: System, chosen: Mapping[str, str]) -> Drive | Array | Stack:
    """Returns the system with the chosen drives and RAID level."""
    if isinstance(system, Drive | Array | Stack):
        return system
    return load_system(system, {name: chosen[name] for name in CHANGES if name in chosen})


def labels_of(system: dict[str, Any], chosen: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns what distinguishes a run from others: the options that results do not state, and the drives of a
    capacity.
    """
    labels = [pair for pair in chosen.items() if pair[0] not in IN_RESULTS]
    return [*labels, ("drives", str(_native.system_size(system).drives))] if "usable" in chosen else labels


def first_spec(system: Drive | Array | Stack, demand: Workload | Scenario | None) -> Spec:
    """Returns a run with nothing varied yet, whose load may still be missing."""
    return copy.deepcopy(shared_spec(system, demand))


def shared_spec(system: Drive | Array | Stack, demand: Workload | Scenario | None) -> Spec:
    """Returns a run that shares the descriptions of its system and its load, so neither may be changed in it."""
    load = "scenario" if isinstance(demand, Scenario) else "workload"
    return {
        "system_name": system.name,
        "system": system.system,
        **({load: demand.description} if demand is not None else {}),
        "span": system.span,
        "seed": 1,
        "interval_ns": None,
        "preload": 0,
    }


def one_size(chosen: Mapping[str, str]) -> Workload:
    """Creates the workload from the access options."""
    return Workload.uniform(**{name: chosen[name] for name in ACCESS if name in chosen})


def check(values: Mapping[str, list[str]], demands: Iterable[Workload | Scenario | None]) -> None:
    """Rejects unknown options, and options that contradict each other or the load."""
    option_names = {option.name for option in OPTIONS}
    for name in values:
        if name not in option_names:
            raise InputError(f"unknown option; allowed: {', '.join(sorted(option_names))}", key=name)
    for names in EXCLUSIVE:
        both = [name for name in names if name in values]
        if len(both) > 1:
            raise InputError(f"{both[0]}, {both[1]}: give only one of them")
    for demand in demands:
        if isinstance(demand, Scenario):
            check_scenario(values, demand)
        elif demand is not None:
            for name in ACCESS:
                if name in values:
                    raise InputError("the workload has its own; leave out one of them", key=name)


def check_scenario(values: Mapping[str, list[str]], scenario: Scenario) -> None:
    """Rejects options for values that a scenario states itself."""
    on_luns = any("lun" in stream for stream in scenario.description["streams"])
    for name in (*STATED, *(("range", "lun") if on_luns else ())):
        if name in values:
            raise InputError(f"the scenario {scenario.name} has its own; leave out the option", key=name)


def several(values: Any) -> list[Any]:
    """Wraps a single value in a list."""
    is_single = values is None or isinstance(values, str | os.PathLike | Drive | Array | Stack | Workload | Scenario)
    return [values] if is_single else list(values)


def texts(values: Swept) -> list[str]:
    """Formats values as on the command line: True is on, False is off."""
    is_single = isinstance(values, str | int | float | bool)
    listed: list[Any] = [values] if is_single else list(values)  # type: ignore[arg-type]
    if not listed:
        raise InputError("an empty list of values; at least one is needed")
    return [("on" if value else "off") if isinstance(value, bool) else str(value) for value in listed]


def swept(options: Mapping[str, Any]) -> list[str]:
    """Returns the names of the options with several values, in the order of sweeping; a capacity includes drives."""
    names = [o.name for o in OPTIONS if o.name in options and len(texts(options[o.name])) > 1]
    return [*names, "drives"] if "usable" in options else names
