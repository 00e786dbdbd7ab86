"""Further properties on which models of SSDs are evaluated: the number of dies, and the bytes written until writes slow
down."""

from __future__ import annotations

import copy
from typing import Final

import numpy as np

from headstack.twin.device import Requests, SimulatedDevice
from headstack.twin.families.flash_writes import ssd, stream
from headstack.twin.learnt import Learnt, System
from headstack.twin.session import ProbeRun

PIECE_BYTES: Final = 1 << 18
DEPTH: Final = 16
"""Queue depth of these requests, on a fresh drive without any probes."""


def marks(hidden: System, learnt: Learnt) -> dict[str, tuple[float | None, float | None]]:
    """Returns the dies, and the bytes that an empty drive accepts until it slows down permanently."""
    dies_value = learnt.values["flash.dies"]
    model_dies = None if dies_value.high is None else _dies(learnt.best)
    return {"dies": (_dies(hidden), model_dies), "cliff": (_cliff_bytes(hidden), _cliff_bytes(learnt.best))}


def _dies(system: System) -> float:
    flash = ssd(system)["flash"]
    return float(flash["channels"] * flash["dies_per_channel"])


def _cliff_bytes(system: System) -> float | None:
    """Returns the position at which a sequential fill of an empty drive slows down; ``None`` if it does not."""
    empty = copy.deepcopy(system)
    ssd(empty)["state"] = "fresh"
    device = SimulatedDevice(empty)
    fill = Requests.writes(np.arange(device.capacity_bytes // PIECE_BYTES) * PIECE_BYTES, PIECE_BYTES, depth=DEPTH)
    buffer_bytes = ssd(system)["buffer"]["bytes"]
    filled = stream(ProbeRun("fill", fill, device.ask(fill)), device.capacity_bytes, buffer_bytes)
    return filled.cache_bytes or None
