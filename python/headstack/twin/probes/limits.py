"""Rates that a volume keeps to: saturated from rest until its bucket is empty, at every size, in order and mixed."""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import READ, WRITE, Answers, Requests
from headstack.twin.session import Session, places

ALONE: Final = 4096
DEPTH: Final = 512
SWEPT: Final = 2_000
"""Requests of each size: several times the depth, and few beside what a bucket holds."""
SIZES: Final = tuple(sorted(factor * 4096 << power for factor in (1, 3) for power in range(9 if factor == 1 else 7)))
"""Also of one unit and a half, which counts as two requests and is one and a half in bytes."""
FIRST: Final = 10_000
PIECE_MOST: Final = 500_000
PART_S: Final = 20.0
"""Between two looks at the rate."""
AFTER_S: Final = 10.0
MOST: Final = 7_000_000
UNLIMITED: Final = 500_000
"""Requests after which no limit is looked for that nothing shows."""
LONGEST_S: Final = 2_400.0
"""A bucket that lasts longer is not seen to be one: that of gp2 is empty after 2,000 s at most."""
BEHIND: Final = 0.25
"""Of a saturation lies behind the knee at least, for the base rate."""
SLOWER: Final = 0.97


def lone(session: Session, kind: int, count: int) -> None:
    """Requests far apart: each finds the device with nothing to do and its limits unused."""
    first = session.ask(
        "a first look", Requests.of(kind, places(session.random, 20, session.device.capacity_bytes), ALONE)
    )
    apart = int(max(10e6, 3 * float(np.quantile(first.response_ns, 0.9))))
    where = places(session.random, count, session.device.capacity_bytes)
    at = np.arange(count, dtype=np.uint64) * np.uint64(apart)
    session.ask(f"alone, {'reads' if kind == READ else 'writes'}", Requests.of(kind, where, ALONE, at_ns=at))


def saturate(session: Session, test: str, size: int, kind: int = READ) -> None:
    """As many as are taken, until they get slower for good, or for as long as is worth while."""
    piece, rates = FIRST, list[float]()
    fell, behind, asked, began = False, 0.0, 0, session.device_s
    while asked < MOST and session.device_s - began < LONGEST_S:
        where = places(session.random, piece, session.device.capacity_bytes, size)
        answers = session.ask(test, Requests.of(kind, where, size, depth=DEPTH))
        rates.append(answers.per_s)
        asked += piece
        if rates[-1] < SLOWER * max(rates):
            # The knee is somewhere in the first part that is slower.
            behind += answers.seconds if fell else 0.0
            fell = True
            if behind >= max(AFTER_S, BEHIND * (session.device_s - began)):
                return
        if asked >= UNLIMITED and rates[-1] > SLOWER * unlimited_per_s(session):
            return
        # Between parts nothing is outstanding for a moment: it is little beside so long a part.
        piece = int(np.clip(rates[-1] * PART_S, FIRST, PIECE_MOST))


def unlimited_per_s(session: Session) -> float:
    """What the depth and lone latencies allow."""
    took = np.concatenate([one.answers.response_ns for one in session.of("alone, reads")])
    return DEPTH / (float(took.mean()) / 1e9)


def probe_sizes(session: Session) -> None:
    """Random reads of every size, then small ones in order: what counts as a request, and from where on bytes do."""
    for size in SIZES:
        where = places(session.random, SWEPT, session.device.capacity_bytes, size)
        session.ask(f"sizes, {size}", Requests.reads(where, size, depth=DEPTH))
    block = session.device.block_bytes
    start = np.arange(4 * SWEPT, dtype=np.uint64) * np.uint64(block)
    session.ask("in order", Requests.reads(start, block, depth=DEPTH))


def pace(answers: Answers) -> float:
    """Requests a second while as many are outstanding as may be: without its beginning and its end."""
    times = np.sort(answers.completed_ns)
    first, last = len(times) // 4, len(times) * 3 // 4
    return float((last - first) / max(1, times[last] - times[first]) * 1e9)


def sweep(session: Session) -> dict[int, float]:
    """Requests a second of every size."""
    return {int(one.requests.lengths[0]): pace(one.answers) for one in session.asked if one.test.startswith("sizes")}


def byte_size(session: Session) -> int:
    """The least size at which nearly the most bytes a second come."""
    rates = sweep(session)
    most = max(size * rate for size, rate in rates.items())
    return min(size for size, rate in rates.items() if size * rate > SLOWER * most)


def probe_both(session: Session) -> None:
    """Reads and writes together: whether they share their limits."""
    kinds = np.where(np.arange(4 * SWEPT) % 2 == 0, READ, WRITE)
    where = places(session.random, 4 * SWEPT, session.device.capacity_bytes)
    session.ask("half of each", Requests.of(kinds, where, session.device.block_bytes, depth=DEPTH))


def begins(answers: list[Answers]) -> tuple[np.ndarray, np.ndarray]:
    """When requests were complete, in s since the first was issued, and how many were by then; rests between parts are
    part of it."""
    start = answers[0].issued_ns.min()
    times = np.sort(np.concatenate([one.completed_ns for one in answers]) - start) / 1e9
    return times, np.arange(1.0, len(times) + 1)


def knee(times: np.ndarray, counts: np.ndarray) -> tuple[float, float, float]:
    """Rate before, rate after, and time of the knee; 0 where the rate is one."""
    marks = np.linspace(0, len(times) - 1, min(2001, len(times) // 2)).astype(int)
    t, n = times[marks], counts[marks]
    rates = np.diff(n) / np.maximum(np.diff(t), 1e-12)
    # Between two parts nothing is outstanding for a moment: medians of five know nothing of it.
    rates = np.median(np.lib.stride_tricks.sliding_window_view(rates, 5), axis=1)
    high, low = (
        float(np.median(rates[: max(3, len(rates) // 20)])),
        float(np.median(rates[-max(3, len(rates) // 10) :])),
    )
    if low > SLOWER * high:
        whole = slice(len(times) // 20, None)
        return (rate := float(np.polyfit(times[whole], counts[whole], 1)[0])), rate, 0.0
    middle = (high + low) / 2
    at = int(np.argmax(rates < middle)) + 2
    before = slice(marks[max(1, at // 10)], marks[max(2, at - 2)])
    after = slice(marks[min(at + 3, len(marks) - 4)], None)
    first, last = np.polyfit(times[before], counts[before], 1), np.polyfit(times[after], counts[after], 1)
    return float(first[0]), float(last[0]), float((last[1] - first[1]) / (first[0] - last[0]))
