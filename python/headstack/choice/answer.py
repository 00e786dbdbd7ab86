"""``Answer``: the winner of a choice with its evidence, the runners-up, and the sensitivity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, assert_never

if TYPE_CHECKING:
    from headstack.report.figures import RunInputs

Decision = Literal["meets", "does not", "undecided"]
"""The decision on a limit, or on all limits of a system."""


SSD_STATE = "SSDs are in the steady state of random overwrites"
"""Beginning of the remark on the state in which SSDs are simulated."""


def is_decided(decision: Decision) -> bool:
    """Whether a verdict is decided, which means met or missed."""
    match decision:
        case "meets" | "does not":
            return True
        case "undecided":
            return False
    assert_never(decision)


@dataclass(frozen=True)
class Verdict:
    """The verdict on one limit for one system."""

    limit: str
    """The limit as requested: ``p99=20ms``, ``read.mean=5ms``, ``iops=4000``; degraded: ``p99=20ms while
    rebuilding``."""
    says: Decision
    unit: str
    """The unit of the following figures: ``ms``, ``1/s`` or ``MB/s``."""
    limit_value: float
    value: float | None
    """Simulated figure; ``None`` if the queue grows without bound."""
    low: float | None
    """Lower bound of the 95 % confidence interval of the simulation, up to ``high``; ``None`` if unknown."""
    high: float | None
    model_low: float | None = None
    """Lower bound of the prediction interval for devices, up to ``model_high``; ``None`` if the model's error is
    unknown.
    """
    model_high: float | None = None
    why: str = ""
    """The reason for an undecided verdict; otherwise empty."""
    requests: int = 0
    """Number of requests simulated for the verdict."""
    model_level: float | None = None
    """Share of devices within the prediction interval, from 0 to 1; ``None`` without one."""


@dataclass(frozen=True)
class Part:
    """One item of a price."""

    item: str
    quantity: float
    usd: float
    """The price per unit."""
    date: str
    """Date of the price; empty for an assumption."""
    source: str
    unit: str = ""
    """Unit of the quantity: ``month`` for a volume, ``kWh`` for power; empty for pieces."""


@dataclass(frozen=True)
class Durability:
    """Expected losses at the stated failure rates; their accuracy is that of the rates."""

    afr_percent: float
    """Annualized failure rate of the drives in percent, as stated."""
    afr_source: str
    rebuild_h: float
    rebuild_source: str
    """Whether the rebuild time was simulated, or how it was computed."""
    loss_a_year: float
    """Probability per year that more drives fail than the level survives."""
    unreadable_a_year: float
    """Expected number of rebuilds per year with an unreadable sector that cannot be repaired, by the data sheet's
    bound.
    """


@dataclass(frozen=True)
class Choice:
    """A system that was evaluated."""

    name: str
    """``8 x exos-x18-18tb in raid6, md-raid6-12x16tb``: unique for each system."""
    host: str
    """The array that provides host, links and controller; for a volume, its provider."""
    drive: str
    drives: int
    """Number of drives without spares."""
    spares: int
    level: str
    settings: tuple[tuple[str, str], ...]
    """Other varied values: ``("cache", "8GiB")``."""
    cost: float
    """Value of the objective, in dollars, watts, bays or ms."""
    usd: float
    """Dollars to buy the system and to run it for the requested years."""
    parts: tuple[Part, ...]
    usable_bytes: int
    bays: int
    watts: float
    """Power of the active drives in W, from their data sheets."""
    survives: int
    """Number of arbitrary drives that may fail."""
    verdicts: tuple[Verdict, ...]
    says: Decision
    """The verdict on all limits together."""
    bottleneck: str = ""
    """The part whose speedup reduces the latency most, or the busiest part if speedups were not simulated."""
    utilization_percent: float | None = None
    relief_percent: float | None = None
    """Reduction of the latency if this part takes 10 % less time; ``None`` if speedups were not simulated."""
    rate_per_s: float | None = None
    """Offered requests per second (open loop), or completed requests per second (closed loop)."""
    rate_at_limit: float | None = None
    """Maximum rate at which all limits are met; ``None`` if not requested, or if the load has no rate."""
    breaks_first: str = ""
    """The limit that is exceeded first as the load grows, and the component that causes this."""
    durability: Durability | None = None
    model_error: str = ""
    """Description of the model error."""
    toml: str = field(default="", repr=False)
    """Array file of the system, for ``run``, ``serve`` and ``sweep``."""
    costs: tuple[float, ...] = ()
    """Values of all objectives, in their order; empty for a single objective."""
    inputs: RunInputs | None = field(default=None, compare=False, repr=False)
    """Inputs of the system's long run, from which a page can recompute it; ``None`` without a long run."""

    @property
    def name_without_host(self) -> str:
        """Name of the system without its host."""
        return self.name.replace(f", {self.host}", "", 1) if self.host else self.name

    @property
    def headroom(self) -> float | None:
        """Relative increase of the load that the system can take; 0.25 is 25 % more."""
        if self.rate_at_limit is None or not self.rate_per_s:
            return None
        return self.rate_at_limit / self.rate_per_s - 1


