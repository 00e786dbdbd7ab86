"""Formats the figures and sentences of an answer for terminal, ticket and page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from headstack.choice.answer import Answer, Choice, Decision, Durability, Part, Relaxed, Verdict, is_decided
from headstack.results.intervals import conformal

MOST_DECIMALS = 9
FEW = 3
"""Digits of a figure whose interval is unknown."""
HOW = {
    "stated": "by stated properties",
    "bound": "by the throughput bound of their drives",
    "monotone": "more of the same drives failed",
    "simulated": "by their own simulation",
    "dearer": "not simulated",
}
TIMES = 1
"""Minimum headroom that is expressed as a factor instead of in percent."""
LISTED = 6
"""Maximum number of items listed in a sentence; the others are counted."""

WITHOUT = "without"
"""Value that means that a constraint is dropped."""

NOTE_PRIORITY = (
    *("undecided", "breaks first", "carries", "binding", "not enough"),
    *("warning", "another wins", "next upgrade", "bottleneck", "left out"),
)
"""Subjects of the remarks that a summary takes, the most important first."""

Remark = tuple[str, str]
"""A remark: a subject, and a sentence about it."""


# Figures.


def decimals_of(verdict: Verdict) -> int:
    """Returns the number of significant decimals by the interval; for a decided verdict, up to two more that
    distinguish it from the limit: 19.96 of 20 is not shown as 20.0."""
    ends = [end for end in (verdict.low, verdict.value, verdict.high) if end is not None]
    half_width = 0.0
    if verdict.low is not None and verdict.high is not None:
        half_width = (verdict.high - verdict.low) / 2
    if half_width > 0:
        power = math.floor(math.log10(half_width))
        # A half-width that begins with 1 justifies another digit.
        significant = -power + (half_width < 2 * 10.0**power)
    else:
        significant = FEW - 1 - math.floor(math.log10(abs(verdict.value or verdict.limit_value) or 1.0))

    def blurs(decimals: int) -> bool:
        return any(end != verdict.limit_value and round(end, decimals) == verdict.limit_value for end in ends)

    more = range(3 if is_decided(verdict.says) else 1)
    shown = next((significant + extra for extra in more if not blurs(significant + extra)), significant)
    return min(shown, MOST_DECIMALS)


def rounded(value: float, decimals: int) -> str:
    """Formats a figure with this many decimals; a negative number rounds digits before the point.

    >>> rounded(17234.5, -2), rounded(17.25, 1)
    ('17,200', '17.2')
    """
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def short(value: float, digits: int = FEW) -> str:
    """Formats a figure with this many significant digits, but all digits before the point.

    >>> short(0.01234), short(41234.5), short(9.9999)
    ('0.0123', '41,234', '10.0')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    # The power of ten after rounding: 9.999 has that of 10.
    power = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return rounded(value, max(0, digits - 1 - power))


def dollars(usd: float) -> str:
    """Formats an amount: whole dollars from ten on, since no price is more accurate.

    >>> dollars(3210.4), dollars(0.117)
    ('$3,210', '$0.117')
    """
    sign, size = "-" if usd < 0 else "", abs(usd)
    if size == round(size) or round(size) >= 10:
        return f"{sign}${round(size):,}"
    # Cents, or less: a kilowatt-hour costs 11.7 of them.
    return f"{sign}${size:.2f}" if round(size, 2) == round(size, 4) else f"{sign}${size:.3g}"


def amount(value: float, unit: str) -> str:
    """Formats a value of the objective.

    >>> amount(3210, "$"), amount(84.2, "W")
    ('$3,210', '84.2 W')
    """
    return dollars(value) if unit == "$" else f"{short(value)} {unit}"


def with_unit(figure_text: str, unit: str) -> str:
    """Formats a figure with its unit: ``412/s``, ``17.2 ms``."""
    return f"{figure_text}/s" if unit == "1/s" else f"{figure_text} {unit}"


def capacity(size_bytes: float) -> str:
    """Formats a capacity in decimal units, as drives are sold.

    >>> capacity(108e12), capacity(745e9)
    ('108 TB', '745 GB')
    """
    return f"{short(size_bytes / 1e12)} TB" if size_bytes >= 1e12 else f"{short(size_bytes / 1e9)} GB"


def percent(share: float) -> str:
    """Formats a ratio of two measured figures.

    >>> percent(0.374), percent(-0.0213), percent(2.5)
    ('37 %', '-2.1 %', '250 %')
    """
    return f"{short(100 * share, 2)} %"


