"""The report of a choice: the cost of all simulated systems over the decisive limit, and the items of prices."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import assert_never

from headstack._native import InputError, version
from headstack.choice.answer import Answer, Choice, Decision, Part, Verdict
from headstack.choice.render import PARETO_FRONT, ranked
from headstack.choice.words import (
    all_choices,
    decimals_of,
    dollars,
    format_decision,
    format_figure,
    format_interval,
    format_limit,
    headline,
    remarks,
    split_constraint,
)
from headstack.io.counts import counted
from headstack.report.figures import (
    Axis,
    Bars,
    Cell,
    Figure,
    Limit,
    Lines,
    Mark,
    Report,
    RunInputs,
    Section,
    Series,
    Table,
)
from headstack.report.looks import COLOURS
from headstack.results.words import number as digits

FIRST = 3
"""Number of table columns that are always shown: the role of a row, its name, and its host or price."""
OTHERS, OTHER_PARTS = "others", "other parts"
KEY: tuple[tuple[Mark, str], ...] = (
    ("full", "meets every limit"),
    ("open", "undecided"),
    ("cross", "fails a limit"),
)
WORDS: dict[Mark, str] = {"full": "meet every limit", "open": "are undecided", "cross": "fail a limit"}
AXES = {"usd": "Price ($)", "watts": "Power of drives (W)", "bays": "Bays"}


def mark_of(says: Decision) -> Mark:
    """Returns the mark of a system among the points of a figure."""
    match says:
        case "meets":
            return "full"
        case "undecided":
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

    by_name = {chart.name: chart for chart in figures(answer)}
    name = which or next(iter(by_name), "")
    if not by_name:
        raise InputError("nothing was simulated, so there is nothing to draw", key="plot")
    if name not in by_name:
        raise InputError(f"{name}: the answer has no such figure; allowed: {', '.join(by_name)}", key="plot")
    draw(by_name[name], path)


def report_of(answer: Answer) -> Report:
    """Returns the complete answer as a report."""
    drawn = figures(answer)
    first: list[Figure] = [chart for chart in drawn if chart.name != "parts"]
    prices: list[Figure] = [chart for chart in drawn if chart.name == "parts"]
    rows = ranked(answer)
    if rows:
        first.append(_table("systems", "Winner and runners-up", rows, is_short=True))
    shown = answer.best or answer.nearest
    if shown is not None and shown.parts:
        prices.append(_price(shown))
    sections = [Section("Answer", "", first)] if first else []
    sections.append(Section("Confidence and sensitivity", _text(answer)))
    if prices:
        sections.append(Section("Price", "", prices))
    others = all_choices(answer)
    if others:
        places = {choice.name: place for place, choice in rows}
        table = _table(
            "looked-at", "All simulated systems", [(places.get(choice.name, ""), choice) for choice in others]
        )
        sections.append(Section("Simulated", "", [table]))
    title = f"Choice: {shown.name}" if shown is not None else "Choice"
    return Report(
        title,
        "; ".join(answer.question),
        headline(answer),
        sections,
        version=version(),
        inputs=partial(_inputs_of, answer),
    )


def _inputs_of(answer: Answer) -> list[RunInputs]:
    return [choice.inputs for _, choice in ranked(answer) if choice.inputs is not None]


def _text(answer: Answer) -> str:
    return "\n\n".join(f"{subject[:1].upper()}{subject[1:]}: {sentence}." for subject, sentence in remarks(answer))


# Cost over the deciding limit.


def deciding(answer: Answer) -> Verdict | None:
    """Returns the deciding limit: a limit whose relaxation changes the answer, otherwise the limit that most cheaper
    systems miss, otherwise the limit that the best system meets most narrowly."""
    shown = answer.best or answer.nearest
    limits = [verdict for verdict in (shown.verdicts if shown else ()) if verdict.value is not None]
    if not limits:
        limits = [verdict for choice in answer.looked_at for verdict in choice.verdicts if verdict.value is not None][
            :1
        ]
    binding = {relaxed.constraint for relaxed in answer.relaxed if relaxed.is_binding}
    cheaper = [choice for choice in answer.looked_at if answer.best is None or choice.cost < answer.best.cost]
    failed = Counter(verdict.limit for choice in cheaper for verdict in choice.verdicts if verdict.says != "meets")

    def rank(verdict: Verdict) -> tuple[bool, int, float]:
        slack = abs((verdict.value or 0.0) / verdict.limit_value - 1)
        return verdict.limit not in binding, -failed[verdict.limit], slack

    return min(limits, key=rank, default=None)


def cost_figure(answer: Answer) -> Lines | None:
    """Returns the objective of all simulated systems over the figure of the deciding limit; ``None`` without any."""
    limit = deciding(answer)
    if limit is None:
        return None
    limit_name, _, condition = split_constraint(limit.limit)
    # A response time that is the objective is already on the other axis.
    is_cost = answer.objective == limit_name or answer.unit == limit.unit
    points = [(choice, _verdict_on(choice, limit.limit)) for choice in all_choices(answer)]
    located = [(choice, verdict) for choice, verdict in points if verdict is not None and verdict.value is not None]
    missing = sum(verdict is not None and verdict.value is None for _, verdict in points)
    places = {choice.name: place for place, choice in ranked(answer) if place}
    groups = _groups([choice for choice, _ in located], list(places))
    series = []
    for group in dict.fromkeys(groups.values()):
        some = [(choice, verdict) for choice, verdict in located if groups[choice.name] == group]
        series.append(
            Series(
                group,
                [choice.usd if is_cost else choice.cost for choice, _ in some],
                [verdict.value for _, verdict in some],
                labels=[places.get(choice.name, "").replace("?", "") for choice, _ in some],
                low=[verdict.low if choice.name in places else None for choice, verdict in some],
                high=[verdict.high if choice.name in places else None for choice, verdict in some],
                marks=[mark_of(choice.says) for choice, _ in some],
                names=[choice.name for choice, _ in some],
            )
        )
    x = Axis(_label("usd", "$") if is_cost else _label(answer.objective, answer.unit))
    y = Axis(f"{limit_name}{condition} ({limit.unit})")
    shown = {mark for line in series for mark in line.marks}
    note = "Numbers are ranks in the table; bars are 95 % confidence intervals of the simulation."
    if missing:
        note += f" Not drawn: {counted(missing, 'system')} whose queues grow without bound."
    return Lines(
        "cost",
        f"{limit_name}{condition} of all simulated systems",
        x,
        y,
        series,
        f"{note} {_dates(answer)}".strip(),
        limits=[Limit(limit.limit_value, f"limit {format_limit(limit)}")],
        key=[(mark, says) for mark, says in KEY if mark in shown],
        says=_count_marks(series),
    )


def _count_marks(series: Sequence[Series]) -> str:
    """Returns a sentence with the number of points that meet every limit."""
    counts = Counter(mark for line in series for mark in line.marks)
    parts = [f"{counts[mark]:,} {words}" for mark, words in WORDS.items() if counts[mark]]
    return f"{sum(counts.values()):,} systems: {', '.join(parts)}."


def _verdict_on(choice: Choice, limit: str) -> Verdict | None:
    return next((verdict for verdict in choice.verdicts if verdict.limit == limit), None)


def _groups(drawn: Sequence[Choice], ranking: Sequence[str]) -> dict[str, str]:
    """Returns the drive and level that select each point's colour; those of the table first, and the rest as one."""
    kinds = {choice.name: f"{choice.drive} {choice.level}".strip() for choice in drawn}
    counts = Counter(kinds.values())
    first = list(dict.fromkeys(kinds[name] for name in ranking if name in kinds))
    order = first + sorted(set(counts) - set(first), key=lambda kind: (-counts[kind], kind))
    kept = order if len(order) <= len(COLOURS) else order[: len(COLOURS) - 1]
    named = {name: kind if kind in kept else OTHERS for name, kind in kinds.items()}
    return dict(sorted(named.items(), key=lambda pair: [*kept, OTHERS].index(pair[1])))


