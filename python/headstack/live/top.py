"""``watch``, the display of ``headstack top``: the state of the simulated hardware, once per second."""

from __future__ import annotations

import os
import shutil
import sys
import time
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING

from headstack._native import InputError, format_bytes
from headstack.io.columns import is_plain
from headstack.io.terminal import send, visible
from headstack.io.values import duration_ns
from headstack.live.control import Control

if TYPE_CHECKING:
    from headstack.live.status import ActiveFault, Cache, Device, Fidelity, Gauges, RaidGroup, Status

TRACK_WIDTH = 30
"""Width of an arm's track, in characters."""
CLEAR = "\x1b[H\x1b[2J"
NO_GAUGES: Gauges = {"outstanding": 0, "devices": [], "cache": None, "groups": []}
"""Gauges of a device of constant latency."""
STYLES = {"good": "\x1b[32m", "bad": "\x1b[1;31m", "warning": "\x1b[33m", "quiet": "\x1b[2m"}
PLAIN = "\x1b[0m"
BUSY = ("reading", "writing", "internal")
ODD = ("missing", "rebuilding")
"""States of devices that are shown on a line of their own."""


def watch(socket: str, interval: str, once: bool) -> None:
    """Shows the export behind a control socket until it ends or is interrupted."""
    seconds = duration_ns("interval", interval) / 1e9
    if seconds <= 0:
        raise InputError(f"{interval} is out of range; must be above 0s", key="interval")
    is_terminal = not is_plain(sys.stdout)
    paint = with_style if is_terminal and not os.environ.get("NO_COLOR") else without_style
    with Control(socket) as control:
        before: Status = control.order({"do": "status"})
        while True:
            time.sleep(seconds)
            now: Status = control.order({"do": "status"})
            columns, rows = shutil.get_terminal_size()
            lines = format_screen(before, now, columns, rows if is_terminal and not once else None)
            text = "\n".join(paint(visible(line)[:columns], style) for line, style in lines)
            # Without a final line feed, which would scroll the first line away.
            send(sys.stdout, CLEAR + text if is_terminal and not once else text + "\n")
            sys.stdout.flush()
            if once:
                return
            before = now


def without_style(line: str, style: str) -> str:
    """Returns a line unchanged."""
    return line


def with_style(line: str, style: str) -> str:
    """Returns a line in its colour."""
    return f"{STYLES[style]}{line}{PLAIN}" if style else line


Line = tuple[str, str]
"""A line with its style; the style may be empty."""


def format_screen(before: Status, now: Status, columns: int, rows: int | None) -> list[Line]:
    """Returns the screen for the interval between two reports: a summary first, then the devices in the remaining
    space.
    """
    seconds = max((now["model_ns"] - before["model_ns"]) / 1e9, 1e-9)
    gauges = now["gauges"] or NO_GAUGES
    earlier = before["gauges"] or gauges
    power, colour = ("", "") if now["power"] else ("   POWER IS OFF", "bad")
    lines = [(f"model time {now['model_ns'] / 1e9:,.1f} s   under way {now['outstanding']:,}{power}", colour)]
    lines.append(format_verdict(now["fidelity"], columns))
    lines.append((f"{'':5} {'rate':>11} {'MB/s':>9} {'mean':>9} {'p50':>9} {'p99':>9} {'p99.9':>9}   failed", "quiet"))
    lines += [format_traffic(kind, before, now, seconds) for kind in ("read", "write", "flush")]
    fidelity = now["fidelity"]
    lateness_ns = (fidelity["lateness_p50_ns"], fidelity["lateness_p99_ns"], fidelity["lateness_max_ns"])
    late = (f"{ns / 1e3:,.0f}" for ns in lateness_ns)
    lines.append(("late (us)  p50 {} p99 {} most {}".format(*late), ""))
    lines += faults(now["faults"])
    if now["trouble"]:
        lines.append((now["trouble"], "bad"))
    lines += groups(earlier["groups"], gauges["groups"], seconds) + cache(earlier["cache"], gauges["cache"])
    if gauges["devices"]:
        room = None if rows is None else max(rows - len(lines), 0)
        lines += devices(gauges["devices"], columns, room)
    if rows is not None and len(lines) > rows:
        lines = [*lines[: rows - 1], (f"and {len(lines) - rows + 1} more lines", "quiet")]
    return lines


