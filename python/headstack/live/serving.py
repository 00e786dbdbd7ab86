"""``serve``: exports the simulated system as a block device of this machine. See docs/design/live.md.

with hs.serve("cheetah-x15-36lp", unix=["/tmp/s"]) as live:
    ...                                 # nbd+unix:///?socket=/tmp/s
print(live.fidelity["verdict"])
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.options import OPTIONS, applied
from headstack.io.atomic_files import failing, opened_pipe
from headstack.io.values import duration_ns, size_bytes
from headstack.simulation.runs import changed, first_spec

if TYPE_CHECKING:
    from headstack.live.service import ExportOptions, Keeping, Service, ServiceOptions, Tls
    from headstack.live.status import Fidelity

CONSTANT = "constant:"
"""Prefix of a device with a constant latency for every request: ``constant:10ms``."""
CONSTANT_SIZE = "1GiB"
CONSTANT_BLOCK_BYTES = 512
MEMORY_BYTES_MIN = 128 << 20

SYSTEM_OPTIONS = tuple(o for o in OPTIONS if (o.group in ("Array", "Drive") and o.name != "lun") or o.name == "seed")
"""Options that vary the system, as in a run."""


@dataclass(frozen=True)
class Serving:
    """Settings of an export: its addresses, the storage of the data, and the clock.

    ``data`` is ``memory``, ``discard`` or a file's path; ``keep`` are ranges (``0..64MiB``) whose bytes are always
    kept. ``tcp`` are ``[HOST:]PORT``, by default on loopback (IPv4 and IPv6). ``fuse`` is a directory with a file for
    each LUN, from which ``loop`` makes block devices; ``ublk`` creates native block devices of the kernel.
    ``socket_mode`` are the permissions of ``unix`` sockets, in octal; ``faults`` is a file with a fault schedule.
    """

    unix: tuple[str, ...] = ()
    socket_mode: str = "600"
    tcp: tuple[str, ...] = ()
    stdio: bool = False
    activated: bool = False
    fuse: str | None = None
    loop: bool = False
    ublk: bool = False
    data: str = "memory"
    adopt: bool = False
    """Whether to serve the file of ``data`` though no server has created it."""
    keep: tuple[str, ...] = ()
    memory: str | None = None
    """Memory for requests and connections; by default 25 % of the free memory, at most 1 GiB."""
    speed: float = 1.0
    realtime: bool = True
    floor: str | None = None
    faults: str | None = None
    journal: str | None = None
    """A file that records every write, flush and trim with its data and completion, and marks."""
    control: str | None = None
    metrics: str | None = None
    record: str | None = None
    size: str | None = None
    tls_certificate: str | None = None
    """PEM files: the server's certificate and key, and an authority that must have signed the clients' certificates."""
    tls_key: str | None = None
    tls_client_ca: str | None = None
    tls_required: bool = False
    """Whether unencrypted clients are refused."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the system as in a run, by name: ``{"write_cache": "off"}``."""


