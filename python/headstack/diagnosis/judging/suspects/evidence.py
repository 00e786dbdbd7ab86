"""The evidence for each suspect, in words."""

from __future__ import annotations

import math
from collections.abc import Callable

from headstack import _native
from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.suspects.facts import ALIKE, Change, Facts, is_scan
from headstack.diagnosis.judging.suspects.flatness import flatness, limit_share, round_distance
from headstack.diagnosis.judging.suspects.level import BURST, EXACT, USED
from headstack.diagnosis.judging.suspects.phases import Phase
from headstack.diagnosis.judging.verdict import Suspect


def _times(facts: Facts, change: Change | None) -> str:
    now, before = facts.now, facts.before
    if before is None or change is None:
        if not math.isfinite(now.latency_s):
            return f"{now.rate:,.0f} IOPS; this input has no latencies"
        return f"requests take {time_text(now.latency_s)} at {now.rate:,.0f} IOPS with {now.in_flight:.2g} in flight"
    return (
        f"latency {time_text(before.latency_s)} before and {time_text(now.latency_s)} now, {before.rate:,.0f} and "
        f"{now.rate:,.0f} IOPS, {before.in_flight:.2g} and {now.in_flight:.2g} in flight"
    )


def _of_device(facts: Facts, change: Change | None) -> str:
    if change is None:
        return f"{_times(facts, change)}; without an earlier phase a slow device looks like a loaded one"
    if facts.slower is not None:
        return f"at equal load requests take {math.exp(facts.slower):.2g} times as long as expected"
    at = "no higher rate" if change.rate < ALIKE else f"{math.exp(change.rate):.2g} times the rate"
    longer = f"each request takes {math.exp(change.latency):.2g} times as long"
    return f"{longer} at {at} ({_times(facts, change)})"


def _of_limit(facts: Facts, change: Change | None) -> str:
    now, limit = facts.now, facts.limit
    share = limit_share(now, limit)
    if limit is not None and share is not None:
        where = f" of {limit.name}" if limit.name else ""
        rates = f"{now.rate:,.0f} IOPS and {now.bytes_per_s / 1e6:,.0f} MB/s"
        return f"{rates} are {share:.0%} of the limit{where} ({limit})"
    seen = flatness(now)
    if seen is None:
        exact = ", a round number to the last digit" if round_distance(now.rate) <= EXACT else ""
        return f"{now.rate:,.0f} IOPS{exact}; too few intervals to see whether the rate is flat"
    rounded = "a round number" if seen.is_round else "no round number"
    return f"{now.rate:,.0f} IOPS within {seen.deviation:.1%}, {rounded}{_with_in_flight(now)}"


def _with_in_flight(now: Phase) -> str:
    return f", with {now.in_flight:.2g} requests in flight" if math.isfinite(now.in_flight) else ""


def _of_queue(facts: Facts, change: Change | None) -> str:
    now = facts.now
    if not math.isfinite(now.in_flight):
        return _times(facts, change)
    waits = f"wait {time_text(now.latency_s)} by Little's law"
    each = f"{now.in_flight:.3g} requests in flight at {now.rate:,.0f} IOPS {waits}"
    if change is None:
        return each
    more = f"{math.exp(change.in_flight):.2g} times as many in flight as before"
    return f"{each}; {more}, at {math.exp(change.rate):.2g} times the rate"


def _of_host(facts: Facts, change: Change | None) -> str:
    now = facts.now
    idle, steal = now.share("cpu_idle_s"), now.share("cpu_steal_s")
    said = [f"the disk has {now.in_flight:.2g} requests in flight and answers in {time_text(now.latency_s)}"]
    if not math.isfinite(now.in_flight):
        said = [_times(facts, change)]
    elif 0 < now.busy < USED and now.in_flight / now.busy >= BURST:
        said.append(f"it is {now.busy:.0%} busy, so they come in bursts of {now.in_flight / now.busy:.0f}")
    if change is not None:
        said.append(
            f"{math.exp(change.rate):.2g} times the rate of before at {math.exp(change.latency):.2g} times the latency"
        )
    if math.isfinite(idle):
        said.append(f"processors {idle:.0%} idle" + (f", {steal:.0%} stolen" if steal > 0 else ""))
    return "; ".join(said)


def _of_neighbour(facts: Facts, change: Change | None) -> str:
    now = facts.now
    signs = []
    if facts.before is not None and is_scan(facts.before, now):
        size = _native.format_bytes(round(now.size_bytes("read")))
        signs.append(f"reads of {size} at {now.per_s('read_bytes') / 1e6:,.0f} MB/s were added")
    if now.per_s("discards") > 1.0:
        signs.append(f"{now.per_s('discards'):,.0f} discards a second")
    if facts.episodes > 1:
        signs.append(f"{facts.episodes} episodes with better times between")
    elif facts.has_ended:
        signs.append("it ended without help")
    if facts.together > 0.5:
        signs.append(f"{facts.together:.0%} of the other disks slowed down at the same time")
    return "; ".join(signs) or "no sign of background work in these columns"


def _of_none(facts: Facts, change: Change | None) -> str:
    return f"nothing that latency, rate and queue would need a cause for ({_times(facts, change)})"


EVIDENCE: dict[Suspect, Callable[[Facts, Change | None], str]] = {
    "device": _of_device,
    "limit": _of_limit,
    "queue": _of_queue,
    "host": _of_host,
    "neighbour": _of_neighbour,
    "none": _of_none,
}
WOULD_CHANGE: dict[Suspect, str] = {
    "device": "the same latency of other disks of this model under this load, or fast answers when it has little to do",
    "limit": "a rate above this one, or the limit in force (--limits DISK=RATE/s)",
    "queue": "a lower maximum rate than before at the same mix",
    "host": "idle processors and programs that do not wait",
    "neighbour": "a quiet machine and back end at the same time",
    "none": "a latency that your program calls too long",
}
