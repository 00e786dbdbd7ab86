"""``weigh``: how likely each suspect is, from the phase of a disk in question and the phase before it.

Each suspect predicts what rate, latency and requests in flight do. The weights below are logarithms of likelihood
ratios of these predictions: from queueing theory where it decides (an unchanged device needs more requests in flight
for more latency), else from how often a pattern occurs without the suspect. They were chosen with the logs of
``benches/judging_suspects.py`` in view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from headstack.diagnosis.judging.suspects.evidence import EVIDENCE, WOULD_CHANGE
from headstack.diagnosis.judging.suspects.facts import ALIKE, Change, Facts, change_of, is_scan
from headstack.diagnosis.judging.suspects.flatness import flatness, limit_share
from headstack.diagnosis.judging.suspects.level import DEEP, NETWORK, by_depth, by_level
from headstack.diagnosis.judging.suspects.phases import Phase
from headstack.diagnosis.judging.suspects.statements import Statement, evidence_of
from headstack.diagnosis.judging.suspects.thresholds import AT_LIMIT, BELOW_LIMIT, CPU_FULL, PRESSURE, STEAL
from headstack.diagnosis.judging.verdict import SUSPECTS, Suspect, Weighed

LESS_ASKED = 0.5
"""Standard deviation of the logarithm by which the demand itself may have fallen meanwhile."""
SPAN = math.log(300.0)
"""Range of slowdowns that occur; a suspect that allows any of them spreads its likelihood over it."""
WIDTHS = ((0.02, 1.1), (0.05, -1.3), (math.inf, -3.0))
"""Log-likelihood ratio of a limit by the relative deviation of the rate: a limiter's is below 2 % in nine of ten logs
and above 5 % in one of fifty; a saturated device's is 2 to 15 %, below 2 % in three of ten."""
FLAT = 0.002
"""Deviation of the rate of a load that is even by itself."""
CHANCE, BY_CHANCE = (0.2, 1.2), -2.0
"""Range of ``Flatness.by_chance`` of a device or of clients, and the log-likelihood ratio of a limit within it: 1 in 10
against 7 in 10."""
IS_ROUND, NOT_ROUND = 2.0, -1.1
"""Log-likelihood ratios of round rates: seven of ten limits are round (of the cloud volumes and instances of the
catalogue), and 13 of 100 rates of devices are so by chance."""
BY_NAME = (-0.7, 1.0)
"""Log-odds of a limit, if none is stated, of other devices and of those behind a network or a hypervisor, where limits
are usual."""
SPINNING_S = 0.002
"""Latency below which a device that is hardly asked is no spinning disk."""
READS_MIN = 0.3
"""Share of reads from which the latency of reads shows how many requests are served at once."""
PARALLEL = ((4.0, 1.0), (8.0, 0.0), (math.inf, -1.5))
"""Log-likelihood ratio of a limit by the requests that a device without moving parts serves at once, which is its rate
times its latency without a queue: flash reaches its maximum rate with all dies at work, 8 of them and more, and a limit
below that rate binds with fewer."""
COINCIDENCE = -4.0
"""Log-likelihood that a scan starts by chance in the minute in which something else changes: 1 in 50."""
WAITING = 2.0
"""Requests in flight from which some of them wait."""
HIDDEN = -2.0
"""Log-likelihood of a neighbour that shows no sign in the columns of the disk itself: most scrubs, rebuilds and backups
read through the same device; those behind a network volume or an array do not."""


def weigh(facts: Facts) -> tuple[Weighed, ...]:
    """Returns all suspects, the likeliest first."""
    change = None if facts.before is None else change_of(facts.before, facts.now)
    weights = dict.fromkeys(SUSPECTS, 0.0)
    if change is None:
        weights |= by_level(facts)
    elif facts.before is not None and facts.before.in_flight >= DEEP:
        # The earlier phase waited as well, so it does not show the device in order.
        weights |= by_depth(facts.now.in_flight)
    for weigher in (_by_change, _by_reference, _by_limit, _by_background, _by_host):
        for name, weight in weigher(facts, change).items():
            weights[name] += weight

    def evidence(name: Suspect) -> str:
        stated = evidence_of(name, facts.statements)
        return f"{stated} ({EVIDENCE[name](facts, change)})" if stated else EVIDENCE[name](facts, change)

    return weigh_with(weights, facts.statements, evidence)


