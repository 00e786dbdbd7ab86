"""The report of a choice: the cost of all simulated systems over the deciding limit, and the items of prices."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import assert_never

from headstack._native import InputError, version
from headstack.choice.answer import Answer, Choice, Part, Says, Verdict
from headstack.choice.shown import UNBEATEN, ranked
from headstack.choice.words import (
    asked,
    decimals_of,
    dollars,
    every,
    figure,
    headline,
    interval,
    limit_of,
    remarks,
    verdict_word,
)
from headstack.report.figures import Asked, Axis, Bars, Cell, Figure, Limit, Lines, Mark, Report, Section, Series, Table
from headstack.report.looks import COLOURS
from headstack.results.words import number as digits

FIRST = 3
"""Number of table columns that are always shown: the role of a row, its name, and its host or price."""
OTHERS, OTHER_PARTS = "others", "other parts"
KEY: tuple[tuple[Mark, str], ...] = (
    ("full", "meets every limit"),
    ("open", "cannot tell"),
    ("cross", "fails a limit"),
)
WORDS: dict[Mark, str] = {"full": "meet every limit", "open": "cannot be told", "cross": "fail a limit"}
AXES = {"usd": "Price ($)", "watts": "Power of drives (W)", "bays": "Bays"}


def mark_of(says: Says) -> Mark:
    """Returns the mark of a system among the points of a figure."""
    match says:
        case "meets":
            return "full"
        case "cannot tell":
            return "open"
        case "does not":
            return "cross"
    assert_never(says)


def figures(answer: Answer) -> list[Lines | Bars]:
    """Returns the figures of an answer: ``cost``, a ``frontier`` for each objective after the first, and ``parts``."""
    drawn: list[Lines | Bars] = []
    cost = cost_figure(answer)
    if cost is not None:
        drawn.append(cost)
    drawn += [frontier_figure(answer, number) for number in range(1, len(answer.objectives)) if answer.frontier]
    parts = parts_figure(answer)
    return [*drawn, *([parts] if parts is not None else [])]


def plot(answer: Answer, path: str | os.PathLike[str], which: str | None = None) -> None:
    """Writes the picture of a figure, by default the first of ``figures``, in the format of the suffix.

    Raises ``InputError`` if the answer has no such figure.
    """
    from headstack.report.draw import draw  # start-up time

    known = {one.name: one for one in figures(answer)}
    name = which or next(iter(known), "")
    if not known:
        raise InputError("nothing was simulated, so that there is nothing to draw", key="plot")
    if name not in known:
        raise InputError(f"{name}: the answer has none; allowed: {', '.join(known)}", key="plot")
    draw(known[name], path)


def report_of(answer: Answer) -> Report:
    """Returns the complete answer as a report."""
    drawn = figures(answer)
    first: list[Figure] = [one for one in drawn if one.name != "parts"]
    prices: list[Figure] = [one for one in drawn if one.name == "parts"]
    rows = ranked(answer)
    if rows:
        first.append(_table("systems", "Winner and runners-up", rows, is_short=True))
    shown = answer.best or answer.nearest
    if shown is not None and shown.parts:
        prices.append(_price(shown))
    sections = [Section("Answer", "", first)] if first else []
    sections.append(Section("What is known, and what would change it", _text(answer)))
    if prices:
        sections.append(Section("Price", "", prices))
    others = every(answer)
    if others:
        places = {one.name: place for place, one in rows}
        table = _table("looked-at", "All that were simulated", [(places.get(one.name, ""), one) for one in others])
        sections.append(Section("Simulated", "", [table]))
    title = f"Choice: {shown.name}" if shown is not None else "Choice"
    return Report(
        title,
        "; ".join(answer.question),
        headline(answer),
        sections,
        version=version(),
        asked=partial(_inputs_of, answer),
    )


def _inputs_of(answer: Answer) -> list[Asked]:
    return [one.asked for _, one in ranked(answer) if one.asked is not None]


def _text(answer: Answer) -> str:
    return "\n\n".join(f"{what[:1].upper()}{what[1:]}: {sentence}." for what, sentence in remarks(answer))


# Cost over the deciding limit.


def deciding(answer: Answer) -> Verdict | None:
    """Returns the deciding limit: one whose relaxation changes the answer, else the one that most cheaper systems miss,
    else the one that the best system meets most narrowly."""
    shown = answer.best or answer.nearest
    limits = [one for one in (shown.verdicts if shown else ()) if one.value is not None]
    if not limits:
        limits = [verdict for one in answer.looked_at for verdict in one.verdicts if verdict.value is not None][:1]
    binding = {one.constraint for one in answer.relaxed if one.is_binding}
    cheaper = [one for one in answer.looked_at if answer.best is None or one.cost < answer.best.cost]
    failed = Counter(verdict.limit for one in cheaper for verdict in one.verdicts if verdict.says != "meets")

    def rank(verdict: Verdict) -> tuple[bool, int, float]:
        slack = abs((verdict.value or 0.0) / verdict.limit_value - 1)
        return verdict.limit not in binding, -failed[verdict.limit], slack

    return min(limits, key=rank, default=None)


def cost_figure(answer: Answer) -> Lines | None:
    """Returns the objective of all simulated systems over the figure of the deciding limit; ``None`` without any."""
    limit = deciding(answer)
    if limit is None:
        return None
    what, _, condition = asked(limit.limit)
    # A response time that is the objective is already on the other axis.
    is_cost = answer.objective == what or answer.unit == limit.unit
    points = [(one, _held(one, limit.limit)) for one in every(answer)]
    known = [(one, verdict) for one, verdict in points if verdict is not None and verdict.value is not None]
    missing = sum(verdict is not None and verdict.value is None for _, verdict in points)
    places = {one.name: place for place, one in ranked(answer) if place}
    groups = _groups([one for one, _ in known], list(places))
    series = []
    for group in dict.fromkeys(groups.values()):
        some = [(one, verdict) for one, verdict in known if groups[one.name] == group]
        series.append(
            Series(
                group,
                [one.usd if is_cost else one.cost for one, _ in some],
                [verdict.value for _, verdict in some],
                labels=[places.get(one.name, "").replace("?", "") for one, _ in some],
                low=[verdict.low if one.name in places else None for one, verdict in some],
                high=[verdict.high if one.name in places else None for one, verdict in some],
                marks=[mark_of(one.says) for one, _ in some],
                names=[one.name for one, _ in some],
            )
        )
    x = Axis(_label("usd", "$") if is_cost else _label(answer.objective, answer.unit))
    y = Axis(f"{what}{condition} ({limit.unit})")
    shown = {mark for one in series for mark in one.marks}
    said = "Numbers are places in the table; bars are where the long run lies (95 %, the sampling error alone)."
    if missing:
        said += f" Not drawn: {missing:,} whose requests pile up without end."
    return Lines(
        "cost",
        f"{what}{condition} of all that were simulated",
        x,
        y,
        series,
        f"{said} {_dates(answer)}".strip(),
        limits=[Limit(limit.limit_value, f"limit {limit_of(limit)}")],
        key=[(mark, says) for mark, says in KEY if mark in shown],
        says=_of_marks(series),
    )


def _of_marks(series: Sequence[Series]) -> str:
    """States how many of the points meet every limit."""
    counts = Counter(mark for one in series for mark in one.marks)
    said = [f"{counts[mark]:,} {words}" for mark, words in WORDS.items() if counts[mark]]
    return f"Of {sum(counts.values()):,} systems {', '.join(said)}."


def _held(one: Choice, limit: str) -> Verdict | None:
    return next((verdict for verdict in one.verdicts if verdict.limit == limit), None)


def _groups(drawn: Sequence[Choice], ranking: Sequence[str]) -> dict[str, str]:
    """Returns the drive and level that select each point's colour; those of the table first, and the rest as one."""
    kinds = {one.name: f"{one.drive} {one.level}".strip() for one in drawn}
    counts = Counter(kinds.values())
    first = list(dict.fromkeys(kinds[name] for name in ranking if name in kinds))
    order = first + sorted(set(counts) - set(first), key=lambda kind: (-counts[kind], kind))
    kept = order if len(order) <= len(COLOURS) else order[: len(COLOURS) - 1]
    named = {name: kind if kind in kept else OTHERS for name, kind in kinds.items()}
    return dict(sorted(named.items(), key=lambda pair: [*kept, OTHERS].index(pair[1])))


