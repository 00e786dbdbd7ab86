"""``Compared``, the data of a comparison: points of both sides, their errors, and conclusions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headstack._native import Field
from headstack.comparison.pairs import Point
from headstack.comparison.point_table import point_table
from headstack.comparison.points import FIGURES, UNKNOWN
from headstack.io import tables
from headstack.io.columns import Column, format_repr
from headstack.io.stored import Stored
from headstack.io.tables import Tabular
from headstack.report.figures import Cell
from headstack.results.intervals.conformal import format_levels

MODELLED = ("iops", "mean_ms", "p50_ms", "p99_ms")
"""Figures that may have a prediction interval."""

STORED = Stored("comparison")

LABEL_MAX = 14
"""Maximum length in characters of a file name that labels a row."""

_SIDES = (
    ("iops", "1/s", "completed requests per second (IOPS)"),
    ("mb_per_s", "10^6 bytes/s", "bytes transferred per second"),
    ("mean_ms", "ms", "mean response time"),
    ("p50_ms", "ms", "median of the response times"),
    ("p95_ms", "ms", "95th percentile of the response times"),
    ("p99_ms", "ms", "99th percentile of the response times"),
)

FIELDS = (
    Field("point", "text", "", "the values that distinguish the point from others"),
    Field("workload", "text", "", "the workload"),
    Field("load", "text", "", "the load in words: depth 4, 600/s, 20 clients"),
    *(
        field
        for name, unit, meaning in _SIDES
        for field in (
            Field(f"measured_{name}", "figure", unit, f"{meaning}, measured"),
            Field(f"predicted_{name}", "figure", unit, f"{meaning}, predicted"),
            Field(f"{name.removesuffix('_ms')}_error", "figure", "", "predicted over measured, minus 1"),
        )
    ),
    *(
        Field(f"predicted_{name}_model_{end}", "figure", unit, f"{meaning}: {bound} of the prediction interval")
        for name, unit, meaning in _SIDES
        if name not in ("mb_per_s", "p95_ms")
        for end, bound in (("low", "lower bound"), ("high", "upper bound"))
    ),
    Field("predicted_model_level", "figure", "", "share of devices within these prediction intervals, 0 to 1"),
    Field("demerit_ms", "figure", "ms", "root mean square distance of the distributions of response times"),
    Field("demerit_relative", "figure", "", "demerit divided by the measured mean"),
    Field(
        "stated_error",
        "figure",
        "",
        "allowed difference: tolerance and confidence half-widths of both sides, as a share of the mean",
    ),
    Field("falls_short", "flag", "", "whether the device is worse than its model by more than the stated error"),
)
"""Columns of the table of points."""


@dataclass(frozen=True, repr=False)
class Compared(Tabular):
    """The points of a comparison with their errors. ``Comparison`` adds pictures and files."""

    measured: str
    """The system that was measured."""
    predicted: str
    """The system of the prediction."""
    points: tuple[Point, ...]
    """Compared points, in the order of measurement."""
    alone_measured: tuple[str, ...]
    """Measured points without a prediction."""
    alone_predicted: tuple[str, ...]
    """Predicted points that were not measured."""
    tolerance: float
    """Tolerated model error, as a share."""

    fields = FIELDS

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Returns a row for each point."""
        return self.figures()

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __repr__(self) -> str:
        return format_repr(*self.point_table(), self.title, "to_csv has them")

    def point_table(self, names: tuple[str, str] | None = None) -> tuple[list[Column], list[list[str]]]:
        """Returns the columns, and the cells as text. Short ``names`` of files replace the ``sides``.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> columns, cells = compared.point_table()
        >>> len(cells)
        2
        """
        stems = tuple(name.rpartition(".")[0] or name for name in names or ())
        ours, theirs = stems if len(set(stems)) == 2 and max(map(len, stems)) <= LABEL_MAX else self.sides
        return point_table(self.points, ours, theirs)

    @property
    def sides(self) -> tuple[str, str]:
        """Names of the two sides: ``measured`` and ``predicted``, unless the results have other origins. Tables have no
        origin; for tables, the caller's order applies."""
        first, second = self._kinds
        ours = "measured" if first == UNKNOWN else first
        is_prediction = second == UNKNOWN or (second == "simulated" and ours != "simulated")
        theirs = "predicted" if is_prediction else second
        return (ours, theirs) if ours != theirs else (f"first {ours}", f"second {theirs}")

    @property
    def _kinds(self) -> tuple[str, str]:
        """Origin of each side according to its results."""
        return next(((point.measured.kind, point.predicted.kind) for point in self.points), (UNKNOWN, UNKNOWN))

    @property
    def title(self) -> str:
        """Names of both systems, with the origin of their figures."""
        ours, theirs = self.sides
        words = {"measured": "as measured", "predicted": "as predicted"}
        first, second = (words.get(side, f"({side})") for side in (ours, theirs))
        return f"{self.measured} {first}, and {self.predicted} {second}"

    @property
    def is_of_device(self) -> bool:
        """Whether the first side is a measured device, not a model."""
        return self.sides[0] in ("measured", "first measured")

    def mean_absolute_errors(self) -> dict[str, float | None]:
        """Returns the mean absolute error of each figure, and the mean relative demerit under ``demerit``.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> 0 <= compared.mean_absolute_errors()["iops"] < 1
        True
        """
        errors: dict[str, list[float | None]] = {name: [p.error(name) for p in self.points] for name in FIGURES}
        errors["demerit"] = [point.demerit_relative for point in self.points]
        absolute = {name: [abs(error) for error in values if error is not None] for name, values in errors.items()}
        return {name: sum(values) / len(values) if values else None for name, values in absolute.items()}

    def shortfalls(self) -> list[str]:
        """Returns sentences on the points at which the device is worse than its model by more than the stated error of
        both sides.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> isinstance(compared.shortfalls(), list)
        True
        """
        return [line for point in self.points for line in _in_words(point)]

    def model_errors(self) -> list[str]:
        """Returns sentences on the model errors: the share of measured figures within the prediction intervals, or the
        points at which two models cannot be distinguished.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("mam3367", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> hs.compare(results, again).model_errors()
        ['indistinguishable: depth 1; depth 4: their prediction intervals overlap']
        """
        coverage = []
        levels = format_levels(point.predicted.model_level for point in self.points)
        for figure, name in zip(MODELLED, ("throughput", "mean", "p50", "p99"), strict=True):
            inside = [within for point in self.points if (within := point.within(figure)) is not None]
            coverage += [f"{name} {sum(inside)} of {len(inside)}"] * bool(inside)
        conclusions = [f"points within the {levels} prediction intervals: {', '.join(coverage)}"] if coverage else []
        alike = [point.name for point in self.points if point.is_indistinguishable]
        if alike and self.measured != self.predicted:
            conclusions.append(f"indistinguishable: {'; '.join(alike)}: their prediction intervals overlap")
        return conclusions

    def shares_below(self, least: float) -> list[Point]:
        """Returns the points at which the device reaches less than this share of the prediction.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> compared.shares_below(0.01)
        []
        """
        return [point for point in self.points if point.share < least]

    def figures(self) -> list[dict[str, Cell]]:
        """Returns a row for each point, with the figures of both sides and their errors.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> [row["load"] for row in compared.figures()]
        ['depth 1', 'depth 4']
        """
        rows = []
        for point in self.points:
            row: dict[str, Cell] = {
                "point": point.name,
                "workload": point.measured.workload,
                "load": point.measured.load,
            }
            for figure in FIGURES:
                row[f"measured_{figure}"] = point.measured.figures[figure]
                row[f"predicted_{figure}"] = point.predicted.figures[figure]
                row[f"{figure.removesuffix('_ms')}_error"] = point.error(figure)
            for figure in MODELLED:
                low, high = point.predicted.model.get(figure, (None, None))
                row |= {f"predicted_{figure}_model_low": low, f"predicted_{figure}_model_high": high}
            row["predicted_model_level"] = point.predicted.model_level
            row |= {"demerit_ms": point.demerit_ms, "demerit_relative": point.demerit_relative}
            row |= {"stated_error": point.stated_error("mean_ms"), "falls_short": bool(point.falls_short)}
            rows.append(row)
        return rows

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns all data as one JSON object.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> compared.to_json().startswith("{")
        True
        """
        stretches = [[asdict(stretch) for stretch in point.stretches] for point in self.points]
        first, second = self._kinds
        document = {
            **STORED.head,
            "measured_is": first,
            "predicted_is": second,
            "measured": self.measured,
            "predicted": self.predicted,
            "tolerance": self.tolerance,
            "points": [row | {"stretches": late} for row, late in zip(self.figures(), stretches, strict=True)],
            "alone_measured": self.alone_measured,
            "alone_predicted": self.alone_predicted,
            "mean_absolute_errors": self.mean_absolute_errors(),
            "shortfalls": self.shortfalls(),
            "model_errors": self.model_errors(),
        }
        return tables.to_json(document, path)


def _longer(share: float) -> str:
    return f"{share:.1%} longer than" if share < 1 else f"{1 + share:.3g} times as long as"


def _in_words(point: Point) -> Iterator[str]:
    measured, predicted = point.measured.figures, point.predicted.figures
    descriptions = {
        "iops": lambda: (
            f"{point.shortfall('iops'):.1%} less throughput than predicted, {measured['iops']:,.1f} instead of "
            f"{predicted['iops']:,.1f} IOPS"
        ),
        "mean_ms": lambda: (
            f"mean latency {_longer(point.shortfall('mean_ms'))} predicted, {measured['mean_ms']:,.3f} instead of "
            f"{predicted['mean_ms']:,.3f} ms"
        ),
    }
    short = point.falls_short
    if short:
        largest = max(point.stated_error(figure) for figure in short)
        yield f"{point.name}: {'; '.join(descriptions[figure]() for figure in short)} (stated error {largest:.1%})"
    for stretch in point.stretches:
        when = f"{point.name}: from {stretch.start_s:,.1f} to {stretch.end_s:,.1f} s"
        if stretch.mean_ms is None:
            yield f"{when} no request completed; the predicted mean latency is {stretch.predicted_ms:,.3f} ms"
        else:
            yield (
                f"{when} mean latency {stretch.mean_ms:,.3f} ms at {stretch.measured_iops:,.1f} IOPS, instead of the "
                f"predicted {stretch.predicted_ms:,.3f} ms"
            )
