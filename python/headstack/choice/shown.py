"""Formats an answer: for a terminal of any width, as the reason why a system was not chosen, and for a ticket."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from headstack._native import InputError
from headstack.choice.answer import Answer, Choice, Part, Verdict
from headstack.choice.words import (
    HOW,
    amount,
    asked,
    capacity,
    dollars,
    every,
    figure,
    headline,
    interval,
    limit_of,
    listed,
    price_said,
    prices_said,
    quantity_of,
    remarks,
    short,
    verdict_said,
    verdict_word,
)
from headstack.io.columns import Column, Figures, Names, Prose, Words, drawn, folded, not_shown
from headstack.report.markdown import escaped, table_lines

EXPLAINED = 8
"""Maximum number of systems of one name that are explained; the rest is counted."""
UNDECIDED = 3
"""Maximum number of table rows for undecided systems that cost less."""
LINES_MAX = 60
"""Maximum number of lines in a ticket."""
PARTS, FRONTIER = 8, 6
"""Maximum number of rows in a ticket's tables."""
PER_SECOND = "/s"
NAME, ROOMY = 28, 60
"""Minimum width of a system's name, and the terminal width from which it applies."""
UNBEATEN = "Nothing beats these in all that was asked for:"


def told(answer: Answer, width: int | None = None, bold: bool = False) -> str:
    """Formats an answer for a terminal of this width, ``None`` for any: the answer in a sentence, tables, sentences."""
    lines = [*_folded(headline(answer), width), ""]
    if answer.best is not None or answer.nearest is not None:
        least = NAME if width is None or width >= ROOMY else NAME // 2
        lines += [*_table(*table(answer, least), width, bold), ""]
    if answer.frontier:
        lines += [*_folded(UNBEATEN, width), *_table(*frontier_table(answer), width, bold), ""]
    for what, sentence in remarks(answer):
        lines += _folded(f"{what}: {sentence}", width)
    shown = answer.best or answer.nearest
    for price in prices_said(shown) if shown else []:
        lines += _folded(f"price: {price}", width)
    for question in answer.question:
        lines += _folded(f"asked: {question}", width)
    return "\n".join(lines)


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None, bold: bool) -> list[str]:
    text, left_out = drawn(columns, rows, width, bold)
    return [text, *(_folded(not_shown(left_out, "--wide shows them"), width) if left_out else [])]


def _folded(line: str, width: int | None) -> list[str]:
    return [line] if width is None else folded(line, width)


# Tables.


def ranked(answer: Answer) -> list[tuple[str, Choice]]:
    """Returns the rows of the table, each with its rank: the winner is 1, undecided systems have a question mark.

    If no system meets all limits, the nearest comes first, without a rank.
    """
    first = [("1", answer.best)] if answer.best is not None else []
    if answer.best is None and answer.nearest is not None:
        first = [("", answer.nearest)]
    rows = [*first, *((str(n), one) for n, one in enumerate(answer.runners_up, 1 + len(first) if answer.best else 1))]
    seen = {one.name for _, one in rows}
    return rows + [("?", one) for one in answer.undecided[:UNDECIDED] if one.name not in seen]


def table(answer: Answer, least: int = NAME) -> tuple[list[Column], list[list[str]]]:
    """Returns the table of the winner, the runners-up, and undecided systems."""
    rows = ranked(answer)
    return [Names(""), Prose("system", 0, least=least), *_columns(answer, rows)], [
        [place, _two_lines(one.name), *_cells(answer, rows, one)] for place, one in rows
    ]


def _two_lines(name: str) -> str:
    """Breaks a name before its host, next to the intervals of figures."""
    return name.replace(", ", ",\n", 1)