def format_odds(probability: float) -> str:
    """Formats an annual probability as odds.

    >>> format_odds(0.03), format_odds(7.4e-7), format_odds(7.4e-12)
    ('3 %', '1 in 1,400,000', '7.4e-12')
    """
    if probability >= 1e-3 or probability <= 0:
        return f"{100 * probability:.2g} %"
    if probability < 1e-9:
        return f"{probability:.1e}"
    once = 1 / probability
    return f"1 in {rounded(once, 1 - math.floor(math.log10(once)))}"


def spaced(text: str) -> str:
    """Formats ``20ms`` as ``20 ms``; a name with digits is unchanged.

    >>> spaced("20ms"), spaced("40TB"), spaced("2")
    ('20 ms', '40 TB', '2')
    """
    return re.sub(r"^([\d.,]+)(?=[A-Za-z%])", r"\1 ", text)


def split_constraint(constraint: str) -> tuple[str, str, str]:
    """Returns the quantity that is constrained, its value, and the condition, empty in normal service.

    >>> split_constraint("p99=20ms while rebuilding")
    ('p99', '20 ms', ' while rebuilding')
    """
    name, _, value = constraint.partition("=")
    value, gap, condition = value.partition(" while ")
    return name, spaced(value), gap + condition


# Verdicts on limits.


def format_interval(verdict: Verdict) -> str:
    """Formats the confidence interval; empty if unknown."""
    if verdict.low is None or verdict.high is None:
        return ""
    decimals = decimals_of(verdict)
    return f"{rounded(verdict.low, decimals)} to {rounded(verdict.high, decimals)}"


def format_figure(verdict: Verdict) -> str:
    """Formats the figure without its unit."""
    return "unbounded" if verdict.value is None else rounded(verdict.value, decimals_of(verdict))


def format_limit(verdict: Verdict) -> str:
    """Formats the limit with its unit."""
    return with_unit(f"{verdict.limit_value:,.10g}", verdict.unit)


def format_decision(decision: Decision) -> str:
    """Formats the decision on a limit for cells of tables."""
    match decision:
        case "meets":
            return "met"
        case "does not":
            return "not met"
        case "undecided":
            return "undecided"
    assert_never(decision)


def format_verdict(verdict: Verdict) -> str:
    """Formats a limit, the figure with its interval, and the verdict.

    >>> format_verdict(Verdict("p99=20ms", "meets", "ms", 20, 17.23, 16.8, 17.9))
    'p99 17.2 ms (16.8 to 17.9), limit 20 ms: met'
    """
    name, _, condition = split_constraint(verdict.limit)
    limit = f"limit {format_limit(verdict)}: {format_decision(verdict.says)}"
    if verdict.value is None:
        return f"{name}{condition}: the queue grows without bound, {limit}"
    value_text = with_unit(format_figure(verdict), verdict.unit)
    interval = format_interval(verdict)
    reason = f" ({verdict.why})" if verdict.why else ""
    within = f" ({interval})" if interval else ""
    return f"{name}{condition} {value_text}{within}, {limit}{reason}"


def format_price(answer: Answer, choice: Choice) -> str:
    """Formats the value of the objective, and the price if that is not the objective."""
    volume_price = format_monthly(choice)
    price = dollars(choice.usd) + (f" ({volume_price})" if volume_price else "")
    if answer.unit == "$":
        return price
    objective = f"{answer.objective} " if answer.unit not in ("W", answer.objective) else ""
    return f"{objective}{amount(choice.cost, answer.unit)}; {price}"


def format_monthly(choice: Choice) -> str:
    """Formats monthly payments: the amount per month, and the duration."""
    months = {part.quantity for part in choice.parts if part.unit == "month"}
    usd = sum(part.usd for part in choice.parts if part.unit == "month")
    return f"{dollars(usd)} a month for {months.pop():,g} months" if len(months) == 1 else ""


def format_choice(answer: Answer, choice: Choice) -> str:
    """Describes a system in one sentence: its price and each limit."""
    return "; ".join([f"{choice.name}: {format_price(answer, choice)}", *map(format_verdict, choice.verdicts)])


# Sentences.


def headline(answer: Answer) -> str:
    """Returns the answer in one sentence, with the number and its interval."""
    if answer.best is not None:
        return f"Take {format_choice(answer, answer.best)}."
    count = f"{answer.candidates:,} candidate{'s' * (answer.candidates != 1)}"
    sentence = f"No system meets every limit ({count} searched)"
    if answer.undecided:
        sentence = f"No system is certain to meet every limit ({count} searched, {len(answer.undecided):,} undecided)"
    if answer.nearest is None:
        return f"{sentence}."
    return f"{sentence}. Nearest: {format_choice(answer, answer.nearest)}."


