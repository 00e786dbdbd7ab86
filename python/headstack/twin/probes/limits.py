"""Probe of a volume's limits: saturation from rest until its bucket is empty, at every size, sequential and mixed."""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import READ, WRITE, Answers, Requests
from headstack.twin.session import Session, places

ALONE: Final = 4096
DEPTH: Final = 1024
"""Maximum queue depth of volumes: bursts above the bound by this and the latencies are invisible."""
SWEPT: Final = 400
"""Minimum number of requests of each size, and several times the depth: few relative to a bucket."""
TOGETHER: Final = 8_000
EMPTY: Final = 0.7
"""Share of the maximum bytes per second: longer requests below it indicate an empty bucket. Those of a unit and a half,
which count as two, reach 0.75."""
SIZES: Final = tuple(sorted(factor * 4096 << power for factor in (1, 3) for power in range(9 if factor == 1 else 7)))
"""Request sizes, including one and a half units, which count as two requests but as 1.5 in bytes."""
FIRST: Final = 10_000
PIECE_MOST: Final = 500_000
PART_S: Final = 20.0
"""Seconds between two evaluations of the rate."""
AFTER_S: Final = 10.0
MOST: Final = 7_000_000
"""Maximum number of requests of a saturation: the largest commercial buckets (gp2) hold 5.4 million."""
LONGEST_S: Final = 2_400.0
"""A bucket that lasts longer is not detected: that of gp2 is empty after 2,000 s at most."""
BEHIND: Final = 0.25
"""Minimum share of a saturation after the knee, for the base rate."""
SLOWER: Final = 0.97


def lone(session: Session, kind: int, count: int) -> None:
    """Runs requests far apart: each finds the device idle and its limits unused."""
    first = session.ask(
        "a first look", Requests.of(kind, places(session.random, 20, session.device.capacity_bytes), ALONE)
    )
    apart = int(max(10e6, 3 * float(np.quantile(first.response_ns, 0.9))))
    where = places(session.random, count, session.device.capacity_bytes)
    at = np.arange(count, dtype=np.uint64) * np.uint64(apart)
    session.ask(f"alone, {'reads' if kind == READ else 'writes'}", Requests.of(kind, where, ALONE, at_ns=at))


def saturate(session: Session, test: str, size: int, kind: int = READ) -> None:
    """Runs at full queue depth until requests slow down permanently, or until a time limit."""
    piece, rates = FIRST, list[float]()
    fell, behind, requested, began = False, 0.0, 0, session.device_s
    while requested < MOST and session.device_s - began < LONGEST_S:
        where = places(session.random, piece, session.device.capacity_bytes, size)
        answers = session.ask(test, Requests.of(kind, where, size, depth=DEPTH))
        rates.append(answers.per_s)
        requested += piece
        if rates[-1] < SLOWER * max(rates):
            # The knee is within the first part that is slower.
            behind += answers.seconds if fell else 0.0
            fell = True
            if behind >= max(AFTER_S, BEHIND * (session.device_s - began)):
                return
        # Between parts nothing is outstanding for a moment, which is negligible for long parts.
        piece = int(np.clip(rates[-1] * PART_S, FIRST, PIECE_MOST))


def unlimited_per_s(session: Session, kind: int = READ) -> float:
    """Returns the rate that depth and latency permit."""
    return DEPTH / _lone_s(session, kind)


def _lone_s(session: Session, kind: int = READ) -> float:
    runs = session.runs_of(f"alone, {'reads' if kind == READ else 'writes'}") or session.runs_of("alone, reads")
    return float(np.concatenate([run.answers.response_ns for run in runs]).mean()) / 1e9


def probe_sizes(session: Session, per_s: float) -> None:
    """Runs random reads of every size, the smallest first, at most ``per_s``; then small sequential ones: shows the
    accounting of requests, and where bytes become the limit."""
    block, lone_s = session.device.block_bytes, _lone_s(session)
    rate, most = per_s, 0.0
    for size in SIZES:
        # Four times the requests in flight within the limits: deep enough for them, and a small part of a bytes'
        # bucket.
        depth = int(np.clip(4 * rate * lone_s, 16, DEPTH))
        where = places(session.random, max(SWEPT, 8 * depth), session.device.capacity_bytes, size)
        rate = pace(session.ask(f"sizes, {size}", Requests.reads(where, size, depth=depth)))
        most = max(most, size * rate)
        if size * rate < EMPTY * most:
            break
    start = np.arange(TOGETHER, dtype=np.uint64) * np.uint64(block)
    session.ask("in order", Requests.reads(start, block, depth=DEPTH))


def pace(answers: Answers) -> float:
    """Returns requests per second at full queue depth, without start and end."""
    times = np.sort(answers.completed_ns)
    first, last = len(times) // 4, len(times) * 3 // 4
    return float((last - first) / max(1, times[last] - times[first]) * 1e9)


def sweep(session: Session) -> dict[int, float]:
    """Returns requests per second by size while the bytes' bucket is not empty."""
    rates = _sizes(session)
    most = max(size * rate for size, rate in rates.items())
    last = max(rates)
    return {size: rate for size, rate in rates.items() if size < last or size * rate >= EMPTY * most}


def refill_s(session: Session) -> float:
    """Returns the time until the bytes' bucket has refilled what all sizes used: exact if they emptied it, otherwise
    approximate."""
    rates = _sizes(session)
    taken = sum(float(run.requests.lengths.sum()) for run in session.runs if run.test.startswith("sizes"))
    size, rate = max(rates.items())
    most = max(size * rate for size, rate in rates.items())
    return taken / (size * rate) if size * rate < EMPTY * most else 4 * taken / most


def _sizes(session: Session) -> dict[int, float]:
    return {int(run.requests.lengths[0]): pace(run.answers) for run in session.runs if run.test.startswith("sizes")}


def probe_both(session: Session) -> None:
    """Runs reads and writes together, which shows whether they share their limits."""
    kinds = np.where(np.arange(TOGETHER) % 2 == 0, READ, WRITE)
    where = places(session.random, TOGETHER, session.device.capacity_bytes)
    session.ask("half of each", Requests.of(kinds, where, session.device.block_bytes, depth=DEPTH))


def begins(answers: list[Answers]) -> tuple[np.ndarray, np.ndarray]:
    """Returns completion times, in s since the first issue including rests between parts, and the number of completions
    by then."""
    start = answers[0].issued_ns.min()
    times = np.sort(np.concatenate([part.completed_ns for part in answers]) - start) / 1e9
    return times, np.arange(1.0, len(times) + 1)


def burst_per_s(answers: list[Answers], until_s: float) -> float | None:
    """Returns requests per second of the parts before the knee, each without start and end; ``None`` if no part ended
    before."""
    start = int(answers[0].issued_ns.min())
    paces = [pace(part) for part in answers if (int(part.completed_ns.max()) - start) / 1e9 < until_s]
    return float(np.median(paces)) if paces else None


def knee(times: np.ndarray, counts: np.ndarray) -> tuple[float, float, float]:
    """Returns rate before, rate after, and time of the knee; 0 if the rate is constant."""
    marks = np.linspace(0, len(times) - 1, min(2001, len(times) // 2)).astype(int)
    t, n = times[marks], counts[marks]
    rates = np.diff(n) / np.maximum(np.diff(t), 1e-12)
    # Between two parts nothing is outstanding for a moment, which medians of five ignore.
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
