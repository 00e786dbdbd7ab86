"""``replay``: replay of a trace on simulated and real systems. See docs/design/replay.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from headstack._native import InputError
from headstack.io.atomic_files import opened_pipe
from headstack.measurement.access import SLOTS, Access, Progress
from headstack.measurement.measurement import is_target
from headstack.measurement.playback import Playback, prepare
from headstack.results.results import Results
from headstack.simulation.runs import Swept, System, several, texts
from headstack.traces.replays import (
    check_replays,
    replay_simulated,
    replays_of,
    specify,
    volumes_of,
)
from headstack.traces.traces import Trace


class ReplayOptions(TypedDict, total=False):
    """Options that vary the system in a replay, each with one or several values, as in ``headstack.run``."""

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
    state: Swept
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
    """Replays a trace on every system in every mode. The results are like results of runs, and include the fidelity.

    ``mode`` is ``"timed"`` (recorded arrivals, times ``time_scale``), ``"asap"`` (at queue depth ``depth``, in recorded
    order; by default the maximum depth of the trace), ``"closed"`` (clients with their recorded think times) or
    ``"dependent"`` (a request waits for the requests that it waited for when recorded: the last completions before it
    with no other arrival in between, or with ``within``, all completions within this time before its arrival).
    ``outside`` selects how requests above the capacity are treated: ``"refuse"``, ``"fold"`` or ``"drop"``. ``map``
    places the volumes of a trace on simulated systems: ``"stacked"`` (concatenated), ``"round-robin"`` or ``"hashed"``
    (over LUNs, in turn or by name), ``"hm.0=lun0,hm.1=lun1@100GB"``, or a file of such lines; results then have
    ``volumes`` with the results of each. ``requests`` and ``time`` (of the trace) end the replay early. ``record``
    writes the requests of a single replay as a trace.

    Simulated systems are replayed first, on all cores; ``progress`` is called with the number of requests read. The
    path of a file or block device is a real target; real targets are replayed one after the other, and ``course`` is
    called like ``progress`` of ``measure``. Permissions and the path of requests are given as for ``measure``;
    recorded ``writes`` are treated ``"as-recorded"``, ``"skip"`` or ``"as-reads"``. With ``realtime`` the replaying
    thread has priority over all others of the machine. An interruption (Ctrl-C) keeps the results so far.

    >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
    >>> trace = hs.Trace("t.parquet")
    >>> [row["mode"] for row in hs.replay(trace, "atlas-10k-iii-73", ["timed", "asap"])]
    ['timed', 'asap']
    """
    values = {name: texts(value) for name, value in options.items()}  # type: ignore[arg-type]
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
    request = ReplayRequest(
        traced, tuple(several(systems)), tuple(modes), settings, values, Playback(access, writes, realtime)
    )
    return replay_all(request, record, progress, course)


@dataclass(frozen=True)
class ReplayRequest:
    """Replays of one trace: the systems, the modes and the options."""

    trace: Trace
    systems: tuple[System, ...]
    """Simulated systems and paths of real systems, in any order."""
    modes: tuple[str, ...]
    settings: Mapping[str, Any]
    """``depth``, ``time_scale``, ``within``, ``outside``, ``requests`` and ``time``."""
    options: Mapping[str, list[str]]
    """Options of ``SYSTEM_OPTIONS``."""
    playback: Playback


def replay_all(
    request: ReplayRequest,
    record: str | os.PathLike[str] | None,
    progress: Callable[[int], object] | None,
    course: Progress | None,
) -> Results:
    """Replays on all systems; results have the order of the systems. All inputs are checked before the first replay
    starts."""
    real = [is_target(system) for system in request.systems]
    simulated = [system for system, is_real in zip(request.systems, real, strict=True) if not is_real]
    if request.settings.get("map") is not None and any(real):
        raise InputError("maps volumes only to simulated systems; use --step stack for a real one", key="map")
    paths = [
        os.fspath(system) for system in request.systems if isinstance(system, str | os.PathLike) and is_target(system)
    ]
    playback = request.playback
    if not paths and playback.realtime:
        raise InputError("applies only to real targets; remove the option", key="realtime")
    if simulated and playback.writes != "as-recorded":
        raise InputError(
            f"{playback.writes} does not apply to simulated systems; use --step kind=read,flush to leave writes out "
            "on all systems",
            key="writes",
        )
    replays = replays_of(request.trace, request.modes, request.settings)
    specs = specify(request.trace, simulated, replays, request.options, request.settings.get("map"))
    prepared = prepare(request.trace, paths, replays, request.options, playback) if paths else None
    played = [] if prepared is None else prepared.specs
    if record is not None and len(specs) + len(played) > 1:
        raise InputError(f"{len(specs) + len(played)} replays; only one can be recorded", key="record")
    with nullcontext() if record is None else opened_pipe(record) as place:
        for spec in specs:
            spec["record"] = place
        for played_spec in played:
            played_spec["record"] = place
        results, volumes = replay_simulated(specs, request.options, progress)
        if prepared is not None:
            results = results.and_others(Results(prepared.run(course)))
    check_replays(results)
    per_system = len(specs) // max(1, len(simulated))
    owners = [number for number, is_real in enumerate(real) if not is_real for _ in range(per_system)]
    owners += [[number for number, is_real in enumerate(real) if is_real][spec["target"]] for spec in played]
    # After an interruption, the last real systems are missing.
    order = sorted(range(len(results)), key=owners.__getitem__)
    results = results.chosen(order)
    if request.settings.get("map") is not None:
        results.volumes = volumes_of(results, [volumes[number] for number in order])
    return results