def _columns(answer: Answer, rows: Sequence[tuple[str, Choice]]) -> list[Column]:
    columns: list[Column] = [Figures("price\n$", 0 if answer.unit == "$" else 1)]
    if not _has_own_column(answer.objective):
        columns.append(Figures(f"{answer.objective}\n{answer.unit}", 0))
    for limit in _limits(rows):
        what, _, condition = asked(limit.limit)
        columns.append(Figures(f"{what}{condition}\nlimit {limit_of(limit)}", 1))
        columns.append(Words("\nverdict", 1))
    if _any_rate(rows):
        columns += [Figures(f"at the limit\n{PER_SECOND}", 3), Figures("headroom\n%", 2)]
    columns.append(Figures("usable", 4))
    if _is_built(rows):
        columns.append(Figures("bays", 0 if answer.objective == "bays" else 5))
        columns.append(Figures("W", 0 if answer.objective == "watts" else 5))
    return [*columns, Prose("bottleneck", 3, least=12)]


def _cells(answer: Answer, rows: Sequence[tuple[str, Choice]], one: Choice) -> list[str]:
    cells = [dollars(one.usd).replace("$", "")]
    if not _has_own_column(answer.objective):
        cells.append(short(one.cost))
    for limit in _limits(rows):
        verdict = next((v for v in one.verdicts if v.limit == limit.limit), None)
        cells += ["", ""] if verdict is None else [_figure(verdict), verdict_word(verdict.says)]
    if _any_rate(rows):
        cells.append("" if one.rate_at_limit is None else short(one.rate_at_limit))
        cells.append("" if one.headroom is None else f"{100 * one.headroom:,.0f}")
    busy = "" if one.busy_percent is None else f", {one.busy_percent:.0f} % busy"
    cells.append(capacity(one.usable_bytes))
    if _is_built(rows):
        cells += [f"{one.bays:,}", short(one.watts)]
    return [*cells, f"{one.bottleneck}{busy}"]


def _has_own_column(objective: str) -> bool:
    return objective in ("usd", "watts", "bays")


def _limits(rows: Sequence[tuple[str, Choice]]) -> list[Verdict]:
    """Returns the distinct limits, in the order in which they were requested."""
    found: dict[str, Verdict] = {}
    for _, one in rows:
        for verdict in one.verdicts:
            found.setdefault(verdict.limit, verdict)
    return list(found.values())


def _any_rate(rows: Sequence[tuple[str, Choice]]) -> bool:
    return any(one.rate_at_limit is not None for _, one in rows)


def _is_built(rows: Sequence[tuple[str, Choice]]) -> bool:
    """Whether any of them has bays and power: cloud volumes do not."""
    return any(one.bays or one.watts for _, one in rows)


def _figure(verdict: Verdict) -> str:
    between = interval(verdict)
    return figure(verdict) + (f"\n{between}" if between else "")


