"""Intervals of runs: what a device would do where a model says so much, as often as the level says."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

from headstack import _native
from headstack.catalogue.options import Spec
from headstack.results.intervals import conformal
from headstack.results.intervals.calibration import CLASSES, FIGURES, Learnt, Load, Refusal
from headstack.results.intervals.described import Described
from headstack.results.intervals.workloads import load_of

COLUMNS = {"rate": "iops", "mean": "mean_ms", "p50": "p50_ms", "p99": "p99_ms"}
"""The columns of results that figures stand in."""

Field: TypeAlias = Literal["throughput_per_s", "mean_response_ns", "p50_response_ns", "p99_response_ns"]
FIELDS: dict[str, tuple[Field, float]] = {
    "rate": ("throughput_per_s", 1.0),
    "mean": ("mean_response_ns", 1e6),
    "p50": ("p50_response_ns", 1e6),
    "p99": ("p99_response_ns", 1e6),
}
"""The keys of a whole result, and how many of its units are one of the column's."""

SAMPLE_REQUESTS = 10_000
"""Requests that each description of a twin's sample is run for, at most: their means then stray by half a percent."""

DESCRIBED = "described"
"""The key of a specification that has a ``Described``; the compiled part is not told."""

Runs = Callable[[list[Spec]], _native.Results]
"""Carries out specifications."""
Row: TypeAlias = Mapping[str, float | None]
"""The figures of a run, by the columns of results; other cells are not read."""


class Range(TypedDict):
    """The ends of the interval that a figure of a device lies in."""

    low: float
    high: float


class ModelError(TypedDict):
    """How far a model may be from a device, as a whole result has it; ``None`` where that is not known."""

    level: float
    """The share of devices for which an interval holds, 0 to 1."""
    learnt_from: str
    """The source of the intervals, and why a figure without one has none."""
    throughput_per_s: Range | None
    """Requests completed a second."""
    mean_response_ns: Range | None
    p50_response_ns: Range | None
    p99_response_ns: Range | None


def bare(spec: Spec) -> Spec:
    """A specification as the compiled part takes it."""
    return {key: value for key, value in spec.items() if key != DESCRIBED}


def with_model_errors(results: _native.Results, specs: Sequence[Spec], run: Runs) -> _native.Results:
    """The results, each with how far its model may be from the device, where its specification says how the system is
    described. Where that matters, some of a twin's sample are ``run`` as well."""
    if not any(DESCRIBED in spec for spec in specs):
        return results
    told = model_errors(specs, [results[index] for index in range(len(results))], run)
    return results.with_model_errors(told)


def model_errors(specs: Sequence[Spec], rows: Sequence[Row], run: Runs) -> list[ModelError | None]:
    """The error of the model in each run, whose result has this row; ``None`` where its specification does not say
    how the system is described."""
    known = [_known(spec, row) for spec, row in zip(specs, rows, strict=True)]
    members = [
        spec[DESCRIBED].sample if found and any(isinstance(one, Learnt) for one in found.values()) else ()
        for spec, found in zip(specs, known, strict=True)
    ]
    sampled = [shortened(bare(spec) | {"system": one}) for spec, own in zip(specs, members, strict=True) for one in own]
    ran = run(sampled) if sampled else None
    at = 0
    told: list[ModelError | None] = []
    for spec, row, found, own in zip(specs, rows, known, members, strict=True):
        spread = spread_of([ran[number] for number in range(at, at + len(own))] if ran is not None else [])
        at += len(own)
        told.append(None if found is None else _told(spec[DESCRIBED], row, found, spread))
    return told


def columns_of(told: ModelError) -> dict[str, float | str | None]:
    """The columns of results that a model's error fills."""
    return {"model_error": told["learnt_from"], **ends_of(told)}


def ends_of(told: ModelError) -> dict[str, float | None]:
    """The ends of the intervals of a model's error, by the columns of results."""
    columns: dict[str, float | None] = {}
    for figure, (field, units) in FIELDS.items():
        name, _, unit = COLUMNS[figure].partition("_")
        ends = told[field]
        for end, value in (("low", ends and ends["low"] / units), ("high", ends and ends["high"] / units)):
            columns["_".join(filter(None, (name, "model", end, unit)))] = value
    return columns


