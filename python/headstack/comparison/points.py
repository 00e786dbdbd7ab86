"""``SidePoint``: one side of a comparison, with points from results or a file of them."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.comparison.shapes import Shape, shape_of
from headstack.results.results import Results
from headstack.results.table import Row

FIGURES = ("iops", "mb_per_s", "mean_ms", "p50_ms", "p95_ms", "p99_ms")
"""Compared figures; times are response times."""

UNKNOWN = "unknown"
"""Origin of rows of a table, which do not record whether they were measured or simulated."""

NO_LOAD = ("run_length", "warm_up", "source", "writes", "start_ns")
"""Keys of a workload that do not change the load."""


@dataclass(frozen=True, eq=False)
class Origin:
    """The parts of a complete result that describe its origin."""

    mode: str
    """``measured``, ``simulated`` or ``live``."""
    workload: Mapping[str, Any]
    """A workload, a scenario, a replay or a phase, as in results."""
    description: Mapping[str, Any]
    """The description of the system."""


@dataclass(frozen=True, eq=False)
class SidePoint:
    """The results of one point."""

    system: str
    """Name of the system without its range."""
    part: str | None
    """The range of the system that was used, as stated."""
    workload: str
    mode: str | None
    """Mode of a replay."""
    load: str
    """Load in words: ``depth 4``, ``1,000/s``, ``20 clients``, ``timed``."""
    seed: int
    requests: int
    figures: dict[str, float | None]
    half_width_ms: float | None
    """95 % confidence half-width of the mean."""
    is_open: bool
    """Whether the loop is open."""
    intervals: list[Row] = field(repr=False)
    labels: dict[str, str] = field(default_factory=dict)
    """Other varied values, if known: ``position`` in bytes, ``size``."""
    kind: str = UNKNOWN
    """Origin: ``measured``, ``simulated`` or ``live``; old tables do not record it."""
    origin: Origin | None = field(default=None, repr=False)
    """The load and the system of a complete result; ``None`` if only a row of a table is available."""
    results: Results | None = field(default=None, repr=False)
    index: int = 0
    """Index of the point in ``results``."""
    model: dict[str, tuple[float, float]] = field(default_factory=dict)
    """For a model, the prediction intervals of the figures of a device, if known."""
    model_level: float | None = None
    """Share of devices within these intervals, from 0 to 1."""
    shape: Shape | None = None
    """The load in numbers, for matching fio's results; ``None`` if numbers cannot describe it."""

    @property
    def relative_half_width(self) -> float:
        """Confidence half-width of the mean as a share of the mean; 0 if unknown."""
        mean_ms = self.figures["mean_ms"]
        return self.half_width_ms / mean_ms if self.half_width_ms and mean_ms else 0.0

    @property
    def interval_deviation(self) -> float:
        """Relative standard deviation by chance of the mean latency per interval. It is estimated from the differences
        of neighbouring intervals, so that neither a trend nor a single change affects it."""
        means_ms = [interval["mean_ms"] for interval in self.intervals if interval["requests"]]
        mean_ms = self.figures["mean_ms"]
        if len(means_ms) < 3 or not mean_ms:
            return self.relative_half_width
        apart_ms: list[float] = sorted(abs(later - earlier) for earlier, later in pairwise(means_ms))
        # In a normal distribution, half of all differences are at most 0.6745 standard deviations; the standard
        # deviation of a difference is the square root of 2 times that of a mean.
        return apart_ms[len(apart_ms) // 2] / 0.6745 / math.sqrt(2) / mean_ms

    def is_prediction_of(self, other: SidePoint) -> bool:
        """Whether this point was simulated and ``other`` was measured."""
        return self.kind == "simulated" and other.kind != "simulated"

    def is_load_of(self, other: SidePoint) -> bool:
        """Whether both points have equal loads, by all properties known on both sides."""
        if any(other.labels.get(name, text) != text for name, text in self.labels.items()):
            return False
        if self.origin is not None and other.origin is not None:
            return _load_of(self.origin.workload) == _load_of(other.origin.workload)
        if self.shape is not None and other.shape is not None:
            return self.shape == other.shape
        return (self.workload, self.load) == (other.workload, other.load)

    def demerit_ms(self, predicted: SidePoint) -> float | None:
        """Returns the root mean square distance of the distributions of response times; ``None`` if a side has none."""
        if self.results is None or predicted.results is None:
            return None
        return predicted.results.demerit_ms(predicted.index, self.results, self.index)


def _load_of(workload: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in workload.items() if key not in NO_LOAD}


def points_of_side(side: Results | str | os.PathLike[str], mode: str) -> list[SidePoint]:
    """Returns the points of one side, for one system; from mixed results, only the ``measured`` or ``simulated``
    points.

    Raises ``InputError`` if the file cannot be read, or there is not exactly one system.
    """
    name = "the results" if isinstance(side, Results) else os.fspath(side)
    if isinstance(side, Results):
        points = _of_results(side, mode)
    elif name.endswith(".json"):
        points = _of_results(Results.read(name), mode)
    elif name.endswith((".csv", ".parquet")):
        points = [_of_row(row) for row in read_table(name)]
    else:
        raise InputError("is not a file of results; use a .json, .csv or .parquet file", file=name)
    systems = list(dict.fromkeys(point.system for point in points))
    if len(systems) != 1:
        names = ", ".join(systems) or "none"
        raise InputError(f"only results of one system can be compared; the file has {len(systems)}: {names}", file=name)
    return points


def _of_results(results: Results, mode: str) -> list[SidePoint]:
    wholes = [results.whole(index) for index in range(len(results))]
    has_mode = any(whole["mode"] == mode for whole in wholes)
    points = []
    for index, whole in enumerate(wholes):
        if whole["mode"] != mode and has_mode:
            continue
        row = results[index] | {"p95_ms": results.percentile_ms(index, 95)}
        origin = Origin(whole["mode"], whole["workload"], whole["system"]["description"])
        points.append(_of_row(row, results.intervals_of(index), origin, results, index))
    return points


def _of_row(
    row: Row,
    intervals: list[Row] | None = None,
    origin: Origin | None = None,
    results: Results | None = None,
    index: int = 0,
) -> SidePoint:
    result_columns = {*_native.Results.from_json("[]").table().column_names, "p95_ms"}
    system, _, part = row["system"].rpartition("@")
    if not system or "/" in part:
        # The at sign is part of a path.
        system, part = row["system"], ""
    load = _spoken_load(row, origin)
    return SidePoint(
        system=system,
        part=part or None,
        workload=row["workload"] or "",
        mode=row["mode"],
        load=load,
        seed=row["seed"],
        requests=row["requests"],
        figures={name: row.get(name) for name in FIGURES},
        half_width_ms=row["half_width_ms"],
        is_open=row["rate_per_s"] is not None,
        intervals=intervals or [],
        labels={name: str(value) for name, value in row.items() if name not in result_columns and value is not None},
        kind=UNKNOWN if origin is None else origin.mode,
        origin=origin,
        results=results,
        index=index,
        model=_model_of(row),
        model_level=row.get("model_level"),
        shape=None
        if origin is None or part or row["mode"] is not None
        else shape_of(origin.workload, _spoken_load(row, origin)),
    )


def _model_of(row: Row) -> dict[str, tuple[float, float]]:
    intervals = {}
    for figure in FIGURES:
        name, _, unit = figure.partition("_")
        low, high = (row.get(f"{name}_model_{end}{'_' * bool(unit)}{unit}") for end in ("low", "high"))
        if low is not None and high is not None:
            intervals[figure] = (low, high)
    return intervals


def _spoken_load(row: Row, origin: Origin | None) -> str:
    if row["mode"] is not None:
        return f"{row['mode']}" + (f", depth {row['depth']}" if row["depth"] is not None else "")
    clients = None if origin is None else _clients(origin.workload)
    if clients is not None:
        return f"{clients} clients"
    if row["depth"] is not None:
        return f"depth {row['depth']}"
    return "" if row["rate_per_s"] is None else f"{row['rate_per_s']:,.6g}/s"


def _clients(workload: Mapping[str, Any]) -> int | None:
    """Returns the number of clients of a scenario, which is the largest number of any stream; ``None`` without
    clients."""
    if not isinstance(workload.get("streams"), list):
        return None
    counts = [workload.get("pool", {}).get("closed", {}).get("queue_depth")]
    for stream in workload["streams"]:
        counts += [stream.get(kind, {}).get(key) for kind, key in CLIENTS]
        counts.append(stream.get("access", {}).get("arrivals", {}).get("closed", {}).get("queue_depth"))
    return max((count for count in counts if count is not None), default=None)


CLIENTS = (("web", "users"), ("boot", "guests"), ("transactions", "clients"), ("sequential", "streams"))
"""Words for clients, by kind of stream."""

TEXTS = ("system", "workload", "mode")
"""Required text columns of a table."""


def read_table(path: str) -> list[Row]:
    """Reads the rows of a table of results."""
    if path.endswith(".parquet"):
        import duckdb  # start-up time

        try:
            with duckdb.connect() as connection:
                table = connection.read_parquet(path)
                rows = [dict(zip(table.columns, values, strict=True)) for values in table.fetchall()]
        except duckdb.Error as error:
            raise InputError(f"{path}: {str(error).splitlines()[0]}") from None
    else:
        with open(path, newline="", encoding="utf-8") as file:
            rows = [_typed(path, number, row) for number, row in enumerate(csv.DictReader(file), 2)]
    needed = {"seed", "requests", "half_width_ms", "depth", "rate_per_s", *TEXTS, *FIGURES} - {"p95_ms"}
    missing = sorted(needed - rows[0].keys()) if rows else []
    if missing:
        raise InputError(f"{path}: not a table of results; columns are missing: {', '.join(missing)}")
    return rows


def _typed(path: str, line: int, row: dict[str, str]) -> Row:
    """Parses a row of CSV: numbers in columns of results, otherwise text."""
    typed: Row = {name: text or None for name, text in row.items()}
    for column in dict(_native.result_fields())["results"]:
        text = typed.get(column.name)
        if text is None or column.kind not in ("count", "figure"):
            continue
        try:
            typed[column.name] = int(text) if column.kind == "count" else float(text)
        except ValueError:
            raise InputError(f"{path}: line {line}: {column.name}: {text!r} is not a number") from None
    return typed
