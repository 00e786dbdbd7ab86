"""Weighs one phase without an earlier one to compare it with, as excerpts show: what its latency, rate, requests in
flight and utilization say together.

The weights are logarithms of likelihood ratios, and small: an excerpt seldom decides. They come from queueing theory
and from what devices of each kind do in order; none is fitted to logs.
"""

from __future__ import annotations

import math
import re

from headstack.diagnosis.judging.suspects.facts import Facts
from headstack.diagnosis.judging.suspects.flatness import round_distance
from headstack.diagnosis.judging.suspects.phases import Phase
from headstack.diagnosis.judging.verdict import Suspect

DEEP = 8.0
"""Requests in flight from which a host waits for a device and not a device for its host."""
QUEUE_MAX = 3.5
"""Maximum weight of a depth."""
TRANSFER_BYTES_PER_S = 50e6
"""Bytes per second of a single request from which its latency is the transfer: the media rate of disks is 80 to 280
MB/s, so half a second of 50 MB covers a seek for each 500 kB too."""
LARGE_BYTES = 131072.0
"""Mean size from which transfer matters: 1 ms at 130 MB/s, against 4 to 12 ms of seek and rotation."""
USED = 0.5
"""Utilization below which neither a limit nor a queue at the device is the cause of its latency: either keeps requests
in it all the time."""
BURST = 4.0
"""Requests in flight while the device has any, from which they come in bursts: the flusher writes dirty pages every
5 s, and each request of a burst waits for those before it."""
SERVICE_S = 0.015
"""Time per request that a disk in order takes at most on average: full seek stroke 15 to 20 ms, 33 % of it on
average, and half a revolution of 5,400 a minute."""
SERIAL = (0.5, 1.05)
"""Requests of one kind in flight if a program sends one after another and spends less time than the device."""
SERIAL_SHARE = 0.3
"""Share of the requests from which one kind of them stands for the load."""
SLOWEST_S = 0.02
"""Latency of a lone request above which it is not in order on any device."""
STALLED_S, RARE, FEW = 0.1, 20.0, 4.0
"""Latency, rate and requests in flight of requests that wait although little is asked: no device in order takes that
long for one of a few requests."""
NETWORK = re.compile(r"(vd|xvd|rbd|drbd|nbd)")
"""Names of devices behind a network or a hypervisor, where others share what serves them."""
EXACT, COUNTED = 0.0005, 1000.0
"""Distance of the rate of a few intervals from a round number, and requests of an interval from which it means
something: 1 in 75 rates is so near to one of two digits, and limits of cloud volumes show whole numbers."""
ALIKE_SHARE, ALIKE_RATIO, OUTLIER = 0.5, 1.5, 3.0
"""Share of the other disks with about the same latency, within this ratio, from which something common is the cause;
ratio to the median of the others from which the disk is not like them."""
DISCARDS_PER_S, DISCARDS_SHARE = 1.0, 0.1
"""Discards from which they are work of their own: file systems without them send none."""


def by_level(facts: Facts) -> dict[Suspect, float]:
    """Returns the weights of all suspects."""
    now = facts.now
    weights: dict[Suspect, float] = {}
    parts = [by_latency(now.latency_s), by_depth(now.in_flight)]
    if facts.slower is None:
        # A comparison at equal load knows more than one phase shows.
        parts += _of_excerpt(facts)
    for part in parts:
        for name, weight in part.items():
            weights[name] = weights.get(name, 0.0) + weight
    return weights


def _of_excerpt(facts: Facts) -> list[dict[Suspect, float]]:
    now = facts.now
    return [
        _by_use(now),
        _by_transfer(now),
        _by_serial_requests(now),
        _by_stall(now, facts.disk),
        _by_round_rate(now),
        _by_discards(now),
        _by_peers(facts),
    ]


def by_latency(latency_s: float) -> dict[Suspect, float]:
    """Weighs a latency by what devices do: flash answers in 0.05 to 0.3 ms, volumes behind a network in 0.3 to 1 ms,
    disks in 4 to 20 ms."""
    if latency_s <= 3e-4:
        return {"device": -4.0, "neighbour": -2.0}
    return {"device": -2.0} if latency_s <= 1e-3 else {}