def _label(objective: str, unit: str) -> str:
    return AXES.get(objective, f"{objective} ({unit})")


def _dates(answer: Answer) -> str:
    """States the range of dates of the drawn systems' prices."""
    dates = sorted({part.date for one in every(answer) for part in one.parts if part.date})
    return f"Prices of {dates[0]}{f' to {dates[-1]}' if len(dates) > 1 else ''}." if dates else ""


# Several objectives.


def frontier_figure(answer: Answer, number: int) -> Lines:
    """Returns the frontier over the first objective and another one, among all systems with both figures."""
    pairs = [one for one in every(answer) if len(one.costs) == len(answer.objectives)]
    names = {one.name for one in answer.frontier}
    on = sorted((one for one in pairs if one.name in names), key=lambda one: (one.costs[0], one.costs[number]))
    off = [one for one in pairs if one.name not in names]
    places = {one.name: place for place, one in ranked(answer) if place}
    series = [
        Series(
            "nothing beats these",
            [one.costs[0] for one in on],
            [one.costs[number] for one in on],
            labels=[_system(one) for one in on],
            marks=[mark_of(one.says) for one in on],
            names=[one.name for one in on],
        )
    ]
    if off:
        series.append(
            Series(
                OTHERS,
                [one.costs[0] for one in off],
                [one.costs[number] for one in off],
                labels=[places.get(one.name, "").replace("?", "") for one in off],
                marks=[mark_of(one.says) for one in off],
                names=[one.name for one in off],
            )
        )
    shown = {mark for one in series for mark in one.marks}
    x, y = (Axis(_label(*answer.objectives[n])) for n in (0, number))
    name = "frontier" if number == 1 else f"frontier-{number}"
    key = [(mark, says) for mark, says in KEY if mark in shown]
    ends = [f"{digits(one.costs[0])} with {digits(one.costs[number])}" for one in (on[0], on[-1])]
    says = f"{x.label} with {y.label}: from {ends[0]} to {ends[1]}, {len(on)} of {len(pairs)} systems." if on else ""
    return Lines(name, UNBEATEN.removesuffix(":"), x, y, series, _dates(answer), key=key, says=says)


