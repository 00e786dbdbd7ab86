"""Claims: published figures beside those found, and the verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headstack.results import Row
from headstack.studies.files import Study
from headstack.studies.tables import Found, Tables

PUBLISHED = ("published", "low", "high")

POINTS = "points"
"""The unit of gains: percent of one system's figure by which another's is larger."""


class Verdict(StrEnum):
    """What came of a claim."""

    REPRODUCED = "reproduced"
    FITTED = "reproduced with a fitted parameter"
    CONTRADICTED = "contradicted"
    NOT_REPRODUCIBLE = "not reproducible"


@dataclass(frozen=True)
class Tolerance:
    """How far a figure may be from the published one."""

    amount: float
    unit: str
    """``%`` of the published figure, else what the figures themselves are in."""

    @classmethod
    def parse(cls, text: str) -> Tolerance | None:
        """Of text such as ``5%`` or ``6 points``; ``None`` where it is neither."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%|[A-Za-z/]\S*)?", text.strip())
        return None if found is None else cls(float(found[1]), found[2] or "")

    def __str__(self) -> str:
        return f"{self.amount:g}{self.unit if self.unit == '%' else f' {self.unit}'.rstrip()}"

    def error(self, row: Row) -> float:
        """How far the figure found is from what was published, in this unit; within a published range it is 0."""
        low, high = (row["published"], row["published"]) if "published" in row else (row["low"], row["high"])
        found = row["found"]
        nearest = min(max(found, low), high)
        if self.unit != "%":
            return float(found - nearest)
        return 0.0 if found == nearest else float(100 * (found - nearest) / abs(nearest))


