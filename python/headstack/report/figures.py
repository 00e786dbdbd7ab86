"""The content of reports as data with units, independent of rendering: the page (web/) and matplotlib draw the same
figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

Cell: TypeAlias = str | float | int | bool | None
Colour: TypeAlias = Literal["blue", "red", "green", "purple", "yellow", "cyan"]
Shape: TypeAlias = Literal["circle", "square", "triangle", "diamond", "cross", "down", "asterisk"]
Mark: TypeAlias = Literal["full", "open", "cross"]
"""How a point is drawn, which shows how much is known about it."""


class InNotebook:
    """An object that notebooks show as the page does."""

    page: ClassVar[Callable[[Any], str]]
    """Renders a figure or report as a page. The package ``headstack.report`` sets it, since the page is built from
    figures.
    """

    def _repr_html_(self) -> str:
        return InNotebook.page(self)


@dataclass(frozen=True)
class Axis:
    """One axis: its quantity and unit."""

    label: str
    log: bool | None = None
    """Whether it is logarithmic; ``None`` leaves scale and unit to the data (``headstack.report.axes``)."""
    switch: bool = False
    """Whether a reader of the page may switch between linear and logarithmic."""


@dataclass(frozen=True)
class Series:
    """One line, or one colour of bars."""

    name: str
    x: Sequence[float | None]
    """Values in the order in which the line is drawn: a saturation curve may bend back."""
    y: Sequence[float | None]
    """A published point with only one of x and y is drawn as a rule across the figure."""
    labels: Sequence[str] = ()
    """Labels next to the points, such as the queue depth; empty, or one for each."""
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    """Upper bounds of the interval around each point; empty if unknown."""
    low_x: Sequence[float | None] = ()
    high_x: Sequence[float | None] = ()
    """Positions of the interval's ends along x, if they differ from the points; empty, or one for each."""
    p99: Sequence[float | None] = ()
    """99th percentiles where ``y`` is a mean, drawn as a thin line; empty, or one for each."""
    mark: tuple[float, float] | None = None
    """The point to mark with a ring: the knee of a saturation curve."""
    mark_at_most: bool = False
    """Whether the knee is at this point or before it, since it is the first point of the curve."""
    published: bool = False
    """Whether the points were measured by others: they are drawn as markers without a line."""
    marks: Sequence[Mark] = ()
    """A marker for each point, drawn without a line between them; empty for a line."""
    names: Sequence[str] = ()
    """Names of the points, shown when the pointer is over them; empty, or one for each."""
    thing: str = ""
    """The object that has the colour, such as a drive under several loads; the series' name if empty."""
    colour: Colour | None = None
    dash: int | None = None
    shape: Shape | None = None
    """The shape of its markers; like the colour and the dash, ``None`` is filled in by ``headstack.report.looks``."""


@dataclass(frozen=True)
class Limit:
    """A limit that points are compared with: a rule across the figure."""

    value: float
    """Position on the y axis."""
    label: str


@dataclass(frozen=True)
class Lines(InNotebook):
    """Values over an axis: saturation curves, rates over position, warming over time, percentiles."""

    name: str
    """A short name of letters, digits and dashes, unique within a section: the anchor in the page."""
    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    note: str = ""
    x_is_percentile: bool = False
    """Whether the x axis shows percentiles by their nines: 50, 90, 99, 99.9."""
    limits: Sequence[Limit] = ()
    key: Sequence[tuple[Mark, str]] = ()
    """Meanings of the markers, for the legend."""
    says: str = ""
    """The headline: a sentence on top that states what the figure shows."""
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True)
class Bars(InNotebook):
    """Bars next to each other in groups, with published values next to ours."""

    name: str
    title: str
    y: Axis
    groups: Sequence[str]
    series: Sequence[Series]
    """Series with an empty ``x`` and one ``y`` per group."""
    note: str = ""
    stacked: bool = False
    """Whether the series of a group are stacked, as parts of a whole."""
    says: str = ""
    """The headline: a sentence on top that states what the figure shows."""
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True)
class Grid(InNotebook):
    """Values over two stepped quantities: drives by block sizes, speedups in percent."""

    name: str
    title: str
    rows: Sequence[str]
    row_label: str
    columns: Sequence[str]
    column_label: str
    values: Sequence[Sequence[float | None]]
    """One value for each row and column."""
    unit: str
    published: Sequence[Sequence[float | None]] = ()
    signed: bool = False
    """Whether colours diverge from 0, as for speedups."""
    note: str = ""
    says: str = ""
    """The headline: a sentence on top that states what the figure shows."""
    kind: Literal["grid"] = "grid"


