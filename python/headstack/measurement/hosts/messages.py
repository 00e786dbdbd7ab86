"""Messages between a measurement and the agents on its hosts: JSON objects with one of the keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from headstack.measurement.jobfiles.phases import DiskUse
from headstack.measurement.specs import ProgressReport

Clocks = tuple[int, int, int]
"""A reading of two clocks, in ns: the monotonic clock, the time of day, and the monotonic clock again."""


class Hello(TypedDict):
    """The build of an agent."""

    protocol: int
    schema: int
    version: str


class HostRequest(TypedDict):
    """The measurement that a host runs."""

    access: Mapping[str, Any]
    """The fields of an ``Access``."""
    options: Mapping[str, list[str]]
    luns: Mapping[str, str]
    scenario: Mapping[str, Any] | None
    """The description of a ``Scenario``."""
    workloads: list[Mapping[str, Any]] | None
    """Descriptions of ``Workload``; ``None`` for the workload that the options define."""
    targets: list[str]
    file: Mapping[str, Any] | None
    """The fields of a ``JobFile``."""


class MeasuredRun(TypedDict):
    """A run that a host has measured."""

    began_ns: int
    """Start, by the host's monotonic clock."""
    labels: dict[str, str]
    whole: str
    """The result as JSON."""


class Over(TypedDict):
    """The end of a host's measurement."""

    remarks: list[str]
    stopped: str | None
    disks: list[DiskUse]


class Failure(TypedDict):
    """The error that ended a host's measurement."""

    kind: Literal["input", "run"]
    message: str


class ToAgent(TypedDict, total=False):
    """A message to an agent."""

    measure: HostRequest
    clock: Clocks
    start: int
    """Start time of a run, by the agent's clock."""
    end: bool
    alive: bool


class FromAgent(TypedDict, total=False):
    """A message from an agent."""

    hello: Hello
    clock: tuple[Clocks, Clocks, int]
    """The reading in the request, the agent's reading, and the agent's monotonic clock at its answer."""
    ready: bool
    progress: ProgressReport
    result: MeasuredRun
    over: Over
    failed: Failure
    alive: bool
