"""Colours, dashes and shapes of series. An object keeps its colour in all figures of a report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from headstack.report.figures import Bars, Colour, Figure, Lines, Series, Shape

COLOURS: tuple[Colour, ...] = get_args(Colour)
SHAPES: tuple[Shape, ...] = get_args(Shape)[:6]
"""Shapes assigned here. An asterisk cannot be open or full; it is used only where an author chose it."""
DASHES = 4


def with_looks(figures: Sequence[Figure]) -> list[Figure]:
    """Returns the figures of a report with a colour, a dash and a shape for each series.

    Each object has one colour in all figures; different objects of a figure have different colours, up to six, and then
    different dashes. Series of the same object differ in dash and shape. Published series look like the series they
    belong to.
    """
    drawn = [figure for figure in figures if isinstance(figure, Lines | Bars)]
    ours = [series for figure in drawn for series in figure.series if not series.published]
    things = {id(figure): [_object_of(series, figure.series, ours) for series in figure.series] for figure in drawn}
    numbers = _number_objects(drawn, list(things.values()))
    return [
        replace(figure, series=_assign_looks(figure.series, things[id(figure)], numbers))
        if isinstance(figure, Lines | Bars)
        else figure
        for figure in figures
    ]


def _object_of(series: Series, same_figure: Sequence[Series], all_ours: Sequence[Series]) -> str:
    """Returns the object that determines a series' colour; for a published one, the series it names, in this figure or
    another.
    """
    if series.thing or not series.published:
        return series.thing or series.name
    for pool in ([other for other in same_figure if not other.published], all_ours):
        named = [
            candidate for candidate in pool if re.search(rf"(?<!\w){re.escape(candidate.name)}(?!\w)", series.name)
        ]
        if named:
            longest = max(named, key=lambda candidate: len(candidate.name))
            return longest.thing or longest.name
    return series.name


def _number_objects(drawn: Sequence[Lines | Bars], things: Sequence[list[str]]) -> dict[str, int]:
    """Returns a number for each object, which selects its colour and first dash; a colour chosen by the author takes
    precedence.
    """
    neighbours: dict[str, set[str]] = {}
    for names in things:
        for name in names:
            neighbours.setdefault(name, set()).update(names)
    numbers: dict[str, int] = {}
    for figure, names in zip(drawn, things, strict=True):
        for series, name in zip(figure.series, names, strict=True):
            if series.colour is not None:
                numbers.setdefault(name, COLOURS.index(series.colour))
    for name in neighbours:
        if name in numbers:
            continue
        near = [numbers[other] for other in neighbours[name] if other in numbers]
        near_colours = [number % len(COLOURS) for number in near]
        far_colours = [number % len(COLOURS) for number in numbers.values()]
        free = [number for number in range(len(COLOURS) * DASHES) if number not in near] or [0]
        numbers[name] = min(
            free,
            key=lambda number: (
                near_colours.count(number % len(COLOURS)),
                far_colours.count(number % len(COLOURS)),
                number,
            ),
        )
    return numbers


def _assign_looks(series: Sequence[Series], things: Sequence[str], numbers: dict[str, int]) -> list[Series]:
    """Returns the series of a figure with their looks; published ones get the shape of the series of the same name."""
    taken: set[tuple[int, int]] = set()
    looked: list[Series] = []
    for line, thing in zip(series, things, strict=True):
        colour, first = numbers[thing] % len(COLOURS), numbers[thing] // len(COLOURS)
        dash = first
        if not line.published:
            free = [at % DASHES for at in range(first, first + DASHES) if (colour, at % DASHES) not in taken]
            dash = free[0] if free else first
            taken.add((colour, dash))
        looked.append(
            replace(
                line,
                colour=line.colour or COLOURS[colour],
                dash=dash if line.dash is None else line.dash,
                shape=line.shape or SHAPES[(colour + dash - first) % len(SHAPES)],
            )
        )
    ours = [(other, thing) for other, thing in zip(looked, things, strict=True) if not other.published]
    return [
        replace(styled, shape=_shape_of(styled, thing, ours)) if styled.published and original.shape is None else styled
        for original, styled, thing in zip(series, looked, things, strict=True)
    ]


def _shape_of(published: Series, thing: str, ours: Sequence[tuple[Series, str]]) -> Shape | None:
    """Returns the shape of the series of the same name, else of the first series of its object, else its own."""
    alike = [other for other, _ in ours if other.name == published.name]
    alike += [other for other, object_ in ours if object_ == thing]
    return alike[0].shape if alike else published.shape
