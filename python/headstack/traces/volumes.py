"""Volumes of a trace: their figures, and selection by figures."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from headstack._native import Field, InputError, current_column
from headstack.traces.trace_types import Volume

Facts = Mapping[str, object]
"""A volume by the names of ``FIELDS``."""

FIELDS = (
    Field("volume", "text", "", "name of the volume in the trace"),
    Field("requests", "count", "requests", "all requests"),
    Field("reads", "count", "requests", "reads"),
    Field("writes", "count", "requests", "writes"),
    Field("read_share", "figure", "", "reads over reads and writes"),
    Field("bytes", "count", "bytes", "bytes of all requests"),
    Field("read_bytes", "count", "bytes", "bytes of reads"),
    Field("written_bytes", "count", "bytes", "bytes of writes"),
    Field("footprint_bytes", "figure", "bytes", "bytes of the 4 KiB blocks touched"),
    Field("working_set_bytes", "figure", "bytes", "bytes of the 4 KiB blocks touched in ten minutes, on average"),
    Field("end_bytes", "count", "bytes", "end of the highest range touched"),
    Field("requests_per_s", "figure", "1/s", "requests per second over the duration of the trace"),
    Field("busiest_per_s", "count", "1/s", "maximum number of requests in a second"),
    Field("mean_latency_ns", "figure", "ns", "mean recorded latency"),
    Field("sampled_rate", "figure", "", "share of the blocks sampled for footprints; 1 if they are exact"),
)
"""The columns of a table of volumes."""

NAMES = tuple(field.name for field in FIELDS)
FIGURES = NAMES[1:]

COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
REFUSED = "must be comparisons of fields, such as 'requests>1e6 and read_share<0.2'"


def select_volumes(volumes: Iterable[Volume], where: str | None, top: int | None, by: str) -> list[Volume]:
    """Returns the volumes that meet ``where``, and of these the ``top`` volumes by ``by``, in descending order.

    Raises ``InputError`` for an unknown field or an invalid comparison.
    """
    selected = list(volumes)
    by = current_column(by)
    if by not in FIGURES:
        raise InputError(f"{by!r} is unknown; allowed: {', '.join(FIGURES)}", key="by")
    if where is not None:
        matches = condition(where)
        selected = [volume for volume in selected if matches(volume)]
    if top is not None:
        if top < 1:
            raise InputError(f"must be at least 1, not {top}", key="top")
        selected = sorted(selected, key=lambda volume: _figure(volume, by), reverse=True)[:top]
    return selected


def _figure(volume: Facts, by: str) -> float:
    """Returns the figure by which volumes are sorted; unknown figures come last."""
    value = volume[by]
    return float(value) if isinstance(value, int | float) else -1.0


def condition(text: str) -> Callable[[Facts], bool]:
    """Parses a condition such as ``requests>1e6 and not read_share<0.2``; an unknown figure meets no condition."""
    try:
        parsed = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise InputError(f"{REFUSED}, not {text!r}", key="select") from None
    return _condition(parsed, text)


def _condition(node: ast.expr, text: str) -> Callable[[Facts], bool]:
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = [_condition(value, text) for value in values]
            every = all if isinstance(op, ast.And) else any
            return lambda volume: every(part(volume) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _condition(operand, text)
            return lambda volume: not inner(volume)
        case ast.Compare(left=left, ops=ops, comparators=comparators) if all(type(op) in COMPARED for op in ops):
            sides = [_value(side, text) for side in (left, *comparators)]
            return lambda volume: _compare([side(volume) for side in sides], [COMPARED[type(op)] for op in ops])
    raise InputError(f"{REFUSED}, not {text!r}", key="select")


def _compare(values: Sequence[object], ops: list[Callable[[Any, Any], bool]]) -> bool:
    if any(value is None for value in values):
        return False
    try:
        return all(how(*pair) for how, pair in zip(ops, pairwise(values), strict=True))
    except TypeError:
        raise InputError("names are compared with texts in quotes, figures with numbers", key="select") from None


def _value(node: ast.expr, text: str) -> Callable[[Facts], object]:
    match node:
        case ast.Name(id=name):
            field = current_column(name)
            if field in NAMES:
                return lambda volume: volume[field]
            raise InputError(f"{name!r} is unknown; allowed: {', '.join(NAMES)}", key="select")
        case ast.Constant(value=int() | float() | str() as constant) if not isinstance(constant, bool):
            return lambda _: constant
    raise InputError(f"{REFUSED}, not {text!r}", key="select")
