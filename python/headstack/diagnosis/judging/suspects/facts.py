"""``Facts``: what is known of a disk's requests, and the changes from one phase to the next."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headstack.diagnosis.judging.suspects.limits import Limit
from headstack.diagnosis.judging.suspects.phases import Phase
from headstack.diagnosis.judging.suspects.statements import Statement

ALIKE = 0.1
"""Standard deviation of the logarithm of the latency of a healthy disk between two phases of one load: the tolerance of
1.15 of the comparison with its own past, as one and a half deviations."""
BY_SIZE, BY_SHARE = 0.5, 0.7
"""Deviation per change of the logarithm of the size and of the share of reads: latency grows with an exponent between 0
(all setup) and 1 (all transfer), and reads and writes differ by about a factor of 2."""
SCAN_BYTES, SCAN_GROWTH = 65536.0, 2.0
"""Mean size of reads, and growth of bytes read, from which a scan such as a scrub, rebuild or backup is seen."""


@dataclass(frozen=True)
class Facts:
    """The phase of a disk in question, the one that it is compared with, and their surroundings."""

    disk: str
    now: Phase
    before: Phase | None = None
    limit: Limit | None = None
    """Its stated limit."""
    slower: float | None = None
    """The logarithm of latency over that expected from peers, its past or a twin at equal load, if that is an alarm."""
    together: float = 0.0
    """Share of the other disks of its host that slowed down in the same phase."""
    has_ended: bool = False
    """Whether the phase in question is over."""
    episodes: int = 1
    """Number of phases like the one in question, with better ones between."""
    statements: tuple[Statement, ...] = ()
    """Facts of the inputs about it beside rates and latencies."""
    others: tuple[Phase, ...] = ()
    """The last phases of the other disks of its host."""


@dataclass
class Change:
    """Logarithms of the changes from the phase before."""

    rate: float
    latency: float
    in_flight: float
    deviation: float
    """Standard deviation of the change of latency of a healthy disk."""


def change_of(before: Phase, now: Phase) -> Change:
    """Returns the changes between two phases. Latencies are compared by kind, as more writes would change the mean."""
    changes, waits, sizes = [], [], []
    for kind in ("read", "write"):
        was_s, now_s = before.kind_latency_s(kind), now.kind_latency_s(kind)
        if was_s > 0 and now_s > 0:
            changes.append(math.log(now_s / was_s))
            waits.append(now.total(f"{kind}_wait_s"))
            sizes.append(log_ratio(now.size_bytes(kind), before.size_bytes(kind)))
    if changes:
        latency = sum(of * wait for of, wait in zip(changes, waits, strict=True)) / sum(waits)
        size, share = max(map(abs, sizes)), 0.0
    else:
        latency = log_ratio(now.latency_s, before.latency_s)
        size = abs(log_ratio(now.bytes_per_s / now.rate, before.bytes_per_s / before.rate))
        share = abs(now.read_share - before.read_share) if math.isfinite(now.read_share - before.read_share) else 0.0
    return Change(
        log_ratio(now.rate, before.rate),
        latency,
        log_ratio(now.in_flight, before.in_flight),
        math.hypot(ALIKE, BY_SIZE * size, BY_SHARE * share),
    )


def log_ratio(value: float, other: float) -> float:
    return math.log(value / other) if value > 0 and other > 0 else 0.0


def is_scan(before: Phase, now: Phase) -> bool:
    """Whether large reads were added."""
    usual_per_s, now_per_s = before.per_s("read_bytes"), now.per_s("read_bytes")
    size, usual = now.size_bytes("read"), before.size_bytes("read")
    if not now_per_s > 0 or not size >= SCAN_BYTES:
        return False
    grown = not usual_per_s > 0 or now_per_s > SCAN_GROWTH * usual_per_s
    larger = not math.isfinite(usual) or size > SCAN_GROWTH * usual
    return grown and larger
