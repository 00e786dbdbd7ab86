"""The plan: which cells give which properties, and how the figures are estimated. Reads come first, then each kind of
writes: until no cache is left, in short cells, and against reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

from headstack.measurement.tests.settings.benches import Bench
from headstack.measurement.tests.settings.cells import KIB, Cell, Reading, Stream
from headstack.measurement.tests.settings.levels import Level, groups, sustained
from headstack.measurement.tests.settings.properties import Estimate, Properties, Property, from_rounds
from headstack.results.results import Results

Kind = Literal["sequential", "random"]
KINDS: tuple[Kind, ...] = ("sequential", "random")
"""Kinds of writes in the order of a device that is not worn in: sequential writes fill it, random writes wear it in."""
DEPTHS = tuple(2**n for n in range(9))
"""Queue depths of the sweep: 1 to 256."""
KNEE = 0.9
"""Share of the maximum rate at which the queue depth is large enough (`Q*`)."""
STILL_RISING = 1.05
"""Factor between the last two depths above which the maximum was not reached."""
MIB = 1 << 20
STREAM_DEPTH = 8
"""Queue depth of 1 MiB requests, which saturates any device: 8 MiB in flight."""
WRITE_DEPTH = 32
"""Queue depth of random writes; SSDs acknowledge them from a buffer, so few are needed."""
KERNEL_DEPTH = 64
"""Queue depth of 4 KiB requests in the kernel's iocost_coef_gen.py."""
WRITERS = 8
"""Number of concurrent writers of synchronous writes, and of sequential streams."""
SHARES = (25, 50, 75)
"""Write loads against which reads are measured, in percent of the write rate."""

SWEEPS = {
    4: (Property.READ_4K_ALONE, Property.READ_4K_KNEE, Property.READ_4K_DEPTH, Property.READ_4K_MAX),
    8: (Property.READ_8K_ALONE, Property.READ_8K_KNEE, Property.READ_8K_DEPTH),
}
RANDOM_WRITES = {4: Property.WRITE_4K, 8: Property.WRITE_8K, 16: Property.WRITE_16K}
SYNC = {
    (4, 1): (Property.SYNC_4K, Property.SYNC_4K_P99),
    (8, 1): (Property.SYNC_8K, Property.SYNC_8K_P99),
    (8, WRITERS): (Property.SYNC_8K_WRITERS, None),
}
BESIDE_RANDOM = {
    25: Property.MIXED_READ_P99_25,
    50: Property.MIXED_READ_P99_50,
    75: Property.MIXED_READ_P99_75,
}
BESIDE_STREAM = {
    25: Property.STREAM_READ_P99_25,
    50: Property.STREAM_READ_P99_50,
    75: Property.STREAM_READ_P99_75,
}
OF_RANDOM = {
    *BESIDE_RANDOM.values(),
    Property.MIXED_READ_P95_50,
    Property.MIXED_WRITE_P95_50,
}


def with_prerequisites(wanted: Iterable[Property]) -> set[Property]:
    """Returns the properties with those that they are measured against."""
    properties = set(wanted)
    if properties & OF_RANDOM:
        properties |= {Property.WRITE_4K, Property.MIXED_READ_P99_0}
    if properties & set(BESIDE_STREAM.values()):
        properties |= {Property.WRITE_SEQUENTIAL, Property.MIXED_READ_P99_0}
    if Property.WRITE_SEQUENTIAL_4K in properties:
        properties.add(Property.WRITE_SEQUENTIAL)
    return properties


def read_cells(wanted: set[Property]) -> list[Cell]:
    """Returns the cells that only read."""
    cells = []
    for kib, properties in SWEEPS.items():
        of_sweep = wanted & set(properties)
        is_alone = bool(of_sweep) or (kib == 4 and Property.MIXED_READ_P99_0 in wanted)
        depths = DEPTHS if of_sweep - {properties[0]} else DEPTHS[:1] if is_alone else ()
        cells += [Cell(f"random reads {kib} KiB, depth {d}", (Stream(kib * KIB, depth=d),)) for d in depths]
    if Property.READ_SEQUENTIAL in wanted:
        cells.append(Cell("sequential reads", (Stream(MIB, random_percent=0, depth=STREAM_DEPTH),)))
    if Property.READ_SEQUENTIAL_4K in wanted:
        cells.append(Cell("sequential reads 4 KiB", (Stream(4 * KIB, random_percent=0, depth=KERNEL_DEPTH),)))
    return cells


