"""Evaluation of calibrated models: hidden devices drawn from broad priors are calibrated blind, and compared on
workloads that no probe runs.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module

import numpy as np

from headstack.results.intervals.calibration import Coverage, class_scores, leave_one_out
from headstack.twin.device import SimulatedDevice
from headstack.twin.hidden import Cell, score
from headstack.twin.session import Session

Mark = tuple[float | None, float | None]
"""A property of the hidden device and of its model; ``None`` if it is absent, or the answers do not show it."""


@dataclass(frozen=True)
class Proof:
    """The evaluation of one hidden device."""

    device: str
    fits: bool
    why: str
    cells: list[Cell]
    device_s: float
    requests: int
    processor_s: float
    marks: dict[str, Mark] = field(default_factory=dict)
    """Further properties on which the family is evaluated, by name: of the hidden device and of the model."""


def proofs(family: str, count: int, seed: int, first: int = 0) -> Iterator[Proof]:
    """Yields evaluations of hidden devices; each depends only on the seed and its number."""
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


def errors(evaluations: Sequence[Proof], figure: str, workload: str | None = None) -> list[float]:
    """Returns the relative error of each cell of all devices, for one workload or all."""
    return [
        abs(math.expm1(cell["log_ratio"]))
        for evaluation in evaluations
        for cell in evaluation.cells
        if cell["figure"] == figure and workload in (None, cell["workload"])
    ]


def coverage(family: str, evaluations: Sequence[Proof], figure: str) -> Coverage | None:
    """Returns the coverage of these devices' intervals, each learned from the others; ``None`` if there are too few
    devices.
    """
    devices = [
        {"device": evaluation.device, "cells": evaluation.cells} for evaluation in evaluations if evaluation.fits
    ]
    return leave_one_out(class_scores(family, devices, {}), figure)


def calibration_text(classes: Mapping[str, Sequence[Proof]]) -> str:
    """Returns the calibration of intervals as text: the scores of each class by device, and their coverage."""
    classes_found: dict[str, object] = {}
    for family, evaluations in classes.items():
        cells = [cell for evaluation in evaluations for cell in evaluation.cells]
        depths, sizes = [cell["depth"] for cell in cells], [cell["size_bytes"] for cell in cells]
        classes_found[family] = {
            "range": {"depth": [min(depths), max(depths)], "size_bytes": [min(sizes), max(sizes)]},
            "devices": [
                {"device": evaluation.device, "cells": [_rounded(cell) for cell in evaluation.cells]}
                for evaluation in evaluations
                if evaluation.fits
            ],
        }
    return json.dumps({"version": 1, "classes": classes_found}, separators=(",", ":"))


def _rounded(cell: Cell) -> Cell:
    return {**cell, "log_ratio": round(cell["log_ratio"], 4), "spread": round(cell["spread"], 4)}


def whole_text(evaluations: Sequence[Proof]) -> str:
    """Returns all results as text for people."""
    return json.dumps([asdict(evaluation) for evaluation in evaluations])
