"""Parses and checks a question: text and numbers are validated before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headstack._native import InputError
from headstack.catalogue.prices import PriceBook
from headstack.choice.answer import Answer
from headstack.choice.choose import Chooser
from headstack.choice.job import Job, demand_of
from headstack.choice.limits import Limit, limit_of
from headstack.choice.space import HOSTS, Space
from headstack.io.values import size_bytes

Named = str | os.PathLike[str]


def parse_question(
    names: Sequence[Named],
    *,
    rates: Sequence[float] = (),
    depth: int | None = None,
    scale: float = 1.0,
    growth: float = 0.0,
    limits: Sequence[str] = (),
    rebuilding: bool = False,
    capacity: str | int | None = None,
    reserve: float = 0.0,
    compression: float = 1.0,
    survive: int = 0,
    loss_a_year: float | None = None,
    spares: int = 0,
    bays: int | None = None,
    watts: float | None = None,
    usd: float | None = None,
    objective: str | Sequence[str] = "usd",
    years: float = 0.0,
    pue: float = 1.5,
    prices: Named | Sequence[Named] = (),
    on: str | None = None,
    shipped_prices: bool = True,
    estimate_prices: bool = False,
    among: Sequence[str] = (),
    without: Sequence[str] = (),
    hosts: Sequence[str] | None = None,
    levels: Sequence[str] = (),
    drives: tuple[int, int] = (1, 4096),
    chunk_sizes: Sequence[str] = (),
    caches: Sequence[str] = (),
    volumes: Sequence[str] = (),
    afr: Mapping[str, float] | None = None,
    spread: bool = False,
    requests: int = 128_000,
    store: Named | None = None,
    executor: str = "local",
) -> Chooser:
    """Returns the question, ready to be answered. Raises ``InputError`` with the name of an invalid value.

    >>> from headstack.choice.question_parser import parse_question
    >>> chooser = parse_question(["file-server"], rates=[200], limits=["p99=50ms"], capacity="10TB", on="2019-07")
    >>> chooser.job.capacity_bytes
    10000000000000
    """
    if scale <= 0:
        raise InputError(f"{scale:g} is out of range; must be above 0", key="scale")
    if years < 0 or (growth and not years):
        if growth:
            raise InputError("needs --years", key="growth")
        raise InputError(f"{years:g} is negative", key="years")
    if growth <= -1:
        raise InputError(f"{100 * growth:g}% per year leaves no load; must be above -100%", key="growth")
    fewest, most = drives
    if not 1 <= fewest <= most:
        raise InputError(
            f"{fewest}..{most} is empty; use 1 or more with the smaller number first, for example 4..24", key="drives"
        )
    growth_factor = (1 + growth) ** years
    demand = demand_of(list(names), list(rates), depth).scaled(scale * growth_factor)
    all_limits: list[Limit] = [limit_of(text) for text in limits]
    if rebuilding:
        all_limits += [replace(limit, rebuilding=True) for limit in all_limits if limit.is_most]
    data_bytes = 0 if capacity is None else capacity if isinstance(capacity, int) else size_bytes("capacity", capacity)
    if capacity is not None and data_bytes <= 0:
        raise InputError(f"{capacity} is out of range; must be above 0", key="capacity")
    if volumes and capacity is None:
        raise InputError("cloud volumes are sold by size; add --capacity, for example 500GB", key="volumes")
    job = Job(
        demand,
        tuple(all_limits),
        round(data_bytes * growth_factor),
        reserve,
        compression,
        survive,
        loss_a_year,
        bays,
        watts,
        usd,
        spares,
        years,
        pue,
        (objective,) if isinstance(objective, str) else tuple(objective),
        requests,
        spread,
    )
    files = [prices] if isinstance(prices, str | os.PathLike) else list(prices)
    space = Space(
        tuple(among),
        tuple(without),
        HOSTS if hosts is None else tuple(hosts),
        tuple(levels),
        drives,
        tuple(chunk_sizes),
        tuple(caches),
        tuple(volumes),
        tuple(sorted((afr or {}).items())),
    )
    return Chooser(job, space, PriceBook.load(files, on, shipped_prices), estimate_prices, store, executor)


def choose(names: Named | Sequence[Named], **options: Any) -> Answer:
    """Finds the cheapest system for a job, with the evidence and the sensitivity, like ``headstack choose``. Options
    are those of ``parse_question``: ``rates``, ``limits``, ``capacity``, ``survive``, ``prices`` and ``on``, the date
    of the prices.

    Raises ``InputError`` with the name of an invalid value.

    >>> job = {"rates": [100], "limits": ["p99=80ms"], "capacity": "10TB", "survive": 1, "requests": 8000}
    >>> answer = hs.choose("file-server", **job, among=["exos-x16-16tb"], hosts=["md-raid6-12x16tb"], on="2019-07")
    >>> answer.best.name
    '3 x exos-x16-16tb in raid5, md-raid6-12x16tb'
    """
    workloads = [names] if isinstance(names, str | os.PathLike) else list(names)
    return parse_question(workloads, **options).answer()
