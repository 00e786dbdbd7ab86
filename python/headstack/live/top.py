"""``headstack top``: what the simulated hardware is doing, once a second."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

from headstack._native import InputError, format_bytes
from headstack.live.control import Control
from headstack.values import duration_ns

Status = dict[str, Any]

TRACK_WIDTH = 30
"""Characters of the way of an arm."""
CLEAR = "\x1b[H\x1b[2J"


def watch(socket: str, interval: str, once: bool) -> None:
    """Shows the export behind a control socket until it ends or somebody interrupts."""
    seconds = duration_ns("interval", interval) / 1e9
    if seconds <= 0:
        raise InputError(f"interval: {interval} is no time to wait")
    with Control(socket) as control:
        before = control.order({"do": "status"})
        while True:
            time.sleep(seconds)
            now = control.order({"do": "status"})
            lines = screen(before, now, shutil.get_terminal_size().columns)
            print((CLEAR if sys.stdout.isatty() and not once else "") + "\n".join(lines), flush=True)
            if once:
                return
            before = now


def screen(before: Status, now: Status, columns: int) -> list[str]:
    """What is to be seen of an interval between two reports."""
    seconds = max((now["model_ns"] - before["model_ns"]) / 1e9, 1e-9)
    power = "" if now["power"] else "   power is off"
    lines = [f"model time {now['model_ns'] / 1e9:,.1f} s   under way {now['outstanding']:,}{power}"]
    lines += [traffic(kind, before["kinds"][kind], now["kinds"][kind], seconds) for kind in ("read", "write")]
    flushes = now["kinds"]["flush"]["requests"] - before["kinds"]["flush"]["requests"]
    lines.append(f"flush {flushes / seconds:9,.0f}/s")
    fidelity = now["fidelity"]
    late = (f"{fidelity[f'lateness_{q}_ns'] / 1e3:,.0f}" for q in ("p50", "p99", "max"))
    lines.append("late (us)  p50 {} p99 {} most {}".format(*late))
    gauges = now.get("gauges")
    if gauges is not None:
        lines += devices(gauges["devices"])
        lines += cache(gauges["cache"]) + groups(gauges["groups"])
    return [line[:columns] for line in lines]


def traffic(kind: str, before: Status, now: Status, seconds: float) -> str:
    """Requests, bytes and mean response time of a kind."""
    requests = now["requests"] - before["requests"]
    mean_ms = (now["response_ns"] - before["response_ns"]) / max(requests, 1) / 1e6
    rate = (now["bytes"] - before["bytes"]) / seconds / 1e6
    failed = now["failed"] - before["failed"]
    trouble = f"   {failed:,} failed" if failed else ""
    return f"{kind:5} {requests / seconds:9,.0f}/s {rate:9,.1f} MB/s {mean_ms:9.2f} ms{trouble}"


def devices(devices: list[Status]) -> list[str]:
    """A line a device: what it does, how much waits, where its arm is."""
    width = max([6, *(len(device["name"]) for device in devices)])
    lines = ["", f"{'device':{width}}  state       queue  {'arm':{TRACK_WIDTH + 2}}  dirty"]
    for device in devices:
        name = device["name"] or "drive"
        dirty = format_bytes(device["dirty_bytes"]) if device["dirty_bytes"] else ""
        lines.append(f"{name:{width}}  {device['state']:10} {device['queue']:6}  {arm(device)}  {dirty}".rstrip())
    return lines


def arm(device: Status) -> str:
    """Where between the outer edge, on the left, and the spindle an arm stands."""
    if device["cylinder"] is None or not device["cylinders"]:
        return " " * (TRACK_WIDTH + 2)
    place = min(device["cylinder"] * TRACK_WIDTH // device["cylinders"], TRACK_WIDTH - 1)
    return f"|{' ' * place}^{' ' * (TRACK_WIDTH - 1 - place)}|"


def cache(cache: Status | None) -> list[str]:
    """The controller's cache."""
    if cache is None:
        return []
    share = cache["dirty_bytes"] / max(cache["bytes"], 1)
    battery = "" if cache["battery_ok"] else ", battery down"
    return ["", f"cache {format_bytes(cache['bytes'])}: {100 * share:.0f} % dirty, {cache['hits']:,} hits{battery}"]


def groups(groups: list[Status]) -> list[str]:
    """How the groups of an array are."""
    lines = []
    for group in groups:
        line = f"group {group['name']}: {group['state']}"
        if group["of_bytes"]:
            line += f", {100 * group['rebuilt_bytes'] / group['of_bytes']:.1f} % rebuilt"
        if group["lost_bytes"]:
            line += f", {format_bytes(group['lost_bytes'])} lost"
        lines.append(line)
    return lines
