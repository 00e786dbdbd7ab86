"""Properties of an SSD that reads show: dies, channels, rows, and the time of each step of a read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from headstack.twin.device import Floats
from headstack.twin.probes import dies as conflicts
from headstack.twin.session import Session

NOISE: Final = 0.02
"""Delays below this share of a full conflict count as none."""

SAME: Final = 0.02
"""Relative difference below which rates of a stream are equal: its start and end are 1 % of 1,500 requests."""

USUAL_DEPTHS: Final = (32, 64, 128, 256, 512, 1024, 2048, 65536, 31, 63, 127, 255, 254, 1, 2, 4, 8, 16)
"""Usual queue depths of drives, in order of preference among those that fit."""


@dataclass(frozen=True)
class Map:
    """The placement of data as shown by pairs of reads."""

    row_bytes: int | None
    """``None`` if two reads never conflict, or always."""
    dies: int | None
    """``None`` if there is no period, or no conflict is visible."""
    channels: int | None
    reads_conflict: bool
    """Whether two reads of one place wait for each other at all."""
    share: float
    """Share of random pairs that conflict."""
    small_ns: float
    """Cost of a conflict with a read of a block: a sensing, and a block over the channel."""
    row_ns: float
    """Cost of a conflict with a read of a row."""
    lone_ns: float
    """Response time of the first read of a block in pairs that show the cost of a conflict."""
    interval_ns: float
    """Delay of a simultaneous read without a conflict."""


@dataclass(frozen=True)
class Path:
    """Response time components of a single read."""

    lone_ns: float
    """Response time of one block."""
    slope_ns: float
    """Time per further byte of the same row: channel and host link."""
    link_ns: float
    """Time per byte of the host link."""
    channel_ns: float
    """Time per byte of a channel."""
    miss_ns: float
    """Additional time of the first read of a place over the second."""
    miss_share: float
    """Share of random reads that miss."""


def lone_reads(session: Session, state: str) -> dict[int, Floats]:
    """Returns response times of second reads of a place, by size."""
    times = {}
    for run in session.runs:
        if run.test.startswith("latency floor, ") and run.test.endswith(f", {state}"):
            times[int(run.requests.lengths[0])] = run.answers.response_ns[1::2]
    return times


def seconds(session: Session, test: str) -> tuple[np.ndarray, Floats, float]:
    """Returns the distances of a test's pairs, and the response times of their second and of their first reads."""
    (run,) = session.runs_of(test)
    places = run.requests.offsets.astype(np.int64)
    return places[1::2] - places[::2], run.answers.response_ns[1::2], float(np.median(run.answers.response_ns[::2]))


def mapping(session: Session, state: str) -> Map:
    """Returns rows, dies and channels from the pairs that were read in a state."""
    distances, delays, lone = seconds(session, f"dies, rows, {state}")
    late = delays - lone
    # A pair without a conflict waits for the previous command.
    interval = max(0.0, float(late.min()))
    met = late - interval
    small = float(np.median(met[met > 0.5 * met.max()])) if met.max() > NOISE * lone else 0.0
    meets = small > NOISE * lone
    row = conflicts.row_from(distances, met) if meets else None
    _, pairs, lone_anywhere = seconds(session, f"dies, pairs, {state}")
    share = float((pairs - lone_anywhere - interval > 0.5 * small).mean()) if meets else 0.0
    small_pairs, row_pairs = ([seconds(session, run.test) for run in session.runs
                               if run.test.startswith(name) and run.test.endswith(f", {state}")]
                              for name in ("dies, strides", "dies, rows at strides"))  # fmt: skip
    row_at_strides = int(small_pairs[0][0][1] - small_pairs[0][0][0])
    visible = small_pairs if meets else row_pairs
    late = np.array([later for _, later, _ in visible]) - interval
    # Data of the first read may occupy the host link, wherever the second is.
    late = late - late.min(axis=1, keepdims=True)
    # Data in cells with one bit are sensed sooner: use the base that shows all bits.
    base = int(np.argmax(late[:, -1]))
    full = float(late[base, -1])
    row_late = (
        np.array([later - first for (_, later, _), (_, _, first) in zip(row_pairs, small_pairs, strict=True)])
        - interval
    )
    row_full = float(row_late[base, -1])
    lone = small_pairs[base][2]
    if full <= NOISE * lone:
        return Map(row, None, None, False, share, small, 0.0, lone, interval)
    small = full if meets else small
    meet = late[:, :-1] > 0.5 * late[:, -1:]
    # A stride with a conflict from every base is the drive's; a drive with random overwrites has none.
    always = meet.all(axis=0)
    dies = _period(always) if np.array_equal(always, meet.any(axis=0)) else None
    channels = None
    if dies is not None:
        middle = row_late[base, :-1]
        waits = middle > max(0.03 * row_full, 150.0)
        channels = _period(waits | always)
    row = row or (row_at_strides if dies else None)
    return Map(
        row,
        dies,
        channels,
        meets,
        share,
        small + interval if meets else 0.0,
        row_full + interval,
        lone,
        interval,
    )


