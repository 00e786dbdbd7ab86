"""What a report shows, told apart from how it is drawn: each figure is data with units, drawn by the page (web/) and by
matplotlib alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

Cell: TypeAlias = str | float | int | bool | None
Colour: TypeAlias = Literal["blue", "red", "green", "purple", "yellow", "cyan"]
Shape: TypeAlias = Literal["circle", "square", "triangle", "diamond", "cross", "down", "asterisk"]
Mark: TypeAlias = Literal["full", "open", "cross"]
"""How a point among many is drawn, by what is known of it."""


class InNotebook:
    """What notebooks show as the page does."""

    page: ClassVar[Callable[[Any], str]]
    """The page of a figure or report, which the package ``headstack.report`` sets: the page is drawn from figures."""

    def _repr_html_(self) -> str:
        return InNotebook.page(self)


@dataclass(frozen=True)
class Axis:
    """One axis: what it measures, with its unit."""

    label: str
    log: bool | None = None
    """Whether it is logarithmic; ``None`` leaves scale and unit to the data (``headstack.report.axes``)."""
    switch: bool = False
    """A reader of the page may switch between both kinds."""


@dataclass(frozen=True)
class Series:
    """One line, or one colour of bars."""

    name: str
    x: Sequence[float | None]
    """In the order in which the line is drawn: a saturation curve may bend back."""
    y: Sequence[float | None]
    """Where a published point has only one of x and y, the other is not known: a rule across the figure."""
    labels: Sequence[str] = ()
    """What stands beside each point, such as the requests outstanding; empty, or one for each."""
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    """The interval round each point, where it is known; empty, or one for each."""
    low_x: Sequence[float | None] = ()
    high_x: Sequence[float | None] = ()
    """Where along x its ends lie, if not at the points; empty, or one for each."""
    p99: Sequence[float | None] = ()
    """The 99th percentile where ``y`` is a mean: a thin line; empty, or one for each."""
    mark: tuple[float, float] | None = None
    """A point that is ringed: the knee of a saturation curve."""
    mark_at_most: bool = False
    """The knee is there or before: the point is the first of its curve."""
    published: bool = False
    """Points that somebody else measured: drawn as marks without a line."""
    marks: Sequence[Mark] = ()
    """Points alone, without a line between them, each with its mark; empty for a line, or one for each."""
    names: Sequence[str] = ()
    """What each point is of: told where it is pointed at; empty, or one for each."""
    thing: str = ""
    """What has the colour, such as a drive under several loads; the name itself where empty."""
    colour: Colour | None = None
    dash: int | None = None
    shape: Shape | None = None
    """How it is drawn; what is ``None`` is chosen by ``headstack.report.looks``."""


@dataclass(frozen=True)
class Limit:
    """What points are held against: a rule across the figure."""

    value: float
    """On the y axis."""
    label: str


@dataclass(frozen=True)
class Lines(InNotebook):
    """Figures over another: saturation curves, rates over position, warming over time, percentiles."""

    name: str
    """Short, of letters, digits and dashes, and its own within a section: the anchor in the page is named after it."""
    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    note: str = ""
    x_is_percentile: bool = False
    """The x axis runs over percentiles in nines: 50, 90, 99, 99.9."""
    limits: Sequence[Limit] = ()
    key: Sequence[tuple[Mark, str]] = ()
    """What the marks of points say, for the legend."""
    says: str = ""
    """What it shows, in a sentence that stands on top."""
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True)
class Bars(InNotebook):
    """Figures of things side by side, in groups; published ones stand beside ours."""

    name: str
    title: str
    y: Axis
    groups: Sequence[str]
    series: Sequence[Series]
    """``x`` is empty; one ``y`` for each group."""
    note: str = ""
    stacked: bool = False
    """The series of a group stand on each other: they are parts of a whole."""
    says: str = ""
    """What it shows, in a sentence that stands on top."""
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True)
class Grid(InNotebook):
    """Figures over two things that come in steps: drives by block sizes, gains in percent."""

    name: str
    title: str
    rows: Sequence[str]
    row_label: str
    columns: Sequence[str]
    column_label: str
    values: Sequence[Sequence[float | None]]
    """One for each row and column."""
    unit: str
    published: Sequence[Sequence[float | None]] = ()
    signed: bool = False
    """Coloured from a middle at 0, such as gains."""
    note: str = ""
    says: str = ""
    """What it shows, in a sentence that stands on top."""
    kind: Literal["grid"] = "grid"


@dataclass(frozen=True)
class Heat(InNotebook):
    """How much happened where and when: requests by place and time."""

    name: str
    title: str
    x: Axis
    x_range: tuple[float, float]
    y: Axis
    y_range: tuple[float, float]
    values: Sequence[Sequence[float]]
    """Rows from the lowest y; each from the lowest x."""
    unit: str
    note: str = ""
    says: str = ""
    """What it shows, in a sentence that stands on top."""
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
    """How cells are written, where figures have more digits than are known; empty, or one for each row."""
    says: str = ""
    """What it shows, in a sentence that stands on top."""
    kind: Literal["table"] = "table"


Figure: TypeAlias = Lines | Bars | Grid | Heat | Table


@dataclass(frozen=True)
class Claim:
    """Something that was published, and what came of it here."""

    id: str
    says: str
    verdict: str
    """``predicted``, ``fitted``, ``configured``, ``arithmetic``, ``missed``, ``contradicted`` or ``not testable``."""
    evidence: str
    """One or two sentences: figures, reasons, what is missing."""
    rows: Table | None = None
    """Published against found, row by row."""
    backing: tuple[tuple[str, str], ...] = ()
    """What speaks for it, each with what it is, such as ``("rests on", "runs")``."""


@dataclass(frozen=True)
class Section:
    """A heading with some text and figures."""

    title: str
    text: str = ""
    figures: Sequence[Figure] = ()


@dataclass(frozen=True)
class Provenance:
    """What a run needs to be made again."""

    system: str
    workload: str
    seed: int
    version: str
    description_hash: str
    description: str
    """The exact description of system and workload, as JSON; empty where an earlier run of the same hash has told it.
    A report holds equal ones once."""


@dataclass(frozen=True)
class Asked:
    """A run as it is asked for again, so that its curve can be varied (``results/explorer_queries.py``)."""

    system: str
    demand: str
    """A workload; empty where requests are of one size."""
    values: Mapping[str, str]
    """What was chosen: fields of the files and options of runs, the load and the length among them."""
    figures: Mapping[str, float]
    """What came of it: by these the points of figures are known."""
    described: Mapping[str, Any] | None = None
    """The exact description that the result states, where more than the question is known."""
    system_blueprint: Mapping[str, Any] | None = None
    demand_blueprint: Mapping[str, Any] | None = None
    """The files that they follow from, where these are known; else it is the catalogue's of their names."""
    refused: str = ""
    """Why it cannot be asked for again."""


@dataclass(frozen=True)
class Report(InNotebook):
    """A whole report."""

    title: str
    question: str
    summary: str
    """The answer: the first paragraph is its headline."""
    sections: Sequence[Section] = ()
    claims: Sequence[Claim] = ()
    runs: Sequence[Provenance] = ()
    version: str = ""
    sources: Sequence[str] = field(default=())
    """Where published figures come from."""
    remarks: str = ""
    """How it was found, and what that leaves unknown: told after the figures."""
    asked: Callable[[], Sequence[Asked]] = field(default=tuple, compare=False, repr=False)
    """The runs that figures are of, for a page that lets their curves be varied; gathered where one is written."""
