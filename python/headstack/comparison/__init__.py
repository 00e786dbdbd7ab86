"""Holding measurements against predictions: point by point, with where the device falls below its model."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headstack import tables
from headstack._native import Field, InputError
from headstack.columns import Column, told
from headstack.comparison.points import FIGURES, UNKNOWN, Seen, seen
from headstack.comparison.shown import shown
from headstack.comparison.simulated_again import simulated_again
from headstack.results import Results
from headstack.runs import Progress, System
from headstack.stored import Stored
from headstack.values import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headstack.report.figures import Report

TOLERANCE = "5%"
"""What a model may be off by before it is said, beside the statistical error of both sides."""
SIGNS = {"iops": 1, "mb_per_s": 1, "mean_ms": -1, "p50_ms": -1, "p95_ms": -1, "p99_ms": -1}
"""Whether more is better."""
MODELLED = ("iops", "mean_ms", "p50_ms", "p99_ms")
"""Of these a model's error may be known."""
CERTAIN, MANY_TRIALS = 1.96, 3.0
"""Standard deviations: of 95 % confidence, and where one of many intervals shall not stand out by chance."""


STORED = Stored("comparison")
_SIDES = (
    ("iops", "1/s", "requests completed a second"),
    ("mb_per_s", "10^6 bytes/s", "bytes moved a second"),
    ("mean_ms", "ms", "mean response time"),
    ("p50_ms", "ms", "median of the response times"),
    ("p95_ms", "ms", "95th percentile of the response times"),
    ("p99_ms", "ms", "99th percentile of the response times"),
)
FIELDS = (
    Field("point", "text", "", "what tells the point from others"),
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
        Field(f"predicted_{name}_model_{end}", "figure", unit, f"{meaning}: {end} end of where nine of ten devices lie")
        for name, unit, meaning in _SIDES
        if name not in ("mb_per_s", "p95_ms")
        for end in ("low", "high")
    ),
    Field("demerit_ms", "figure", "ms", "root mean square distance of the distributions of response times"),
    Field("demerit_relative", "figure", "", "the same over the measured mean"),
    Field(
        "stated_error",
        "figure",
        "",
        "what both sides may differ by: tolerance and sampling errors, as a share of the mean",
    ),
    Field("falls_short", "flag", "", "whether the device falls short of its model by more than it may"),
)
"""The columns of the table of points."""


@dataclass(frozen=True)
class Stretch:
    """Intervals in a row in which a device answers later than predicted."""

    start_s: float
    """From the beginning of the measured part."""
    end_s: float
    measured_iops: float
    mean_ms: float | None
    """Measured; ``None`` where nothing was complete."""
    predicted_ms: float


