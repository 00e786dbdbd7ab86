"""Calibrated models of disks that are not available, from a data sheet and a trace with response times.

A trace contains an application's requests, not the most informative ones, so less can be learned: the data sheet's seek
curve is adjusted, and fixed costs, settling, and the kinds of read-ahead and write cache are fitted. The error to be
minimized is also the score: the distance between the distributions of response times, for reads and for writes
(Ruemmler and Wilkes' demerit).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np

from headstack._native import InputError
from headstack.twin.device import READ, WRITE, Answers, Floats, Requests, SimulatedDevice
from headstack.twin.fitting import Range, evolve
from headstack.twin.learnt import System

KINDS = {"R": READ, "W": WRITE}


def load_validate(path: str) -> tuple[Requests, Answers]:
    """Loads a trace at queue depth 1, in DiskSim's validation format: ``R|W``, a class, the block, blocks of 512 bytes,
    and microseconds of service and of think time after it."""
    with open(path, encoding="ascii", errors="replace") as file:
        rows = [line.split() for line in file if line.strip()]
    for number, row in enumerate(rows, 1):
        if len(row) != 6 or row[0] not in KINDS:
            raise InputError(f"{path}:{number}: expected R or W, class, block, number of blocks and two times")
    offsets, lengths = (np.array([int(row[column]) * 512 for row in rows], np.int64) for column in (2, 3))
    service, thought = (np.array([round(float(row[column]) * 1000) for row in rows], np.int64) for column in (4, 5))
    think = np.concatenate([[0], thought[:-1]])
    issued = np.cumsum(think + np.concatenate([[0], service[:-1]]))
    requests = Requests.of([KINDS[row[0]] for row in rows], offsets, lengths, depth=1, think_ns=think)
    return requests, Answers(issued, issued + service)


def half(requests: Requests, answers: Answers, second: bool) -> tuple[Requests, Answers]:
    """Returns the first or the second half of a trace."""
    middle = len(requests) // 2
    part = slice(middle, None) if second else slice(0, middle)
    columns = (requests.kinds[part], requests.offsets[part], requests.lengths[part], 1, requests.times_ns[part])
    return Requests(*columns), Answers(answers.issued_ns[part], answers.completed_ns[part])


def demerit(measured_ns: Floats, model_ns: Floats) -> float:
    """Returns the root mean square distance of the two distributions, divided by the measured mean."""
    difference = np.sort(measured_ns) - np.sort(model_ns)
    return float(np.sqrt(np.mean(difference**2)) / measured_ns.mean())


CURVE_AT = (0.0005, 0.01, 0.1, 0.35, 1.0)
"""Shares of the way from rim to rim at which the data sheet's seek curve is adjusted."""
RANGES = (
    *(Range(f"seek at {at}", -0.6, 0.6) for at in CURVE_AT),
    Range("speed", -0.006, 0.006),
    Range("read hit after a read", float(np.log(2e4)), float(np.log(3e6))),
    Range("read hit after a write", float(np.log(2e4)), float(np.log(3e6))),
    Range("read miss", float(np.log(2e4)), float(np.log(3e6))),
    Range("write hit", float(np.log(2e4)), float(np.log(3e6))),
    Range("write miss", float(np.log(2e4)), float(np.log(3e6))),
    Range("write settle", -6e5, 1.5e6),
    Range("a byte to the host", float(np.log(3)), float(np.log(400))),
    Range("a byte to the drive", float(np.log(3)), float(np.log(400))),
)
COSTS = ("read hit after a read", "read hit after a write", "read miss", "write hit", "write miss")
Buffer = Mapping[str, object]
BUFFERS: tuple[Buffer, ...] = tuple(
    {"read_ahead": kind, "segments": count, "write_cache": cache}
    for cache in ("on", "off", "appending")
    for kind in ("segment", "track", "none", "track-after-sequential", "cylinder")
    for count in (1, 3, 10)
)


def with_values(sheet: System, theta: Floats, buffer: Buffer) -> System:
    """Returns the data sheet's drive with a point of ``RANGES``."""
    disk = copy.deepcopy(sheet["drive"]["disk"])
    values = dict(zip([parameter.name for parameter in RANGES], map(float, theta), strict=True))
    mechanics, overheads = disk["mechanics"], disk["overheads"]
    last = disk["geometry"]["cylinders"]
    bends = [values[f"seek at {at}"] for at in CURVE_AT]
    points = mechanics["seek"]["points"]
    shares = np.log(np.array([max(1, at) for at, _ in points]) / last)
    times = np.array([time for _, time in points]) * np.exp(np.interp(shares, np.log(CURVE_AT), bends))
    mechanics["seek"]["points"] = [
        [at, int(time)] for (at, _), time in zip(points, np.maximum.accumulate(times), strict=True)
    ]
    mechanics["rpm"] *= 1 + values["speed"]
    mechanics["write_settle_ns"] = round(values["write settle"])
    after = {name: round(float(np.exp(values[name]))) for name in COSTS}
    overheads["read_hit_ns"] = {
        "after_read": after["read hit after a read"],
        "after_write": after["read hit after a write"],
    }
    for key, name in (("read_miss_ns", "read miss"), ("write_hit_ns", "write hit"), ("write_miss_ns", "write miss")):
        overheads[key] = {"after_read": after[name], "after_write": after[name]}
    disk["interface"]["read_ns_per_byte"] = float(np.exp(values["a byte to the host"]))
    disk["interface"]["write_ns_per_byte"] = float(np.exp(values["a byte to the drive"]))
    total = disk["buffer"]["segments"] * disk["buffer"]["segment_sectors"]
    sectors = max(32, total // int(str(buffer["segments"])))
    disk["buffer"] |= {**buffer, "segment_sectors": sectors, "read_ahead_max_sectors": sectors}
    return {"drive": {"disk": disk}}


def model_error(system: System, requests: Requests, answers: Answers) -> float:
    """Returns the error of a drive for a trace: the demerits of all requests, of reads and of writes."""
    times = SimulatedDevice(system).ask(requests).response_ns
    parts = [demerit(answers.response_ns, times)]
    for kind in (READ, WRITE):
        own = requests.kinds == kind
        if own.sum() > 20:
            parts.append(0.5 * float(own.mean()) * demerit(answers.response_ns[own], times[own]))
    return float(sum(parts))


def learn(sheet: System, requests: Requests, answers: Answers, seed: int = 1) -> System:
    """Fits the data sheet's drive to the trace."""
    random = np.random.default_rng(seed)
    start = np.array([0.0] * len(CURVE_AT) + [0.0, *np.log([2e5, 2e5, 4e5, 4e5, 6e5]), 3e5, *np.log([30.0, 30.0])])

    def search(buffer: Buffer, first: list[Floats], population: int, generations: int) -> list[Floats]:
        points = evolve(
            RANGES,
            lambda theta: model_error(with_values(sheet, theta, buffer), requests, answers),
            random,
            first,
            population,
            generations,
        )
        return [theta for _, theta in points]

    buffer: Buffer = BUFFERS[0]
    points = search(buffer, [start], 40, 8)
    for _ in range(2):
        scores = [model_error(with_values(sheet, points[0], candidate), requests, answers) for candidate in BUFFERS]
        buffer = BUFFERS[int(np.argmin(scores))]
        points = search(buffer, points[:10], 40, 10)
    return with_values(sheet, points[0], buffer)
