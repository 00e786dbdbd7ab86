"""What compares values with their types notices what it names."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

import pytest

from shapes import differences


class Reads(TypedDict):
    count: int
    mean_ms: float | None
    unit: NotRequired[Literal["ms", "us"]]


class Report(TypedDict):
    name: str
    reads: list[Reads]
    by_size: dict[str, float]


def report(**changes: Any) -> dict[str, Any]:
    return {"name": "x", "reads": [{"count": 1, "mean_ms": 2}], "by_size": {"4k": 1.5}} | changes


def test_values_of_the_type_differ_in_nothing() -> None:
    assert list(differences(report(), Report)) == []
    assert list(differences(report(reads=[{"count": 0, "mean_ms": None, "unit": "us"}]), Report)) == []


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"name": 1}, "value.name: int, not str"),
        ({"reads": {}}, "value.reads: dict, not list"),
        ({"reads": [{"count": True, "mean_ms": 1}]}, "value.reads[0].count: bool, not int"),
        ({"reads": [{"count": 1}]}, "value.reads[0].mean_ms: missing"),
        ({"reads": [{"count": 1, "mean_ms": 1, "more": 1}]}, "value.reads[0].more: not stated by Reads"),
        ({"reads": [{"count": 1, "mean_ms": "1"}]}, "value.reads[0].mean_ms: str, not float"),
        ({"reads": [{"count": 1, "mean_ms": 1, "unit": "s"}]}, "value.reads[0].unit: 's', not one of ('ms', 'us')"),
        ({"by_size": {"4k": "1"}}, "value.by_size['4k']: str, not float"),
        ({"by_size": []}, "value.by_size: list, not dict"),
    ],
)
def test_what_differs_is_named(changes: dict[str, Any], line: str) -> None:
    assert list(differences(report(**changes), Report)) == [line]
