"""``headstack run --while rebuilding``: how long a rebuild takes, and how slow the system is meanwhile."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.array import disks
from headstack.catalogue.demand import load_demand
from headstack.catalogue.drive import Drive
from headstack.catalogue.options import CHANGES
from headstack.catalogue.stack import base_of
from headstack.choice.rebuilding import (
    Load,
    Rebuildable,
    array_below,
    rebuild_h,
    resilvering,
    schedule_while_rebuilding,
    with_small_scan_memory,
)
from headstack.cli.output import print_results, progress, say
from headstack.io.atomic_files import write_text
from headstack.results.intervals.model_errors import bare
from headstack.results.results import Results
from headstack.results.words import number, time, time_unit, with_error
from headstack.simulation.runs import changed, loaded, specify_described, swept, texts

STATE = "rebuild"
"""Column of the table: ``healthy`` or ``rebuilding``. SSDs have a ``state`` of their own."""
SEEDS = 3
"""Number of simulations of the rebuild time, with seeds in a row."""


def while_rebuilding(
    systems: tuple[str, ...], workload: str | None
) -> tuple[Callable[[dict[str, Any], bool], Results], Callable[[Results], None]]:
    """Returns functions that simulate a system healthy and rebuilding under one load, and that print the answer."""
    times = _Times()

    def work(varied: dict[str, Any], quiet: bool) -> Results:
        array, chosen = _single(systems, workload, varied)
        zfs = resilvering(array)
        if zfs is not None:
            is_shingled = any(disk.get("shingles") for disk in disks(base_of(array.system)))
            times.verb, times.is_timed = "rebuilds" if zfs["sequential_resilver"] else "resilvers", not is_shingled
        if not times.is_timed:
            return _healthy_and_rebuilding(array, systems, workload, varied)
        load: Any = {name: chosen[name] for name in Load.__annotations__ if name in chosen}
        demand = None if workload is None else load_demand(workload)
        with progress("rebuild", quiet) as show:
            for number_of_seed in range(SEEDS):
                seed = int(chosen.get("seed", "1")) + number_of_seed
                rebuild_time_h, source = rebuild_h(array, demand, **(load | {"seed": seed}))
                times.hours.append(rebuild_time_h)
                times.source = source
                if show is not None:
                    show((number_of_seed + 1) / (SEEDS + 1))
        times.idle_h = rebuild_h(array)[0]
        return _healthy_and_rebuilding(array, systems, workload, varied)

    return work, partial(_print, times)


@dataclass
class _Times:
    """Simulated times of a rebuild."""

    verb: str = "rebuilds"
    """``resilvers`` if ZFS does it."""
    is_timed: bool = True
    """Whether the times are simulated: not for a resilver onto shingled drives."""
    idle_h: float = 0.0
    hours: list[float] = field(default_factory=list)
    """Times under the load, by seed, in hours."""
    source: str = ""


def _single(
    systems: tuple[str, ...], workload: str | None, varied: Mapping[str, Any]
) -> tuple[Rebuildable, dict[str, str]]:
    """Returns the array or stack, and the single value of each option."""
    values = {name: texts(varied[name]) for name in varied}
    several = [name for name, listed in values.items() if len(listed) > 1]
    if len(systems) != 1 or several or "," in (workload or ""):
        needed = f"one value of --{several[0].replace('_', '-')}" if several else "one array and one workload"
        raise InputError(f"--while rebuilding: name {needed}")
    for name in ("faults", "fail"):
        if name in values:
            raise InputError(f"--while rebuilding, --{name}: give only one of them")
    chosen = {name: listed[0] for name, listed in values.items()}
    (system,) = loaded(systems, {name: listed for name, listed in values.items() if name in CHANGES})
    rebuildable = changed(system, chosen)
    if isinstance(rebuildable, Drive):
        name = rebuildable.name
        raise InputError(f"--while rebuilding: {name} is a single drive, which cannot be rebuilt; name an array")
    array_below(rebuildable)
    return rebuildable, chosen


def _healthy_and_rebuilding(
    array: Rebuildable, systems: tuple[str, ...], workload: str | None, varied: dict[str, Any]
) -> Results:
    with tempfile.TemporaryDirectory(prefix="headstack-") as folder:
        path = os.path.join(folder, "rebuilding.toml")
        write_text(path, schedule_while_rebuilding(array))
        healthy = specify_described(systems, workload, varied)
        rebuilding = specify_described(systems, workload, varied | {"faults": path})
    for specs, state in ((healthy, "healthy"), (rebuilding, "rebuilding")):
        for spec in specs:
            spec["labels"] = [*(pair for pair in spec["labels"] if pair[0] != "faults"), (STATE, state)]
    if resilvering(array) is not None:
        for spec in rebuilding:
            with_small_scan_memory(spec["system"])
    specs = [*healthy, *rebuilding]
    results = Results(_native.run([bare(spec) for spec in specs], None, None), [*swept(varied), STATE])
    return results.with_model_errors(specs, lambda sampled: _native.run(sampled))


def _print(times: _Times, results: Results) -> None:
    print_results(results, answer=_answer(times, results))
    if times.is_timed:
        say(f"note: rebuild time {times.source}, with {SEEDS} seeds; a spare is assumed to be at hand")


def _answer(times: _Times, results: Results) -> str:
    """Returns the rebuild time with its range over the seeds, that of an idle array, and the latency of both states."""
    healthy, rebuilding = results[0], results[1]
    first = _rebuild_time(rebuilding["system"], times)
    if rebuilding["saturated"]:
        rate = number(rebuilding["rate_per_s"])
        return f"{first}; meanwhile it cannot keep up with {rate} IOPS: it serves {number(rebuilding['iops'])}."
    means = f"mean latency {_mean(rebuilding)} instead of {_mean(healthy)}"
    p99 = f"p99 {time(rebuilding['p99_ms'])} instead of {time(healthy['p99_ms'])}"
    served = ""
    if rebuilding["rate_per_s"] is None:
        served = f"{number(rebuilding['iops'])} IOPS instead of {number(healthy['iops'])}, "
    return f"{first}; meanwhile {served}{means}, {p99}."


def _rebuild_time(name: str, times: _Times) -> str:
    if not times.is_timed:
        return (
            f"{name} {times.verb} onto a shingled (SMR) drive, whose time is undecided: the model has no fragmented "
            "pool, and a measured one took over 9 days instead of 16 h"
        )
    hours = times.hours
    spread = f"({_hours(min(hours))} to {_hours(max(hours))})"
    mean_h = sum(hours) / len(hours)
    return f"{name} {times.verb} a drive in {_hours(mean_h)} {spread} under this load, {_hours(times.idle_h)} idle"


def _hours(value: float) -> str:
    return f"{value:.0f} h" if value >= 10 else f"{value:.1f} h" if value >= 1 else f"{60 * value:.0f} min"


def _mean(row: Mapping[str, Any]) -> str:
    width = row["half_width_ms"]
    if not width:
        return time(row["mean_ms"])
    factor, unit = time_unit(row["mean_ms"])
    return f"{with_error(factor * row['mean_ms'], factor * width)} {unit}"
