"""Benches that run the cells of the plan: a real target on the wall clock, or a model in virtual time."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.scenario import Scenario
from headstack.catalogue.system import load_system
from headstack.catalogue.workload import Workload
from headstack.measurement.access import Access, Progress, is_null
from headstack.measurement.measurement import Opened, Step, is_export, is_target
from headstack.measurement.tests.classic.outcome import part_of, reason_not_to_write
from headstack.measurement.tests.settings.cells import Cell, Reading, Stream
from headstack.measurement.tests.settings.levels import CACHE_SHARE_MAX, WEAR_IN
from headstack.measurement.tests.settings.properties import Origin
from headstack.results.results import Results
from headstack.simulation.runs import run

WARM_UP = 0.1
"""Warm-up of a cell, as a share of its time."""
HOLES = re.compile(r"([\d.]+) % of the file is unallocated; reads there never reach the device")
"""The note on a file with holes or unwritten extents."""
HOLES_MIN_PERCENT = 1.0
"""Smallest share of holes, in percent, for which a file is filled."""
FILL_BYTES = 1 << 20
"""Size of the writes that fill a file, in bytes."""
BLOCKS = 40
"""Number of intervals of a logged run."""
INTERVAL_MIN_NS = 100_000_000
"""Shortest interval of a run, in ns."""
PILOT = 2_000
"""Requests of a model's first run, which shows how long the requests of a cell take."""
MODEL_REQUESTS = 40_000
"""Requests of a cell of a model; its rates then vary by less than 1 %."""
MODEL_WRITES_MAX = 60_000
"""Maximum number of writes until a model's cache is full, which takes about half a minute to simulate."""


@dataclass(frozen=True)
class Place:
    """The target as the products name it; ``None`` for values that are not known."""

    device: str | None = None
    """Major and minor number, for example ``259:0``."""
    mounted_at: str | None = None
    is_disk: bool | None = None
    """Whether it is an HDD; virtual disks often only claim to rotate, so a real target leaves this to its latency."""


class Bench(Protocol):
    """A device or a model on which cells are run."""

    name: str
    origin: Origin
    rounds: int
    """Number of times that each cell is run."""
    place: Place
    is_worn_in: bool
    """Whether the caller states that no cache is left to fill."""
    unwritable: str | None
    """Reason why cells that write are left out; ``None`` if they are permitted."""
    notes: list[str]
    """Remarks on the target."""

    @property
    def ended(self) -> str | None:
        """Reason why the remaining cells should be skipped."""

    def read(self, cell: Cell, number: int) -> Reading:
        """Runs a cell in a round."""

    def log(self, cell: Cell) -> tuple[Reading, float]:
        """Runs a single stream of writes for the time of steady writes. Returns the figures, and the length of an
        interval in s."""

    def cache_bytes(self, is_random: bool) -> float | None:
        """Returns the number of bytes to write before the rate is steady; ``None`` if not known."""


def _workload(stream: Stream, name: str) -> dict[str, Any]:
    """Returns a stream as the description of a workload."""
    form = {
        "name": name,
        "lines": [dict(stream.line)],
        "flush_every": stream.flush_every,
        "streams": stream.pointers,
        "arrivals": stream.arrivals,
        "run_length": {"requests": 1},
    }
    return dict(_native.complete_workload(form))


