"""The result of an inverse study, in words and pictures."""

from __future__ import annotations

from collections.abc import Sequence

from headstack.io.counts import agreed, counted
from headstack.report.figures import Axis, Bars, Cell, Figure, Report, Section, Series, Table
from headstack.studies.fits.fit_data import ROUNDING_FACTOR, FigureResult, FitData, Posterior
from headstack.studies.power import amount

MISSED_MAX = 3
"""Maximum number of missed figures named in one sentence."""


def finding(result: FitData) -> str:
    """Summarizes the result in a sentence or two."""
    fitted = [row for row in result.rows if not row.held_out]
    figures_text = f"{'the only fitted figure' if len(fitted) == 1 else f'all {len(fitted)} fitted figures'}"
    if result.reproducing:
        begins = (
            f"{result.reproducing:,} of {result.tried:,} settings reproduce {figures_text} within {result.tolerance}"
        )
        return f"{begins}; {_held_out(result)}."
    every = f"{result.tried:,} there are" if result.is_whole else f"{result.tried:,} tried"
    parts = [f"no setting reproduces {figures_text} within {result.tolerance}, of {every}"]
    if result.distance is not None:
        parts.append(f"the nearest needs {result.distance:.2f} times this tolerance")
    for row in fitted:
        if row.alone is None:
            parts.append(f"none gives {row.figure} at all")
        elif row.alone > result.tolerance.amount * ROUNDING_FACTOR:
            parts.append(f"{row.figure} alone is {amount(row.alone)}{_unit(result)} away at the nearest")
    if result.exclude:
        pairs = ", ".join(f"{first} with {second}" for first, second in result.exclude)
        parts.append(f"reached separately but never together: {pairs}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _held_out(result: FitData) -> str:
    """Summarizes the predictions of held-out figures."""
    held = [row for row in result.rows if row.held_out]
    if not held:
        return "no figure was held out"
    within = sum(row.is_within for row in held)
    figures = counted(len(held), "held-out figure")
    return f"{within} of {figures} {agreed(within, 'is', 'are')} within {result.tolerance} of the median"


def _listed(rows: Sequence[FigureResult]) -> str:
    return ", ".join(f"{row.figure} {_format_found(row)} for {row.published}" for row in rows)


def _format_found(row: FigureResult) -> str:
    """Formats the results of the settings."""
    if row.median is not None and row.band_low is not None and row.band_high is not None:
        return f"{amount(row.median)} ({amount(row.band_low)} to {amount(row.band_high)})"
    return "nothing" if row.nearest is None else amount(row.nearest)


def _unit(result: FitData) -> str:
    unit = result.tolerance.unit
    return unit if unit == "%" else f" {unit}".rstrip()


def unknowns_table(result: FitData) -> tuple[list[str], list[list[str]]]:
    """Returns headings and rows with the posterior of each unknown."""
    rows = [
        [posterior.name, posterior.description, posterior.prior, format_posterior(result, posterior), posterior.why]
        for posterior in result.unknowns
    ]
    return ["unknown", "description", "prior", "posterior", "reason for the prior"], rows


def format_posterior(result: FitData, posterior: Posterior) -> str:
    """Formats the posterior of an unknown; without reproducing settings, the value of the nearest."""
    if not result.reproducing:
        return f"nothing (nearest: {result.nearest[posterior.name]})"
    if not posterior.is_determined:
        return "not determined by these figures"
    if posterior.shares:
        ranked = sorted(posterior.shares.items(), key=lambda pair: -pair[1])
        return ", ".join(f"{value} {100 * share:.0f} %" for value, share in ranked if share >= 0.005)
    return f"{posterior.median} ({posterior.low} to {posterior.high})"


def rows_table(result: FitData) -> tuple[list[str], list[list[str]]]:
    """Returns headings and rows with each figure and the results of the settings."""
    rows = [
        [
            row.figure,
            "held out" if row.held_out else "fitted",
            row.published,
            _format_found(row),
            "yes" if row.is_within else "no",
            f"{100 * row.share_within:.0f} %" if result.reproducing else "",
            "" if row.alone is None else f"{amount(round(row.alone, 2))}{_unit(result)}",
        ]
        for row in result.rows
    ]
    value_heading = "settings that do" if result.reproducing else "nearest setting"
    return [
        "figure",
        "kind",
        "published",
        value_heading,
        f"within {result.tolerance}",
        "of settings",
        "nearest alone",
    ], rows


def report(result: FitData) -> Report:
    """Returns the page: the summary, the figures, and the posterior of each unknown."""
    wider = ", ".join(f"{count:,} with {times:g} times" for times, count in result.wider)
    seen = f"{result.equal_weight:.0f} settings of equal weight" if result.reproducing else "none"
    text = f"Settings that would do if the tolerance were wider: {wider}. What is left rests on {seen}."
    return Report(
        title=result.title,
        question=result.question,
        summary=" ".join(filter(None, (finding(result), result.summary))),
        sections=[
            Section(
                "Figures", text, [_rows_picture(result), _table("rows", "Published and found", *rows_table(result))]
            ),
            Section(
                "What is left of each unknown",
                figures=[_table("unknowns", "Unknowns", *unknowns_table(result)), *_posterior_pictures(result)],
            ),
        ],
        version=result.version,
    )


def _posterior_pictures(result: FitData) -> list[Figure]:
    return [_posterior_picture(result, posterior) for posterior in result.unknowns] if result.reproducing else []


def _table(name: str, title: str, columns: list[str], rows: list[list[str]]) -> Table:
    cells: list[list[Cell]] = [[*row] for row in rows]
    return Table(name, title, columns, cells)


def _rows_picture(result: FitData) -> Figure:
    """Draws each published figure with the median and the band of the settings that reproduce the fitted ones."""
    groups = [f"{row.figure}{' (held out)' if row.held_out else ''}" for row in result.rows]
    series = [Series("published", (), [(row.low + row.high) / 2 for row in result.rows], published=True)]
    if result.reproducing:
        for name, values in (
            ("19 of 20 settings are above", [row.band_low for row in result.rows]),
            ("median", [row.median for row in result.rows]),
            ("19 of 20 settings are below", [row.band_high for row in result.rows]),
        ):
            series.append(Series(name, (), values))
    else:
        series.append(Series("nearest setting", (), [row.nearest for row in result.rows]))
    title = "Published figures, and what settings give"
    # With a tolerance in percent, the unit of each figure is part of its name.
    axis = Axis("Each figure in its unit" if result.tolerance.unit == "%" else f"Figures ({_unit(result).strip()})")
    return Bars("figures", title, axis, groups, series, says=_headline(result))


def _headline(result: FitData) -> str:
    """States how many figures the settings reproduce, and the worst one."""
    kinds = [("fitted", [row for row in result.rows if not row.held_out])]
    kinds.append(("held-out", [row for row in result.rows if row.held_out]))
    counts = [f"{sum(row.is_within for row in rows)} of {len(rows)} {kind}" for kind, rows in kinds if rows]
    missed = [row for row in result.rows if not row.is_within]
    rest = f"; missed: {_listed(missed[:MISSED_MAX])}" if missed else ""
    rest += f", and {len(missed) - MISSED_MAX} more" if len(missed) > MISSED_MAX else ""
    return f"Within {result.tolerance}: {' and '.join(counts)} figures{rest}."


def _posterior_picture(result: FitData, posterior: Posterior) -> Figure:
    """Draws the shares of the prior's parts next to those of the posterior."""
    groups = [*posterior.shares] if posterior.shares else [*posterior.parts]
    even = [100 / len(groups)] * len(groups)
    series = [Series("before", (), even), Series("left", (), [100 * step for step in posterior.steps])]
    axis, says = Axis("share (%)", log=False), f"Left: {format_posterior(result, posterior)}."
    return Bars(
        f"unknown-{posterior.name}", f"{posterior.description}: {posterior.prior}", axis, groups, series, says=says
    )
