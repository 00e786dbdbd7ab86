"""``FitData``: the settings that a fit tried and retained, and the resulting estimates of the unknowns."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import Any, Self

from headstack import _native
from headstack._native import InputError
from headstack.io.json_text import read_json
from headstack.io.stored import Stored
from headstack.results.table import Row
from headstack.simulation.designs import Axis, Listed, Range
from headstack.studies.fits.files import Fit, Unknown
from headstack.studies.fits.search import Point
from headstack.studies.power import Tolerance, amount

STORED = Stored("inverse study")

STORED_NAMES = {"description": "what", "is_determined": "is_told"}
"""Names of fields in stored results that differ from those here."""

BAND = (0.05, 0.95)
"""Quantiles of the 90 % band of settings that reproduce the figures."""

PARTS = 8
"""Number of equal parts of a prior, to draw the posterior."""

ROUNDING_FACTOR = 1 + 1e-9
"""A figure at its tolerance is within it, independent of rounding."""

TOLERANCE_FACTORS = (1.0, 1.25, 1.5, 2.0, 3.0)
"""Multiples of the tolerance for which the number of reproducing settings is reported."""


@dataclass(frozen=True)
class Figure:
    """A published figure: a value, or a range."""

    name: str
    low: float
    high: float
    held_out: bool

    def error(self, value: float | None, tolerance: Tolerance) -> float:
        """Returns its error in tolerances: from -1 to 1 it is reproduced."""
        if value is None:
            return math.inf
        return tolerance.error({"low": self.low, "high": self.high, "found": value}) / tolerance.amount

    @property
    def published(self) -> str:
        """Formats the published value."""
        return amount(self.low) if self.low == self.high else f"{amount(self.low)} to {amount(self.high)}"


def figures_of(fit: Fit, rows: Sequence[Row]) -> list[Figure]:
    """Returns the figures in the order of the query. Raises ``InputError`` if they are invalid, or cannot be held
    out."""
    if not rows:
        raise fit.error("sql", "the query returns no rows")
    missing = {"figure", "found", *(("published",) if "published" in rows[0] else ("low", "high"))} - {*rows[0]}
    if missing:
        raise fit.error(
            "sql", f"returns {', '.join(rows[0])}; must return figure, found, and published or low and high"
        )
    figures = [_figure(fit, row) for row in rows]
    names = [figure.name for figure in figures]
    for name in names:
        if names.count(name) > 1:
            raise fit.error("sql", f"{names.count(name)} rows have the figure {name!r}; must be one")
    for place, name in enumerate(fit.held_out):
        if name not in names:
            raise fit.error(f"held_out[{place}]", f"no figure has the name {name!r}; allowed: {', '.join(names)}")
    if all(figure.held_out for figure in figures):
        raise fit.error("held_out", "all figures are held out, so no figure is left for choosing settings")
    return figures


def _figure(fit: Fit, row: Row) -> Figure:
    name = str(row["figure"])
    low, high = (row["published"],) * 2 if "published" in row else (row["low"], row["high"])
    if low is None or high is None:
        raise fit.error("sql", f"the figure {name!r} has no published value")
    if fit.tolerance.unit == "%" and 0 in (low, high):
        raise fit.error("tolerance", f"a percentage of the published 0 of {name!r} is 0; use an amount")
    return Figure(name, float(low), float(high), name in fit.held_out)


@dataclass(frozen=True)
class Tried:
    """A setting and its figures."""

    point: Point
    setting: Mapping[str, str]
    rows: tuple[Row, ...]
    tolerance: Tolerance

    def value_of(self, figure: Figure) -> float | None:
        """Returns the simulated figure; ``None`` if its runs lack it."""
        value = next((row["found"] for row in self.rows if str(row["figure"]) == figure.name), None)
        return None if value is None else float(value)

    def error(self, figure: Figure) -> float:
        """Returns the error of a figure in tolerances: from -1 to 1 it is reproduced."""
        return figure.error(self.value_of(figure), self.tolerance)

    def distance(self, figures: Iterable[Figure]) -> float:
        """Returns the largest error of the fitted figures."""
        return max(abs(self.error(figure)) for figure in figures if not figure.held_out) / ROUNDING_FACTOR


@dataclass(frozen=True)
class Posterior:
    """The posterior of an unknown, over settings that reproduce the figures."""

    name: str
    description: str
    why: str
    prior: str
    is_determined: bool
    """Whether the figures determine it at all: the posterior differs from the prior by more than chance."""
    median: str | None
    """Median of a range, with its 90 % band."""
    low: str | None
    high: str | None
    shares: Mapping[str, float]
    """Shares of listed values."""
    parts: tuple[str, ...]
    """The listed values, or the start of each of eight equal parts of the prior."""
    steps: tuple[float, ...]
    """Share of the settings in each of these parts."""


@dataclass(frozen=True)
class FigureResult:
    """A figure, with the results of the settings."""

    figure: str
    published: str
    low: float
    high: float
    held_out: bool
    alone: float | None
    """The smallest error of any setting, in the tolerance's unit."""
    nearest: float | None
    """The value for the setting nearest to all fitted figures."""
    median: float | None
    """Median over the settings that reproduce the fitted figures, with its 90 % band."""
    band_low: float | None
    band_high: float | None
    is_within: bool
    """Whether the median, or else the value of the nearest setting, is within the tolerance."""
    share_within: float
    """Share of settings within the tolerance, among those that reproduce the fitted figures."""


