"""Formats verdicts in words."""

from __future__ import annotations

import math

from headstack.diagnosis.judging.fleet import DOUBT, Disk, Facts
from headstack.diagnosis.judging.steps import STEP_S, STREAMS
from headstack.diagnosis.judging.verdict import CANNOT_TELL, FINE, SLOW, Cause, Slower, Verdict

WHAT = {"read": "reads", "write": "writes", "all": "requests"}
AGAINST = {
    "peers": "those of its peers",
    "own past": "its own did under such a load",
    "twin": "its twin's under the same load",
}
UNDER_MORE = {
    "peers": "those of its peers under more load",
    "own past": "its own did under more load",
    "twin": "its twin's under more load",
}
NEXT = {
    "link": "Look at the link: negotiated speed, cable, backplane, errors of the interface in headstack inspect.",
    "write cache off": "See whether the write cache was switched off (headstack inspect), or its battery failed.",
    "reads of the medium": "Run headstack inspect, and a long self-test; copy what is only there.",
    "background work": "See whether a scrub, self-test or rebuild was running; judge again when it is over.",
    "queue cut": "Look at the depth of the queue that the host uses, and at the scheduler.",
}
LOOK = "Run headstack inspect; take it out of service if its peers can carry the load, and measure it alone."


def verdict_of(disk: Disk, facts: Facts, cause: Cause | None) -> Verdict:
    """Returns the verdict on a disk."""
    size = facts.size
    slower = None
    if size is not None:
        factor, low, high = map(math.exp, size)
        slower = Slower(factor, low, high, facts.is_lower_bound)
    given = {
        "host": disk.host,
        "disk": disk.disk,
        "model": disk.model,
        "method": facts.method,
        "evidence": facts.share,
        "course": tuple(disk.course),
    }
    if facts.missing is not None:
        watch = "Look at what they share: host, controller, load." if facts.method else "Go on watching."
        if facts.share >= DOUBT:
            watch = "Judge again when two more hours are logged."
        why = facts.missing[0].upper() + facts.missing[1:] + "."
        return Verdict(kind=CANNOT_TELL, why=why, next_step=watch, confidence=None, **given)  # type: ignore[arg-type]
    assert facts.method is not None
    what, against = WHAT[STREAMS[facts.stream]], AGAINST[facts.method]
    if not facts.slow:
        why = f"Its requests take as long as {against}: {facts.share:.0%} of the evidence for an alarm."
        next_step = "Nothing."
        return Verdict(kind=FINE, why=why, next_step=next_step, confidence=facts.confidence, **given)  # type: ignore[arg-type]
    assert slower is not None
    assert facts.since_step is not None
    if facts.unsteady is not None:
        why = (
            f"Its {what} take {slower.factor:.2g} times as long as in the best tenth of the same quarter of an hour, "
            "from the first one seen; the limit of 1.5 was chosen on one set, whose steady disks take 1.13 to 1.16. "
            "No peer and no twin says what they should take."
        )
    else:
        start = ", from the first one seen" if facts.from_start else ""
        times = f"{slower.factor:.2g} times as long as {against} ({slower.low:.2g} to {slower.high:.2g})"
        if slower.is_lower_bound:
            times = f"at least {slower.low:.2g} times as long as {UNDER_MORE[facts.method]} (a lower bound)"
        why = f"Its {what} take {times}{start}."
    return Verdict(
        kind=SLOW,
        why=why,
        next_step=NEXT.get(cause.name, LOOK) if cause else LOOK,
        since_s=facts.since_step * STEP_S,
        slower=slower,
        confidence=facts.confidence,
        cause=cause,
        **given,  # type: ignore[arg-type]
    )