# Prices.


def parts_figure(answer: Answer) -> Bars | None:
    """Returns the items of the prices of the winner and of the runners-up; ``None`` if no price has items."""
    rows = [(place, one) for place, one in ranked(answer) if one.parts]
    if not rows:
        return None
    sums = [_sums(one) for _, one in rows]
    all_kinds = dict.fromkeys(kind for one in sums for kind in one)
    kinds = sorted(all_kinds, key=lambda kind: -sum(one.get(kind, 0.0) for one in sums))
    kept = kinds if len(kinds) <= len(COLOURS) else kinds[: len(COLOURS) - 1]
    series = [Series(kind, (), [one.get(kind) for one in sums]) for kind in kept]
    if len(kept) < len(kinds):
        series.append(Series(OTHER_PARTS, (), [sum(one[k] for k in one if k not in kept) or None for one in sums]))
    groups = [f"{place}: {_system(one).replace(' in ', ' ')}".removeprefix(": ") for place, one in rows]
    axis = Axis(_label("usd", "$"))
    whole = sum(sums[0].values())
    part = max(sums[0], key=sums[0].__getitem__)
    says = f"Of {dollars(whole)} for the first, {dollars(sums[0][part])} are for {part}."
    return Bars("parts", "What the price is made of", axis, groups, series, _dates(answer), stacked=True, says=says)


def _sums(one: Choice) -> dict[str, float]:
    """Returns dollars by kind of item, with one name for the drives of all models."""
    found: dict[str, float] = {}
    for part in one.parts:
        kind = _kind(one, part)
        found[kind] = found.get(kind, 0.0) + part.quantity * part.usd
    return found


def _kind(one: Choice, part: Part) -> str:
    if part.item == one.host:
        return "host"
    return part.item.removeprefix(_system(one)).removeprefix(one.drive).lstrip(" ,:") or "drives"


# Tables.


def _system(one: Choice) -> str:
    """Returns its name without its host."""
    return one.name.replace(f", {one.host}", "", 1)


def _table(name: str, title: str, rows: Sequence[tuple[str, Choice]], is_short: bool = False) -> Table:
    """Returns a table of systems with their figures; in a short one the limits are text with intervals, otherwise
    numbers.
    """
    limits = {verdict.limit: verdict for _, one in reversed(rows) for verdict in reversed(one.verdicts)}
    limits = dict(reversed(limits.items()))
    hosts = {one.host for _, one in rows}
    columns = ["system", "place", *(["host"] if len(hosts) > 1 else []), "price $"]
    for verdict in limits.values():
        what, _, condition = asked(verdict.limit)
        columns += [
            f"{what}{condition} {verdict.unit}",
            *([] if is_short else ["from", "to"]),
            f"limit {limit_of(verdict)}",
        ]
    columns += ["at the limit /s", "headroom %", "usable TB", "bays", "W", "bottleneck"]
    cells: list[list[Cell]] = []
    for place, one in rows:
        row: list[Cell] = [_system(one), place, *([one.host] if len(hosts) > 1 else []), round(one.usd)]
        for limit in limits:
            held = _held(one, limit)
            row += _verdict_cells(held) if is_short else _figures(held)
        rates: list[Cell] = [
            None if one.rate_at_limit is None else round(one.rate_at_limit),
            None if one.headroom is None else round(100 * one.headroom),
        ]
        size: list[Cell] = [round(one.usable_bytes / 1e12, 1), one.bays, round(one.watts, 1)]
        cells.append([*row, *rates, *size, one.bottleneck])
    # Volumes have no bays, closed loops no rate: leave out columns without values.
    kept = [n for n in range(len(columns)) if n < FIRST or any(row[n] not in (None, 0, "") for row in cells)]
    return Table(name, title, [columns[n] for n in kept], [[row[n] for n in kept] for row in cells])


def _verdict_cells(verdict: Verdict | None) -> list[Cell]:
    if verdict is None:
        return [None, None]
    between = interval(verdict)
    return [figure(verdict) + (f" ({between})" if between else ""), verdict_word(verdict.says)]


def _figures(verdict: Verdict | None) -> list[Cell]:
    if verdict is None:
        return [None, None, None, None]
    decimals = decimals_of(verdict)
    ends = (verdict.value, verdict.low, verdict.high)
    return [*(None if end is None else round(end, decimals) for end in ends), verdict_word(verdict.says)]


def _price(one: Choice) -> Table:
    columns = ["of what", "of one $", "times", "unit", "in all $", "date", "source"]
    rows: list[list[Cell]] = [
        [
            part.item,
            part.usd,
            part.quantity,
            part.unit,
            round(part.quantity * part.usd, 2),
            part.date or "assumed",
            part.source,
        ]
        for part in one.parts
    ]
    return Table("price", f"Price of {one.name}", columns, rows)
