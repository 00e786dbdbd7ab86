"""``Access``: how requests reach a target, and which writes are permitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headstack._native import InputError
from headstack.io.values import choice, duration_ns, size_bytes
from headstack.measurement.specs import Engine, ProgressReport, TargetSpec, ZoneSpec

ENGINES = ("auto", "ring", "psync")

NULL_BYTES = 1 << 40
"""Size of the null target, which stores nothing, in bytes."""

SLOTS = 1024
"""Maximum queue depth of an open loop; further requests wait in the host."""

CONNECTIONS_MAX = 64
"""Maximum number of connections of a thread to an export; more than any server's thread pool."""

Progress = Callable[[ProgressReport], object]
"""Called with the progress of a measurement."""


@dataclass(frozen=True)
class Access:
    """Permissions to write a target, and the way in which requests reach it."""

    write: bool = False
    """Whether the workload writes; set by ``measure`` itself."""
    destroy: tuple[str, ...] = ()
    """Names or serial numbers of block devices, and addresses or names of exports, whose contents may be lost."""
    over: tuple[str, ...] = ()
    """Signatures that may be overwritten, such as ``ext4``."""
    create: str | None = None
    """Size of the file to create if it does not exist, such as ``4GiB``."""
    overwrite: bool = False
    """Whether an existing file may be written."""
    buffered: bool = False
    """Whether requests use the page cache instead of bypassing it."""
    engine: str = "auto"
    """``auto``, ``ring`` (io_uring) or ``psync`` (system calls, one thread per request)."""
    threads: int = 1
    """Number of threads that share the queue depth or the rate."""
    slots: int = SLOTS
    """Open loop: maximum queue depth."""
    connections: int = 1
    """Number of connections of each thread to an export."""
    zoned: str | None = None
    """Zoned writing: ``device`` for the zones of a zoned device, or a zone size such as ``64MiB``, into which any other
    target is divided."""
    open_zones: int = 0
    """Maximum number of open zones; 0 for the device's limit."""

    def target_spec(self, path: str) -> TargetSpec:
        """Returns the target in the form that the compiled module takes.

        >>> hs.Access(buffered=True).target_spec("data.bin")["direct"]
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
            raise InputError(f"{self.connections} is out of range; must be 1 to {CONNECTIONS_MAX}", key="connections")
        return self.connections

    def zones(self) -> ZoneSpec | None:
        """Returns the zones to manage; ``None`` without zoned writing.

        >>> hs.Access(zoned="64MiB", open_zones=8).zones()
        {'size_bytes': 67108864, 'open_max': 8}
        """
        if not 0 <= self.open_zones < 1 << 32:
            raise InputError(f"{self.open_zones} is out of range; must be 0 to 4294967295", key="open_zones")
        if self.zoned is None:
            if self.open_zones:
                raise InputError("applies only to zoned writes; set zoned, or remove it", key="open_zones")
            return None
        size = None if self.zoned == "device" else size_bytes("zoned", self.zoned)
        return {"size_bytes": size, "open_max": self.open_zones}

    def engine_of(self, path: str) -> Engine:
        """Returns the engine that submits requests to a target.

        >>> hs.Access(engine="psync").engine_of("data.bin")
        'psync'
        """
        engine = choice("engine", self.engine, ENGINES)
        if not is_null(path):
            return engine
        _, _, service = path.partition(":")
        service_ns = duration_ns("null", service) if service else 0
        if service_ns < 0:
            raise InputError(f"{path}: a service time of {service} is negative; must be 0s or longer")
        return {"null": {"service_ns": service_ns}}


def is_null(path: str) -> bool:
    """Whether the path is a null target: ``null``, or ``null:2ms`` with a service time."""
    return path == "null" or path.startswith("null:")
