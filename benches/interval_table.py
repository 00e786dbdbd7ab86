"""The table of prediction intervals in docs/accuracy.md, with their coverage of devices that are left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from headstack.io.atomic_files import write_text
from headstack.results.intervals import calibration, conformal

PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"
START, END = "<!-- intervals: made by benches/intervals.py -->\n", "<!-- end -->\n"


def table(classes: Mapping[str, calibration.ClassScores]) -> str:
    """Returns the table: classes with their kinds of requests, and metrics with equal numbers of models together."""
    rows = [row for scores in classes.values() for row in _rows(scores)]
    heads = ["class", "requests", "metric", "models", "level", "widest interval", "left out, inside"]
    lines = [f"| {' | '.join(heads)} |", "| --- | --- | --- | --: | --: | --: | --: |"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def _rows(scores: calibration.ClassScores) -> Iterator[list[str]]:
    plural = calibration.CLASSES[scores.name][1]
    loads = sorted({cell.load for device in scores.devices if not device.fitted for cell in device.cells})
    for kind, state in dict.fromkeys((load.kind, load.state) for load in loads):
        of_kind = [load for load in loads if (load.kind, load.state) == (kind, state)]
        unknown = []
        for figure in calibration.FIGURES:
            intervals = [scores.learnt(load, figure) for load in of_kind]
            learnt = [interval for interval in intervals if isinstance(interval, calibration.Learnt)]
            coverage = calibration.leave_one_out(scores, figure, kind)
            if not learnt or coverage is None:
                unknown.append(figure)
                continue
            half = max(interval.half_width(0.0) for interval in learnt)
            counts = sorted({interval.devices for interval in learnt})
            yield [
                plural,
                of_kind[0].words,
                figure,
                " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))),
                conformal.format_levels(interval.level for interval in learnt),
                f"-{-100 * math.expm1(-half):.0f} to +{100 * math.expm1(half):.0f} %",
                f"{100 * coverage.share:.0f} % ({conformal.percent(coverage.level)})",
            ]
        if unknown:
            devices = {
                device.name
                for device in scores.devices
                for cell in device.cells
                if not device.fitted and cell.figure in unknown and cell.load in of_kind
            }
            count = f"{len(devices)} of {conformal.devices_needed()}"
            yield [plural, of_kind[0].words, ", ".join(unknown), count, "", "not known", ""]


def write_page(classes: Mapping[str, calibration.ClassScores]) -> None:
    """Renews the table in the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    write_text(PAGE, before + START + table(classes) + END + rest.partition(END)[2])