def frontier_table(answer: Answer) -> tuple[list[Column], list[list[str]]]:
    """Returns the systems that no other beats in all objectives, with their figures."""
    columns: list[Column] = [Prose("system", 0, least=NAME // 2)]
    columns += [Figures(f"{name}\n{unit}", 0) for name, unit in answer.objectives]
    rows = [[one.name, *(_cost(*pair) for pair in _costs(answer, one))] for one in answer.frontier]
    return columns, rows


def _costs(answer: Answer, one: Choice) -> list[tuple[float, str]]:
    return [(cost, unit) for cost, (_, unit) in zip(one.costs, answer.objectives, strict=True)]


def _cost(cost: float, unit: str) -> str:
    return dollars(cost).replace("$", "") if unit == "$" else short(cost)


# Explanations.


def explained(answer: Answer, name: str) -> str:
    """Explains why a system was not chosen, or that it was; ``name`` is its name or words of it in any order.

    Raises ``InputError`` with the closest name if no system has these words.
    """
    known = every(answer)
    found = [one for one in known if one.name.lower() == name.strip().lower()]
    wanted = _words(name)
    found = found or [one for one in known if wanted and wanted <= _words(one.name)]
    lines = [_explained(answer, one) for one in found[:EXPLAINED]]
    if len(found) > EXPLAINED:
        lines.append(f"{len(found) - EXPLAINED:,} more have these words in their names")
    named = {one.name for one in known}
    for reason in answer.left_out:
        unseen = [other for other in reason.names if other not in named and _matches(other, name, wanted)]
        if not unseen or (found and any(one.name.lower() == name.strip().lower() for one in found)):
            continue
        lines.append(f"{listed(unseen, '; ')}: left out: {reason.why} ({HOW[reason.how]})")
    if lines:
        return "\n".join(lines)
    raise InputError(_unknown(answer, name))


def _matches(name: str, asked_for: str, wanted: set[str]) -> bool:
    return name.lower() == asked_for.strip().lower() or bool(wanted and wanted <= _words(name))


def _words(name: str) -> set[str]:
    """Returns the words that distinguish systems: ``8``, ``exos-x18-18tb``, ``raid6``; not the prepositions between
    them.
    """
    return set(re.split(r"[\s,]+", name.lower())) - {"", "x", "in", "with", "of"}


def _unknown(answer: Answer, name: str) -> str:
    names = list(dict.fromkeys([*(one.name for one in every(answer)), *(n for r in answer.left_out for n in r.names)]))
    closest = difflib.get_close_matches(name, names, 1, 0.0)
    said = f"--explain {name}: no candidate has this name"
    said += f"; the closest is {closest[0]!r}" if closest else ""
    unnamed = [r for r in answer.left_out if len(r.names) < r.candidates]
    if unnamed:
        reasons = (f"{r.candidates - len(r.names):,} {r.why}" for r in unnamed)
        said += f"; left out, and not named: {listed(list(reasons))}"
    return said


def _explained(answer: Answer, one: Choice) -> str:
    best = answer.best
    said = [price_said(answer, one), *map(verdict_said, one.verdicts)]
    figures = "; ".join(said)
    if best is not None and one.name == best.name:
        return f"{one.name}: chosen: {figures}"
    return "\n".join([f"{one.name}: not chosen: {'; '.join(_reasons(answer, one))}", f"  {figures}"])


def _reasons(answer: Answer, one: Choice) -> Iterator[str]:
    best = answer.best
    for verdict in one.verdicts:
        what, value, condition = asked(verdict.limit)
        match verdict.says:
            case "meets":
                pass
            case "does not":
                yield f"{what}{condition} of {value} is not met"
            case "cannot tell":
                yield f"whether {what}{condition} of {value} is met cannot be told" + (
                    f": {verdict.why}" * bool(verdict.why)
                )
            case _:
                assert_never(verdict.says)
    if best is None:
        return
    more = one.cost - best.cost
    if one.name in answer.alike:
        yield "it cannot be told apart from the best" + (
            f"; what would tell: {answer.tell_apart}" * bool(answer.tell_apart)
        )
    if more > 0:
        yield f"it takes {amount(more, answer.unit)} more than {best.name}"
    elif one.says == "meets":
        yield f"it takes {amount(-more, answer.unit)} less" if more < 0 else f"it takes as much as {best.name}"


# A ticket.


def markdown(answer: Answer) -> str:
    """Formats an answer for a ticket with GitHub's tables, in at most ``LINES_MAX`` lines."""
    lines = [f"**{escaped(headline(answer))}**", ""]
    if answer.question:
        lines += [f"Asked: {escaped('; '.join(answer.question))}", ""]
    if answer.best is not None or answer.nearest is not None:
        lines += [*_rows_of(*table(answer)), ""]
    if answer.frontier:
        columns, rows = frontier_table(answer)
        lines += [UNBEATEN, "", *_rows_of(columns, rows[:FRONTIER])]
        lines += [f"and {len(rows) - FRONTIER:,} more"] * (len(rows) > FRONTIER) + [""]
    shown = answer.best or answer.nearest
    tail = ["", *_parts(shown.parts)] if shown is not None and shown.parts else []
    said: dict[str, list[str]] = {}
    for what, sentence in remarks(answer):
        said.setdefault(what, []).append(sentence)
    bullets = [f"- **{what}**: {escaped(listed(sentences, '; '))}" for what, sentences in said.items()]
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
    columns = [Words("price of"), Figures("of one"), Figures("times"), Figures("$"), Words("date"), Words("source")]
    rows = [
        [
            part.item,
            dollars(part.usd) + (f" a {part.unit}" if part.unit else ""),
            quantity_of(part),
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