def logged_cells(wanted: set[Property], kind: Kind, every_size: bool) -> list[Cell]:
    """Returns the cells that write until no cache is left. On a target one size of random writes wears it in for
    all."""
    if kind == "sequential":
        streams = ((Property.WRITE_SEQUENTIAL, 1), (Property.WRITE_STREAMS, WRITERS))
        return [
            Cell(prop.value, (Stream(MIB, 0, 0, STREAM_DEPTH, pointers=pointers),))
            for prop, pointers in streams
            if prop in wanted
        ]
    cells = [random_writes(kib) for kib, prop in RANDOM_WRITES.items() if prop in wanted]
    return cells if every_size else cells[:1]


def random_writes(kib: int) -> Cell:
    """Returns the cell of random writes of a size."""
    return Cell(RANDOM_WRITES[kib].value, (Stream(kib * KIB, 0, 100, WRITE_DEPTH),))


def write_cells(wanted: set[Property], kind: Kind, with_sizes: bool) -> list[Cell]:
    """Returns the cells of short and, after random writes, of synchronous writes, which are run in rounds."""
    if kind == "sequential":
        small = Cell(Property.WRITE_SEQUENTIAL_4K.value, (Stream(4 * KIB, 0, 0, KERNEL_DEPTH),))
        return [small] if Property.WRITE_SEQUENTIAL_4K in wanted else []
    cells = []
    if with_sizes:
        cells += [random_writes(kib) for kib, prop in RANDOM_WRITES.items() if prop in wanted]
    for (kib, writers), props in SYNC.items():
        if wanted & set(props):
            parts = [(number, writers) for number in range(writers)]
            streams = tuple(Stream(kib * KIB, 0, 0, flush_every=1, part=part) for part in parts)
            cells.append(Cell(f"synchronous writes {kib} KiB, {writers}", streams))
    return cells


def mixed_cells(wanted: set[Property], kind: Kind, writes_per_s: float | None) -> list[Cell]:
    """Returns the cells of reads against writes at shares of their rate; none if it is not known."""
    if writes_per_s is None or not wanted & (OF_RANDOM if kind == "random" else set(BESIDE_STREAM.values())):
        return []
    size, random_percent = (4 * KIB, 100) if kind == "random" else (MIB, 0)
    return [
        Cell(
            f"reads and {kind} writes, {share}",
            (Stream(4 * KIB), Stream(size, 0, random_percent, rate_per_s=writes_per_s * share / 100)),
        )
        for share in SHARES
    ]


def cells_count(wanted: set[Property], with_writes: bool) -> tuple[int, int]:
    """Returns the number of cells of a target, and the number of runs of writes until no cache is left."""
    properties = with_prerequisites(wanted)
    if not with_writes:
        return len(read_cells(properties)), 0
    cells, logs = read_cells(properties), 0
    for kind in KINDS:
        cells += [*write_cells(properties, kind, True), *mixed_cells(properties, kind, 1.0)]
        logs += len(logged_cells(properties, kind, False))
    return len(cells), logs


@dataclass
class Session:
    """The runs on a bench, and the estimates so far."""

    bench: Bench
    estimates: dict[Property, Estimate] = field(default_factory=dict)
    made: list[Results] = field(default_factory=list)
    levels: dict[Kind, Level] = field(default_factory=dict)
    """The levels of the writes until no cache is left, by kind of writes."""

    def in_rounds(self, cells: Sequence[Cell]) -> dict[str, list[Reading]]:
        """Runs all cells in turn, several times, so that each figure shows the changes between rounds."""
        readings: dict[str, list[Reading]] = {cell.name: [] for cell in cells}
        for number in range(self.bench.rounds):
            for cell in cells:
                if self.bench.ended is None:
                    readings[cell.name].append(self.bench.read(cell, number))
                    self.made.append(readings[cell.name][-1].results)
        return {name: rounds for name, rounds in readings.items() if rounds}

    def estimate(self, readings: Sequence[Reading], figure: Callable[[Reading], float], column: str = "") -> Estimate:
        """Estimates a figure from rounds, or from a model with its prediction interval.

        ``column`` is the figure's name in the columns of results, without which a model has no interval.
        """
        if self.bench.origin == "measured":
            return from_rounds([figure(reading) for reading in readings])
        [reading] = readings
        value, row = figure(reading), reading.results[0]
        if not value:
            return Estimate(None, note="no request completed", origin="predicted")
        note = row["model_error"] or "no prediction interval of this figure"
        name, _, unit = column.partition("_")
        low, high = (row.get("_".join(filter(None, (name, "model", end, unit)))) for end in ("low", "high"))
        if not column or low is None or high is None:
            return Estimate(value, note=note, origin="predicted")
        factor = value / row[column]
        return Estimate(value, factor * low, factor * high, note, origin="predicted")