def _label(objective: str, unit: str) -> str:
    return AXES.get(objective, f"{objective} ({unit})")


def _dates(answer: Answer) -> str:
    """Returns a sentence with the range of dates of the prices of the drawn systems."""
    dates = sorted({part.date for choice in all_choices(answer) for part in choice.parts if part.date})
    return f"Prices of {dates[0]}{f' to {dates[-1]}' if len(dates) > 1 else ''}." if dates else ""


# Several objectives.


def frontier_figure(answer: Answer, number: int) -> Lines:
    """Returns the frontier over the first objective and another one, among all systems with both figures."""
    pairs = [choice for choice in all_choices(answer) if len(choice.costs) == len(answer.objectives)]
    names = {choice.name for choice in answer.frontier}
    optimal = sorted(
        (choice for choice in pairs if choice.name in names), key=lambda choice: (choice.costs[0], choice.costs[number])
    )
    dominated = [choice for choice in pairs if choice.name not in names]
    places = {choice.name: place for place, choice in ranked(answer) if place}
    series = [
        Series(
            "Pareto-optimal",
            [choice.costs[0] for choice in optimal],
            [choice.costs[number] for choice in optimal],
            labels=[choice.name_without_host for choice in optimal],
            marks=[mark_of(choice.says) for choice in optimal],
            names=[choice.name for choice in optimal],
        )
    ]
    if dominated:
        series.append(
            Series(
                OTHERS,
                [choice.costs[0] for choice in dominated],
                [choice.costs[number] for choice in dominated],
                labels=[places.get(choice.name, "").replace("?", "") for choice in dominated],
                marks=[mark_of(choice.says) for choice in dominated],
                names=[choice.name for choice in dominated],
            )
        )
    shown = {mark for line in series for mark in line.marks}
    x, y = (Axis(_label(*answer.objectives[n])) for n in (0, number))
    name = "frontier" if number == 1 else f"frontier-{number}"
    key = [(mark, says) for mark, says in KEY if mark in shown]
    ends = [f"{digits(choice.costs[0])} with {digits(choice.costs[number])}" for choice in (optimal[0], optimal[-1])]
    says = (
        f"{x.label} with {y.label}: from {ends[0]} to {ends[1]}, {len(optimal)} of {len(pairs)} systems."
        if optimal
        else ""
    )
    return Lines(name, PARETO_FRONT, x, y, series, _dates(answer), key=key, says=says)


