"""Formats an answer for a screen, in full, as the reason why a system was not chosen, and for a ticket."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from headstack._native import InputError
from headstack.choice.answer import Answer, Choice, Part, Verdict
from headstack.choice.words import (
    HOW,
    all_choices,
    amount,
    capacity,
    dollars,
    format_decision,
    format_figure,
    format_interval,
    format_limit,
    format_price,
    format_price_items,
    format_quantity,
    format_verdict,
    headline,
    join_listed,
    remarks,
    select_notes,
    short,
    split_constraint,
)
from headstack.io.columns import Column, Figures, Names, Prose, Words, drawn, folded, not_shown
from headstack.io.counts import counted
from headstack.report.markdown import escaped, table_lines

EXPLAINED = 8
"""Maximum number of systems with the requested words that are explained; the others are counted."""
UNDECIDED = 3
"""Maximum number of table rows for undecided systems that cost less."""
LINES_MAX = 60
"""Maximum number of lines in a ticket."""
PARTS, FRONTIER = 8, 6
"""Maximum number of rows in a ticket's tables."""
PER_SECOND = "/s"
VERDICT = "\nverdict"
NAME, ROOMY = 28, 60
"""Minimum width of a system's name, and the terminal width from which it applies."""
PARETO_FRONT = "Pareto front"
SCREEN_LINES = 24
"""Maximum number of lines in a summary, unless its sentence and notes alone are longer."""
NOTES_MAX = 3
"""Maximum number of notes in a summary."""


def format_summary(answer: Answer, width: int | None = None, bold: bool = False) -> str:
    """Formats an answer for one screen of this width in characters, ``None`` for any: a sentence, one table, and at
    most three notes. The table has as many rows as fit; ``format_full`` prints all.
    """
    rows = len(answer.frontier) or len(ranked(answer))
    for count in range(rows, -1, -1):
        lines = _summary_lines(answer, count, rows - count, width, bold)
        if len(lines) <= SCREEN_LINES or count <= 1:
            break
    return "\n".join(lines)


def _summary_lines(answer: Answer, count: int, hidden: int, width: int | None, bold: bool) -> list[str]:
    """Returns the lines of a summary with ``count`` systems in its table and ``hidden`` left out."""
    lines = _fold(headline(answer), width)
    if answer.frontier:
        columns, rows = frontier_table(answer)
        lines += ["", *_table(columns, rows[:count], width, bold)]
    elif count:
        lines += ["", *_table(*summary_table(answer, _select_rows(answer, count), _name_width(width)), width, bold)]
    notes = select_notes(answer, NOTES_MAX)
    if notes:
        lines.append("")
    for subject, sentence in notes:
        lines += _fold(f"{subject}: {sentence}", width)
    more = [counted(hidden, "more system")] if hidden else []
    if more_notes := len(remarks(answer)) - len(notes):
        more.append(counted(more_notes, "more note"))
    return [*lines, *(_fold(f"{', '.join(more)}: add --verbose", width) if more else [])]


def _select_rows(answer: Answer, count: int) -> list[tuple[str, Choice]]:
    """Returns the first ``count`` rows of the table, the cheapest undecided system among them."""
    rows = ranked(answer)
    undecided = [row for row in rows if row[0] == "?"][: count > 1]
    others = [row for row in rows if row[0] != "?"][: count - len(undecided)]
    return [*others, *[row for row in rows if row[0] == "?"][: count - len(others)]]


def _name_width(width: int | None) -> int:
    """Returns the minimum width of the names of systems."""
    return NAME if width is None or width >= ROOMY else NAME // 2


def format_full(answer: Answer, width: int | None = None, bold: bool = False) -> str:
    """Formats an answer for a terminal of this width in characters, ``None`` for any: a sentence, all tables, and all
    remarks, prices and requirements.
    """
    lines = [*_fold(headline(answer), width), ""]
    if answer.best is not None or answer.nearest is not None:
        lines += [*_table(*answer_table(answer, _name_width(width)), width, bold), ""]
    if answer.frontier:
        lines += [f"{PARETO_FRONT}:", *_table(*frontier_table(answer), width, bold), ""]
    for subject, sentence in remarks(answer):
        lines += _fold(f"{subject}: {sentence}", width)
    shown = answer.best or answer.nearest
    for item in format_price_items(shown) if shown else []:
        lines += _fold(f"price: {item}", width)
    for question in answer.question:
        lines += _fold(f"question: {question}", width)
    return "\n".join(lines)


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None, bold: bool) -> list[str]:
    text, left_out = drawn(columns, rows, width, bold)
    return [*text.split("\n"), *(_fold(not_shown(left_out, "--wide shows them"), width) if left_out else [])]