class TargetBench:
    """A file, block device or export."""

    origin: Origin = "measured"

    def __init__(
        self,
        path: str,
        access: Access,
        *,
        time_ns: int,
        steady_ns: int,
        rounds: int,
        range: str | None,
        worn_in: bool,
        progress: Progress | None,
    ) -> None:
        self.name, self.rounds, self.unwritable = path, rounds, reason_not_to_write(path, access)
        self._opened = Opened([path], access, writing=self.unwritable is None)
        self._span = part_of(self._opened, range)
        self._time_ns, self._steady_ns, self.is_worn_in = time_ns, steady_ns, worn_in
        self._shown, self._runs, self.runs_planned = progress, 0, 1
        description = self._opened.described[0]["description"]
        self.notes = list(self._opened.described[0]["notes"])
        self.place = Place(_numbers(path), description.get("file_system", {}).get("mounted_at"))
        self._device_bytes = _device_bytes(path, self._opened)

    @property
    def ended(self) -> str | None:
        """Reason why the remaining cells should be skipped."""
        return self._opened.ended

    @property
    def span_bytes(self) -> int:
        """Length of the used part, in bytes."""
        return self._span[1]

    def _progress(self) -> Progress | None:
        """Returns the progress of the next run, which is numbered among the planned runs."""
        number, shown = self._runs, self._shown
        self._runs += 1
        if shown is None:
            return None
        return lambda now: shown(now | {"run": number, "runs": max(self.runs_planned, number + 1)})

    def fill(self) -> Results | None:
        """Fills a file with holes, which reads would not take from the device. Returns the results; ``None`` if it has
        none.

        Raises ``InputError`` if the file may not be written.
        """
        holes = [match for note in self.notes if (match := HOLES.match(note))]
        if not holes or float(holes[0][1]) < HOLES_MIN_PERCENT:
            return None
        if self.unwritable is not None:
            raise InputError(f"{self.name}: {holes[0][0]}; add --overwrite to fill it")
        described = _workload(Stream(FILL_BYTES, 0, 0, 8), "fill")
        limits = {"bytes": self._span[1] // FILL_BYTES * FILL_BYTES or FILL_BYTES}
        step = Step(described, self._span, limits, {"cell": "fill"}, threads=1)
        self.notes = [note for note in self.notes if not HOLES.match(note)]
        return self._opened.measure([step], self._progress())

    def _steps(self, cell: Cell, time_ns: int, seed: int, blocks: int) -> list[Step]:
        start, length = self._span
        steps = []
        for number, stream in enumerate(cell.streams):
            place, parts = stream.part
            unit = length // parts // (1 << 20) * (1 << 20) or length // parts // stream.size_bytes * stream.size_bytes
            described = _workload(stream, cell.name if number == 0 else f"{cell.name} {number + 1}")
            described["warm_up"] = {"requests": 0, "time": f"{int(WARM_UP * time_ns)}ns"}
            span = (start + place * unit, unit if parts > 1 else length)
            labels = {"cell": cell.name}
            limits = {"time_ns": time_ns}
            steps.append(
                Step(described, span, limits, labels, seed=seed, interval_ns=max(1, time_ns // blocks), threads=1)
            )
        return steps

    def read(self, cell: Cell, number: int) -> Reading:
        """Runs a cell in a round; its time is divided among the rounds."""
        steps = self._steps(cell, self._time_ns // self.rounds, number + 1, 10)
        return Reading(self._opened.measure_together(steps, self._progress()))

    def log(self, cell: Cell) -> tuple[Reading, float]:
        """Runs a single stream of writes for the time of steady writes."""
        [step] = self._steps(cell, self._steady_ns, 1, BLOCKS)
        whole = dict(step.workload) | {"warm_up": {"requests": 0, "time": "0ns"}}
        logged = Step(whole, step.span, step.limits, step.labels, interval_ns=step.interval_ns, threads=1)
        return Reading(self._opened.measure([logged], self._progress())), self._steady_ns / BLOCKS / 1e9

    def cache_bytes(self, is_random: bool) -> float | None:
        """Returns the number of bytes to write before the rate is steady: 0 if the caller stated that it is."""
        if self.is_worn_in:
            return 0.0
        if self._device_bytes is None:
            return None
        return (WEAR_IN if is_random else CACHE_SHARE_MAX) * self._device_bytes


def _numbers(path: str) -> str | None:
    """Returns major and minor number of the whole device of a target; ``None`` if it has none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    number = status.st_rdev or status.st_dev
    folder = os.path.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if os.path.exists(os.path.join(folder, "partition")):
        folder = os.path.dirname(folder)
    try:
        with open(os.path.join(folder, "dev"), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def _device_bytes(path: str, opened: Opened) -> float | None:
    """Returns the capacity of the whole device of a target; ``None`` if not known."""
    if is_null(path) or is_export(path):
        return float(opened.described[0]["capacity_bytes"])
    numbers = _numbers(path)
    try:
        with open(f"/sys/dev/block/{numbers}/size", encoding="ascii") as file:
            return 512.0 * int(file.read())
    except (OSError, ValueError):
        return None


class ModelBench:
    """A simulated system: a catalogue entry, a TOML file or a calibrated model. Every cell starts in the same state."""

    origin: Origin = "predicted"
    rounds = 1
    is_worn_in = False
    unwritable: str | None = None
    ended: str | None = None

    def __init__(self, system: str) -> None:
        self._system = load_system(system)
        self.name = self._system.name
        description = self._system.system
        self.place = Place(is_disk="disk" in description.get("drive", {}))
        self._has_flash = bool(run(self._system, size="4KiB", requests=1, warm_up=0).flash_states)
        self._cache_bytes = 2.0 * _static_cache_bytes(description) * _native.system_size(description).drives
        self.notes: list[str] = []

    def read(self, cell: Cell, number: int) -> Reading:
        """Runs a cell in virtual time."""
        pilot = Reading(self._run(cell, {"requests": PILOT}))
        if len(cell.streams) > 1 or any(stream.rate_per_s is not None for stream in cell.streams):
            rates = sum(pilot.per_s(kind) for kind in ("read", "write", "flush"))
            return Reading(self._run(cell, {"time": f"{max(1, round(1e9 * MODEL_REQUESTS / rates))}ns"}))
        return Reading(self._run(cell, {"requests": MODEL_REQUESTS}))

    def log(self, cell: Cell) -> tuple[Reading, float]:
        """Runs a single stream of writes until no cache is left, if that can be simulated in reasonable time."""
        [stream] = cell.streams
        per_s = Reading(self._run(cell, {"requests": PILOT})).per_s("write")
        count = min(MODEL_WRITES_MAX, max(MODEL_REQUESTS // 4, 1.2 * self._cache_bytes / stream.size_bytes))
        # A cache of DRAM is full after the warm-up; it would hide the medium at the start of the log.
        warm_up = 0 if self._has_flash else MODEL_REQUESTS
        interval_ns = max(INTERVAL_MIN_NS, round(1e9 * count / per_s / BLOCKS))
        blocks = max(BLOCKS // 4, round(1e9 * count / per_s / interval_ns))
        return Reading(self._run(cell, {"time": f"{interval_ns * blocks}ns"}, interval_ns, warm_up)), interval_ns / 1e9

    def cache_bytes(self, is_random: bool) -> float | None:
        """Returns the number of bytes to write before the rate is steady: twice the caches that a full drive has."""
        return 0.0 if is_random else self._cache_bytes

    def _run(self, cell: Cell, length: Mapping[str, Any], interval_ns: int | None = None, warm_up: int = PILOT) -> Any:
        options: dict[str, Any] = {}
        if interval_ns is not None:
            options["interval"] = f"{interval_ns}ns"
        if self._has_flash and any(s.read_percent < 100 and s.random_percent for s in cell.streams):
            options["state"] = "steady"
        if len(cell.streams) == 1 and cell.streams[0].part == (0, 1):
            form = _workload(cell.streams[0], cell.name)
            form["warm_up"] = {"requests": warm_up}
            form["run_length"] = dict(length)
            return run(self._system, Workload(dict(_native.complete_workload(form))), **options)
        return run(self._system, self._scenario(cell, length), **options)

    def _scenario(self, cell: Cell, length: Mapping[str, Any]) -> Scenario:
        streams = []
        for number, stream in enumerate(cell.streams):
            place, parts = stream.part
            described: dict[str, Any] = {
                "name": f"stream {number + 1}",
                "access": {
                    "arrivals": stream.arrivals,
                    "addresses": "uniform",
                    "pointers": stream.pointers,
                    "flush_every": stream.flush_every,
                    "lines": [dict(stream.line)],
                },
            }
            if parts > 1:
                described["range"] = [f"{100 * place / parts:g}%", f"{100 * (place + 1) / parts:g}%"]
            streams.append(described)
        run_length = dict(length) if "time" in length else {"requests": length["requests"]}
        return Scenario(
            {
                "name": cell.name,
                "source": "",
                "cpus": 1,
                "warm_up": {"requests": PILOT, "time": "0ns"},
                "run_length": run_length,
                "streams": streams,
            }
        )


def _static_cache_bytes(description: Any) -> float:
    """Returns the largest static SLC cache in a description, which remains if the drive is full."""
    if isinstance(description, Mapping):
        own = description.get("slc_cache")
        static = float(own.get("static_bytes", 0)) if isinstance(own, Mapping) else 0.0
        return max([static, *(_static_cache_bytes(value) for value in description.values())])
    if isinstance(description, list | tuple):
        return max((_static_cache_bytes(value) for value in description), default=0.0)
    return 0.0


def open_bench(target: str, access: Access, **how: Any) -> Bench:
    """Returns the bench of a real target, or of a model if the target is the name of a system."""
    if is_target(target) or access.create is not None:
        return TargetBench(target, access, **how)
    permissions = {"destroy": access.destroy, "overwrite": access.overwrite}
    options = {"worn_in": how["worn_in"], "range": how["range"], **permissions}
    refused = [name for name, value in options.items() if value]
    if refused:
        raise InputError("applies only to real targets; remove the option", key=refused[0])
    return ModelBench(target)
