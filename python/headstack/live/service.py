"""Types that describe an export, in the form of the compiled module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict


class Tls(TypedDict):
    """The encryption of connections; files are in PEM form."""

    certificate: str
    key: str
    client_ca: str | None
    required: bool


class Discard(TypedDict):
    """Discards all bytes except those of these ranges: first byte and length."""

    discard: list[tuple[int, int]]


class DataFile(TypedDict):
    """Keeps bytes in a sparse file that survives the server."""

    file: str


class AdoptedFile(TypedDict):
    """Keeps bytes in a file that no server has created."""

    adopted: str


Keeping = Literal["memory"] | Discard | DataFile | AdoptedFile


class ExportOptions(TypedDict):
    """The options of an export that do not depend on its system; see ``Serving``."""

    unix: list[str]
    socket_mode: int
    tcp: list[str]
    """``HOST:PORT``."""
    loopback: list[int]
    """Ports on loopback, of IPv4 and IPv6."""
    stdio: bool
    activated: bool
    fuse: str | None
    loops: bool
    ublk: bool
    tls: Tls | None
    keeping: Keeping
    speed: float
    realtime: bool
    memory_bytes: int | None
    floor_ns: int | None
    faults: str | None
    journal: str | None
    control: str | None
    metrics: str | None


class ServiceOptions(ExportOptions):
    """All options of an export."""

    part: tuple[int, int] | None
    """First byte and length of the part of the system that is exported."""
    seed: int


class Service(TypedDict):
    """An export: a simulated system, or a device of constant latency."""

    name: str
    system: Mapping[str, Any] | None
    """The description of a ``System``."""
    constant: tuple[int, int] | None
    """Latency in nanoseconds, and bytes."""
    options: ServiceOptions
