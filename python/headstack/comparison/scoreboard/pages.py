"""The generated tables of docs/scoreboard.md and docs/accuracy.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.drive import Drive
from headstack.comparison.scoreboard.scored_devices import ScoredDevices
from headstack.comparison.scoreboard.tables import SHOWN, Rows, depth_table, device_table, headline, summary_table
from headstack.report.markdown import table_lines
from headstack.results.intervals import calibration, conformal
from headstack.results.intervals.calibration import CLASSES, FIGURES, ClassScores, Learnt, Load, Refusal
from headstack.results.intervals.described import Described, described
from headstack.results.intervals.model_errors import learned_intervals
from headstack.results.intervals.workloads import state_of

END = "<!-- end -->\n"

Tables = Mapping[str, str]
"""Generated texts by name."""


def start_of(name: str) -> str:
    """Returns the line before a generated text."""
    return f"<!-- scoreboard: {name} -->\n"


def with_tables(page: str, tables: Tables) -> str:
    """Returns a page with its generated texts renewed. Raises ``InputError`` if the page lacks one.

    >>> from headstack.comparison.scoreboard.pages import with_tables
    >>> with_tables("<!-- scoreboard: a -->\\nold\\n<!-- end -->\\nrest", {"a": "new\\n"}).split()[3:5]
    ['-->', 'new']
    """
    for name, text in tables.items():
        before, start, rest = page.partition(start_of(name))
        _, end, after = rest.partition(END)
        if not (start and end):
            raise InputError(f"the page has no table {name}; add {start_of(name).strip()} and {END.strip()}")
        page = before + start + text + end + after
    return page


def scoreboard_tables(board: ScoredDevices) -> Tables:
    """Returns the tables of docs/scoreboard.md."""
    return {
        "headline": f"{headline(board)}\n",
        "classes": _markdown(summary_table(board)),
        "devices": _markdown(device_table(board)),
        **{f"{figure} by depth": _markdown(depth_table(board, figure)) for figure in SHOWN},
    }


def accuracy_tables(board: ScoredDevices) -> Tables:
    """Returns the tables of docs/accuracy.md."""
    classes = {**board.classes, calibration.POOL: calibration.pooled(board.classes)}
    return {"intervals": _markdown(interval_table(classes)), "reach": _markdown(reach_table())}


PAGES: Mapping[str, Callable[[ScoredDevices], Tables]] = {
    "scoreboard.md": scoreboard_tables,
    "accuracy.md": accuracy_tables,
}
"""Pages in docs with their generated tables."""


def _markdown(table: Rows) -> str:
    words = [number < table.words or head == "fitted" for number, head in enumerate(table.heads)]
    return "\n".join([*table_lines(table.heads, words, table.rows), ""])


def interval_table(classes: Mapping[str, ClassScores]) -> Rows:
    """Returns the learned intervals by class, kind of requests and figure, with their coverage of left-out devices."""
    heads = ["class", "requests", "metric", "models", "level", "widest interval", "left out, inside"]
    return Rows(heads, 3, [row for scores in classes.values() for row in _intervals_of(scores)])


SINCE = 2005
"""Drives of the catalogue are counted from this year on."""
REACH_DEPTHS = (1, 2, 4, 8, 16, 32)


def reach_table() -> Rows:
    """Returns the number of drives in the catalogue since ``SINCE`` with intervals for random reads and for random
    writes of 4 KiB at all ``REACH_DEPTHS``, by class and figure."""
    counts: dict[str, list[int]] = {}
    for name in _native.drive_ids():
        drive = Drive.load(name)
        if (drive.summary["year"] or 0) < SINCE:
            continue
        about = described(drive)
        with_interval = reached_figures(drive, about)
        reached = [figure in with_interval for figure in FIGURES]
        totals = counts.setdefault(about.of_class, [0] * (1 + len(FIGURES)))
        counts[about.of_class] = [total + count for total, count in zip(totals, (True, *reached), strict=True)]
    total = [sum(column) for column in zip(*counts.values(), strict=True)]
    named = [*((CLASSES[of_class][1], row) for of_class, row in sorted(counts.items())), ("all", total)]
    rows = [
        [name, str(count), *(f"{reached} ({100 * reached / count:.0f} %)" for reached in all_reached)]
        for name, (count, *all_reached) in named
    ]
    return Rows(["class", "drives", *FIGURES], 1, rows)


def reached_figures(drive: Drive, about: Described) -> set[str]:
    """Returns the figures of a drive that have an interval for random reads and random writes of 4 KiB at all depths,
    in the state of its flash by default."""
    with_interval = set(FIGURES)
    for kind in ("read", "write"):
        state = state_of(kind, drive.system.get("drive", {}))
        for depth in REACH_DEPTHS if with_interval else ():
            intervals = learned_intervals(about, Load(kind, depth, 4096, state))
            with_interval -= {
                figure
                for figure, interval in intervals.items()
                if isinstance(interval, Refusal) and interval.interval is None
            }
    return with_interval


def _intervals_of(scores: ClassScores) -> Iterator[list[str]]:
    plural = CLASSES[scores.name][1] + " of any class" * (scores.name == calibration.POOL)
    teaching = [device for device in scores.devices if device.fitted is None]
    loads = sorted({cell.load for device in teaching for cell in device.cells if cell.figure in FIGURES})
    # No run of a user matches an open loop, or one direction of a mix.
    loads = [load for load in loads if load.kind in calibration.KINDS]
    for kind, state in dict.fromkeys((load.kind, load.state) for load in loads):
        of_kind = [load for load in loads if (load.kind, load.state) == (kind, state)]
        unknown = []
        for figure in FIGURES:
            intervals = [scores.learnt(load, figure) for load in of_kind]
            learnt = [interval for interval in intervals if isinstance(interval, Learnt)]
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
            measured = {
                device.name
                for device in teaching
                for cell in device.cells
                if cell.figure in unknown and cell.load in of_kind
            }
            count = f"{len(measured)} of {conformal.devices_needed()}"
            yield [plural, of_kind[0].words, ", ".join(unknown), count, "", "not known", ""]
