"""`score`: simulates the measurements of a device, and returns the errors of the prediction by load and figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive, import_disksim
from headstack.catalogue.options import Spec
from headstack.catalogue.stack import Stack
from headstack.catalogue.system import load_system
from headstack.comparison.scoreboard.measured_device import PATTERNS, MeasuredDevice, Point
from headstack.io.values import size_bytes
from headstack.results.intervals.calibration import SCORED, Load, Refusal
from headstack.results.intervals.described import described, stated_share
from headstack.results.intervals.workloads import flash_state, load_of
from headstack.results.results import Results
from headstack.results.words import percentile_of
from headstack.simulation.runs import run_specs, specify_described

REQUESTS = 40_000
"""Requests of a run; the sampling error of a rate is then below 1 %, less than that between two units of a model."""
WORN_REQUESTS = 400_000
"""Requests that write to a worn-in SSD: 16 or more of its write buffers and hundreds of collected blocks."""
OPEN_REQUESTS = 100_000
"""Requests of an open loop, so that 100 of them are longer than the 99.9th percentile."""
LARGE_BYTES = 1 << 20
LARGE_REQUESTS = 2_000
"""Requests of at least ``LARGE_BYTES``, which move gigabytes."""

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
KINDS_OF = {"reads": "read", "writes": "write"}

Entry = dict[str, Any]
"""A device with its errors, as the file of shipped errors has it."""


class Scored(NamedTuple):
    """A scored device."""

    of_class: str
    """One of ``calibration.CLASSES``."""
    entry: Entry


class _Load(NamedTuple):
    """A load to simulate, with the mean of all measurements of it: a queue depth may be split over jobs in several
    ways."""

    point: Point
    """The first measurement."""
    measured: Mapping[str, float]


class _Planned(NamedTuple):
    """A device with the loads to simulate."""

    device: MeasuredDevice
    system: Drive | Array | Stack
    loads: Sequence[_Load]
    specs: Mapping[tuple[object, ...], Spec]
    """The runs by the properties of their measurements; the reads and the writes of a mix are one run."""


def score(devices: Sequence[MeasuredDevice], progress: Callable[[float], object] | None = None) -> list[Scored]:
    """Simulates all loads of these devices, on all cores, and returns the errors.

    Raises ``InputError`` for a description that cannot be simulated under its loads.
    """
    planned = [_plan(device) for device in devices]
    specs = [spec for plan in planned for spec in plan.specs.values()]
    results = run_specs(specs, {}, progress) if specs else None
    first = 0
    scored = []
    for plan in planned:
        runs = {key: first + number for number, key in enumerate(plan.specs)}
        first += len(runs)
        scored.append(_score(plan, runs, results))
    return scored


def _plan(device: MeasuredDevice) -> _Planned:
    system = _system_of(device)
    loads = _loads_of(device.points)
    runs = {_key_of(load.point): load.point for load in loads if not load.point.is_trace}
    return _Planned(device, system, loads, {key: _spec_of(device, system, point) for key, point in runs.items()})


def _score(plan: _Planned, runs: Mapping[tuple[object, ...], int], results: Results | None) -> Scored:
    device, system = plan.device, plan.system
    cells: list[Entry] = []
    for load in plan.loads:
        key = _key_of(load.point)
        if load.point.is_trace or results is None:
            cells += _replay(device, load)
        else:
            row, whole = results[runs[key]], results.whole(runs[key])
            predicted = _predicted(load.point, row, whole)
            cells += _cells(_words(device, load.point), _load_in(plan.specs[key], row, load.point), load, predicted)
    is_replayed = any(load.point.is_trace for load in plan.loads)
    # A program extracted the parameters of DiskSim's drives, so that their errors are not those of drives from sheets.
    year = system.summary["year"] if isinstance(system, Drive) and not is_replayed else None
    share = 1.0 if is_replayed else stated_share(system)
    entry = {"device": device.device, "year": year, "stated_share": share, "described": device.described}
    optional = {"fitted": device.fitted, "source": device.source, "licence": device.licence}
    entry = {key: value for key, value in entry.items() if value is not None}
    entry |= {key: value for key, value in optional.items() if value} | {"cells": cells}
    return Scored(described(system).of_class, entry)


def _place(device: MeasuredDevice) -> str:
    """Returns the catalogue name of a device's description, or its path."""
    path = device.folder / device.system
    return str(path) if path.is_file() else device.system


def _system_of(device: MeasuredDevice) -> Drive | Array | Stack:
    place = _place(device)
    return import_disksim(place).drives[0] if Path(place).suffix == ".parv" else load_system(place)


def _key_of(point: Point) -> tuple[object, ...]:
    """Returns the properties of a measurement that determine its run."""
    load = (point.rw, point.read_percent, point.block_size, point.depth * point.jobs, point.offered_iops)
    return (*load, point.state, point.range)


