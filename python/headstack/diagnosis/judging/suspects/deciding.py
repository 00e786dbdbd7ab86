"""``decided``: the verdict on a disk, once it is known what else may make its requests slow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from headstack.catalogue.prices import PriceBook
from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.steps import REQUESTS_MIN, TOO_SHORT
from headstack.diagnosis.judging.suspects.examining import Examined
from headstack.diagnosis.judging.suspects.facts import Facts, change_of
from headstack.diagnosis.judging.suspects.flatness import limit_share
from headstack.diagnosis.judging.suspects.level import DEEP
from headstack.diagnosis.judging.suspects.statements import Statement, evidence_of
from headstack.diagnosis.judging.suspects.weighing import weigh_with
from headstack.diagnosis.judging.verdict import FINE, SLOW, UNDECIDED, Kind, Slower, Suspect, Verdict, Weighed

DECIDED, ACCUSED = 0.65, 0.75
"""Likelihoods from which a suspect is named, and from which a device is called slow. docs/judge.md has the share of
right ones among simulated logs, with which these two were chosen."""
OF_EXCERPT = 0.8
"""Likelihood from which a suspect is named for fewer intervals than ``ENOUGH``, or for statements alone: the two above
were chosen with longer logs."""
ENOUGH = 30.0
"""Intervals of either phase from which a device without peers and a long past may be called slow: a new access pattern
looks the same for a while, and few logs of half an hour show one."""
SLOWER = math.log(1.5)
"""Growth of latency that this takes; the comparison at equal load needs less."""
DECISIVE = 2.5
"""Weight of a statement that names a suspect for a single phase."""
GRAVE, GRAVE_LIKELIHOOD = math.log(2.0), 0.9
"""Growth of latency, or loss of rate, and likelihood, from which another suspect is named for a disk that is as fast as
expected at its load: loads change as much from night to day, and no action is needed."""
KIND: dict[Suspect, Kind] = {
    "device": SLOW,
    "limit": "limit",
    "queue": "queue",
    "host": "host",
    "neighbour": "neighbour",
}
NAMES: dict[Suspect, str] = {
    "device": "a slow device",
    "limit": "a limit",
    "queue": "the queue",
    "host": "the host",
    "neighbour": "other work on the device",
    "none": "no trouble",
}
TITLES: dict[Kind, str] = {
    SLOW: "The device itself is slow",
    "limit": "At a limit",
    "queue": "More requests are in flight than before, and the device is in order",
    "host": "The host sends fewer requests, and the device is in order",
    "neighbour": "Other work uses the device",
}
TITLES_ALONE: dict[Kind, str] = {
    "queue": "More requests wait than the device serves at once, and the device is in order",
    "host": "The device waits for its host, and is in order",
}
"""Titles without an earlier phase."""
NEEDED = (
    "a verdict on the disk itself needs two hours with its peers, a day of its own past, or 30 intervals before and "
    "after a change"
)
NEXT: dict[Kind, str] = {
    SLOW: "Run headstack inspect, and measure it alone; a new access pattern looks the same.",
    "limit": "Raise the limit, or reduce the load: larger requests, a cache, a second volume.",
    "queue": "Reduce the requests in flight, or find a faster device for this load with headstack choose.",
    "host": "Look at processors, steal, throttling of dirty pages, and locks: the device waits for requests.",
    "neighbour": "Look for a scrub, rebuild, backup or trim at that time; move it, or lower its priority.",
}


def decided(verdict: Verdict, examined: Examined | None, statements: Sequence[Statement] = ()) -> Verdict:
    """Returns the verdict with its suspects, of the kind that they show. A disk without requests has only the
    statements about it."""
    if examined is None:
        own = [of for of in statements if of.concerns(verdict.disk) and not of.is_for_all]
        if own:
            return replace(_of_statements(verdict.disk, own), host=verdict.host, model=verdict.model)
        is_idle = verdict.why.lower().startswith(TOO_SHORT)
        return replace(verdict, why="No requests were counted in this input.") if is_idle else verdict
    verdict = replace(verdict, suspects=examined.weighed, rests_on=examined.rests_on)
    first = examined.weighed[0]
    kind = KIND.get(first.suspect)
    is_excerpt = min(of.intervals for of in (examined.facts.now, examined.facts.before) if of is not None) < ENOUGH
    needed = OF_EXCERPT if is_excerpt else ACCUSED if kind == SLOW else DECIDED
    if verdict.kind == SLOW and verdict.method == "twin":
        # A drive alone with a constant service time is as even as a limit, and one rate in eight is round by chance.
        needed = GRAVE_LIKELIHOOD
    is_decided = kind is not None and first.likelihood >= needed and kind != verdict.kind
    if kind is None or not is_decided or not _may_change(verdict, kind, examined.facts, first):
        return _undecided(verdict, examined) if verdict.kind == UNDECIDED else verdict
    evidence = first.evidence[:1].upper() + first.evidence[1:]
    ended = f" It ended after {_minutes(examined.facts.now.length_s)}." if examined.facts.has_ended else ""
    return replace(
        verdict,
        kind=kind,
        why=f"{_title(kind, examined.facts)}. {evidence}.{_itself(examined.facts, kind)}{ended}",
        next_step=NEXT[kind] if kind != "limit" else f"{NEXT[kind]}{_price(examined.facts)}",
        since_s=examined.facts.now.start_s if examined.facts.before is not None else verdict.since_s,
        slower=_slower(examined.facts) if kind == SLOW else None,
        confidence=first.likelihood,
        cause=None,
        stands=False,
    )


def stated(statements: Sequence[Statement], judged: Sequence[str]) -> list[Verdict]:
    """Returns verdicts on the devices of which only statements are known: none has rates, so none is called slow."""
    if judged and all(of.is_for_all for of in statements):
        return []
    by_disk: dict[str, list[Statement]] = {}
    for of in statements:
        if not any(of.concerns(disk) for disk in judged):
            by_disk.setdefault(of.disk, []).append(of)
    return [_of_statements(disk, of) for disk, of in by_disk.items()]


def _of_statements(disk: str, statements: Sequence[Statement]) -> Verdict:
    said = ". ".join(dict.fromkeys(of.evidence[:1].upper() + of.evidence[1:] for of in statements))
    needed = "; ".join(dict.fromkeys(of.needed for of in statements if of.needed))
    sources = ", ".join(dict.fromkeys(of.source for of in statements))
    weighed = weigh_with({}, statements, lambda name: evidence_of(name, statements) or "nothing in this input")
    first = weighed[0]
    kind = KIND.get(first.suspect, UNDECIDED)
    is_decided = kind not in (SLOW, UNDECIDED) and first.likelihood >= OF_EXCERPT
    likeliest = f"Likeliest: {NAMES[first.suspect]} ({first.likelihood:.0%}). " if first.likelihood >= 0.5 else ""
    return Verdict(
        host="",
        disk=disk,
        kind=kind if is_decided else UNDECIDED,
        why=f"{TITLES[kind]}. {said}." if is_decided else f"{likeliest}{said}.",
        next_step=NEXT[kind] if is_decided else f"For a verdict give {needed}.",
        confidence=first.likelihood if is_decided else None,
        suspects=weighed,
        rests_on=f"{sources} only",
    )


def _title(kind: Kind, facts: Facts) -> str:
    return TITLES_ALONE.get(kind, TITLES[kind]) if facts.before is None else TITLES[kind]


def _undecided(verdict: Verdict, examined: Examined) -> Verdict:
    """Returns an undecided verdict that leads with its likeliest suspects, and states what an excerpt lacks."""
    (first, second, *_), why = examined.weighed, verdict.why
    is_excerpt = why.lower().startswith(TOO_SHORT)
    if is_excerpt:
        requests = examined.facts.now.total("requests")
        counted = f", {requests:,.0f} requests" if math.isfinite(requests) else ""
        why = f"This rests on {examined.rests_on}{counted}; {NEEDED}."
    if first.likelihood >= 0.5:
        why = f"Likeliest: {NAMES[first.suspect]} ({first.likelihood:.0%}): {first.evidence}. {why}"
    elif is_excerpt:
        between = (
            f"{NAMES[first.suspect]} ({first.likelihood:.0%}) or {NAMES[second.suspect]} ({second.likelihood:.0%})"
        )
        why = f"Either {between}: {first.evidence}. {why}"
    return replace(verdict, why=why)


def _may_change(verdict: Verdict, kind: Kind, facts: Facts, first: Weighed) -> bool:
    """Whether the suspects may change a verdict."""
    now, before = facts.now, facts.before
    change = None if before is None else change_of(before, now)
    if verdict.kind == SLOW:
        # At equal load neither a queue nor the host makes a device slow; without a reference both may.
        return kind in ("limit", "neighbour") or verdict.confidence is None
    if verdict.kind == UNDECIDED and verdict.method is not None:
        # It was compared at equal load, and the comparison has its own reason for no verdict.
        return False
    is_predicted = verdict.kind == FINE and verdict.predicted is not None
    if is_predicted and kind == SLOW:
        return False
    if verdict.kind == UNDECIDED or is_predicted:
        if before is None or change is None:
            # A busy host and an idle disk are no trouble by themselves, unless the input states more.
            is_stated = any(of.weights.get(first.suspect, 0.0) >= DECISIVE for of in facts.statements)
            return kind in ("limit", "queue") or (kind in ("host", "neighbour") and is_stated)
        if kind != SLOW:
            return True
        is_long = min(now.intervals, before.intervals) >= ENOUGH
        is_counted = min(of.total("requests") / of.intervals for of in (now, before)) >= REQUESTS_MIN
        return is_long and is_counted and change.latency >= SLOWER and not facts.has_ended
    is_stated = kind == "limit" and limit_share(now, facts.limit) is not None
    is_grave = change is not None and (change.latency >= GRAVE or change.rate <= -GRAVE)
    is_deep = kind != "queue" or now.in_flight >= DEEP
    likely = first.likelihood >= GRAVE_LIKELIHOOD
    return kind != SLOW and not facts.has_ended and likely and is_deep and (is_stated or is_grave)


def _itself(facts: Facts, kind: Kind) -> str:
    """Returns a sentence with the latency of the device below a limit, and the rate that it could serve without
    waiting, by Little's law."""
    now, before = facts.now, facts.before
    if kind != "limit" or before is None or not before.latency_s < now.latency_s:
        return ""
    rate = now.in_flight / before.latency_s
    without = f", so that {now.in_flight:.2g} requests in flight need up to {rate:,.0f} IOPS not to wait"
    return f" Below it the device answers in {time_text(before.latency_s)}{without if now.in_flight >= 1 else ''}."


def _price(facts: Facts) -> str:
    """Returns a sentence with the price of more IOPS, if the limit names a type of volume that sells them."""
    price = None if facts.limit is None else PriceBook.load().price(f"{facts.limit.name}:IOPS-month")
    if facts.limit is None or price is None:
        return ""
    more = f"each further 1,000 IOPS of {facts.limit.name} cost ${1000 * price.usd:,.2f} a month"
    return f" {more[:1].upper()}{more[1:]} ({price.date}, {price.source})."


def _slower(facts: Facts) -> Slower | None:
    if facts.before is None:
        return None
    change = change_of(facts.before, facts.now)
    apart = math.exp(1.645 * change.deviation)
    factor = math.exp(change.latency)
    return Slower(factor, factor / apart, factor * apart)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