def _fold(line: str, width: int | None) -> list[str]:
    return [line] if width is None else folded(line, width)


# Tables.


def ranked(answer: Answer) -> list[tuple[str, Choice]]:
    """Returns the rows of the table, each with its rank: the winner is 1, undecided systems have a question mark.

    If no system meets all limits, the nearest comes first, without a rank.
    """
    first = [("1", answer.best)] if answer.best is not None else []
    if answer.best is None and answer.nearest is not None:
        first = [("", answer.nearest)]
    rows = [
        *first,
        *((str(n), choice) for n, choice in enumerate(answer.runners_up, 1 + len(first) if answer.best else 1)),
    ]
    seen = {choice.name for _, choice in rows}
    return rows + [("?", choice) for choice in answer.undecided[:UNDECIDED] if choice.name not in seen]


def answer_table(answer: Answer, least: int = NAME) -> tuple[list[Column], list[list[str]]]:
    """Returns the table of the winner, the runners-up, and undecided systems."""
    rows = ranked(answer)
    return [Names(""), Prose("system", 0, least=least), *_columns(answer, rows)], [
        [place, _two_lines(choice.name), *_cells(answer, rows, choice)] for place, choice in rows
    ]


def summary_table(
    answer: Answer, rows: Sequence[tuple[str, Choice]], least: int = NAME
) -> tuple[list[Column], list[list[str]]]:
    """Returns a table of these systems with one line each. Leaves out the host if all systems have the host that the
    answer names, and leaves out verdicts if all systems meet every limit."""
    has_one_host = len({choice.host for _, choice in rows}) == 1
    columns = [Names(""), Prose("system", 0, least=least), *_columns(answer, rows)]
    cells = []
    for place, choice in rows:
        name = choice.name_without_host if has_one_host else choice.name
        cells.append([place, name, *(_cell(text) for text in _cells(answer, rows, choice))])
    meets_all = all(verdict.says == "meets" for _, choice in rows for verdict in choice.verdicts)
    kept = [n for n, column in enumerate(columns) if column.heading != VERDICT or not meets_all]
    return [columns[n] for n in kept], [[row[n] for n in kept] for row in cells]


def _two_lines(name: str) -> str:
    """Breaks a name before its host, next to the intervals of figures."""
    return name.replace(", ", ",\n", 1)


def _columns(answer: Answer, rows: Sequence[tuple[str, Choice]]) -> list[Column]:
    columns: list[Column] = [Figures("price\n$", 0 if answer.unit == "$" else 1)]
    if not _has_own_column(answer.objective):
        columns.append(Figures(f"{answer.objective}\n{answer.unit}", 0))
    for limit in _limits(rows):
        name, _, condition = split_constraint(limit.limit)
        columns.append(Figures(f"{name}{condition}\nlimit {format_limit(limit)}", 1))
        columns.append(Words(VERDICT, 1))
    if _any_rate(rows):
        columns += [Figures(f"at the limit\n{PER_SECOND}", 3), Figures("headroom\n%", 2)]
    columns.append(Figures("usable", 4))
    if _is_built(rows):
        columns.append(Figures("bays", 0 if answer.objective == "bays" else 5))
        columns.append(Figures("W", 0 if answer.objective == "watts" else 5))
    return [*columns, Prose("bottleneck", 3, least=12)]


def _cells(answer: Answer, rows: Sequence[tuple[str, Choice]], choice: Choice) -> list[str]:
    cells = [dollars(choice.usd).replace("$", "")]
    if not _has_own_column(answer.objective):
        cells.append(short(choice.cost))
    for limit in _limits(rows):
        verdict = next((v for v in choice.verdicts if v.limit == limit.limit), None)
        cells += ["", ""] if verdict is None else [_figure(verdict), format_decision(verdict.says)]
    if _any_rate(rows):
        cells.append("" if choice.rate_at_limit is None else short(choice.rate_at_limit))
        cells.append("" if choice.headroom is None else f"{100 * choice.headroom:,.0f}")
    busy = "" if choice.utilization_percent is None else f", {choice.utilization_percent:.0f} % busy"
    cells.append(capacity(choice.usable_bytes))
    if _is_built(rows):
        cells += [f"{choice.bays:,}", short(choice.watts)]
    return [*cells, f"{choice.bottleneck}{busy}"]


