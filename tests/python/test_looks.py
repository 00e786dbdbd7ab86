"""How series of a report are told apart: one colour for one thing, colours for all eyes, published points."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from conftest import REPOSITORY
from headstack.report.draw import draw
from headstack.report.figures import Axis, Bars, Figure, Lines, Series
from headstack.report.looks import COLOURS, with_looks
from headstack.report.plots import COLOURS as ON_PAPER

AXES = (Axis("x"), Axis("y"))


def lines(name: str, *series: Series) -> Lines:
    return Lines(name, name, *AXES, series)


def named(name: str, published: bool = False, thing: str = "") -> Series:
    return Series(name, [1, 2], [3, 4], published=published, thing=thing)


def colours(figure: Figure) -> list[str | None]:
    assert isinstance(figure, Lines | Bars)
    return [one.colour for one in figure.series]


def test_a_thing_keeps_its_colour_through_a_report() -> None:
    first = lines("first", named("writes"), named("reads"))
    second = lines("second", named("mixes"), named("reads"), named("writes", published=True))
    third = Bars("third", "", AXES[1], ["a", "b"], [named("reads"), named("mixes"), named("others")])
    looked = with_looks([first, second, third])
    by_name: dict[str, set[str | None]] = {}
    for figure in looked:
        assert isinstance(figure, Lines | Bars)
        for one in figure.series:
            by_name.setdefault(one.name, set()).add(one.colour)
    assert all(len(found) == 1 for found in by_name.values()), by_name
    assert len(set.union(*by_name.values())) == 4
    # Alone, the third figure would begin with the first colour.
    assert colours(looked[2])[0] != COLOURS[0] == colours(with_looks([third])[0])[0]


def test_looks_that_are_there_stay_and_pictures_have_them() -> None:
    figures = [lines("first", named("a"), named("b")), lines("second", named("c"), named("b"))]
    looked = with_looks(figures)
    assert with_looks(looked) == looked
    second = looked[1]
    assert with_looks([second]) == [second]
    drawn = [line.get_color() for line in draw(second).axes[0].lines]
    assert drawn == [ON_PAPER[COLOURS.index(colour)] for colour in colours(second) if colour in COLOURS]


def test_what_was_published_looks_like_what_it_belongs_to() -> None:
    ours = [named("reads"), named("reads and writes"), named("disk, cached", thing="disk")]
    theirs = [
        named(name, published=True) for name in ("Table 1, reads", "HP's reads and writes", "disks", "disk, cached")
    ]
    (figure,) = with_looks([lines("one", *ours, *theirs)])
    assert isinstance(figure, Lines)
    reads, both, disk, of_reads, of_both, disks, of_disk = figure.series
    assert (of_reads.colour, of_reads.shape) == (reads.colour, reads.shape)
    assert (of_both.colour, of_both.shape) == (both.colour, both.shape)
    assert (of_disk.colour, of_disk.shape) == (disk.colour, disk.shape)
    assert disks.colour not in {reads.colour, both.colour, disk.colour}


def test_series_of_one_thing_differ_in_dash_and_more_things_than_colours_too() -> None:
    (figure,) = with_looks([lines("one", *(named(f"512n, {n}", thing="512n") for n in range(4)), named("512e"))])
    assert isinstance(figure, Lines)
    assert [one.dash for one in figure.series] == [0, 1, 2, 3, 0]
    assert len({one.shape for one in figure.series[:4]}) == 4
    assert len(set(colours(figure))) == 2
    (many,) = with_looks([lines("many", *(named(f"s{n}") for n in range(14)))])
    assert isinstance(many, Lines)
    assert len({(one.colour, one.dash) for one in many.series}) == 14
    assert len(set(colours(many))) == len(COLOURS)


def test_colours_of_authors_are_kept_and_given_to_nothing_else_beside_them() -> None:
    write = replace(named("write"), colour="green")
    figures = with_looks([lines("first", named("a"), named("b"), named("c")), lines("second", named("c"), write)])
    assert colours(figures[1])[1] == "green"
    assert "green" not in {*colours(figures[0]), colours(figures[1])[0]}


def test_bands_and_rules_are_drawn_where_they_are_known() -> None:
    ours = Series("a", [1, 2, 3, 4], [5, 6, 7, 8], low=[4, 5, None, 7], high=[6, 7, None, 9])
    rules = Series("a", [None, 3.5], [6.5, None], labels=["level", ""], published=True)
    axes = draw(lines("one", ours, rules)).axes[0]
    assert len(axes.patches) == 1
    drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]  # type: ignore[arg-type]
    assert ([4, 4], [7, 9]) in drawn
    assert ([0, 1], [6.5, 6.5]) in drawn
    assert ([3.5, 3.5], [0, 1]) in drawn
    assert "level" in {text.get_text() for text in axes.texts}


# Machado, Oliveira and Fernandes, A Physiologically-based Model for Simulation of Color Vision Deficiency, 2009: what
# is seen without one kind of cones, of linear red, green and blue.
EYES = {
    "all cones": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "no long": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no middle": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no short": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
LEAST = {"all cones": 40.0, "no long": 20.0, "no middle": 20.0, "no short": 18.0}
"""Differences in CIELAB; 2.3 is the least that is seen side by side."""


def lab(colour: str, eyes: str) -> tuple[float, float, float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    red, green, blue = (
        min(1.0, max(0.0, sum(share * part for share, part in zip(row, linear, strict=True)))) for row in EYES[eyes]
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (of ** (1 / 3) if of > 0.008856 else 7.787 * of + 16 / 116 for of in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def page_colours() -> dict[str, tuple[str, str]]:
    css = (REPOSITORY / "web" / "src" / "page.css").read_text(encoding="utf-8")
    return {name: (light, dark) for name, light, dark in re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", css)}


def test_paper_has_the_colours_of_the_page() -> None:
    of_page = page_colours()
    assert tuple(of_page[name][0] for name in COLOURS) == ON_PAPER


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_are_told_apart_by_all_eyes(theme: int, eyes: str) -> None:
    of_page = page_colours()
    seen = {name: lab(of_page[name][theme], eyes) for name in (*COLOURS, "ground")}
    for one, other in itertools.combinations(seen, 2):
        apart = sum((a - b) ** 2 for a, b in zip(seen[one], seen[other], strict=True)) ** 0.5
        assert apart > LEAST[eyes], f"{one} and {other}: {apart:.0f}"
