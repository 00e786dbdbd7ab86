"""``Playback``: replay of a trace on real files and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from headstack import _native
from headstack._native import InputError
from headstack.io.values import choice
from headstack.measurement.access import Access, Progress, is_null
from headstack.measurement.specs import ProgressReport, ReplaySpec, TargetDescription
from headstack.traces.traces import Trace

WRITES = ("as-recorded", "skip", "as-reads")
"""Treatments of recorded writes: write, skip, or read instead."""


@dataclass(frozen=True)
class Playback:
    """How a trace is replayed on real targets, and which writes are permitted."""

    access: Access
    writes: str
    """One of ``WRITES``."""
    realtime: bool
    """Whether the replaying thread has real-time priority over all others of the machine."""


@dataclass(frozen=True)
class Prepared:
    """Replays whose targets are open."""

    targets: _native.Targets
    specs: list[ReplaySpec]
    expected: int | None
    """Number of requests per replay, if known."""

    def run(self, course: Progress | None) -> _native.Results:
        """Runs the replays one after the other."""
        return self.targets.replay(self.specs, None if course is None else self._add_share(course))

    def _add_share(self, course: Progress) -> Progress:
        """Returns the progress, computed from completed and expected requests of a replay."""

        def report(now: ProgressReport) -> object:
            return course(now | {"share": min(1.0, now["completed"] / self.expected)} if self.expected else now)

        return report


def prepare(
    trace: Trace,
    paths: Sequence[str],
    replays: Sequence[Mapping[str, Any]],
    options: Mapping[str, list[str]],
    playback: Playback,
) -> Prepared:
    """Opens the targets for ``replays``, which are in the form of the compiled module; all of them run on each target.

    The trace is read once in advance, so that unreadable records, forbidden writes and addresses above the capacity of
    a target are reported before the first request.
    """
    for name in options:
        if name != "interval":
            raise InputError("does not apply to real targets; remove the option", key=name)
    choice("writes", playback.writes, WRITES)
    access = playback.access
    if access.threads != 1:
        raise InputError(f"{access.threads} is out of range; a replay uses 1 thread", key="threads")
    counted, highest_end_byte = _extent_of(trace, playback.writes, replays[0]["requests_max"])
    writes = counted.get("write", 0) + counted.get("trim", 0) if playback.writes == "as-recorded" else 0
    permitted = access.destroy or access.overwrite or access.create is not None
    refused = [path for path in paths if writes and not permitted and not is_null(path)]
    if refused:
        raise InputError(
            f"{refused[0]}: {trace.name} has {writes:,} writes and trims; permit them with --destroy for a "
            "device or --overwrite for a file, or use --writes skip (leave writes out) or as-reads (read instead)"
        )
    specs: list[ReplaySpec] = [
        {
            "target": number,
            "system_name": path,
            "source": trace.source,
            "replay": played,
            "writes": playback.writes,
            "engine": access.engine_of(path),
            "slots": access.slots,
            "realtime": playback.realtime,
            "interval_ns": None if interval is None else _native.interval_ns(interval),
            "labels": [] if interval is None else [("interval", interval)],
            "record": None,
        }
        for number, path in enumerate(paths)
        for played in replays
        for interval in options.get("interval", [None])
    ]
    targets = _native.Targets([replace(access, write=writes > 0).target_spec(path) for path in paths])
    is_part = replays[0]["time_max_ns"] is not None
    if replays[0]["outside"] == "refuse" and not is_part:
        _check_addresses(trace, highest_end_byte, targets.described())
    return Prepared(targets, specs, None if is_part else sum(counted.values()))


class Extent(NamedTuple):
    """The requests of a trace to replay; an upper bound if only a part of its duration is replayed."""

    requests: Mapping[str, int]
    """Counts by kind."""
    highest_end_byte: int


def _extent_of(trace: Trace, writes: str, requests_max: int | None) -> Extent:
    source = trace.source
    if writes != "as-recorded":
        source["steps"].append("kind=read,flush" if writes == "skip" else "kind=read,write,flush")
    if requests_max is not None:
        source["steps"].append(f"first={requests_max}")
    total = _native.trace_info(source)["summary"]["total"]
    return Extent(total["requests"], total.get("highest_end_byte") or 0)


def _check_addresses(trace: Trace, highest_end_byte: int, described: Sequence[TargetDescription]) -> None:
    """Rejects a trace with addresses above the capacity of a target."""
    for target in described:
        capacity_bytes, block_bytes = target["capacity_bytes"], target["block_bytes"]
        if highest_end_byte > capacity_bytes // block_bytes * block_bytes:
            raise InputError(
                f"{trace.name}: its requests extend to byte {highest_end_byte:,}, but {target['name']} has "
                f"{capacity_bytes:,} bytes; use --outside fold to wrap such requests, or drop to omit them"
            )