def measure_properties(bench: Bench, wanted: Iterable[Property]) -> tuple[Properties, list[Results]]:
    """Measures the properties on a bench. Returns them with the results of all runs."""
    properties, session = with_prerequisites(wanted), Session(bench)
    _measure_reads(session, properties)
    if bench.unwritable is not None:
        for prop in properties - session.estimates.keys():
            session.estimates[prop] = Estimate(None, note=bench.unwritable, origin=bench.origin)
        return Properties(session.estimates), session.made
    # Sequential writes put a drive that was overwritten randomly in order again.
    for kind in reversed(KINDS) if bench.is_worn_in else KINDS:
        _measure_levels(session, properties, kind)
        _measure_writes(session, properties, kind)
        _measure_mixed(session, properties, kind)
    for prop in properties - session.estimates.keys():
        why = bench.ended or "not measured"
        session.estimates[prop] = Estimate(None, note=f"ended early: {why}", origin=bench.origin)
    return Properties(session.estimates), session.made


def _measure_reads(session: Session, wanted: set[Property]) -> None:
    readings = session.in_rounds(read_cells(wanted))
    for kib, properties in SWEEPS.items():
        curve = {d: r for d in DEPTHS if (r := readings.get(f"random reads {kib} KiB, depth {d}"))}
        if curve:
            session.estimates |= dict(zip(properties, _of_sweep(session, curve), strict=False))
    if Property.MIXED_READ_P99_0 in wanted and (alone := readings.get("random reads 4 KiB, depth 1")):
        p99 = session.estimate(alone, lambda r: r.percentile_ms("read", 99), "p99_ms")
        session.estimates[Property.MIXED_READ_P99_0] = p99
    if "sequential reads" in readings:
        session.estimates[Property.READ_SEQUENTIAL] = _scaled(
            session.estimate(readings["sequential reads"], lambda r: r.per_s("read"), "iops"), MIB
        )
    if "sequential reads 4 KiB" in readings:
        session.estimates[Property.READ_SEQUENTIAL_4K] = session.estimate(
            readings["sequential reads 4 KiB"], lambda r: r.per_s("read"), "iops"
        )


def _of_sweep(session: Session, curve: dict[int, list[Reading]]) -> list[Estimate]:
    """Returns the estimates of a sweep: at depth 1, at the knee, the depth of the knee, and the maximum."""

    def rate(reading: Reading) -> float:
        return reading.per_s("read")

    alone = session.estimate(curve[1], rate, "iops")
    if len(curve) < len(DEPTHS):
        return [alone]
    means = {depth: fmean(rate(reading) for reading in readings) for depth, readings in curve.items()}
    best = max(means, key=lambda depth: means[depth])
    most = session.estimate(curve[best], rate, "iops")
    rising = means[DEPTHS[-1]] > STILL_RISING * means[DEPTHS[-2]]
    note = f"the rate still rises at depth {DEPTHS[-1]}" if rising else f"maximum at depth {best}"
    depth = Estimate(knee_depth(means), note=note, origin=session.bench.origin)
    count = min(len(readings) for readings in curve.values())
    if count > 1:
        rounds = [knee_depth({d: rate(readings[number]) for d, readings in curve.items()}) for number in range(count)]
        spread = from_rounds(rounds)
        depth = replace(depth, low=min(spread.low or 1, depth.value or 1), high=max(spread.high or 1, depth.value or 1))
    return [alone, replace(_scaled(most, KNEE), note=note), depth, replace(most, note=note)]