def format_verdict(fidelity: Fidelity, columns: int) -> Line:
    """Returns a line with the latencies for which the session is valid so far."""
    words = str(fidelity["verdict"])
    short = words.partition(" (")[0] if fidelity["valid_above_ns"] is not None else words
    return (
        short if len(short) <= columns else short[: columns - 3] + "...",
        "warning" if words.startswith("n") else "good",
    )


def format_traffic(kind: str, before: Status, now: Status, seconds: float) -> Line:
    """Formats requests, bytes and response times of a kind."""
    old, new = before["kinds"][kind], now["kinds"][kind]
    requests = new["requests"] - old["requests"]
    rate, mb_per_s = requests / seconds, (new["bytes"] - old["bytes"]) / seconds / 1e6
    failed = new["failed"] - old["failed"]
    times = ["-"] * 4
    if requests:
        mean_ns = (new["response_ns"] - old["response_ns"]) / requests
        counts = subtract_counts(old["buckets"], new["buckets"])
        quantiles = (quantile_ns(counts, now["bounds_ns"], share) for share in (0.5, 0.99, 0.999))
        times = [format_milliseconds(ns) for ns in (mean_ns, *quantiles)]
    text = f"{kind:5} {rate:9,.0f}/s {mb_per_s:9,.1f} " + " ".join(f"{time:>9}" for time in times)
    return (f"{text}   {failed:,}", "bad") if failed else (text, "")


def subtract_counts(before: list[int], now: list[int]) -> list[int]:
    """Returns the increase of bucket counts between two reports; a report ends with the last non-empty bucket."""
    return [count - (before[index] if index < len(before) else 0) for index, count in enumerate(now)]


def quantile_ns(counts: list[int], bounds_ns: list[int], share: float) -> float | None:
    """Returns the quantile of latency for this share, with a resolution of 12 %; ``None`` if it is above all
    buckets."""
    below = list(accumulate(counts))
    rank = share * below[-1]
    bucket = bisect_left(below, rank)
    if bucket >= len(bounds_ns):
        return None
    first_ns = bounds_ns[bucket - 1] if bucket else 0
    inside = (rank - (below[bucket] - counts[bucket])) / counts[bucket]
    return float(first_ns + inside * (bounds_ns[bucket] - first_ns))


def format_milliseconds(ns: float | None) -> str:
    """Formats a time in milliseconds."""
    if ns is None:
        return "> 100 s"
    return f"{ns / 1e6:,.2f} ms" if ns < 1e9 else f"{ns / 1e6:,.0f} ms"


def faults(faults: list[ActiveFault]) -> list[Line]:
    """Formats faults in effect, grouped by kind."""
    requests_by_fault: dict[str, list[int]] = {}
    for fault in faults:
        label = fault["fault"]["what"]
        member = fault["fault"].get("member")
        requests_by_fault.setdefault(f"{label} of {member}" if member else label, []).append(fault["met"])
    descriptions = (
        f"{label}{f' x{len(each)}' if len(each) > 1 else ''} (met by {sum(each):,})"
        for label, each in requests_by_fault.items()
    )
    return [("faults: " + ", ".join(descriptions), "bad")] if requests_by_fault else []


