"""How far writes go before they get slower: the drive is emptied, filled, left alone, and filled again."""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import FLUSH, TRIM, WRITE, Requests
from headstack.twin.session import Session, places

PIECE_BYTES: Final = 1 << 17
LARGE_PIECE_BYTES: Final = 1 << 20
LARGE_BYTES: Final = 128 << 30
"""Drives from here on are filled by larger pieces."""
DEPTH: Final = 32
TRIM_BYTES: Final = 1 << 30
ROWS: Final = 24
"""Whole rows also where a row is three or six times what it was taken to be."""
SETTLE_S: Final = 0.5
"""After which what is under way is over, and what waits for idleness has not begun."""
FOLD_S: Final = 30.0
"""Most drives tidy up within seconds of idleness; none is known to wait longer than this."""


def empty(session: Session) -> None:
    """Trims everything: what lay where is forgotten."""
    starts = np.arange(0, session.device.capacity_bytes, TRIM_BYTES)
    lengths = np.minimum(TRIM_BYTES, session.device.capacity_bytes - starts)
    session.ask("trim", Requests.of(TRIM, starts, lengths))
    session.rest(1.0)


def programs(session: Session, state: str, row_bytes: int, start: int) -> None:
    """Writes rows one by one, each followed by a flush: how long one program takes, where a flush waits for it."""
    offsets = np.repeat(start + np.arange(ROWS) * row_bytes, 2)
    kinds = np.tile([WRITE, FLUSH], ROWS)
    lengths = np.where(kinds == WRITE, row_bytes, 0)
    session.ask(f"programs, {state}", Requests.of(kinds, np.where(kinds == WRITE, offsets, 0), lengths))


def stream(session: Session, test: str, length: int) -> None:
    """Writes the first ``length`` bytes in order."""
    piece = PIECE_BYTES if session.device.capacity_bytes < LARGE_BYTES else LARGE_PIECE_BYTES
    session.ask(test, Requests.writes(np.arange(length // piece) * piece, piece, depth=DEPTH))


def volume(accepted_ns: np.ndarray, piece: int) -> tuple[float, float, float]:
    """Bytes that a stream put down before it got slower for good, and its rates in bytes a nanosecond before and after.

    The two straight lines that leave least of the times at which bytes were accepted; no volume where they are one.
    """
    times = np.sort(accepted_ns).astype(np.float64)
    step = max(1, len(times) // 600)
    marks = np.arange(step - 1, len(times), step)
    y, x = times[marks], (marks + 1.0) * piece
    if len(x) < 12:
        return 0.0, x[-1] / y[-1], x[-1] / y[-1]
    best = (np.inf, 0)
    for knee in range(3, len(x) - 3):
        left = _line(x[: knee + 1], y[: knee + 1])
        right = _line(x[knee:], y[knee:])
        best = min(best, (left[2] + right[2], knee))
    before, after = _line(x[: best[1] + 1], y[: best[1] + 1]), _line(x[best[1] :], y[best[1] :])
    if after[1] <= 1.15 * before[1]:
        whole = _line(x, y)
        return 0.0, 1 / whole[1], 1 / whole[1]
    cross = (after[0] - before[0]) / (before[1] - after[1])
    return float(cross), 1 / before[1], 1 / after[1]


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    base = float(y.mean() - slope * x.mean())
    return base, slope, float(((y - base - slope * x) ** 2).sum())


def probe(session: Session, row_bytes: int) -> None:
    """Empties the drive, looks at a few programs, and fills it."""
    empty(session)
    session.ask("latency, random, trimmed", Requests.reads(places(session.random, 500, session.device.capacity_bytes)))
    programs(session, "empty", row_bytes, 0)
    session.rest(0.5)
    stream(session, "fill", session.device.capacity_bytes)
    # At the end, where no pair of reads is asked for.
    programs(session, "full", row_bytes, (session.device.capacity_bytes // row_bytes - ROWS) * row_bytes)
    session.rest(SETTLE_S)


def probe_again(session: Session) -> None:
    """Leaves the full drive alone and fills it again: what it has made room for meanwhile, and what erasing costs."""
    session.rest(FOLD_S)
    stream(session, "second fill", session.device.capacity_bytes)
