"""Formats verdicts in words."""

from __future__ import annotations

import math

from headstack.diagnosis.judging.fleet import DOUBT, Disk, Facts
from headstack.diagnosis.judging.steps import STEP_S, STREAMS, TOO_SHORT
from headstack.diagnosis.judging.verdict import FINE, SLOW, UNDECIDED, Cause, Slower, Verdict

REQUESTS = {"read": "reads", "write": "writes", "all": "requests"}
AGAINST = {
    "peers": "those of its peers",
    "own past": "its own did under a similar load",
    "twin": "those of its twin under the same load",
}
UNDER_MORE = {
    "peers": "those of its peers under more load",
    "own past": "its own did under more load",
    "twin": "those of its twin under more load",
}
NEXT = {
    "link": "Check the link: negotiated speed, cable, backplane, interface errors in headstack inspect.",
    "write cache off": "Check whether the write cache was switched off (headstack inspect), or its battery failed.",
    "reads of the medium": "Run headstack inspect and a long self-test; copy data that has no other copy.",
    "background work": "Check whether a scrub, self-test or rebuild was running; judge again when it is over.",
    "queue cut": "Check the queue depth that the host uses, and the scheduler.",
}
RECORD = "Record an hour, for example iostat -x -y -t -o JSON 15 240 > iostat.json, or watch it with --live 15s."
LOOK = "Run headstack inspect; take it out of service if its peers can carry the load, and measure it alone."


def verdict_of(disk: Disk, facts: Facts, cause: Cause | None) -> Verdict:
    """Returns the verdict on a disk."""
    size = facts.size
    slower = None
    if size is not None:
        factor, low, high = map(math.exp, size)
        slower = Slower(factor, low, high, facts.is_lower_bound)
    facts_of_disk = {
        "host": disk.host,
        "disk": disk.disk,
        "model": disk.model,
        "method": facts.method,
        "evidence": facts.share,
        "course": tuple(disk.course),
    }
    if facts.missing is not None:
        watch = "Check what these disks share: host, controller, load." if facts.method else "Continue monitoring."
        if facts.missing == TOO_SHORT:
            watch = RECORD
        if facts.share >= DOUBT:
            watch = "Judge again when two more hours are logged."
        why = facts.missing[0].upper() + facts.missing[1:] + "."
        return Verdict(kind=UNDECIDED, why=why, next_step=watch, confidence=None, **facts_of_disk)  # type: ignore[arg-type]
    assert facts.method is not None
    requests, against = REQUESTS[STREAMS[facts.stream]], AGAINST[facts.method]
    if not facts.slow:
        why = f"Its requests take as long as {against}: {facts.share:.0%} of the evidence for an alarm."
        next_step = "Nothing."
        return Verdict(kind=FINE, why=why, next_step=next_step, confidence=facts.confidence, **facts_of_disk)  # type: ignore[arg-type]
    assert slower is not None
    assert facts.since_step is not None
    if facts.unsteady is not None:
        why = (
            f"Its {requests} take {slower.factor:.2g} times as long as in the fastest 10 % of intervals of the same "
            "quarter of an hour, since the first one; the limit of 1.5 was chosen on one set, whose steady disks take "
            "1.13 to 1.16. There is no peer or twin to compare it with."
        )
    else:
        start = ", since its first data" if facts.from_start else ""
        times = f"{slower.factor:.2g} times as long as {against} ({slower.low:.2g} to {slower.high:.2g})"
        if slower.is_lower_bound:
            times = f"at least {slower.low:.2g} times as long as {UNDER_MORE[facts.method]} (a lower bound)"
        why = f"Its {requests} take {times}{start}."
    return Verdict(
        kind=SLOW,
        why=why,
        next_step=NEXT.get(cause.name, LOOK) if cause else LOOK,
        since_s=facts.since_step * STEP_S,
        slower=slower,
        confidence=facts.confidence,
        cause=cause,
        **facts_of_disk,  # type: ignore[arg-type]
    )
