"""``Job``: the load, its limits, and the other requirements on the system."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from headstack import _native
from headstack._native import InputError, format_bytes
from headstack.choice.blueprint import Blueprint, demand_blueprint
from headstack.choice.limits import Limit
from headstack.choice.sustained import OpenClass, open_classes, open_classes_of
from headstack.io.json_text import quoted
from headstack.prediction.environment import classes_of
from headstack.prediction.request_class import RequestClass
from headstack.traces.traces import Trace

OBJECTIVES = {"usd": "$", "watts": "W", "bays": "bays", "latency": "ms"}
"""Objectives with their units."""


@dataclass(frozen=True)
class Demand:
    """The load on the system."""

    name: str
    blueprint: Blueprint | None
    """The file of a workload or scenario; ``None`` for a trace."""
    trace: Trace | None
    rate_per_s: float | None
    """Arrivals per second of an open loop; ``None`` if the workload or scenario has its own load."""
    depth: int | None
    """Queue depth or number of clients, which replaces the value in the file."""
    source: str
    """Id or file of the load; empty for a combination of several loads."""
    classes: tuple[RequestClass, ...]
    """Mix of requests; empty for a scenario or a trace, for which no bound is computed."""
    streams: tuple[OpenClass, ...] = ()
    """Requests of a scenario that arrive in open loops of their own."""

    @property
    def open_classes(self) -> tuple[OpenClass, ...]:
        """Requests that arrive in an open loop without end; empty for a closed loop, and for a trace, which ends."""
        return self.streams or open_classes(self.rate_per_s or 0.0, self.classes if self.rate_per_s else ())

    @property
    def is_scenario(self) -> bool:
        """Whether the load is a scenario with its own streams."""
        return self.blueprint is not None and self.blueprint["kind"] == "scenario"

    def scaled(self, factor: float) -> Demand:
        """Returns the demand with its load multiplied. Raises ``InputError`` if it cannot be scaled."""
        if factor == 1:
            return self
        if self.rate_per_s is not None:
            return replace(self, rate_per_s=self.rate_per_s * factor)
        if self.depth is not None:
            return replace(self, depth=max(1, round(self.depth * factor)))
        raise InputError(f"{self.name}: the load is fixed; add --rate or --depth to scale it")


def demand_of(names: Sequence[str | os.PathLike[str]], rates: Sequence[float] = (), depth: int | None = None) -> Demand:
    """Returns the demand of a workload, a scenario or a trace, or of several concurrent workloads with a rate each.

    Raises ``InputError`` for combinations that are impossible.

    >>> from headstack.choice.job import demand_of
    >>> demand_of(["file-server"], rates=[400]).rate_per_s
    400
    """
    if not names:
        raise InputError("no load: name a workload, a scenario or a trace, for example -w oltp-8k")
    if rates and depth is not None:
        raise InputError("rate, depth: give only one of them")
    if len(rates) > 1 and len(rates) != len(names):
        raise InputError(
            f"{len(rates)} rates for {len(names)} workloads; give one for all, or one for each", key="rate"
        )
    if len(names) > 1:
        return _combine_workloads([os.fspath(name) for name in names], rates)
    name, rate = os.fspath(names[0]), rates[0] if rates else None
    if rate is not None and rate <= 0:
        raise InputError(f"{rate:g} is out of range; must be above 0", key="rate")
    path = Path(name)
    if path.is_file() and path.suffix != ".toml":
        if depth is not None:
            raise InputError("depth: a trace has its own queue depth; use --scale", file=name)
        trace = Trace(path)
        return Demand(path.stem, None, trace, rate or recorded_rate(trace), None, name, ())
    blueprint = demand_blueprint(name)
    if blueprint["kind"] == "scenario":
        if rate is not None:
            raise InputError("rate: a scenario has its own load; use --scale", file=name)
        stated = _native.load_demand(name)["scenario"]
        clients = depth or stated.get("clients")
        return Demand(stated["name"], blueprint, None, None, clients, name, (), open_classes_of(stated["streams"]))
    workload = _native.load_demand(name)["workload"]
    arrivals = workload["arrivals"]
    if rate is None and depth is None:
        if "open" in arrivals:
            rate = arrivals["open"]["rate_per_s"]
        else:
            depth = arrivals["closed"]["queue_depth"]
    called = workload["name"]
    return Demand(called, blueprint, None, rate, depth, name, classes_of(called, workload["lines"]))


def _combine_workloads(names: list[str], rates: Sequence[float]) -> Demand:
    """Returns several concurrent workloads as the streams of a scenario."""
    if len(rates) != len(names):
        raise InputError(f"{', '.join(names)}: concurrent workloads need one rate each; give --rate {len(names)} times")
    streams = []
    open_streams: list[OpenClass] = []
    for name, rate in zip(names, rates, strict=True):
        blueprint = demand_blueprint(name)
        if blueprint["kind"] != "workload":
            raise InputError(f"only workloads can run concurrently, but this is a {blueprint['kind']}", file=name)
        workload = tomllib.loads(blueprint["text"])
        access: dict[str, object] = {
            key: workload[key] for key in ("lines", "addresses", "streams", "stream_turn") if key in workload
        }
        access["arrivals"] = {"open": {"rate_per_s": rate, "process": "poisson"}}
        streams.append({"name": workload["name"], "access": access})
        open_streams += open_classes(rate, classes_of(name, _native.load_demand(name)["workload"]["lines"]))
    name = " and ".join(stream["name"] for stream in streams)
    # The length is replaced in each run.
    workload = {"name": name, "run_length": {"requests": 1000}, "streams": streams}
    text = "\n".join(f"{key} = {_toml(value)}" for key, value in workload.items())
    combined: Blueprint = {"kind": "scenario", "text": text, "drives": {}}
    return Demand(name, combined, None, None, None, "", (), tuple(open_streams))


def _toml(value: Any) -> str:
    """Formats a value as TOML in one line, whose strings and numbers are as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return quoted(value)


