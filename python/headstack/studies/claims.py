"""``judge``: compares the published figures of claims with those found, and returns verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headstack.results.table import Row
from headstack.studies.evidence import PUBLISHED, Grounds, Rests
from headstack.studies.power import Power, Tolerance, amount, mean
from headstack.studies.study import Study, query_of
from headstack.studies.support import describe_support
from headstack.studies.tables import QueryResult, Tables

POINTS = "points"
"""The unit of speedups: the percentage by which one system's figure exceeds another's."""


class Verdict(StrEnum):
    """The verdict on a claim, by the basis of its figures."""

    PREDICTED = "predicted"
    """At least half of its rows depend on runs, all agree, and nothing in them was tuned on the claim."""
    FITTED = "fitted"
    """Like predicted, but something was tuned on the claim."""
    CONFIGURED = "configured"
    """An input of ours states it: a description, a workload, the choice of runs."""
    ARITHMETIC = "arithmetic"
    """It follows from the document's own figures."""
    MISSED = "missed"
    CONTRADICTED = "contradicted"
    """Contradicted by the document itself, or by physics."""
    NOT_TESTABLE = "not testable"
    """Something is missing, as stated in the evidence."""


@dataclass(frozen=True)
class Alternative:
    """The result of a claim if an open choice of its document is made otherwise."""

    open_choice: str
    """The choice that was made, which the document leaves open."""
    other: str
    """The alternative."""
    evidence: str
    """Figures in words."""
    agrees: bool

    def __str__(self) -> str:
        figures = f", {self.evidence}" if self.evidence else ""
        return f"{self.other} ({self.open_choice}): {'agrees' if self.agrees else 'does not agree'}{figures}"


@dataclass(frozen=True)
class Judged:
    """The result of one claim."""

    id: str
    says: str
    verdict: Verdict
    evidence: str
    """Figures and reasons in words."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    """Published and found values, row by row; the last column is the error if there is one."""
    errors: tuple[float, ...] = ()
    """Errors of rows with figures, in ``unit``."""
    unit: str = ""
    within: tuple[bool, ...] = ()
    """Whether each row agrees."""
    wrong_signs: int = 0
    """Number of rows in points whose speedup has the wrong sign."""
    is_explained: bool = True
    """Whether all rows agree, or the study states the reason."""
    rests: Rests | None = None
    """The basis of its figures; ``None`` without any."""
    from_runs: tuple[bool, ...] = ()
    """Whether each row depends on simulation results."""
    chosen: tuple[str, ...] = ()
    """Choices in its runs that were tuned on it."""
    tolerance: str = ""
    because: str = ""
    """The source of the tolerance."""
    power: Power | None = None
    """How its figures differ from chance, if there are enough."""
    otherwise: tuple[Alternative, ...] = ()
    """Results of the claim for alternatives to open choices."""
    backing: tuple[tuple[str, str], ...] = ()
    """Supporting evidence in words, each with its role."""


@dataclass(frozen=True)
class Compared:
    """Published figures compared with those found."""

    result: QueryResult
    rows: list[Row]
    tolerance: Tolerance | None
    """The tolerance; ``None`` for evidence without figures."""
    errors: list[float]
    """The error of each row, in the tolerance's unit."""
    within: list[bool]
    """Whether each row is within the tolerance."""
    agrees: bool
    """Whether all rows agree, and their mean if it has a tolerance of its own."""

    def describe(self) -> str:
        """Describes the comparison; empty for a single row that holds or does not."""
        if self.tolerance is not None:
            return _figures(self.rows, self.errors, self.tolerance)
        return f"{sum(row['holds'] for row in self.rows)} of {len(self.rows)} hold" if len(self.rows) > 1 else ""


