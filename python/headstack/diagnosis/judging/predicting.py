"""``predict``: compares disks that have no peers and no past with the latency that a twin predicts at their load.

The error of a model is the same at every moment, so that more intervals do not reduce it. Only the prediction interval
of the twin's class, learned from other devices, can accuse a disk.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from headstack.diagnosis.judging.evidence import TAIL
from headstack.diagnosis.judging.expectation import PEERS_MIN, Twin
from headstack.diagnosis.judging.fleet import METHODS, PEER_STEPS_JUDGED, SLOW_A_YEAR, TOLERANCES
from headstack.diagnosis.judging.latencies import time_text
from headstack.diagnosis.judging.levels import student_bound
from headstack.diagnosis.judging.saying import LOOK
from headstack.diagnosis.judging.steps import REQUESTS_MIN
from headstack.diagnosis.judging.suspects.phases import Phase, phases_of
from headstack.diagnosis.judging.suspects.record import PLACE, Record
from headstack.diagnosis.judging.verdict import FINE, SLOW, UNDECIDED, Predicted, Slower, Verdict

TOLERANCE = float(TOLERANCES[METHODS.index("twin")])
"""Logarithm of the tolerated slowdown above the interval's middle: a log has no places of requests and no bursts, so a
healthy disk under the logged means can be off by tens of percent beyond the error of the model."""
ACCUSED = 0.75
"""Probability from which a disk is called slow, as for suspects."""
SPAN = math.log(300.0)
"""Range of the logarithm of slowdowns that occur, as for suspects."""
INTERVALS_MIN = float(PEER_STEPS_JUDGED)
"""Minimum number of intervals of the phase that is compared, as for steps with peers."""
OTHER_DRIVE = 10.0
"""Slowdown from which the disk may be another drive: disks take some hundred times as long as NVMe SSDs, but few
failing disks take ten times as long as before."""

Key = tuple[str, str]


def twin_for(twins: Mapping[str, Twin], disk: str, model: str | None) -> Twin | None:
    """Returns the twin of a disk: by its name, by its model, or that for disks of unknown model."""
    return twins.get(disk) or twins.get(model or "")


def unused_twins(twins: Collection[str], disks: Collection[tuple[str, str | None]]) -> list[str]:
    """Returns a sentence for each twin, by its key, that concerns none of the disks, given as names and models.

    >>> from headstack.diagnosis.judging.predicting import unused_twins
    >>> unused_twins(["sdb", ""], [("sda", "ST4000")])
    ['--twin sdb: no disk of this name or model', '--twin: every disk has a model; name it, for example ST4000=SYSTEM']
    """
    names = {disk for disk, _ in disks} | {model or "" for _, model in disks}
    models = sorted({model for _, model in disks if model})
    return [
        f"--twin {name}: no disk of this name or model"
        if name
        else f"--twin: every disk has a model; name it, for example {models[0]}=SYSTEM"
        for name in twins
        if name not in names and disks
    ]


def predict(verdicts: Sequence[Verdict], records: Mapping[Key, Record], twins: Mapping[str, Twin]) -> list[Verdict]:
    """Returns the verdicts, with a comparison for each disk that has a twin and no other reference. A disk far above
    its prediction interval is slow, one within it is fine."""
    if not twins:
        return list(verdicts)
    predicted = [_predicted(verdict, records, twins) for verdict in verdicts]
    above = Counter(of.system for of in predicted if of is not None and _is_slow(of))
    compared = Counter(of.system for of in predicted if of is not None)
    # Disks seldom fail together: most of them above one prediction are other drives, or under another load.
    doubted = {name for name, count in above.items() if count >= PEERS_MIN and 2 * count > compared[name]}
    return [
        verdict if of is None else _judged(verdict, of, is_doubted=of.system in doubted)
        for verdict, of in zip(verdicts, predicted, strict=True)
    ]


def _predicted(verdict: Verdict, records: Mapping[Key, Record], twins: Mapping[str, Twin]) -> Predicted | None:
    twin = twin_for(twins, verdict.disk, verdict.model)
    if twin is None or verdict.kind != UNDECIDED or verdict.method is not None:
        return None
    phases = phases_of(records[verdict.host, verdict.disk].rows())
    return None if not phases else compare(phases[-1], twin)


def compare(phase: Phase, twin: Twin) -> Predicted | None:
    """Compares the requests of a phase with the prediction of a twin; ``None`` for too few, or without a prediction."""
    stream = "all" if not phase.read_share >= 0 else "read" if phase.read_share >= 0.5 else "write"
    measured_s = phase.latency_s if stream == "all" else phase.kind_latency_s(stream)
    count = phase.total("requests" if stream == "all" else f"{stream}s")
    if not (measured_s > 0 and count >= REQUESTS_MIN and phase.intervals >= INTERVALS_MIN):
        return None
    size_bytes = phase.bytes_per_s / phase.rate if stream == "all" else phase.size_bytes(stream)
    share = phase.read_share if math.isfinite(phase.read_share) else 1.0
    expected = twin.expected(stream, depth_of(phase), size_bytes if math.isfinite(size_bytes) else None, share)
    if expected is None:
        return None
    requests = {"read": "reads", "write": "writes", "all": "requests"}[stream]
    predicted = Predicted(
        twin.system, requests, measured_s, phase.rate, depth_of(phase), expected.latency_s, no_interval=expected.why
    )
    if expected.apart is None or expected.level is None:
        return predicted
    ratio = math.log(measured_s / expected.latency_s)
    return replace(
        predicted,
        low_s=expected.latency_s * math.exp(-expected.apart),
        high_s=expected.latency_s * math.exp(expected.apart),
        level=expected.level,
        no_interval=None,
        slow_probability=slow_probability(ratio, expected.apart, expected.level, sampling_error(phase, count)),
    )


def depth_of(phase: Phase) -> float:
    """Returns the mean queue depth while a disk is busy, at which a closed loop has the same latency: by Little's law
    it is the rate while busy times the latency. Without utilization it is one more than the mean queue depth, as for
    one server with random arrivals (M/M/1), where utilization is N / (1 + N)."""
    if phase.busy > 0:
        return max(1.0, phase.in_flight / min(phase.busy, 1.0))
    return 1.0 + phase.in_flight if math.isfinite(phase.in_flight) else 1.0


def sampling_error(phase: Phase, count: float) -> float:
    """Returns the standard deviation of the logarithm of a mean latency: of independent exponential times, or from the
    variation between rows, which is more for bursts."""
    rows = phase.rows[phase.rows[:, PLACE["requests"]] > 0]
    latencies = rows[:, PLACE["wait_s"]] / rows[:, PLACE["requests"]]
    between = float(latencies.std() / latencies.mean()) / math.sqrt(len(rows)) if len(rows) > 1 else math.inf
    return max(between, 1.0 / math.sqrt(count))


def slow_probability(ratio: float, apart: float, level: float, error: float) -> float:
    """Returns the probability that a disk is slow, by the logarithm of its latency over the predicted one and the
    half-width of the prediction interval.

    Errors of healthy disks are assumed to follow Student's distribution with four degrees of freedom, as above all
    residuals of health; 1 % of disks are slow (see ``SLOW_A_YEAR``), by any factor up to 300.

    >>> from headstack.diagnosis.judging.predicting import slow_probability
    >>> [round(slow_probability(ratio, 0.25, 0.9, 0.01), 2) for ratio in (0.25, 0.7, 1.1, 1.4)]
    [0.0, 0.07, 0.77, 0.93]
    """
    scale = math.hypot(apart / student_bound((1.0 - level) / 2.0, TAIL), error)
    above = ratio - TOLERANCE
    if above <= 0.0:
        return 0.0
    true = SLOW_A_YEAR * max(SPAN - above, 0.1) / SPAN
    false = (1.0 - SLOW_A_YEAR) * student_tail(above / scale)
    return true / (true + false)


def student_tail(t: float) -> float:
    """Returns the probability that Student's distribution with four degrees of freedom exceeds a value.

    >>> from headstack.diagnosis.judging.predicting import student_tail
    >>> round(student_tail(2.132), 4)
    0.05
    """
    share = t * t / (t * t + 4.0)
    sine = math.copysign(math.sqrt(share), t)
    return 0.5 - 0.75 * (sine - sine**3 / 3.0)


def _is_slow(predicted: Predicted) -> bool:
    return predicted.slow_probability is not None and predicted.slow_probability >= ACCUSED


def _judged(verdict: Verdict, of: Predicted, *, is_doubted: bool) -> Verdict:
    of = replace(of, slow_probability=None) if is_doubted else of
    verdict = replace(verdict, predicted=of)
    factor = of.measured_s / of.latency_s
    if of.high_s is None or of.low_s is None:
        return verdict
    if _is_slow(of):
        slower = Slower(factor, of.measured_s / of.high_s, of.measured_s / of.low_s)
        check = f"First check that it is a {of.system} (headstack inspect). " if factor >= OTHER_DRIVE else ""
        return replace(
            verdict,
            kind=SLOW,
            why=sentence(verdict.disk, of),
            next_step=f"{check}{LOOK}",
            slower=slower,
            confidence=of.slow_probability,
            method="twin",
        )
    if of.low_s <= of.measured_s <= of.high_s:
        return replace(
            verdict,
            kind=FINE,
            why=sentence(verdict.disk, of),
            next_step="Nothing.",
            method="twin",
        )
    return verdict


def with_predicted(verdict: Verdict) -> Verdict:
    """Returns an undecided verdict that begins with the comparison with a twin, if it has one."""
    of = verdict.predicted
    if of is None or verdict.kind != UNDECIDED:
        return verdict
    return replace(verdict, why=f"{sentence(verdict.disk, of)} {verdict.why}")


def sentence(disk: str, of: Predicted) -> str:
    """Returns the comparison in a sentence, with its meaning."""
    measured = f"{disk}: {of.requests} take {time_text(of.measured_s)} at {of.iops:,.3g} IOPS"
    predicted = f"{of.system} is predicted at {time_text(of.latency_s)}"
    if of.low_s is None or of.high_s is None or of.level is None:
        return f"{measured}; {predicted}, without an interval: {of.no_interval}. That decides nothing."
    interval = f"({time_text(of.low_s)} to {time_text(of.high_s)}, {100 * of.level:.0f} %)"
    if of.measured_s < of.low_s:
        return f"{measured}; {predicted} {interval}: faster than random {of.requests}, or another drive."
    if of.measured_s > of.high_s and of.slow_probability is None:
        shared = "as for most disks compared with it: check the name of the drive, and what these disks share"
        return f"{measured}; {predicted} {interval}: above the interval, {shared}."
    if of.measured_s > of.high_s and not _is_slow(of):
        return f"{measured}; {predicted} {interval}: above the interval, but not by enough for a verdict."
    return f"{measured}; {predicted} {interval}."
