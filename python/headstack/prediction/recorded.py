"""Recordings as a queue meets them: their own arrivals, at the station of ``loops``.

The station serves at the rates of the closed loops of the tests, by the number of requests that it holds. The request
that is served next takes the time of its own class, random or sequential, a read or a write, of its size: what comes
in a burst is seldom what comes else. Times are drawn from an exponential distribution, as they are where arrivals are
random and the station is solved exactly, so that with random arrivals both come to the same.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log, sqrt
from random import Random
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headstack import _native

if TYPE_CHECKING:
    from headstack.prediction.request_class import RequestClass
    from headstack.traces.traces import Trace

WHOLE_MAX = 1 << 17
"""Requests of a recording that is taken as a whole; of a longer one pieces are."""
PIECES, PIECE_REQUESTS = 32, 4096
REQUESTS_MIN = 20_000
"""Requests that are drawn for: short recordings are gone through several times."""
SURE_90 = 1.645
"""Standard deviations of 90 % of a normal distribution."""


class Arrival(NamedTuple):
    """One request of a recording."""

    at_ns: int
    size_bytes: int
    is_read: bool
    is_random: bool
    """Continues no recent stream of its device."""


Piece: TypeAlias = tuple[Arrival, ...]
"""Requests that follow each other, in order of arrival."""
ByHeld: TypeAlias = Sequence[float]
"""Requests a ns, by how many are held: from 0 to the deepest of the tests."""


def pieces_of(trace: Trace, requests: int) -> tuple[Piece, ...]:
    """The requests that transfer data: all, or of a long recording pieces that lie evenly in it."""
    is_whole = requests <= WHOLE_MAX
    stride, length = (max(1, requests), requests) if is_whole else (requests // PIECES, PIECE_REQUESTS)
    pieces: list[list[Arrival]] = []
    for at_ns, size_bytes, told in struct.iter_unpack("<QII", _native.trace_course(trace.source, stride, length)):
        if told & 4:
            pieces.append([])
        pieces[-1].append(Arrival(at_ns, size_bytes, bool(told & 1), bool(told & 2)))
    # What is behind the last whole stride is no piece like the others.
    return tuple(tuple(piece) for piece in pieces[: 1 if is_whole else PIECES])


@dataclass(frozen=True)
class Course:
    """What a recording comes to at a station."""

    mean_ns: float
    unsure: float
    """From the pieces to the whole: half the width of 90 % of the mean's logarithm; 0 where all was gone through."""
    depths: tuple[tuple[int, float], ...]
    """How many were there when a request came, itself included, and the share of the requests that found it so."""


def in_course(
    pieces: Sequence[Piece],
    classes: Mapping[RequestClass, ByHeld],
    scale: float = 1.0,
) -> Course:
    """Goes through a recording, with all rates times ``scale``."""
    random = Random(1909)
    nearest = _nearest(classes)
    means: list[float] = []
    found: Counter[int] = Counter()
    rounds = max(1, -(-REQUESTS_MIN // sum(map(len, pieces))))
    for piece in pieces:
        rates = [nearest(arrival) for arrival in piece]
        piece_ns = 0.0
        for _ in range(rounds):
            answers = served(piece, rates, scale, random, found)
            piece_ns += sum(answers)
        means.append(piece_ns / rounds / len(piece))
    mean, total = fmean(means), rounds * sum(map(len, pieces))
    return Course(
        mean,
        SURE_90 * stdev(means) / mean / sqrt(len(means)) if len(means) > 1 else 0.0,
        tuple((depth, count / total) for depth, count in sorted(found.items())),
    )


def served(piece: Piece, rates: Sequence[ByHeld], scale: float, random: Random, found: Counter[int]) -> list[float]:
    """Response times in ns, in order of arrival: one after the other, at a rate that goes with how many are there;
    ``found`` counts how many each arrival makes them."""
    deepest = len(rates[0]) - 1
    answers: list[float] = []
    now, left, held = float(piece[0].at_ns), 0.0, 0
    arrived, total = 0, len(piece)
    following: float = now
    while len(answers) < total:
        if held:
            rate = scale * rates[len(answers)][min(held, deepest)]
            done = now + left / rate
            if done <= following:
                now = done
                answers.append(now - piece[len(answers)].at_ns)
                held -= 1
                left = random.expovariate(1.0)
                continue
            left -= (following - now) * rate
        else:
            left = random.expovariate(1.0)
        now = following
        held += 1
        found[held] += 1
        arrived += 1
        following = float(piece[arrived].at_ns) if arrived < total else inf
    return answers


def _nearest(classes: Mapping[RequestClass, ByHeld]) -> Callable[[Arrival], ByHeld]:
    """The class that is most like a request: what it does first, then whether it is random, then its size."""
    known: dict[tuple[int, bool, bool], ByHeld] = {}

    def apart(one: RequestClass, arrival: Arrival) -> tuple[bool, bool, float]:
        of = abs(log(one.size_bytes / max(1, arrival.size_bytes)))
        return one.is_read != arrival.is_read, one.is_random != arrival.is_random, of

    def nearest(arrival: Arrival) -> ByHeld:
        key = arrival[1:]
        if key not in known:
            known[key] = classes[min(classes, key=lambda one: apart(one, arrival))]
        return known[key]

    return nearest
