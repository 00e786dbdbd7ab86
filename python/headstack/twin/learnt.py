"""What the answers of a device teach: a description, how sure its values are, and what it leaves unexplained."""

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
    """Where a value of the description lies, with its unit, and how that was found."""

    low: str | None
    """None where the answers bound it on no side: "not identifiable" is then in ``how``."""
    high: str | None
    how: str


@dataclass(frozen=True)
class Residual:
    """The natural logarithm of what was measured over what the description says, for one test."""

    mean: float
    """Of the mean response time."""
    p50: float
    p99: float
    requests: int

    @classmethod
    def of(cls, measured_ns: ArrayLike, described_ns: ArrayLike) -> Residual:
        """From response times of the same requests."""
        both = [np.maximum(np.asarray(times, np.float64), 1.0) for times in (measured_ns, described_ns)]
        means, p50s, p99s = ([float(figure(times)) for times in both] for figure in (np.mean, np.median, _p99))
        mean, p50, p99 = (float(np.log(measured / described)) for measured, described in (means, p50s, p99s))
        return cls(mean, p50, p99, len(both[0]))


def _p99(times: np.ndarray) -> float:
    return float(np.quantile(times, 0.99))


@dataclass(frozen=True)
class Learnt:
    """What was learnt from a device."""

    best: System
    """The description that explains the answers best."""
    values: Mapping[str, Value]
    """Key path of the description to how sure its value is."""
    sample: Sequence[System]
    """Others that the answers do not tell from it."""
    residuals: Mapping[str, Residual] = field(default_factory=dict)
    """Test to what the description leaves unexplained of it."""
    fits: bool = True
    """Whether the device is of this family at all."""
    why: str = ""
    """What speaks against it, where it does not fit."""
