"""Which suspect `headstack judge` names for simulated troubles: `judging_suspects.py [--plain] [--held-out] [--twin]`.

Sixty logs, twelve of each suspect, whose second half has a known trouble: slow disks and SSDs, volumes at their limit
and control groups with io.max, more asked than before, starved hosts, and scrubs. `--plain` leaves only the columns of
`iostat -x`; `--held-out` takes sixty logs of other drives, rates and sizes, which no weight was chosen with.
`--twin` judges the second half alone, compared with the simulated drive in order.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from judging_runs import _fault

import headstack as hs
from headstack.diagnosis.judging.judge import judge
from headstack.diagnosis.judging.observations import SCHEMA, Observations, completed
from headstack.diagnosis.judging.suspects.deciding import DECIDED
from headstack.diagnosis.judging.twins import SystemTwin

INTERVALS = 60
"""Number of intervals of each half."""
HOST = ("cpu_idle", "cpu_steal", "io_pressure", "discards")
IDLE, FULL = {"cpu_idle": 0.8}, {"cpu_idle": 0.03}
SCRUB = 'closed = { queue_depth = 1, think = { fixed = "2ms" } }'
Run = Mapping[str, Any]


class Drive(NamedTuple):
    """A drive, with loads that are light for it."""

    name: str
    interval_s: float
    """Length of an interval: long enough for some hundred requests."""
    faults: tuple[str, ...]
    """Added times of a slow device."""
    rates: tuple[int, ...]
    """Requests per second: light, and two limits."""
    busy: tuple[int, int]
    """Requests per second before a host starves, and then."""
    depth: int
    """Requests in flight when more is asked than before."""


class Set(NamedTuple):
    """Sixty logs."""

    disks: tuple[Drive, Drive]
    flash: tuple[Drive, Drive]
    volume: str
    rates: tuple[int, int, int]
    """Demands on the volume, as hundreds of requests in flight."""
    sizes: tuple[str, str]
    reads: tuple[str, str]


DEVELOPMENT = Set(
    (
        Drive("barracuda-xt-2tb", 10, ("8ms", "20ms", "100ms"), (30, 20, 40), (40, 12), 16),
        Drive("exos-x18-18tb", 10, ("8ms",), (30, 20, 40), (60, 20), 16),
    ),
    (
        Drive("pm9a3-1920gb", 1, ("100us", "1ms", "5ms"), (800, 500, 1000), (2000, 300), 256),
        Drive("pm883-480gb", 1, ("1ms",), (1000, 200, 2000), (2000, 300), 48),
    ),
    "aws-gp3-500",
    (15, 25, 40),
    ("4KiB", "16KiB"),
    ("90", "30"),
)
HELD_OUT = Set(
    (
        Drive("exos-x24-24tb", 15, ("5ms", "12ms", "60ms"), (22, 35, 60), (50, 18), 12),
        Drive("barracuda-4lp-2", 20, ("10ms",), (15, 12, 25), (35, 9), 8),
    ),
    (
        Drive("pm893-960gb", 1, ("150us", "700us", "3ms"), (600, 750, 3000), (1700, 450), 40),
        Drive("pm9a3-7680gb", 1, ("300us",), (1500, 1200, 5000), (3000, 700), 128),
    ),
    "aws-gp3-500",
    (8, 18, 64),
    ("8KiB", "32KiB"),
    ("75", "50"),
)


class Case(NamedTuple):
    """A log with a known trouble in its second half."""

    kind: str
    name: str
    interval_s: float
    halves: tuple[Run, Run]
    """Arguments of ``hs.run`` of each half."""
    context: tuple[dict[str, float], dict[str, float]] = (IDLE, IDLE)
    """Columns of the host in each half."""


def cases(of: Set, folder: Path) -> Iterator[Case]:
    """Yields the cases, with open and closed loads."""
    for drive in (of.disks[0], of.flash[0]):
        for time in drive.faults:
            fault = folder / f"{drive.name}-{time}.toml"
            fault.write_text(_fault("fail-slow", time=f'"{time}"'))
            # A device that is too slow for open clients would never answer.
            rate = drive.rates[0] if time != drive.faults[-1] else max(1, drive.rates[0] // 10)
            for load in ({"rate": f"{rate}/s"}, {"depth": "2"}):
                run = {"systems": drive.name, "size": of.sizes[0], "read": of.reads[0], **load}
                yield Case(
                    "slow", f"{drive.name} {time} {load}", drive.interval_s, (run, {**run, "faults": str(fault)})
                )
    for rate in of.rates:
        for size in of.sizes:
            run = {"systems": of.volume, "size": size, "read": of.reads[0]}
            halves = {**run, "rate": f"{30 * rate}/s"}, {**run, "depth": str(rate)}
            yield Case("limit", f"{of.volume} {rate} in flight, {size}", 5, halves)
    for drive in (of.disks[0], of.flash[0], of.flash[1]):
        for limit in drive.rates[1:]:
            run = {"systems": drive.name, "size": of.sizes[0], "read": of.reads[0]}
            halves = {**run, "rate": f"{1.6 * limit}/s"}, {**run, "rate": f"{limit}/s", "arrivals": "fixed"}
            context = {**IDLE, "io_pressure": 0.02}, {**IDLE, "io_pressure": 0.7}
            yield Case("limit", f"io.max {drive.name} {limit}/s", drive.interval_s, halves, context)
    for drive in (*of.disks, *of.flash):
        for read in of.reads if drive in (of.disks[1], of.flash[1]) else (*of.reads, "100", "0"):
            run = {"systems": drive.name, "size": of.sizes[0], "read": read}
            halves = {**run, "rate": f"{drive.rates[0]}/s"}, {**run, "depth": str(drive.depth)}
            # A deep queue at an SSD has so many requests that short intervals suffice.
            interval_s = 0.1 if drive in of.flash else drive.interval_s
            yield Case("queue", f"{drive.name} to depth {drive.depth}, {read} % reads", interval_s, halves)
            if read != "0":
                halves = {**run, "rate": f"{drive.busy[0]}/s"}, {**run, "rate": f"{drive.busy[1]}/s"}
                yield Case(
                    "host", f"{drive.name} to {drive.busy[1]}/s, {read} %", drive.interval_s, halves, (IDLE, FULL)
                )
    for read in of.reads:
        run = {"systems": of.flash[1].name, "size": of.sizes[1], "read": read}
        halves = {**run, "rate": f"{of.flash[1].busy[0]}/s"}, {**run, "rate": f"{of.flash[1].busy[1]}/s"}
        yield Case("host", f"{of.flash[1].name}, {of.sizes[1]}, {read} %", 1, halves, (IDLE, FULL))
    for drive in (*of.disks, of.flash[1]):
        for size in of.sizes:
            for read in of.reads:
                run = {"systems": drive.name, "rate": f"{drive.rates[0]}/s", "size": size, "read": read}
                name = f"scrub {drive.name}, {size}, {read} % reads"
                yield Case("neighbour", name, drive.interval_s, (run, {**run, "scrub": True}))


def requests_of(run: Run, length_s: float, folder: Path, seed: int) -> pl.DataFrame:
    """Returns the requests of a run as a trace."""
    options = dict(run)
    trace = folder / "trace.parquet"
    trace.unlink(missing_ok=True)
    system = options.pop("systems")
    if options.pop("scrub", False):
        hs.run(system, str(_scrubbed(options, length_s, folder)), seed=seed, record=str(trace))
    else:
        hs.run(system, random="100", warm_up="0", time=f"{length_s:g}s", seed=seed, record=str(trace), **options)
    return pl.read_parquet(trace, columns=["arrival_ns", "response_ns", "operation", "length_bytes"])


def _scrubbed(client: Run, length_s: float, folder: Path) -> Path:
    """Writes a scenario of a client and a scrub: one large sequential read after another."""
    arrivals = f'open = {{ rate_per_s = {client["rate"][:-2]}, process = "poisson" }}'
    streams = "\n".join(
        f'[[streams]]\nname = "{name}"\n[streams.access]\narrivals = {{ {arrivals} }}\n'
        f'lines = [{{ size = "{size}", read_percent = {read}, random_percent = {random} }}]\n'
        for name, arrivals, size, read, random in (
            ("client", arrivals, client["size"], client["read"], 100),
            ("scrub", SCRUB, "512KiB", 100, 0),
        )
    )
    path = folder / "scrub.toml"
    length = f'run_length = {{ time = "{length_s:g}s" }}'
    path.write_text(f'name = "scrub"\nsource = "simulated"\nwarm_up = {{ requests = 0 }}\n{length}\n{streams}')
    return path


def intervals(requests: pl.DataFrame, interval_s: float) -> pl.DataFrame:
    """Returns what iostat shows of requests, from second 0 on."""
    of = pl.col
    requests = requests.with_columns(at_s=of("arrival_ns") / 1e9, latency_s=of("response_ns") / 1e9).sort("at_s")
    requests = requests.with_columns(end_s=of("at_s") + of("latency_s"))
    requests = requests.with_columns(before_s=of("end_s").cum_max().shift(1).fill_null(0.0))
    alone = (of("end_s") - pl.max_horizontal("at_s", "before_s")).clip(0.0)
    requests = requests.with_columns(alone_s=alone, interval=(of("end_s") / interval_s).floor())
    read = of("operation") == "read"
    return (
        requests.filter(of("interval") < INTERVALS)
        .group_by("interval", maintain_order=True)
        .agg(
            reads=read.sum(),
            writes=(~read).sum(),
            read_bytes=of("length_bytes").filter(read).sum(),
            write_bytes=of("length_bytes").filter(~read).sum(),
            read_latency_s=of("latency_s").filter(read).mean(),
            write_latency_s=of("latency_s").filter(~read).mean(),
            in_flight=of("latency_s").sum() / interval_s,
            busy=(of("alone_s").sum() / interval_s).clip(0.0, 1.0),
        )
        .with_columns(start_s=of("interval") * interval_s, length_s=pl.lit(interval_s))
    )


def log_of(case: Case, folder: Path, seed: int) -> pl.DataFrame:
    """Returns the log of a case as observations."""
    parts = []
    length_s = INTERVALS * case.interval_s
    for half, (run, context) in enumerate(zip(case.halves, case.context, strict=True)):
        rows = intervals(requests_of(run, length_s, folder, seed + half), case.interval_s)
        named = {name: pl.lit(value) for name, value in context.items()}
        parts.append(rows.with_columns(start_s=pl.col("start_s") + half * length_s, **named))
    frame = pl.concat(parts, how="diagonal").with_columns(host=pl.lit("host"), disk=pl.lit("sda"))
    missing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in frame.columns]
    typed = frame.with_columns(missing).with_columns(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
    return completed(typed.lazy()).collect()


def main() -> int:
    options = set(sys.argv[1:])
    if unknown := options - {"--plain", "--held-out", "--twin"}:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}")
    right: Counter[str] = Counter()
    of_kind: Counter[str] = Counter()
    accused = decided = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, case in enumerate(cases(HELD_OUT if "--held-out" in options else DEVELOPMENT, folder)):
            log = log_of(case, folder, 10 * number)
            if "--plain" in options:
                log = log.with_columns(pl.lit(None, pl.Float64).alias(column) for column in HOST)
            twin = None
            if "--twin" in options:
                log = log.filter(pl.col("start_s") >= INTERVALS * case.interval_s)
                twin = {"": SystemTwin(case.halves[0]["systems"])}
            (verdict,) = judge(Observations(log, "simulated"), twin=twin).verdicts
            found = {"device": "slow"}.get(verdict.suspects[0].suspect, verdict.suspects[0].suspect)
            of_kind[case.kind] += 1
            right[case.kind] += found == case.kind
            decided += verdict.suspects[0].likelihood >= DECIDED
            accused += verdict.kind == "slow" and case.kind != "slow"
            weights = ", ".join(f"{of.suspect} {of.likelihood:.2f}" for of in verdict.suspects[:3])
            mark = " " if found == case.kind else "!"
            print(f"{mark} {case.kind:10}{verdict.kind:11}{case.name:52.52} {weights}", flush=True)
    print(f"right: {sum(right.values())} of {sum(of_kind.values())} ({dict(right)}), {decided} decided")
    print(f"healthy devices accused: {accused}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