def remarks(answer: Answer) -> list[Remark]:
    """Returns further remarks, the most useful first, each with its subject."""
    shown = answer.best or answer.nearest
    all_remarks = [*_growth(answer), *_relaxed(answer), *_sensitivity(answer), *_upgrade(answer), *_undecided(answer)]
    if shown is not None:
        all_remarks += [*_durability(shown.durability), *_errors(shown)]
    return [*all_remarks, *_search_effort(answer), *(("warning", text) for text in answer.warnings)]


def select_notes(answer: Answer, count: int) -> list[Remark]:
    """Returns the most important remarks by ``NOTE_PRIORITY``, at most ``count``, one per subject."""
    by_topic: dict[str, Remark] = {}
    for subject, sentence in remarks(answer):
        by_topic.setdefault(subject, (subject, sentence))
    return [by_topic[topic] for topic in NOTE_PRIORITY if topic in by_topic][:count]


def format_price_items(choice: Choice) -> list[str]:
    """Returns the lines of a price, each with its date and source."""
    return [
        f"{format_price_item(part)} = {dollars(part.quantity * part.usd)} ({format_price_date(part)})"
        for part in choice.parts
    ]


def format_price_item(part: Part) -> str:
    """Describes an item with its price.

    >>> format_price_item(Part("exos-x18-18tb", 8, 289, "2026-01", "a shop"))
    '8 x exos-x18-18tb at $289'
    """
    unit = f" {part.unit}s of" if part.unit == "month" else f" {part.unit} of" if part.unit else " x"
    return f"{format_quantity(part)}{unit} {part.item} at {dollars(part.usd)}"


def format_quantity(part: Part) -> str:
    """Formats an amount: non-integers are expected or computed values, with few digits."""
    is_whole = part.quantity == round(part.quantity)
    return f"{part.quantity:,.0f}" if is_whole else short(part.quantity, FEW + 1)


def format_price_date(part: Part) -> str:
    """Formats the date and source of a price."""
    return f"{part.date or 'assumed'}, {part.source}" if part.source else part.date or "assumed"


def _growth(answer: Answer) -> Iterator[Remark]:
    best = answer.best
    if best is None:
        return
    if best.relief_percent is not None:
        saves = f"10 % less time there reduces the latency by {percent(best.relief_percent / 100)}"
        yield "bottleneck", f"{best.bottleneck}: {saves}"
    if best.breaks_first:
        yield "breaks first", best.breaks_first + (f"; {_carries(best)}" if best.rate_at_limit is not None else "")
    elif best.rate_at_limit is not None:
        yield "carries", _carries(best).removeprefix("carries ")


def _carries(choice: Choice) -> str:
    rate = f"carries {short(choice.rate_at_limit or 0.0)}/s within the limits"
    if choice.headroom is None or choice.rate_per_s is None:
        return rate
    job = f"the job's {short(choice.rate_per_s)}/s"
    if choice.headroom >= TIMES:
        return f"{rate}, {short(1 + choice.headroom, 2)} times {job}"
    return f"{rate}, {percent(abs(choice.headroom))} {'more' if choice.headroom >= 0 else 'less'} than {job}"


def _describe_relaxed(relaxed: Relaxed) -> str:
    name, value, condition = split_constraint(relaxed.constraint)
    if relaxed.to == WITHOUT:
        return f"{WITHOUT} {name} {value}{condition}"
    return f"{name}{condition} {spaced(relaxed.to)} instead of {value}"


def _relaxed(answer: Answer) -> Iterator[Remark]:
    if answer.best is None:
        for relaxed in answer.relaxed:
            if relaxed.best is not None:
                yield "binding", f"{_describe_relaxed(relaxed)} allows {relaxed.best}"
        still = [_describe_relaxed(relaxed) for relaxed in answer.relaxed if relaxed.best is None]
        if still:
            yield "not enough", join_listed(still, "; ")
        return
    for relaxed in sorted(answer.relaxed, key=lambda relaxed: -relaxed.saves):
        if relaxed.is_binding and relaxed.best is not None:
            saves = f"saves {amount(relaxed.saves, answer.unit)}" if relaxed.saves else "saves nothing"
            yield "binding", f"{_describe_relaxed(relaxed)} {saves}: {relaxed.best} wins"
    loose = [relaxed for relaxed in answer.relaxed if not relaxed.is_binding]
    if loose:
        yield "not binding", join_listed([_describe_relaxed(relaxed) for relaxed in loose], "; ")


def _sensitivity(answer: Answer) -> Iterator[Remark]:
    for sensitivity in answer.sensitivity:
        if sensitivity.is_changed:
            yield "another wins", f"with {sensitivity.change}: {sensitivity.best} at {dollars(sensitivity.usd)}"
    same = [sensitivity.change for sensitivity in answer.sensitivity if not sensitivity.is_changed]
    if same:
        yield "same winner", f"with {join_listed(same, '; ')}"


