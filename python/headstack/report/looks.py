"""How series are told apart: by colour, dash and shape. A thing keeps its colour through all figures of a report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from headstack.report.figures import Bars, Colour, Figure, Lines, Series, Shape

COLOURS: tuple[Colour, ...] = get_args(Colour)
SHAPES: tuple[Shape, ...] = get_args(Shape)[:6]
"""Of those that are chosen here. An asterisk has no inside to be open or full: it is drawn where authors drew it."""
DASHES = 4


def with_looks(figures: Sequence[Figure]) -> list[Figure]:
    """The figures of a report with a colour, a dash and a shape for each series.

    Each thing has one colour in all figures; things of one figure have different ones, up to six, and then different
    dashes. Of one thing, series differ in dash and shape. What was published looks like what it belongs to.
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
    """What has the colour of a series: of a published one, what it names, in its own figure or in another."""
    if one.thing or not one.published:
        return one.thing or one.name
    for among in ([other for other in beside if not other.published], of_all):
        stand = [our for our in among if re.search(rf"(?<!\w){re.escape(our.name)}(?!\w)", one.name)]
        if stand:
            longest = max(stand, key=lambda our: len(our.name))
            return longest.thing or longest.name
    return one.name


def _numbers(drawn: Sequence[Lines | Bars], things: Sequence[list[str]]) -> dict[str, int]:
    """A number for each thing, which says its colour and its first dash; where authors gave it a colour, that one."""
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
    """The series of one figure with their looks; published ones with the shape of their namesake."""
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
    """That of its namesake, else of the first of its thing, else its own."""
    alike = [one for one, _ in ours if one.name == published.name] + [one for one, of in ours if of == thing]
    return alike[0].shape if alike else published.shape
