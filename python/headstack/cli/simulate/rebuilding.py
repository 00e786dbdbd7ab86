"""``headstack run --while``: how long a rebuild or scrub takes, and how slow the system is meanwhile."""

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
    schedule_while_scrubbing,
    scrub_h,
    with_small_scan_memory,
)
from headstack.cli.output import print_results, progress, say
from headstack.io.atomic_files import write_text
from headstack.results.intervals.model_errors import bare
from headstack.results.results import Results
from headstack.results.words import number, time, time_unit, with_error
from headstack.simulation.runs import changed, loaded, specify_described, swept, texts

SEEDS = 3
"""Number of simulations of a time, with seeds in a row."""


@dataclass(frozen=True)
class _Kind:
    """Work of a system next to its load."""

    during: str
    """The value of ``--while``, and of the column ``noun`` in the table; without the work, it is ``idle_state``."""
    noun: str
    done: str
    idle_state: str
    hours: Callable[..., tuple[float, str]]
    schedule: Callable[[Rebuildable], str]


_REBUILD = _Kind("rebuilding", "rebuild", "rebuilt", "healthy", rebuild_h, schedule_while_rebuilding)
_SCRUB = _Kind("scrubbing", "scrub", "scrubbed", "none", scrub_h, schedule_while_scrubbing)
_KINDS = {kind.during: kind for kind in (_REBUILD, _SCRUB)}


def while_working(
    during: str, systems: tuple[str, ...], workload: str | None
) -> tuple[Callable[[dict[str, Any], bool], Results], Callable[[Results], None]]:
    """Returns functions that simulate a system without and with a rebuild or scrub under one load, and that print the
    answer."""
    kind = _KINDS[during]
    times = _Times(kind)

    def work(varied: dict[str, Any], quiet: bool) -> Results:
        array, chosen = _single(kind, systems, workload, varied)
        zfs = resilvering(array)
        if kind is _REBUILD and zfs is not None:
            is_shingled = any(disk.get("shingles") for disk in disks(base_of(array.system)))
            times.verb, times.is_timed = "rebuilds" if zfs["sequential_resilver"] else "resilvers", not is_shingled
        if not times.is_timed:
            return _without_and_with(kind, array, systems, workload, varied)
        load: Any = {name: chosen[name] for name in Load.__annotations__ if name in chosen}
        demand = None if workload is None else load_demand(workload)
        with progress(kind.noun, quiet) as show:
            for number_of_seed in range(SEEDS):
                seed = int(chosen.get("seed", "1")) + number_of_seed
                hours, source = kind.hours(array, demand, **(load | {"seed": seed}))
                times.hours.append(hours)
                times.source = source
                if show is not None:
                    show((number_of_seed + 1) / (SEEDS + 1))
        times.idle_h = kind.hours(array)[0]
        return _without_and_with(kind, array, systems, workload, varied)

    return work, partial(_print, times)


@dataclass
class _Times:
    """Simulated times of a rebuild or scrub."""

    kind: _Kind
    verb: str = "rebuilds"
    """``resilvers`` if ZFS does it."""
    is_timed: bool = True
    """Whether the times are simulated: not for a resilver onto shingled drives."""
    idle_h: float = 0.0
    hours: list[float] = field(default_factory=list)
    """Times under the load, by seed, in hours."""
    source: str = ""


def _single(
    kind: _Kind, systems: tuple[str, ...], workload: str | None, varied: Mapping[str, Any]
) -> tuple[Rebuildable, dict[str, str]]:
    """Returns the array or stack, and the single value of each option."""
    option = f"--while {kind.during}"
    values = {name: texts(varied[name]) for name in varied}
    several = [name for name, listed in values.items() if len(listed) > 1]
    if len(systems) != 1 or several or "," in (workload or ""):
        needed = f"one value of --{several[0].replace('_', '-')}" if several else "one array and one workload"
        raise InputError(f"{option}: name {needed}")
    for name in ("faults", "fail"):
        if name in values:
            raise InputError(f"{option}, --{name}: give only one of them")
    chosen = {name: listed[0] for name, listed in values.items()}
    (system,) = loaded(systems, {name: listed for name, listed in values.items() if name in CHANGES})
    rebuildable = changed(system, chosen)
    if isinstance(rebuildable, Drive):
        name = rebuildable.name
        raise InputError(f"{option}: {name} is a single drive, which cannot be {kind.done}; name an array")
    array_below(rebuildable, kind.done)
    return rebuildable, chosen


