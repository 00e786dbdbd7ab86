"""`headstack judge` on real disks, compared with other methods: `judging.py failslow.parquet`.

The file (host, ts_s, disk, throughput, latency; from the Perseus data set, no part of which is shipped with this
repository) has 36 disks of three hosts over two weeks. Two are known to be slow from the start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from headstack.diagnosis.judging.judge import judge
from headstack.diagnosis.judging.observations import SCHEMA, Observations, completed

SLOW = {("host_22", "11"), ("host_25", "8")}
DAY_S = 86_400
Found = set[tuple[str, str]]


def observations(path: Path) -> Observations:
    """Returns the file as observations: bytes per second and microseconds, as the magnitudes suggest."""
    of = pl.col
    frame = pl.read_parquet(path).with_columns(
        disk=of("disk").cast(pl.String),
        start_s=of("ts_s").cast(pl.Float64),
        length_s=pl.lit(15.0),
        bytes=of("throughput").cast(pl.Float64) * 15.0,
        latency_s=of("latency").cast(pl.Float64) / 1e6,
    )
    missing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in frame.columns]
    typed = frame.with_columns(missing).with_columns(of(name).cast(kind) for name, kind in SCHEMA.items())
    return Observations(completed(typed.lazy()).collect(), "fail-slow data", ("units are not stated",))


def own(frame: pl.DataFrame, peers: str) -> Found:
    """Returns the disks that this project calls slow."""
    verdicts = judge(Observations(frame, "fail-slow data"), peers=peers).verdicts  # type: ignore[arg-type]
    return {(verdict.host, verdict.disk) for verdict in verdicts if verdict.kind == "slow"}


def alone(frame: pl.DataFrame) -> Found:
    """Judges each disk separately, as if there were no other."""
    return set().union(*(own(part, "none") for part in frame.partition_by("host", "disk")))


def ratio(frame: pl.DataFrame) -> Found:
    """Detects disks above twice the host's median in more than half of some five minutes."""
    of = pl.col
    over = frame.with_columns(over=of("latency_s") > 2 * of("latency_s").median().over("host", "start_s"))
    windows = over.group_by("host", "disk", (of("start_s") // 300).alias("window")).agg(of("over").mean(), pl.len())
    return _disks(windows.filter((of("over") > 0.5) & (of("len") >= 10)))


def iaso_like(frame: pl.DataFrame) -> Found:
    """Detects disks by a score with additive increase and multiplicative decrease, over ten minutes, against the 30th
    percentile of peers: our implementation of the paper's description; timeouts are latencies above three times the
    host's median."""
    of = pl.col
    late = frame.with_columns(late=of("latency_s") > 3 * of("latency_s").median().over("host", "start_s"))
    windows = (
        late.group_by("host", "disk", (of("start_s") // 600).alias("window")).agg(of("late").mean()).sort("window")
    )
    found: Found = set()
    for _, of_disk in windows.group_by("host", "disk", maintain_order=True):
        score = 0.0
        for share in of_disk["late"]:
            score = score + 1 if share > 0.1 else score / 2
            if score > 4:
                found.add((of_disk["host"][0], of_disk["disk"][0]))
    return found


def fence(frame: pl.DataFrame) -> Found:
    """Detects disks whose median over three hours is above the third quartile of all plus twice the interquartile
    range, and above twice the host's median."""
    of = pl.col
    windows = frame.group_by("host", "disk", (of("start_s") // 10_800).alias("window")).agg(of("latency_s").median())
    within = of("latency_s").quantile(0.75).over("window")
    limit = within + 2 * (within - of("latency_s").quantile(0.25).over("window"))
    by_host = 2 * of("latency_s").median().over("host", "window")
    return _disks(windows.filter((of("latency_s") > limit) & (of("latency_s") >= by_host)))


def perseus_like(frame: pl.DataFrame) -> Found:
    """Detects disks by a polynomial of latency over throughput for each host and day, with the upper bound of 99.9 %:
    slow if the median of latency over the bound in five-minute windows is above 1 for at least an hour of a day.
    Without PCA: the fit excludes values above the 95th percentile."""
    of = pl.col
    found: Found = set()
    for _, day in frame.with_columns(day=of("start_s") // DAY_S).group_by("host", "day", maintain_order=True):
        x, y = np.log(day["bytes"].to_numpy()), np.log(day["latency_s"].to_numpy())
        kept = y <= np.quantile(y, 0.95)
        curve = np.polyfit(x[kept], y[kept], 2)
        bound = np.polyval(curve, x) + 3.09 * np.std(y[kept] - np.polyval(curve, x[kept]))
        rated = day.with_columns(over=pl.Series(y - bound))
        windows = rated.group_by("host", "disk", (of("start_s") // 300).alias("window")).agg(of("over").median())
        found |= _disks(windows.filter(of("over") > 0).group_by("host", "disk").len().filter(of("len") >= 12))
    return found


def _disks(frame: pl.DataFrame) -> Found:
    return set(frame.select("host", "disk").unique().iter_rows())


def main() -> int:
    frame = observations(Path(sys.argv[1])).frame
    first = frame.filter(pl.col("start_s") < frame["start_s"][0] + DAY_S)
    halves = frame["start_s"][0] + 7 * DAY_S
    ways: list[tuple[str, Callable[[pl.DataFrame], Found]]] = [
        ("headstack, peers of the host", lambda part: own(part, "host")),
        ("headstack, each disk alone", alone),
        ("ratio to the host's median", ratio),
        ("IASO-like", iaso_like),
        ("fence of quartiles", fence),
        ("Perseus-like", perseus_like),
    ]
    parts = {"first day": first, "first week": frame.filter(pl.col("start_s") < halves), "two weeks": frame}
    print(f"{'':32}" + "".join(f"{name:>24}" for name in parts))
    for name, way in ways:
        cells = []
        for part in parts.values():
            found = way(part)
            cells.append(f"{len(found & SLOW)} of 2, {len(found - SLOW)} of 34 false")
        print(f"{name:32}" + "".join(f"{cell:>24}" for cell in cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
