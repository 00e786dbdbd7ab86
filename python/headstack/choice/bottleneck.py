"""Finds the bottleneck of a system by making each part 10 % faster instead of by utilization: a part can be busy
without delaying any request, while other requests wait for drives."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headstack._native import parse_duration_ns
from headstack.choice.job import Job
from headstack.choice.run_rows import RunRow
from headstack.choice.simulations import Simulations, Trial
from headstack.choice.space import Candidate
from headstack.io.values import rate_bytes_per_s

RELIEF = 0.9
"""Factor on the times of a part that is made faster."""
RELIEF_REQUESTS = 16_000
"""Number of requests of each run. All runs have equal requests, so differences between runs are more precise than
figures."""
CONTROLLER = "array processors"
DRIVES = "drives"
"""Name of an array's drives among the components of results."""


@dataclass(frozen=True)
class Bottleneck:
    """The part whose speedup reduces the latency most."""

    name: str
    utilization_percent: float | None
    """Utilization of the part; ``None`` if another part is the busiest."""
    iops: float | None = None
    """Requests per second of the unchanged system."""
    saves_percent: float | None = None
    """Reduction of the latency if this part takes 10 % less time; ``None`` if speedups were not simulated."""


def bottlenecks(runs: Simulations, job: Job, systems: Sequence[Candidate]) -> list[Bottleneck]:
    """Returns the bottleneck of each candidate; the busiest part if a file states no times of a controller, for cloud
    volumes, and for clients that think, which a faster system does not speed up."""
    requests = max(RELIEF_REQUESTS, *(limit.requests_min for limit in job.limits))
    rows = runs.rows([Trial(candidate, requests) for candidate in systems])
    is_closed = job.demand.rate_per_s is None
    thinks = is_closed and job.demand.is_scenario
    eased = [None if thinks else with_eased_controller(candidate) for candidate in systems]
    tried = [number for number, candidate in enumerate(eased) if candidate is not None]
    trials = [Trial(candidate, requests) for candidate in eased if candidate is not None]
    if not is_closed:
        trials += [Trial(systems[number], requests, RELIEF) for number in tried]
    others = runs.rows(trials)
    results = [Bottleneck(row.bottleneck, row.figures["utilization_percent"], row.figures["iops"]) for row in rows]
    column = next((limit.column for limit in job.limits if limit.is_most and not limit.kind), "mean_ms")
    for place, number in enumerate(tried):
        row = rows[number]
        under_less = row if is_closed else others[len(tried) + place]
        now, by_controller, at_less = (result.figures[column] for result in (row, others[place], under_less))
        if now is not None and by_controller is not None and at_less is not None and now > 0:
            results[number] = _slowest(row, now, now - by_controller, now - RELIEF * at_less)
    return results


def _slowest(row: RunRow, now: float, of_controller: float, of_all: float) -> Bottleneck:
    """Returns the slower part: the controller, or the drives with their links. Making everything 10 % faster is
    equivalent to 10 % less load on a 10 % slower time scale, so the share of the drives is the rest after the
    controller's share."""
    of_rest = of_all - of_controller
    busiest, utilization_percent = row.bottleneck, row.figures["utilization_percent"]
    of_drives = DRIVES if busiest in ("", CONTROLLER) else busiest
    name = CONTROLLER if of_controller > of_rest else of_drives
    saves_percent = 100 * max(of_controller, of_rest) / now
    return Bottleneck(name, utilization_percent if name == busiest else None, row.figures["iops"], saves_percent)


def with_eased_controller(candidate: Candidate) -> Candidate | None:
    """Returns the candidate with a controller that is 10 % faster; ``None`` if its file states no times."""
    host = candidate.family.host
    stated = {} if host is None else tomllib.loads(host.blueprint["text"]).get("controller", {})
    faster = [
        (f"controller.{name}", f"{parse_duration_ns(stated[name]) * RELIEF:g}ns")
        for name in ("request", "command")
        if name in stated
    ]
    if "parity_rate" in stated:
        bytes_per_s = rate_bytes_per_s("parity_rate", stated["parity_rate"])
        faster.append(("controller.parity_rate", f"{bytes_per_s / RELIEF:.0f}B/s"))
    if not faster:
        return None
    return replace(candidate, family=replace(candidate.family, fields=(*candidate.family.fields, *faster)))
