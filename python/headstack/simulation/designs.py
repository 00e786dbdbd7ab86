"""``Design``: the points of a parameter space that a sweep runs."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from headstack import _native
from headstack._native import InputError
from headstack.io.tables import sql_type
from headstack.io.values import plain

SAMPLES = ("grid", "random", "sobol")

_NUMBER = r"[+-]?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"({_NUMBER}) ?([A-Za-z%][A-Za-z/%]*)?")
_RANGE = re.compile(rf"({_NUMBER}) ?([A-Za-z%/]*)\.\.({_NUMBER}) ?([A-Za-z%/]*)((?::[^:]*)*)")
_SIZES = ("B", *(f"{prefix}{unit}" for prefix in "KMGTP" for unit in ("B", "iB")))


@dataclass(frozen=True)
class Listed:
    """An axis with a list of values."""

    values: tuple[str, ...]

    def grid(self, field: str) -> list[str]:
        """Returns all values."""
        return list(self.values)

    def at(self, share: float) -> str:
        """Returns the value at a share (0 to 1) of the list."""
        return self.values[int(share * len(self.values))]

    @property
    def unit(self) -> str | None:
        """The common unit of all values, empty for plain numbers; ``None`` if they are not quantities of one unit."""
        matches = [_QUANTITY.fullmatch(value) for value in self.values]
        units = {match[2] or "" if match else None for match in matches}
        if len(units) > 1 or None in units:
            return None
        unit = units.pop()
        return None if sql_type(plain(value, unit) for value in self.values) == "varchar" else unit

    @property
    def sql_type(self) -> str:
        """The SQL type of the values without their unit."""
        unit = self.unit
        return "varchar" if unit is None else sql_type(plain(value, unit) for value in self.values)


@dataclass(frozen=True)
class Range:
    """An axis with all values from ``low`` to ``high``."""

    low: float
    high: float
    unit: str
    steps: int | None
    """Number of grid points."""
    log: bool
    """Whether grid points have equal ratios instead of equal differences."""
    whole: bool
    """Whether values are whole numbers."""

    @property
    def sql_type(self) -> str:
        """The SQL type of the values without their unit."""
        return "bigint" if self.whole else "double"

    def grid(self, field: str) -> list[str]:
        """Returns ``steps`` values including both ends. Raises ``InputError`` if no number of steps is given."""
        if self.steps is None:
            raise InputError(
                f"a grid needs steps; write {self._text(self.low)}..{self._text(self.high)}:5, "
                "or sample at random or by sobol",
                key=field,
            )
        shares = (step / (self.steps - 1) for step in range(self.steps))
        return list(dict.fromkeys(self._text(self._between(share)) for share in shares))

    def at(self, share: float) -> str:
        """Returns the value at a share (0 to 1, exclusive) of the range; each whole number has an equal share."""
        if self.whole and not self.log:
            return self._text(self.low + math.floor(share * (self.high - self.low + 1)))
        return self._text(self._between(share))

    def _between(self, share: float) -> float:
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)

    def _text(self, value: float) -> str:
        # Six digits exceed the precision of any drive's data, and are few enough to be read identically everywhere.
        number = str(round(value)) if self.whole else format(Decimal(f"{value:.6g}"), "f")
        return number + self.unit


Axis: TypeAlias = Listed | Range


def axis(field: str, text: str) -> Axis:
    """Parses the values of a field: a comma-separated list, or a range ``LOW..HIGH[:STEPS][:log]``. Raises
    ``InputError``.
    """
    match = _RANGE.fullmatch(text.strip())
    # Values of these fields are ranges themselves.
    if match is None or field == "range":
        # The bracket-aware split is only used if there are brackets: at each comma it scans the rest of the text.
        parts = re.split(r",(?![^\[{]*[\]}])", text) if re.search(r"[\[{]", text) else text.split(",")
        values = tuple(part.strip() for part in parts)
        if not all(values):
            raise InputError(f"an empty value in {text!r}", key=field)
        return Listed(values)
    low_text, low_unit, high_text, high_unit, after = match.groups()
    unit = low_unit or high_unit
    low, high = float(low_text), float(high_text) * _ratio(field, high_unit or unit, unit)
    steps, log = None, False
    for word in after.split(":")[1:]:
        if word == "log":
            log = True
        elif word.isdecimal() and int(word) >= 2:
            steps = int(word)
        else:
            raise InputError(f"{word!r} is unknown after a range; steps (2 or more) and log are allowed", key=field)
    if not low < high:
        raise InputError(f"the range {text} is empty; put the lower end first", key=field)
    if log and low <= 0:
        raise InputError("a range by ratios must begin above 0", key=field)
    whole = (unit == "" or unit in _SIZES) and all(re.fullmatch(r"[+-]?[\d_]+", end) for end in (low_text, high_text))
    return Range(low, high, unit, steps, log, whole)


def _ratio(field: str, unit: str, of: str) -> float:
    """Returns the ratio of two units."""
    if unit == of:
        return 1.0
    for parse in (_native.parse_bytes, _native.parse_duration_ns):
        try:
            return parse(f"1{unit}") / parse(f"1{of}")
        except InputError:
            continue
    raise InputError(f"a range from {of or 'a plain number'} to {unit}; both ends need one unit", key=field)


@dataclass(frozen=True)
class Design:
    """The points of a sweep, in order."""

    fields: tuple[str, ...]
    axes: tuple[Axis, ...]
    sample: str = "grid"
    points: int | None = None
    """Number of points, except for a grid."""
    seed: int | None = None
    """Seed of random points; for Sobol points it flips digits, and ``None`` leaves them as published."""

    def __post_init__(self) -> None:
        if self.sample not in SAMPLES:
            raise InputError(f"{self.sample!r} is unknown; allowed: {', '.join(SAMPLES)}", key="sample")
        if self.sample == "grid":
            if self.points is not None:
                raise InputError(
                    "the values determine the size of a grid; use points with random and sobol", key="points"
                )
        elif self.points is None or self.points < 1:
            raise InputError(f"{self.sample} needs a number of points, 1 or more", key="points")
        if self.sample == "sobol" and len(self.axes) > len(_DIRECTIONS) + 1:
            raise InputError(f"sobol varies {len(_DIRECTIONS) + 1} fields at most; random has no limit", key="sample")

    def __len__(self) -> int:
        if self.sample == "grid":
            return math.prod(len(values) for values in self._grid())
        assert self.points is not None
        return self.points

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """Yields the values of each point by field; in a grid, the last field varies fastest."""
        if self.sample == "grid":
            return itertools.product(*self._grid())
        shares = sobol(len(self.axes), self.seed) if self.sample == "sobol" else self._random()
        points = (tuple(axis.at(share) for axis, share in zip(self.axes, point, strict=True)) for point in shares)
        return itertools.islice(points, self.points)

    def _grid(self) -> list[list[str]]:
        return [axis.grid(field) for field, axis in zip(self.fields, self.axes, strict=True)]

    def _random(self) -> Iterator[list[float]]:
        # Mersenne Twister, whose random() is the same in all versions of Python.
        generator = random.Random(1 if self.seed is None else self.seed)
        while True:
            yield [generator.random() for _ in self.axes]


_BITS = 32

_DIRECTIONS = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
    (5, 11, (1, 1, 5, 1, 1)),
    (5, 13, (1, 1, 1, 3, 11)),
    (5, 14, (1, 3, 5, 5, 31)),
    (6, 1, (1, 3, 3, 9, 7, 49)),
    (6, 13, (1, 1, 1, 15, 21, 21)),
    (6, 16, (1, 3, 1, 13, 27, 49)),
    (6, 19, (1, 1, 1, 15, 7, 5)),
    (6, 22, (1, 3, 1, 15, 13, 25)),
    (6, 25, (1, 1, 5, 5, 19, 61)),
    (7, 1, (1, 3, 7, 11, 23, 15, 103)),
    (7, 4, (1, 3, 7, 13, 13, 15, 69)),
)
"""Degree, coefficients and initial direction numbers of the dimensions from the second on (Joe and Kuo, Constructing
Sobol sequences with better two-dimensional projections, 2008: new-joe-kuo-6.21201)."""


def sobol(dimensions: int, seed: int | None = None) -> Iterator[list[float]]:
    """Yields Sobol points in Gray code order, each coordinate in 0 to 1; a ``seed`` flips the same digits of all
    points.

    The first 2^k points, and each following 2^k, are more evenly spread than random ones.
    """
    numbers = [[1 << (_BITS - 1 - bit) for bit in range(_BITS)]]
    numbers += [_direction_numbers(*row) for row in _DIRECTIONS[: dimensions - 1]]
    generator = random.Random(seed)
    at = [0 if seed is None else generator.getrandbits(_BITS) for _ in numbers]
    for index in itertools.count():
        yield [digits / 2**_BITS for digits in at]
        lowest_zero = (~index & (index + 1)).bit_length() - 1
        at = [digits ^ by_bit[lowest_zero] for digits, by_bit in zip(at, numbers, strict=True)]


def _direction_numbers(degree: int, coefficients: int, initial: Sequence[int]) -> list[int]:
    """Computes the direction numbers of a dimension from its recurrence."""
    directions = [number << (_BITS - 1 - bit) for bit, number in enumerate(initial)]
    for bit in range(degree, _BITS):
        number = directions[bit - degree] ^ (directions[bit - degree] >> degree)
        for step in range(1, degree):
            if coefficients >> (degree - 1 - step) & 1:
                number ^= directions[bit - step]
        directions.append(number)
    return directions
