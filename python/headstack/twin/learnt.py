"""``Learnt``: a description learned from a device's answers, the confidence of its values, and its residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

System = dict[str, Any]
"""The description of a system, as ``headstack.catalogue.system.load_system(NAME).system``."""


@dataclass(frozen=True)
class Value:
    """The bounds of a value in the description, with its unit, and the method."""

    low: str | None
    """``None`` if the answers bound it on no side: "not identifiable" is then in ``how``."""
    high: str | None
    how: str


@dataclass(frozen=True)
class Residual:
    """Natural logarithms of measured over predicted values of one test."""

    mean: float
    """Residual of the mean response time."""
    p50: float
    p99: float
    requests: int

    @classmethod
    def of(cls, measured_ns: ArrayLike, described_ns: ArrayLike) -> Residual:
        """Computes residuals from response times of the same requests."""
        both = [np.maximum(np.asarray(times, np.float64), 1.0) for times in (measured_ns, described_ns)]
        means, p50s, p99s = ([float(figure(times)) for times in both] for figure in (np.mean, np.median, _p99))
        mean, p50, p99 = (float(np.log(measured / described)) for measured, described in (means, p50s, p99s))
        return cls(mean, p50, p99, len(both[0]))


def _p99(times: np.ndarray) -> float:
    return float(np.quantile(times, 0.99))


@dataclass(frozen=True)
class Learnt:
    """The model learned from a device."""

    best: System
    """The description that explains the answers best."""
    values: Mapping[str, Value]
    """Confidence of each value by its key path in the description."""
    sample: Sequence[System]
    """Other descriptions that the answers do not distinguish from it."""
    residuals: Mapping[str, Residual] = field(default_factory=dict)
    """Residuals of the description by test."""
    fits: bool = True
    """Whether the device is of this family at all."""
    why: str = ""
    """The reason why it does not fit."""