def by_depth(in_flight: float) -> dict[Suspect, float]:
    """Weighs the mean number of requests in flight."""
    if in_flight < 1.0:
        # Who asks one request at a time waits for the host, or asks little.
        return {"queue": -3.0, "host": 0.5, "none": 0.5}
    if in_flight >= DEEP:
        # By Little's law latency is the depth over the rate: any device has this queue at this depth, and a slow one
        # explains the less of it the deeper it is.
        return {"queue": min(1.0 + math.log(in_flight / DEEP), QUEUE_MAX), "none": -1.0}
    return {}


def _by_use(now: Phase) -> dict[Suspect, float]:
    """Weighs the utilization: requests at a device with idle time wait for each other only in bursts."""
    if not now.busy < USED or not now.busy > 0:
        return {}
    weights: dict[Suspect, float] = {"limit": -1.5, "queue": -1.5}
    if now.in_flight / now.busy >= BURST and now.busy / now.rate <= SERVICE_S:
        weights |= {"none": 1.0, "host": 1.0, "device": -1.0}
    return weights


def _by_transfer(now: Phase) -> dict[Suspect, float]:
    """Weighs large requests one after another, whose latency is the transfer of their bytes."""
    size = now.bytes_per_s / now.rate
    if size >= LARGE_BYTES and now.in_flight < 2.0 and size / now.latency_s >= TRANSFER_BYTES_PER_S:
        return {"device": -1.5, "none": 1.0, "limit": -0.5}
    return {}


def _by_serial_requests(now: Phase) -> dict[Suspect, float]:
    """Weighs a program that sends one request after another: the device is never asked for more."""
    for kind, share in (("read", now.read_share), ("write", 1.0 - now.read_share)):
        latency_s = now.kind_latency_s(kind)
        in_flight = now.per_s(f"{kind}_wait_s")
        if share >= SERIAL_SHARE and SERIAL[0] <= in_flight <= SERIAL[1] and latency_s <= SLOWEST_S:
            return {"host": 1.0, "queue": -1.0, "limit": -0.5}
    return {}


def _by_stall(now: Phase, disk: str) -> dict[Suspect, float]:
    """Weighs long latencies of a few requests: neither depth nor rate explains them."""
    if not (now.latency_s >= STALLED_S and now.rate <= RARE and now.in_flight <= FEW):
        return {}
    shared: dict[Suspect, float] = {"neighbour": 0.7} if NETWORK.match(disk) else {}
    return {"none": -3.0, "host": -1.0, "queue": -1.5, **shared}


def _by_round_rate(now: Phase) -> dict[Suspect, float]:
    """Weighs a rate that is a round number to the last digit, in too few intervals to see whether it is flat."""
    is_counted = now.total("requests") / now.intervals >= COUNTED
    if is_counted and now.in_flight >= 1.0 and round_distance(now.rate) <= EXACT:
        return {"limit": 2.5}
    return {}


def _by_discards(now: Phase) -> dict[Suspect, float]:
    """Weighs discards, which stop other requests on some SSDs."""
    discards = now.per_s("discards")
    if discards >= DISCARDS_PER_S and discards >= DISCARDS_SHARE * now.rate:
        return {"neighbour": 1.5}
    return {}


def _by_peers(facts: Facts) -> dict[Suspect, float]:
    """Weighs the latency relative to those of the other disks of the host in the same excerpt."""
    others = [other for other in facts.others if other.latency_s > 0]
    if len(others) < 2 or not facts.now.latency_s > 0:
        return {}
    latencies = sorted(other.latency_s for other in others)
    if sum(ALIKE_RATIO * latency >= facts.now.latency_s for latency in latencies) >= ALIKE_SHARE * len(latencies):
        # Devices do not fail together; what they share does.
        return {"device": -2.0}
    similar = [other for other in others if abs(math.log(other.rate / facts.now.rate)) <= math.log(2.0)]
    if len(similar) >= 2 and facts.now.latency_s >= OUTLIER * latencies[len(latencies) // 2]:
        return {"device": 1.5, "none": -1.0, "host": -1.0}
    return {}
