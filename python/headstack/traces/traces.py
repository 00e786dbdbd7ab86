"""``Trace``: recorded requests from files of any format, with transformations. See docs/design/traces.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeAlias, cast

from headstack import _native
from headstack._native import InputError
from headstack.io.atomic_files import opened_pipe
from headstack.io.values import duration_ns, size_bytes
from headstack.traces.analysis import Analysis
from headstack.traces.analyzing import analyze_in_parts
from headstack.traces.trace_types import Analyzed, Captured, Exported, Source, TraceInfo, Volume, Written
from headstack.traces.volumes import select_volumes

Progress: TypeAlias = Callable[[int], object]
"""Called with the number of requests so far."""


@dataclass(frozen=True, init=False)
class Trace:
    """A trace of one or several files, plain or compressed, whose format is detected from the content. A folder stands
    for all stored traces in it, as written by ``split``.

    ``steps`` transform its requests in order: ``"kind=read"``, ``"fold=36GB"``, ``"time-scale=0.5"``; see ``headstack
    trace steps``. A trace is never held in memory as a whole.
    """

    paths: tuple[str, ...]
    format: str | None
    skip_bad: bool
    steps: tuple[str, ...]
    devices: tuple[str, ...] | None
    columns: str | None
    sector_bytes: int | None
    time_unit: str | None
    at: str | None

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        format: str | None = None,
        skip_bad: bool = False,
        steps: Iterable[str] = (),
        devices: Iterable[str] | None = None,
        columns: str | None = None,
        sector_bytes: int | None = None,
        time_unit: str | None = None,
        at: str | None = None,
    ) -> None:
        """Creates a trace from files, which its methods read.

        ``format`` is one of ``formats()``; ``skip_bad`` counts invalid lines instead of raising an error. ``devices``
        selects devices before all steps. ``columns`` declares the columns of a table
        (``"time=ts:us,offset=lba:512,length=size,op=rw"``), or names a TOML file with the declaration, or a folder of
        such files; ``sector_bytes`` and ``time_unit`` are for formats that do not define them (SPC, lists, Mooncake,
        MQSim); ``at``
        selects the events of a Linux block trace: ``"queue"`` when programs made the requests, or ``"issue"`` when the
        device got them.
        """
        if not paths:
            raise InputError("no trace file; name at least one")
        object.__setattr__(self, "paths", tuple(os.fspath(path) for path in paths))
        object.__setattr__(self, "format", format)
        object.__setattr__(self, "skip_bad", skip_bad)
        object.__setattr__(self, "steps", tuple(steps))
        object.__setattr__(self, "devices", None if devices is None else tuple(devices))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "sector_bytes", sector_bytes)
        object.__setattr__(self, "time_unit", time_unit)
        object.__setattr__(self, "at", at)

    @property
    def source(self) -> Source:
        """Arguments of the trace, in the form of the compiled module."""
        return {
            "paths": list(self.paths),
            "format": self.format,
            "skip_bad": self.skip_bad,
            "steps": list(self.steps),
            "devices": None if self.devices is None else list(self.devices),
            "columns": self.columns,
            "sector_bytes": self.sector_bytes,
            "time_unit": self.time_unit,
            "at": self.at,
        }

    @property
    def name(self) -> str:
        """Name of the first file, and number of other files."""
        first = Path(self.paths[0]).name
        return first if len(self.paths) == 1 else f"{first} and {len(self.paths) - 1} others"

    def info(self, progress: Progress | None = None) -> TraceInfo:
        """Returns the metadata of the trace (``meta``), and the counts of one pass (``summary``), in total and per
        device.

        Times are in ns, addresses in bytes.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> trace = hs.Trace("t.parquet")
        >>> sum(trace.info()["summary"]["total"]["requests"].values())
        300
        """
        return cast(TraceInfo, _native.trace_info(self.source, progress))

    def analyze(
        self,
        block: str = "4KiB",
        reuse: str | None = "block",
        sample: float | None = None,
        progress: Progress | None = None,
        *,
        executor: str | None = None,
        store: str | os.PathLike[str] | None = None,
    ) -> Analysis:
        """Analyses the trace in one pass.

        ``block`` is the block size of working set and re-use, a power of two. ``reuse`` is counted by ``"block"``, by
        ``"request"`` (identified by its first byte, as cache simulators identify objects), or not at all; ``sample`` is
        the share of blocks or requests to sample (SHARDS), all by default.

        With an ``executor`` (``"local"``, or ``"dask://HOST:PORT"``, whose workers need the files under the same paths)
        or a ``store``, a stored trace is analysed in parts, and finished parts are kept, so that repeating the call
        resumes. Figures are those of one pass, except for estimates from samples, which have the same confidence.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> trace = hs.Trace("t.parquet")
        >>> trace.analyze().name
        't.parquet'
        """
        if sample is not None and reuse is None:
            raise InputError("applies to re-use, which is off", key="sample")
        options = {"block_bytes": size_bytes("block", block), "reuse": reuse, "sample": sample}
        if executor is None and store is None:
            analyzed = cast(Analyzed, _native.trace_analyze(self.source, options, progress))
        else:
            where = executor or "local"
            analyzed = analyze_in_parts(self.source, options, self.name, store=store, executor=where, progress=progress)
        return Analysis(self.name, analyzed["meta"], analyzed["report"])

    def to_parquet(self, path: str | os.PathLike[str], progress: Progress | None = None) -> Written:
        """Writes the trace in the stored form, sorted by arrival, and returns its ``meta`` and number of ``requests``.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> trace = hs.Trace("t.parquet")
        >>> trace.with_steps("time-scale=0.5").to_parquet("faster.parquet")["requests"]
        300
        """
        with opened_pipe(path) as place:
            return cast(Written, _native.trace_import(self.source, place, progress))

    def export(self, path: str | os.PathLike[str], format: str, progress: Progress | None = None) -> Exported:
        """Writes the trace in another program's format; ``losses`` has counts of data that the format cannot store.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> trace = hs.Trace("t.parquet")
        >>> trace.export("t.trace", "disksim")["requests"]
        300
        """
        with opened_pipe(path) as place:
            return cast(Exported, _native.trace_export(self.source, place, format, progress))

    def split(self, folder: str | os.PathLike[str], progress: Progress | None = None) -> dict[str, Path]:
        """Writes a file in the stored form for each device into ``folder``, in one pass, and returns the files by
        device.

        ``Trace(folder)`` reads all files as one trace. If a file cannot be written, no file is kept.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> trace = hs.Trace("t.parquet")
        >>> len(trace.split("devices"))
        1
        """
        written = _native.trace_split(self.source, os.fspath(folder), progress)
        return {piece["device"]: Path(piece["path"]) for piece in written["pieces"]}

    def volumes(self, progress: Progress | None = None) -> list[Volume]:
        """Describes each device: a row with the ``headstack.traces.volumes.FIELDS`` for each that has requests.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> [volume["requests"] for volume in hs.Trace("t.parquet").volumes()]
        [300]
        """
        return cast(list[Volume], _native.trace_volumes(self.source, progress))

    def select(self, where: str | None = None, *, top: int | None = None, by: str = "requests") -> Trace:
        """Selects the devices that meet ``where`` (``"requests>1e6 and read_share<0.2"``), and of these the ``top``
        devices by ``by``. Reads the trace once.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> len(hs.Trace("t.parquet").select("requests<1e6").devices)
        1
        """
        names = [volume["volume"] for volume in select_volumes(self.volumes(), where, top, by)]
        if not names:
            raise InputError(f"{self.name}: no device matches {where}")
        options = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "paths"}
        return Trace(*self.paths, **{**options, "devices": names})

    def with_steps(self, *steps: str) -> Trace:
        """Returns the trace with these steps added.

        >>> _ = hs.run("cheetah-x15-36lp", "file-server", requests=300, warm_up=0, record="t.parquet")
        >>> trace = hs.Trace("t.parquet")
        >>> trace.with_steps("first=10").steps
        ('first=10',)
        """
        options = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "paths"}
        return Trace(*self.paths, **{**options, "steps": (*self.steps, *steps)})


def capture(
    device: str,
    path: str | os.PathLike[str],
    *,
    time: str | None = None,
    requests: int | None = None,
    at: str | None = None,
    method: str | None = None,
    buffer: str | None = None,
    progress: Callable[[int, int, float, float, float], object] | None = None,
) -> Captured:
    """Records the requests to a block device of this machine into ``path``, in the stored form, until ``time`` has
    passed, ``requests`` were recorded, or Ctrl-C is pressed; the recorded requests are always kept. Needs root.

    ``at`` is ``"queue"`` (when programs make requests; the default) or ``"issue"`` (when the device gets them);
    ``method`` is ``"tracepoints"`` or ``"tracer"`` (by default the first that works); ``buffer`` is the size of the
    kernel's buffer per CPU.
    ``progress`` is called with requests, lost events, requests and bytes per second, and seconds. Returns ``meta``,
    ``method``, ``requests``, ``bytes``, ``lost`` events and ``seconds``.

    >>> hs.capture("/dev/null", "t.parquet", requests=10)
    Traceback (most recent call last):
    headstack.InputError: ...
    """
    request = {
        "device": device,
        "method": method,
        "at": at,
        "duration_ns": None if time is None else duration_ns("time", time),
        "requests": requests,
        "buffer_bytes": None if buffer is None else size_bytes("buffer", buffer),
    }
    with opened_pipe(path) as place:
        return cast(Captured, _native.trace_capture(request, place, progress))


def formats() -> dict[str, str]:
    """Returns the readable formats: names and titles."""
    return dict(_native.trace_formats())


def format_lines() -> dict[str, str]:
    """Returns a handmade example line of each readable format."""
    return dict(_native.trace_format_lines())


def export_formats() -> dict[str, str]:
    """Returns the formats for export, in addition to the stored form: names and titles."""
    return dict(_native.trace_export_formats())