@dataclass(frozen=True)
class Heat(InNotebook):
    """A density map: requests by place and time."""

    name: str
    title: str
    x: Axis
    x_range: tuple[float, float]
    y: Axis
    y_range: tuple[float, float]
    values: Sequence[Sequence[float]]
    """Rows from the lowest y, each from the lowest x."""
    unit: str
    note: str = ""
    says: str = ""
    """The headline: a sentence on top that states what the figure shows."""
    kind: Literal["heat"] = "heat"


@dataclass(frozen=True)
class Table(InNotebook):
    """Rows of figures and words."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    texts: Sequence[Sequence[str]] = ()
    """Texts of the cells where figures have more digits than are significant; empty, or one for each row."""
    says: str = ""
    """The headline: a sentence on top that states what the table shows."""
    kind: Literal["table"] = "table"


Figure: TypeAlias = Lines | Bars | Grid | Heat | Table


@dataclass(frozen=True)
class Claim:
    """A published claim and the result of checking it here."""

    id: str
    says: str
    verdict: str
    """``predicted``, ``fitted``, ``configured``, ``arithmetic``, ``missed``, ``contradicted`` or ``not testable``."""
    evidence: str
    """One or two sentences with figures, reasons and missing data."""
    rows: Table | None = None
    """Published and computed values, row by row."""
    backing: tuple[tuple[str, str], ...] = ()
    """Supporting evidence, each with its role, such as ``("rests on", "runs")``."""


@dataclass(frozen=True)
class Section:
    """A heading with text and figures."""

    title: str
    text: str = ""
    figures: Sequence[Figure] = ()


@dataclass(frozen=True)
class Provenance:
    """Everything needed to repeat a run."""

    system: str
    workload: str
    seed: int
    version: str
    description_hash: str
    description: str
    """The exact description of system and workload as JSON; empty if an earlier run of the same hash has it, so that a
    report holds equal descriptions once."""


@dataclass(frozen=True)
class RunInputs:
    """The inputs of a run, from which the page can recompute its curve (``results/explorer_queries.py``)."""

    system: str
    demand: str
    """The workload's name; empty if requests have a fixed size."""
    values: Mapping[str, str]
    """Chosen values: fields of the files and options of runs, including the load and the run length."""
    figures: Mapping[str, float]
    """Results of the run, which identify the points of figures."""
    described: Mapping[str, Any] | None = None
    """The exact description that the result states, if more than the inputs is known."""
    system_blueprint: Mapping[str, Any] | None = None
    demand_blueprint: Mapping[str, Any] | None = None
    """The files that the descriptions were completed from, if known; otherwise the catalogue's of the same names."""
    refused: str = ""
    """The reason why the run cannot be recomputed."""


@dataclass(frozen=True)
class Report(InNotebook):
    """A complete report."""

    title: str
    question: str
    summary: str
    """The answer; its first paragraph is the headline."""
    sections: Sequence[Section] = ()
    claims: Sequence[Claim] = ()
    runs: Sequence[Provenance] = ()
    version: str = ""
    sources: Sequence[str] = field(default=())
    """Sources of published figures."""
    remarks: str = ""
    """Method and limitations, printed after the figures."""
    inputs: Callable[[], Sequence[RunInputs]] = field(default=tuple, compare=False, repr=False)
    """The runs behind the figures, for a page that lets their curves be varied; collected only when such a page is
    written.
    """