def weigh_with(
    weights: Mapping[Suspect, float], statements: Sequence[Statement], evidence: Callable[[Suspect], str]
) -> tuple[Weighed, ...]:
    """Returns all suspects by weights and statements, the likeliest first."""
    summed = {name: weights.get(name, 0.0) + sum(of.weights.get(name, 0.0) for of in statements) for name in SUSPECTS}
    top = max(summed.values())
    shares = {name: math.exp(weight - top) for name, weight in summed.items()}
    total = sum(shares.values())
    ordered = sorted(SUSPECTS, key=lambda name: -shares[name])
    return tuple(Weighed(name, round(shares[name] / total, 4), evidence(name), WOULD_CHANGE[name]) for name in ordered)


def _normal(distance: float, deviation: float) -> float:
    """Returns the log-density of a normal distribution, in units of its top."""
    return -0.5 * (distance / deviation) ** 2


def _by_change(facts: Facts, change: Change | None) -> dict[Suspect, float]:
    """Weighs what rate and latency did from one phase to the next."""
    if change is None:
        return {}
    rate, latency, wide = change.rate, change.latency, change.deviation
    # A suspect that slows requests allows any slowdown; the height of the density relative to a normal one of the same
    # area prevents that small changes count for it.
    spread = math.log(wide * math.sqrt(2.0 * math.pi) / SPAN)
    slower = spread if latency > 0 else spread + _normal(latency, wide)
    # With open clients a slower device leaves the rate, with waiting ones the rate falls at most as latency grows.
    less = min(rate + max(latency, 0.0), 0.0)
    same = _normal(max(rate, 0.0), ALIKE) + _normal(less, LESS_ASKED)
    # More requests are in flight, and the rate has grown enough for that.
    more = _normal(min(rate - growth_needed(facts.before, latency), 0.0), ALIKE)
    more += _normal(min(change.in_flight - math.log(1.3), 0.0), 0.2)
    calm = max(latency, 0.0)
    # Fewer requests leave the latency of the device, or shorten it.
    fewer = _normal(max(rate + 0.15, 0.0), ALIKE) + _normal(calm, wide)
    # At a limit requests wait for it: one at least all the time, unless what holds them is above the device.
    waits = slower + _normal(min(facts.now.in_flight - 1.0, 0.0), 0.2)
    limited = max(waits, _normal(calm, wide) + _normal(max(rate, 0.0), ALIKE))
    assert facts.before is not None
    # A scan adds requests of its own.
    neighbour = spread if is_scan(facts.before, facts.now) else slower + same + HIDDEN
    return {
        "device": slower + same,
        "neighbour": neighbour,
        "queue": slower + more,
        "limit": limited,
        "host": fewer,
        "none": _normal(latency, math.hypot(wide, ALIKE)) + _normal(min(rate, 0.0), 1.0),
    }


def growth_needed(before: Phase | None, latency: float) -> float:
    """Returns the growth of the logarithm of the rate that a queue needs for this growth of the logarithm of latency.

    A single server answers in S / (1 - u) at a utilization u, so latency grows by a factor k at the rate of a
    utilization of 1 - (1 - u) / k. Arrivals in bursts wait at a lower rate, so half of that growth is needed. A device
    that had reached its maximum rate needs none. Writes are acknowledged by a cache until it is full, so they wait as
    soon as the rate exceeds what the device drains, by any growth.
    """
    assert before is not None
    if before.in_flight >= WAITING or latency <= 0:
        return 0.0
    if before.read_share < READS_MIN:
        return ALIKE
    waiting = before.in_flight / (1.0 + before.in_flight)
    used = min(before.busy, 0.99) if math.isfinite(before.busy) and before.busy > 0 else waiting
    return 0.5 * math.log((1.0 - (1.0 - used) / math.exp(latency)) / used)


def _by_reference(facts: Facts, change: Change | None) -> dict[Suspect, float]:
    """Weighs an alarm of the comparison at equal load, which neither a queue nor a host explains."""
    if facts.slower is None:
        return {}
    return {"queue": -4.0, "host": -6.0, "none": -6.0}


