"""``Zones``: transfer rates and access times from the outer to the inner edge, like hdtune."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack._native import Field, InputError
from headstack.catalogue.system import load_system
from headstack.catalogue.workload import Workload
from headstack.io.values import duration_ns, size_bytes
from headstack.measurement.access import Access, Progress
from headstack.measurement.measurement import Opened, Step, is_target
from headstack.measurement.tests.classic.outcome import (
    NOTHING_ALLOWED,
    Outcome,
    at_least,
    join_results,
    part_of,
    requests,
)
from headstack.measurement.tests.classic.zone_figures import zone_figures
from headstack.results.results import Results
from headstack.simulation.runs import first_spec

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from headstack.report.figures import Figure
from headstack.measurement.tests.classic.figures import Profile

POSITIONS, SIZE, PART, TIME, DEPTH = 64, "1MiB", "32MiB", "2s", 2

ACCESSES, ACCESS_SIZE = 500, "4KiB"

WARM_UP = 2
"""Number of requests at a position that do not count, because the arm has to move and read-ahead has to start."""

LEAST_REQUESTS = 4
"""Minimum number of requests at a position, including requests that do not count."""


@dataclass(frozen=True)
class Zones(Outcome):
    """The profiles of one or several systems."""

    fields = (
        Field("system", "text", "", "path or name of the system"),
        Field("mode", "text", "", "measured or simulated"),
        Field("position_bytes", "count", "bytes", "position on the system"),
        Field("mb_per_s", "figure", "10^6 bytes/s", "sequential rate at the position; empty in rows of accesses"),
        Field("access_ms", "figure", "ms", "time of one access at the position; empty in rows of rates"),
    )

    profiles: list[Profile]

    @property
    def test(self) -> str:
        """The name of the test."""
        return "zones"

    @property
    def by_share(self) -> bool:
        """Whether positions are shares of the capacity, so that systems of very different sizes are compared from edge
        to edge, not byte by byte."""
        lengths = [profile.length_bytes for profile in self.profiles]
        return max(lengths) > 1.5 * min(lengths)

    def main_figures(self) -> list[Figure]:
        """Returns the rates from the outer to the inner edge, and the access times by percentile."""
        return zone_figures(self.profiles, self.by_share)

    def figures(self) -> Mapping[str, object]:
        """``mb_per_s``, ``megabits_per_s``, ``access``, ``zones`` and the points of each system."""
        points = [
            {
                "rates": [{"position_bytes": at, "mb_per_s": rate} for at, rate in profile.rates],
                "accesses": [{"position_bytes": at, "ms": ms} for at, ms in profile.accesses],
            }
            for profile in self.profiles
        ]
        return {"systems": [{**p.figures(), **more} for p, more in zip(self.profiles, points, strict=True)]}

    def rows(self) -> list[Mapping[str, str | float | None]]:
        """Returns a row for each position, with the rate or the time of one access."""
        return [
            {"system": p.system, "mode": p.mode, "position_bytes": at, "mb_per_s": rate, "access_ms": ms}
            for p in self.profiles
            for at, rate, ms in (
                *((at, rate, None) for at, rate in p.rates),
                *((at, None, ms) for at, ms in p.accesses),
            )
        ]

    def answer(self) -> str:
        """A sentence with the rates at both edges."""
        return self.main_figures()[0].says

    def plot(self, path: str | os.PathLike[str] | None = None) -> Picture:
        """Plots rates as lines and access times as dots over position."""
        from headstack.measurement.tests.classic import pictures  # start-up time

        return pictures.drawn(pictures.zones(self.profiles, self.by_share, self.results[0]["seed"]), path)


@dataclass(frozen=True)
class _Plan:
    """The positions and sizes of requests on one system."""

    start_bytes: int
    length_bytes: int
    places: list[int]
    part_bytes: int
    size_bytes: int
    access_bytes: int
    depth: int
    accesses: int
    kind: str

    @property
    def transfer(self) -> Mapping[str, Any]:
        """Sequential requests through a part."""
        count = self.part_bytes // self.size_bytes - WARM_UP
        percent = 100 if self.kind == "read" else 0
        name = f"sequential {self.kind} at a position"
        return requests(name, self.size_bytes, read_percent=percent, depth=self.depth, warm_up=WARM_UP, count=count)

    @property
    def access(self) -> Mapping[str, Any]:
        """Single random requests over the whole system."""
        percent = 100 if self.kind == "read" else 0
        return requests(
            f"random {self.kind}", self.access_bytes, read_percent=percent, random_percent=100, count=self.accesses
        )

    @property
    def span(self) -> tuple[int, int]:
        return self.start_bytes, self.length_bytes


def zones(
    systems: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    access: Access = NOTHING_ALLOWED,
    *,
    positions: int = POSITIONS,
    size: str = SIZE,
    part: str = PART,
    time: str = TIME,
    depth: int = DEPTH,
    accesses: int = ACCESSES,
    access_size: str = ACCESS_SIZE,
    range: str | None = None,
    write: bool = False,
    progress: Progress | None = None,
) -> Zones:
    """Measures the transfer rate at evenly spaced positions and the time of random accesses, on files, devices or
    simulated systems.

    At each of ``positions``, ``part`` is read sequentially in requests of ``size`` at queue depth ``depth``, but no
    longer than ``time``; then ``accesses`` single random requests of ``access_size`` are made. With ``write``,
    requests are writes, which needs the permission that ``access`` contains. Raises ``InputError`` if a system is too
    small.

    >>> hs.zones("cheetah-x15-36lp", positions=4, accesses=4).profiles[0].mode
    'simulated'
    """
    names = [systems] if isinstance(systems, str | os.PathLike) else list(systems)
    wanted = {"positions": positions, "depth": depth, "accesses": accesses}
    at_least("positions", positions, 2), at_least("depth", depth, 1), at_least("accesses", accesses, 0)
    sizes = {"size": size_bytes("size", size), "part": size_bytes("part", part)}
    sizes["access"] = size_bytes("access_size", access_size)
    limit_ns = duration_ns("time", time)
    if limit_ns <= 0:
        raise InputError(f"{time} is out of range; must be above 0s", key="time")
    results: list[Results] = []
    profiles: list[Profile] = []
    ended: str | None = None
    for name in [os.fspath(name) for name in names]:
        if is_target(name):
            opened = Opened([name], access, write)
            span = part_of(opened, range)
            plan = _planned(name, span, max(512, opened.described[0]["block_bytes"]), wanted, sizes, write)
            made, profile = _measured(name, opened, plan, limit_ns, progress)
        else:
            made, profile = _simulated(name, range, wanted, sizes, write)
        results += made
        profiles.append(profile)
        ended = next((row["ended_early"] for part in made for row in part if row["ended_early"] is not None), None)
        if ended is not None:
            break
    return Zones(join_results(results), ended, profiles)


def _planned(
    name: str,
    span: tuple[int, int],
    block_bytes: int,
    wanted: dict[str, int],
    sizes: dict[str, int],
    write: bool,
) -> _Plan:
    start, length = span
    size, access = (-(-sizes[which] // block_bytes) * block_bytes for which in ("size", "access"))
    # Parts must not overlap, because the drive would answer the next part from its buffer.
    positions = min(wanted["positions"], length // (LEAST_REQUESTS * size)) if size else 0
    if positions < 2 or not access:
        least = _native.format_bytes(2 * LEAST_REQUESTS * size)
        raise InputError(
            f"{_native.format_bytes(length)} is too small for requests of {_native.format_bytes(size)}; "
            f"use at least {least}, or smaller requests (size)",
            key=name,
        )
    part = max(LEAST_REQUESTS * size, min(sizes["part"], length // positions) // size * size)
    last = (length - part) // block_bytes * block_bytes
    places = [start + last * number // (positions - 1) // block_bytes * block_bytes for number in range(positions)]
    kind = "write" if write else "read"
    return _Plan(start, length, places, part, size, access, wanted["depth"], wanted["accesses"], kind)


def _measured(
    name: str, opened: Opened, plan: _Plan, limit_ns: int, progress: Progress | None
) -> tuple[list[Results], Profile]:
    count = plan.transfer["run_length"]["requests"]
    limits = {"requests": count, "time_ns": limit_ns}
    steps = [Step(plan.transfer, (at, plan.part_bytes), limits, _labels(at)) for at in plan.places]
    made, accesses = [opened.measure(steps, progress)], []
    if opened.ended is None and plan.accesses:
        log = _native.RequestLog()
        made.append(opened.measure([Step(plan.access, plan.span)], progress, log=log))
        # The initial arm position does not matter, because the first request starts with the arm at the inner edge.
        accesses = [(at, response_ns / 1e6) for _, _, at, _, _, response_ns, failed, _ in log.take() if not failed]
    return made, _profile(name, "measured", plan, made[0], accesses)


def _simulated(
    name: str, part: str | None, wanted: dict[str, int], sizes: dict[str, int], write: bool
) -> tuple[list[Results], Profile]:
    system = load_system(name) if part is None else load_system(name).part(part)
    size = system.size
    plan = _planned(name, system.span or (0, size.capacity_bytes), size.sector_bytes, wanted, sizes, write)
    spec = first_spec(system, Workload(dict(plan.transfer)))
    specs = [spec | {"span": (at, plan.part_bytes), "labels": list(_labels(at).items())} for at in plan.places]
    made, accesses = [Results(_native.run(specs))], []
    if plan.accesses:
        import duckdb  # start-up time

        spec = first_spec(system, Workload(dict(plan.access))) | {"span": plan.span, "labels": []}
        with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
            record = str(Path(folder) / "accesses.parquet")
            made.append(Results(_native.run([spec], None, record)))
            accesses = connection.sql(
                "select offset_bytes, response_ns / 1e6 from read_parquet($record)", params={"record": record}
            ).fetchall()
    return made, _profile(system.name, "simulated", plan, made[0], accesses)


def _labels(at_bytes: int) -> dict[str, str]:
    return {"position": str(at_bytes)}


def _profile(name: str, mode: str, plan: _Plan, transfers: Results, accesses: list[tuple[int, float]]) -> Profile:
    # A position without requests, after an interruption, has no rate.
    rates = [(int(row["position"]), row["mb_per_s"]) for row in transfers if row["requests"] and row["duration_s"]]
    return Profile(name, mode, plan.kind, plan.start_bytes, plan.length_bytes, rates, accesses)