@dataclass(frozen=True)
class Point:
    """A load that was both measured and predicted."""

    name: str
    """Which of the points: the workload, depth, rate or mode, as far as they differ."""
    measured: Seen
    predicted: Seen
    demerit_ms: float | None
    """Root mean square horizontal distance of the distributions of response times (Ruemmler and Wilkes, 1994); ``None``
    where a side holds no distribution."""
    tolerance: float
    stretches: tuple[Stretch, ...]
    """When the device was slower than predicted, where intervals were kept."""

    def error(self, figure: str) -> float | None:
        """Predicted over measured, minus 1; ``None`` where a side does not know the figure, or measured none."""
        measured, predicted = self.measured.figures[figure], self.predicted.figures[figure]
        return predicted / measured - 1 if measured and predicted is not None else None

    @property
    def demerit_relative(self) -> float | None:
        """The demerit over the measured mean."""
        mean_ms = self.measured.figures["mean_ms"]
        return None if self.demerit_ms is None or not mean_ms else self.demerit_ms / mean_ms

    def stated_error(self, figure: str) -> float:
        """What the two may differ by: the tolerance, and the half-widths of 95 % confidence of both."""
        if figure == "iops" and self.measured.is_open:
            # Arrivals by chance.
            counts = (self.measured.requests, self.predicted.requests)
            return self.tolerance + CERTAIN * math.sqrt(sum(1 / max(1, count) for count in counts))
        return self.tolerance + math.hypot(self.measured.relative_half_width, self.predicted.relative_half_width)

    def shortfall(self, figure: str) -> float:
        """By what share the device is worse than predicted: negative where it is better."""
        measured, predicted = self.measured.figures[figure], self.predicted.figures[figure]
        if measured is None or not predicted or (self.measured.requests == 0 and figure != "iops"):
            return 0.0
        return SIGNS[figure] * (1 - measured / predicted)

    @property
    def falls_short(self) -> list[str]:
        """Of throughput and mean response time those that are worse than predicted, by more than the stated error."""
        return [figure for figure in ("iops", "mean_ms") if self.shortfall(figure) > self.stated_error(figure)]

    @property
    def is_better(self) -> bool:
        """Whether the device does better than its model, by more than the stated error."""
        better = (figure for figure in ("iops", "mean_ms") if -self.shortfall(figure) > self.stated_error(figure))
        return not self.falls_short and any(better)

    @property
    def is_indistinguishable(self) -> bool:
        """Whether both sides are models whose errors leave no telling which is faster: their intervals overlap."""
        pairs = [
            (self.measured.model[name], self.predicted.model[name]) for name in ("iops", "mean_ms") if self.both(name)
        ]
        return bool(pairs) and all(one[0] <= other[1] and other[0] <= one[1] for one, other in pairs)

    def both(self, figure: str) -> bool:
        """Whether a figure's error is known of both sides."""
        return figure in self.measured.model and figure in self.predicted.model

    def within(self, figure: str) -> bool | None:
        """Whether a measured figure lies where nine of ten devices do; ``None`` where that is not known."""
        value, ends = self.measured.figures[figure], self.predicted.model.get(figure)
        if value is None or ends is None or self.measured.model:
            return None
        return ends[0] <= value <= ends[1]

    @property
    def share(self) -> float:
        """What the device does of what is predicted: of throughput, or of speed of response where that is less."""
        return min(1 - self.shortfall("iops"), 1 / (1 + self.shortfall("mean_ms")))