class Live:
    """A running export; it ends when its context is left."""

    def __init__(self, name: str, service: _native.LiveService, record: str | None, notes: Iterable[str] = ()) -> None:
        self.name = name
        self.notes = [*notes, *service.notes]
        """Differences from the request, and faults that can have no effect, one line each."""
        self._service, self._record = service, record
        self.fidelity: Fidelity | None = None
        """The agreement of the session's times with the model, once it has ended."""

    @property
    def exports(self) -> list[tuple[str, int]]:
        """Name and bytes of each LUN."""
        return self._service.exports

    @property
    def addresses(self) -> list[str]:
        """Addresses with the ports that the system assigned: ``127.0.0.1:10809``."""
        return self._service.addresses

    @property
    def metrics(self) -> str | None:
        """The address of the Prometheus metrics, as assigned by the system."""
        return self._service.metrics

    @property
    def files(self) -> list[str]:
        """Files of the mount, one per LUN."""
        return self._service.files

    @property
    def devices(self) -> list[str]:
        """Block devices: ``/dev/ublkb0``, or ``/dev/loop0`` for a file of the mount."""
        return self._service.devices

    @property
    def was_unmounted(self) -> bool:
        """Whether the directory was unmounted by another process."""
        return self._service.was_unmounted()

    def order(self, order: Mapping[str, Any]) -> Any:
        """Sends an order, as the control socket accepts it, and returns its answer.

        >>> with hs.serve("constant:0s", size="1MiB", unix=("live.sock",)) as live:
        ...     status = live.order({"do": "status"})
        >>> isinstance(status, dict)
        True
        """
        return self._service.order(order)

    def wait(self) -> None:
        """Waits until the end is requested.

        >>> import threading
        >>> live = hs.serve("constant:0s", size="1MiB", unix=("live.sock",))
        >>> waiting = threading.Thread(target=live.wait)
        >>> waiting.start()
        >>> _ = live.stop()
        >>> waiting.join()
        """
        self._service.wait()

    def stop(self) -> Fidelity:
        """Ends the export and returns its fidelity.

        >>> live = hs.serve("constant:0s", size="1MiB", unix=("live.sock",))
        >>> fidelity = live.stop()
        >>> isinstance(fidelity, dict)
        True
        """
        if self.fidelity is None:
            with failing(self._record or ""):
                self.fidelity = self._service.stop()
        fidelity: Fidelity = self.fidelity
        return fidelity

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def serve(
    system: str | os.PathLike[str],
    serving: Serving | None = None,
    **settings: Any,
) -> Live:
    """Exports a system by name, file or part (``NAME@RANGE``), or ``constant:TIME``.

    ``settings`` are the fields of :class:`Serving`. Raises ``InputError`` for invalid settings, and ``RunError`` if the
    machine cannot provide the export.

    >>> with hs.serve("constant:0s", size="1MiB", unix=("live.sock",)) as live:
    ...     live.exports[0][1]
    1048576
    """
    serving = serving if serving is not None else Serving(**settings)
    name = os.fspath(system)
    description, notes = (
        constant_service(name, serving) if name.startswith(CONSTANT) else (simulated_service(name, serving), [])
    )
    with nullcontext() if serving.record is None else opened_pipe(serving.record) as place:
        service = _native.LiveService({**description, "record": place})
        return Live(description["name"], service, serving.record, notes)


def constant_service(name: str, serving: Serving) -> tuple[Service, list[str]]:
    """Returns a device of constant latency, and notes about it."""
    if serving.options:
        raise InputError(f"{next(iter(serving.options))}: not available for a device of constant latency")
    latency_ns = duration_ns("constant", name.removeprefix(CONSTANT) or "0s")
    if latency_ns < 0:
        raise InputError(f"{name.removeprefix(CONSTANT)} is negative", key="constant")
    size = size_bytes("size", serving.size if serving.size is not None else CONSTANT_SIZE)
    if size < CONSTANT_BLOCK_BYTES:
        raise InputError(f"{serving.size} is less than a block of {CONSTANT_BLOCK_BYTES} bytes", key="size")
    rest = size % CONSTANT_BLOCK_BYTES
    size -= rest
    notes = (
        [f"size: {serving.size} is rounded down to {size:,} bytes, a multiple of {CONSTANT_BLOCK_BYTES}"]
        if rest
        else []
    )
    options: ServiceOptions = {**options_of(serving, size), "part": None, "seed": 0}
    return {"name": name, "system": None, "constant": (latency_ns, size), "options": options}, notes


def simulated_service(name: str, serving: Serving) -> Service:
    """Returns a simulated system."""
    if serving.size is not None:
        raise InputError("applies only to constant:LATENCY; use NAME@RANGE for a part of a system", key="size")
    supported = {option.name for option in SYSTEM_OPTIONS}
    for option in serving.options:
        if option not in supported:
            raise InputError("unknown option of systems", key=option)
    spec = applied(first_spec(changed(name, serving.options), None), serving.options)
    size = _native.system_size(spec["system"])
    options: ServiceOptions = {**options_of(serving, size.capacity_bytes), "part": spec["span"], "seed": spec["seed"]}
    return {
        "name": spec["system_name"],
        "system": spec["system"],
        "constant": None,
        "options": options,
    }


def options_of(serving: Serving, capacity: int) -> ExportOptions:
    """Returns the options that do not depend on the system."""
    if serving.loop and serving.fuse is None:
        raise InputError("needs a mounted file; add --fuse DIR", key="loop")
    if not (serving.speed > 0 and serving.speed < 1e6):
        raise InputError(
            f"{serving.speed} is out of range; use for example 1 (real time) or 0.1 (ten times slower)", key="speed"
        )
    return {
        "unix": list(serving.unix),
        "socket_mode": parse_mode(serving.socket_mode),
        "tcp": [address("tcp", text) for text in serving.tcp if loopback_port(text) is None],
        "loopback": [port for text in serving.tcp if (port := loopback_port(text)) is not None],
        "stdio": serving.stdio,
        "activated": serving.activated,
        "fuse": serving.fuse,
        "loops": serving.loop,
        "ublk": serving.ublk,
        "tls": tls(serving),
        "keeping": data_storage(serving, capacity),
        "speed": serving.speed,
        "realtime": serving.realtime,
        "memory_bytes": memory_bytes(serving),
        "floor_ns": None if serving.floor is None else duration_ns("floor", serving.floor),
        "faults": serving.faults,
        "journal": serving.journal,
        "control": serving.control,
        "metrics": None if serving.metrics is None else address("metrics", serving.metrics),
    }


