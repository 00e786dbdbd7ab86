"""What writes tell of a solid-state drive: the way in, the buffer, programs, cells with one bit, spare and collection.

What of it is not read off the answers directly is found by asking a simulated drive the same requests, one value at a
time: each has a figure that rises or falls with it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from headstack.twin.device import Answers, SimulatedDevice
from headstack.twin.learnt import System
from headstack.twin.probes import slc_cache
from headstack.twin.session import Asked, Session
from headstack.twin.ssd_types import Ssd

BUFFER_SHARE: Final = 0.005
"""Of the capacity: what is taken in faster and is less is a buffer, what is more a cache of one bit a cell. Drives have
a thousandth of their capacity of memory, and set aside a hundredth of their cells or more."""


@dataclass(frozen=True)
class WayIn:
    """What a write takes until the drive has it."""

    command_ns: float
    byte_ns: float
    interval_ns: float
    """Between two commands; what a transfer takes where that is longer."""
    interval_seen: bool
    full_duplex: bool
    shared_ns: float
    """Of a byte on a way that carries one direction at a time."""


def way_in(session: Session, read_lone_ns: float, read_byte_ns: float) -> WayIn:
    """From writes alone, at once, and with reads; ``read_lone_ns`` is what 4 KiB take."""
    lone = {int(one.requests.lengths[0]): float(np.median(one.answers.response_ns))
            for one in session.asked if one.test.startswith("latency floor, writes")}  # fmt: skip
    small = [size for size in lone if size <= 1 << 16]
    first, last = min(small), max(small)
    byte = max(0.0, (lone[last] - lone[first]) / (last - first))
    gaps = np.concatenate(
        [np.diff(np.sort(one.answers.completed_ns)) for one in session.asked if one.test.startswith("writes at once")]
    )
    pace = float(np.median(gaps))
    (both,) = session.of("both ways at once")
    full, shared = True, 0.0
    for both in session.of("both ways at once"):
        size = float(both.requests.lengths[0])
        # Without those that met a program.
        waited = float(both.answers.response_ns[1::2].min()) - read_lone_ns
        full = waited < 0.25 * size * byte
        shared = min(byte, read_byte_ns, max(0.0, (waited + read_lone_ns - lone[first]) / size))
    return WayIn(lone[first] - first * byte, byte, pace, pace > 1.05 * first * byte, full, shared)


@dataclass(frozen=True)
class Stream:
    """How a stream of writes goes."""

    buffer_bytes: float
    """Taken in faster than it was put down; 0 where nothing was."""
    cache_bytes: float
    """Until it got slower for good; 0 where it did not."""
    first: float
    """Bytes a nanosecond before that, once the buffer is full."""
    behind: float
    """And after it."""
    last: float
    """And at the end."""


def stream(asked: Asked, capacity: int, buffer_bytes: float = 0.0) -> Stream:
    """The knees of a stream, and its rates between them; of a drive whose buffer is known, or is small."""
    piece = int(asked.requests.lengths[0])
    times = np.sort(asked.answers.completed_ns - asked.answers.issued_ns[0]).astype(np.float64)
    accepted = (np.arange(len(times)) + 1.0) * piece
    # The first that is not the buffer's: later ones come of folding.
    least = max(BUFFER_SHARE * capacity, 1.5 * buffer_bytes)
    knee = next((one for one in slc_cache.knees(times, piece) if one.bytes >= least), None)
    cache = knee.bytes if knee else 0.0
    inside = (accepted > 0.2 * cache) & (accepted < 0.9 * cache) if cache else accepted > 0.3 * accepted[-1]
    slope, base = np.polyfit(times[inside], accepted[inside], 1)
    tail = accepted > (0.5 * accepted[-1] + 0.5 * cache)
    last = float(np.polyfit(times[tail], accepted[tail], 1)[0])
    return Stream(max(0.0, float(base)), cache, float(slope), knee.after if knee else last, last)


def program_times(session: Session, state: str) -> float | None:
    """Time from a write of a row to the end of a flush after it: loading and programming; none where flushes wait for
    nothing."""
    asked = session.of(f"programs, {state}")
    if not asked:
        return None
    (one,) = asked
    took = one.answers.response_ns
    writes, flushes = took[::2], took[1::2]
    return (
        float(np.median(flushes))
        if np.median(flushes) > 1.5 * np.median(writes) and np.median(flushes) > 60_000
        else None
    )


@dataclass(frozen=True)
class Reads:
    """How a read fares that meets a program."""

    waits_ns: float
    """For the program to end, or for it to be left; 0 where no read met one."""
    suspends: bool
    program_ns: float | None
    """From the write to the end of the program, loading included."""


def reads_in_programs(session: Session) -> Reads:
    """From reads of every die a moment after one row was written."""
    waits, ends, begins, late_after = [], [], [], []
    for one in session.asked:
        if not one.test.startswith("read while one die programs"):
            continue
        took = one.answers.response_ns[1:]
        worst = int(np.argmax(took))
        extra = float(took[worst] - np.median(took))
        landed = one.answers.completed_ns[0]
        if extra > 3_000:
            waits.append(extra)
            ends.append(float(one.answers.completed_ns[1 + worst] - np.median(took) - landed))
            begins.append(float(one.answers.issued_ns[1 + worst] - landed))
        else:
            late_after.append(float(one.answers.issued_ns[1] - landed))
    if len(waits) < 4:
        return Reads(0.0, False, None)
    # Medians: a few meet what else the die does.
    if _scatter(waits) >= _scatter(ends):
        return Reads(float(np.median(waits)), False, float(np.median(ends)))
    # Left again and again, it is over between the last read that met it and the first that met nothing.
    last = max(begins)
    free = min((after for after in late_after if after > last), default=last)
    return Reads(float(np.median(waits)), True, (last + free) / 2 if free < 1.5 * last else last)


def _scatter(values: Sequence[float]) -> float:
    return float(np.median(np.abs(np.array(values) - np.median(values))))


def replay(system: System, asked: Sequence[Asked], wanted: Callable[[str], bool], until: str,
           needed: tuple[str, ...]) -> dict[str, Answers]:  # fmt: skip
    """Asks a description what the device was asked, up to the last test of a name: what is wanted, and what of the
    needed tests changes contents. Reads leave no trace and are left out."""
    device = SimulatedDevice(system)
    last = max((at for at, one in enumerate(asked) if one.test == until), default=-1)
    answers = {}
    for one in asked[: last + 1]:
        device.rest(one.rested_s)
        if wanted(one.test) or (one.requests.change_contents and one.test.startswith(needed)):
            answers[one.test] = device.ask(one.requests)
    return answers


def like(session: Session, system: System, test: str) -> tuple[Stream, Stream]:
    """A stream as it was measured, and as a description has it."""
    capacity = session.device.capacity_bytes
    (measured,) = session.of(test)
    answers = replay(system, session.asked, lambda name: name == test, test, ("both ways", "trim", "programs", "fill"))[
        test
    ]
    buffer_bytes: int = ssd(system)["buffer"]["bytes"]
    return stream(measured, capacity), stream(Asked(test, measured.requests, answers), capacity, buffer_bytes)


def steady_rates(session: Session) -> np.ndarray:
    """Rates of the rounds of overwrites, then of small ones."""
    rounds = [
        one.answers.per_s
        for one in session.asked
        if one.test.startswith("overwrites, ") and one.test != "overwrites, small"
    ]
    return np.array([*rounds, *(one.answers.per_s for one in session.of("steady writes"))])


def onset_bytes(session: Session) -> float | None:
    """What was overwritten at random before the rate fell: the spare, nearly; none where it never did."""
    asked = [one for one in session.asked if one.test.startswith("overwrites, ") and one.test != "overwrites, small"]
    if not asked:
        return None
    piece = int(asked[0].requests.lengths[0])
    gone, times = 0.0, []
    for one in asked:
        times.append(np.sort(one.answers.completed_ns - one.answers.issued_ns[0]) + gone)
        gone = float(times[-1][-1])
    knees = slc_cache.knees(np.concatenate(times), piece)
    return max(knees, key=lambda one: one.before / one.after).bytes if knees else None


def ssd(system: System) -> Ssd:
    """The drive of a description."""
    drive: Ssd = system["drive"]["ssd"]
    return drive
