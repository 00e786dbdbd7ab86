"""Probe of the SLC cache: the drive is emptied, filled, left idle, and filled again, to find where writes slow down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from headstack.twin.device import FLUSH, TRIM, WRITE, Requests
from headstack.twin.session import Session, places

PIECE_BYTES: Final = 1 << 17
LARGE_PIECE_BYTES: Final = 1 << 20
LARGE_BYTES: Final = 128 << 30
"""Capacity from which drives are filled with larger requests."""
DEPTH: Final = 32
TRIM_BYTES: Final = 1 << 30
ROWS: Final = 24
"""A multiple for which rows remain whole even if a row is three or six times its estimate."""
SETTLE_S: Final = 0.5
"""Time after which current work is done, and idle-time work has not begun."""
MARKS: Final = 2000
"""Number of marks of a stream, which locate knees to 0.1 % of its length, or 5 % of a cache of 2 %."""
LEAST_MARKS: Final = 8
"""Minimum number of marks between two knees: rows of all dies are programmed in waves, which are not knees."""
SLOWDOWN_MIN: Final = 1.15
"""Factor by which a stream slows down at the end of a buffer or cache."""
FOLD_S: Final = 30.0
"""Most drives fold within seconds of idle time; none is known to wait longer than this."""


def empty(session: Session) -> None:
    """Trims everything, which removes all mappings."""
    starts = np.arange(0, session.device.capacity_bytes, TRIM_BYTES)
    lengths = np.minimum(TRIM_BYTES, session.device.capacity_bytes - starts)
    session.ask("trim", Requests.of(TRIM, starts, lengths))
    session.rest(1.0)


def programs(session: Session, state: str, row_bytes: int, start: int) -> None:
    """Writes rows one by one, each followed by a flush: the time of one program, if a flush waits for it."""
    offsets = np.repeat(start + np.arange(ROWS) * row_bytes, 2)
    kinds = np.tile([WRITE, FLUSH], ROWS)
    lengths = np.where(kinds == WRITE, row_bytes, 0)
    session.ask(f"programs, {state}", Requests.of(kinds, np.where(kinds == WRITE, offsets, 0), lengths))


def stream(session: Session, test: str, length: int) -> None:
    """Writes the first ``length`` bytes sequentially."""
    piece = PIECE_BYTES if session.device.capacity_bytes < LARGE_BYTES else LARGE_PIECE_BYTES
    session.ask(test, Requests.writes(np.arange(length // piece) * piece, piece, depth=DEPTH))


@dataclass(frozen=True)
class Knee:
    """A position at which a stream slowed down permanently."""

    bytes: float
    """Bytes accepted by then."""
    before: float
    """Bytes per ns since the previous knee."""
    after: float
    """Bytes per ns until the next one."""


def knees(accepted_ns: np.ndarray, piece: int) -> list[Knee]:
    """Returns the positions at which a stream slowed down permanently: at the end of the buffer or of the SLC cache, or
    as folding began.

    They are the intersections of straight lines of bytes over time. Each stretch is cut where two lines have the
    smallest residual, if that is at most half of one line's; then each knee is located again between its neighbours,
    since a line across two knees fits neither.
    """
    times = np.sort(accepted_ns).astype(np.float64)
    step = max(1, len(times) // MARKS)
    marks = np.arange(step - 1, len(times), step)
    x, y = (marks + 1.0) * piece, times[marks]
    ends = [0, *_cuts(x, y, 0, len(x)), len(x)]
    slowdowns = []
    for first, cut, last in zip(ends, ends[1:], ends[2:], strict=False):
        cut = _best_cut(x[first:last], y[first:last])[0] + first if last - first >= 2 * LEAST_MARKS else cut
        (base, slope), (later_base, later_slope) = (
            _line(x[part], y[part]) for part in (slice(first, cut), slice(cut, last))
        )
        if later_slope > SLOWDOWN_MIN * slope:
            cross = (later_base - base) / (slope - later_slope)
            slowdowns.append(Knee(float(cross), 1 / slope, 1 / later_slope))
    return slowdowns


def _cuts(x: np.ndarray, y: np.ndarray, first: int, last: int) -> list[int]:
    """Returns the marks between straight lines that fit a stretch."""
    if last - first < 2 * LEAST_MARKS:
        return []
    cut, left, whole = _best_cut(x[first:last], y[first:last])
    cut += first
    slopes = [_line(x[part], y[part])[1] for part in (slice(first, cut), slice(cut, last))]
    if left > 0.5 * whole or slopes[1] < SLOWDOWN_MIN * slopes[0]:
        return []
    return [*_cuts(x, y, first, cut), cut, *_cuts(x, y, cut, last)]


def _best_cut(x: np.ndarray, y: np.ndarray) -> tuple[int, float, float]:
    """Returns the mark at which two lines have the smallest residual, their residual, and that of one line."""
    x, y = (x - x[0]) / (x[-1] - x[0]), (y - y[0]) / (y[-1] - y[0])
    ahead, behind = _left_of_lines(x, y), _left_of_lines(x[::-1], y[::-1])[::-1]
    # Lines over the marks before each cut, and after it.
    both = ahead[:-1] + behind[1:]
    both[: LEAST_MARKS - 1] = both[len(both) - LEAST_MARKS + 1 :] = np.inf
    cut = int(np.argmin(both)) + 1
    return cut, float(both[cut - 1]), float(ahead[-1])


def _left_of_lines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the residuals of the best lines through the first marks, for every number of marks."""
    count = np.arange(1.0, len(x) + 1)
    sums = {name: np.cumsum(of) for name, of in (("x", x), ("y", y), ("xx", x * x), ("xy", x * y), ("yy", y * y))}
    xx, xy, yy = (sums[a + b] - sums[a] * sums[b] / count for a, b in (("x", "x"), ("x", "y"), ("y", "y")))
    left: np.ndarray = yy - np.divide(xy**2, xx, out=np.zeros_like(xx), where=xx > 0)
    return left


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    return float(y.mean() - slope * x.mean()), slope


def probe(session: Session, row_bytes: int) -> None:
    """Empties the drive, measures a few programs, and fills it."""
    empty(session)
    session.ask("latency, random, trimmed", Requests.reads(places(session.random, 500, session.device.capacity_bytes)))
    programs(session, "empty", row_bytes, 0)
    session.rest(0.5)
    stream(session, "fill", session.device.capacity_bytes)
    # At the end, where no pairs are read.
    programs(session, "full", row_bytes, (session.device.capacity_bytes // row_bytes - ROWS) * row_bytes)
    session.rest(SETTLE_S)


def probe_again(session: Session) -> None:
    """Leaves the full drive idle and fills it again: shows the space reclaimed meanwhile, and the cost of erasing."""
    session.rest(FOLD_S)
    stream(session, "second fill", session.device.capacity_bytes)
