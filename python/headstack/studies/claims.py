"""Claims: published figures beside those found, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headstack.results.table import Row
from headstack.studies.backing import backing
from headstack.studies.evidence import PUBLISHED, Grounds, Rests
from headstack.studies.power import Power, Tolerance, amount, mean
from headstack.studies.study import Study, query_of
from headstack.studies.tables import Found, Tables

POINTS = "points"
"""The unit of gains: percent of one system's figure by which another's is larger."""


class Verdict(StrEnum):
    """What came of a claim, by what its figures rest on."""

    PREDICTED = "predicted"
    """At least half of its rows are of runs, which agree, and nothing in them was chosen with the claim in view."""
    FITTED = "fitted"
    """The same where something was."""
    CONFIGURED = "configured"
    """An input of ours states it: a description, a workload, the choice of runs."""
    ARITHMETIC = "arithmetic"
    """It follows from the document's own figures."""
    MISSED = "missed"
    CONTRADICTED = "contradicted"
    """By the document itself, or by physics."""
    NOT_TESTABLE = "not testable"
    """Something is missing, which is said."""


@dataclass(frozen=True)
class Otherwise:
    """What comes of a claim when a choice that its document leaves open is made otherwise."""

    what: str
    """The choice as it was made."""
    other: str
    """What may as well be so."""
    evidence: str
    """Figures in words."""
    agrees: bool

    def __str__(self) -> str:
        told = f", {self.evidence}" if self.evidence else ""
        return f"{self.other} ({self.what}): {'agrees' if self.agrees else 'does not agree'}{told}"


@dataclass(frozen=True)
class Judged:
    """What came of one claim."""

    id: str
    says: str
    verdict: Verdict
    evidence: str
    """Figures and reasons in words."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    """Published and found, row by row; the last column is the error where there is one."""
    errors: tuple[float, ...] = ()
    """Of rows with figures, in ``unit``."""
    unit: str = ""
    within: tuple[bool, ...] = ()
    """Of each row, whether it agrees."""
    wrong_signs: int = 0
    """Of rows in points: those whose gain is a loss here, or the other way round."""
    is_explained: bool = True
    """Rows that do not agree come with the reason, or there are none."""
    rests: Rests | None = None
    """On what its figures rest; ``None`` without any."""
    from_runs: tuple[bool, ...] = ()
    """Of each row, whether results of simulations are in it."""
    chosen: tuple[str, ...] = ()
    """What was chosen with it in view, of what is in its runs."""
    tolerance: str = ""
    because: str = ""
    """Where the tolerance comes from."""
    power: Power | None = None
    """What its figures tell from chance, where there are enough."""
    otherwise: tuple[Otherwise, ...] = ()
    """What comes of it when choices that the document leaves open are made otherwise."""
    backing: tuple[tuple[str, str], ...] = ()
    """What speaks for it, in words, each with what it is."""


@dataclass(frozen=True)
class Compared:
    """Published figures beside those found."""

    found: Found
    rows: list[Row]
    tolerance: Tolerance | None
    """``None`` of evidence without figures."""
    errors: list[float]
    """Of each row, in the tolerance's unit."""
    within: list[bool]
    """Of each row."""
    agrees: bool
    """All rows do, and their mean where it has a tolerance of its own."""

    def told(self) -> str:
        """In words; nothing of one row that holds or does not."""
        if self.tolerance is not None:
            return _figures(self.rows, self.errors, self.tolerance)
        return f"{sum(row['holds'] for row in self.rows)} of {len(self.rows)} hold" if len(self.rows) > 1 else ""