def _by_limit(facts: Facts, change: Change | None) -> dict[Suspect, float]:
    """Weighs how near the rates are to a limit, and how flat."""
    now, limit = facts.now, facts.limit
    stated = limit_share(now, limit)
    if stated is not None:
        if stated >= AT_LIMIT:
            # A device that happens to stop within 3 % of a limit is a chance of 1 in 30 over the range of a factor 3.
            return {"limit": 3.5 if now.in_flight < WAITING else 6.0, "none": -3.0}
        if stated < BELOW_LIMIT:
            return {"limit": -8.0}
        return {}
    by_name = BY_NAME[NETWORK.match(facts.disk) is not None]
    seen = flatness(now)
    if seen is None:
        return {"limit": by_name}
    width = by_width(seen.deviation)
    # A limiter's clock does not vary as the chance of arrivals and service does.
    chance = BY_CHANCE if CHANCE[0] <= seen.by_chance <= CHANCE[1] else 0.0
    rounded = IS_ROUND if seen.is_round else NOT_ROUND
    was = None if facts.before is None else flatness(facts.before)
    if was is not None and was.deviation <= 2.0 * seen.deviation + FLAT:
        # The load was as even before the trouble; only a new round rate is evidence.
        width = min(width, 0.0)
        rounded = rounded if not was.is_round else min(rounded, 0.0)
    by_rate = width + chance + rounded
    return {"limit": by_name + by_rate + _by_parallelism(facts)}


def by_width(deviation: float) -> float:
    """Returns the log-likelihood ratio of a limit by the relative deviation of the rate; 0 if that is unknown."""
    return next((weight for bound, weight in WIDTHS if deviation <= bound), 0.0)


def _by_parallelism(facts: Facts) -> float:
    """Weighs how many requests are served at once at the present rate."""
    now, before = facts.now, facts.before
    if before is None or now.in_flight < WAITING or before.in_flight >= WAITING:
        return 0.0
    # Writes are acknowledged by a cache, which hides the device.
    read_s = before.kind_latency_s("read")
    if not (read_s < SPINNING_S and now.read_share >= READS_MIN):
        return 0.0
    at_once = now.rate * read_s
    return next(weight for bound, weight in PARALLEL if at_once <= bound)


def _by_background(facts: Facts, change: Change | None) -> dict[Suspect, float]:
    """Weighs signs of work that is not the host's own: scans, discards, episodes, and disks that slow down together."""
    weights: dict[Suspect, float] = {}
    if facts.before is not None and is_scan(facts.before, facts.now):
        weights |= dict.fromkeys(("device", "limit", "queue", "host", "none"), COINCIDENCE)
    if facts.before is not None and facts.now.per_s("discards") > 1.0 + 2.0 * facts.before.per_s("discards"):
        weights["neighbour"] = weights.get("neighbour", 0.0) + 3.0
    if facts.has_ended or facts.episodes > 1:
        # A device seldom recovers by itself; background work ends.
        weights["neighbour"] = weights.get("neighbour", 0.0) + (2.5 if facts.episodes > 1 else 1.5)
        weights["device"] = weights.get("device", 0.0) - 1.5
    if facts.together > 0.5:
        # Devices do not fail together; what they share does.
        weights["neighbour"] = weights.get("neighbour", 0.0) + 1.0
        weights["device"] = weights.get("device", 0.0) - 4.0
    return weights


def _by_host(facts: Facts, change: Change | None) -> dict[Suspect, float]:
    """Weighs the processors and the stalls of the host, if the source has them."""
    now = facts.now
    idle, steal, stalled = (now.share(name) for name in ("cpu_idle_s", "cpu_steal_s", "io_pressure_s"))
    weights: dict[Suspect, float] = {**host_weights(idle, steal)}
    if now.in_flight >= DEEP:
        # A host that is late does not leave requests waiting at the device.
        weights["host"] = weights.get("host", 0.0) - 3.0
    if math.isfinite(stalled) and now.in_flight < 1.0:
        # Programs wait for I/O that the device has not: something in between holds it.
        weights["limit"] = 2.0 if stalled > PRESSURE else -1.0
    return weights


def host_weights(idle: float, steal: float) -> dict[Suspect, float]:
    """Weighs the idle share of the processors and that taken by other guests; NaN if unknown."""
    weights: dict[Suspect, float] = {}
    if math.isfinite(idle):
        weights["host"] = 2.5 if idle < CPU_FULL else -1.5
    if steal > STEAL:
        weights["host"] = weights.get("host", 0.0) + 2.5
    return weights
