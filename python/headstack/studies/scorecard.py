"""The scorecard: every claim of the studies with its verdict, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from headstack.studies.claims import POINTS, Judged, Verdict
from headstack.studies.outcome import Outcome

HEAD = """# Scorecard

What was published, and what headstack makes of it. Written by `headstack study scorecard`; the tests fail when a
figure here is not what the studies give.

*Reproduced*: every figure lies within the tolerance that the study states, and nothing was fitted to it. *Reproduced
with a fitted parameter*: the same, but for what was fitted, which is named with the figures it was fitted on.
*Contradicted*: what was published cannot be right, for the reason given. *Not reproducible*: something is missing, or
the figures miss; both are said.
"""


def scorecard(outcomes: Sequence[Outcome]) -> str:
    """The scorecard of these studies."""
    parts = [HEAD, _verdicts(outcomes), _errors(outcomes)]
    parts += [_study(outcome) for outcome in outcomes]
    return "\n".join(parts)


def first_difference(file: Path, text: str) -> str | None:
    """Where a scorecard that was written differs from a fresh one, in one line; ``None`` where it does not."""
    written = file.read_text(encoding="utf-8") if file.is_file() else ""
    old, new = written.splitlines(), text.splitlines()
    for number, (was, now) in enumerate(zip(old, new, strict=False), 1):
        if was != now:
            return f"{file}:{number}: is no longer current: {was!r} is now {now!r}"
    if len(old) != len(new):
        return f"{file}: is no longer current: it has {len(old)} lines, {len(new)} are needed"
    return None


def _verdicts(outcomes: Sequence[Outcome]) -> str:
    head = ["study", *map(str, Verdict), "claims"]
    rows = [[outcome.title, *map(str, outcome.verdicts().values()), str(len(outcome.claims))] for outcome in outcomes]
    sums = [sum(outcome.verdicts()[verdict] for outcome in outcomes) for verdict in Verdict]
    rows.append(["all", *map(str, sums), str(sum(sums))])
    return _table(head, rows, 1)


def _errors(outcomes: Sequence[Outcome]) -> str:
    """Figures of all claims by how they came out: those within their tolerance, and those that miss it."""
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    lines = ["## How far apart\n"]
    head = ["figures", "number", "mean", "median", "worst", "wrong sign"]
    rows = []
    for unit, what in (("%", "relative error"), (POINTS, "gains of one system over another, in points")):
        for verdict in (Verdict.REPRODUCED, Verdict.FITTED, Verdict.NOT_REPRODUCIBLE):
            chosen = [claim for claim in claims if claim.unit == unit and claim.verdict == verdict and claim.errors]
            if chosen:
                rows.append([f"{what}: {verdict}", *_summary(chosen, unit)])
    lines.append(_table(head, rows, 1))
    return "\n".join(lines)


def _summary(claims: Iterable[Judged], unit: str) -> list[str]:
    errors = [abs(error) for claim in claims for error in claim.errors]
    sign = "" if unit == POINTS else " %"
    figures = (math.fsum(errors) / len(errors), median(errors), max(errors))
    wrong = str(sum(claim.wrong_signs for claim in claims)) if unit == POINTS else ""
    return [str(len(errors)), *(f"{figure:.1f}{sign}" for figure in figures), wrong]


def _study(outcome: Outcome) -> str:
    lines = [f"## {outcome.title}\n", outcome.question, ""]
    if outcome.summary:
        lines += [outcome.summary.strip(), ""]
    rows = [[claim.id, claim.says, str(claim.verdict), claim.evidence] for claim in outcome.claims]
    lines.append(_table(["", "published", "verdict", "evidence"], rows, 4))
    left_out = [f"- {name}: {text}" for name, text in outcome.left_out.items() if text]
    if left_out:
        lines += ["Fitted parameters on what was left out of the fit:\n", *left_out, ""]
    return "\n".join(lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int) -> str:
    """A table whose first columns are words."""
    sides = ["---" if column < words else "--:" for column in range(len(head))]
    return "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in (head, sides, *rows))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