@dataclass(frozen=True)
class Judged:
    """What came of one claim."""

    id: str
    says: str
    verdict: Verdict
    evidence: str
    """Figures and reasons in words."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    """Published and found, row by row; the last column is the error where there is one."""
    errors: tuple[float, ...]
    """Of rows with figures, in ``unit``."""
    unit: str
    wrong_signs: int
    """Of rows in points: those whose gain is a loss here, or the other way round."""
    is_explained: bool
    """Rows that do not agree come with the reason, or there are none."""


def judge(study: Study, number: int, tables: Tables) -> Judged:
    """The verdict on a claim.

    Raises ``InputError`` where the claim's query fails or gives no evidence, and where the claim states that it is
    missed although its rows agree.
    """
    claim, path = study.claims[number], f"claims[{number}]"
    if claim["sql"] is None:
        return Judged(
            claim["id"],
            claim["says"],
            Verdict.NOT_REPRODUCIBLE,
            _one_line(claim["missing"]),
            (),
            (),
            (),
            "",
            0,
            is_explained=True,
        )
    found = tables.query(path, claim["sql"])
    rows = list(found.dicts())
    has_figures = _check(study, path, claim, found, rows)
    tolerance = _tolerance(study, path, claim, "tolerance") if has_figures else None
    mean = _tolerance(study, path, claim, "mean") if claim["mean"] is not None else None
    if tolerance is not None and tolerance.unit == "%" and any(0 in map(row.get, PUBLISHED) for row in rows):
        raise study.error(f"{path}.tolerance", "a percentage of a published 0 is 0; state an amount")
    errors = [] if tolerance is None else [tolerance.error(row) for row in rows]
    agrees = (
        all(row.get("holds", True) for row in rows)
        and (tolerance is None or all(abs(error) <= tolerance.amount * (1 + 1e-9) for error in errors))
        and (mean is None or _mean(errors) <= mean.amount)
    )
    verdict = _verdict(study, path, claim, agrees)
    unit = "" if tolerance is None else tolerance.unit
    columns = (*found.columns, *((f"error ({unit})" if unit else "error",) if errors else ()))
    shown = tuple((*row, error) for row, error in zip(found.rows, errors, strict=True)) if errors else tuple(found.rows)
    return Judged(
        id=claim["id"],
        says=claim["says"],
        verdict=verdict,
        evidence=_evidence(study, claim, rows, errors, tolerance, agrees),
        columns=columns,
        rows=shown,
        errors=tuple(errors),
        unit=unit,
        wrong_signs=sum(map(_is_wrong_sign, rows)) if unit == POINTS else 0,
        is_explained=agrees or claim["contradicted"] is not None or claim["missing"] is not None,
    )


def _check(study: Study, path: str, claim: Mapping[str, Any], found: Found, rows: list[Row]) -> bool:
    """Refuses evidence that is none; whether there are figures in it."""
    columns = set(found.columns)
    if not rows:
        raise study.error(f"{path}.sql", "the query gives no rows, so there is no evidence")
    has_figures = "found" in columns
    if has_figures and not ("published" in columns or {"low", "high"} <= columns):
        raise study.error(f"{path}.sql", "found has nothing beside it: published, or low and high, is needed")
    if not has_figures and "holds" not in columns:
        raise study.error(f"{path}.sql", f"gives {', '.join(found.columns)}; found and published, or holds, are needed")
    if has_figures and claim["tolerance"] is None:
        raise study.error(f"{path}.tolerance", "this key is missing: how far may what is found be from the published?")
    needed = [name for name in ("found", "published", "low", "high", "holds") if name in columns]
    for number, row in enumerate(rows, 1):
        for name in needed:
            if row[name] is None:
                raise study.error(f"{path}.sql", f"row {number} ({_told(row)}) has no {name}")
            if name == "holds" and not isinstance(row[name], bool):
                raise study.error(f"{path}.sql", f"holds is {row[name]!r}; true or false is allowed")
    return has_figures


def _tolerance(study: Study, path: str, claim: Mapping[str, Any], key: str) -> Tolerance:
    tolerance = Tolerance.parse(claim[key])
    if tolerance is None:
        raise study.error(
            f"{path}.{key}", f"{claim[key]!r} is not a tolerance; allowed: 5%, or an amount such as 6 points"
        )
    return tolerance


def _verdict(study: Study, path: str, claim: Mapping[str, Any], agrees: bool) -> Verdict:
    if agrees:
        for key in ("contradicted", "missing"):
            if claim[key] is not None:
                raise study.error(f"{path}.{key}", f"{claim['id']} agrees with what was published; leave the key out")
        return Verdict.REPRODUCED if claim["fitted"] is None else Verdict.FITTED
    return Verdict.NOT_REPRODUCIBLE if claim["contradicted"] is None else Verdict.CONTRADICTED


def _evidence(
    study: Study,
    claim: Mapping[str, Any],
    rows: Sequence[Row],
    errors: Sequence[float],
    tolerance: Tolerance | None,
    agrees: bool,
) -> str:
    """Figures and reasons, in words."""
    parts = []
    if tolerance is not None:
        parts.append(_figures(rows, errors, tolerance))
    elif len(rows) > 1:
        parts.append(f"{sum(row['holds'] for row in rows)} of {len(rows)} hold")
    if claim["contradicted"] is not None:
        parts.append(claim["contradicted"])
    elif claim["missing"] is not None:
        parts.append(claim["missing"])
    elif not agrees:
        parts.append("missed, and no reason is stated")
    if claim["fitted"] is not None:
        fitted = study.fitted[claim["fitted"]]
        parts.append(f"fitted: {fitted['what']}, on {fitted['on']}")
    if claim["note"]:
        parts.append(claim["note"])
    return "; ".join(_one_line(part).rstrip(".") for part in parts)


def _one_line(text: str) -> str:
    """Words of a study file, which may be written over several lines."""
    return " ".join(text.split())


def _figures(rows: Sequence[Row], errors: Sequence[float], tolerance: Tolerance) -> str:
    if len(rows) == 1:
        row = rows[0]
        published = amount(row["published"]) if "published" in row else f"{amount(row['low'])} to {amount(row['high'])}"
        return f"{amount(row['found'])} against {published}"
    unit = tolerance.unit if tolerance.unit == "%" else f" {tolerance.unit}".rstrip()
    worst = max(errors, key=abs)
    return f"{len(rows)} figures, mean error {amount(_mean(errors))}{unit}, worst {worst:+.3g}{unit}"


def amount(value: float) -> str:
    """A figure in three or four digits."""
    if value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def _mean(errors: Sequence[float]) -> float:
    return math.fsum(map(abs, errors)) / len(errors) if errors else 0.0


def _is_wrong_sign(row: Row) -> bool:
    return "published" in row and row["published"] * row["found"] < 0


def _told(row: Row) -> str:
    return ", ".join(f"{value}" for key, value in row.items() if key not in ("found", "published", "low", "high"))


def left_out(study: Study, name: str, outcomes: Mapping[str, Judged]) -> str:
    """How what was fitted does on the figures that were left out of it."""
    claims = [outcomes[claim] for claim in study.fitted[name]["left_out"]]
    errors = [error for claim in claims for error in claim.errors]
    units = {claim.unit for claim in claims if claim.errors}
    if not errors or len(units) > 1:
        return ""
    unit = units.pop()
    mean, worst = amount(_mean(errors)), max(errors, key=abs)
    return f"{len(errors)} figures left out of the fit: mean error {mean} {unit}, worst {worst:+.3g} {unit}"
