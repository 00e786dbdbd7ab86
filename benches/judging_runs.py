"""Monitoring data of simulated disks, healthy and faulty: tables for `judging_causes.py` and `judging_fleet.py`.

A quarter of an hour is 100 s of virtual time, in ten intervals of 10 s. All members of a host have the same load, which
changes each quarter: rate, size, share of reads, and the part of the disk in use.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

import headstack as hs
from headstack.diagnosis.judging.observations import SCHEMA, completed
from headstack.diagnosis.judging.steps import STEP_S

INTERVALS, INTERVAL_S = 10, 10.0
SIZES_KIB = (4, 8, 16, 32, 64, 128)
FLAT = 0.25
"""Share of a disk that is in use in a quarter of an hour."""


class Ill(NamedTuple):
    """A fault of a disk."""

    cause: str
    """The name in ``causes.CAUSES``, or ``healthy``."""
    fault: Callable[[bool, int], str] | None = None
    """A function that returns the fault schedule for an HDD or not, in a quarter of an hour."""
    options: Mapping[str, str] = MappingProxyType({})
    link: float | None = None
    """Remaining share of the link's rate."""
    spinning: bool | None = None
    """The kind of drives that may have it; ``None`` for all."""


def _fault(what: str, **keys: str) -> str:
    return f'[[fault]]\nat = "0s"\nwhat = "{what}"\n' + "".join(f"{key} = {value}\n" for key, value in keys.items())


def _time(spinning: bool, ms: float, us: float) -> str:
    return f'"{ms}ms"' if spinning else f'"{us}us"'


ZONE = '[{{ offset = "{at}GB", length = "{length}GB" }}]'
ILLS: dict[str, Ill] = {
    "healthy": Ill("healthy"),
    "mechanism, weakly": Ill("mechanism", lambda spinning, _: _fault("fail-slow", time=_time(spinning, 3, 60))),
    "mechanism": Ill("mechanism", lambda spinning, _: _fault("fail-slow", time=_time(spinning, 8, 200))),
    "answers": Ill("late answers", lambda spinning, _: _fault("latency-spike", time=_time(spinning, 8, 150))),
    "answers, much": Ill("late answers", lambda spinning, _: _fault("latency-spike", time=_time(spinning, 25, 900))),
    "retries, few": Ill(
        "reads of the medium",
        lambda _s, _: _fault("weak-sectors", turns="12", percent="4.0"),
        spinning=True,
    ),
    "retries": Ill(
        "reads of the medium", lambda _s, _: _fault("weak-sectors", turns="20", percent="8.0"), spinning=True
    ),
    "cache off": Ill("write cache off", options={"write_cache": "off"}, spinning=True),
    "link": Ill("link", link=0.03),
    "link, badly": Ill("link", link=0.012),
    "queue": Ill("queue cut", options={"queue_depth": "1"}, spinning=True),
    "background": Ill(
        "background work",
        lambda spinning, step: _fault("fail-slow", time=_time(spinning, 10, 300)) if step % 4 == 0 else "",
    ),
    "background, longer": Ill(
        "background work",
        lambda spinning, step: _fault("fail-slow", time=_time(spinning, 8, 250)) if step % 6 < 2 else "",
    ),
}
ZONED = ("zone", "zone, badly")
for _name, _ms, _us in ((ZONED[0], 12.0, 400.0), (ZONED[1], 25.0, 900.0)):
    ILLS[_name] = Ill("one zone")


class Load(NamedTuple):
    """The load of all disks of a host in a quarter of an hour."""

    share: float
    """Share of a disk's maximum throughput."""
    size_kib: int
    read_percent: int
    begin_percent: int


def load(draw: random.Random) -> Load:
    """Draws a random load."""
    return Load(
        draw.uniform(0.08, 0.6),
        draw.choice(SIZES_KIB),
        draw.randrange(35, 91),
        draw.randrange(0, int(100 - 100 * FLAT)),
    )


