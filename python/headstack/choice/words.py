"""Figures and sentences of an answer, shared by terminal, ticket and page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from headstack.choice.answer import Answer, Choice, Durability, Part, Relaxed, Says, Verdict, is_decided

MOST_DECIMALS = 9
FEW = 3
"""Digits of a figure whose interval is unknown."""
HOW = {
    "stated": "by what is stated of them",
    "bound": "by a bound on what their drives can do",
    "monotone": "since more drives of the same failed",
    "simulated": "by their own simulation",
    "dearer": "not looked at",
}
TIMES = 1
"""Headroom from which it is expressed as a factor, not in percent."""
LISTED = 6
"""Maximum number of items of a list in a sentence; the rest is counted."""

WITHOUT = "without"
"""The value of a constraint that is dropped."""

Said = tuple[str, str]
"""The subject of a sentence, and the sentence."""


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
        known = -power + (half_width < 2 * 10.0**power)
    else:
        known = FEW - 1 - math.floor(math.log10(abs(verdict.value or verdict.limit_value) or 1.0))

    def blurs(decimals: int) -> bool:
        return any(end != verdict.limit_value and round(end, decimals) == verdict.limit_value for end in ends)

    more = range(3 if is_decided(verdict.says) else 1)
    shown = next((known + extra for extra in more if not blurs(known + extra)), known)
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


def per(figure: str, unit: str) -> str:
    """Formats a figure with its unit: ``412/s``, ``17.2 ms``."""
    return f"{figure}/s" if unit == "1/s" else f"{figure} {unit}"


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


def odds(probability: float) -> str:
    """Formats an annual probability as odds.

    >>> odds(0.03), odds(7.4e-7), odds(7.4e-12)
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


def asked(constraint: str) -> tuple[str, str, str]:
    """Returns what is constrained, to what value, and in what state.

    >>> asked("p99=20ms while rebuilding")
    ('p99', '20 ms', ' while rebuilding')
    """
    what, _, value = constraint.partition("=")
    value, gap, condition = value.partition(" while ")
    return what, spaced(value), gap + condition


# Verdicts on limits.


def interval(verdict: Verdict) -> str:
    """Formats the confidence interval; empty if unknown."""
    if verdict.low is None or verdict.high is None:
        return ""
    decimals = decimals_of(verdict)
    return f"{rounded(verdict.low, decimals)} to {rounded(verdict.high, decimals)}"


def figure(verdict: Verdict) -> str:
    """Formats the figure without its unit."""
    return "without end" if verdict.value is None else rounded(verdict.value, decimals_of(verdict))


def limit_of(verdict: Verdict) -> str:
    """Formats the limit with its unit."""
    return per(f"{verdict.limit_value:,.10g}", verdict.unit)


def verdict_word(says: Says) -> str:
    """Formats a verdict on a limit for cells of tables."""
    match says:
        case "meets":
            return "met"
        case "does not":
            return "not met"
        case "cannot tell":
            return "cannot tell"
    assert_never(says)


def verdict_said(verdict: Verdict) -> str:
    """Formats a limit, the figure with its interval, and the verdict.

    >>> verdict_said(Verdict("p99=20ms", "meets", "ms", 20, 17.23, 16.8, 17.9))
    'p99 17.2 ms (16.8 to 17.9), limit 20 ms: met'
    """
    what, _, condition = asked(verdict.limit)
    if verdict.value is None:
        return (
            f"{what}{condition}: requests pile up without end, limit {limit_of(verdict)}: {verdict_word(verdict.says)}"
        )
    found = per(figure(verdict), verdict.unit)
    between = interval(verdict)
    reason = f" ({verdict.why})" if verdict.why else ""
    within = f" ({between})" if between else ""
    return f"{what}{condition} {found}{within}, limit {limit_of(verdict)}: {verdict_word(verdict.says)}{reason}"


def price_said(answer: Answer, choice: Choice) -> str:
    """Formats the value of the objective, and the price if that is not the objective."""
    of_volume = monthly(choice)
    price = dollars(choice.usd) + (f" ({of_volume})" if of_volume else "")
    if answer.unit == "$":
        return price
    what = f"{answer.objective} " if answer.unit not in ("W", answer.objective) else ""
    return f"{what}{amount(choice.cost, answer.unit)}; {price}"


def monthly(choice: Choice) -> str:
    """Formats monthly payments: the amount per month, and the duration."""
    months = {part.quantity for part in choice.parts if part.unit == "month"}
    usd = sum(part.usd for part in choice.parts if part.unit == "month")
    return f"{dollars(usd)} a month for {months.pop():,g} months" if len(months) == 1 else ""


