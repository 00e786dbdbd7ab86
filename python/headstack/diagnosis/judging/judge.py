"""``judge``: judges whether disks are slow, from observations to verdicts and a state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from headstack._native import InputError
from headstack.diagnosis.judging.causes import cause_of
from headstack.diagnosis.judging.evidence import Array, discoveries
from headstack.diagnosis.judging.expectation import Compared, Peers, Twin, leave_one_out_median, residual_of_twin
from headstack.diagnosis.judging.false_alarms import FALSE_ALARMS
from headstack.diagnosis.judging.fleet import LATELY, METHODS, TOLERANCES, Disk, Fleet, grouped
from headstack.diagnosis.judging.observations import Observations
from headstack.diagnosis.judging.predicting import predict, twin_for, with_predicted
from headstack.diagnosis.judging.saying import verdict_of
from headstack.diagnosis.judging.state import State
from headstack.diagnosis.judging.steps import STREAMS, Step, plain_rows, rows_of, split, steps_of
from headstack.diagnosis.judging.suspects.deciding import decided, stated
from headstack.diagnosis.judging.suspects.examining import examine
from headstack.diagnosis.judging.suspects.limits import Limit
from headstack.diagnosis.judging.suspects.record import intervals_of
from headstack.diagnosis.judging.suspects.statements import Statement
from headstack.diagnosis.judging.verdict import FALSE_SHARE, SLOW, Judgement, Verdict

PeersMode: TypeAlias = Literal["auto", "host", "model", "none"]
PEERS_MODES: tuple[PeersMode, ...] = ("auto", "host", "model", "none")
VERSION = 4


def judge(
    observations: Observations,
    peers: PeersMode = "auto",
    twin: Mapping[str, Twin] | None = None,
    state: State | None = None,
    false_alarms_per_drive_year: float = FALSE_ALARMS,
    limits: Mapping[str, Limit] | None = None,
    statements: Sequence[Statement] = (),
) -> Judgement:
    """Returns verdicts on all disks, observed now or earlier.

    ``peers`` selects the disks to compare with: of the same host and model (``host``), of the same model anywhere
    (``model``), of the host if there are four and else of the model (``auto``), or none. ``twin`` has twins by disk or
    model.
    ``limits`` are stated limits by disk, with the key ``""`` for all others; ``statements`` are facts of the inputs
    beside rates and latencies.
    ``state`` is that of an earlier judgement; a log in parts, each with the state of the previous one, has the same
    result as the whole. The last quarter of an hour is judged when later data arrive.
    """
    if peers not in PEERS_MODES:
        raise InputError(f"{peers} is unknown; allowed: {', '.join(PEERS_MODES)}", key="peers")
    if not 0 < false_alarms_per_drive_year <= 1:
        raise InputError(f"false alarms per drive-year: {false_alarms_per_drive_year:g}; must be above 0, at most 1")
    if state is not None and state.get("version") != VERSION:
        raise InputError(f"unknown version {state.get('version')}; this build reads {VERSION}", key="state")
    fleet = Fleet.of(state) if state else Fleet()
    fleet.add(grouped(observations.frame, peers))
    waiting = rows_of(state["waiting"] if state else None)
    for key, rows in intervals_of(observations.frame).items():
        fleet.disks[fleet.places[key]].record.add(rows)
    over, last = split(observations.frame, waiting)
    late = over.filter(over["start_s"] < fleet.judged_s) if fleet.judged_s else over.clear()
    fleet.late += late.height
    twins = dict(twin or {})
    for step in steps_of(over.filter(over["start_s"] >= fleet.judged_s), fleet.places):
        take(fleet, step, twins, false_alarms_per_drive_year)
    next_state: State = {"version": VERSION, "waiting": plain_rows(last), **fleet.plain()}
    judged = verdicts(fleet, false_alarms_per_drive_year, limits or {}, statements, twins)
    return Judgement(tuple(judged), next_state)


def take(fleet: Fleet, step: Step, twins: Mapping[str, Twin], budget: float) -> None:
    """Judges a step of all disks."""
    fleet.clock = [*fleet.clock[-LATELY + 1 :], step.number]
    latency, features = step.log_latency, step.features
    # All requests together are judged if a source does not separate reads from writes.
    latency[np.isfinite(latency[:, :2]).any(axis=1), 2] = math.nan
    compared = Compared.none((len(fleet.disks), len(STREAMS), len(METHODS)))
    of_peers = np.full(latency.shape, math.nan)
    for (_, stream), group, members in fleet.peers_of_all():
        of_peers[members, stream] = leave_one_out_median(step.spread[members, stream][None, :])[0]
        for array, values in zip(compared, _of_peers(fleet, group, members, stream, step, budget), strict=True):
            array[members, stream, 0] = values
    for place, disk in enumerate(fleet.disks):
        for stream in map(int, np.flatnonzero(np.isfinite(latency[place]))):
            _compare_alone(compared, place, disk, stream, latency[place], features[place], twins)
    fleet.test(step.number, compared, budget)
    for place, disk in enumerate(fleet.disks):
        streams = [int(stream) for stream in np.flatnonzero(np.isfinite(latency[place]))]
        if not streams:
            continue
        judged = fleet.judged_by(place)
        healthy = not (judged and fleet.alarmed(place, judged))
        for stream in streams:
            disk.past(stream).learn(step.number, float(latency[place, stream]), features[place, stream], healthy)
        method = None if judged is None else METHODS.index(judged)
        disk.note(step, place, compared.residuals[place], method, of_peers[place])
    fleet.judged_s = step.start_s + 1.0


def _of_peers(fleet: Fleet, group: Peers, members: list[int], stream: int, step: Step, budget: float) -> Compared:
    """Returns a comparison with peers, once their residuals in health are known."""
    latency, features = step.log_latency[members, stream], step.features[members, stream]
    if not np.isfinite(latency).any():
        return Compared.none(len(members))
    if group.learn(step.number, latency, features, stream):
        for number, before, loads in group.first()[:-1]:
            compared = Compared.none((len(fleet.disks), len(STREAMS), len(METHODS)))
            for array, values in zip(compared, group.compare(before, loads, stream), strict=True):
                array[members, stream, 0] = values
            fleet.test(number, compared, budget)
    group.forget()
    return group.compare(latency, features, stream) if group.stages else Compared.none(len(members))


def _compare_alone(
    compared: Compared,
    place: int,
    disk: Disk,
    stream: int,
    latency: Array,
    features: Array,
    twins: Mapping[str, Twin],
) -> None:
    """Compares a disk with its own past and its twin."""
    past = disk.past(stream)
    if not past.is_learned:
        return
    at = place, stream, METHODS.index("own past")
    compared.residuals[at], compared.trust[at], compared.two_sided[at] = past.residual(
        float(latency[stream]), features[stream]
    )
    twin = twin_for(twins, disk.disk, disk.model)
    if twin is not None:
        method = METHODS.index("twin")
        at = place, stream, method
        of_stream = STREAMS[stream], float(latency[stream]), features[stream], float(TOLERANCES[method])
        compared.residuals[at] = residual_of_twin(twin, *of_stream)
        compared.two_sided[at] = math.isfinite(compared.residuals[at])


def verdicts(
    fleet: Fleet,
    budget: float,
    limits: Mapping[str, Limit],
    statements: Sequence[Statement] = (),
    twins: Mapping[str, Twin] | None = None,
) -> list[Verdict]:
    """Returns verdicts on all disks, in order of host and disk; then on those that only statements name."""
    records = {(disk.host, disk.disk): disk.record for disk in fleet.disks}
    alone = predict(compared_at_equal_load(fleet, budget), records, twins or {})
    # An alarm without a reference is about unsteady disks, and no comparison at equal load.
    slower = {
        (verdict.host, verdict.disk): math.log(verdict.slower.factor)
        for verdict in alone
        if verdict.kind == SLOW and verdict.slower and verdict.confidence is not None
    }
    examined = examine(records, slower, limits, statements)
    judged = [
        with_predicted(decided(verdict, examined.get((verdict.host, verdict.disk)), statements)) for verdict in alone
    ]
    return judged + stated(statements, [verdict.disk for verdict in alone])


def compared_at_equal_load(fleet: Fleet, budget: float) -> list[Verdict]:
    """Returns the verdicts from comparisons at equal load alone."""
    if not fleet.disks:
        return []
    judged = []
    discovered = discoveries(np.array([fleet.log_e_value(place) for place in range(len(fleet.disks))]), FALSE_SHARE)
    for place in sorted(range(len(fleet.disks)), key=lambda at: (fleet.disks[at].host, fleet.disks[at].disk)):
        facts = fleet.facts(place, budget)
        disk = fleet.disks[place]
        cause = cause_of(disk.recent, facts.since_step, facts.noise) if facts.slow else None
        judged.append(replace(verdict_of(disk, facts, cause), stands=facts.slow and bool(discovered[place])))
    return judged