def compare(study: Study, number: int, tables: Tables) -> Compared:
    """Runs a claim's query. Raises ``InputError`` if it fails or returns no evidence."""
    claim, path = study.claims[number], f"claims[{number}]"
    result = tables.query(f"{path}.sql", query_of(claim))
    rows = list(result.dicts())
    has_figures = _check(study, path, claim, result, rows)
    tolerance = _tolerance(study, path, claim, "tolerance") if has_figures else None
    average = _tolerance(study, path, claim, "mean") if claim["mean"] is not None else None
    if tolerance is not None and tolerance.unit == "%" and any(0 in map(row.get, PUBLISHED) for row in rows):
        raise study.error(f"{path}.tolerance", "a percentage of a published 0 is 0; use an amount")
    errors = [] if tolerance is None else [tolerance.error(row) for row in rows]
    within = [row.get("holds", True) for row in rows]
    if tolerance is not None:
        allowed = tolerance.amount * (1 + 1e-9)
        within = [holds and abs(error) <= allowed for holds, error in zip(within, errors, strict=True)]
    agrees = all(within) and (average is None or mean(errors) <= average.amount)
    return Compared(result, rows, tolerance, errors, within, agrees)


def judge(
    study: Study,
    number: int,
    tables: Tables,
    ground: Grounds | None,
    chosen: Sequence[str],
    otherwise: Sequence[Alternative],
) -> Judged:
    """Returns the verdict on a claim. ``ground`` is the basis of its evidence from ``grounds_of``, ``chosen`` the tuned
    values in it from ``chosen_on``.

    Raises ``InputError`` if the claim's query fails or returns no evidence, and if the claim is stated as missed
    although its rows agree, or as contradicted although only our runs contradict it.
    """
    claim, path = study.claims[number], f"claims[{number}]"
    if claim["sql"] is None or ground is None:
        return Judged(claim["id"], claim["says"], Verdict.NOT_TESTABLE, _one_line(claim["missing"] or ""))
    compared = compare(study, number, tables)
    if ground.compares_runs:
        if claim["missing"] is None:
            message = (
                "published contains results of headstack's runs; put what the document does not publish into missing"
            )
            raise study.error(f"{path}.sql", message)
        return Judged(claim["id"], claim["says"], Verdict.NOT_TESTABLE, _evidence(claim, compared, ground, ()))
    chosen = chosen if ground.rests == Rests.RUNS else ()
    verdict = _verdict(study, path, claim, compared.agrees, ground, bool(chosen))
    errors, tolerance = compared.errors, compared.tolerance
    unit = "" if tolerance is None else tolerance.unit
    columns, shown = compared.result.columns, compared.result.rows
    if errors:
        columns = [*columns, f"error ({unit})" if unit else "error"]
        shown = [(*row, error) for row, error in zip(shown, errors, strict=True)]
    allowed = ", ".join(filter(None, (claim["tolerance"], claim["mean"] and f"{claim['mean']} on average")))
    because = _one_line(claim["because"] or study.tolerances.get(claim["tolerance"] or "", ""))
    ran = [
        row for row, is_of_runs in zip(compared.rows, ground.rows, strict=True) if is_of_runs or not any(ground.rows)
    ]
    power = None if tolerance is None else Power.of(ran, tolerance)
    return Judged(
        id=claim["id"],
        says=claim["says"],
        verdict=verdict,
        evidence=_evidence(claim, compared, ground, chosen),
        columns=tuple(columns),
        rows=tuple(shown),
        errors=tuple(errors),
        unit=unit,
        within=tuple(compared.within),
        wrong_signs=sum(map(_is_wrong_sign, compared.rows)) if unit == POINTS else 0,
        is_explained=compared.agrees or claim["contradicted"] is not None or claim["missing"] is not None,
        rests=ground.rests,
        from_runs=ground.rows,
        chosen=tuple(chosen),
        tolerance=allowed,
        because=because,
        power=power,
        otherwise=tuple(otherwise),
        backing=describe_support(
            ground,
            chosen,
            f"{allowed}: {because}" if because else allowed,
            power,
            unit,
            [str(alternative) for alternative in otherwise],
        ),
    )