def _loads_of(points: Iterable[Point]) -> list[_Load]:
    """Returns the loads, each with the mean of its measurements."""
    alike: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        alike.setdefault((*_key_of(point), point.latency_of), []).append(point)
    loads = []
    for same in alike.values():
        measured = {}
        for figure in SCORED:
            values = [point.figures[figure] for point in same if figure in point.figures]
            if values:
                measured[figure] = sum(values) / len(values)
        loads.append(_Load(same[0], measured))
    return loads


def _spec_of(device: MeasuredDevice, system: Drive | Array | Stack, point: Point) -> Spec:
    """Returns the run of a measurement."""
    options: dict[str, Any] = {}
    workload = None if point.rw in PATTERNS else point.rw
    is_writing = workload is None and point.read_percent != 100
    if workload is None:
        _, options["random"] = PATTERNS[point.rw]
        options |= {"read": f"{point.read_percent:.10g}", "size": point.block_size}
    is_large = workload is None and size_bytes("block_size", point.block_size) >= LARGE_BYTES
    is_worn = is_writing and point.state == "steady"
    options["requests"] = LARGE_REQUESTS if is_large else WORN_REQUESTS if is_worn else REQUESTS
    if point.offered_iops is None:
        options["depth"] = point.depth * point.jobs
    else:
        options |= {"rate": f"{point.offered_iops:.10g}", "requests": OPEN_REQUESTS}
    texts = {"host": device.host, "state": point.state, "range": point.range}
    options |= {name: text for name, text in texts.items() if text}
    try:
        [spec] = specify_described(system, workload, options)
    except InputError as error:
        raise InputError(f"{device.device}: {_words(device, point)}: {error}") from None
    return spec


def _words(device: MeasuredDevice, point: Point) -> str:
    """Returns a load in words, without its queue depth."""
    if point.rw not in PATTERNS:
        return point.rw.removesuffix(".trace")
    host = f" on {device.host}" if device.host else ""
    mix = f" {point.read_percent:.0f} % reads" if point.rw in ("randrw", "rw") else ""
    return f"{point.block_size} {point.rw}{mix}{host}"


def _load_in(spec: Spec, row: Mapping[str, Any], point: Point) -> Load:
    """Returns the properties of a load on which errors depend. An open loop has the mean queue depth of the run."""
    closed = load_of(spec | {"workload": _closed(spec["workload"])}, row)
    if isinstance(closed, Refusal):
        raise InputError(f"{point.rw}: {closed.why}")
    load = closed._replace(state=flash_state(closed, spec))
    if point.latency_of:
        load = load._replace(kind=f"{load.kind}: {point.latency_of}")
    if point.offered_iops is not None:
        depth = max(1, round(point.offered_iops * row["mean_ms"] / 1e3))
        load = load._replace(kind=f"open {load.kind}", depth=depth)
    return load


def _closed(workload: Mapping[str, Any]) -> dict[str, Any]:
    arrivals = workload.get("arrivals", {})
    return dict(workload) | {"arrivals": arrivals if "closed" in arrivals else {"closed": {"queue_depth": 1}}}


def _predicted(point: Point, row: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns the simulated figures."""
    if not point.latency_of:
        times = {figure: row[f"{figure.replace('.', '')}_ms"] for figure in SCORED if figure != "rate"}
        return {"rate": row["iops"], **times}
    of_kind = whole["kinds"][KINDS_OF[point.latency_of]]
    latency = of_kind["latency"]
    if not latency["count"]:
        return dict.fromkeys(SCORED)
    times = {figure: percentile_of(latency, quantile) for figure, quantile in QUANTILES.items()}
    share = latency["count"] / (whole["duration_ns"] / 1e9)
    return {"rate": share, "mean": latency["sum_ns"] / latency["count"] / 1e6, **times}


def _replay(device: MeasuredDevice, load: _Load) -> list[Entry]:
    """Returns the errors of a replayed trace, one request at a time."""
    trace = device.folder / load.point.rw
    figures = _native.validate(str(trace), _place(device))
    simulated_ms = sorted(figures["simulated_ms"])
    mean = sum(simulated_ms) / len(simulated_ms)
    predicted: dict[str, float | None] = {"rate": 1e3 / mean, "mean": mean}
    predicted |= {figure: simulated_ms[int(len(simulated_ms) * at)] for figure, at in QUANTILES.items()}
    lines = trace.read_text(encoding="utf-8").split("\n")
    sizes = [int(fields[3]) * 512 for line in lines if (fields := line.split())]
    return _cells("recorded trace", Load("replay", 1, sum(sizes) / len(sizes)), load, predicted)


def _cells(workload: str, load: Load, of: _Load, predicted: Mapping[str, float | None]) -> list[Entry]:
    """Returns the errors of the measured figures."""
    return [
        {
            "workload": workload,
            "kind": load.kind,
            "depth": load.depth,
            "size_bytes": round(load.size_bytes),
            **({"state": load.state} if load.state else {}),
            "figure": figure,
            "log_ratio": round(math.log(measured / simulated), 5),
        }
        for figure, measured in of.measured.items()
        if measured > 0 and (simulated := predicted.get(figure))
    ]
