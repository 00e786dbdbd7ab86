"""``Device``: the interface of probes to simulated systems in virtual time, and to real files, devices and live exports
on the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstack import _native

READ, WRITE, TRIM, FLUSH = range(4)
"""Kinds of requests, as the compiled part numbers them."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Requests:
    """Requests that are known beforehand, in order."""

    kinds: NDArray[np.uint8]
    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint32]
    depth: int
    """Queue depth; 0 if each request has a time."""
    times_ns: NDArray[np.uint64]
    """With a depth, the delay of each request after the completion that makes room for it; otherwise its time since the
    first.
    """

    @classmethod
    def of(
        cls,
        kinds: ArrayLike,
        offsets: ArrayLike,
        lengths: ArrayLike,
        *,
        depth: int = 1,
        think_ns: ArrayLike | None = None,
        at_ns: ArrayLike | None = None,
    ) -> Requests:
        """Creates requests at a depth, or with ``at_ns`` at given times. A single kind or length applies to all."""
        places = np.asarray(offsets, np.uint64)
        count = len(places)
        times = np.zeros(0, np.uint64) if think_ns is None else np.broadcast_to(np.asarray(think_ns, np.uint64), count)
        if at_ns is not None:
            depth, times = 0, np.asarray(at_ns, np.uint64)
        return cls(
            np.ascontiguousarray(np.broadcast_to(np.asarray(kinds, np.uint8), count)),
            places,
            np.ascontiguousarray(np.broadcast_to(np.asarray(lengths, np.uint32), count)),
            depth,
            np.ascontiguousarray(times),
        )

    @classmethod
    def reads(cls, offsets: ArrayLike, length: ArrayLike = 4096, **pace: Any) -> Requests:
        """Creates reads, as ``of``."""
        return cls.of(READ, offsets, length, **pace)

    @classmethod
    def writes(cls, offsets: ArrayLike, length: ArrayLike = 4096, **pace: Any) -> Requests:
        """Creates writes, as ``of``."""
        return cls.of(WRITE, offsets, length, **pace)

    def __len__(self) -> int:
        return len(self.offsets)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same requests and timing."""
        columns = ("kinds", "offsets", "lengths", "depth", "times_ns")
        return isinstance(other, Requests) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in columns
        )

    @property
    def change_contents(self) -> bool:
        """Whether any request changes the contents."""
        return bool(np.isin(self.kinds, (WRITE, TRIM)).any())


@dataclass(frozen=True)
class Answers:
    """Issue and completion times of requests, in their order, by the device's clock."""

    issued_ns: Integers
    completed_ns: Integers
    failed: int = 0

    @property
    def response_ns(self) -> Floats:
        """The response time of each request."""
        return (self.completed_ns - self.issued_ns).astype(np.float64)

    @property
    def per_s(self) -> float:
        """Requests per second, from the first issue to the last completion."""
        return len(self.issued_ns) / self.seconds

    @property
    def seconds(self) -> float:
        """Time from the first issue to the last completion."""
        return float(self.completed_ns.max() - self.issued_ns.min()) / 1e9


class Device(Protocol):
    """A block device to be probed."""

    @property
    def name(self) -> str:
        """The device's name for people."""

    @property
    def capacity_bytes(self) -> int:
        """The capacity available to probes, in bytes."""

    @property
    def block_bytes(self) -> int:
        """The block size in bytes, of which every request is a multiple."""

    @property
    def may_write(self) -> bool:
        """Whether its contents may be lost."""

    def ask(self, requests: Requests, progress: Callable[[float], object] | None = None) -> Answers:
        """Runs requests; after an interruption the rest is missing."""

    def rest(self, seconds: float) -> None:
        """Leaves the device idle."""


def _answers(columns: tuple[bytes, bytes, int]) -> Answers:
    issued, completed, failed = columns
    return Answers(np.frombuffer(issued, np.int64), np.frombuffer(completed, np.int64), failed)


def _columns(requests: Requests) -> tuple[bytes, bytes, bytes, int, bytes]:
    columns = (requests.kinds.tobytes(), requests.offsets.tobytes(), requests.lengths.tobytes())
    return *columns, requests.depth, requests.times_ns.tobytes()


class SimulatedDevice:
    """A simulated system in virtual time that keeps its state between probes.

    ``system`` is a description, as in ``headstack.catalogue.system.load_system(NAME).system``.
    """

    may_write = True

    def __init__(self, system: Mapping[str, Any], seed: int = 1, name: str = "simulated") -> None:
        self.name = name
        self._bench = _native.SimulatedBench(system, seed)

    @property
    def capacity_bytes(self) -> int:
        """The capacity of the system in bytes."""
        return self._bench.capacity_bytes

    @property
    def block_bytes(self) -> int:
        """The block size in bytes, of which every request is a multiple."""
        return self._bench.block_bytes

    def ask(self, requests: Requests, progress: Callable[[float], object] | None = None) -> Answers:
        """Runs requests in virtual time."""
        return _answers(self._bench.carry_out(*_columns(requests)))

    def rest(self, seconds: float) -> None:
        """Advances virtual time."""
        self._bench.rest(round(seconds * 1e9))


class RealDevice:
    """A file, a block device or a live export, on the wall clock."""

    def __init__(self, targets: _native.Targets, may_write: bool, realtime: bool = False) -> None:
        (described,) = targets.described()
        self.name: str = described["name"]
        self.capacity_bytes: int = described["capacity_bytes"]
        self.block_bytes: int = described["block_bytes"]
        self.notes: list[str] = described["notes"]
        self.may_write = may_write
        self._targets, self._realtime = targets, realtime

    def ask(self, requests: Requests, progress: Callable[[float], object] | None = None) -> Answers:
        """Runs requests; Ctrl-C raises."""
        return _answers(_native.probe(self._targets, *_columns(requests), self._realtime, progress))

    def rest(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)
