"""``Predictions``: environments on systems, from the tables of low-level tests."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from headstack._native import Field, InputError, format_bytes
from headstack.io.columns import Column, format_repr
from headstack.io.tables import Tabular, written
from headstack.prediction.calibration import MEAN
from headstack.prediction.characterization import ENOUGH, Characterization
from headstack.prediction.environment import Closed, Environment, Open, Staged, TraceArrivals
from headstack.prediction.grid import OPEN
from headstack.prediction.loops import SATURATED_SHARE, LoopResult, Rates, solve
from headstack.prediction.model import Blend
from headstack.prediction.prediction import Prediction
from headstack.prediction.render import format_predictions
from headstack.prediction.trace_arrivals import simulate_arrivals

STEADY_TIMES = 2
"""A trace that transfers less than this multiple of the caches' capacity only fills them, and is not in steady
state."""

RETURNS_MAX = 0.05
"""Maximum share of a trace's blocks that return to caches. A choice: these cost almost nothing, and predictions are off
by as much.
"""

ResultWithEnds: TypeAlias = tuple[LoopResult, LoopResult, LoopResult]
"""The result, and the results with the rates at the lower and the upper bound of the interval."""

Ends: TypeAlias = tuple[float | None, float | None, float | None]

PercentileEnds: TypeAlias = tuple[Ends, Ends]
"""The median and the 99th percentile, each with its interval."""

Gain: TypeAlias = tuple[float | None, float | None, float | None]

FIELDS = (
    Field("system", "text", "", "the system"),
    Field("environment", "text", "", "the environment: a workload, or a trace"),
    Field("load", "text", "", "the load, for example depth 16, 600/s, as recorded or as stated"),
    Field("iops", "figure", "1/s", "requests completed per second"),
    Field("iops_low", "figure", "1/s", "lower bound of the 90 % prediction interval of a simulation"),
    Field("iops_high", "figure", "1/s", "upper bound of the interval"),
    Field("mb_per_s", "figure", "10^6 bytes/s", "bytes transferred per second"),
    Field("mean_ms", "figure", "ms", "mean response time; empty if arrivals saturate the system"),
    Field("mean_ms_low", "figure", "ms", "lower bound of the 90 % prediction interval of a simulation"),
    Field("mean_ms_high", "figure", "ms", "upper bound of the interval; empty if the system may be saturated"),
    Field("p50_ms", "figure", "ms", "median response time; empty if the mean is, and for stages"),
    Field("p50_ms_low", "figure", "ms", "lower bound of the 90 % prediction interval of a simulation"),
    Field("p50_ms_high", "figure", "ms", "upper bound of the interval; empty if the system may be saturated"),
    Field("p99_ms", "figure", "ms", "99th percentile of response times; empty if the mean is, and for stages"),
    Field("p99_ms_low", "figure", "ms", "lower bound of the 90 % prediction interval of a simulation"),
    Field("p99_ms_high", "figure", "ms", "upper bound of the interval; empty if the system may be saturated"),
    Field("bottleneck", "text", "", "the component that takes most of the time"),
    Field("saturated", "flag", "", "whether the offered load exceeds the system's throughput"),
    Field(
        "speedup_percent", "figure", "%", "speedup over the first system: of throughput, or of latency in open loops"
    ),
    Field("speedup_percent_low", "figure", "%", "lower bound of the speedup's interval"),
    Field("speedup_percent_high", "figure", "%", "upper bound of the interval"),
    Field("iops_model_low", "figure", "1/s", "lower bound of the prediction interval for devices; may be empty"),
    Field("iops_model_high", "figure", "1/s", "upper bound of the interval"),
    Field("mean_model_low_ms", "figure", "ms", "lower bound of the prediction interval of the mean for devices"),
    Field("mean_model_high_ms", "figure", "ms", "upper bound of the interval"),
    Field("p50_model_low_ms", "figure", "ms", "lower bound of the prediction interval of the median for devices"),
    Field("p50_model_high_ms", "figure", "ms", "upper bound of the interval"),
    Field("p99_model_low_ms", "figure", "ms", "lower bound of the prediction interval of p99 for devices"),
    Field("p99_model_high_ms", "figure", "ms", "upper bound of the interval"),
    Field("model_level", "figure", "", "share of devices within these intervals, 0 to 1"),
    Field("model_error", "text", "", "number of devices behind this interval, or why it is unknown"),
)
"""Columns of the table of predictions."""


Cell = str | float | bool | None
"""A cell of the table of predictions."""


class Predictions(Sequence[Prediction], Tabular):
    """Predictions in order: environments, loads, then systems, the last varying fastest."""

    fields = FIELDS

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Returns a row for each prediction."""
        return self.rows()

    def __init__(self, predictions: Iterable[Prediction]) -> None:
        self._all = list(predictions)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, index: Any) -> Any:
        return self._all[index]

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self._all)

    def __repr__(self) -> str:
        return format_repr(*self.shown(), f"predictions: {len(self)}", "to_csv has them")

    def shown(self) -> tuple[list[Column], list[list[str]]]:
        """Returns the columns to print, and the cells as text."""
        return format_predictions(self)

    def rows(self) -> list[dict[str, Cell]]:
        """Returns a row for each prediction, with the columns of ``FIELDS``."""
        return [asdict(prediction) for prediction in self._all]

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns all predictions as a JSON list with one per line."""
        return written("[\n" + ",\n".join(json.dumps(row) for row in self.rows()) + "\n]\n", path)


def predict_all(environments: Sequence[Environment], systems: Sequence[Characterization]) -> Predictions:
    """Predicts every environment on every system. Raises ``InputError`` outside the range of the tests."""
    return Predictions(
        prediction for environment in environments for prediction in _predict_on_all(environment, systems)
    )


def _predict_on_all(environment: Environment, systems: Sequence[Characterization]) -> Iterator[Prediction]:
    first: ResultWithEnds | None = None
    for system in systems:
        blend = system.model.blend(environment)
        error = error_of(environment, system, blend.kind)
        check_depth(environment, system)
        check_recorded(environment, system)
        result = _with_interval(environment, system, blend, error)
        gains = (None, None, None) if first is None else gain(environment, first, result)
        first = first or result
        yield _with_percentiles(environment, system, blend, result, gains)


def _with_interval(environment: Environment, system: Characterization, blend: Blend, error: float) -> ResultWithEnds:
    """Returns the result, and the results with all rates reduced and increased by the error."""
    load, model = environment.load, system.model
    down, up = math.exp(-error), math.exp(error)
    if isinstance(load, Closed) and load.think_ns == 0 and load.processors is None:
        # Without think time one point of the curve is sufficient, and errors are those of its throughput.
        iops = 1e9 / model.service_at_ns(blend, load.queue_depth)
        mean_ns = load.queue_depth / iops * 1e9
        return LoopResult(iops, mean_ns), LoopResult(iops * down, mean_ns / down), LoopResult(iops * up, mean_ns / up)
    rates: Rates = model.rates(blend)
    if isinstance(load, Open):
        return _with_arrivals(environment, system, rates, error)
    if isinstance(load, Closed):
        return tuple(  # type: ignore[return-value]
            _with_thinkers(environment, load, system, rates.scaled(factor)) for factor in (1.0, down, up)
        )
    return solve(load, rates), solve(load, rates.scaled(down)), solve(load, rates.scaled(up))


def _with_thinkers(environment: Environment, load: Closed, system: Characterization, rates: Rates) -> LoopResult:
    """Solves clients that think, which leave the system idle as arrivals do, less so near its maximum; in a sequence of
    requests only for the first one."""
    result = solve(load, rates)
    share = min(1.0, result.iops / rates.most)
    mean_ns = result.mean_ns * system.model.arrival_factor(environment, share) ** ((1 - share) / load.in_a_row)
    elsewhere_ns = load.queue_depth / result.iops * 1e9 - result.mean_ns
    return LoopResult(load.queue_depth / (elsewhere_ns + mean_ns) * 1e9, mean_ns)


def _with_arrivals(environment: Environment, system: Characterization, rates: Rates, error: float) -> ResultWithEnds:
    """Solves an open loop from the closed loops' rates, corrected by the tests with arrivals. The error of a rate
    causes a larger error of the response time as the load approaches saturation."""
    load = environment.load
    assert isinstance(load, Open)
    point = solve(load, rates)
    most = rates.most
    share = load.rate_per_s / most
    apart = math.exp(error)
    slow = LoopResult(min(load.rate_per_s, most / apart), math.inf, saturated=True)
    if isinstance(load, TraceArrivals) and not point.saturated:
        return _as_recorded(environment, system, error, share)
    if point.saturated:
        return point, slow, LoopResult(min(load.rate_per_s, most * apart), math.inf, saturated=True)
    mean_ns = point.mean_ns * system.model.arrival_factor(environment, share)
    spread = math.exp(error_of(environment, system, OPEN) / (1 - share))
    if share * apart < SATURATED_SHARE:
        slow = LoopResult(point.iops, mean_ns * spread)
    return LoopResult(point.iops, mean_ns), slow, LoopResult(point.iops, mean_ns / spread)


def _as_recorded(environment: Environment, system: Characterization, error: float, share: float) -> ResultWithEnds:
    """Solves the arrivals of a trace. The effect of rate errors on response times is determined by repeating it with
    changed rates; the error of the tests with arrivals is added, as for random arrivals."""
    factor = system.model.arrival_factor(environment, share)
    assert isinstance(environment.load, TraceArrivals)
    classes, pieces = system.model.rates_of_classes(environment), environment.load.pieces
    course, slow, fast = (simulate_arrivals(pieces, classes, math.exp(change)) for change in (0.0, -error, error))
    spread = math.exp(error_of(environment, system, OPEN) / (1 - share) + course.uncertainty)
    rate = environment.load.rate_per_s
    return (
        LoopResult(rate, course.mean_ns * factor),
        LoopResult(rate, slow.mean_ns * factor * spread),
        LoopResult(rate, fast.mean_ns * factor / spread),
    )


def error_of(environment: Environment, system: Characterization, kind: str) -> float:
    """Returns the error of predictions of a kind. Raises ``InputError`` if too few were tested."""
    if kind not in system.errors[MEAN]:
        few = len(system.residuals[MEAN].get(kind, ()))
        raise InputError(
            f"{environment.name}: {few} environments of this kind ({kind}) were tested on {system.system}; a "
            f"90 % interval needs {ENOUGH}; complete the characterization"
        )
    return system.errors[MEAN][kind]


def check_depth(environment: Environment, system: Characterization) -> None:
    """Raises ``InputError`` for loops deeper than the tests."""
    load, depths = environment.load, system.model.depths
    if isinstance(load, Open):
        if load.rate_per_s <= 0:
            raise InputError(f"{environment.name}: rate: {load.rate_per_s:g} is out of range; must be above 0")
        return
    # Thinking clients are not all outstanding at once.
    thinks = isinstance(load, Closed) and load.think_ns > 0
    if load.queue_depth <= 0 or not (thinks or load.queue_depth <= depths[-1]):
        raise InputError(
            f"{environment.name}: depth: {load.queue_depth:g} is outside the tested range of {system.system}, "
            f"{depths[0]:g} to {depths[-1]:g}"
        )


def check_recorded(environment: Environment, system: Characterization) -> None:
    """Raises ``InputError`` for a trace whose performance depends on caches: low-level tests are in steady state, and
    do not revisit blocks as a trace does."""
    recorded, held = environment.recorded, system.held_bytes
    if recorded is None or held == 0:
        return
    caches = f"the cache capacity of {system.system}, {format_bytes(held)}"
    if recorded.moved_bytes < STEADY_TIMES * held:
        raise InputError(
            f"{environment.name}: moves {format_bytes(recorded.moved_bytes)}, less than twice {caches}: it does not "
            "reach the steady state of the tests; replay it (headstack trace replay)"
        )
    share = recorded.returning(held)
    if share > RETURNS_MAX:
        raise InputError(
            f"{environment.name}: {100 * share:.0f} % of its blocks are reused within {caches}; predictions "
            f"cover {100 * RETURNS_MAX:.0f} % at most; replay it (headstack trace replay)"
        )


def gain(environment: Environment, reference: ResultWithEnds, other: ResultWithEnds) -> Gain:
    """Returns the speedup of one system over another in percent, with its interval; errors of systems are taken as
    independent.
    """
    if reference[0].saturated or other[0].saturated:
        return None, None, None
    before, after = _logarithms(environment, reference), _logarithms(environment, other)
    apart = after[0] - before[0]
    down = math.hypot(after[0] - after[1], before[2] - before[0])
    up = math.hypot(after[2] - after[0], before[0] - before[1])
    high = None if math.isinf(up) else 100 * math.expm1(apart + up)
    return 100 * math.expm1(apart), 100 * math.expm1(apart - down), high


def _logarithms(environment: Environment, result: ResultWithEnds) -> list[float]:
    """Returns the logarithms that speedups compare: of throughput, or of the inverse response time if arrivals
    determine the throughput.
    """
    if isinstance(environment.load, Open):
        return [-math.inf if end.saturated else -math.log(end.mean_ns) for end in result]
    return [math.log(end.iops) for end in result]


def _with_percentiles(
    environment: Environment,
    system: Characterization,
    blend: Blend,
    result: ResultWithEnds,
    gains: Gain,
) -> Prediction:
    point, slow, fast = result
    median, p99 = _percentiles(environment, system, blend, result)
    return Prediction(
        system.system,
        environment.name,
        load_text(environment),
        point.iops,
        slow.iops,
        fast.iops,
        point.iops * environment.mean_bytes / 1e6,
        _ms(point),
        _ms(fast),
        _ms(slow),
        *median,
        *p99,
        system.model.bottleneck(blend, min(point.iops * point.mean_ns / 1e9, system.model.depths[-1])),
        point.saturated,
        *gains,
    )


def _percentiles(
    environment: Environment, system: Characterization, blend: Blend, result: ResultWithEnds
) -> PercentileEnds:
    """Returns the median and the 99th percentile, each with its interval, in ms."""
    point, slow, _ = result
    load, model = environment.load, system.model
    if isinstance(load, Staged) or point.saturated:
        return (None, None, None), (None, None, None)
    open_share, share = 0.0, 0.0
    if isinstance(load, Open) or load.think_ns > 0 or load.processors is not None:
        share = min(1.0, point.iops / model.rates(blend).most)
        open_share = 1.0 if isinstance(load, Open) else (1 - share) / load.in_a_row
    percentiles: dict[str, Ends] = {}
    for figure, percentile in model.percentiles(environment, blend, point, open_share, share).items():
        error = percentile.uncertainty * (
            system.errors[figure][OPEN] / (1 - share) if isinstance(load, Open) else system.errors[figure][blend.kind]
        )
        time_ms, spread = point.mean_ns * math.exp(percentile.ratio) / 1e6, math.exp(error)
        percentiles[figure] = (time_ms, time_ms / spread, None if slow.saturated else time_ms * spread)
    if isinstance(load, TraceArrivals):
        return _percentiles_as_recorded(environment, system, blend, point, percentiles)
    return percentiles["p50"], percentiles["p99"]


def _percentiles_as_recorded(
    environment: Environment, system: Characterization, blend: Blend, point: LoopResult, at_random: dict[str, Ends]
) -> PercentileEnds:
    """Returns percentiles of a trace by the queue depths that its requests meet. Tests with random arrivals include
    effects that depths lack, such as requests that a scheduler delays when more arrive: intervals cover both."""
    load = environment.load
    assert isinstance(load, TraceArrivals)
    left = 1 - load.rate_per_s / system.model.rates(blend).most
    course = simulate_arrivals(load.pieces, system.model.rates_of_classes(environment))
    percentiles = {}
    for figure, percentile in system.model.percentiles_by_depth(blend, course.depths).items():
        spread = math.exp(percentile.uncertainty * system.errors[figure][OPEN] / left + course.uncertainty)
        time_ms = point.mean_ns * math.exp(percentile.ratio) / 1e6
        _, low_ms, high_ms = at_random[figure]
        assert low_ms is not None
        assert high_ms is not None
        percentiles[figure] = (time_ms, min(low_ms, time_ms / spread), max(high_ms, time_ms * spread))
    return percentiles["p50"], percentiles["p99"]


def _ms(reached: LoopResult) -> float | None:
    return None if reached.saturated else reached.mean_ns / 1e6


def load_text(environment: Environment) -> str:
    """Formats the load for people."""
    match environment.load:
        case TraceArrivals(rate_per_s):
            return f"as recorded, {rate_per_s:.4g}/s"
        case Closed(queue_depth, think_ns):
            return f"{queue_depth:g} clients" if think_ns > 0 else f"depth {queue_depth:g}"
        case Open(rate_per_s):
            return f"{rate_per_s:g}/s"
        case Staged():
            return "as stated"