def _known(spec: Spec, row: Row) -> dict[str, Learnt | Refusal] | None:
    """The model's error in each figure of a run; ``None`` where the specification has no description."""
    one: Described | None = spec.get(DESCRIBED)
    if one is None:
        return None
    load = load_of(spec, row, one.mostly)
    return {figure: learnt(one, load, figure) for figure in FIGURES}


def shortened(spec: Spec) -> Spec:
    """A run that ends after enough requests to see how far descriptions are apart."""
    short = copy.deepcopy(spec) | {"interval_ns": None}
    if "workload" in short:
        requests = short["workload"].get("run_length", {}).get("requests", SAMPLE_REQUESTS)
        short["workload"]["run_length"] = {"requests": min(requests, SAMPLE_REQUESTS)}
    if "replay" in short:
        short["replay"]["requests_max"] = min(short["replay"]["requests_max"] or SAMPLE_REQUESTS, SAMPLE_REQUESTS)
        short["record"] = None
    return short


def spread_of(rows: Sequence[Row]) -> dict[str, float]:
    """The deviation of the logarithm of each figure over the descriptions of a sample; 0 for fewer than two of them.

    >>> from headstack.results.intervals.of_runs import spread_of
    >>> spread_of([])["mean"]
    0.0
    """
    found = {}
    for figure, column in COLUMNS.items():
        logarithms = [math.log(value) for row in rows if (value := row[column])]
        mean = sum(logarithms) / max(1, len(logarithms))
        squares = sum((one - mean) ** 2 for one in logarithms)
        found[figure] = math.sqrt(squares / max(1, len(logarithms)))
    return found


def _told(described: Described, row: Row, found: dict[str, Learnt | Refusal], spread: dict[str, float]) -> ModelError:
    """The error of a run's model, as its whole result has it."""
    told: ModelError = {
        "level": conformal.LEVEL,
        "learnt_from": in_words(described, found),
        "throughput_per_s": None,
        "mean_response_ns": None,
        "p50_response_ns": None,
        "p99_response_ns": None,
    }
    for figure, (field, units) in FIELDS.items():
        value, of_figure = row[COLUMNS[figure]], found[figure]
        if not isinstance(of_figure, Refusal) and value:
            apart = math.exp(of_figure.half_width(spread[figure]))
            told[field] = {"low": value / apart * units, "high": value * apart * units}
    return told


def learnt(described: Described, load: Load | Refusal, figure: str) -> Learnt | Refusal:
    """The model's error in a figure, or why it is not known."""
    if isinstance(load, Refusal):
        return load
    if described.is_twin and len(described.sample) < 2:
        return Refusal("the calibrated model has no sample of equally good descriptions")
    share = None if described.is_twin else described.stated_share
    return described.scores.learnt(load, figure, share)


def in_words(described: Described, found: dict[str, Learnt | Refusal]) -> str:
    """From how many devices the intervals are learnt, and why some figures have none."""
    known = [one for one in found.values() if isinstance(one, Learnt)]
    refused = {figure: one.why for figure, one in found.items() if isinstance(one, Refusal)}
    if not known:
        return f"no interval: {'of calibrated models, ' * described.is_twin}{next(iter(refused.values()))}"
    fewest = min(known, key=lambda one: one.devices)
    when = "" if fewest.years is None else f" of {fewest.years[0]} to {fewest.years[1]}"
    devices = CLASSES[described.of_class][fewest.devices != 1]
    how = " and their calibrated models" if described.is_twin else ""
    said = f"90 % prediction intervals, learned from {fewest.devices} {devices}{when}{how}"
    reasons: dict[str, list[str]] = {}
    for figure, why in refused.items():
        reasons.setdefault(why, []).append(figure)
    return "; ".join([said, *(f"no interval of {', '.join(figures)}: {why}" for why, figures in reasons.items())])
