"""Prediction intervals for real devices, from the errors of predictor and model together."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headstack import _native
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.catalogue.stack import Stack
from headstack.catalogue.system import load_system
from headstack.catalogue.workload import Workload
from headstack.prediction.characterization import Characterization
from headstack.prediction.environment import Closed, Environment
from headstack.prediction.prediction import Prediction
from headstack.prediction.predictions import Predictions
from headstack.results.intervals.calibration import Learnt, Load, Refusal
from headstack.results.intervals.described import Described, described
from headstack.results.intervals.model_errors import SAMPLE_REQUESTS, in_words, learned_intervals, level_of, spread_of
from headstack.results.intervals.workloads import MOSTLY, kind_of, state_of
from headstack.simulation.runs import first_spec

Named = str | os.PathLike[str] | Drive | Array | Stack | Characterization
"""A system for predictions."""


def with_devices(
    environments: Sequence[Environment], systems: Sequence[Named], predictions: Sequence[Prediction]
) -> Predictions:
    """Returns the predictions, environments outermost, each with the prediction interval for devices, or the
    reason why it is unknown. For a calibrated model this runs some of its sample in each environment."""
    origins = [_describe(system) for system in systems]
    return Predictions(
        _with_device(environments[number // len(systems)], origins[number % len(systems)], prediction)
        for number, prediction in enumerate(predictions)
    )


def load_of(environment: Environment, mostly: float = MOSTLY) -> Load | Refusal:
    """Returns the load of an environment for the model's error; above ``mostly`` percent of reads or writes, the rest
    is ignored.

    >>> from headstack.prediction.devices import load_of
    >>> load_of(hs.load_environment("file-server").at_depth(4)).depth
    4
    """
    load = environment.load
    if not isinstance(load, Closed) or load.think_ns > 0 or load.processors is not None:
        return Refusal("model errors are known only for a fixed queue depth without think time")
    if len(environment.spread) > 1 or environment.hot is not None:
        return Refusal("model errors are known only for uniform addresses")
    kind = kind_of(100 * environment.read_share, 100 * environment.random_share, mostly)
    if isinstance(kind, Refusal):
        return kind
    return Load(kind, max(1, round(load.queue_depth)), environment.mean_bytes)


@dataclass(frozen=True)
class _System:
    """A system of predictions, and the origin of its description."""

    system: Drive | Array | Stack
    described: Described

    def spread(self, environment: Environment) -> dict[str, float]:
        """Returns the spread of a calibrated model's sample in an environment."""
        sample = self.described.sample
        if not sample:
            return spread_of([])
        spec = first_spec(self.system, Workload(_as_workload(environment)))
        if environment.spread:
            spec["span"] = (0, round(environment.spread[0].range_bytes) // 4096 * 4096)
        ran = _native.run([spec | {"system": system, "labels": []} for system in sample], None, None)
        return spread_of([ran[number] for number in range(len(sample))])


def _describe(system: Named) -> _System | Refusal:
    if isinstance(system, Characterization) or (isinstance(system, str) and system.endswith(".json")):
        return Refusal("a characterization file contains no description; name the system")
    loaded = system if isinstance(system, Drive | Array | Stack) else load_system(system)
    return _System(loaded, described(loaded))


def _as_workload(environment: Environment) -> dict[str, object]:
    """Returns the closed loop of an environment that ``load_of`` accepts."""
    assert isinstance(environment.load, Closed)
    lines = [
        {
            "size": f"{request_class.size_bytes}B",
            "share_percent": 100 * request_class.share,
            "read_percent": 100.0 * request_class.is_read,
            "random_percent": 100.0 * request_class.is_random,
            "align": f"{environment.align_bytes}B",
        }
        for request_class in environment.classes
    ]
    queue_depth = max(1, round(environment.load.queue_depth))
    return {
        "name": environment.name,
        "lines": lines,
        "arrivals": {"closed": {"queue_depth": queue_depth}},
        "run_length": {"requests": SAMPLE_REQUESTS},
    }


def _with_device(environment: Environment, system: _System | Refusal, prediction: Prediction) -> Prediction:
    if isinstance(system, Refusal):
        return replace(prediction, model_error=f"unknown: {system.why}")
    load = load_of(environment, system.described.mostly)
    if isinstance(load, Load) and isinstance(system.system, Drive) and not system.described.is_twin:
        load = load._replace(state=state_of(load.kind, system.system.system.get("drive", {})))
    errors_by_figure = learned_intervals(system.described, load)
    spread = (
        system.spread(environment)
        if any(isinstance(error, Learnt) for error in errors_by_figure.values())
        else spread_of([])
    )

    def ends(figure: str, low: float | None, high: float | None) -> tuple[float | None, float | None]:
        """Returns the interval with both errors, which is valid if both are."""
        error = errors_by_figure[figure]
        if isinstance(error, Refusal) or low is None or high is None:
            return None, None
        apart = math.exp(error.half_width(spread[figure]))
        return low / apart, high * apart

    rate = ends("rate", prediction.iops_low, prediction.iops_high)
    mean = ends("mean", prediction.mean_ms_low, prediction.mean_ms_high)
    p50 = ends("p50", prediction.p50_ms_low, prediction.p50_ms_high)
    p99 = ends("p99", prediction.p99_ms_low, prediction.p99_ms_high)
    return replace(
        prediction,
        model_level=level_of(errors_by_figure),
        model_error=in_words(system.described, errors_by_figure),
        iops_model_low=rate[0],
        iops_model_high=rate[1],
        mean_model_low_ms=mean[0],
        mean_model_high_ms=mean[1],
        p50_model_low_ms=p50[0],
        p50_model_high_ms=p50[1],
        p99_model_low_ms=p99[0],
        p99_model_high_ms=p99[1],
    )