# Prices.


def parts_figure(answer: Answer) -> Bars | None:
    """Returns the items of the prices of the winner and of the runners-up; ``None`` if no price has items."""
    rows = [(place, choice) for place, choice in ranked(answer) if choice.parts]
    if not rows:
        return None
    sums = [_sums(choice) for _, choice in rows]
    all_kinds = dict.fromkeys(kind for amounts in sums for kind in amounts)
    kinds = sorted(all_kinds, key=lambda kind: -sum(amounts.get(kind, 0.0) for amounts in sums))
    kept = kinds if len(kinds) <= len(COLOURS) else kinds[: len(COLOURS) - 1]
    series = [Series(kind, (), [amounts.get(kind) for amounts in sums]) for kind in kept]
    if len(kept) < len(kinds):
        series.append(
            Series(OTHER_PARTS, (), [sum(amounts[k] for k in amounts if k not in kept) or None for amounts in sums])
        )
    groups = [f"{place}: {choice.name_without_host.replace(' in ', ' ')}".removeprefix(": ") for place, choice in rows]
    axis = Axis(_label("usd", "$"))
    whole = sum(sums[0].values())
    part = max(sums[0], key=sums[0].__getitem__)
    says = f"The first costs {dollars(whole)}; {part} are {dollars(sums[0][part])} of it."
    return Bars("parts", "Price by item", axis, groups, series, _dates(answer), stacked=True, says=says)


def _sums(choice: Choice) -> dict[str, float]:
    """Returns dollars by kind of item, with one name for the drives of all models."""
    usd_by_kind: dict[str, float] = {}
    for part in choice.parts:
        kind = _kind(choice, part)
        usd_by_kind[kind] = usd_by_kind.get(kind, 0.0) + part.quantity * part.usd
    return usd_by_kind


def _kind(choice: Choice, part: Part) -> str:
    if part.item == choice.host:
        return "host"
    return part.item.removeprefix(choice.name_without_host).removeprefix(choice.drive).lstrip(" ,:") or "drives"


# Tables.


def _table(name: str, title: str, rows: Sequence[tuple[str, Choice]], is_short: bool = False) -> Table:
    """Returns a table of systems with their figures; in a short one the limits are text with intervals, otherwise
    numbers.
    """
    limits = {verdict.limit: verdict for _, choice in reversed(rows) for verdict in reversed(choice.verdicts)}
    limits = dict(reversed(limits.items()))
    hosts = {choice.host for _, choice in rows}
    columns = ["system", "place", *(["host"] if len(hosts) > 1 else []), "price $"]
    for verdict in limits.values():
        limit_name, _, condition = split_constraint(verdict.limit)
        columns += [
            f"{limit_name}{condition} {verdict.unit}",
            *([] if is_short else ["from", "to"]),
            f"limit {format_limit(verdict)}",
        ]
    columns += ["at the limit /s", "headroom %", "usable TB", "bays", "W", "bottleneck"]
    cells: list[list[Cell]] = []
    for place, choice in rows:
        row: list[Cell] = [
            choice.name_without_host,
            place,
            *([choice.host] if len(hosts) > 1 else []),
            round(choice.usd),
        ]
        for limit in limits:
            verdict_on_limit = _verdict_on(choice, limit)
            row += _verdict_cells(verdict_on_limit) if is_short else _figures(verdict_on_limit)
        rates: list[Cell] = [
            None if choice.rate_at_limit is None else round(choice.rate_at_limit),
            None if choice.headroom is None else round(100 * choice.headroom),
        ]
        size: list[Cell] = [round(choice.usable_bytes / 1e12, 1), choice.bays, round(choice.watts, 1)]
        cells.append([*row, *rates, *size, choice.bottleneck])
    # Volumes have no bays, closed loops no rate: leave out columns without values.
    kept = [n for n in range(len(columns)) if n < FIRST or any(row[n] not in (None, 0, "") for row in cells)]
    return Table(name, title, [columns[n] for n in kept], [[row[n] for n in kept] for row in cells])


def _verdict_cells(verdict: Verdict | None) -> list[Cell]:
    if verdict is None:
        return [None, None]
    between = format_interval(verdict)
    return [format_figure(verdict) + (f" ({between})" if between else ""), format_decision(verdict.says)]


def _figures(verdict: Verdict | None) -> list[Cell]:
    if verdict is None:
        return [None, None, None, None]
    decimals = decimals_of(verdict)
    ends = (verdict.value, verdict.low, verdict.high)
    return [*(None if end is None else round(end, decimals) for end in ends), format_decision(verdict.says)]


def _price(choice: Choice) -> Table:
    columns = ["item", "unit price $", "quantity", "unit", "total $", "date", "source"]
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
        for part in choice.parts
    ]
    return Table("price", f"Price of {choice.name}", columns, rows)
