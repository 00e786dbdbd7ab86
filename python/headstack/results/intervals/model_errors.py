"""`with_model_errors`: prediction intervals of runs, for the figures of the device that a model represents."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

from headstack import _native
from headstack.catalogue.options import Spec
from headstack.results.intervals import conformal
from headstack.results.intervals.calibration import FIGURES, STATE_HINTS, Learnt, Load, Refusal
from headstack.results.intervals.described import Described
from headstack.results.intervals.workloads import flash_state, load_of
from headstack.results.intervals.write_tails import write_tails

COLUMNS = {"rate": "iops", "mean": "mean_ms", "p50": "p50_ms", "p99": "p99_ms"}
"""The column of results for each figure."""

Field: TypeAlias = Literal["throughput_per_s", "mean_latency_ns", "p50_latency_ns", "p99_latency_ns"]
FIELDS: dict[str, tuple[Field, float]] = {
    "rate": ("throughput_per_s", 1.0),
    "mean": ("mean_latency_ns", 1e6),
    "p50": ("p50_latency_ns", 1e6),
    "p99": ("p99_latency_ns", 1e6),
}
"""Key of each figure in a whole result, and the factor from the unit of the column to the unit of the figure."""

SAMPLE_REQUESTS = 10_000
"""Maximum number of requests for which each description of a twin's sample is run; the means then vary by 0.5 %."""

DESCRIBED = "described"
"""The key of a specification's ``Described``, which `bare` removes for the compiled module."""

Runs = Callable[[list[Spec]], _native.Results]
"""A function that simulates specifications."""
Row: TypeAlias = Mapping[str, float | None]
"""The figures of a run, by the columns of results; other cells are not read."""


class Range(TypedDict):
    """The ends of a prediction interval."""

    low: float
    high: float


class ModelError(TypedDict):
    """The prediction intervals of a run, as stored in a whole result; ``None`` for a figure without one."""

    level: float
    """Share of devices within an interval, from 0 to 1; lower with fewer than nine measured devices."""
    learnt_from: str
    """The source of the intervals, and the reason for each missing interval."""
    throughput_per_s: Range | None
    """Throughput in IOPS."""
    mean_latency_ns: Range | None
    p50_latency_ns: Range | None
    p99_latency_ns: Range | None


def bare(spec: Spec) -> Spec:
    """Returns a specification in the form that the compiled module takes."""
    return {key: value for key, value in spec.items() if key != DESCRIBED}


def with_model_errors(results: _native.Results, specs: Sequence[Spec], run: Runs) -> _native.Results:
    """Returns the results with prediction intervals, for runs whose specifications describe the system. ``run`` also
    simulates members of a twin's sample, if the intervals depend on their spread."""
    if not any(DESCRIBED in spec for spec in specs):
        return results
    errors = model_errors(specs, [results[index] for index in range(len(results))], run)
    return results.with_model_errors(errors)


def model_errors(specs: Sequence[Spec], rows: Sequence[Row], run: Runs) -> list[ModelError | None]:
    """Returns the prediction intervals of each run, from its specification and the row of its result; ``None`` if the
    specification does not describe the system."""
    intervals = [_learned_intervals(spec, row) for spec, row in zip(specs, rows, strict=True)]
    members = [
        spec[DESCRIBED].sample
        if by_figure and any(isinstance(interval, Learnt) for interval in by_figure.values())
        else ()
        for spec, by_figure in zip(specs, intervals, strict=True)
    ]
    sampled = [
        shortened(bare(spec) | {"system": system}) for spec, own in zip(specs, members, strict=True) for system in own
    ]
    ran = run(sampled) if sampled else None
    at = 0
    errors: list[ModelError | None] = []
    for spec, row, by_figure, own in zip(specs, rows, intervals, members, strict=True):
        spread = spread_of([ran[number] for number in range(at, at + len(own))] if ran is not None else [])
        at += len(own)
        errors.append(None if by_figure is None else _model_error(spec, row, by_figure, spread))
    return errors


def columns_of(error: ModelError) -> dict[str, float | str | None]:
    """Returns the columns of results that contain prediction intervals, their level and their source."""
    ends = ends_of(error)
    level = error["level"] if any(end is not None for end in ends.values()) else None
    return {"model_level": level, "model_error": error["learnt_from"], **ends}


def ends_of(error: ModelError) -> dict[str, float | None]:
    """Returns the ends of prediction intervals by the columns of results."""
    columns: dict[str, float | None] = {}
    for figure, (field, units) in FIELDS.items():
        name, _, unit = COLUMNS[figure].partition("_")
        ends = error[field]
        for end, value in (("low", ends and ends["low"] / units), ("high", ends and ends["high"] / units)):
            columns["_".join(filter(None, (name, "model", end, unit)))] = value
    return columns


def _learned_intervals(spec: Spec, row: Row) -> dict[str, Learnt | Refusal] | None:
    """Returns the interval of each figure of a run; ``None`` if the specification does not describe the system."""
    described: Described | None = spec.get(DESCRIBED)
    if described is None:
        return None
    load = load_of(spec, row, described.mostly)
    if isinstance(load, Load) and not described.is_twin:
        load = load._replace(state=flash_state(load, spec))
    return learned_intervals(described, load)


def shortened(spec: Spec) -> Spec:
    """Returns a run that is just long enough to compare descriptions."""
    short = copy.deepcopy(spec) | {"interval_ns": None}
    if "workload" in short:
        requests = short["workload"].get("run_length", {}).get("requests", SAMPLE_REQUESTS)
        short["workload"]["run_length"] = {"requests": min(requests, SAMPLE_REQUESTS)}
    if "replay" in short:
        short["replay"]["requests_max"] = min(short["replay"]["requests_max"] or SAMPLE_REQUESTS, SAMPLE_REQUESTS)
        short["record"] = None
    return short


