"""Student's t and chi-square distributions for intervals and sample sizes, in pure Python, so that continuous
integration needs no further packages."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

STEPS = 200
"""Number of bisections and terms, enough for the resolution of doubles."""


def _fraction(a: float, b: float, x: float) -> float:
    """Returns the continued fraction of the incomplete beta function (Lentz; Numerical Recipes 6.4)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / ((1.0 - (a + b) * x / (a + 1.0)) or tiny)
    value = d
    for m in range(1, STEPS):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / ((1.0 + step * d) or tiny)
            c = (1.0 + step / c) or tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def _beta(a: float, b: float, x: float) -> float:
    """Returns the regularized incomplete beta function."""
    if x <= 0 or x >= 1:
        return min(1.0, max(0.0, x))
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):
        return math.exp(logarithm) * _fraction(a, b, x) / a
    return 1.0 - math.exp(logarithm) * _fraction(b, a, 1.0 - x) / b


def p_of(t: float, degrees: float) -> float:
    """Returns the two-sided p-value of t.

    >>> round(p_of(2.228, 10), 3)
    0.05
    """
    return 0.0 if math.isinf(t) else _beta(degrees / 2, 0.5, degrees / (degrees + t * t))


@cache
def t_of(share: float, degrees: float) -> float:
    """Returns the quantile of Student's t.

    >>> [round(t_of(share, 4), 3) for share in (0.975, 0.5, 0.8)]
    [2.776, 0.0, 0.941]
    """
    if share < 0.5:
        return -t_of(1 - share, degrees)
    return _halved(lambda t: 1 - p_of(t, degrees) / 2, share)


@cache
def chi_square_of(share: float, degrees: float) -> float:
    """Returns the quantile of chi-square.

    >>> round(chi_square_of(0.05, 10), 3)
    3.94
    """
    return _halved(lambda x: _gamma(degrees / 2, x / 2), share)


def _gamma(a: float, x: float) -> float:
    """Returns the regularized lower incomplete gamma function, by its series."""
    if x <= 0:
        return 0.0
    term = total = 1.0 / a
    n = a
    while term > total * 1e-16:
        n += 1
        term *= x / n
        total += term
    return min(1.0, total * math.exp(a * math.log(x) - x - math.lgamma(a)))


def _halved(below: Callable[[float], float], share: float) -> float:
    """Returns the point at which an increasing function reaches a share, by bisection."""
    high = 1.0
    while below(high) < share and high < 1e12:
        high *= 2
    low = 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
        if high - low <= 1e-13 * high:
            break
    return (low + high) / 2