def knee_depth(per_s: dict[int, float]) -> float:
    """Returns the lowest depth at which the rate reaches 90 % of the maximum, between the measured depths.

    >>> from headstack.measurement.tests.settings.plan import knee_depth
    >>> knee_depth({1: 100.0, 2: 200.0, 4: 200.0})
    1.8
    """
    goal = KNEE * max(per_s.values())
    below: tuple[int, float] | None = None
    for depth, rate in sorted(per_s.items()):
        if rate >= goal:
            if below is None:
                return float(depth)
            share = (goal - below[1]) / (rate - below[1])
            return below[0] + share * (depth - below[0])
        below = depth, rate
    raise AssertionError("the maximum exceeds its share")


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    """Returns an estimate in another unit."""

    def scale(value: float | None) -> float | None:
        return None if value is None else factor * value

    return replace(
        estimate,
        value=scale(estimate.value),
        low=scale(estimate.low),
        high=scale(estimate.high),
        at_most=scale(estimate.at_most),
    )


def _measure_levels(session: Session, wanted: set[Property], kind: Kind) -> None:
    """Writes until no cache is left."""
    bench = session.bench
    is_model = bench.origin == "predicted"
    for cell in logged_cells(wanted, kind, is_model):
        if bench.ended is not None:
            return
        [stream] = cell.streams
        reading, seconds = bench.log(cell)
        session.made.append(reading.results)
        level = sustained(reading.log, seconds, bench.cache_bytes(kind == "random"), stream.size_bytes)
        session.levels[kind] = level
        if kind == "sequential" or is_model:
            unit = stream.size_bytes if kind == "sequential" else 1
            session.estimates[Property(cell.name)] = _scaled(_of_level(session, reading, level), unit)


def _of_level(session: Session, reading: Reading, level: Level) -> Estimate:
    """Returns the estimate of a level: from its blocks if measured, with the interval of the run if predicted."""
    if level.per_s is None:
        return Estimate(None, note=level.note, at_most=level.at_most, origin=session.bench.origin)
    if session.bench.origin == "measured":
        return replace(from_rounds(groups(level.blocks)), note=level.note)
    return replace(session.estimate([reading], lambda _: level.per_s or 0.0, "iops"), note=level.note)


def _bounded(estimate: Estimate, level: Level | None) -> Estimate:
    """Returns the estimate if the level is known, otherwise an upper bound."""
    if level is None or level.per_s is not None:
        return replace(estimate, note=estimate.note if level is None else level.note)
    return Estimate(None, note=level.note, at_most=estimate.value, origin=estimate.origin)


def _measure_writes(session: Session, wanted: set[Property], kind: Kind) -> None:
    """Measures short writes after no cache is left, and synchronous writes."""
    readings = session.in_rounds(write_cells(wanted, kind, session.bench.origin == "measured"))
    for prop in (*RANDOM_WRITES.values(), Property.WRITE_SEQUENTIAL_4K):
        if prop.value in readings:
            rate = session.estimate(readings[prop.value], lambda r: r.per_s("write"), "iops")
            session.estimates[prop] = _bounded(rate, session.levels.get(kind))
    for (kib, writers), (rate_prop, p99_prop) in SYNC.items():
        rounds = readings.get(f"synchronous writes {kib} KiB, {writers}")
        if rounds is not None:
            session.estimates[rate_prop] = session.estimate(rounds, lambda r: r.per_s("flush"))
            if p99_prop is not None:
                session.estimates[p99_prop] = session.estimate(rounds, lambda r: r.percentile_ms("flush", 99))


def _measure_mixed(session: Session, wanted: set[Property], kind: Kind) -> None:
    """Measures reads against writes at shares of the sustained rate of writes."""
    needed, unit = (Property.WRITE_4K, 1) if kind == "random" else (Property.WRITE_SEQUENTIAL, MIB)
    writes = Properties(session.estimates)[needed]
    readings = session.in_rounds(mixed_cells(wanted, kind, None if writes.value is None else writes.value / unit))

    def keep(prop: Property, share: int, request: str, percent: float) -> None:
        rounds = readings.get(f"reads and {kind} writes, {share}")
        if prop in wanted and rounds is not None:
            session.estimates[prop] = session.estimate(rounds, lambda r: r.percentile_ms(request, percent))
        elif prop in wanted and writes.value is None:
            why = f"the write rate is not known: {writes.note}"
            session.estimates[prop] = Estimate(None, note=why, origin=session.bench.origin)

    for share, prop in (BESIDE_RANDOM if kind == "random" else BESIDE_STREAM).items():
        keep(prop, share, "read", 99)
    if kind == "random":
        keep(Property.MIXED_READ_P95_50, 50, "read", 95)
        keep(Property.MIXED_WRITE_P95_50, 50, "write", 95)
