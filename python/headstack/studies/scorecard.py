"""The scorecard: every claim of the studies with its verdict, as Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from headstack.studies.claims import POINTS, Judged, Verdict
from headstack.studies.evidence import Rests
from headstack.studies.outcome import Outcome

HEAD = """# Scorecard

Look up a published result and how well headstack reproduces it. Run `headstack lab study scorecard` to repeat this
page, or, for example, `headstack lab study run compaq` for every figure of a study.

Read the verdict on a claim first. It depends on the basis of the figures, which headstack determines by computing every
study again with perturbed results: figures that do not change do not depend on a run.

- *Predicted*: runs agree within the tolerance, and no value in them was tuned on the claim. At least half of the
  claim's rows depend on runs; a claim with fewer is configured or arithmetic.
- *Fitted*: runs agree, but a value in them was tuned on the claim. See the list below the table for the value and its
  file, for example F1.
- *Configured*: an input of ours states it, such as a description, a workload or the selection of runs.
- *Arithmetic*: it follows from the document's own figures.
- *Missed*: a figure is outside the tolerance; the evidence gives the reason, if it is known.
- *Contradicted*: the document's own figures, or physics, contradict it.
- *Not testable*: something is missing, as stated. We never use figures of our own as published ones.

All rows of a claim count, also those of missed claims. Claims with four figures or more are compared with a constant
model: for each row, the mean of the published values in the others. The scorecard also counts the pairs of rows in the
published order.
"""


def scorecard(outcomes: Sequence[Outcome]) -> str:
    """Returns the scorecard of these studies."""
    parts = [HEAD, _in_short(outcomes), _verdicts(outcomes), _errors(outcomes)]
    parts += [_study(outcome) for outcome in outcomes]
    return "\n".join(parts)


def first_difference(file: Path, text: str) -> str | None:
    """Returns the first difference between a stored scorecard and a new one, in one line; ``None`` if they are
    equal."""
    written = file.read_text(encoding="utf-8") if file.is_file() else ""
    old, new = written.splitlines(), text.splitlines()
    for number, (was, now) in enumerate(zip(old, new, strict=False), 1):
        if was != now:
            return f"{file}:{number}: out of date: {was!r} is now {now!r}"
    if len(old) != len(new):
        return f"{file}: out of date: it has {len(old)} lines instead of {len(new)}"
    return None


def _verdicts(outcomes: Sequence[Outcome]) -> str:
    head = ["study", *map(str, Verdict), "claims", "rows", "agree"]
    counts = [[*outcome.verdicts().values(), len(outcome.claims), *outcome.rows()] for outcome in outcomes]
    rows = [[outcome.title, *map(str, counted)] for outcome, counted in zip(outcomes, counts, strict=True)]
    rows.append(["all", *(str(sum(column)) for column in zip(*counts, strict=True))])
    return markdown_table(head, rows, 1)


def _errors(outcomes: Sequence[Outcome]) -> str:
    """Counts figures of runs by result: all rows of claims, including missed ones."""
    claims = [claim for outcome in outcomes for claim in outcome.claims if claim.rests == Rests.RUNS]
    lines = ["## Errors\n", "Rows that depend on runs, of all claims with figures.\n"]
    head = ["figures", "number", "mean", "median", "worst", "wrong sign"]
    rows = []
    for unit, quantity in (("%", "relative error"), (POINTS, "speedups of one system over another, in points")):
        for verdict in (Verdict.PREDICTED, Verdict.FITTED, Verdict.MISSED):
            chosen = [claim for claim in claims if claim.unit == unit and claim.verdict == verdict and claim.errors]
            if chosen:
                rows.append([f"{quantity}: {verdict}", *_summary(chosen, unit)])
    lines += [markdown_table(head, rows, 1), _powers(claims)]
    return "\n".join(lines)


def _powers(claims: Sequence[Judged]) -> str:
    """Returns the results of a constant model, over all claims with four figures or more."""
    rows = []
    for verdict in (Verdict.PREDICTED, Verdict.FITTED, Verdict.MISSED):
        pairs = [(claim, claim.power) for claim in claims if claim.verdict == verdict and claim.power is not None]
        if not pairs:
            continue
        powers = [power for _, power in pairs]
        within = sum(sum(claim.within) for claim, _ in pairs)
        rows.append(
            [
                str(verdict),
                str(len(pairs)),
                str(sum(power.rows for power in powers)),
                str(within),
                str(sum(power.null_within for power in powers)),
                str(sum(power.mean > power.null_mean for power in powers)),
                f"{sum(power.pairs_right for power in powers)} of {sum(power.pairs for power in powers)}",
            ]
        )
    head = [
        *("four figures or more", "claims", "rows", "within"),
        *("constant within", "constant is closer in", "pairs in order"),
    ]
    return markdown_table(head, rows, 1)


def worse_than_constant(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """Returns the number of predicted claims with larger errors than a constant, and of all claims with enough figures
    to compare.
    """
    claims = [claim for outcome in outcomes for claim in outcome.claims if claim.verdict == Verdict.PREDICTED]
    powers = [claim.power for claim in claims if claim.power is not None]
    return sum(power.mean > power.null_mean for power in powers), len(powers)


def _in_short(outcomes: Sequence[Outcome]) -> str:
    """Summarizes the result in one line."""
    verdicts = [outcome.verdicts() for outcome in outcomes]
    predicted = sum(counted[Verdict.PREDICTED] for counted in verdicts)
    claims = sum(len(outcome.claims) for outcome in outcomes)
    worse, of = worse_than_constant(outcomes)
    constant = f"; of the {of} with four figures or more, {worse} have larger errors than a constant" if of else ""
    return f"**{predicted} of {claims} claims are predicted{constant}.**\n"


def _summary(claims: Iterable[Judged], unit: str) -> list[str]:
    errors = [abs(error) for claim in claims for error, ran in zip(claim.errors, claim.from_runs, strict=True) if ran]
    sign = "" if unit == POINTS else " %"
    figures = (math.fsum(errors) / len(errors), median(errors), max(errors))
    wrong = str(sum(claim.wrong_signs for claim in claims)) if unit == POINTS else ""
    return [str(len(errors)), *(f"{figure:.1f}{sign}" for figure in figures), wrong]


def _study(outcome: Outcome) -> str:
    lines = [f"## {outcome.title}\n", outcome.question, ""]
    if outcome.summary:
        lines += [outcome.summary.strip(), ""]
    fitted, reasons, choices = Legend("F"), Legend("T"), Legend("A")
    claims, evidence = [], []
    alike: dict[str, list[str]] = {}
    alternatives: dict[str, dict[bool, list[str]]] = {}
    for claim in outcome.claims:
        backing = dict(claim.backing)
        tuned, text = backing.get("tuned on it", ""), claim.evidence
        if tuned:
            keys = ", ".join(map(fitted.key, tuned.split("; ")))
            text = text.replace(f"tuned on it: {tuned}", f"fitted: {keys}")
        claims.append([claim.id, claim.says, str(claim.verdict), text])
        tolerance, colon, reason = backing.get("tolerance", "").partition(": ")
        constant = backing.get("compared with a constant", "").partition(", of a constant ")[2]
        tolerance += f" ({reasons.key(reason)})" if colon else ""
        if constant:
            evidence.append([claim.id, tolerance, _without_words(constant)])
        elif tolerance in alike:
            alike[tolerance][0] += f", {claim.id}"
        elif tolerance:
            alike[tolerance] = [claim.id, tolerance, ""]
            evidence.append(alike[tolerance])
        for each in claim.otherwise:
            key = choices.key(f"{each.other} ({each.open_choice})")
            alternatives.setdefault(key, {True: [], False: []})[each.agrees].append(claim.id)
    head = ["", "tolerance", "mean error of a constant, rows within, pairs in order"]
    lines += [
        markdown_table(["", "published", "verdict", "evidence"], claims, 4),
        *fitted.lines("Fitted values:"),
        "Claims with a tolerance:\n",
        markdown_table(head, evidence, len(head)),
        *reasons.lines("Reasons for the tolerances:"),
        *choices.lines("Alternatives, other choices where the document leaves one open:", alternatives),
    ]
    return "\n".join(lines)


def _without_words(constant: str) -> str:
    """Returns the figures of a constant without the words of the column's heading."""
    return re.sub(r" rows within\)| pairs in order", "", constant).replace(" (", ", ").replace(";", ",")


class Legend:
    """Keys for the long texts of a table, which a list under the table explains once."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._keys: dict[str, str] = {}

    def key(self, text: str) -> str:
        """Returns the key of a text, the same one for the same text."""
        return self._keys.setdefault(text, f"{self._prefix}{len(self._keys) + 1}")

    def lines(self, title: str, claims: Mapping[str, Mapping[bool, Sequence[str]]] | None = None) -> list[str]:
        """Returns the list in Markdown, with the claims that agree with a text or do not; nothing if it is empty."""
        items = {key: f"- {key}: {text}" for text, key in self._keys.items()}
        for key, ids in (claims or {}).items():
            for agrees, words in ((True, "agrees"), (False, "does not agree")):
                items[key] += f"; {words}: {', '.join(ids[agrees])}" if ids[agrees] else ""
        return [f"{title}\n", *items.values(), ""] if self._keys else []


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int) -> str:
    """Formats a table whose first columns are words."""
    sides = ["---" if column < words else "--:" for column in range(len(head))]
    return "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in (head, sides, *rows))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
