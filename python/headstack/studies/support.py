"""The evidence for a claim in words: for the scorecard, the report and ``headstack lab study show``."""

from __future__ import annotations

from collections.abc import Sequence

from headstack.studies.evidence import Grounds, Rests
from headstack.studies.power import Power, amount

SUPPORT_KINDS = ("basis", "tuned on it", "tolerance", "compared with a constant", "alternatives")
"""Kinds of evidence for a claim, in order of output; kinds without content are left out."""


def describe_support(
    ground: Grounds, chosen: Sequence[str], tolerance: str, power: Power | None, unit: str, otherwise: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Returns the evidence for a claim, by ``BACKING``."""
    texts = (
        _rests(ground),
        "; ".join(chosen),
        tolerance,
        _format_power(power, unit) if power is not None and ground.rests == Rests.RUNS else "",
        "; ".join(otherwise),
    )
    return tuple((kind, text) for kind, text in zip(SUPPORT_KINDS, texts, strict=True) if text)


def _rests(ground: Grounds) -> str:
    if ground.rests != Rests.RUNS or all(ground.rows):
        return str(ground.rests)
    return f"runs, in {sum(ground.rows)} of {len(ground.rows)} rows"


def _format_power(power: Power, unit: str) -> str:
    """Describes how a claim's figures differ from chance."""
    unit = unit if unit == "%" else f" {unit}".rstrip()
    order = f"; {power.pairs_right} of {power.pairs} pairs in order" if power.pairs else ""
    return (
        f"mean error {amount(power.mean)}{unit}, of a constant {amount(power.null_mean)}{unit} "
        f"({power.null_within} of {power.rows} rows within){order}"
    )
