"""Low-level tests of a real file or device: fewer than for a simulated system, with durations derived from the time
limit.
"""

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
from headstack.prediction.characterization import Characterization, calibrate
from headstack.prediction.grid import PAGE, Axes, Bench, Progress, RunSummary, StoppedError, run_grid, summarize_run
from headstack.prediction.stored_tests import folder_of, open_stored_tests, skip_finished
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
"""Axes for a real device: some 200 tests of reads, 500 with writes."""
TIME = "5min"
LEAST_NS = 20_000_000
"""Minimum duration of a test in ns."""
LONGER = (1, 2, 4, 8, 16, 32)
"""Factors by which a test without any completed request is lengthened and repeated: the machine may have been busy, or
a disk may have been spinning up."""
OPEN_SHARE = 0.8
"""Share of the random environments that are also tested with arrivals: all except the sequential ones."""


@dataclass
class Device:
    """An open real target, with the duration of its tests."""

    opened: Opened
    test_ns: int
    planned: int
    done: int = 0

    def spec(self, workload: Workload) -> Spec:
        """Returns a run of a workload."""
        return {**workload.demand, "span": None, "seed": 1}

    def run(self, specs: Sequence[Spec], report: Progress) -> list[RunSummary]:
        """Runs one test after the other. Raises ``StoppedError`` with the results so far on an interruption."""
        summaries: list[RunSummary] = []
        for spec in specs:
            if self.opened.ended is None:
                results = self._measure_until_completed(spec)
            if self.opened.ended is not None:
                raise StoppedError(summaries, self.opened.ended, self.done, self.planned)
            summaries.append(summarize_run(results[0], partial(_quantile_ms, results)))
            self.done += 1
            report(min(1.0, self.done / self.planned))
        return summaries

    def _measure_until_completed(self, spec: Spec) -> Results:
        """Runs one test with increasing duration until requests complete, or an interruption.

        Raises ``RunError`` if none completes in the longest one.
        """
        for times in LONGER:
            workload = spec["workload"] | {"run_length": {"time": f"{times * self.test_ns}ns"}}
            results = self.opened.measure([Step(workload, spec["span"], seed=spec["seed"])])
            if self.opened.ended is not None or results[0]["iops"]:
                return results
        raise RunError(
            f"{results[0]['system']}: no request completed within {LONGER[-1] * self.test_ns / 1e9:g} s; "
            "use a longer --time"
        )


def measure_device(
    path: str, access: Access, time: str = TIME, axes: Axes = MEASURED, progress: Progress | None = None
) -> Characterization:
    """Measures the low-level tests of a file or device within a total time. It only reads unless ``access`` permits
    writes, which destroy the contents. Resumes an interrupted measurement.

    Raises ``InputError`` if the target cannot be opened or the time is too short, and ``StoppedError`` if an
    interruption leaves tests incomplete.
    """
    writes = bool(access.destroy) or access.overwrite or access.create is not None or is_null(path)
    opened = Opened([path], access, writes)
    described = opened.described[0]
    device = Device(opened, 0, 0)
    report = progress or (lambda share: None)
    bench = Bench(
        path,
        0,
        described["capacity_bytes"],
        max(PAGE, described["block_bytes"]),
        (float(PAGE),),
        0,
        writes,
        device.spec,
        lambda specs, _: device.run(specs, report),
    )
    device.planned = count_tests(bench, axes)
    device.test_ns = duration_ns("time", time) // device.planned
    if device.test_ns < LEAST_NS:
        least_s = device.planned * LEAST_NS / 1e9
        raise InputError(
            f"{time} is too short for {device.planned} tests of {path}; use {least_s:.0f}s or more", key="time"
        )
    key = key_of([path, described, asdict(axes), device.test_ns])
    digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
    with open_stored_tests(_folder(path, described, access, axes, device.test_ns)) as tests:
        device.done = len(tests)
        resumed_bench = skip_finished(bench, tests, at_once=1)
        characterization = calibrate(resumed_bench, axes, run_grid(resumed_bench, axes, None), "measured", digest, None)
        if opened.ended is None:
            tests.remove()
    return characterization


def _folder(path: str, described: TargetDescription, access: Access, axes: Axes, test_ns: int) -> Path:
    """Returns the folder for a target's tests until all are complete; it is the target's own, wherever it is
    attached."""
    named = path if is_null(path) else None
    key = key_of([named, identity(described), asdict(access), asdict(axes), test_ns])
    return folder_of(None) / f"measured-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"


def _quantile_ms(results: Results, level: float) -> float | None:
    return results.percentile_ms(0, 100 * level)


def count_tests(bench: Bench, axes: Axes) -> int:
    """Returns the number of tests, including random environments."""
    counted: list[int] = []

    def count(specs: Sequence[Spec], _: Progress | None) -> list[RunSummary]:
        counted.append(len(specs))
        return [RunSummary(1e6, 1e6, 0.0, "", [1.0] * 9)] * len(specs)

    run_grid(replace(bench, run=count), axes, None)
    return sum(counted) + round(axes.environments * (1 + OPEN_SHARE))
