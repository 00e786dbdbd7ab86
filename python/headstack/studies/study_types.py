"""Types of the parts of a study, as its file states them and the compiled module reads them."""

from __future__ import annotations

from typing import Literal, TypedDict

Setting = str | int | float | bool | list[str | int | float | bool]
"""A value of an option, or several that are swept."""


class Record(TypedDict):
    """Runs whose requests are recorded for replay."""

    system: str
    """The system on which they are recorded."""
    workloads: list[str]
    settings: dict[str, Setting]


class Grid(TypedDict):
    """Every system under every workload and combination of settings."""

    name: str
    """Name of the table."""
    kind: Literal["run", "replay", "predict"]
    systems: list[str]
    """Systems of the catalogue, parts of them, or files."""
    workloads: list[str]
    """Workloads and scenarios, likewise; empty if the settings define them."""
    settings: dict[str, Setting]
    """Options with a value, or a list of values that are swept."""
    record: Record | None
    """The trace to replay; for replays only."""
    within: list[str]
    """Response times at which the throughput of each curve is computed."""
    keep: list[Literal["intervals", "streams", "facts", "percentiles", "components"]]
    """Further tables."""


class Published(TypedDict):
    """A published table, each row of which is compared with a run."""

    file: str
    """In the folder of the study."""
    grid: str
    """The grid of the runs."""
    by: list[str]
    """Columns that identify the run, of the same name in both."""


class DerivedTable(TypedDict):
    """A query over other tables."""

    name: str
    """Name of the table."""
    title: str | None
    """A heading, if it is shown."""
    sql: str


_WithChoice = TypedDict("_WithChoice", {"what": str})  # noqa: UP013
"""The choice in words, with its value."""


class Chosen(_WithChoice):
    """A choice of the study that was tuned on published figures."""

    on: list[str]
    """Claims whose figures it was tuned on."""
    systems: list[str]
    """Systems whose runs it affects; all by default."""


class Other(_WithChoice):
    """An alternative to a choice."""

    names: dict[str, str]
    """Names of systems, workloads and drives as chosen, with those that replace them."""
    settings: dict[str, Setting]
    """Settings that are added to the grids', or replace them."""


class Open(_WithChoice):
    """A choice that the documents leave open."""

    grids: list[str]
    """The grids that run again with each alternative."""
    others: list[Other]
    on: list[str]
    """Claims that it may affect."""


class Claim(TypedDict):
    """A published statement, and how it is checked."""

    id: str
    """A short name."""
    says: str
    """The claim in words."""
    sql: str | None
    """A query for published figures and those found."""
    tolerance: str | None
    """Maximum difference of each: ``5%``, or an amount with its unit."""
    because: str | None
    """The source of the tolerance, if it differs from that of the study's other claims."""
    mean: str | None
    """Maximum mean difference."""
    configured: str | None
    """The input that states it, if results of runs only repeat it."""
    contradicted: str | None
    """The reason why the published figure cannot be right."""
    missing: str | None
    """The reason why it is not reproduced, or the miss and its cause."""
    note: str
    """A remark."""


class Picture(TypedDict):
    """A query and how it is drawn."""

    name: str
    """Name of the file."""
    title: str
    """A heading."""
    kind: Literal["lines", "bars", "grid", "heat", "table"]
    sql: str
    x_label: str
    """Label of the horizontal axis, with its unit."""
    y_label: str
    """Label of the vertical axis, with its unit."""
    log: str
    """Logarithmic axes: ``x``, ``y`` or ``xy``."""
    unit: str
    """Unit of the values of grids and heat maps."""
    signed: bool
    """Whether colours diverge from 0."""
    percentiles: bool
    """Whether the horizontal axis shows percentiles in nines."""
    note: str
    """A remark."""
