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
    of_all = [one for figure in drawn for one in figure.series if not one.published]
    things = {id(figure): [_thing(one, figure.series, of_all) for one in figure.series] for figure in drawn}
    numbers = _numbers(drawn, list(things.values()))
    return [
        replace(figure, series=_looked(figure.series, things[id(figure)], numbers))
        if isinstance(figure, Lines | Bars)
        else figure
        for figure in figures
    ]


def _thing(one: Series, beside: Sequence[Series], of_all: Sequence[Series]) -> str:
    """Returns the object that determines a series' colour; for a published one, the series it names, in this figure or
    another.
    """
    if one.thing or not one.published:
        return one.thing or one.name
    for among in ([other for other in beside if not other.published], of_all):
        stand = [our for our in among if re.search(rf"(?<!\w){re.escape(our.name)}(?!\w)", one.name)]
        if stand:
            longest = max(stand, key=lambda our: len(our.name))
            return longest.thing or longest.name
    return one.name


def _numbers(drawn: Sequence[Lines | Bars], things: Sequence[list[str]]) -> dict[str, int]:
    """Returns a number for each object, which selects its colour and first dash; a colour chosen by the author takes
    precedence.
    """
    beside: dict[str, set[str]] = {}
    for names in things:
        for name in names:
            beside.setdefault(name, set()).update(names)
    numbers: dict[str, int] = {}
    for figure, names in zip(drawn, things, strict=True):
        for one, name in zip(figure.series, names, strict=True):
            if one.colour is not None:
                numbers.setdefault(name, COLOURS.index(one.colour))
    for name in beside:
        if name in numbers:
            continue
        near = [numbers[other] for other in beside[name] if other in numbers]
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


def _looked(series: Sequence[Series], things: Sequence[str], numbers: dict[str, int]) -> list[Series]:
    """Returns the series of a figure with their looks; published ones get the shape of the series of the same name."""
    taken: set[tuple[int, int]] = set()
    looked: list[Series] = []
    for one, thing in zip(series, things, strict=True):
        colour, first = numbers[thing] % len(COLOURS), numbers[thing] // len(COLOURS)
        dash = first
        if not one.published:
            free = [at % DASHES for at in range(first, first + DASHES) if (colour, at % DASHES) not in taken]
            dash = free[0] if free else first
            taken.add((colour, dash))
        looked.append(
            replace(
                one,
                colour=one.colour or COLOURS[colour],
                dash=dash if one.dash is None else one.dash,
                shape=one.shape or SHAPES[(colour + dash - first) % len(SHAPES)],
            )
        )
    ours = [(other, thing) for other, thing in zip(looked, things, strict=True) if not other.published]
    return [
        replace(one, shape=_shape_of(one, thing, ours)) if one.published and given.shape is None else one
        for given, one, thing in zip(series, looked, things, strict=True)
    ]


def _shape_of(published: Series, thing: str, ours: Sequence[tuple[Series, str]]) -> Shape | None:
    """Returns the shape of the series of the same name, else of the first series of its object, else its own."""
    alike = [one for one, _ in ours if one.name == published.name] + [one for one, of in ours if of == thing]
    return alike[0].shape if alike else published.shape