def spread_of(rows: Sequence[Row]) -> dict[str, float]:
    """Returns the standard deviation of each figure's logarithm over the descriptions of a sample; 0 for fewer than
    two.

    >>> from headstack.results.intervals.model_errors import spread_of
    >>> spread_of([])["mean"]
    0.0
    """
    deviations = {}
    for figure, column in COLUMNS.items():
        logarithms = [math.log(value) for row in rows if (value := row[column])]
        mean = sum(logarithms) / max(1, len(logarithms))
        squares = sum((logarithm - mean) ** 2 for logarithm in logarithms)
        deviations[figure] = math.sqrt(squares / max(1, len(logarithms)))
    return deviations


def _model_error(spec: Spec, row: Row, intervals: dict[str, Learnt | Refusal], spread: dict[str, float]) -> ModelError:
    """Returns the prediction intervals of a run, as stored in its whole result."""
    described: Described = spec[DESCRIBED]
    tails = write_tails(described.of_class, spec, row)
    error: ModelError = {
        "level": level_of(intervals) or conformal.LEVEL,
        "learnt_from": "; ".join([in_words(described, intervals), *([] if tails is None else [str(tails)])]),
        "throughput_per_s": None,
        "mean_latency_ns": None,
        "p50_latency_ns": None,
        "p99_latency_ns": None,
    }
    for figure, (field, units) in FIELDS.items():
        value, of_figure = row[COLUMNS[figure]], intervals[figure]
        if not isinstance(of_figure, Refusal) and value:
            apart = math.exp(of_figure.half_width(spread[figure]))
            error[field] = {"low": value / apart * units, "high": value * apart * units}
    return error


def learned_intervals(described: Described, load: Load | Refusal) -> dict[str, Learnt | Refusal]:
    """Returns the interval learned for each figure at a load, or the reason why there is none. All have one level, the
    highest of any figure, so that the intervals of a run mean the same; words state those of lower levels."""
    intervals = {figure: _learnt(described, load, figure) for figure in FIGURES}
    level = level_of(intervals)
    return {
        figure: Refusal(_format_interval(interval), interval)
        if isinstance(interval, Learnt) and level is not None and interval.level < level
        else interval
        for figure, interval in intervals.items()
    }


def _format_interval(interval: Learnt) -> str:
    """Formats an interval relative to the simulated value."""
    half = interval.half_width(0.0)
    ends = f"{100 * math.expm1(-half):.0f} to {100 * math.expm1(half):+.0f} %"
    return f"{ends} ({conformal.percent(interval.level)} interval, {interval.words})"


def level_of(intervals: Mapping[str, Learnt | Refusal]) -> float | None:
    """Returns the highest level of the intervals of a run; ``None`` without any."""
    return max((interval.level for interval in intervals.values() if isinstance(interval, Learnt)), default=None)


def _learnt(described: Described, load: Load | Refusal, figure: str) -> Learnt | Refusal:
    """Returns the interval learned for a figure at a load, or the reason why there is none."""
    if isinstance(load, Refusal):
        return load
    if described.is_twin and len(described.sample) < 2:
        return Refusal("the calibrated model has no sample of equally good descriptions")
    share = None if described.is_twin else described.stated_share
    own = described.scores.learnt(load, figure, share)
    wider = described.wider_scores
    if isinstance(own, Learnt) or wider is None:
        return own
    of_any = wider.learnt(load, figure, share)
    if isinstance(of_any, Refusal):
        return own
    is_hint = any(own.why.endswith(hint) for hint in STATE_HINTS.values())
    return of_any._replace(is_pooled=True, hint=own.why if is_hint else "")


def in_words(described: Described, intervals: dict[str, Learnt | Refusal]) -> str:
    """Returns a sentence with the devices from which the intervals are learned, and the reasons for missing
    intervals."""
    learned = [interval for interval in intervals.values() if isinstance(interval, Learnt)]
    refused = {figure: interval.why for figure, interval in intervals.items() if isinstance(interval, Refusal)}
    if not learned:
        assumed = f"; the latency of {' and '.join(described.assumed)} is not known, but assumed" * bool(
            described.assumed
        )
        return f"no interval: {'of calibrated models, ' * described.is_twin}{next(iter(refused.values()))}{assumed}"
    how = " and their calibrated models" if described.is_twin else ""
    groups: dict[str, list[str]] = {}
    for figure, interval in intervals.items():
        if isinstance(interval, Learnt):
            groups.setdefault(interval.words, []).append(figure)
    words, *others = groups
    level = conformal.percent(learned[0].level)
    parts = [f"{level} prediction intervals, learned from {words}{how}"]
    parts += [f"{', '.join(groups[other])} from {other}" for other in others]
    parts += [
        f"{figure}: {interval.why}"
        for figure, interval in intervals.items()
        if isinstance(interval, Refusal) and interval.interval is not None
    ]
    parts += dict.fromkeys(interval.hint for interval in learned if interval.hint)
    reasons: dict[str, list[str]] = {}
    for figure, interval in intervals.items():
        if isinstance(interval, Refusal) and interval.interval is None:
            reasons.setdefault(interval.why, []).append(figure)
    return "; ".join([*parts, *(f"no interval of {', '.join(figures)}: {why}" for why, figures in reasons.items())])
