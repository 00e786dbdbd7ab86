"""The answer of a choice: the winner with its proof, those that follow, and what would change it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, assert_never

if TYPE_CHECKING:
    from headstack.report.figures import Asked

Says = Literal["meets", "does not", "cannot tell"]
"""The verdict on a limit, or on all limits of a system."""


def is_decided(says: Says) -> bool:
    """Whether a verdict is known, either way."""
    match says:
        case "meets" | "does not":
            return True
        case "cannot tell":
            return False
    assert_never(says)


@dataclass(frozen=True)
class Verdict:
    """One limit held against one system."""

    limit: str
    """As it was asked: ``p99=20ms``, ``read.mean=5ms``, ``iops=4000``; degraded: ``p99=20ms while rebuilding``."""
    says: Says
    unit: str
    """The unit of the figures that follow: ``ms``, ``1/s`` or ``MB/s``."""
    limit_value: float
    value: float | None
    """The simulated figure; ``None`` where requests pile up without end."""
    low: float | None
    """From here to ``high`` the long run lies (95 %, the sampling error alone); ``None`` where that is not known."""
    high: float | None
    model_low: float | None = None
    """From here to ``model_high`` nine of ten devices lie; ``None`` where the model's error is not known."""
    model_high: float | None = None
    why: str = ""
    """The reason of a verdict that is undecided; else empty."""
    requests: int = 0
    """How many were simulated for it."""


@dataclass(frozen=True)
class Part:
    """One line of a price."""

    item: str
    quantity: float
    usd: float
    """The price of one."""
    date: str
    """When it was the price; empty for an assumption."""
    source: str
    unit: str = ""
    """The unit that is priced: ``month`` of a volume, ``kWh``; empty for a piece."""


@dataclass(frozen=True)
class Durability:
    """The losses to expect at the failure rates that are put in: no figure is better than these."""

    afr_percent: float
    """Drives that fail a year, as it was put in."""
    afr_source: str
    rebuild_h: float
    rebuild_source: str
    """Whether that was simulated, or computed from what."""
    loss_a_year: float
    """Probability that more drives fail than the level survives."""
    unreadable_a_year: float
    """Expected rebuilds a year that meet an unreadable sector which nothing repairs, by the data sheet's bound."""


@dataclass(frozen=True)
class Choice:
    """A system that was looked at."""

    name: str
    """``8 x exos-x18-18tb in raid6, md-raid6-12x16tb``: the same for the same system."""
    host: str
    """The array whose host, links and controller it has; of a volume, its provider."""
    drive: str
    drives: int
    """Spares not among them."""
    spares: int
    level: str
    settings: tuple[tuple[str, str], ...]
    """Other values that were varied: ``("cache", "8GiB")``."""
    cost: float
    """The value of the objective: dollars, watts, bays or milliseconds."""
    usd: float
    """Dollars to buy it, and to run it over the requested years."""
    parts: tuple[Part, ...]
    usable_bytes: int
    bays: int
    watts: float
    """Power of its active drives, by their data sheets."""
    survives: int
    """Drives that may fail, whichever they are."""
    verdicts: tuple[Verdict, ...]
    says: Says
    """The verdict on all limits together."""
    bottleneck: str = ""
    """The part whose relief shortens the response most; where parts were not tried, the busiest."""
    busy_percent: float | None = None
    relief_percent: float | None = None
    """By how much a tenth less time in it shortens the response; ``None`` where parts were not tried."""
    rate_per_s: float | None = None
    """Requests a second that were offered, or completed in a closed loop."""
    rate_at_limit: float | None = None
    """The most at which all limits hold; ``None`` where nobody asked, or the load has no rate."""
    breaks_first: str = ""
    """The limit that is exceeded first when the load grows, and the component that causes it."""
    durability: Durability | None = None
    model_error: str = ""
    """The error of the model, in words."""
    toml: str = field(default="", repr=False)
    """The array's file: for ``run``, ``serve`` and ``sweep``."""
    costs: tuple[float, ...] = ()
    """By each of the answer's objectives, in their order; empty where there is one alone."""
    asked: Asked | None = field(default=None, compare=False, repr=False)
    """How its long run is asked for again; ``None`` where it had none."""

    @property
    def headroom(self) -> float | None:
        """How much more load it takes: 0.25 is a quarter more."""
        if self.rate_at_limit is None or not self.rate_per_s:
            return None
        return self.rate_at_limit / self.rate_per_s - 1


@dataclass(frozen=True)
class Relaxed:
    """The cost of a constraint: the choice where it is 10 % looser."""

    constraint: str
    """``p99=20ms``, ``capacity=40TB``, ``survive=2``."""
    to: str
    """``22 ms``, ``36 TB``, ``1``."""
    best: str | None
    """The system that wins then; ``None`` where none does."""
    saves: float
    """In the unit of the objective; 0 where nothing changes."""
    is_binding: bool
    """Whether another system wins."""


@dataclass(frozen=True)
class Sensitivity:
    """Who wins where prices are others."""

    change: str
    """``exos-x18-18tb 10 % dearer``, ``flash at half its price``."""
    best: str
    usd: float
    is_changed: bool


@dataclass(frozen=True)
class Reason:
    """Why candidates were left out."""

    why: str
    """``too small``, ``survives too few failures``, ``no price``, ``cannot carry the rate``, ``slower at p99=20ms``."""
    candidates: int
    how: Literal["stated", "bound", "monotone", "simulated", "dearer"]
    """By what is stated of it, by a bound on what its drives can do, since more drives of the same failed, by its own
    simulation, or not looked at since it costs more than the answer."""
    names: tuple[str, ...] = ()
    """Which these are, where that was kept: ``--explain`` finds them."""


@dataclass(frozen=True)
class Answer:
    """The system to take, and the reasons."""

    question: tuple[str, ...]
    """The job and the space in words, a line each."""
    objective: str
    """``usd``, ``watts``, ``bays``, ``p99`` …"""
    unit: str
    """The unit of the objective: ``$``, ``W``, ``bays``, ``ms``."""
    best: Choice | None
    """The least that meets every limit; ``None`` where nothing does."""
    runners_up: tuple[Choice, ...]
    """The next, each of another kind (drive, level or host) than those before it."""
    undecided: tuple[Choice, ...]
    """Those that cost less than the best and of which it cannot be told: by so much the best may miss the optimum."""
    upgrade: Choice | None
    """The cheapest of all that were looked at that carries a tenth more load or more than the best."""
    frontier: tuple[Choice, ...]
    """For several objectives: the systems that no other beats in all of them."""
    looked_at: tuple[Choice, ...]
    """All that were simulated, by cost: the points of the picture."""
    nearest: Choice | None
    """The system that comes nearest, where none meets every limit."""
    relaxed: tuple[Relaxed, ...]
    sensitivity: tuple[Sensitivity, ...]
    alike: tuple[str, ...]
    """Names of those that cannot be told apart from the best, by cost and interval."""
    tell_apart: str
    """Which measurement would tell; empty where nothing needs to be told."""
    candidates: int
    """How many the space has."""
    left_out: tuple[Reason, ...]
    simulated: int
    """Candidates that were simulated, and requests of all these runs."""
    requests: int
    warnings: tuple[str, ...]
    """Prices that are old, estimates, drives without a price."""
    objectives: tuple[tuple[str, str], ...] = ()
    """Where several were asked for, each with its unit, the first of them ``objective``."""