def _without_and_with(
    kind: _Kind, array: Rebuildable, systems: tuple[str, ...], workload: str | None, varied: dict[str, Any]
) -> Results:
    with tempfile.TemporaryDirectory(prefix="headstack-") as folder:
        path = os.path.join(folder, f"{kind.during}.toml")
        write_text(path, kind.schedule(array))
        without = specify_described(systems, workload, varied)
        working = specify_described(systems, workload, varied | {"faults": path})
    for specs, state in ((without, kind.idle_state), (working, kind.during)):
        for spec in specs:
            spec["labels"] = [*(pair for pair in spec["labels"] if pair[0] != "faults"), (kind.noun, state)]
    if kind is _SCRUB or resilvering(array) is not None:
        for spec in working:
            with_small_scan_memory(spec["system"])
    specs = [*without, *working]
    results = Results(_native.run([bare(spec) for spec in specs], None, None), [*swept(varied), kind.noun])
    return results.with_model_errors(specs, lambda sampled: _native.run(sampled))


def _print(times: _Times, results: Results) -> None:
    print_results(results, answer=_answer(times, results))
    if times.kind is _REBUILD and times.is_timed:
        say(f"note: rebuild time {times.source}, with {SEEDS} seeds; a spare is assumed to be at hand")
    if times.kind is _SCRUB:
        say(f"note: scrub time {times.source}, with {SEEDS} seeds")
        counters = {counter["name"]: counter["value"] for counter in results.whole(1)["counters"]}
        if counters.get("scrubs") or counters.get("zfs_scans"):
            say("note: the scrub ended during the run; shorten it with --time or --requests")


def _answer(times: _Times, results: Results) -> str:
    """Returns the time with its range over the seeds, the time of an idle array, and the latency without and with
    the work."""
    without, working = results[0], results[1]
    first = _time(working["system"], times)
    if working["saturated"]:
        rate = number(working["rate_per_s"])
        return f"{first}; meanwhile it cannot keep up with {rate} IOPS: it serves {number(working['iops'])}."
    means = f"mean latency {_mean(working)} instead of {_mean(without)}"
    p99 = f"p99 {time(working['p99_ms'])} instead of {time(without['p99_ms'])}"
    served = ""
    if working["rate_per_s"] is None:
        served = f"{number(working['iops'])} IOPS instead of {number(without['iops'])}, "
    return f"{first}; meanwhile {served}{means}, {p99}."


def _time(name: str, times: _Times) -> str:
    if not times.is_timed:
        return (
            f"{name} {times.verb} onto a shingled (SMR) drive, whose time is undecided: the model has no fragmented "
            "pool, and a measured one took over 9 days instead of 16 h"
        )
    hours = times.hours
    spread = f"({_hours(min(hours))} to {_hours(max(hours))})"
    mean_h = sum(hours) / len(hours)
    work = f"{times.verb} a drive" if times.kind is _REBUILD else "is scrubbed"
    return f"{name} {work} in {_hours(mean_h)} {spread} under this load, {_hours(times.idle_h)} idle"


def _hours(value: float) -> str:
    return f"{value:.0f} h" if value >= 10 else f"{value:.1f} h" if value >= 1 else f"{60 * value:.0f} min"


def _mean(row: Mapping[str, Any]) -> str:
    width = row["half_width_ms"]
    if not width:
        return time(row["mean_ms"])
    factor, unit = time_unit(row["mean_ms"])
    return f"{with_error(factor * row['mean_ms'], factor * width)} {unit}"