def _check(study: Study, path: str, claim: Mapping[str, Any], result: QueryResult, rows: list[Row]) -> bool:
    """Rejects invalid evidence; returns whether it contains figures."""
    columns = set(result.columns)
    if not rows:
        raise study.error(f"{path}.sql", "the query returns no rows, so there is no evidence")
    has_figures = "found" in columns
    if has_figures and not ("published" in columns or {"low", "high"} <= columns):
        raise study.error(f"{path}.sql", "found has nothing to compare with; add published, or low and high")
    if not has_figures and "holds" not in columns:
        raise study.error(
            f"{path}.sql", f"returns {', '.join(result.columns)}; must return found and published, or holds"
        )
    if has_figures and claim["tolerance"] is None:
        raise study.error(
            f"{path}.tolerance", "this key is missing; set the allowed difference from the published value"
        )
    needed = [name for name in ("found", "published", "low", "high", "holds") if name in columns]
    for number, row in enumerate(rows, 1):
        for name in needed:
            if row[name] is None:
                raise study.error(f"{path}.sql", f"row {number} ({_format_row(row)}) has no {name}")
            if name == "holds" and not isinstance(row[name], bool):
                raise study.error(f"{path}.sql", f"holds is {row[name]!r}; must be true or false")
    return has_figures


def _tolerance(study: Study, path: str, claim: Mapping[str, Any], key: str) -> Tolerance:
    tolerance = Tolerance.parse(claim[key])
    if tolerance is None:
        raise study.error(
            f"{path}.{key}",
            f"{claim[key]!r} is not a tolerance; use a percentage such as 5%, or an amount such as 6 points",
        )
    return tolerance


def _verdict(
    study: Study, path: str, claim: Mapping[str, Any], agrees: bool, ground: Grounds, was_chosen: bool
) -> Verdict:
    rests = ground.rests
    if claim["configured"] is not None and rests != Rests.RUNS:
        raise study.error(
            f"{path}.configured", f"its evidence contains no run and rests on {rests} anyway; remove the key"
        )
    if not agrees:
        if claim["contradicted"] is None:
            return Verdict.MISSED
        if rests == Rests.RUNS:
            raise study.error(
                f"{path}.contradicted",
                f"{claim['id']} rests on runs; a document is contradicted by its own figures or by physics alone",
            )
        return Verdict.CONTRADICTED
    for key in ("contradicted", "missing"):
        if claim[key] is not None:
            raise study.error(f"{path}.{key}", f"{claim['id']} agrees with the published figures; remove the key")
    match rests if ground.is_of_runs else ground.others:
        case Rests.PUBLISHED:
            return Verdict.ARITHMETIC
        case Rests.INPUTS:
            return Verdict.CONFIGURED
        case Rests.RUNS if was_chosen:
            return Verdict.FITTED
        case Rests.RUNS:
            return Verdict.PREDICTED if claim["configured"] is None else Verdict.CONFIGURED


def _evidence(claim: Mapping[str, Any], compared: Compared, ground: Grounds, chosen: Sequence[str]) -> str:
    """Returns figures and reasons, in words."""
    parts = [compared.describe()]
    if ground.rests == Rests.RUNS and not all(ground.rows):
        parts.append(f"{sum(ground.rows)} from runs")
    if claim["contradicted"] is not None:
        parts.append(claim["contradicted"])
    elif claim["missing"] is not None:
        parts.append(claim["missing"])
    elif not compared.agrees:
        parts.append("missed, without a stated reason")
    if claim["configured"] is not None:
        parts.append(f"stated by {claim['configured']}")
    if chosen:
        parts.append(f"tuned on it: {'; '.join(chosen)}")
    parts.append(claim["note"])
    return "; ".join(_one_line(part).rstrip(".") for part in parts if part)


def _one_line(text: str) -> str:
    """Joins the lines of a text in a study file."""
    return " ".join(text.split())


def _figures(rows: Sequence[Row], errors: Sequence[float], tolerance: Tolerance) -> str:
    if len(rows) == 1:
        row = rows[0]
        published = amount(row["published"]) if "published" in row else f"{amount(row['low'])} to {amount(row['high'])}"
        return f"{amount(row['found'])} against {published}"
    unit = tolerance.unit if tolerance.unit == "%" else f" {tolerance.unit}".rstrip()
    worst = max(errors, key=abs)
    return f"{len(rows)} figures, mean error {amount(mean(errors))}{unit}, worst {worst:+.3g}{unit}"


def _is_wrong_sign(row: Row) -> bool:
    return "published" in row and row["published"] * row["found"] < 0


def _format_row(row: Row) -> str:
    return ", ".join(f"{value}" for key, value in row.items() if key not in ("found", "published", "low", "high"))