def groups(before: list[RaidGroup], now: list[RaidGroup], seconds: float) -> list[Line]:
    """Formats the RAID groups of an array, with the remaining time of a rebuild at its current rate."""
    earlier = {group["name"]: group for group in before}
    lines = []
    for group in now:
        line, style = f"group {group['name']}: {group['state']}", "" if group["state"] == "healthy" else "warning"
        if group["of_bytes"]:
            rebuilt, total = group["rebuilt_bytes"], group["of_bytes"]
            progress = rebuilt - earlier.get(group["name"], group)["rebuilt_bytes"]
            left = (
                f"{format_duration((total - rebuilt) / progress * seconds)} left"
                if progress > 0
                else "time left unknown"
            )
            line += f", {100 * rebuilt / total:.1f} % rebuilt, {left}"
        scan = group.get("pass")
        if scan and scan["state"] == "running":
            line += f", {scan['kind']} at {100 * scan['done_bytes'] / scan['of_bytes']:.1f} %"
        if group["lost_bytes"]:
            line, style = f"{line}, {format_bytes(group['lost_bytes'])} lost", "bad"
        lines.append((line, style))
    return lines


def format_duration(seconds: float) -> str:
    """Formats a duration with its unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def cache(before: Cache | None, now: Cache | None) -> list[Line]:
    """Formats the controller's cache."""
    if now is None:
        return []
    share = now["dirty_bytes"] / max(now["bytes"], 1)
    hits = now["hits"] - (before or now)["hits"]
    text = f"cache {format_bytes(now['bytes'])}: {100 * share:.0f} % dirty, {hits:,} hits ({now['hits']:,} in all)"
    return [(text, "") if now["battery_ok"] else (f"{text}, battery down", "bad")]


def devices(devices: list[Device], columns: int, room: int | None) -> list[Line]:
    """Formats devices: one per line if there is space, else several per line, else counts by state."""
    long = [("", ""), *one_per_line(devices)]
    if room is None or len(long) <= room:
        return long
    short = [("", ""), *several_per_line(devices, columns)]
    if len(short) <= room:
        return short
    counts: dict[str, int] = {}
    for device in devices:
        counts[device["state"]] = counts.get(device["state"], 0) + 1
    queued = sum(device["queue"] for device in devices)
    text = f"{len(devices)} devices: " + ", ".join(f"{count} {state}" for state, count in counts.items())
    return [(f"{text}; {queued:,} commands", "")]


def one_per_line(devices: list[Device]) -> Iterable[Line]:
    """Formats one device per line: its state, its queue, the position of its arm."""
    width = max([6, *(len(device["name"]) for device in devices)])
    yield f"{'device':{width}}  state       queue  {'arm':{TRACK_WIDTH + 2}}  dirty", "quiet"
    for device in devices:
        name = device["name"] or "drive"
        dirty = format_bytes(device["dirty_bytes"]) if device["dirty_bytes"] else ""
        line = f"{name:{width}}  {device['state']:10} {device['queue']:6}  {draw_arm(device)}  {dirty}".rstrip()
        yield line, style_of(device)


def several_per_line(devices: list[Device], columns: int) -> Iterable[Line]:
    """Formats state and queue of each device, as many per line as fit; missing and rebuilding devices have their own
    line.
    """
    usual = [device for device in devices if device["state"] not in ODD]
    for device in devices:
        if device["state"] in ODD:
            yield f"{device['name']}: {device['state']}, queue {device['queue']}", style_of(device)
    width = max([1, *(len(device["name"]) for device in usual)])
    cell = width + len(" internal  9999  ")
    fit = max(columns // cell, 1)
    for first in range(0, len(usual), fit):
        cells = (f"{d['name']:{width}} {d['state']:8} {d['queue']:5}  " for d in usual[first : first + fit])
        yield "".join(cells).rstrip(), ""


def style_of(device: Device) -> str:
    """Returns the colour of a device's line."""
    if device["state"] == "missing":
        return "bad"
    if device["state"] == "rebuilding":
        return "warning"
    return "" if device["state"] in BUSY else "quiet"


def draw_arm(device: Device) -> str:
    """Draws the position of an arm between the outer edge, on the left, and the spindle."""
    if device["cylinder"] is None or not device["cylinders"]:
        return " " * (TRACK_WIDTH + 2)
    place = min(device["cylinder"] * TRACK_WIDTH // device["cylinders"], TRACK_WIDTH - 1)
    return f"|{' ' * place}^{' ' * (TRACK_WIDTH - 1 - place)}|"