@dataclass(frozen=True, repr=False)
class Comparison:
    """What was measured beside what was predicted."""

    measured: str
    """The system that was measured."""
    predicted: str
    """The system that the prediction is of."""
    points: tuple[Point, ...]
    """In the order of measurement."""
    alone_measured: tuple[str, ...]
    """Points that nothing was predicted for."""
    alone_predicted: tuple[str, ...]
    """Points that were not measured."""
    tolerance: float
    """As a share."""

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __repr__(self) -> str:
        return told(*self.shown(), self.title, "to_csv has them")

    def shown(self) -> tuple[list[Column], list[list[str]]]:
        """The columns, and the cells as text.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> columns, cells = compared.shown()
        >>> len(cells)
        2
        """
        return shown(self.points, *self.sides)

    @property
    def sides(self) -> tuple[str, str]:
        """What the two sides are, in words: ``measured`` and ``predicted``, unless their results say otherwise. Tables
        do not say what their rows are of: they are what the caller takes them for."""
        first, second = self.points[0].measured.kind, self.points[0].predicted.kind
        ours = "measured" if first == UNKNOWN else first
        is_prediction = second == UNKNOWN or (second == "simulated" and ours != "simulated")
        theirs = "predicted" if is_prediction else second
        return (ours, theirs) if ours != theirs else (f"first {ours}", f"second {theirs}")

    @property
    def title(self) -> str:
        """Both systems, and what their figures are."""
        ours, theirs = self.sides
        words = {"measured": "as measured", "predicted": "as predicted"}
        first, second = (words.get(side, f"({side})") for side in (ours, theirs))
        return f"{self.measured} {first}, and {self.predicted} {second}"

    @property
    def is_of_device(self) -> bool:
        """Whether the first side is a device that was measured, and not a model."""
        return self.sides[0] in ("measured", "first measured")

    def mean_absolute_errors(self) -> dict[str, float | None]:
        """Of each figure the mean of its errors' sizes, and under ``demerit`` of the relative demerits.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> 0 <= compared.mean_absolute_errors()["iops"] < 1
        True
        """
        errors: dict[str, list[float | None]] = {name: [p.error(name) for p in self.points] for name in FIGURES}
        errors["demerit"] = [point.demerit_relative for point in self.points]
        known = {name: [abs(error) for error in values if error is not None] for name, values in errors.items()}
        return {name: sum(values) / len(values) if values else None for name, values in known.items()}

    def shortfalls(self) -> list[str]:
        """In words, where the device falls below its model by more than the stated error of both.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> isinstance(compared.shortfalls(), list)
        True
        """
        return [line for point in self.points for line in _in_words(point)]

    def model_errors(self) -> list[str]:
        """In words, what the models' errors say: how much of what was measured lies where devices do, or which points
        of two models they leave no telling.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("mam3367", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> hs.compare(results, again).model_errors()
        ['indistinguishable: depth 1; depth 4: their 90 % intervals overlap']
        """
        held = []
        for figure, name in zip(MODELLED, ("throughput", "mean", "p50", "p99"), strict=True):
            found = [within for point in self.points if (within := point.within(figure)) is not None]
            held += [f"{name} {sum(found)} of {len(found)}"] * bool(found)
        said = [f"points within the 90 % intervals of the model's error: {', '.join(held)}"] if held else []
        alike = [point.name for point in self.points if point.is_indistinguishable]
        if alike and self.measured != self.predicted:
            said.append(f"indistinguishable: {'; '.join(alike)}: their 90 % intervals overlap")
        return said

    def shares_below(self, least: float) -> list[Point]:
        """Points at which the device does less than this share of what is predicted.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> compared.shares_below(0.01)
        []
        """
        return [point for point in self.points if point.share < least]

    def figures(self) -> list[dict[str, Any]]:
        """A row for each point, with the figures of both sides and their errors.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> [row["load"] for row in compared.figures()]
        ['depth 1', 'depth 4']
        """
        rows = []
        for point in self.points:
            row: dict[str, Any] = {
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
            row |= {"demerit_ms": point.demerit_ms, "demerit_relative": point.demerit_relative}
            row |= {"stated_error": point.stated_error("mean_ms"), "falls_short": bool(point.falls_short)}
            rows.append(row)
        return rows

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Both curves over each other, and the errors below. Written to ``path`` where one is given.

        Needs the extra ``headstack[plot]``.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> _ = compared.plot("compared.png")
        """
        from headstack import plots
        from headstack.comparison import picture

        figure = picture.overlaid(self)
        if path is not None:
            plots.save(figure, path)
        return figure

    def report(self) -> Report:
        """Everything as a report, which notebooks show.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> len(compared.report().runs)
        4
        """
        from headstack.report.comparison_report import report_of

        return report_of(self)

    def to_html(self, path: str | os.PathLike[str], with_simulator: bool = False) -> None:
        """Writes ``report`` as one HTML file, whose curves can be varied ``with_simulator``. Needs the page, which a
        build of the package holds.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> compared.to_html("compared.html")
        """
        from headstack.report.html import write_html

        write_html(self.report(), path, with_simulator)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Everything, as one JSON object.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> compared.to_json().startswith("{")
        True
        """
        stretches = [[asdict(stretch) for stretch in point.stretches] for point in self.points]
        text = json.dumps(
            {
                **STORED.head,
                "measured_is": self.points[0].measured.kind,
                "predicted_is": self.points[0].predicted.kind,
                "measured": self.measured,
                "predicted": self.predicted,
                "tolerance": self.tolerance,
                "points": [row | {"stretches": late} for row, late in zip(self.figures(), stretches, strict=True)],
                "alone_measured": self.alone_measured,
                "alone_predicted": self.alone_predicted,
                "mean_absolute_errors": self.mean_absolute_errors(),
                "shortfalls": self.shortfalls(),
                "model_errors": self.model_errors(),
            },
            indent=1,
        )
        return tables.written(text + "\n", path)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """A row for each point as CSV.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> compared.to_csv().splitlines()[0].split(",")[:2]
        ['point', 'workload']
        """
        return tables.to_csv([field.name for field in FIELDS], self.figures(), path)


def compare(
    measured: Results | str | os.PathLike[str],
    predicted: Results | System,
    *,
    tolerance: str | float = TOLERANCE,
    progress: Progress | None = None,
) -> Comparison:
    """Holds measured results against predicted ones, each as results or a file of them (JSON, CSV or Parquet).

    ``predicted`` may be a system instead: the points that were measured are simulated on it, with the workloads,
    ranges, lengths and seeds that the measured results state. Points belong together that are of the same load; a
    difference beyond ``tolerance`` and the confidence of both sides is said in words by ``shortfalls``. Errors are
    predicted over measured, minus 1. ``progress`` hears of the simulation.

    Raises ``InputError`` when a file cannot be read or holds several systems, or no point is on both sides.

    >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
    >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
    >>> compared = hs.compare(results, again)
    >>> [point.name for point in compared.points]
    ['depth 1', 'depth 4']
    """
    share = percent("tolerance", str(tolerance)) / 100
    if share < 0:
        raise InputError(f"tolerance: {tolerance} is negative; 0% or more is allowed")
    ours = seen(measured, "measured")
    if isinstance(predicted, Results) or is_file(predicted):
        theirs = seen(predicted, "simulated")  # type: ignore[arg-type]
    else:
        theirs = seen(simulated_again(ours, predicted, progress), "simulated")
    return _matched(ours, theirs, share)


def is_file(predicted: object) -> bool:
    """Whether this is a file of results rather than a system."""
    return isinstance(predicted, str | os.PathLike) and os.fspath(predicted).endswith((".json", ".csv", ".parquet"))


def _matched(ours: list[Seen], theirs: list[Seen], tolerance: float) -> Comparison:
    left = list(theirs)
    points, alone = [], []
    for name, one in zip(_names(ours, theirs), ours, strict=True):
        candidates = [other for other in left if one.is_load_of(other)]
        if not candidates:
            alone.append(name)
            continue
        # Of several, the one of the same part and seed.
        best = max(candidates, key=lambda other: (one.part == other.part, one.seed == other.seed))
        left.remove(best)
        points.append(Point(name, one, best, one.demerit_ms(best), tolerance, _stretches(one, best, tolerance)))
    theirs_by_name = zip(_names(theirs, ours), theirs, strict=True)
    remaining = [name for name, other in theirs_by_name if other in left]
    if not points:
        only = f"measured {_listed(alone)}; predicted {_listed(remaining)}"
        raise InputError(f"no point was both measured and predicted: {only}")
    return Comparison(ours[0].system, theirs[0].system, tuple(points), tuple(alone), tuple(remaining), tolerance)


def _names(side: list[Seen], other: list[Seen]) -> list[str]:
    """What each point of a side is called: what distinguishes it from others of its side, and workloads in any case."""
    several = {name for name in ("part", "seed") if len({getattr(one, name) for one in side}) > 1}
    workloads = {one.workload for one in (*side, *other)}
    varied = {name for one in side for name in one.labels if len({o.labels.get(name) for o in side}) > 1}
    names: list[str] = []
    for one in side:
        parts = [one.workload if len(workloads) > 1 or not one.load else "", one.load]
        parts += [one.part or "all of it" if "part" in several else "", f"seed {one.seed}" if "seed" in several else ""]
        parts += [f"{label} {text}" for label, text in one.labels.items() if label in varied]
        name = ", ".join(part for part in parts if part)
        again = sum(earlier == name or earlier.startswith(f"{name}, again ") for earlier in names)
        names.append(f"{name}, again {again}" if again else name)
    return names


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    return "; ".join(listed[:4]) + (f" and {len(listed) - 4} more" if len(listed) > 4 else "")


def _stretches(measured: Seen, predicted: Seen, tolerance: float) -> tuple[Stretch, ...]:
    """When the mean response time of an interval was above the predicted one, beyond tolerance and chance."""
    late = [_late(measured, predicted, index, tolerance) for index in range(len(measured.intervals))]
    stretches: list[Stretch] = []
    for before, now in zip([None, *late], late, strict=False):
        if now is None:
            continue
        stretches.append(now if before is None else _joined(stretches.pop(), now))
    return tuple(stretches)


def _late(measured: Seen, predicted: Seen, index: int, tolerance: float) -> Stretch | None:
    mine = measured.intervals[index]
    is_alike = index < len(predicted.intervals) and predicted.intervals[index]["duration_s"] == mine["duration_s"]
    model: dict[str, Any] = predicted.intervals[index] if is_alike else dict(predicted.figures)
    predicted_ms, count = model["mean_ms"], mine["requests"]
    expected = (model["iops"] or 0) * mine["duration_s"]
    start_s = mine["start_s"] - measured.intervals[0]["start_s"]
    stretch = Stretch(
        start_s,
        start_s + mine["duration_s"],
        mine["iops"] or 0.0,
        mine["mean_ms"] if count else None,
        predicted_ms or 0.0,
    )
    if not predicted_ms:
        return None
    if count == 0:
        return stretch if expected >= MANY_TRIALS**2 else None
    chance = math.hypot(measured.interval_deviation, predicted.interval_deviation if is_alike else 0.0)
    margin = tolerance + MANY_TRIALS * chance
    return stretch if mine["mean_ms"] > predicted_ms * (1 + margin) else None


def _joined(before: Stretch, now: Stretch) -> Stretch:
    """Two stretches that meet."""
    lengths = (before.end_s - before.start_s, now.end_s - now.start_s)
    counts = (before.measured_iops * lengths[0], now.measured_iops * lengths[1])

    def weighted(values: tuple[float | None, float | None]) -> float | None:
        known = [(value, count) for value, count in zip(values, counts, strict=True) if value is not None and count]
        return sum(value * count for value, count in known) / sum(count for _, count in known) if known else None

    predicted_ms = (before.predicted_ms * lengths[0] + now.predicted_ms * lengths[1]) / sum(lengths)
    mean_ms = weighted((before.mean_ms, now.mean_ms))
    return Stretch(before.start_s, now.end_s, sum(counts) / sum(lengths), mean_ms, predicted_ms)


def _longer(share: float) -> str:
    return f"{share:.1%} longer than" if share < 1 else f"{1 + share:.3g} times as long as"


def _in_words(point: Point) -> Iterator[str]:
    measured, predicted = point.measured.figures, point.predicted.figures
    said = {
        "iops": lambda: (
            f"{point.shortfall('iops'):.1%} less throughput than predicted, {measured['iops']:,.1f} of "
            f"{predicted['iops']:,.1f} IO/s"
        ),
        "mean_ms": lambda: (
            f"a mean response {_longer(point.shortfall('mean_ms'))} predicted, {measured['mean_ms']:,.3f} for "
            f"{predicted['mean_ms']:,.3f} ms"
        ),
    }
    short = point.falls_short
    if short:
        largest = max(point.stated_error(figure) for figure in short)
        yield f"{point.name}: {'; '.join(said[figure]() for figure in short)} (stated error {largest:.1%})"
    for stretch in point.stretches:
        when = f"{point.name}: from {stretch.start_s:,.1f} to {stretch.end_s:,.1f} s"
        if stretch.mean_ms is None:
            yield f"{when} nothing was complete, where a response takes {stretch.predicted_ms:,.3f} ms as predicted"
        else:
            yield (
                f"{when} a mean response of {stretch.mean_ms:,.3f} ms at {stretch.measured_iops:,.1f} IO/s, for "
                f"{stretch.predicted_ms:,.3f} ms as predicted"
            )
