"""Replaying a trace on simulated systems."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, Unpack

from headstack import _native
from headstack._native import InputError, RunError
from headstack.options import OPTIONS
from headstack.results import Results
from headstack.runs import Swept, System, changed, loaded, swept, texts
from headstack.traces import Trace
from headstack.values import choice, duration_ns, number, whole

MODES = ("timed", "asap", "closed", "dependent")
OUTSIDE = ("refuse", "fold", "drop")
WITHIN = "100ms"
"""Longer pauses than this are those of users and timers, who wait for no disk."""

SYSTEM_OPTIONS = tuple(
    option
    for option in OPTIONS
    if (option.group in ("Array", "Drive") and option.name != "lun") or option.name in ("interval", "seed")
)
"""What can be varied of the system, as in a run."""


class ReplayOptions(TypedDict, total=False):
    """What can be varied of the system in a replay, each with one value or several; as in ``headstack.run``."""

    drives: Swept
    drive: Swept
    fail: Swept
    policy: Swept
    queue_depth: Swept
    reordering: Swept
    ageing: Swept
    host_tags: Swept
    elevator: Swept
    write_cache: Swept
    read_ahead: Swept
    preconditioned: Swept
    interval: Swept
    seed: Swept


def replay(
    trace: Trace | str | os.PathLike[str],
    systems: System | Iterable[System],
    mode: str | Iterable[str] = "timed",
    *,
    depth: Swept | None = None,
    time_scale: str | float = 1,
    within: str = WITHIN,
    outside: str = "refuse",
    requests: int | None = None,
    time: str | None = None,
    record: str | os.PathLike[str] | None = None,
    progress: Callable[[int], object] | None = None,
    **options: Unpack[ReplayOptions],
) -> Results:
    """Replays a trace on every system in every mode, on all cores; results are those of runs, with their fidelity.

    ``mode`` is ``"timed"`` (recorded arrivals, times ``time_scale``), ``"asap"`` (``depth`` outstanding, in recorded
    order; as many as were in flight at most, unless said), ``"closed"`` (clients with their recorded think times) or
    ``"dependent"`` (a request waits for those it waited for in the recording, which are complete at most ``within``
    before it arrived). ``outside`` says what becomes of requests beyond the system: ``"refuse"``, ``"fold"`` or
    ``"drop"``. ``requests`` and ``time`` (of the recording) end it early. ``record`` writes what came out of a single
    replay as a trace. ``progress`` hears the number of requests read.
    """
    given = {name: texts(value) for name, value in options.items()}  # type: ignore[arg-type]
    settings = {
        "depth": None if depth is None else texts(depth),
        "time_scale": str(time_scale),
        "within": within,
        "outside": outside,
        "requests": requests,
        "time": time,
    }
    modes = [mode] if isinstance(mode, str) else list(mode)
    traced = trace if isinstance(trace, Trace) else Trace(trace)
    specs = specify(traced, systems, modes, settings, given)
    return replay_specs(specs, given, record, progress)


def replay_specs(
    specs: list[dict[str, Any]],
    given: Mapping[str, list[str]],
    record: str | os.PathLike[str] | None,
    progress: Callable[[int], object] | None,
) -> Results:
    """Replays what ``specify`` made."""
    if record is not None:
        if len(specs) > 1:
            raise InputError(f"record: {len(specs)} replays cannot be one trace")
        specs[0]["record"] = os.fspath(record)
    results = Results(_native.replay(json.dumps(specs), progress), swept(given))
    failed = results.failed_checks()
    if failed:
        raise RunError(f"a replay failed its own check, its figures cannot be trusted: {failed[0]}")
    return results


def specify(
    trace: Trace,
    systems: System | Iterable[System],
    modes: Iterable[str],
    settings: Mapping[str, Any],
    given: Mapping[str, list[str]],
) -> list[dict[str, Any]]:
    """The replays: systems, then modes, depths, and the options of the system in their order."""
    known = {option.name for option in SYSTEM_OPTIONS}
    for name in given:
        if name not in known:
            raise InputError(f"{name}: unknown option; allowed: {', '.join(sorted(known))}")
    ways = ways_of(trace, list(modes), settings)
    ordered = [option for option in SYSTEM_OPTIONS if option.name in given]
    specs = []
    for system, way in itertools.product(loaded(systems, dict(given)), ways):
        for point in itertools.product(*(given[option.name] for option in ordered)):
            chosen = {option.name: text for option, text in zip(ordered, point, strict=True)}
            found = changed(system, chosen)
            if found.span is not None:
                raise InputError(f"{found.name}: a replay uses a whole system; --step clip or fold cuts the trace")
            spec: dict[str, Any] = {
                "system_name": found.name,
                "system": json.loads(json.dumps(found.system)),
                "span": None,
                "seed": 1,
                "interval_ns": None,
            }
            for option in ordered:
                option.apply(spec, chosen[option.name])
            del spec["span"]
            spec["source"] = json.loads(trace.source)
            spec["replay"] = {
                "name": trace.name,
                "mode": way,
                "outside": choice("outside", settings["outside"], OUTSIDE),
                "requests_max": settings["requests"],
                "time_max_ns": None if settings["time"] is None else duration_ns("time", settings["time"]),
            }
            spec["labels"] = [pair for pair in chosen.items() if pair[0] != "seed"]
            specs.append(spec)
    return specs


def ways_of(trace: Trace, modes: list[str], settings: Mapping[str, Any]) -> list[Any]:
    """Each mode with what it needs to know."""
    ways: list[Any] = []
    for mode in modes:
        match choice("mode", mode, MODES):
            case "timed":
                ways.append({"timed": {"time_scale": number("time_scale", settings["time_scale"])}})
            case "asap":
                depths = settings["depth"] or [str(recorded_depth(trace))]
                ways += [{"asap": {"depth": whole("depth", depth)}} for depth in depths]
            case "closed":
                ways.append("closed")
            case "dependent":
                ways.append({"dependent": {"min_ns": 0, "max_ns": duration_ns("within", settings["within"])}})
    if settings["depth"] is not None and "asap" not in modes:
        raise InputError("depth: only the mode asap has one")
    if settings["time_scale"] != "1" and "timed" not in modes:
        raise InputError("time_scale: only the mode timed has one; --step time-scale changes the trace")
    if settings["within"] != WITHIN and "dependent" not in modes:
        raise InputError("within: only the mode dependent looks back")
    return ways


def recorded_depth(trace: Trace) -> int:
    """The most requests that were in flight."""
    depth: int = trace.info()["summary"]["most_in_flight"]
    if depth == 0:
        raise InputError(f"{trace.name}: no completions are recorded that would tell the depth; state it")
    return depth