def compare(study: Study, number: int, tables: Tables) -> Compared:
    """Carries out a claim's query. Raises ``InputError`` where it fails or gives no evidence."""
    claim, path = study.claims[number], f"claims[{number}]"
    found = tables.query(f"{path}.sql", query_of(claim))
    rows = list(found.dicts())
    has_figures = _check(study, path, claim, found, rows)
    tolerance = _tolerance(study, path, claim, "tolerance") if has_figures else None
    average = _tolerance(study, path, claim, "mean") if claim["mean"] is not None else None
    if tolerance is not None and tolerance.unit == "%" and any(0 in map(row.get, PUBLISHED) for row in rows):
        raise study.error(f"{path}.tolerance", "a percentage of a published 0 is 0; state an amount")
    errors = [] if tolerance is None else [tolerance.error(row) for row in rows]
    within = [row.get("holds", True) for row in rows]
    if tolerance is not None:
        allowed = tolerance.amount * (1 + 1e-9)
        within = [holds and abs(error) <= allowed for holds, error in zip(within, errors, strict=True)]
    agrees = all(within) and (average is None or mean(errors) <= average.amount)
    return Compared(found, rows, tolerance, errors, within, agrees)


def judge(
    study: Study,
    number: int,
    tables: Tables,
    ground: Grounds | None,
    chosen: Sequence[str],
    otherwise: Sequence[Otherwise],
) -> Judged:
    """The verdict on a claim. ``grounds_of`` tells what its evidence rests on, ``chosen_on`` what in that was chosen
    with it in view.

    Raises ``InputError`` where the claim's query fails or gives no evidence, and where the claim states that it is
    missed although its rows agree, or contradicted although runs of ours are all that speaks against it.
    """
    claim, path = study.claims[number], f"claims[{number}]"
    if claim["sql"] is None or ground is None:
        return Judged(claim["id"], claim["says"], Verdict.NOT_TESTABLE, _one_line(claim["missing"] or ""))
    compared = compare(study, number, tables)
    if ground.compares_runs:
        if claim["missing"] is None:
            message = "published holds results of our own runs; missing has to say what the document does not publish"
            raise study.error(f"{path}.sql", message)
        return Judged(claim["id"], claim["says"], Verdict.NOT_TESTABLE, _evidence(claim, compared, ground, ()))
    chosen = chosen if ground.rests == Rests.RUNS else ()
    verdict = _verdict(study, path, claim, compared.agrees, ground, bool(chosen))
    errors, tolerance = compared.errors, compared.tolerance
    unit = "" if tolerance is None else tolerance.unit
    columns, shown = compared.found.columns, compared.found.rows
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
        backing=backing(
            ground,
            chosen,
            f"{allowed}: {because}" if because else allowed,
            power,
            unit,
            [str(one) for one in otherwise],
        ),
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


def _verdict(
    study: Study, path: str, claim: Mapping[str, Any], agrees: bool, ground: Grounds, was_chosen: bool
) -> Verdict:
    rests = ground.rests
    if claim["configured"] is not None and rests != Rests.RUNS:
        raise study.error(f"{path}.configured", f"no run is in it, it rests on {rests} as it is; leave the key out")
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
            raise study.error(f"{path}.{key}", f"{claim['id']} agrees with what was published; leave the key out")
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
    """Figures and reasons, in words."""
    parts = [compared.told()]
    if ground.rests == Rests.RUNS and not all(ground.rows):
        parts.append(f"{sum(ground.rows)} of them of runs")
    if claim["contradicted"] is not None:
        parts.append(claim["contradicted"])
    elif claim["missing"] is not None:
        parts.append(claim["missing"])
    elif not compared.agrees:
        parts.append("missed, and no reason is stated")
    if claim["configured"] is not None:
        parts.append(f"stated by {claim['configured']}")
    if chosen:
        parts.append(f"chosen with it in view: {'; '.join(chosen)}")
    parts.append(claim["note"])
    return "; ".join(_one_line(part).rstrip(".") for part in parts if part)


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
    return f"{len(rows)} figures, mean error {amount(mean(errors))}{unit}, worst {worst:+.3g}{unit}"


def _is_wrong_sign(row: Row) -> bool:
    return "published" in row and row["published"] * row["found"] < 0


def _told(row: Row) -> str:
    return ", ".join(f"{value}" for key, value in row.items() if key not in ("found", "published", "low", "high"))
