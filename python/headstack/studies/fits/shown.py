"""The result of an inverse study, in words and pictures."""

from __future__ import annotations

from collections.abc import Sequence

from headstack.io.counts import agreed, counted
from headstack.report.figures import Axis, Bars, Cell, Figure, Report, Section, Series, Table
from headstack.studies.fits.fitted import ROUNDING_FACTOR, FitData, Left, RowFound
from headstack.studies.power import amount

MISSED_MAX = 3
"""Maximum number of missed figures named in one sentence."""


def finding(found: FitData) -> str:
    """Summarizes the result in a sentence or two."""
    fitted = [row for row in found.rows if not row.held_out]
    asked = f"{'the only fitted figure' if len(fitted) == 1 else f'all {len(fitted)} fitted figures'}"
    if found.reproducing:
        begins = f"{found.reproducing:,} of {found.tried:,} settings reproduce {asked} within {found.tolerance}"
        return f"{begins}; {_held_out(found)}."
    every = f"{found.tried:,} there are" if found.is_whole else f"{found.tried:,} tried"
    parts = [f"no setting reproduces {asked} within {found.tolerance}, of {every}"]
    if found.distance is not None:
        missed = [row for row in fitted if not row.is_within]
        parts.append(f"the nearest needs {found.distance:.2f} times that, and gives {_listed(missed)}")
    for row in fitted:
        if row.alone is None:
            parts.append(f"none gives {row.figure} at all")
        elif row.alone > found.tolerance.amount * ROUNDING_FACTOR:
            parts.append(f"{row.figure} alone is {amount(row.alone)}{_unit(found)} away at the nearest")
    if found.exclude:
        pairs = ", ".join(f"{one} with {other}" for one, other in found.exclude)
        parts.append(f"reached one by one, never together: {pairs}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _held_out(found: FitData) -> str:
    """Summarizes the predictions of held-out figures."""
    held = [row for row in found.rows if row.held_out]
    if not held:
        return "no figure was held out"
    within = sum(row.is_within for row in held)
    share = (
        f"{within} of {counted(len(held), 'held-out figure')} {agreed(within, 'lies', 'lie')} within {found.tolerance}"
    )
    return f"{share} of the median: {_listed(held)}"


def _listed(rows: Sequence[RowFound]) -> str:
    return ", ".join(f"{row.figure} {_format_found(row)} for {row.published}" for row in rows)


def _format_found(row: RowFound) -> str:
    """Formats the results of the settings."""
    if row.median is not None and row.band_low is not None and row.band_high is not None:
        return f"{amount(row.median)} ({amount(row.band_low)} to {amount(row.band_high)})"
    return "nothing" if row.nearest is None else amount(row.nearest)


def _unit(found: FitData) -> str:
    unit = found.tolerance.unit
    return unit if unit == "%" else f" {unit}".rstrip()


def unknowns_table(found: FitData) -> tuple[list[str], list[list[str]]]:
    """Returns headings and rows with the posterior of each unknown."""
    rows = [[one.name, one.what, one.prior, left(found, one), one.why] for one in found.unknowns]
    return ["unknown", "what it is", "it may be", "left of it", "why it may be that"], rows


def left(found: FitData, one: Left) -> str:
    """Formats the posterior of an unknown; without reproducing settings, the value of the nearest."""
    if not found.reproducing:
        return f"nothing (nearest: {found.nearest[one.name]})"
    if not one.is_told:
        return "not told by these figures"
    if one.shares:
        ranked = sorted(one.shares.items(), key=lambda pair: -pair[1])
        return ", ".join(f"{value} {100 * share:.0f} %" for value, share in ranked if share >= 0.005)
    return f"{one.median} ({one.low} to {one.high})"


def rows_table(found: FitData) -> tuple[list[str], list[list[str]]]:
    """Returns headings and rows with each figure and the results of the settings."""
    rows = [
        [
            row.figure,
            "held out" if row.held_out else "fitted",
            row.published,
            _format_found(row),
            "yes" if row.is_within else "no",
            f"{100 * row.share_within:.0f} %" if found.reproducing else "",
            "" if row.alone is None else f"{amount(round(row.alone, 2))}{_unit(found)}",
        ]
        for row in found.rows
    ]
    told = "settings that do" if found.reproducing else "nearest setting"
    return ["figure", "kind", "published", told, f"within {found.tolerance}", "of settings", "nearest alone"], rows


def report(found: FitData) -> Report:
    """Returns the page: the summary, the figures, and the posterior of each unknown."""
    wider = ", ".join(f"{count:,} with {times:g} times" for times, count in found.wider)
    seen = f"{found.equal_weight:.0f} settings of equal weight" if found.reproducing else "none"
    text = f"Settings that would do if the tolerance were wider: {wider}. What is left rests on {seen}."
    return Report(
        title=found.title,
        question=found.question,
        summary=" ".join(filter(None, (finding(found), found.summary))),
        sections=[
            Section("Figures", text, [_rows_picture(found), _table("rows", "Published and found", *rows_table(found))]),
            Section(
                "What is left of each unknown",
                figures=[_table("unknowns", "Unknowns", *unknowns_table(found)), *_left_pictures(found)],
            ),
        ],
        version=found.version,
    )


def _left_pictures(found: FitData) -> list[Figure]:
    return [_left_picture(found, one) for one in found.unknowns] if found.reproducing else []


def _table(name: str, title: str, columns: list[str], rows: list[list[str]]) -> Table:
    cells: list[list[Cell]] = [[*row] for row in rows]
    return Table(name, title, columns, cells)


def _rows_picture(found: FitData) -> Figure:
    """Draws each published figure with the median and the band of the settings that reproduce the fitted ones."""
    groups = [f"{row.figure}{' (held out)' if row.held_out else ''}" for row in found.rows]
    series = [Series("published", (), [(row.low + row.high) / 2 for row in found.rows], published=True)]
    if found.reproducing:
        for name, values in (
            ("19 of 20 settings are above", [row.band_low for row in found.rows]),
            ("median", [row.median for row in found.rows]),
            ("19 of 20 settings are below", [row.band_high for row in found.rows]),
        ):
            series.append(Series(name, (), values))
    else:
        series.append(Series("nearest setting", (), [row.nearest for row in found.rows]))
    title = "Published figures, and what settings give"
    # With a tolerance in percent, the unit of each figure is part of its name.
    axis = Axis("Each figure in its unit" if found.tolerance.unit == "%" else f"Figures ({_unit(found).strip()})")
    return Bars("figures", title, axis, groups, series, says=_headline(found))


def _headline(found: FitData) -> str:
    """States how many figures the settings reproduce, and the worst one."""
    kinds = [("fitted", [row for row in found.rows if not row.held_out])]
    kinds.append(("held-out", [row for row in found.rows if row.held_out]))
    counts = [f"{sum(row.is_within for row in rows)} of {len(rows)} {kind}" for kind, rows in kinds if rows]
    missed = [row for row in found.rows if not row.is_within]
    rest = f"; missed: {_listed(missed[:MISSED_MAX])}" if missed else ""
    rest += f", and {len(missed) - MISSED_MAX} more" if len(missed) > MISSED_MAX else ""
    return f"Within {found.tolerance}: {' and '.join(counts)} figures{rest}."


def _left_picture(found: FitData, one: Left) -> Figure:
    """Draws the shares of the prior's parts next to those of the posterior."""
    groups = [*one.shares] if one.shares else [*one.parts]
    even = [100 / len(groups)] * len(groups)
    series = [Series("before", (), even), Series("left", (), [100 * step for step in one.steps])]
    axis, says = Axis("share (%)", log=False), f"Left: {left(found, one)}."
    return Bars(f"unknown-{one.name}", f"{one.what}: {one.prior}", axis, groups, series, says=says)
