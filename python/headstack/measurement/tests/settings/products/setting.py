"""A setting of a product, with its line, its interval, the property behind it, and its source."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from headstack.measurement.tests.settings.benches import Place
from headstack.measurement.tests.settings.properties import Estimate, Properties, Property

Confidence = Literal["high", "medium", "low"]
"""Confidence in the formula: read in the product's documentation or source, seen in part or second-hand, or a rule of
thumb."""


@dataclass(frozen=True)
class Context:
    """The device, and the limits that formulas use in addition to properties."""

    properties: Properties
    place: Place
    is_disk: bool
    """True for a device with the latency of an HDD."""
    read_p99_ms: float | None = None
    """Limit of the 99th percentile of reads; ``None`` if there is none."""


@dataclass(frozen=True)
class Setting:
    """A setting with its value, or the reason why it is not known."""

    name: str
    figure: Estimate
    line: str
    """The line of the configuration, with ``{}`` for the value."""
    formula: str
    properties: tuple[Property, ...]
    default: str
    source: str
    confidence: Confidence
    trap: str = ""
    """A common error with this setting, in one sentence."""
    form: Callable[[float], str] = lambda value: str(significant(value))
    """Formats the value."""

    @property
    def value(self) -> str | None:
        """The value in the product's syntax; ``None`` if it is not known."""
        return None if self.figure.value is None else self.form(self.figure.value)

    @property
    def text(self) -> str:
        """The line to paste; a comment if the value is not known."""
        if self.value is not None:
            return self.line.format(self.value)
        bound = "" if self.figure.at_most is None else f"; at most {self.form(self.figure.at_most)}"
        return f"# {self.name}: not known{bound}"


@dataclass(frozen=True)
class Product:
    """A program or kernel part with its settings."""

    title: str
    file: str
    """The file or the shell that takes the lines."""
    needs: tuple[Property, ...]
    settings: Callable[[Context], list[Setting]]
    block: Callable[[Sequence[Setting], Context], list[str]] = lambda settings, _: [each.text for each in settings]
    """Returns the lines to paste."""


def significant(value: float) -> int:
    """Rounds a value of 1 or more to three significant digits, as a whole number.

    >>> from headstack.measurement.tests.settings.products.setting import significant
    >>> significant(21_549.7)
    21500
    """
    if value < 1:
        return round(value)
    digits = 2 - math.floor(math.log10(value))
    return round(round(value, digits))


def whole_up(value: float) -> str:
    """Formats a depth or a number of workers, rounded up, at least 1."""
    return str(max(1, math.ceil(value - 1e-9)))