def _upgrade(answer: Answer) -> Iterator[Remark]:
    upgrade, best = answer.upgrade, answer.best
    if upgrade is None or best is None:
        return
    more = upgrade.cost - best.cost
    costs = f"{amount(abs(more), answer.unit)} {'more' if more >= 0 else 'less'}"
    yield "next upgrade", f"{upgrade.name}: {costs}{_more_load(upgrade, best)}"


def _more_load(upgrade: Choice, best: Choice) -> str:
    """Describes the load that an upgrade carries above the best: the load at its limits, or at least the simulated
    load."""
    carries = upgrade.rate_at_limit or upgrade.rate_per_s
    base = best.rate_at_limit or best.rate_per_s
    if not carries or not base or carries <= base:
        return ""
    least = "" if upgrade.rate_at_limit else "at least "
    return f"; carries {least}{short(carries)}/s, {percent(carries / base - 1)} more than the best"


def _undecided(answer: Answer) -> Iterator[Remark]:
    for choice in answer.undecided[:LISTED]:
        open_verdicts = "; ".join(format_verdict(v) for v in choice.verdicts if v.says == "undecided")
        yield (
            "undecided",
            f"{choice.name}: {format_price(answer, choice)}" + (f"; {open_verdicts}" if open_verdicts else ""),
        )
    if len(answer.undecided) > LISTED:
        yield "undecided", f"{len(answer.undecided) - LISTED:,} more"
    if answer.undecided and answer.best is not None:
        saving = answer.best.cost - min(choice.cost for choice in answer.undecided)
        yield (
            "possible saving",
            f"{amount(saving, answer.unit)} at most, if the cheapest undecided system meets its limits",
        )
    if answer.alike:
        yield "indistinguishable", f"from the best: {join_listed(answer.alike, '; ')}"
    if answer.tell_apart:
        yield "to decide", answer.tell_apart


def _durability(durability: Durability | None) -> Iterator[Remark]:
    if durability is None:
        return
    d = durability
    lost, unread = format_odds(d.loss_a_year), f"{d.unreadable_a_year:.2g}"
    yield (
        "durability",
        f"the probability of data loss is {lost} per year (more drives fail than the level survives)",
    )
    yield (
        "durability",
        f"{unread} rebuilds per year meet an unreadable sector that cannot be repaired (bound of the data sheet)",
    )
    yield (
        "durability inputs",
        f"{d.afr_percent:g} % of drives fail per year ({d.afr_source}); a rebuild takes {short(d.rebuild_h)} h "
        f"({d.rebuild_source})",
    )


def _errors(choice: Choice) -> Iterator[Remark]:
    if choice.model_error:
        yield "model error", choice.model_error
    for verdict in choice.verdicts:
        if verdict.model_low is not None and verdict.model_high is not None:
            name, _, condition = split_constraint(verdict.limit)
            interval = f"{short(verdict.model_low)} to {short(verdict.model_high)}"
            level = verdict.model_level
            share = "" if level is None else f" for {conformal.percent(level)} of devices"
            yield "prediction interval", f"{name}{condition} {with_unit(interval, verdict.unit)}{share}"
    if choice.verdicts:
        yield "simulated", f"{max(v.requests for v in choice.verdicts):,} requests for this system"


def _search_effort(answer: Answer) -> Iterator[Remark]:
    yield (
        "candidates",
        f"{answer.candidates:,}; {answer.simulated:,} simulated, with {answer.requests:,} requests in total",
    )
    for reason in answer.left_out:
        yield "left out", f"{reason.candidates:,}: {reason.why} ({HOW[reason.how]})"


def join_listed(items: Sequence[str], between: str = ", ") -> str:
    """Joins the first ``LISTED`` items and counts the rest.

    >>> join_listed(["a", "b"])
    'a, b'
    """
    more = len(items) - LISTED
    return between.join([*items[:LISTED], *([f"{more:,} more"] if more > 0 else [])])


def all_choices(answer: Answer) -> list[Choice]:
    """Returns all systems named in an answer, each once, the best first and the others by cost."""
    first = [answer.best, answer.nearest]
    rest = [*answer.runners_up, *answer.undecided, answer.upgrade, *answer.frontier, *answer.looked_at]
    named: Iterable[Choice] = (choice for choice in [*first, *rest] if choice is not None)
    by_name = {choice.name: choice for choice in reversed(list(named))}
    best = answer.best.name if answer.best else ""
    return sorted(by_name.values(), key=lambda choice: (choice.name != best, choice.cost, choice.name))
