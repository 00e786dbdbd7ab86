"""What else twins of solid-state drives are held against: how many dies there are, and how far writes go before they
get slower."""

from __future__ import annotations

import copy
from typing import Final

import numpy as np

from headstack.twin.device import Requests, SimulatedDevice
from headstack.twin.families.flash_writes import ssd, stream
from headstack.twin.learnt import Learnt, System
from headstack.twin.session import Asked

PIECE_BYTES: Final = 1 << 18
DEPTH: Final = 16
"""Other requests than the probe's, on a drive of which nothing else was asked."""


def marks(hidden: System, learnt: Learnt) -> dict[str, tuple[float | None, float | None]]:
    """Dies, and bytes that an empty drive takes in until it gets slower for good."""
    told = learnt.values["flash.dies"]
    found = None if told.high is None else _dies(learnt.best)
    return {"dies": (_dies(hidden), found), "cliff": (_cliff_bytes(hidden), _cliff_bytes(learnt.best))}


def _dies(system: System) -> float:
    flash = ssd(system)["flash"]
    return float(flash["channels"] * flash["dies_per_channel"])


def _cliff_bytes(system: System) -> float | None:
    """Where an empty drive that is filled in order gets slower; none where it does not."""
    empty = copy.deepcopy(system)
    ssd(empty)["preconditioned"] = False
    device = SimulatedDevice(empty)
    asked = Requests.writes(np.arange(device.capacity_bytes // PIECE_BYTES) * PIECE_BYTES, PIECE_BYTES, depth=DEPTH)
    buffer_bytes = ssd(system)["buffer"]["bytes"]
    found = stream(Asked("fill", asked, device.ask(asked)), device.capacity_bytes, buffer_bytes)
    return found.cache_bytes or None
