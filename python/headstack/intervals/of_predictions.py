"""Intervals of predictions: where a device lies, by the error of the predictor and that of the model together."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

from headstack.intervals.calibration import Load, Refusal
from headstack.intervals.described import Described, described
from headstack.intervals.of_runs import learnt
from headstack.intervals.workloads import kind_of
from headstack.predictor.environment import Closed, Environment
from headstack.predictor.predictions import Prediction
from headstack.system import load_system


@dataclass(frozen=True)
class DeviceInterval:
    """Where nine of ten devices lie of which a prediction is."""

    prediction: Prediction
    iops: tuple[float, float]
    mean_ms: tuple[float, float]

    def overlaps(self, other: DeviceInterval) -> bool:
        """Whether the two leave no telling which does more."""
        return self.iops[0] <= other.iops[1] and other.iops[0] <= self.iops[1]


def load_of(environment: Environment) -> Load | Refusal:
    """What devices are under in an environment.

    >>> from headstack.intervals.of_predictions import load_of
    >>> from headstack.predictor import load_environment
    >>> load_of(load_environment("file-server").at_depth(4)).depth
    4
    """
    load = environment.load
    if not isinstance(load, Closed) or load.think_ns > 0 or load.processors is not None:
        return Refusal("models were scored with a number of requests outstanding and no think times")
    if len(environment.spread) > 1:
        return Refusal("models were scored with uniform addresses, not with skewed ones")
    kind = kind_of(100 * environment.read_share, 100 * environment.random_share)
    if isinstance(kind, Refusal):
        return kind
    return Load(kind, max(1, round(load.outstanding)), environment.mean_bytes)


def device_intervals(
    environments: Sequence[Environment], systems: Sequence[str], predictions: Sequence[Prediction]
) -> list[DeviceInterval | Refusal]:
    """Of each prediction, environments outermost; a refusal where nothing is known."""
    known = [_described(system) for system in systems]
    found: list[DeviceInterval | Refusal] = []
    for number, prediction in enumerate(predictions):
        environment, system = environments[number // len(systems)], known[number % len(systems)]
        if isinstance(system, Refusal):
            found.append(system)
            continue
        load = load_of(environment)
        rate, mean = learnt(system, load, "rate"), learnt(system, load, "mean")
        if isinstance(rate, Refusal) or isinstance(mean, Refusal):
            found += [one for one in (rate, mean) if isinstance(one, Refusal)][:1]
            continue
        if prediction.mean_ms_low is None or prediction.mean_ms_high is None:
            found.append(Refusal("it may be saturated"))
            continue
        ends = []
        for low, high, one in (
            (prediction.iops_low, prediction.iops_high, rate),
            (prediction.mean_ms_low, prediction.mean_ms_high, mean),
        ):
            # Both errors at once: it holds where both of them do.
            apart = math.exp(one.half_width(0.0))
            ends.append((low / apart, high * apart))
        found.append(DeviceInterval(prediction, *ends))
    return found


def _described(system: str) -> Described | Refusal:
    if os.fspath(system).endswith(".json"):
        return Refusal("a file of tests does not say how its system is described; name the system")
    one = described(load_system(system))
    return Refusal("the sample of a twin is not run here; headstack run shows its interval") if one.is_twin else one
