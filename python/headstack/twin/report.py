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

NAMES = {"rate": "IOPS", "mean": "mean", "p50": "median", "p99": "99th percentile"}
CURVE_POINTS = 200
"""Maximum number of points of a drawn distribution."""


def report_of(evaluations: Mapping[str, Sequence[Proof]]) -> Report:
    """Returns the evaluation of calibrated models of several families as a report."""
    sections = [_family(family, proofs) for family, proofs in evaluations.items()]
    question = "How accurate is a model that was calibrated only with a device's latencies?"
    return Report("Calibrated models of hidden devices", question, _summary(evaluations), sections, version=version())


def _summary(evaluations: Mapping[str, Sequence[Proof]]) -> str:
    sentences = []
    for family, proofs in evaluations.items():
        fits = sum(evaluation.fits for evaluation in proofs)
        rates = proof.errors(proofs, "rate")
        off = f"; their mean IOPS error is {_percent(_mean(rates))} %" if rates else ""
        sentences.append(f"{len(proofs)} hidden {CLASSES[family][1]}: {fits} fit{off}.")
    return "\n\n".join(sentences)


def _family(family: str, proofs: Sequence[Proof]) -> Section:
    fits = [evaluation for evaluation in proofs if evaluation.fits]
    low, high = coverage_bounds(max(1, len(fits)))
    text = (
        "Devices are drawn at random from distributions that cover all eras, and calibrated blind. Then they and "
        "their models run workloads that no probe ran. Coverage is the mean over devices, each left out of the "
        f"calibration of its own intervals; with this many devices, {100 * low:.0f} to {100 * high:.0f} % is "
        f"consistent with {100 * LEVEL:.0f} %."
    )
    name = CLASSES[family][1]
    figures: list[Figure] = [_figures(family, proofs), _workloads(family, fits)] if fits else []
    return Section(
        name[:1].upper() + name[1:],
        text,
        [*([_distribution(family, fits)] if fits else []), *figures, _devices(family, proofs)],
    )


def _figures(family: str, proofs: Sequence[Proof]) -> Table:
    rows: list[list[Cell]] = []
    for figure in FIGURES:
        errors = sorted(proof.errors(proofs, figure))
        held = proof.coverage(family, proofs, figure)
        rows.append(
            [
                NAMES[figure],
                _percent(_mean(errors)),
                _percent(_p90(errors)),
                _percent(max(errors, default=None)),
                None if held is None else round(100 * held.share),
                None if held is None else round(200 * median(held.half_widths), 1),
            ]
        )
    columns = ["figure", "mean error %", "p90 error %", "worst %", "90 % interval coverage %", "full width %"]
    return Table(f"{family}-figures", "Error of calibrated models", columns, rows)


def _workloads(family: str, fits: Sequence[Proof]) -> Table:
    rows: list[list[Cell]] = []
    for workload in dict.fromkeys(cell["workload"] for evaluation in fits for cell in evaluation.cells):
        row: list[Cell] = [workload]
        for figure in ("rate", "p99"):
            errors = [error for evaluation in fits for error in proof.errors([evaluation], figure, workload)]
            row += [_percent(_mean(errors)), _percent(max(errors, default=None))]
        rows.append(row)
    columns = ["workload", "rate, mean %", "worst %", "p99, mean %", "worst %"]
    return Table(f"{family}-workloads", "By workload", columns, rows)


def _distribution(family: str, fits: Sequence[Proof]) -> Lines:
    series, limits = [], []
    for figure in FIGURES:
        errors = sorted(proof.errors(fits, figure))
        if not errors:
            continue
        limits.append(f"{NAMES[figure]} within {_percent(_p90(errors))} %")
        step = max(1, len(errors) // CURVE_POINTS)
        kept = [*range(0, len(errors), step), len(errors) - 1]
        share = [100 * (number + 1) / len(errors) for number in kept]
        series.append(Series(NAMES[figure], [100 * errors[number] for number in kept], share))
    axes = Axis("Error of the model at most (%)", log=False), Axis("Share of results (%)", log=False)
    says = f"In 90 % of the cases: {', '.join(limits)}." if limits else "No device ran a workload."
    return Lines(f"{family}-errors", "Error of calibrated models", *axes, series, says=says)


def _devices(family: str, proofs: Sequence[Proof]) -> Table:
    held = proof.coverage(family, proofs, "rate")
    rows: list[list[Cell]] = [
        [
            evaluation.device.removeprefix(f"{family}-"),
            *(
                _percent(max(proof.errors([evaluation], figure), default=None)) if evaluation.fits else None
                for figure in ("rate", "p99")
            ),
            None
            if held is None or evaluation.device not in held.shares
            else round(100 * held.shares[evaluation.device]),
            round(evaluation.device_s),
            evaluation.requests,
            round(evaluation.processor_s, 1),
            evaluation.why,
        ]
        for evaluation in proofs
    ]
    columns = ["device", "rate, worst %", "p99, worst %", "rates within 90 % interval, %"]
    columns += ["device time s", "requests", "processor s", "does not fit"]
    return Table(f"{family}-devices", "Each device", columns, rows)


def _mean(errors: Sequence[float]) -> float | None:
    return sum(errors) / len(errors) if errors else None


def _p90(errors: Sequence[float]) -> float | None:
    """Returns the 90th percentile of sorted errors."""
    return errors[int(0.9 * (len(errors) - 1))] if errors else None


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)
