"""``settings``: measures or predicts the properties of a device, and derives settings of programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from headstack._native import InputError, format_bytes, format_duration_ns
from headstack.io.values import choice, duration_ns
from headstack.measurement.access import Access, Progress
from headstack.measurement.tests.classic.outcome import NOTHING_ALLOWED, at_least, join_results
from headstack.measurement.tests.settings.benches import WARM_UP, Bench, TargetBench, open_bench
from headstack.measurement.tests.settings.outcome import DeviceSettings
from headstack.measurement.tests.settings.plan import cells_count, measure_properties
from headstack.measurement.tests.settings.products.setting import Context
from headstack.measurement.tests.settings.products.table import PRODUCTS
from headstack.measurement.tests.settings.properties import Properties, Property

TIME, STEADY_TIME, ROUNDS = "10s", "60s", 5
"""Default time of a cell in all rounds together, time of a run of writes until no cache is left, and rounds."""
HALF_TURN_MS = 2.0
"""Half a revolution at 15,000 rpm: the mean random read of the fastest HDD takes longer, that of an SSD does not."""

Announce = Callable[[str], object]


def settings(
    target: str | os.PathLike[str],
    products: Sequence[str] | str,
    access: Access = NOTHING_ALLOWED,
    *,
    time: str = TIME,
    steady_time: str = STEADY_TIME,
    rounds: int = ROUNDS,
    range: str | None = None,
    worn_in: bool = False,
    read_p99: str | None = None,
    announce: Announce | None = None,
    progress: Progress | None = None,
) -> DeviceSettings:
    """Measures a file, block device or export, or predicts it if ``target`` is the name of a system, a drive file or a
    calibrated model, and returns the settings of ``products`` such as ``["ceph", "postgresql"]``.

    Only the properties that the products use are measured, in ``rounds`` that together take ``time`` for each cell;
    properties of writes need the permission in ``access``. Sustained writes run for ``steady_time``; if that is too
    short to fill every cache they are not known, unless ``worn_in`` states that the device has none, or was overwritten
    randomly before. ``read_p99`` is a limit for reads next to compactions of RocksDB.

    >>> found = hs.settings("aws-gp3-500", "mysql")
    >>> found.lines("mysql")[1]
    'innodb_io_capacity_max = 3000'
    """
    names = _names(products)
    at_least("rounds", rounds, 1)
    limit_ms = None if read_p99 is None else _positive_ns("read_p99", read_p99) / 1e6
    time_ns, steady_ns = _positive_ns("time", time), _positive_ns("steady_time", steady_time)
    bench = open_bench(
        os.fspath(target),
        access,
        time_ns=time_ns,
        steady_ns=steady_ns,
        rounds=rounds,
        range=range,
        worn_in=worn_in,
        progress=progress,
    )
    wanted = {prop for name in names for prop in PRODUCTS[name].needs}
    made = []
    if isinstance(bench, TargetBench):
        plan = _plan(bench, wanted, time_ns, steady_ns)
        if announce is not None:
            announce(plan)
        filled = bench.fill()
        made = [] if filled is None else [filled]
    elif announce is not None:
        announce(f"predicting {len(wanted)} properties of {bench.name}; nothing is measured")
    properties, results = measure_properties(bench, wanted)
    context = Context(properties, bench.place, _is_disk(bench, properties), limit_ms)
    joined = join_results([*made, *results])
    return DeviceSettings(bench.name, bench.origin, names, context, joined, bench.ended, bench.notes)


def _names(products: Sequence[str] | str) -> list[str]:
    listed = products.split(",") if isinstance(products, str) else list(products)
    names = [choice("for", name.strip(), tuple(PRODUCTS)) for name in listed]
    if not names:
        raise InputError(f"needs a product; allowed: {', '.join(PRODUCTS)}", key="for")
    return list(dict.fromkeys(names))


def _positive_ns(key: str, text: str) -> int:
    value = duration_ns(key, text)
    if value <= 0:
        raise InputError(f"{text} is out of range; must be above 0s", key=key)
    return value


def _plan(bench: TargetBench, wanted: set[Property], time_ns: int, steady_ns: int) -> str:
    """Returns a sentence with the cells, and the time that they take."""
    cells, logs = cells_count(wanted, bench.unwritable is None)
    bench.runs_planned = cells * bench.rounds + logs
    whole_ns = round(cells * time_ns * (1 + WARM_UP) + logs * steady_ns)
    parts = [f"{cells} cells of {format_duration_ns(time_ns)} in {bench.rounds} rounds"]
    if logs:
        parts.append(f"{logs} runs of writes of {format_duration_ns(steady_ns)}")
    writes = bench.unwritable or f"writes to {format_bytes(bench.span_bytes)}"
    return f"{', '.join(parts)}: about {format_duration_ns(whole_ns)} ({writes})"


def _is_disk(bench: Bench, properties: Properties) -> bool:
    """Whether the device behaves as an HDD: a model states it; a random read of a target takes longer than half a
    revolution of the fastest HDD. Virtual disks often only claim to rotate."""
    if bench.place.is_disk is not None:
        return bench.place.is_disk
    alone = properties[Property.READ_4K_ALONE].value or properties[Property.READ_8K_ALONE].value
    return alone is not None and 1000 / alone > HALF_TURN_MS