@dataclass(frozen=True)
class FitData:
    """The settings that a fit tried and retained, and the estimates of the unknowns. ``Fitted`` draws and writes
    them."""

    fit: str
    title: str
    question: str
    summary: str
    tolerance: Tolerance
    settings: int
    """Maximum number of settings to try."""
    seed: int
    tried: int
    """Number of distinct settings tried."""
    is_whole: bool
    """Whether all settings were tried."""
    reproducing: int
    """Number of settings that reproduce all fitted figures."""
    equal_weight: float
    """Effective number of settings with equal weight."""
    distance: float | None
    """Distance of the nearest setting, in tolerances; ``None`` if no setting has all figures."""
    nearest: Mapping[str, str]
    wider: tuple[tuple[float, int], ...]
    """Number of settings that reproduce them with each multiple of the tolerance."""
    unknowns: tuple[Posterior, ...]
    rows: tuple[FigureResult, ...]
    exclude: tuple[tuple[str, str], ...]
    """Pairs of fitted figures that settings reproduce separately, but none reproduces together."""
    each: tuple[Row, ...]
    """Each setting with its figures, its distance and its weight. Empty, like the summary, if it was read from a
    file."""
    version: str

    @classmethod
    def of(
        cls, fit: Fit, tried: Sequence[Tried], weights: Sequence[float], settings: int, seed: int, is_whole: bool
    ) -> Self:
        """Creates it from tried settings, each with the share of the prior that it represents."""
        figures = figures_of(fit, tried[0].rows)
        distances = [tried_setting.distance(figures) for tried_setting in tried]
        different = {
            tuple(tried_setting.setting.values()): distance
            for tried_setting, distance in zip(tried, distances, strict=True)
        }
        nearest = min(range(len(tried)), key=distances.__getitem__)
        equal_weight = _equal_weight(weights)
        posteriors = [
            _posterior(unknown, [tried_setting.point[place] for tried_setting in tried], weights, equal_weight)
            for place, unknown in enumerate(fit.unknowns)
        ]
        return cls(
            fit=fit.name,
            title=fit.title,
            question=" ".join(fit.question.split()),
            summary=" ".join(fit.summary.split()),
            tolerance=fit.tolerance,
            settings=settings,
            seed=seed,
            tried=len(different),
            is_whole=is_whole,
            reproducing=sum(distance <= 1 for distance in different.values()),
            equal_weight=equal_weight,
            distance=distances[nearest] if math.isfinite(distances[nearest]) else None,
            nearest=dict(tried[nearest].setting),
            wider=tuple(
                (times, sum(distance <= times for distance in different.values())) for times in TOLERANCE_FACTORS
            ),
            unknowns=tuple(posteriors),
            rows=tuple(_row(figure, tried, weights, tried[nearest]) for figure in figures),
            exclude=tuple(_exclude(figures, tried)),
            each=tuple(_settings(figures, tried, distances, weights)),
            version=_native.version(),
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Reads the output of ``to_json``. Raises ``InputError`` for other files."""
        file = Path(path)
        stored = STORED.upgraded(str(file), read_json(file))
        tolerance = Tolerance.parse(stored["tolerance"])
        if tolerance is None:
            raise InputError(f"{file}: tolerance: {stored['tolerance']!r} is not a tolerance")
        of_lists = {
            "tolerance": tolerance,
            "wider": tuple((times, count) for times, count in stored["wider"]),
            "unknowns": tuple(
                Posterior(**_with_field_names(item) | {"parts": tuple(item["parts"]), "steps": tuple(item["steps"])})
                for item in stored["unknowns"]
            ),
            "rows": tuple(FigureResult(**item) for item in stored["rows"]),
            "exclude": tuple((item, second) for item, second in stored["exclude"]),
            "each": (),
            "summary": "",
        }
        return cls(**{field.name: stored[field.name] for field in fields(cls) if field.name not in of_lists} | of_lists)


def _with_field_names(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces stored names by those of fields."""
    fields_by_name = {stored_name: name for name, stored_name in STORED_NAMES.items()}
    return {fields_by_name.get(name, name): value for name, value in stored.items()}


def _equal_weight(weights: Sequence[float]) -> float:
    squares = math.fsum(weight * weight for weight in weights)
    return 1 / squares if squares else 0.0


def _posterior(unknown: Unknown, points: Sequence[float], weights: Sequence[float], equal_weight: float) -> Posterior:
    axis = unknown.axis
    parts = len(axis.values) if isinstance(axis, Listed) else PARTS
    steps = [0.0] * parts
    for share, weight in zip(points, weights, strict=True):
        steps[int(share * parts)] += weight
    is_determined = equal_weight > 0 and _is_determined(axis, points, weights, steps, equal_weight)
    quantiles: list[str | None] = [None] * 3
    if isinstance(axis, Range) and equal_weight:
        quantiles = [axis.at(quantile(points, weights, at)) for at in (BAND[0], 0.5, BAND[1])]
    return Posterior(
        name=unknown.name,
        description=unknown.description,
        why=unknown.why,
        prior=unknown.prior,
        is_determined=is_determined,
        median=quantiles[1],
        low=quantiles[0],
        high=quantiles[2],
        shares=dict(zip(axis.values, steps, strict=True)) if isinstance(axis, Listed) and equal_weight else {},
        parts=tuple(axis.at(part / parts) for part in range(parts)),
        steps=tuple(steps),
    )


def _is_determined(
    axis: Axis, points: Sequence[float], weights: Sequence[float], steps: Sequence[float], count: float
) -> bool:
    """Whether ``count`` settings of the prior would be as uneven with a probability of at most 5 %: for listed values
    by the sum of squares (Pearson), for a range by the largest deviations of the cumulative shares (Kuiper)."""
    if isinstance(axis, Listed):
        free = len(steps) - 1
        squares = count * len(steps) * math.fsum((step - 1 / len(steps)) ** 2 for step in steps)
        # The 95th percentile of chi-squared (Wilson and Hilferty).
        return squares > free * (1 - 2 / (9 * free) + 1.645 * math.sqrt(2 / (9 * free))) ** 3
    below, ahead, behind = 0.0, 0.0, 0.0
    for share, weight in sorted(zip(points, weights, strict=True)):
        if weight:
            behind = max(behind, share - below)
            below += weight
            ahead = max(ahead, below - share)
    root = math.sqrt(count)
    return (ahead + behind) * (root + 0.155 + 0.24 / root) > 1.747


def quantile(values: Sequence[float], weights: Sequence[float], at: float) -> float:
    """Returns the weighted quantile."""
    pairs = sorted((value, weight) for value, weight in zip(values, weights, strict=True) if weight)
    whole, below = math.fsum(weight for _, weight in pairs), 0.0
    for value, weight in pairs:
        below += weight
        if below >= at * whole * (1 - 1e-12):
            return value
    raise AssertionError("all weights are 0")


def _row(figure: Figure, tried: Sequence[Tried], weights: Sequence[float], nearest: Tried) -> FigureResult:
    errors = [abs(tried_setting.error(figure)) for tried_setting in tried]
    value = nearest.value_of(figure)
    # A held-out figure may be missing from settings that reproduce the others.
    having = [
        (tried_setting.value_of(figure) or 0.0, weight)
        for tried_setting, weight, error in zip(tried, weights, errors, strict=True)
        if weight and math.isfinite(error)
    ]
    low = median = high = None
    if having:
        values, shares = [value for value, _ in having], [share for _, share in having]
        low, median, high = (quantile(values, shares, at) for at in (BAND[0], 0.5, BAND[1]))
        value = median
    tolerance = nearest.tolerance
    return FigureResult(
        figure=figure.name,
        published=figure.published,
        low=figure.low,
        high=figure.high,
        held_out=figure.held_out,
        alone=min(errors) * tolerance.amount if math.isfinite(min(errors)) else None,
        nearest=nearest.value_of(figure),
        median=median,
        band_low=low,
        band_high=high,
        is_within=abs(figure.error(value, tolerance)) <= ROUNDING_FACTOR,
        share_within=math.fsum(
            weight for weight, error in zip(weights, errors, strict=True) if error <= ROUNDING_FACTOR
        ),
    )


def _exclude(figures: Sequence[Figure], tried: Sequence[Tried]) -> Iterator[tuple[str, str]]:
    fitted = [figure for figure in figures if not figure.held_out]
    reached = {
        figure.name: {place for place, first in enumerate(tried) if abs(first.error(figure)) <= ROUNDING_FACTOR}
        for figure in fitted
    }
    for first, second in combinations(reached, 2):
        if reached[first] and reached[second] and not reached[first] & reached[second]:
            yield first, second


def _settings(
    figures: Sequence[Figure], tried: Sequence[Tried], distances: Sequence[float], weights: Sequence[float]
) -> Iterator[Row]:
    for number, (tried_setting, distance, weight) in enumerate(zip(tried, distances, weights, strict=True), 1):
        yield {
            "setting": number,
            **tried_setting.setting,
            **{figure.name: tried_setting.value_of(figure) for figure in figures},
            "distance": distance if math.isfinite(distance) else None,
            "weight": weight,
        }
