"""The report of a comparison: both curves, the errors of each point, and where the device is worse than its model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headstack._native import version
from headstack.report.figures import Axis, Bars, Lines, Provenance, Report, RunInputs, Section, Series, Table
from headstack.results.explorer_queries import figures_of, request_of
from headstack.results.report import BAND, MEANS, RESPONSE, THROUGHPUT, provenance_of
from headstack.results.words import words_of

if TYPE_CHECKING:
    from headstack.comparison.compared import Compared
    from headstack.comparison.pairs import Point

ERRORS = (("iops", "throughput"), ("mean_ms", "mean response"), ("p99_ms", "p99 response"))
"""Errors to draw, with their names."""


def report_of(comparison: Compared) -> Report:
    """Returns all results of a comparison as a report."""
    title = comparison.title
    both = " and ".join(comparison.sides)
    sections = [
        Section(f"{both[:1].upper()}{both[1:]}", "", [curves(comparison)]),
        Section("Errors", "", [errors(comparison), _table(comparison)]),
    ]
    answer, *remarks = _summary_lines(comparison)
    runs = _runs(comparison)
    return Report(
        title,
        "",
        answer,
        sections,
        (),
        runs,
        version(),
        remarks="\n\n".join(remarks),
        inputs=partial(_inputs_of, comparison),
    )


def _summary_lines(comparison: Compared) -> list[str]:
    """Returns sentences with the mean errors, the conclusions, and the unmatched points."""
    errors = {name: error for name, error in comparison.mean_absolute_errors().items() if error is not None}
    means = ", ".join(f"{name.removesuffix('_ms')} {error:.1%}" for name, error in errors.items() if name != "mb_per_s")
    ours, theirs = comparison.sides
    lines = [f"Mean absolute error: {means}." if means else "The sides have no figure in common."]
    if not errors:
        return lines
    short = comparison.shortfalls()
    lines += [f"{line[:1].upper()}{line[1:]}." for line in (*comparison.model_errors(), *short)]
    if not short:
        who = "The device is" if comparison.is_of_device else f"{ours[:1].upper()}{ours[1:]} is"
        than = "its model" if comparison.is_of_device else theirs
        lines.append(f"{who} never slower than {than} by more than the stated error.")
    for names, side in (
        (comparison.alone_measured, f"{ours}, not {theirs}"),
        (comparison.alone_predicted, f"{theirs}, not {ours}"),
    ):
        lines += [f"{side[:1].upper()}{side[1:]}: {'; '.join(names)}."] * bool(names)
    return lines


def curves(comparison: Compared) -> Lines:
    """Returns the figure of mean latency over throughput of both sides."""
    series = []
    for name, points in by_curve(comparison).items():
        for side, word in zip(("measured", "predicted"), comparison.sides, strict=True):
            sides = [getattr(point, side) for point in points]
            shown = [point.figures for point in sides]
            ends = [point.model.get("mean_ms", (None, None)) for point in sides]
            is_known = any(point.model.get("mean_ms") for point in sides)
            series.append(
                Series(
                    f"{name}, {word}",
                    [figures["iops"] or 0.0 for figures in shown],
                    [figures["mean_ms"] for figures in shown],
                    labels=[point.measured.load.removeprefix("depth ") for point in points],
                    p99=[figures.get("p99_ms") for figures in shown],
                    thing=name,
                    low=[low for low, _ in ends] if is_known else (),
                    high=[high for _, high in ends] if is_known else (),
                )
            )
    title = "Response time over throughput"
    note = " ".join([MEANS, "Numbers at points: the load.", *([BAND] if any(line.low for line in series) else [])])
    near = sum(abs(error) <= comparison.tolerance for error in _errors_of(comparison, "iops"))
    says = f"{near} of {len(comparison)} points are within {100 * comparison.tolerance:.3g} % in throughput."
    return Lines("curves", title, THROUGHPUT, RESPONSE, series, note, says=says)


def _errors_of(comparison: Compared, figure: str) -> list[float]:
    return [error for point in comparison if (error := point.error(figure)) is not None]


def by_curve(comparison: Compared) -> dict[str, list[Point]]:
    """Returns groups of points that differ only in load, in the order of measurement."""
    curves: dict[str, list[Point]] = {}
    for point in comparison:
        measured = point.measured
        name = ", ".join(part for part in (measured.workload, measured.mode, measured.part) if part)
        curves.setdefault(name, []).append(point)
    return curves


def errors(comparison: Compared) -> Bars:
    """Returns the errors of each point, in percent."""
    series = []
    for figure, name in ERRORS:
        found_errors = [point.error(figure) for point in comparison]
        series.append(Series(name, (), [None if error is None else 100 * error for error in found_errors]))
    ours, theirs = comparison.sides
    axis = Axis(f"{theirs[:1].upper()}{theirs[1:]} / {ours} − 1 (%)")
    note = f"Tolerance: {100 * comparison.tolerance:.3g} %, in addition to the statistical error of both sides."
    by_figure = {name: _errors_of(comparison, figure) for figure, name in ERRORS}
    most = {name: max(errors, key=abs) for name, errors in by_figure.items() if errors}
    says = "Largest errors: " + ", ".join(f"{name} {100 * error:+.3g} %" for name, error in most.items()) + "."
    groups = [point.name for point in comparison]
    return Bars("errors", "Errors of the prediction", axis, groups, series, note, says=says if most else "")


def _table(comparison: Compared) -> Table:
    rows = comparison.figures()
    columns = [" ".join(words_of(name)).rstrip() for name in rows[0]] if rows else []
    return Table("points", "Point by point", columns, [list(row.values()) for row in rows])


def _inputs_of(comparison: Compared) -> list[RunInputs]:
    sides = [side for point in comparison for side in (point.measured, point.predicted)]
    unknown = "its table does not contain the workload"
    return [
        request_of(side.results[side.index], side.results.whole(side.index))
        if side.results is not None
        else RunInputs(side.system, "", {}, figures_of(side.figures), refused=unknown)
        for side in sides
    ]


def _runs(comparison: Compared) -> list[Provenance]:
    sides = [side for point in comparison for side in (point.measured, point.predicted)]
    return [provenance_of(side.results.whole(side.index)) for side in sides if side.results is not None]
