"""States in which simulated SSDs begin a run: fresh, filled, or steady under uniform or skewed writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STATES = {
    "steady": "steady: randomly overwritten until write amplification is stable",
    "filled": "filled once, in order: writes find only the spare flash erased; add --state steady for sustained writes",
    "fresh": "fresh: nothing written yet; add --state steady for sustained writes",
}

SKEWED = "overwritten with this skew until write amplification is stable"


def flash_states(description: Mapping[str, Any]) -> list[str]:
    """Returns the distinct states of the SSDs in a system's description; empty for a system without SSDs. 3D XPoint has
    no state: it is overwritten in place.

    >>> from headstack.catalogue.flash_state import flash_states
    >>> flash_states(hs.Drive.load("980-1tb").description)[0].partition(":")[0]
    'filled'
    """
    array = description.get("array")
    devices = array["devices"] if array is not None else [description.get("drive", description)]
    ssds = [device["ssd"] for device in devices if "ssd" in device]
    return list(dict.fromkeys(_describe(ssd["state"]) for ssd in ssds if ssd.get("medium", "flash") == "flash"))


def _describe(state: str | Mapping[str, Any]) -> str:
    if isinstance(state, str):
        return STATES[state]
    return f"steady:{_distribution(state['skewed']['addresses'])}: {SKEWED}"


def _distribution(addresses: Mapping[str, Any]) -> str:
    """Returns a distribution as ``--state`` accepts it, except that zones may leave gaps."""
    [(name, values)] = addresses.items()
    if name == "hot_bands":
        zones = [f"{band['share_percent']:g}/{band['to_percent'] - band['from_percent']:g}" for band in values]
        return ":".join(["zoned", *zones])
    [parameter] = values.values()
    return f"{name}:{parameter:g}"
