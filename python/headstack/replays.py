"""Replaying a trace on simulated systems and real ones."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from headstack import _native
from headstack._native import Field, InputError, RunError
from headstack.atomic_files import opened_pipe
from headstack.intervals.described import described
from headstack.intervals.of_runs import DESCRIBED, bare
from headstack.measurement import SLOTS, Access, Progress, is_target
from headstack.measurement.replays import Playback, prepare
from headstack.options import OPTIONS, applied
from headstack.results import Results
from headstack.runs import Swept, System, changed, changing, labels_of, loaded, several, swept, texts
from headstack.traces import Trace
from headstack.values import choice, duration_ns, number, whole
from headstack.volume_maps import extents, luns_of

MODES = ("timed", "asap", "closed", "dependent")
OUTSIDE = ("refuse", "fold", "drop")

SYSTEM_OPTIONS = tuple(
    option
    for option in OPTIONS
    if (option.group in ("Array", "Drive") and option.name != "lun") or option.name in ("interval", "seed", "faults")
)
"""What can be varied of the system, as in a run."""


FIELDS = (
    Field("run", "count", "", "number of the replay among the results, from 0"),
    Field("system", "text", "", "its system"),
    Field("mode", "text", "", "its mode"),
    Field("volume", "text", "", "the volume's name in the trace"),
    Field("start_bytes", "count", "bytes", "its first byte on the system"),
    Field("length_bytes", "count", "bytes", "what it has there"),
    Field("requests", "count", "requests", "requests replayed, without flushes, which are of the whole system"),
    Field("bytes", "count", "bytes", "their bytes"),
    Field("iops", "figure", "1/s", "requests a second from the first request of the replay to the last completion"),
    Field("mean_ms", "figure", "ms", "mean response time"),
    Field("p99_ms", "figure", "ms", "99th percentile of response times"),
    Field("folded", "count", "requests", "requests behind the volume's end on the system that were moved into it"),
    Field("dropped", "count", "requests", "requests behind it that were left out"),
)
"""What ``Results.volumes`` has of each volume."""


class ReplayOptions(TypedDict, total=False):
    """What can be varied of the system in a replay, each with one value or several; as in ``headstack.run``."""

    drives: Swept
    drive: Swept
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
    preconditioned: Swept
    interval: Swept
    seed: Swept
    faults: Swept


def replay(
    trace: Trace | str | os.PathLike[str],
    systems: System | Iterable[System],
    mode: str | Iterable[str] = "timed",
    *,
    depth: Swept | None = None,
    time_scale: str | float = 1,
    within: str | None = None,
    outside: str = "refuse",
    requests: int | None = None,
    time: str | None = None,
    map: str | os.PathLike[str] | None = None,
    record: str | os.PathLike[str] | None = None,
    writes: str = "as-recorded",
    realtime: bool = False,
    destroy: Iterable[str] = (),
    over: Iterable[str] = (),
    create: str | None = None,
    overwrite: bool = False,
    buffered: bool = False,
    engine: str = "auto",
    slots: int = SLOTS,
    progress: Callable[[int], object] | None = None,
    course: Progress | None = None,
    **options: Unpack[ReplayOptions],
) -> Results:
    """Replays a trace on every system in every mode; results are those of runs, with their fidelity.

    ``mode`` is ``"timed"`` (recorded arrivals, times ``time_scale``), ``"asap"`` (``depth`` outstanding, in recorded
    order; as many as were in flight at most, unless said), ``"closed"`` (clients with their recorded think times) or
    ``"dependent"`` (a request waits for those it waited for in the recording: the last completions before it that no
    other request came between, or, if it is given, all that were complete at most ``within`` before it arrived).
    ``outside`` says what becomes of requests beyond the system: ``"refuse"``, ``"fold"`` or ``"drop"``.
    ``map`` puts the volumes of a trace of several on simulated systems: ``"stacked"`` (one after the other),
    ``"round-robin"`` or ``"hashed"`` (over LUNs, in turn or by name), ``"hm.0=lun0,hm.1=lun1@100GB"``, or a file of
    such lines; results then have ``volumes``, what became of each. ``requests`` and ``time`` (of the recording) end it
    early. ``record`` writes what came out of a single replay as a trace.

    Simulated systems are replayed first, on all cores; ``progress`` hears the number of requests read. A system that is
    the path of a file or block device is the real thing, one after the other, of which ``course`` hears as
    ``measure``'s ``progress`` does: what may be done to it, and how requests reach it, is said as for ``measure``, what
    becomes of recorded ``writes`` by ``"as-recorded"``, ``"skip"`` or ``"as-reads"``. With ``realtime`` the thread that
    plays goes before all others of the machine. An interruption (Ctrl-C) keeps what was measured.

    >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
    >>> trace = hs.Trace("t.parquet")
    >>> [row["mode"] for row in hs.replay(trace, "atlas-10k-iii-73", ["timed", "asap"])]
    ['timed', 'asap']
    """
    given = {name: texts(value) for name, value in options.items()}  # type: ignore[arg-type]
    settings = {
        "depth": None if depth is None else texts(depth),
        "time_scale": str(time_scale),
        "within": within,
        "outside": outside,
        "requests": requests,
        "time": time,
        "map": None if map is None else os.fspath(map),
    }
    access = Access(
        destroy=tuple(destroy),
        over=tuple(over),
        create=create,
        overwrite=overwrite,
        buffered=buffered,
        engine=engine,
        slots=slots,
    )
    modes = [mode] if isinstance(mode, str) else list(mode)
    traced = trace if isinstance(trace, Trace) else Trace(trace)
    asked = Asked(traced, tuple(several(systems)), tuple(modes), settings, given, Playback(access, writes, realtime))
    return replay_all(asked, record, progress, course)


@dataclass(frozen=True)
class Asked:
    """Replays as somebody asks for them."""

    trace: Trace
    systems: tuple[System, ...]
    """Simulated ones and paths of real ones, in any order."""
    modes: tuple[str, ...]
    settings: Mapping[str, Any]
    """``depth``, ``time_scale``, ``within``, ``outside``, ``requests`` and ``time``."""
    given: Mapping[str, list[str]]
    """Options of ``SYSTEM_OPTIONS``."""
    playback: Playback


def replay_all(
    asked: Asked,
    record: str | os.PathLike[str] | None,
    progress: Callable[[int], object] | None,
    course: Progress | None,
) -> Results:
    """Replays on all systems, in their order in the results; nothing begins before everything is looked at."""
    real = [is_target(system) for system in asked.systems]
    simulated = [system for system, is_real in zip(asked.systems, real, strict=True) if not is_real]
    if asked.settings.get("map") is not None and any(real):
        raise InputError("map: volumes are mapped to simulated systems; --step stack puts them on a real one")
    paths = [
        os.fspath(system) for system in asked.systems if isinstance(system, str | os.PathLike) and is_target(system)
    ]
    playback = asked.playback
    if not paths and playback.realtime:
        raise InputError("realtime: a simulation knows no time but its own; leave the option out")
    if simulated and playback.writes != "as-recorded":
        raise InputError(
            f"writes: simulated systems take them as recorded, not {playback.writes}; --step kind=read,flush leaves "
            "them out everywhere"
        )
    replays = replays_of(asked.trace, asked.modes, asked.settings)
    specs = specify(asked.trace, simulated, replays, asked.given, asked.settings.get("map"))
    prepared = prepare(asked.trace, paths, replays, asked.given, playback) if paths else None
    played = [] if prepared is None else prepared.specs
    if record is not None and len(specs) + len(played) > 1:
        raise InputError(f"record: {len(specs) + len(played)} replays cannot be one trace")
    with nullcontext() if record is None else opened_pipe(record) as place:
        for spec in (*specs, *played):
            spec["record"] = place
        found, volumes = _native.replay(json.dumps([bare(spec) for spec in specs]), progress)
        results = Results(found, swept(asked.given))
        results = results.with_model_errors(specs, lambda sampled: _native.replay(json.dumps(sampled))[0])
        if prepared is not None:
            results = results.and_others(Results(prepared.carry_out(course)))
    failed = results.failed_checks()
    if failed:
        raise RunError(f"a replay failed its own check, its figures cannot be trusted: {failed[0]}")
    per_system = len(specs) // max(1, len(simulated))
    owners = [number for number, is_real in enumerate(real) if not is_real for _ in range(per_system)]
    owners += [[number for number, is_real in enumerate(real) if is_real][spec["target"]] for spec in played]
    # Of real ones, an interruption leaves out the last.
    order = sorted(range(len(results)), key=owners.__getitem__)
    results = results.chosen(order)
    if asked.settings.get("map") is not None:
        results.volumes = volumes_of(results, [json.loads(volumes)[number] for number in order])
    return results


def volumes_of(results: Results, volumes: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """A row for each replay and volume, in the order of their places: times in ms as in the table of results."""
    return [
        {
            "run": number,
            "system": row["system"],
            "mode": row["mode"],
            "volume": volume["volume"],
            "start_bytes": volume["start_bytes"],
            "length_bytes": volume["length_bytes"],
            "requests": volume["requests"],
            "bytes": volume["bytes"],
            "iops": volume["iops"],
            "mean_ms": None if volume["mean_ns"] is None else volume["mean_ns"] / 1e6,
            "p99_ms": None if volume["p99_ns"] is None else volume["p99_ns"] / 1e6,
            "folded": volume["folded"],
            "dropped": volume["dropped"],
        }
        for number, (row, own) in enumerate(zip(results, volumes, strict=True))
        for volume in own
    ]


def specify(
    trace: Trace,
    systems: Sequence[System],
    replays: Sequence[dict[str, Any]],
    given: Mapping[str, list[str]],
    volume_map: str | None = None,
) -> list[dict[str, Any]]:
    """The simulated replays: systems, then ``replays``, then the options of the system in their order."""
    ends = None if volume_map is None else ends_of(trace)
    known = {option.name for option in SYSTEM_OPTIONS}
    for name in given:
        if name not in known:
            raise InputError(f"{name}: unknown option; allowed: {', '.join(sorted(known))}")
    ordered = [option for option in SYSTEM_OPTIONS if option.name in given]
    specs = []
    for system, played in itertools.product(loaded(systems, dict(given)), replays):
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
            spec = applied(spec, chosen)
            del spec["span"]
            spec["source"] = json.loads(trace.source)
            spec["replay"] = played
            if volume_map is not None and ends is not None:
                luns = luns_of(spec["system"], found.capacity_bytes)
                spec["map"] = extents(volume_map, ends, luns, played["outside"] == "fold")
            spec["labels"] = labels_of(spec["system"], chosen)
            spec[DESCRIBED] = described(found, changing(spec, chosen))
            specs.append(spec)
    return specs


def ends_of(trace: Trace) -> dict[str, int]:
    """The volumes of a trace that have requests, and the bytes that each needs."""
    told = trace.info()
    counted = zip(told["meta"]["devices"], told["summary"]["devices"], strict=False)
    return {device["name"]: counts["highest_end_byte"] for device, counts in counted if counts["requests"]}


def replays_of(trace: Trace, modes: Sequence[str], settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How the trace is replayed, by each mode and depth, as the compiled part takes it."""
    return [
        {
            "name": trace.name,
            "mode": way,
            "outside": choice("outside", settings["outside"], OUTSIDE),
            "requests_max": settings["requests"],
            "time_max_ns": None if settings["time"] is None else duration_ns("time", settings["time"]),
        }
        for way in ways_of(trace, list(modes), settings)
    ]


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
                within = settings["within"]
                max_ns = None if within is None else duration_ns("within", within)
                ways.append({"dependent": {"min_ns": 0, "max_ns": max_ns}})
    if settings["depth"] is not None and "asap" not in modes:
        raise InputError("depth: only the mode asap has one")
    if settings["time_scale"] != "1" and "timed" not in modes:
        raise InputError("time_scale: only the mode timed has one; --step time-scale changes the trace")
    if settings["within"] is not None and "dependent" not in modes:
        raise InputError("within: only the mode dependent looks back")
    return ways


def recorded_depth(trace: Trace) -> int:
    """The most requests that were in flight."""
    depth: int = trace.info()["summary"]["most_in_flight"]
    if depth == 0:
        raise InputError(f"{trace.name}: no completions are recorded that would tell the depth; state it")
    return depth
