"""Properties of an SSD that writes show: link, buffer, programs, cells with one bit, spare capacity and collection.

Values that are not directly visible are found by running the same requests on a simulated drive, one value at a time:
each has a result that increases or decreases only with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from headstack.twin.device import Answers, SimulatedDevice
from headstack.twin.learnt import System
from headstack.twin.probes import slc_cache
from headstack.twin.session import ProbeRun, Session
from headstack.twin.ssd_types import Ssd

BUFFER_SHARE: Final = 0.005
"""Share of the capacity: a faster initial amount below it is a buffer, above it a cache with one bit per cell. Drives
have a thousandth of their capacity of memory, and set aside 1 % of their cells or more."""


LONG_FLUSH: Final = 0.3
"""Gap between short and long flushes, as a share of the short ones, above which the long ones do additional work."""

ALIKE: Final = 0.1
"""Median deviation of waits, as a share of their median, below which they are the same; timers scatter by less."""


@dataclass(frozen=True)
class WayIn:
    """Times of a write until the drive has accepted it."""

    command_ns: float
    byte_ns: float
    interval_ns: float
    """Time between two commands; that of the transfer if it is longer."""
    interval_seen: bool
    full_duplex: bool
    shared_ns: float
    """Time per byte of a link that carries one direction at a time."""


def way_in(session: Session, read_lone_ns: float, read_byte_ns: float) -> WayIn:
    """Returns the times of writes at queue depth 1, concurrent ones, and with reads; ``read_lone_ns`` is the time of a
    4 KiB read.
    """
    lone = {int(run.requests.lengths[0]): float(np.median(run.answers.response_ns))
            for run in session.runs if run.test.startswith("latency floor, writes")}  # fmt: skip
    small = [size for size in lone if size <= 1 << 16]
    first, last = min(small), max(small)
    byte = max(0.0, (lone[last] - lone[first]) / (last - first))
    gaps = np.concatenate(
        [np.diff(np.sort(run.answers.completed_ns)) for run in session.runs if run.test.startswith("writes at once")]
    )
    pace = float(np.median(gaps))
    (both,) = session.runs_of("both ways at once")
    full, shared = True, 0.0
    for both in session.runs_of("both ways at once"):
        size = float(both.requests.lengths[0])
        # Without those that waited for a program.
        waited = float(both.answers.response_ns[1::2].min()) - read_lone_ns
        full = waited < 0.25 * size * byte
        shared = min(byte, read_byte_ns, max(0.0, (waited + read_lone_ns - lone[first]) / size))
    return WayIn(lone[first] - first * byte, byte, pace, pace > 1.05 * first * byte, full, shared)


@dataclass(frozen=True)
class Stream:
    """Rates of a stream of writes."""

    buffer_bytes: float
    """Bytes accepted faster than they were programmed; 0 if none."""
    cache_bytes: float
    """Bytes until it slowed down permanently; 0 if it did not."""
    first: float
    """Bytes per ns before that, after the buffer is full."""
    behind: float
    """Bytes per ns after it."""
    last: float
    """Bytes per ns at the end."""


def stream(run: ProbeRun, capacity: int, buffer_bytes: float = 0.0) -> Stream:
    """Returns the knees of a stream, and the rates between them, for a drive with a known or a small buffer."""
    piece = int(run.requests.lengths[0])
    times = np.sort(run.answers.completed_ns - run.answers.issued_ns[0]).astype(np.float64)
    accepted = (np.arange(len(times)) + 1.0) * piece
    # The first knee that is not the buffer's: later ones are due to folding.
    least = max(BUFFER_SHARE * capacity, 1.5 * buffer_bytes)
    knee = next((slowdown for slowdown in slc_cache.knees(times, piece) if slowdown.bytes >= least), None)
    cache = knee.bytes if knee else 0.0
    inside = (accepted > 0.2 * cache) & (accepted < 0.9 * cache) if cache else accepted > 0.3 * accepted[-1]
    slope, base = np.polyfit(times[inside], accepted[inside], 1)
    tail = accepted > (0.5 * accepted[-1] + 0.5 * cache)
    last = float(np.polyfit(times[tail], accepted[tail], 1)[0])
    return Stream(max(0.0, float(base)), cache, float(slope), knee.after if knee else last, last)


@dataclass(frozen=True)
class Flushes:
    """Flushes of single rows that wait for programs."""

    program_ns: float
    """Time from the write of a row to the end of the flush after it: loading and programming."""
    map_update_ns: float
    """Additional time of the longer flushes, which also program the map; 0 if all flushes take the same time."""
    flushes_per_map_update: int


def flush_times(session: Session, state: str) -> Flushes | None:
    """Returns the times of flushes of single rows; ``None`` if flushes do not wait."""
    runs = session.runs_of(f"programs, {state}")
    if not runs:
        return None
    (run,) = runs
    took = run.answers.response_ns
    writes, flushes = took[::2], np.sort(took[1::2])
    if np.median(flushes) <= max(1.5 * np.median(writes), 60_000):
        return None
    # The quantiles are those of two groups if at least 20 % of the flushes is long, and not of single outliers.
    low, high = np.quantile(flushes, (0.2, 0.8))
    if high - low < LONG_FLUSH * low:
        return Flushes(float(np.median(flushes)), 0.0, 1)
    short, long = flushes[flushes < (low + high) / 2], flushes[flushes >= (low + high) / 2]
    update = float(np.median(long) - np.median(short))
    return Flushes(float(np.median(short)), update, round(len(flushes) / len(long)))


@dataclass(frozen=True)
class Reads:
    """Delays of a read that conflicts with a program."""

    waits_ns: float
    """Wait for the program to end, or to be suspended; 0 if no read conflicted."""
    spread_ns: float
    """Mean of the random part of the wait, in addition to ``waits_ns``; 0 if the waits are alike."""
    suspends: bool
    program_ns: float | None
    """Time from the write to the end of the program, including loading."""


def reads_in_programs(session: Session) -> Reads:
    """Returns the delays of reads of every die shortly after one row was written."""
    waits, ends, begins, late_after = [], [], [], []
    for run in session.runs:
        if not run.test.startswith("read while one die programs"):
            continue
        took = run.answers.response_ns[1:]
        worst = int(np.argmax(took))
        extra = float(took[worst] - np.median(took))
        landed = run.answers.completed_ns[0]
        if extra > 3_000:
            waits.append(extra)
            ends.append(float(run.answers.completed_ns[1 + worst] - np.median(took) - landed))
            begins.append(float(run.answers.issued_ns[1 + worst] - landed))
        else:
            late_after.append(float(run.answers.issued_ns[1] - landed))
    if len(waits) < 4:
        return Reads(0.0, 0.0, False, None)
    # Medians, since a few conflict with other activity of the die.
    if _scatter(waits) >= _scatter(ends):
        return Reads(float(np.median(waits)), 0.0, False, float(np.median(ends)))
    # After repeated suspensions, it ends between the last read that conflicted and the first that did not.
    last = max(begins)
    free = min((after for after in late_after if after > last), default=last)
    program_ns = (last + free) / 2 if free < 1.5 * last else last
    if _scatter(waits) < ALIKE * np.median(waits):
        return Reads(float(np.median(waits)), 0.0, True, program_ns)
    # The least of n exponential times is above their common offset by the nth part of their mean.
    spread = (float(np.mean(waits)) - min(waits)) * len(waits) / (len(waits) - 1)
    return Reads(max(0.0, min(waits) - spread / len(waits)), spread, True, program_ns)


def _scatter(values: Sequence[float]) -> float:
    return float(np.median(np.abs(np.array(values) - np.median(values))))


def replay(system: System, runs: Sequence[ProbeRun], wanted: Callable[[str], bool], until: str,
           needed: tuple[str, ...]) -> dict[str, Answers]:  # fmt: skip
    """Runs the device's requests on a description, up to the last test with the name ``until``: the wanted ones, and
    those of the needed tests that change contents. Other reads have no effect and are left out."""
    device = SimulatedDevice(system)
    last = max((at for at, run in enumerate(runs) if run.test == until), default=-1)
    answers = {}
    for run in runs[: last + 1]:
        device.rest(run.rested_s)
        if wanted(run.test) or (run.requests.change_contents and run.test.startswith(needed)):
            answers[run.test] = device.ask(run.requests)
    return answers


def like(session: Session, system: System, test: str) -> tuple[Stream, Stream]:
    """Returns a stream as measured, and as the description predicts it."""
    capacity = session.device.capacity_bytes
    (measured,) = session.runs_of(test)
    answers = replay(system, session.runs, lambda name: name == test, test, ("both ways", "trim", "programs", "fill"))[
        test
    ]
    buffer_bytes: int = ssd(system)["buffer"]["bytes"]
    return stream(measured, capacity), stream(ProbeRun(test, measured.requests, answers), capacity, buffer_bytes)


def steady_rates(session: Session) -> np.ndarray:
    """Returns the rates of the rounds of overwrites, then of small ones."""
    rounds = [
        run.answers.per_s
        for run in session.runs
        if run.test.startswith("overwrites, ") and run.test != "overwrites, small"
    ]
    return np.array([*rounds, *(run.answers.per_s for run in session.runs_of("steady writes"))])


def onset_bytes(session: Session) -> float | None:
    """Returns the bytes overwritten randomly before the rate fell, nearly the spare capacity; ``None`` if it did
    not."""
    runs = [run for run in session.runs if run.test.startswith("overwrites, ") and run.test != "overwrites, small"]
    if not runs:
        return None
    piece = int(runs[0].requests.lengths[0])
    gone, times = 0.0, []
    for run in runs:
        times.append(np.sort(run.answers.completed_ns - run.answers.issued_ns[0]) + gone)
        gone = float(times[-1][-1])
    knees = slc_cache.knees(np.concatenate(times), piece)
    return max(knees, key=lambda knee: knee.before / knee.after).bytes if knees else None


def ssd(system: System) -> Ssd:
    """Returns the drive of a description."""
    drive: Ssd = system["drive"]["ssd"]
    return drive