def memory_bytes(serving: Serving) -> int | None:
    """Returns the memory for requests and connections; ``None`` leaves it to the server."""
    if serving.memory is None:
        return None
    size = size_bytes("memory", serving.memory)
    if size < MEMORY_BYTES_MIN:
        raise InputError(f"{serving.memory} is too little for the longest requests; use 128MiB or more", key="memory")
    return size


def tls(serving: Serving) -> Tls | None:
    """Returns the encryption of connections; ``None`` without encryption."""
    if serving.tls_certificate is not None and serving.tls_key is not None:
        return {
            "certificate": serving.tls_certificate,
            "key": serving.tls_key,
            "client_ca": serving.tls_client_ca,
            "required": serving.tls_required,
        }
    if serving.tls_certificate is not None or serving.tls_key is not None:
        raise InputError("a certificate needs its key; give both --tls-certificate FILE and --tls-key FILE", key="tls")
    if serving.tls_client_ca is not None or serving.tls_required:
        raise InputError("needs a certificate; add --tls-certificate FILE and --tls-key FILE", key="tls")
    return None


def data_storage(serving: Serving, capacity: int) -> Keeping:
    """Returns the storage of the data."""
    if serving.adopt and serving.data in ("memory", "discard"):
        raise InputError("needs a file; add --data FILE", key="adopt")
    if serving.data == "discard":
        return {"discard": [parse_kept_range(text, capacity) for text in serving.keep]}
    if serving.keep:
        raise InputError("needs --data discard", key="keep")
    if serving.data == "memory":
        return "memory"
    return {"adopted": serving.data} if serving.adopt else {"file": serving.data}


def parse_kept_range(text: str, capacity: int) -> tuple[int, int]:
    """Returns first byte and length of a range, which must be within the system."""
    first, separator, last = text.partition("..")
    start, end = (size_bytes("keep", first), size_bytes("keep", last)) if separator else (0, size_bytes("keep", first))
    if not 0 <= start < end <= capacity:
        raise InputError(
            f"{text} is not a range within the system's {capacity} bytes; use for example 0..64MiB", key="keep"
        )
    return start, end - start


def loopback_port(text: str) -> int | None:
    """Returns the port of ``PORT`` or ``localhost:PORT``, which means loopback with IPv4 and IPv6; ``None`` if there is
    another host.
    """
    host, _, port = text.rpartition(":")
    if host not in ("", "localhost") or text.startswith(":"):
        return None
    return int(address("tcp", port).rpartition(":")[2])


def address(name: str, text: str) -> str:
    """Returns ``HOST:PORT``, by default on loopback."""
    host, separator, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) < 2**16):
        raise InputError(f"{text!r} has no port; use for example 10809, 127.0.0.1:10809 or [::1]:10809", key=name)
    host = (host if separator else "") or "127.0.0.1"
    return f"{'127.0.0.1' if host == 'localhost' else host}:{port}"


def parse_mode(text: str) -> int:
    """Parses permissions of a socket, in octal."""
    if not (len(text) in (3, 4) and text.isascii() and set(text) <= set("01234567")) or int(text, 8) > 0o777:
        raise InputError(
            f"socket-mode: {text!r} is not a file mode; use 600 for only the owner, or 660 for owner and group"
        )
    return int(text, 8)


class Endpoints(NamedTuple):
    """Addresses at which NBD clients find an export; fields of ``Serving``."""

    unix: tuple[str, ...] = ()
    tcp: tuple[str, ...] = ()
    stdio: bool = False
    activated: bool = False


def endpoints(texts: Iterable[str]) -> Endpoints:
    """Parses the values of ``--nbd``: ``unix:PATH``, ``tcp:[HOST:]PORT``, ``stdio`` or ``systemd``."""
    unix, tcp, stdio, activated = [], [], False, False
    for text in texts:
        kind, _, place = text.partition(":")
        if kind == "unix" and place:
            unix.append(place)
        elif kind == "tcp" and place:
            tcp.append(place)
        elif text == "stdio":
            stdio = True
        elif text == "systemd":
            activated = True
        else:
            raise InputError(f"--nbd: {text!r} is unknown; allowed: unix:PATH, tcp:[HOST:]PORT, stdio, systemd")
    return Endpoints(tuple(unix), tuple(tcp), stdio, activated)
