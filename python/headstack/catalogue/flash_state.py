"""States in which simulated SSDs begin a run: fresh, filled or steady."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STATES = {
    "steady": "steady: randomly overwritten until write amplification is stable",
    "filled": "filled once, in order: writes find only the spare flash erased; add --state steady for sustained writes",
    "fresh": "fresh: nothing written yet; add --state steady for sustained writes",
}


def flash_states(description: Mapping[str, Any]) -> list[str]:
    """Returns the distinct states of the SSDs in a system's description; empty for a system without SSDs.

    >>> from headstack.catalogue.flash_state import flash_states
    >>> flash_states(hs.Drive.load("980-1tb").description)[0].partition(":")[0]
    'filled'
    """
    array = description.get("array")
    devices = array["devices"] if array is not None else [description.get("drive", description)]
    return list(dict.fromkeys(STATES[device["ssd"]["state"]] for device in devices if "ssd" in device))
