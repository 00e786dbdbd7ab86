"""The points of a sweep: each is the files of a system and a workload with some values changed, and some options."""

from __future__ import annotations

import json
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.options import ACCESS, OPTIONS, Spec
from headstack.values import plain
from headstack.workload import Workload

SYSTEM, DEMAND, OPTION = "system", "demand", "option"
"""What a field is one of."""

DRIVES = "drives"
"""A column of arrays that were asked for by their capacity."""

FAULTS = "faults"
"""The option whose files go with the chunk: who carries it out need not have them."""

MARK = "="
"""Begins the columns of what was varied, some of which are called as columns of results are."""


def specifications_of_points(chunk: dict[str, Any]) -> list[str]:
    """The runs of a chunk's points, each as JSON; of what cannot be, why."""
    systems = _described(chunk, SYSTEM)
    demands = _described(chunk, DEMAND) if chunk["demand"] is not None else None
    specs = []
    for number, point in enumerate(chunk["points"]):
        labels = [(MARK + SYSTEM, _system_name(chunk))]
        if "usable" in chunk["fields"]:
            labels.append((MARK + DRIVES, str(_drives(systems[number]))))
        labels += [(MARK + column, value) for column, value in zip(chunk["columns"], _plain(chunk, point), strict=True)]
        refused = [
            found for found in (systems[number], demands and demands[number]) if found and found[0] != "described"
        ]
        if refused:
            kind, why = refused[0]
            specs.append(json.dumps(_refused("failed" if kind == "failed" else "impossible", why, labels)))
            continue
        try:
            spec = _specified(chunk, point, systems[number][1], demands[number][1] if demands else None)
            specs.append(json.dumps(spec | {"labels": labels}))
        except InputError as error:
            specs.append(json.dumps(_refused("impossible", str(error), labels)))
    return specs


def _system_name(chunk: dict[str, Any]) -> str:
    name, part = chunk["system"]["name"], chunk["system"]["part"]
    return name if part is None else f"{name}@{part}"


def _drives(described: tuple[str, str]) -> int | str:
    """How many drives an array has, of a capacity; nothing where there is none."""
    kind, text = described
    return _native.system_size(text).drives if kind == "described" else ""


def _refused(kind: str, why: str, labels: list[tuple[str, str]]) -> dict[str, Any]:
    return {kind: {"why": why, "labels": labels}}


def _plain(chunk: dict[str, Any], point: list[str]) -> list[str]:
    """The values; those that are all in one unit without it, since the column names it."""
    return [plain(value, unit) for value, unit in zip(point, chunk["units"], strict=True)]


def _described(chunk: dict[str, Any], of: str) -> list[tuple[str, str]]:
    """What the points make of the system or of the demand; points that are alike in it are described once."""
    places = [place for place, kind in enumerate(chunk["kinds"]) if kind == of]
    wanted = [tuple((chunk["fields"][place], point[place]) for place in places) for point in chunk["points"]]
    distinct = list(dict.fromkeys(wanted))
    found = _native.describe_points(json.dumps(chunk[of]["blueprint"]), [list(values) for values in distinct])
    by_values = dict(zip(distinct, found, strict=True))
    return [by_values[values] for values in wanted]


def _specified(chunk: dict[str, Any], point: list[str], system: str, demand: str | None) -> Spec:
    named = zip(chunk["fields"], chunk["kinds"], point, strict=True)
    chosen = {field: value for field, kind, value in named if kind == OPTION}
    part = chunk["system"]["part"]
    under = one_size(chosen) if demand is None else json.loads(demand)
    spec: Spec = {
        "system_name": _system_name(chunk),
        "system": json.loads(system),
        **under,
        "span": None,
        "seed": 1,
        "interval_ns": None,
        "preload": 0,
    }
    if part is not None:
        size = _native.system_size(system)
        spec["span"] = _native.parse_range(part, size.capacity_bytes, size.sector_bytes)
    for option in OPTIONS:
        if option.name in chosen and option.name != FAULTS:
            option.apply(spec, chosen[option.name])
    schedule = chunk.get(FAULTS, {}).get(chosen.get(FAULTS))
    return spec if schedule is None else spec | {FAULTS: schedule}


def one_size(chosen: dict[str, str]) -> dict[str, Any]:
    """The workload of the options for access."""
    return Workload.uniform(**{name: chosen[name] for name in ACCESS if name in chosen}).demand
