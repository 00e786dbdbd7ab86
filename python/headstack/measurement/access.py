"""How a target is reached, and what may be done to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headstack._native import InputError
from headstack.io.values import choice, duration_ns, size_bytes
from headstack.measurement.specs import Engine, ProgressReport, TargetSpec, ZoneSpec

ENGINES = ("auto", "ring", "psync")

NULL_BYTES = 1 << 40
"""The size of a target that stores nothing."""

SLOTS = 1024
"""Requests with the system at a time in an open loop; those that come when all are taken wait in the host."""

CONNECTIONS_MAX = 64
"""Connections of a thread to an export: more than servers have threads for."""

Progress = Callable[[ProgressReport], object]
"""Hears of the course of a measurement."""


@dataclass(frozen=True)
class Access:
    """Permission to write a target, and the way in which requests reach it."""

    write: bool = False
    """The workload writes; said by ``measure`` itself."""
    destroy: tuple[str, ...] = ()
    """Block devices whose contents may be lost, by name or serial number; exports, by address or name."""
    over: tuple[str, ...] = ()
    """Signatures that may be overwritten, such as ``ext4``."""
    create: str | None = None
    """The size that a file is to have, such as ``4GiB``: it is created where there is none."""
    overwrite: bool = False
    """A file that exists may be written."""
    buffered: bool = False
    """Through the page cache rather than past it."""
    engine: str = "auto"
    """``auto``, ``ring`` (io_uring) or ``psync`` (system calls, a thread for each request)."""
    threads: int = 1
    """Threads among which the requests outstanding, or the rate, are divided."""
    slots: int = SLOTS
    """Open loop: requests with the system at a time."""
    connections: int = 1
    """Connections of each thread to an export."""
    zoned: str | None = None
    """Zones are tended: ``device``, those of a zoned device; or a size, such as ``64MiB``, into which anything else is
    divided."""
    open_zones: int = 0
    """Zones that may be open at a time; 0 for as many as the device allows."""

    def asked(self, path: str) -> TargetSpec:
        """The target as the compiled part opens it.

        >>> hs.Access(buffered=True).asked("data.bin")["direct"]
        False
        """
        return {
            "path": path,
            "direct": not self.buffered,
            "write": self.write,
            "destroy": list(self.destroy),
            "signatures": list(self.over),
            "create_bytes": None if self.create is None else size_bytes("create", self.create),
            "overwrite": self.overwrite,
            "null_bytes": NULL_BYTES if is_null(path) else None,
            "connections": self._connections(),
        }

    def _connections(self) -> int:
        if not 1 <= self.connections <= CONNECTIONS_MAX:
            raise InputError(f"{self.connections} is not allowed; 1 to {CONNECTIONS_MAX} is", key="connections")
        return self.connections

    def zones(self) -> ZoneSpec | None:
        """The tending of zones; ``None`` where they are not tended.

        >>> hs.Access(zoned="64MiB", open_zones=8).zones()
        {'size_bytes': 67108864, 'open_max': 8}
        """
        if not 0 <= self.open_zones < 1 << 32:
            raise InputError(f"{self.open_zones} is not allowed; 0 to 4294967295 is", key="open_zones")
        if self.zoned is None:
            if self.open_zones:
                raise InputError("zones are not tended; zoned says that they are to be", key="open_zones")
            return None
        size = None if self.zoned == "device" else size_bytes("zoned", self.zoned)
        return {"size_bytes": size, "open_max": self.open_zones}

    def engine_of(self, path: str) -> Engine:
        """The engine that hands requests over to a target.

        >>> hs.Access(engine="psync").engine_of("data.bin")
        'psync'
        """
        engine = choice("engine", self.engine, ENGINES)
        if not is_null(path):
            return engine
        _, _, service = path.partition(":")
        service_ns = duration_ns("null", service) if service else 0
        if service_ns < 0:
            raise InputError(f"{path}: a service time of {service} is negative; 0s or longer is allowed")
        return {"null": {"service_ns": service_ns}}


def is_null(path: str) -> bool:
    """Whether this is the target that stores nothing: ``null``, or ``null:2ms`` with a service time."""
    return path == "null" or path.startswith("null:")