def choice_said(answer: Answer, choice: Choice) -> str:
    """Describes a system in one sentence: its price and each limit."""
    return "; ".join([f"{choice.name}: {price_said(answer, choice)}", *map(verdict_said, choice.verdicts)])


# Sentences.


def headline(answer: Answer) -> str:
    """Returns the answer in one sentence, with the number and its interval."""
    if answer.best is not None:
        return f"Take {choice_said(answer, answer.best)}."
    count = f"{answer.candidates:,} candidate{'s' * (answer.candidates != 1)}"
    said = f"Nothing of {count} meets every limit"
    if answer.undecided:
        said = f"Nothing of {count} is known to meet every limit; of {len(answer.undecided):,} it cannot be told"
    if answer.nearest is None:
        return f"{said}."
    return f"{said}. Nearest: {choice_said(answer, answer.nearest)}."


def remarks(answer: Answer) -> list[Said]:
    """Returns further remarks, the most useful first, each with its subject."""
    shown = answer.best or answer.nearest
    said = [*_growth(answer), *_relaxed(answer), *_sensitivity(answer), *_upgrade(answer), *_unsure(answer)]
    if shown is not None:
        said += [*_durability(shown.durability), *_errors(shown)]
    return [*said, *_looked_at(answer), *(("warning", text) for text in answer.warnings)]


def prices_said(choice: Choice) -> list[str]:
    """Returns the lines of a price, each with its date and source."""
    return [f"{part_said(part)} = {dollars(part.quantity * part.usd)} ({dated(part)})" for part in choice.parts]


def part_said(part: Part) -> str:
    """Describes an item with its price.

    >>> part_said(Part("exos-x18-18tb", 8, 289, "2026-01", "a shop"))
    '8 x exos-x18-18tb at $289'
    """
    unit = f" {part.unit}s of" if part.unit == "month" else f" {part.unit} of" if part.unit else " x"
    return f"{quantity_of(part)}{unit} {part.item} at {dollars(part.usd)}"


def quantity_of(part: Part) -> str:
    """Formats an amount: non-integers are expected or computed values, with few digits."""
    is_whole = part.quantity == round(part.quantity)
    return f"{part.quantity:,.0f}" if is_whole else short(part.quantity, FEW + 1)


def dated(part: Part) -> str:
    """Formats the date and source of a price."""
    return f"{part.date or 'assumed'}, {part.source}" if part.source else part.date or "assumed"


def _growth(answer: Answer) -> Iterator[Said]:
    best = answer.best
    if best is None:
        return
    if best.relief_percent is not None:
        saves = f"a tenth less time there shortens the response by {percent(best.relief_percent / 100)}"
        yield "bottleneck", f"{best.bottleneck}: {saves}"
    if best.breaks_first:
        yield "breaks first", best.breaks_first + (f"; {_carries(best)}" if best.rate_at_limit is not None else "")
    elif best.rate_at_limit is not None:
        yield "carries", _carries(best).removeprefix("carries ")


def _carries(choice: Choice) -> str:
    rate = f"carries {short(choice.rate_at_limit or 0.0)}/s within the limits"
    if choice.headroom is None or choice.rate_per_s is None:
        return rate
    job = f"the {short(choice.rate_per_s)}/s of the job"
    if choice.headroom >= TIMES:
        return f"{rate}, {short(1 + choice.headroom, 2)} times {job}"
    return f"{rate}, {percent(abs(choice.headroom))} {'more' if choice.headroom >= 0 else 'less'} than {job}"


def _instead(one: Relaxed) -> str:
    what, value, condition = asked(one.constraint)
    if one.to == WITHOUT:
        return f"{WITHOUT} {what} {value}{condition}"
    return f"{what}{condition} {spaced(one.to)} instead of {value}"


def _relaxed(answer: Answer) -> Iterator[Said]:
    if answer.best is None:
        for one in answer.relaxed:
            if one.best is not None:
                yield "binding", f"{_instead(one)} would do: {one.best}"
        still = [_instead(one) for one in answer.relaxed if one.best is None]
        if still:
            yield "not enough", listed(still, "; ")
        return
    for one in answer.relaxed:
        if one.is_binding and one.best is not None:
            saves = f"saves {amount(one.saves, answer.unit)}" if one.saves else "saves nothing"
            yield "binding", f"{_instead(one)} {saves}: {one.best} wins"
    loose = [one for one in answer.relaxed if not one.is_binding]
    if loose:
        yield "not binding", listed([_instead(one) for one in loose], "; ")


