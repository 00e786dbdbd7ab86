"""CacheReuse arrivals of a trace at the station of ``loops``.

The station serves at the rates of the tests' closed loops, by the number of requests in it. The request that is served
next takes the time of its own class (random or sequential, read or write) and size, since bursts differ from other
requests. Times are drawn from an exponential distribution, for which the station with random arrivals is solved
exactly, so that both agree for random arrivals.
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
"""Maximum number of requests of a trace that is used completely; of a longer one pieces are used."""
PIECES, PIECE_REQUESTS = 32, 4096
REQUESTS_MIN = 20_000
"""Minimum number of requests to draw times for: short traces are repeated."""
SURE_90 = 1.645
"""Standard deviations of 90 % of a normal distribution."""


class Arrival(NamedTuple):
    """One request of a trace."""

    at_ns: int
    size_bytes: int
    is_read: bool
    is_random: bool
    """Whether it continues no recent stream of its device."""


Piece: TypeAlias = tuple[Arrival, ...]
"""Consecutive requests, in order of arrival."""
ByHeld: TypeAlias = Sequence[float]
"""Rate per ns by queue length, from 0 to the deepest of the tests."""


def pieces_of(trace: Trace, requests: int) -> tuple[Piece, ...]:
    """Returns the requests that transfer data: all, or evenly spaced pieces of a long trace."""
    is_whole = requests <= WHOLE_MAX
    stride, length = (max(1, requests), requests) if is_whole else (requests // PIECES, PIECE_REQUESTS)
    pieces: list[list[Arrival]] = []
    for at_ns, size_bytes, flags in struct.iter_unpack("<QII", _native.trace_course(trace.source, stride, length)):
        if flags & 4:
            pieces.append([])
        pieces[-1].append(Arrival(at_ns, size_bytes, bool(flags & 1), bool(flags & 2)))
    # The requests after the last whole stride form an incomplete piece.
    return tuple(tuple(piece) for piece in pieces[: 1 if is_whole else PIECES])


@dataclass(frozen=True)
class ArrivalResult:
    """The result of a trace at a station."""

    mean_ns: float
    uncertainty: float
    """Sampling uncertainty of pieces: 90 % half-width of the mean's logarithm; 0 if all requests were used."""
    depths: tuple[tuple[int, float], ...]
    """Queue depths on arrival, including the request itself, with the share of the requests that met them."""


def simulate_arrivals(
    pieces: Sequence[Piece],
    classes: Mapping[RequestClass, ByHeld],
    scale: float = 1.0,
) -> ArrivalResult:
    """Simulates a trace, with all rates multiplied by ``scale``."""
    random = Random(1909)
    nearest = _nearest(classes)
    means: list[float] = []
    depth_counts: Counter[int] = Counter()
    rounds = max(1, -(-REQUESTS_MIN // sum(map(len, pieces))))
    for piece in pieces:
        rates = [nearest(arrival) for arrival in piece]
        piece_ns = 0.0
        for _ in range(rounds):
            answers = serve_piece(piece, rates, scale, random, depth_counts)
            piece_ns += sum(answers)
        means.append(piece_ns / rounds / len(piece))
    mean, total = fmean(means), rounds * sum(map(len, pieces))
    return ArrivalResult(
        mean,
        SURE_90 * stdev(means) / mean / sqrt(len(means)) if len(means) > 1 else 0.0,
        tuple((depth, count / total) for depth, count in sorted(depth_counts.items())),
    )


def serve_piece(
    piece: Piece, rates: Sequence[ByHeld], scale: float, random: Random, depth_counts: Counter[int]
) -> list[float]:
    """Returns response times in ns, in order of arrival; requests are served one after the other at a rate that depends
    on the queue length, and ``depth_counts`` counts the lengths on arrival."""
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
        depth_counts[held] += 1
        arrived += 1
        following = float(piece[arrived].at_ns) if arrived < total else inf
    return answers


def _nearest(classes: Mapping[RequestClass, ByHeld]) -> Callable[[Arrival], ByHeld]:
    """Returns a function for the class most similar to a request: first by operation, then by randomness, then by
    size."""
    nearest_rates: dict[tuple[int, bool, bool], ByHeld] = {}

    def apart(request_class: RequestClass, arrival: Arrival) -> tuple[bool, bool, float]:
        size_distance = abs(log(request_class.size_bytes / max(1, arrival.size_bytes)))
        return request_class.is_read != arrival.is_read, request_class.is_random != arrival.is_random, size_distance

    def nearest(arrival: Arrival) -> ByHeld:
        key = arrival[1:]
        if key not in nearest_rates:
            nearest_rates[key] = classes[min(classes, key=lambda request_class: apart(request_class, arrival))]
        return nearest_rates[key]

    return nearest