@cache
def recorded_rate(trace: Trace) -> float:
    """Returns the requests per second of a trace."""
    first_ns, last_ns = trace.info()["summary"]["total"]["arrivals_ns"] or (0, 0)
    if last_ns <= first_ns:
        raise InputError(
            f"{', '.join(trace.paths)}: all requests arrive at the same time, so there is no rate; add --rate"
        )
    return float(recorded_requests(trace) / (last_ns - first_ns) * 1e9)


@cache
def recorded_requests(trace: Trace) -> int:
    """Returns the requests of a trace."""
    return int(sum(trace.info()["summary"]["total"]["requests"].values()))


@dataclass(frozen=True)
class Job:
    """The load, and the requirements on the system."""

    demand: Demand
    limits: tuple[Limit, ...]
    capacity_bytes: int
    """Bytes of data before compression."""
    reserve_share: float = 0.0
    """Share of the usable capacity that a file system keeps free."""
    compression: float = 1.0
    """Compression ratio."""
    survive: int = 0
    """Number of arbitrary drives that may fail."""
    loss_a_year: float | None = None
    """Maximum probability of data loss per year."""
    bays: int | None = None
    watts: float | None = None
    usd: float | None = None
    spares: int = 0
    years: float = 0.0
    """Years of running costs; 0 for the purchase only."""
    pue: float = 1.5
    """Watts drawn per watt of the drives, including cooling and power supplies: an assumption."""
    objectives: tuple[str, ...] = ("usd",)
    requests_max: int = 128_000
    """Maximum number of requests simulated for one system."""
    spread: bool = False
    """Whether the requests go to the whole system, not only to the part that the data occupy."""

    def __post_init__(self) -> None:
        if not self.limits:
            raise InputError(
                "no limit; without a limit the smallest system always wins; add for example --limit p99=20ms"
            )
        for name, value in (("reserve", self.reserve_share), ("survive", self.survive), ("spares", self.spares)):
            if value < 0:
                raise InputError(f"{value:g} is negative; must be 0 or more", key=name)
        for name, maximum in (("watts", self.watts), ("budget", self.usd), ("bays", self.bays)):
            if maximum is not None and maximum <= 0:
                raise InputError(f"{maximum:g} is out of range; must be above 0", key=name)
        if self.loss_a_year is not None and not 0 < self.loss_a_year < 1:
            raise InputError(
                f"{self.loss_a_year:g} is not a probability of data loss; must be above 0 and below 1", key="loss"
            )
        if self.pue < 1:
            raise InputError(f"{self.pue:g} is less than the power of the drives; must be 1 or more", key="pue")
        if self.reserve_share >= 1:
            raise InputError(f"{100 * self.reserve_share:g}% leaves no capacity; must be below 100%", key="reserve")
        if self.compression <= 0:
            raise InputError(f"{self.compression:g} is out of range; must be above 0", key="compression")
        if not 1 <= len(self.objectives) <= 2 or len(set(self.objectives)) < len(self.objectives):
            objectives = ",".join(self.objectives)
            raise InputError(
                f"{objectives!r} is not allowed; use one of {', '.join(OBJECTIVES)}, or two of them for a frontier",
                key="objective",
            )
        for objective in self.objectives:
            if objective not in OBJECTIVES:
                raise InputError(f"{objective!r} is unknown; allowed: {', '.join(OBJECTIVES)}", key="objective")
        for objective in self.objectives:
            if objective == "latency" and not any(limit.is_most for limit in self.limits):
                raise InputError("latency: needs a limit on latency, for example mean=50ms", key="objective")

    @property
    def latency_place(self) -> int:
        """The index of the limit whose response time is the objective."""
        return next(place for place, limit in enumerate(self.limits) if limit.is_most)

    @property
    def stored_bytes(self) -> int:
        """Bytes that the data occupy on the system."""
        return round(self.capacity_bytes / self.compression)

    @property
    def usable_bytes(self) -> int:
        """Bytes that the system must export."""
        return round(self.stored_bytes / (1 - self.reserve_share))

    def in_words(self) -> list[str]:
        """Describes the job, one line per requirement."""
        demand = self.demand
        load = (
            f" at {demand.rate_per_s:,.4g} requests a second"
            if demand.rate_per_s is not None
            else f" at queue depth {demand.depth}"
            if demand.depth is not None
            else ""
        )
        limits = ", ".join(limit.text + (" while rebuilding" if limit.rebuilding else "") for limit in self.limits)
        lines = [f"{demand.name}{load}; {limits}"]
        parts = [f"{format_bytes(self.capacity_bytes)} of data"] if self.capacity_bytes else []
        parts += [f"compressed {self.compression:g} to 1"] if self.compression != 1 else []
        parts += [f"{100 * self.reserve_share:g} % kept free"] if self.reserve_share else []
        parts += [f"survives {self.survive} failure{'s' * (self.survive > 1)}"] if self.survive else []
        parts += (
            [f"probability of data loss per year {self.loss_a_year:g} at most"] if self.loss_a_year is not None else []
        )
        parts += [f"{self.spares} spare{'s' * (self.spares > 1)}"] if self.spares else []
        parts += [f"{self.bays} bays at most"] if self.bays is not None else []
        parts += [f"{self.watts:g} W at most"] if self.watts is not None else []
        parts += [f"${self.usd:,.0f} at most"] if self.usd is not None else []
        parts += [f"costs over {self.years:g} years"] if self.years else []
        return [*lines, *([", ".join(parts)] if parts else [])]
