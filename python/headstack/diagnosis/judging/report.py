"""The report of a fleet: a row for each disk, the slow ones on top."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise
from statistics import median
from typing import TYPE_CHECKING

from headstack._native import version
from headstack.diagnosis.judging.verdict import FINE, SLOW, UNDECIDED
from headstack.report.figures import Axis, Cell, Figure, Limit, Lines, Report, Section, Series, Table

if TYPE_CHECKING:
    from headstack.diagnosis.judging.session import Session
    from headstack.diagnosis.judging.verdict import Verdict

LEVELS = (1.05, 1.15, 1.3, 1.6, 2.0, 3.0, 5.0)
BLOCKS = "▁▂▃▄▅▆▇█"
"""Characters of a row's small curve, by level of slowdown."""
NOT_SEEN = "·"
SPARK_PARTS = 24
DRAWN_MAX = 8
"""Maximum number of slow disks whose history is drawn: more lines cannot be distinguished."""
BREAK = 4
"""Multiple of the usual interval without data from which a line is interrupted."""
HOUR_S, DAY_S = 3600.0, 86_400.0

COLUMNS = [
    "host",
    "disk",
    "verdict",
    "over time",
    "since (UTC)",
    "times as slow",
    "confidence %",
    "compared with",
    "evidence %",
    "why",
    "cause",
    "next step",
]


def report_of(session: Session) -> Report:
    """Returns the verdicts of a session as a report."""
    from headstack.diagnosis.judging.session import headline  # start-up time

    answer = headline(session)
    sections = [Section("Slow now", "", figures)] if (figures := _courses(session)) else []
    sections.append(Section("Every disk", "", [_table(session)]))
    question = "Which disks are slow or make requests wait, since when, and why?"
    return Report(
        "Disks that are slow or wait",
        question,
        "\n\n".join([f"{answer[:1].upper()}{answer[1:]}.", *_groups(session.verdicts)]),
        sections,
        version=version(),
        remarks=_remarks(session),
    )


def spark(course: Sequence[tuple[float, float]], span_s: tuple[float, float]) -> str:
    """Returns a disk's slowdown over time in a few characters for any table; all rows have the same scale."""
    begin_s, end_s = span_s
    part_s = max(end_s - begin_s, 1.0) / SPARK_PARTS

    def place(point: tuple[float, float]) -> int:
        return min(SPARK_PARTS - 1, max(0, int((point[0] - begin_s) / part_s)))

    shown = [NOT_SEEN] * SPARK_PARTS
    for at, points in groupby(course, key=place):
        factors = sorted(factor for _, factor in points)
        # A value equal to a level is not above it.
        shown[at] = BLOCKS[bisect_left(LEVELS, factors[len(factors) // 2])]
    return "".join(shown)


def span_of(verdicts: Sequence[Verdict]) -> tuple[float, float]:
    """Returns the time range of all known slowdowns."""
    times = [at_s for verdict in verdicts for at_s, _ in verdict.course] or [0.0]
    return min(times), max(times)


def _table(session: Session) -> Table:
    span_s = span_of(session.verdicts)
    rows: list[list[Cell]] = [
        [
            verdict.host or None,
            verdict.disk,
            verdict.kind,
            spark(verdict.course, span_s) if verdict.course else None,
            None if verdict.since_s is None else _moment(verdict.since_s),
            _times(verdict),
            None if verdict.confidence is None else round(100 * verdict.confidence, 1),
            verdict.method,
            None if verdict.evidence is None else round(100 * verdict.evidence, 1),
            # Hundreds of fine disks have the same text.
            None if verdict.kind == FINE else verdict.why,
            None if verdict.cause is None else f"{verdict.cause.name}: {verdict.cause.evidence}",
            None if verdict.kind == FINE else verdict.next_step,
        ]
        for verdict in session.verdicts
    ]
    shown_columns = [n for n in range(len(COLUMNS)) if any(row[n] is not None for row in rows)] or [0]
    begin, end = map(_moment, span_s)
    scale = ", ".join(f"{block} up to {level:g}" for block, level in zip(BLOCKS, LEVELS, strict=False))
    note = (
        f"Over time, from {begin} to {end}: latency divided by the expected latency. {scale}, {BLOCKS[-1]} more; "
        f"{NOT_SEEN} unknown. Evidence is a share of the alarm threshold."
    )
    return Table(
        "disks",
        "Disks, slow ones first",
        [COLUMNS[n] for n in shown_columns],
        [[row[n] for n in shown_columns] for row in rows],
        note,
    )


def _times(verdict: Verdict) -> str | None:
    """Formats the slowdown of a disk as a cell."""
    if verdict.slower is None:
        return None
    low, high = _short(verdict.slower.low), _short(verdict.slower.high)
    return f"at least {low}" if verdict.slower.is_lower_bound else f"{low} to {high}"


def _courses(session: Session) -> list[Figure]:
    """Returns the history of the slow disks."""
    slow = [verdict for verdict in session.verdicts if verdict.kind == SLOW and verdict.course][:DRAWN_MAX]
    if not slow:
        return []
    begin_s, end_s = span_of(slow)
    unit, unit_s = ("Days", DAY_S) if end_s - begin_s > 3 * DAY_S else ("Hours", HOUR_S)
    series = [
        Series(
            f"{verdict.host} {verdict.disk}".strip(),
            [(at_s - begin_s) / unit_s for at_s, _ in _broken(verdict.course)],
            [factor for _, factor in _broken(verdict.course)],
        )
        for verdict in slow
    ]
    axes = Axis(f"{unit} since {_moment(begin_s)} UTC", log=False), Axis("Times as slow as expected")
    worst = slow[0]
    says = f"{worst.host} {worst.disk}: {worst.why}".strip()
    limits = [Limit(1.0, "as expected")]
    return [Lines("course", "How slow, over time", *axes, series, limits=limits, says=says)]


def _broken(course: Sequence[tuple[float, float]]) -> list[tuple[float, float | None]]:
    """Returns a history with a break wherever data are missing for much longer than usual."""
    usual_s = median([after - before for (before, _), (after, _) in pairwise(course)] or [0.0])
    points: list[tuple[float, float | None]] = []
    for at_s, factor in course:
        if points and at_s - points[-1][0] > BREAK * usual_s:
            points.append((at_s, None))
        points.append((at_s, factor))
    return points


def _groups(verdicts: Sequence[Verdict]) -> list[str]:
    """Returns recommended actions, the most important first."""
    actions = [
        f"{verdict.host} {verdict.disk}: {verdict.next_step}".strip()
        for verdict in verdicts
        if verdict.kind not in (UNDECIDED, FINE)
    ][:DRAWN_MAX]
    undecided = sum(verdict.kind == UNDECIDED for verdict in verdicts)
    if undecided:
        actions.append(
            f"{undecided:,} {'disk is' if undecided == 1 else 'disks are'} undecided; the table states which data are "
            "missing."
        )
    return actions


def _remarks(session: Session) -> str:
    if session.span_s is None:
        return "No new data; these are the stored verdicts."
    begin, end = map(_moment, session.span_s)
    read = f"{session.rows:,} intervals of {', '.join(session.sources)}, from {begin} to {end} UTC."
    return "\n\n".join([read, *(f"{caveat[:1].upper()}{caveat[1:]}." for caveat in session.caveats)])


def _moment(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M")


def _short(value: float) -> str:
    return f"{value:#.3g}".rstrip(".")