def _has_own_column(objective: str) -> bool:
    return objective in ("usd", "watts", "bays")


def _limits(rows: Sequence[tuple[str, Choice]]) -> list[Verdict]:
    """Returns the distinct limits, in the order in which they were requested."""
    verdicts: dict[str, Verdict] = {}
    for _, choice in rows:
        for verdict in choice.verdicts:
            verdicts.setdefault(verdict.limit, verdict)
    return list(verdicts.values())


def _any_rate(rows: Sequence[tuple[str, Choice]]) -> bool:
    return any(choice.rate_at_limit is not None for _, choice in rows)


def _is_built(rows: Sequence[tuple[str, Choice]]) -> bool:
    """Whether any system has bays and power, which cloud volumes do not have."""
    return any(choice.bays or choice.watts for _, choice in rows)


def _figure(verdict: Verdict) -> str:
    between = format_interval(verdict)
    return format_figure(verdict) + (f"\n{between}" if between else "")


def frontier_table(answer: Answer) -> tuple[list[Column], list[list[str]]]:
    """Returns the table of the Pareto front: systems that no other beats in all objectives."""
    columns: list[Column] = [Prose("system", 0, least=NAME // 2)]
    columns += [Figures(f"{name}\n{unit}", 0) for name, unit in answer.objectives]
    rows = [[choice.name, *(_cost(*pair) for pair in _costs(answer, choice))] for choice in answer.frontier]
    return columns, rows


def _costs(answer: Answer, choice: Choice) -> list[tuple[float, str]]:
    return [(cost, unit) for cost, (_, unit) in zip(choice.costs, answer.objectives, strict=True)]


def _cost(cost: float, unit: str) -> str:
    return dollars(cost).replace("$", "") if unit == "$" else short(cost)


# Explanations.


def explain(answer: Answer, name: str) -> str:
    """Explains why a system was not chosen, or that it was; ``name`` is its name or words of it in any order.

    Raises ``InputError`` with the closest name if no system has these words.
    """
    choices = all_choices(answer)
    matches = [choice for choice in choices if choice.name.lower() == name.strip().lower()]
    wanted = _words(name)
    matches = matches or [choice for choice in choices if wanted and wanted <= _words(choice.name)]
    lines = [_explain_choice(answer, choice) for choice in matches[:EXPLAINED]]
    if len(matches) > EXPLAINED:
        lines.append(f"{len(matches) - EXPLAINED:,} more systems have these words in their names")
    names = {choice.name for choice in choices}
    for reason in answer.left_out:
        unseen = [
            excluded_name
            for excluded_name in reason.names
            if excluded_name not in names and _matches(excluded_name, name, wanted)
        ]
        if not unseen or (matches and any(choice.name.lower() == name.strip().lower() for choice in matches)):
            continue
        lines.append(f"{join_listed(unseen, '; ')}: left out: {reason.why} ({HOW[reason.how]})")
    if lines:
        return "\n".join(lines)
    raise InputError(_unknown(answer, name))


def _matches(name: str, requested: str, wanted: set[str]) -> bool:
    return name.lower() == requested.strip().lower() or bool(wanted and wanted <= _words(name))


def _words(name: str) -> set[str]:
    """Returns the words that distinguish systems: ``8``, ``exos-x18-18tb``, ``raid6``; not the prepositions between
    them.
    """
    return set(re.split(r"[\s,]+", name.lower())) - {"", "x", "in", "with", "of"}


def _unknown(answer: Answer, name: str) -> str:
    names = list(
        dict.fromkeys(
            [*(choice.name for choice in all_choices(answer)), *(n for r in answer.left_out for n in r.names)]
        )
    )
    closest = difflib.get_close_matches(name, names, 1, 0.0)
    message = f"--explain {name}: no candidate has this name"
    message += f"; the closest is {closest[0]!r}" if closest else ""
    unnamed = [r for r in answer.left_out if len(r.names) < r.candidates]
    if unnamed:
        reasons = (f"{r.candidates - len(r.names):,} {r.why}" for r in unnamed)
        message += f"; left out without a name: {join_listed(list(reasons))}"
    return message


def _explain_choice(answer: Answer, choice: Choice) -> str:
    best = answer.best
    parts = [format_price(answer, choice), *map(format_verdict, choice.verdicts)]
    figures = "; ".join(parts)
    if best is not None and choice.name == best.name:
        return f"{choice.name}: chosen: {figures}"
    return "\n".join([f"{choice.name}: not chosen: {'; '.join(_reasons(answer, choice))}", f"  {figures}"])


def _reasons(answer: Answer, choice: Choice) -> Iterator[str]:
    best = answer.best
    for verdict in choice.verdicts:
        limit_name, value, condition = split_constraint(verdict.limit)
        match verdict.says:
            case "meets":
                pass
            case "does not":
                yield f"{limit_name}{condition} of {value} is not met"
            case "undecided":
                yield f"{limit_name}{condition} of {value} is undecided" + (f": {verdict.why}" * bool(verdict.why))
            case _:
                assert_never(verdict.says)
    if best is None:
        return
    more = choice.cost - best.cost
    if choice.name in answer.alike:
        yield "it is indistinguishable from the best" + (f"; to decide: {answer.tell_apart}" * bool(answer.tell_apart))
    if more > 0:
        yield f"it costs {amount(more, answer.unit)} more than {best.name}"
    elif choice.says == "meets":
        yield f"it costs {amount(-more, answer.unit)} less" if more < 0 else f"it costs the same as {best.name}"


# A ticket.


def format_markdown(answer: Answer) -> str:
    """Formats an answer for a ticket with GitHub's tables, in at most ``LINES_MAX`` lines."""
    lines = [f"**{escaped(headline(answer))}**", ""]
    if answer.question:
        lines += [f"Question: {escaped('; '.join(answer.question))}", ""]
    if answer.best is not None or answer.nearest is not None:
        lines += [*_rows_of(*answer_table(answer)), ""]
    if answer.frontier:
        columns, rows = frontier_table(answer)
        lines += [f"{PARETO_FRONT}:", "", *_rows_of(columns, rows[:FRONTIER])]
        lines += [f"and {len(rows) - FRONTIER:,} more"] * (len(rows) > FRONTIER) + [""]
    shown = answer.best or answer.nearest
    tail = ["", *_parts(shown.parts)] if shown is not None and shown.parts else []
    by_subject: dict[str, list[str]] = {}
    for subject, sentence in remarks(answer):
        by_subject.setdefault(subject, []).append(sentence)
    bullets = [f"- **{subject}**: {escaped(join_listed(sentences, '; '))}" for subject, sentences in by_subject.items()]
    room = LINES_MAX - len(lines) - len(tail)
    if len(bullets) > room:
        bullets = [*bullets[: room - 1], f"- and {len(bullets) - room + 1} more of these"]
    return "\n".join([*lines, *bullets, *tail]) + "\n"


def _rows_of(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Formats a table with one line per row."""
    heads = [column.title if column.heading.strip() else "" for column in columns]
    return table_lines(heads, [column.is_text for column in columns], [[_cell(cell) for cell in row] for row in rows])


def _cell(text: str) -> str:
    first, _, second = text.partition("\n")
    return f"{first} {second}" if first.endswith(",") else f"{first} ({second})" if second else first


def _parts(parts: Sequence[Part]) -> list[str]:
    """Returns the lines of the price; the last one is the total of the others."""
    columns = [
        Words("item"),
        Figures("unit price"),
        Figures("quantity"),
        Figures("total $"),
        Words("date"),
        Words("source"),
    ]
    rows = [
        [
            part.item,
            dollars(part.usd) + (f" a {part.unit}" if part.unit else ""),
            format_quantity(part),
            dollars(part.quantity * part.usd).replace("$", ""),
            part.date or "assumed",
            part.source,
        ]
        for part in parts[:PARTS]
    ]
    rest = parts[PARTS:]
    if rest:
        usd = sum(part.quantity * part.usd for part in rest)
        rows.append([f"{len(rest):,} more", "", "", dollars(usd).replace("$", ""), "", ""])
    return _rows_of(columns, rows)