@dataclass(frozen=True)
class Relaxed:
    """The cost of a constraint: the choice if the constraint is 10 % looser."""

    constraint: str
    """``p99=20ms``, ``capacity=40TB``, ``survive=2``."""
    to: str
    """``22 ms``, ``36 TB``, ``1``."""
    best: str | None
    """The system that wins with the relaxed constraint; ``None`` if no system does."""
    saves: float
    """Savings in the unit of the objective; 0 if nothing changes."""
    is_binding: bool
    """Whether another system wins."""


@dataclass(frozen=True)
class Sensitivity:
    """The winner at other prices."""

    change: str
    """The change: ``exos-x18-18tb 10 % more expensive``, ``flash at half its price``."""
    best: str
    usd: float
    is_changed: bool


@dataclass(frozen=True)
class Reason:
    """The reason why candidates were excluded."""

    why: str
    """``too small``, ``survives too few failures``, ``no price``, ``cannot carry the rate``, ``slower at p99=20ms``."""
    candidates: int
    how: Literal["stated", "bound", "monotone", "simulated", "dearer"]
    """Method of exclusion: by stated properties, by a bound on the performance of the drives, because more of the same
    drives failed, by a simulation, or without evaluation because the candidates cost more than the answer."""
    names: tuple[str, ...] = ()
    """Names of the candidates, if kept for ``--explain``."""


@dataclass(frozen=True)
class Answer:
    """The system to choose, with the reasons."""

    question: tuple[str, ...]
    """The job and the space in words, one line each."""
    objective: str
    """``usd``, ``watts``, ``bays``, ``p99`` …"""
    unit: str
    """The unit of the objective: ``$``, ``W``, ``bays``, ``ms``."""
    best: Choice | None
    """The best system that meets every limit; ``None`` if no system does."""
    runners_up: tuple[Choice, ...]
    """The next best systems, each of a new kind (drive, level or host)."""
    undecided: tuple[Choice, ...]
    """Undecided systems that cost less than the best; if one meets the limits, it is better than the best."""
    upgrade: Choice | None
    """The cheapest evaluated system that carries at least 10 % more load than the best."""
    frontier: tuple[Choice, ...]
    """With several objectives, the Pareto front: systems that no other system beats in all objectives."""
    looked_at: tuple[Choice, ...]
    """All simulated systems by cost, which are the points of the picture."""
    nearest: Choice | None
    """The system nearest to the limits, if none meets all."""
    relaxed: tuple[Relaxed, ...]
    sensitivity: tuple[Sensitivity, ...]
    alike: tuple[str, ...]
    """Names of systems that cannot be distinguished from the best, by cost and interval."""
    tell_apart: str
    """The measurement that would distinguish these systems from the best; empty if none is needed."""
    candidates: int
    """Number of candidates in the space."""
    left_out: tuple[Reason, ...]
    simulated: int
    """Number of simulated candidates, and of requests in their runs."""
    requests: int
    warnings: tuple[str, ...]
    """Warnings about old prices, estimates, and drives without a price."""
    objectives: tuple[tuple[str, str], ...] = ()
    """All objectives with their units if there are several; the first is ``objective``."""