def _sensitivity(answer: Answer) -> Iterator[Said]:
    for one in answer.sensitivity:
        if one.is_changed:
            yield "another wins", f"with {one.change} {one.best} wins at {dollars(one.usd)}"
    same = [one.change for one in answer.sensitivity if not one.is_changed]
    if same:
        yield "the same wins", f"with {listed(same, '; ')}"


def _upgrade(answer: Answer) -> Iterator[Said]:
    upgrade, best = answer.upgrade, answer.best
    if upgrade is None or best is None:
        return
    more = upgrade.cost - best.cost
    costs = f"{amount(abs(more), answer.unit)} {'more' if more >= 0 else 'less'}"
    yield "next upgrade", f"{upgrade.name}: {costs}{_more_load(upgrade, best)}"


def _more_load(upgrade: Choice, best: Choice) -> str:
    """States the load that an upgrade carries above the best: at its limits, or at least the simulated one."""
    carries = upgrade.rate_at_limit or upgrade.rate_per_s
    base = best.rate_at_limit or best.rate_per_s
    if not carries or not base or carries <= base:
        return ""
    least = "" if upgrade.rate_at_limit else "at least "
    return f"; carries {least}{short(carries)}/s, {percent(carries / base - 1)} more than the best"


def _unsure(answer: Answer) -> Iterator[Said]:
    for one in answer.undecided[:LISTED]:
        open_ones = "; ".join(verdict_said(v) for v in one.verdicts if v.says == "cannot tell")
        yield "cannot tell", f"{one.name}: {price_said(answer, one)}" + (f"; {open_ones}" if open_ones else "")
    if len(answer.undecided) > LISTED:
        yield "cannot tell", f"{len(answer.undecided) - LISTED:,} more"
    if answer.undecided and answer.best is not None:
        misses = answer.best.cost - min(one.cost for one in answer.undecided)
        yield (
            "may miss the least",
            f"by {amount(misses, answer.unit)} at most, if the cheapest of these meets its limits",
        )
    if answer.alike:
        yield "cannot be told apart", f"from the best: {listed(answer.alike, '; ')}"
    if answer.tell_apart:
        yield "what would tell", answer.tell_apart


def _durability(durability: Durability | None) -> Iterator[Said]:
    if durability is None:
        return
    d = durability
    lost, unread = odds(d.loss_a_year), f"{d.unreadable_a_year:.2g}"
    yield (
        "durability",
        f"data are lost with a probability of {lost} a year, more drives failing than the level survives",
    )
    yield (
        "durability",
        f"{unread} rebuilds a year meet an unreadable sector that nothing repairs, by the data sheet's bound",
    )
    yield (
        "which rests on",
        f"{d.afr_percent:g} % of drives fail a year ({d.afr_source}), a rebuild takes {short(d.rebuild_h)} h "
        f"({d.rebuild_source})",
    )


def _errors(choice: Choice) -> Iterator[Said]:
    if choice.model_error:
        yield "model error", choice.model_error
    for verdict in choice.verdicts:
        if verdict.model_low is not None and verdict.model_high is not None:
            what, _, condition = asked(verdict.limit)
            between = f"{short(verdict.model_low)} to {short(verdict.model_high)}"
            yield "devices", f"nine of ten have a {what}{condition} of {per(between, verdict.unit)}"
    if choice.verdicts:
        yield "simulated", f"{max(v.requests for v in choice.verdicts):,} requests for this one"


def _looked_at(answer: Answer) -> Iterator[Said]:
    yield (
        "candidates",
        f"{answer.candidates:,}; {answer.simulated:,} simulated, with {answer.requests:,} requests in all",
    )
    for reason in answer.left_out:
        yield "left out", f"{reason.candidates:,}: {reason.why} ({HOW[reason.how]})"


def listed(items: Sequence[str], between: str = ", ") -> str:
    """Lists some items; of many, the rest is counted.

    >>> listed(["a", "b"])
    'a, b'
    """
    more = len(items) - LISTED
    return between.join([*items[:LISTED], *([f"{more:,} more"] if more > 0 else [])])


def every(answer: Answer) -> list[Choice]:
    """Returns all systems named in an answer, each once, the best first and the others by cost."""
    first = [answer.best, answer.nearest]
    rest = [*answer.runners_up, *answer.undecided, answer.upgrade, *answer.frontier, *answer.looked_at]
    known: Iterable[Choice] = (one for one in [*first, *rest] if one is not None)
    found = {one.name: one for one in reversed(list(known))}
    best = answer.best.name if answer.best else ""
    return sorted(found.values(), key=lambda one: (one.name != best, one.cost, one.name))
