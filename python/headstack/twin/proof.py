"""How right twins are: hidden devices drawn from broad priors, calibrated blind, and asked what no probe asked."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module

import numpy as np

from headstack.results.intervals.calibration import Held, left_out, of_devices
from headstack.twin.device import SimulatedDevice
from headstack.twin.hidden import Cell, score
from headstack.twin.session import Session

Mark = tuple[float | None, float | None]
"""Of the hidden device and of its twin; none where it has no such thing, or the answers do not tell."""


@dataclass(frozen=True)
class Proof:
    """One hidden device."""

    device: str
    fits: bool
    why: str
    cells: list[Cell]
    device_s: float
    requests: int
    processor_s: float
    marks: dict[str, Mark] = field(default_factory=dict)
    """Name of what else the family is held against, to how the hidden device has it and how the twin."""


def proofs(family: str, count: int, seed: int, first: int = 0) -> Iterator[Proof]:
    """Hidden devices one after the other; each depends on the seed and its own number alone."""
    module = import_module(f"headstack.twin.families.{family}")
    for number in range(first, first + count):
        hidden = module.draw(np.random.default_rng((seed, number)))
        session = Session(SimulatedDevice(hidden, seed + number, f"{family}-{number}"), seed=number + 1)
        began = time.process_time()
        module.probes(session)
        learnt = module.learn(session)
        spent = time.process_time() - began
        cells = score(hidden, learnt, seed * 1000 + number, module.HELD_OUT) if learnt.fits else []
        marks = module.marks(hidden, learnt) if learnt.fits and hasattr(module, "marks") else {}
        device_s, requests = session.device_s, session.requests
        name = f"{family}-{seed}-{number}"
        yield Proof(name, learnt.fits, learnt.why, cells, device_s, requests, spent, marks)


def errors(found: Sequence[Proof], figure: str, workload: str | None = None) -> list[float]:
    """How far each cell of all devices was off, as a share of what was predicted; of one workload or of all."""
    return [
        abs(math.expm1(cell["log_ratio"]))
        for one in found
        for cell in one.cells
        if cell["figure"] == figure and workload in (None, cell["workload"])
    ]


def held(family: str, found: Sequence[Proof], figure: str) -> Held | None:
    """How often intervals of these devices hold, each learnt from the others; nothing where the devices are too few."""
    devices = [{"device": one.device, "cells": one.cells} for one in found if one.fits]
    return left_out(of_devices(family, devices, {}), figure)


def calibration_text(classes: Mapping[str, Sequence[Proof]]) -> str:
    """What intervals of twins are learnt from: the scores of each class by device, and where they hold."""
    found: dict[str, object] = {}
    for family, some in classes.items():
        cells = [cell for one in some for cell in one.cells]
        depths, sizes = [cell["depth"] for cell in cells], [cell["size_bytes"] for cell in cells]
        found[family] = {
            "range": {"depth": [min(depths), max(depths)], "size_bytes": [min(sizes), max(sizes)]},
            "devices": [
                {"device": one.device, "cells": [_rounded(cell) for cell in one.cells]} for one in some if one.fits
            ],
        }
    return json.dumps({"version": 1, "classes": found}, separators=(",", ":"))


def _rounded(cell: Cell) -> Cell:
    return {**cell, "log_ratio": round(cell["log_ratio"], 4), "spread": round(cell["spread"], 4)}


def whole_text(found: Sequence[Proof]) -> str:
    """All that was found, for people who want to look."""
    return json.dumps([asdict(one) for one in found])