class Runs:
    """Runs of one drive of the catalogue."""

    def __init__(self, drive: str) -> None:
        self.drive = drive
        self.spinning = hs.Drive.load(drive).kind == "disk"
        self._most: dict[tuple[int, int], float] = {}
        self.folder = tempfile.TemporaryDirectory()

    def most(self, size_kib: int, read_percent: int) -> float:
        """Returns the requests per second at queue depth 4."""
        key = (size_kib, 10 * round(read_percent / 10))
        if key not in self._most:
            (row,) = hs.run(self.drive, size=f"{size_kib}KiB", read=str(key[1]), depth=4, time="20s", warm_up="10s")
            self._most[key] = min(float(row["iops"]), 800.0)
        return self._most[key]

    def quarter(self, host: str, disk: str, step: int, load: Load, ill: str, seed: int) -> pl.DataFrame:
        """Returns the intervals of a quarter of an hour."""
        trouble = ILLS[ill]
        system: Any = self.drive
        folder = Path(self.folder.name)
        if trouble.link is not None:
            system = str(folder / "linked.toml")
            Path(system).write_text(_slower_link(hs.Drive.load(self.drive).to_toml(), trouble.link))
        options: dict[str, Any] = dict(trouble.options)
        schedule = trouble.fault(self.spinning, step) if trouble.fault else ""
        if ill in ZONED:
            schedule = self._zone(12.0 if ill == ZONED[0] else 25.0, 400.0 if ill == ZONED[0] else 900.0)
        if schedule:
            (folder / "faults.toml").write_text(schedule)
            options["faults"] = str(folder / "faults.toml")
        rate = load.share * self.most(load.size_kib, load.read_percent)
        trace = folder / "trace.parquet"
        trace.unlink(missing_ok=True)
        hs.run(
            system,
            size=f"{load.size_kib}KiB",
            read=str(load.read_percent),
            random="100",
            rate=f"{rate:.3f}/s",
            range=f"{load.begin_percent}%..{load.begin_percent + int(100 * FLAT)}%",
            warm_up="0",
            time=f"{INTERVALS * INTERVAL_S:g}s",
            seed=seed,
            record=str(trace),
            **options,
        )
        return _intervals(pl.read_parquet(trace), host, disk, self.drive, step)

    def _zone(self, ms: float, us: float) -> str:
        """Returns a fault that slows all accesses to 10 % of the disk."""
        length = hs.Drive.load(self.drive).capacity_bytes // 10**9
        ranges = ZONE.format(at=int(0.4 * length), length=int(0.1 * length))
        return _fault("fail-slow", time=_time(self.spinning, ms, us), ranges=ranges)


def _slower_link(text: str, share: float) -> str:
    """Returns a description whose link has this share of its rate."""
    head, interface = text.split("[interface]\n", 1)
    slower = re.sub(
        r"^((?:read|write)_ns_per_byte) = ([\d.]+)",
        lambda found: f"{found[1]} = {float(found[2]) / share}",
        interface.split("\n\n", 1)[0],
        flags=re.MULTILINE,
    )
    return "\n\n".join([f"{head}[interface]\n{slower}", *interface.split("\n\n", 1)[1:]])


def _intervals(trace: pl.DataFrame, host: str, disk: str, model: str, step: int) -> pl.DataFrame:
    of = pl.col
    ends = (of("arrival_ns") + of("response_ns")) / 1e9
    trace = trace.with_columns(end_s=ends, at_s=of("arrival_ns") / 1e9, latency_s=of("response_ns") / 1e9)
    trace = trace.sort("at_s").with_columns(before_s=of("end_s").cum_max().shift(1).fill_null(0.0))
    # The part of a request's time not covered by earlier ones: their sum is the time with requests outstanding.
    alone = (of("end_s") - pl.max_horizontal("at_s", "before_s")).clip(0.0)
    trace = trace.with_columns(alone_s=alone, interval=(of("end_s") / INTERVAL_S).floor())
    trace = trace.filter(of("interval") < INTERVALS)
    read = of("operation") == "read"
    rows = trace.group_by("interval", maintain_order=True).agg(
        reads=read.sum(),
        writes=(~read).sum(),
        read_bytes=of("length_bytes").filter(read).sum(),
        write_bytes=of("length_bytes").filter(~read).sum(),
        read_latency_s=of("latency_s").filter(read).mean(),
        write_latency_s=of("latency_s").filter(~read).mean(),
        busy=(of("alone_s").sum() / INTERVAL_S).clip(0.0, 1.0),
    )
    named = rows.with_columns(
        host=pl.lit(host),
        disk=pl.lit(disk),
        model=pl.lit(model),
        start_s=step * STEP_S + of("interval") * INTERVAL_S,
        length_s=pl.lit(INTERVAL_S),
    )
    missing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in named.columns]
    return completed(
        named.with_columns(missing).with_columns(of(n).cast(k) for n, k in SCHEMA.items()).lazy()
    ).collect()
