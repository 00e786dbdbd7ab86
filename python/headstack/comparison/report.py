"""The report of a comparison: both curves, the errors of each point, and where the device is worse than its model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headstack._native import version
from headstack.report.figures import Asked, Axis, Bars, Lines, Provenance, Report, Section, Series, Table
from headstack.results.explorer_queries import figures_of, request_of
from headstack.results.report import BAND, MEANS, RESPONSE, THROUGHPUT, provenance_of
from headstack.results.words import words_of

if TYPE_CHECKING:
    from headstack.comparison.compared import Compared
    from headstack.comparison.pairs import Point

ERRORS = (("iops", "throughput"), ("mean_ms", "mean response"), ("p99_ms", "p99 response"))
"""Errors that are drawn, with their names."""


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
        asked=partial(_inputs_of, comparison),
    )


def _summary_lines(comparison: Compared) -> list[str]:
    """States the mean errors first, then their positions."""
    known = {name: error for name, error in comparison.mean_absolute_errors().items() if error is not None}
    told = ", ".join(f"{name.removesuffix('_ms')} {error:.1%}" for name, error in known.items() if name != "mb_per_s")
    ours, theirs = comparison.sides
    said = [f"Mean absolute error: {told}." if told else "No figure is known on both sides."]
    if not known:
        return said
    short = comparison.shortfalls()
    said += [f"{line[:1].upper()}{line[1:]}." for line in (*comparison.model_errors(), *short)]
    if not short:
        who = "The device is" if comparison.is_of_device else f"{ours[:1].upper()}{ours[1:]} is"
        than = "its model" if comparison.is_of_device else theirs
        said.append(f"{who} never slower than {than} by more than the stated error.")
    for names, what in (
        (comparison.alone_measured, f"{ours}, not {theirs}"),
        (comparison.alone_predicted, f"{theirs}, not {ours}"),
    ):
        said += [f"{what[:1].upper()}{what[1:]}: {'; '.join(names)}."] * bool(names)
    return said


def curves(comparison: Compared) -> Lines:
    """Returns mean response time over throughput, of both sides."""
    series = []
    for name, points in by_curve(comparison).items():
        for side, word in zip(("measured", "predicted"), comparison.sides, strict=True):
            sides = [getattr(point, side) for point in points]
            shown = [one.figures for one in sides]
            ends = [one.model.get("mean_ms", (None, None)) for one in sides]
            is_known = any(one.model.get("mean_ms") for one in sides)
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
    note = " ".join([MEANS, "Numbers at points: the load.", *([BAND] if any(one.low for one in series) else [])])
    near = sum(abs(error) <= comparison.tolerance for error in _errors_of(comparison, "iops"))
    says = f"{near} of {len(comparison)} points lie within {100 * comparison.tolerance:.3g} % in throughput."
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
    note = f"{100 * comparison.tolerance:.3g} % are tolerated, beside the statistical error of both sides."
    found = {name: _errors_of(comparison, figure) for figure, name in ERRORS}
    most = {name: max(errors, key=abs) for name, errors in found.items() if errors}
    says = "Farthest off: " + ", ".join(f"{name} {100 * error:+.3g} %" for name, error in most.items()) + "."
    groups = [point.name for point in comparison]
    return Bars("errors", "Errors of the prediction", axis, groups, series, note, says=says if most else "")


def _table(comparison: Compared) -> Table:
    rows = comparison.figures()
    columns = [" ".join(words_of(name)).rstrip() for name in rows[0]] if rows else []
    return Table("points", "Point by point", columns, [list(row.values()) for row in rows])


def _inputs_of(comparison: Compared) -> list[Asked]:
    sides = [seen for point in comparison for seen in (point.measured, point.predicted)]
    unknown = "the table that it is of does not hold what was run"
    return [
        request_of(seen.results[seen.index], seen.results.whole(seen.index))
        if seen.results is not None
        else Asked(seen.system, "", {}, figures_of(seen.figures), refused=unknown)
        for seen in sides
    ]


def _runs(comparison: Compared) -> list[Provenance]:
    sides = [seen for point in comparison for seen in (point.measured, point.predicted)]
    return [provenance_of(seen.results.whole(seen.index)) for seen in sides if seen.results is not None]
