"""The report of blind calibrations of hidden devices: errors of the models, and coverage of their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from headstack._native import version
from headstack.report.figures import Axis, Cell, Figure, Lines, Report, Section, Series, Table
from headstack.results.intervals.calibration import CLASSES, FIGURES
from headstack.results.intervals.conformal import LEVEL, coverage_bounds
from headstack.twin import proof

if TYPE_CHECKING:
    from headstack.twin.proof import Proof

NAMES = {"rate": "requests a second", "mean": "mean", "p50": "median", "p99": "99th percentile"}
CURVE_POINTS = 200
"""Maximum number of points of a drawn distribution."""


def report_of(found: Mapping[str, Sequence[Proof]]) -> Report:
    """Returns the evaluation of calibrated models of several families as a report."""
    sections = [_family(family, some) for family, some in found.items()]
    question = "How right is a description that was learnt from a device's response times alone?"
    return Report("Twins of hidden devices", question, _summary(found), sections, version=version())


def _summary(found: Mapping[str, Sequence[Proof]]) -> str:
    said = []
    for family, some in found.items():
        fits = sum(one.fits for one in some)
        rates = proof.errors(some, "rate")
        off = f", whose rates are off by {_percent(_mean(rates))} % in the mean" if rates else ""
        said.append(f"{len(some)} hidden {CLASSES[family][1]}: {fits} fit{off}.")
    return "\n\n".join(said)


def _family(family: str, some: Sequence[Proof]) -> Section:
    fits = [one for one in some if one.fits]
    low, high = coverage_bounds(max(1, len(fits)))
    text = (
        "Devices are drawn from what devices of all eras are like and calibrated blind. They and their twins are then "
        "asked what no probe asked. Coverage is the mean over devices, each left out of what its intervals are learnt "
        f"from; {100 * low:.0f} to {100 * high:.0f} % are what so many devices show where {100 * LEVEL:.0f} % is true."
    )
    name = CLASSES[family][1]
    figures: list[Figure] = [_figures(family, some), _workloads(family, fits)] if fits else []
    return Section(
        name[:1].upper() + name[1:],
        text,
        [*([_distribution(family, fits)] if fits else []), *figures, _devices(family, some)],
    )


def _figures(family: str, some: Sequence[Proof]) -> Table:
    rows: list[list[Cell]] = []
    for figure in FIGURES:
        errors = sorted(proof.errors(some, figure))
        held = proof.held(family, some, figure)
        rows.append(
            [
                NAMES[figure],
                _percent(_mean(errors)),
                _percent(_nine_in_ten(errors)),
                _percent(max(errors, default=None)),
                None if held is None else round(100 * held.share),
                None if held is None else round(200 * median(held.half_widths), 1),
            ]
        )
    columns = ["figure", "off by, mean %", "nine in ten %", "worst %", "90 % interval holds %", "its full width %"]
    return Table(f"{family}-figures", "How far twins are off", columns, rows)


def _workloads(family: str, fits: Sequence[Proof]) -> Table:
    rows: list[list[Cell]] = []
    for workload in dict.fromkeys(cell["workload"] for one in fits for cell in one.cells):
        row: list[Cell] = [workload]
        for figure in ("rate", "p99"):
            errors = [error for one in fits for error in proof.errors([one], figure, workload)]
            row += [_percent(_mean(errors)), _percent(max(errors, default=None))]
        rows.append(row)
    columns = ["workload", "rate, mean %", "worst %", "p99, mean %", "worst %"]
    return Table(f"{family}-workloads", "By workload", columns, rows)


def _distribution(family: str, fits: Sequence[Proof]) -> Lines:
    series, told = [], []
    for figure in FIGURES:
        errors = sorted(proof.errors(fits, figure))
        if not errors:
            continue
        told.append(f"{NAMES[figure]} within {_percent(_nine_in_ten(errors))} %")
        step = max(1, len(errors) // CURVE_POINTS)
        kept = [*range(0, len(errors), step), len(errors) - 1]
        share = [100 * (number + 1) / len(errors) for number in kept]
        series.append(Series(NAMES[figure], [100 * errors[number] for number in kept], share))
    axes = Axis("Twin off by at most (%)", log=False), Axis("Share of devices under workloads (%)", log=False)
    says = f"In nine of ten cases: {', '.join(told)}." if told else "No device was asked anything."
    return Lines(f"{family}-errors", "How far twins are off", *axes, series, says=says)


def _devices(family: str, some: Sequence[Proof]) -> Table:
    held = proof.held(family, some, "rate")
    rows: list[list[Cell]] = [
        [
            one.device.removeprefix(f"{family}-"),
            *(
                _percent(max(proof.errors([one], figure), default=None)) if one.fits else None
                for figure in ("rate", "p99")
            ),
            None if held is None or one.device not in held.shares else round(100 * held.shares[one.device]),
            round(one.device_s),
            one.requests,
            round(one.processor_s, 1),
            one.why,
        ]
        for one in some
    ]
    columns = ["device", "rate, worst %", "p99, worst %", "rates within 90 % interval, %"]
    columns += ["its time s", "requests", "processor s", "does not fit"]
    return Table(f"{family}-devices", "Each device", columns, rows)


def _mean(errors: Sequence[float]) -> float | None:
    return sum(errors) / len(errors) if errors else None


def _nine_in_ten(errors: Sequence[float]) -> float | None:
    """Returns the 90th percentile of sorted errors."""
    return errors[int(0.9 * (len(errors) - 1))] if errors else None


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)