def _period(met: np.ndarray) -> int | None:
    """Returns the stride of which all conflicts are multiples, counted from 1."""
    which = np.flatnonzero(met) + 1
    if len(which) == 0:
        return None
    period = int(which[0])
    return period if np.array_equal(which, np.arange(period, len(met) + 1, period)) else None


def path(session: Session, state: str, mapping: Map) -> Path:
    """Returns the components of a read, from single reads and from concurrent ones."""
    block = session.device.block_bytes
    lone = {size: float(np.median(times)) for size, times in lone_reads(session, state).items()}
    within = [size for size in lone if size <= (mapping.row_bytes or 8192)]
    if len(within) < 2:
        within = sorted(lone)[:2]
    first, last = min(within), max(within)
    slope = max(0.0, (lone[last] - lone[first]) / (last - first))
    large = f", {state}"
    many = [run for run in session.runs if run.test.startswith("depth curve, large") and run.test.endswith(large)]
    streams = [1e9 / (run.answers.per_s * float(run.requests.lengths[0])) for run in many] or [slope]
    streamed = min(streams)
    link = min(slope, streamed)
    if mapping.reads_conflict and mapping.row_bytes and mapping.row_ns > mapping.small_ns > 0:
        channel = min(slope, (mapping.row_ns - mapping.small_ns) / (mapping.row_bytes - block))
        row, number = mapping.row_bytes, mapping.dies or mapping.row_bytes
        by_dies = (mapping.small_ns + row * channel) / (row * number)
        # Only the host link has the same rate at every depth: random reads leave gaps on channels and dies. If it is
        # not the bottleneck, it is the part of a second read's wait for a row in addition to its channel.
        bound = max(slope - channel, channel / (mapping.channels or number), by_dies)
        if abs(streamed / bound - 1) < SAME or max(streams) > (1 + SAME / 4) * streamed:
            link = slope - channel
    channel = slope - link
    # Only places far from all others are read for the first time.
    firsts = [run.answers.response_ns[::2] for run in session.runs if run.test == f"latency floor, {block}, {state}"]
    later = [run.answers.response_ns for run in session.runs_of(f"latency, warm, {state}")]
    miss, share = 0.0, 0.0
    if firsts and later:
        typical = float(np.median(later[0][later[0] <= np.quantile(later[0], 0.5)]))
        miss = max(0.0, float(np.median(firsts[0])) - lone[block])
        floor = lone.get(4096, typical)
        share = float((later[0] > floor + 0.5 * miss).mean()) if miss > 0.1 * lone[block] else 0.0
    return Path(lone[block], slope, link, channel, miss if share else 0.0, share)


def commands_at_once(session: Session, mapping: Map) -> int | None:
    """Returns the number of commands that the device processes at once; ``None`` if that was not probed."""
    least, most = 1, None
    for run in session.runs:
        if not run.test.startswith("commands at once"):
            continue
        ahead, took = len(run.requests) - 1, run.answers.response_ns
        begins = ahead * mapping.interval_ns
        inside = ahead + 1 - int((took[:-1] < begins).sum())
        # Without a free slot it waits at least for the command that ends first.
        if took[-1] > took[0] + begins + 0.5 * max(mapping.small_ns - mapping.interval_ns, 0.0):
            most = ahead if most is None else min(most, ahead)
        else:
            least = max(least, inside)
    if least == 1 and most is None:
        return None
    # One or two commands may end while the last one arrives.
    usual = [depth for depth in USUAL_DEPTHS if least - 2 <= depth <= (most or 2048)]
    return usual[0] if usual else least
