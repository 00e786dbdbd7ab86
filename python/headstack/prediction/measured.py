"""The low-level tests of a real file or device: fewer than of a simulated system, each as long as the time allows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from headstack._native import InputError, RunError
from headstack.catalogue.options import Spec
from headstack.catalogue.workload import Workload
from headstack.io.json_text import key_of
from headstack.io.values import duration_ns
from headstack.measurement.access import Access, is_null
from headstack.measurement.measurement import Opened, Step
from headstack.measurement.specs import TargetDescription
from headstack.measurement.tests.conditioning.log import identity
from headstack.prediction.characterization import Characterization, calibrated
from headstack.prediction.grid import PAGE, Axes, Bench, Progress, Ran, StoppedError, characterized, ran
from headstack.prediction.kept import folder_of, kept_tests, resumed
from headstack.results.results import Results

KIB = 1024
MEASURED = Axes(
    depths=(1, 4, 16, 64),
    sizes_bytes=(4 * KIB, 64 * KIB, 512 * KIB),
    range_steps=(8, 64),
    streams=(2, 8),
    switches=(0.0, 1 / 16, 1.0),
    random_shares=(0.1, 0.5, 1.0),
    read_shares=(0.0, 0.5, 1.0),
    mixed_sizes_bytes=(4 * KIB, 64 * KIB),
    mixed_ranges=(0,),
    hot_shares=(0.5, 0.9),
    hot_ranges=(1,),
    open_shares=(1, 2),
    loads=(0.2, 0.5, 0.8),
    warm_up=4,
    environments=60,
)
"""What a real device is tested with: some 200 tests of reads, 500 with writes."""
TIME = "5min"
LEAST_NS = 20_000_000
"""A test that is shorter tells nothing."""
LONGER = (1, 2, 4, 8, 16, 32)
"""How many times as long a test is made again that no request was answered in: a machine that was busy elsewhere, or a
disk that spun up, hid it."""
OPEN_SHARE = 0.8
"""Of the environments drawn at random, those that are tested with arrivals, too: all but the sequential ones."""


@dataclass
class Device:
    """A real target that is open, and how long each of its tests takes."""

    opened: Opened
    test_ns: int
    planned: int
    done: int = 0

    def spec(self, workload: Workload) -> Spec:
        """A run of a workload."""
        return {**workload.demand, "span": None, "seed": 1}

    def run(self, specs: Sequence[Spec], told: Progress) -> list[Ran]:
        """One test after the other. Raises ``StoppedError`` with what was measured when somebody ends it."""
        found: list[Ran] = []
        for spec in specs:
            if self.opened.ended is None:
                results = self._answered(spec)
            if self.opened.ended is not None:
                raise StoppedError(found, self.opened.ended, self.done, self.planned)
            found.append(ran(results[0], partial(_quantile_ms, results)))
            self.done += 1
            told(min(1.0, self.done / self.planned))
        return found

    def _answered(self, spec: Spec) -> Results:
        """One test, as long as it takes for requests to be answered in it, or somebody to end it.

        Raises ``RunError`` where none is answered in the longest.
        """
        for times in LONGER:
            workload = spec["workload"] | {"run_length": {"time": f"{times * self.test_ns}ns"}}
            results = self.opened.measure([Step(workload, spec["span"], seed=spec["seed"])])
            if self.opened.ended is not None or results[0]["iops"]:
                return results
        raise RunError(
            f"{results[0]['system']}: no request was answered within {LONGER[-1] * self.test_ns / 1e9:g} s; "
            "give it more time"
        )


def measured(
    path: str, access: Access, time: str = TIME, axes: Axes = MEASURED, progress: Progress | None = None
) -> Characterization:
    """Measures the low-level tests of a file or device, for so long in all. Reads alone, unless ``access`` lets writes
    be: those that it names are lost. Goes on where the same was ended before.

    Raises ``InputError`` when it cannot be opened or the time is too short, ``StoppedError`` when somebody ends it
    before the tests are whole.
    """
    writes = bool(access.destroy) or access.overwrite or access.create is not None or is_null(path)
    opened = Opened([path], access, writes)
    described = opened.described[0]
    device = Device(opened, 0, 0)
    told = progress or (lambda share: None)
    bench = Bench(
        path,
        0,
        described["capacity_bytes"],
        max(PAGE, described["block_bytes"]),
        (float(PAGE),),
        0,
        writes,
        device.spec,
        lambda specs, _: device.run(specs, told),
    )
    device.planned = planned(bench, axes)
    device.test_ns = duration_ns("time", time) // device.planned
    if device.test_ns < LEAST_NS:
        least_s = device.planned * LEAST_NS / 1e9
        raise InputError(
            f"{time} is too short for {device.planned} tests of {path}; {least_s:.0f}s or more is allowed", key="time"
        )
    key = key_of([path, described, asdict(axes), device.test_ns])
    digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
    with kept_tests(_folder(path, described, access, axes, device.test_ns)) as tests:
        device.done = len(tests)
        goes_on = resumed(bench, tests, at_once=1)
        found = calibrated(goes_on, axes, characterized(goes_on, axes, None), "measured", digest, None)
        if opened.ended is None:
            tests.remove()
    return found


def _folder(path: str, described: TargetDescription, access: Access, axes: Axes, test_ns: int) -> Path:
    """Where the tests of a target are kept until all are made: its own, wherever it is attached."""
    named = path if is_null(path) else None
    told = key_of([named, identity(described), asdict(access), asdict(axes), test_ns])
    return folder_of(None) / f"measured-{hashlib.blake2b(told.encode(), digest_size=16).hexdigest()}"


def _quantile_ms(results: Results, level: float) -> float | None:
    return results.percentile_ms(0, 100 * level)


def planned(bench: Bench, axes: Axes) -> int:
    """How many tests there are, those of environments drawn at random among them."""
    counted: list[int] = []

    def count(specs: Sequence[Spec], _: Progress | None) -> list[Ran]:
        counted.append(len(specs))
        return [Ran(1e6, 1e6, 0.0, "", [1.0] * 9)] * len(specs)

    characterized(replace(bench, run=count), axes, None)
    return sum(counted) + round(axes.environments * (1 + OPEN_SHARE))
