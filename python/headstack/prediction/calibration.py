"""Errors of the predictor, from random environments within the range of the tests that are both predicted and
simulated.

The model is not fitted to them, and none of them is a real workload, scenario or trace: only the error bound that 90 %
of such predictions meet is learned (split conformal prediction; Vovk, Gammerman and Shafer, 2005).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import TypeAlias

from headstack._native import InputError
from headstack.catalogue.options import Spec
from headstack.prediction.environment import Environment, completed, of_workload
from headstack.prediction.grid import (
    INTERLEAVED,
    MIXED,
    PAGE,
    RANDOM,
    SEQUENTIAL,
    SKEWED,
    Axes,
    Bench,
    RunSummary,
    axes_of,
    closed_loop_spec,
    hot_part,
    ranges_of,
    with_arrivals,
)
from headstack.prediction.loops import LoopResult, solve
from headstack.prediction.model import Model
from headstack.prediction.percentiles import FIGURES, Percentile
from headstack.prediction.workload_types import Line
from headstack.results.intervals import conformal

MEAN = "mean"
Residuals: TypeAlias = dict[str, dict[str, list[float]]]
"""Residuals by figure (the mean or a percentile) and kind of environment."""
KINDS = (RANDOM, MIXED, INTERLEAVED, SEQUENTIAL, SKEWED)
COVERAGE = 0.9
RANGE_MIN = 0.001
SIZE_MAX = 256 << 10


def draw_environments(bench: Bench, axes: Axes) -> list[tuple[Environment, Spec]]:
    """Returns the random environments as predictions and as runs, with equal numbers of each kind."""
    random = Random(1998)
    return [_draw_environment(random, KINDS[n % len(KINDS)], bench, axes) for n in range(axes.environments)]


def _draw_environment(random: Random, kind: str, bench: Bench, axes: Axes) -> tuple[Environment, Spec]:
    block = max(bench.block_bytes, min(axes.sizes_bytes))
    align = max(round(min(bench.alignments)), block) if random.random() < 0.5 else max(PAGE, block)

    def logarithmic(low: float, high: float) -> float:
        return low * math.exp(random.random() * math.log(high / low))

    def size() -> int:
        return round(logarithmic(align, min(SIZE_MAX, axes.sizes_bytes[-1])) / align) * align

    lines: list[Line] = []
    several: Mapping[str, object] = {}
    if kind == INTERLEAVED or (kind == SEQUENTIAL and random.random() < 0.75):
        several = {
            "streams": round(logarithmic(2, axes.streams[-1])),
            "stream_turn": round(logarithmic(1, 1 / axes.switches[1])),
        }
    if kind == SEQUENTIAL:
        read = 100.0 if random.random() < 0.5 or not bench.writes else 0.0
        lines = [_line(size(), 1.0, read, 0.0, align)]
    else:
        share = 1.0 if kind in (RANDOM, SKEWED) else 0.05 + 0.9 * random.random()
        counts = [random.random() + 0.05 for _ in range(1 + int(3 * random.random()))]
        reads = _read_percent(random, bench.writes)
        if kind not in (RANDOM, SKEWED) and random.random() < 0.5:
            # A separate stream next to random requests, like that of a log.
            lines = [_line(size(), count / sum(counts) * share, reads, 100.0, align) for count in counts]
            lines.append(_line(size(), 1 - share, _read_percent(random, bench.writes), 0.0, align))
        else:
            lines = [_line(size(), count / sum(counts), reads, 100 * share, align) for count in counts]
    if kind == SKEWED:
        low, high = axes.hot_shares[0] / 2, axes.hot_shares[-1]
        parts = axes_of(SKEWED, axes, bench)[2].knots
        several = {"addresses": hot_part(low + (high - low) * random.random(), logarithmic(parts[0], parts[-1]))}
    least = max(RANGE_MIN, ranges_of(axes, bench.capacity_bytes)[0])
    range_share = 1.0 if kind == SKEWED or random.random() < 0.5 else logarithmic(least, 1.0)
    depth = round(logarithmic(1, axes.depths[-1]))
    spec = closed_loop_spec(bench, axes, lines, depth, range_share, several)
    spec["seed"] = 1 + int(random.random() * 2**31)
    environment = of_workload(completed(spec["workload"]), spec["span"][1])
    return environment, spec


def _read_percent(random: Random, writes: bool) -> float:
    """Returns reads only, writes only, or a mix."""
    kind = random.random()
    return 100.0 if kind < 0.25 or not writes else 0.0 if kind < 0.4 else 100 * random.random()


def _line(size: int, share: float, read: float, random: float, align: int) -> Line:
    return {
        "size": f"{size}B",
        "share_percent": 100 * share,
        "read_percent": read,
        "random_percent": random,
        "align": f"{align}B",
    }


def residuals(model: Model, drawn: Iterable[tuple[Environment, RunSummary]]) -> Residuals:
    """Returns for each environment the logarithm of simulated over predicted time per request, by kind; for
    percentiles, divided by their uncertainty."""
    errors: Residuals = {figure: {kind: [] for kind in KINDS} for figure in (MEAN, *FIGURES)}
    for environment, summary in drawn:
        blend = model.blend(environment)
        depth = environment.load.queue_depth  # type: ignore[union-attr]
        service_ns = model.service_at_ns(blend, depth)
        reached = LoopResult(1e9 / service_ns, depth * service_ns)
        errors[MEAN][blend.kind].append(math.log(summary.time_ns / service_ns))
        for figure, percentile in model.percentiles(environment, blend, reached, 0.0, 0.0).items():
            errors[figure][blend.kind].append(_off(summary, figure, reached.mean_ns, percentile))
    return errors


def with_loads(
    model: Model, drawn: Iterable[tuple[Environment, Spec]], axes: Axes
) -> list[tuple[Environment, Spec, float]]:
    """Returns the environments with random requests in open loops: as predictions, as runs, and their share of unused
    throughput.
    """
    random = Random(1961)
    loaded = []
    for environment, spec in drawn:
        blend = model.blend(environment)
        if blend.kind == SEQUENTIAL:
            continue
        load = axes.loads[0] + (axes.loads[-1] - axes.loads[0]) * random.random()
        rate = load * model.rates(blend).most
        loaded.append((environment.at_rate(rate), with_arrivals(deepcopy(spec), axes, rate, load), 1 - load))
    return loaded


def response_residuals(
    model: Model, environments: Iterable[tuple[Environment, Spec, float]], simulated: Iterable[RunSummary]
) -> dict[str, list[float]]:
    """Returns for each environment the logarithm of simulated over predicted response time, multiplied by the unused
    share of the load: near saturation a small error of the rate is a large one of the response time."""
    errors: dict[str, list[float]] = {figure: [] for figure in (MEAN, *FIGURES)}
    for (environment, _, left), summary in zip(environments, simulated, strict=False):
        blend = model.blend(environment)
        point = solve(environment.load, model.rates(blend))
        point = replace(point, mean_ns=point.mean_ns * model.arrival_factor(environment, 1 - left))
        errors[MEAN].append(left * math.log(summary.mean_ns / point.mean_ns))
        for figure, percentile in model.percentiles(environment, blend, point, 1.0, 1 - left).items():
            errors[figure].append(left * _off(summary, figure, point.mean_ns, percentile))
    return errors


def _off(summary: RunSummary, figure: str, mean_ns: float, predicted: Percentile) -> float:
    """Returns the logarithm of simulated over predicted percentile, divided by its uncertainty."""
    return (math.log(summary.percentile_ns(FIGURES[figure]) / mean_ns) - predicted.ratio) / predicted.uncertainty


def quantile(errors: Iterable[float], coverage: float = COVERAGE) -> float:
    """Returns the bound that this share of the errors, with one more, meets. Raises ``InputError`` if there are too
    few.
    """
    sizes = [[abs(error)] for error in errors]
    bound = conformal.quantile(sizes, coverage)
    if bound is None:
        needed = conformal.devices_needed(coverage)
        raise InputError(f"only {len(sizes)} environments of one kind; a {100 * coverage:.0f} % bound needs {needed}")
    return bound
