"""Replay of traces on simulated systems; see docs/design/replay.md."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from headstack import _native
from headstack._native import Field, InputError, RunError
from headstack.catalogue.options import OPTIONS, Spec, applied
from headstack.io.values import choice, duration_ns, number, whole
from headstack.results.intervals.described import described
from headstack.results.intervals.model_errors import DESCRIBED, bare
from headstack.results.results import Results
from headstack.simulation.runs import System, changed, changing, labels_of, loaded, swept
from headstack.traces.replay_types import Mode, Replay, VolumeResult, VolumeRow
from headstack.traces.traces import Trace
from headstack.traces.volume_maps import extents, luns_of

MODES = ("timed", "asap", "closed", "dependent")

OUTSIDE = ("refuse", "fold", "drop")

SYSTEM_OPTIONS = tuple(
    option
    for option in OPTIONS
    if (option.group in ("Array", "Drive") and option.name != "lun") or option.name in ("interval", "seed", "faults")
)
"""Options of the system that can be varied, as in a run."""

FIELDS = (
    Field("run", "count", "", "number of the replay among the results, from 0"),
    Field("system", "text", "", "name of the system"),
    Field("mode", "text", "", "mode of the replay"),
    Field("volume", "text", "", "name of the volume in the trace"),
    Field("start_bytes", "count", "bytes", "first byte of the volume on the system"),
    Field("length_bytes", "count", "bytes", "length of the volume on the system"),
    Field("requests", "count", "requests", "replayed requests, without flushes, which concern the whole system"),
    Field("bytes", "count", "bytes", "bytes of these requests"),
    Field("iops", "figure", "1/s", "requests per second from the first request of the replay to the last completion"),
    Field("mean_ms", "figure", "ms", "mean latency"),
    Field("p99_ms", "figure", "ms", "99th percentile of the latency"),
    Field("folded", "count", "requests", "requests beyond the end of the volume that were wrapped into it"),
    Field("dropped", "count", "requests", "requests beyond the end of the volume that were left out"),
)
"""Columns of ``Results.volumes``."""


NOTHING_SET: Mapping[str, Any] = {
    "depth": None,
    "time_scale": "1",
    "within": None,
    "outside": "refuse",
    "requests": None,
    "time": None,
}
"""Default settings of a replay."""


def replay_simulated(
    specs: Sequence[Spec], options: Mapping[str, list[str]], progress: Callable[[int], object] | None = None
) -> tuple[Results, list[list[VolumeResult]]]:
    """Runs the replays that ``specify`` defines on simulated systems. Returns the results, and the results of the
    volumes of each replay.

    ``progress`` is called with the number of requests read. Raises ``RunError`` if a replay fails an internal check.
    """
    native, results_of_volumes = _native.replay([bare(spec) for spec in specs], progress)
    volumes = cast(list[list[VolumeResult]], results_of_volumes)
    results = Results(native, swept(options))
    results = results.with_model_errors(specs, lambda sampled: _native.replay(sampled)[0])
    check_replays(results)
    return results, volumes


def check_replays(results: Results) -> None:
    """Raises ``RunError`` if a replay fails an internal check."""
    failed = results.failed_checks()
    if failed:
        raise RunError(f"a replay failed an internal check, so its figures are not reliable: {failed[0]}")


def volumes_of(results: Results, volumes: list[list[VolumeResult]]) -> list[VolumeRow]:
    """Returns a row for each replay and volume, in order of address. Times are in ms as in the table of results."""
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
    replays: Sequence[Replay],
    options: Mapping[str, list[str]],
    volume_map: str | None = None,
) -> list[Spec]:
    """Returns the simulated replays, ordered by system, then by ``replays``, then by the options of the system."""
    ends = None if volume_map is None else ends_of(trace)
    supported = {option.name for option in SYSTEM_OPTIONS}
    for name in options:
        if name not in supported:
            raise InputError(f"unknown option; allowed: {', '.join(sorted(supported))}", key=name)
    ordered = [option for option in SYSTEM_OPTIONS if option.name in options]
    specs = []
    for system, played in itertools.product(loaded(systems, dict(options)), replays):
        for point in itertools.product(*(options[option.name] for option in ordered)):
            chosen = {option.name: text for option, text in zip(ordered, point, strict=True)}
            varied = changed(system, chosen)
            if varied.span is not None:
                raise InputError(f"{varied.name}: a replay uses a whole system; cut the trace with --step clip or fold")
            spec: Spec = {
                "system_name": varied.name,
                "system": varied.system,
                "span": None,
                "seed": 1,
                "interval_ns": None,
            }
            spec = applied(spec, chosen)
            del spec["span"]
            spec["source"] = trace.source
            spec["replay"] = played
            if volume_map is not None and ends is not None:
                luns = luns_of(spec["system"], varied.capacity_bytes)
                spec["map"] = extents(volume_map, ends, luns, played["outside"] == "fold")
            spec["labels"] = labels_of(spec["system"], chosen)
            spec[DESCRIBED] = described(varied, changing(spec, chosen))
            specs.append(spec)
    return specs


def ends_of(trace: Trace) -> dict[str, int]:
    """Returns the volumes of a trace that have requests, and the bytes that each needs."""
    info = trace.info()
    counted = zip(info["meta"]["devices"], info["summary"]["devices"], strict=False)
    return {device["name"]: counts["highest_end_byte"] for device, counts in counted if counts["requests"]}


def replays_of(trace: Trace, modes: Sequence[str], settings: Mapping[str, Any]) -> list[Replay]:
    """Returns the replays for each mode and depth, in the form of the compiled module."""
    return [
        {
            "name": trace.name,
            "mode": parameters,
            "outside": choice("outside", settings["outside"], OUTSIDE),
            "requests_max": settings["requests"],
            "time_max_ns": None if settings["time"] is None else duration_ns("time", settings["time"]),
        }
        for parameters in modes_of(trace, list(modes), settings)
    ]


def modes_of(trace: Trace, modes: list[str], settings: Mapping[str, Any]) -> list[Mode]:
    """Returns each mode with its parameters."""
    parameters: list[Mode] = []
    for mode in modes:
        match choice("mode", mode, MODES):
            case "timed":
                parameters.append({"timed": {"time_scale": number("time_scale", settings["time_scale"])}})
            case "asap":
                depths = settings["depth"] or [str(recorded_depth(trace))]
                parameters += [{"asap": {"depth": whole("depth", depth)}} for depth in depths]
            case "closed":
                parameters.append("closed")
            case "dependent":
                within = settings["within"]
                max_ns = None if within is None else duration_ns("within", within)
                parameters.append({"dependent": {"min_ns": 0, "max_ns": max_ns}})
    if settings["depth"] is not None and "asap" not in modes:
        raise InputError("applies only to the mode asap", key="depth")
    if settings["time_scale"] != "1" and "timed" not in modes:
        raise InputError("applies only to the mode timed; use --step time-scale to change the trace", key="time_scale")
    if settings["within"] is not None and "dependent" not in modes:
        raise InputError("applies only to the mode dependent", key="within")
    return parameters


def recorded_depth(trace: Trace) -> int:
    """Returns the maximum queue depth of the trace."""
    depth = trace.info()["summary"]["most_in_flight"]
    if depth == 0:
        raise InputError(f"{trace.name}: without recorded completions the queue depth is unknown; set --depth")
    return depth
