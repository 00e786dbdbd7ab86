"""States in which simulated SSDs begin a run: fresh, filled or steady."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STEADY = "steady: preconditioned until write amplification is stable"
FILLED = "filled, not preconditioned: writes find erased flash; add --preconditioned yes for the steady state"
FRESH = "fresh: nothing written yet; add --preconditioned yes for the steady state"


def flash_states(description: Mapping[str, Any]) -> list[str]:
    """Returns the distinct states of the SSDs in a system's description; empty for a system without SSDs.

    >>> from headstack.catalogue.flash_state import flash_states
    >>> flash_states(hs.Drive.load("980-1tb").description)[0].partition(":")[0]
    'filled'
    """
    array = description.get("array")
    devices = array["devices"] if array is not None else [description.get("drive", description)]
    return list(dict.fromkeys(_state(device["ssd"]) for device in devices if "ssd" in device))


def _state(ssd: Mapping[str, Any]) -> str:
    if ssd.get("preconditioned"):
        return STEADY
    return FILLED if ssd.get("filled") else FRESH
