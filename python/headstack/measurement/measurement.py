"""``measure``: measures files, block devices and NBD exports with the workloads, options and results of simulations.
See docs/design/measuring.md.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Unpack

from headstack import _native
from headstack._native import InputError, RunError
from headstack.catalogue.demand import load_demand
from headstack.catalogue.options import IN_RESULTS, OPTIONS, Spec, applied
from headstack.catalogue.scenario import Scenario
from headstack.catalogue.workload import Workload
from headstack.io import signals
from headstack.io.values import choice, whole
from headstack.measurement.access import ENGINES, SLOTS, Access, Progress, is_null
from headstack.measurement.scenarios import measure_scenario
from headstack.measurement.specs import (
    JobSpec,
    Limits,
    PassEnd,
    PassSpec,
    ProgressReport,
    RunSpec,
    Stretch,
    TargetDescription,
    TargetSpec,
)
from headstack.measurement.verifying import Verifying
from headstack.results.results import Results
from headstack.simulation.runs import CURVE_DEPTHS, Demand, Options, check, one_size, several, swept, texts

NOTHING = Verifying()

TIME = "10s"
"""Default duration of a measurement; the time that a number of requests takes is not known in advance."""

EXPORT = re.compile(r"nbds?(\+[a-z]+)?://", re.IGNORECASE)
"""Prefix of the addresses of exports."""

BY_HAND = "stopped by hand"
"""Reason for an early end that results give for an interruption."""


MEASURED_OPTIONS = tuple(
    option
    for option in OPTIONS
    if option.group in ("Workload", "Load", "Length") and option.name not in ("preload", "lun")
)
"""Options that vary a measurement, as in a run."""


def is_export(path: str) -> bool:
    """Whether the path is the address of an export: ``nbd://host:port/name``, ``nbd+unix:///name?socket=PATH``."""
    return EXPORT.match(path) is not None


def is_target(system: object) -> bool:
    """Whether a system is a real file, device or export, and not an entry of the catalogue or a description."""
    if not isinstance(system, str | os.PathLike):
        return False
    path = os.fspath(system)
    if is_null(path) or is_export(path) or path.startswith("/dev/"):
        return True
    if path.endswith(".toml"):
        return False
    try:
        mode = os.stat(path).st_mode
    except OSError:
        # The file does not exist yet.
        return os.sep in path and ".toml" not in path
    return stat.S_ISBLK(mode) or stat.S_ISREG(mode)


def measure(
    target: str | os.PathLike[str],
    workload: Demand | Iterable[Demand] | None = None,
    *,
    destroy: Iterable[str] = (),
    over: Iterable[str] = (),
    create: str | None = None,
    overwrite: bool = False,
    buffered: bool = False,
    engine: str = "auto",
    threads: int = 1,
    slots: int = SLOTS,
    connections: int = 1,
    zoned: str | None = None,
    open_zones: int = 0,
    verify: str = "no",
    ledger: str | os.PathLike[str] | None = None,
    resume: bool = False,
    luns: Mapping[str, str] = MappingProxyType({}),
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Results:
    """Measures a file, block device or export (``nbd://host:port/name``) under every workload and combination of
    options, one after the other.

    Workloads and options are those of ``run``; a measurement takes 10 seconds unless ``requests``, ``time`` or
    ``confidence`` is given. Reading needs no permission. A workload that writes needs ``destroy`` with the device's
    name or serial number or an export's address, or ``overwrite`` for an existing file. With ``zoned`` writes go to the
    write pointers of zones, which are zones of the ``device`` or have a given size. ``verify`` is ``stamp``,
    ``stamp_and_read`` or ``check``, with a ``ledger`` that survives the process if it is a file (see ``Verifying``).
    ``progress`` is called with a dictionary. An interruption (Ctrl-C) ends the measurement and keeps the results so
    far: ``ended_early`` in the table of results.

    A scenario, with its own length, may be given instead of a workload. ``luns`` maps the names of its LUNs to files or
    devices, except for the LUN at ``target``.

    >>> [row["depth"] for row in hs.measure("null:100us", "file-server", depth=[1, 4], requests=50)]
    [1, 4]
    """
    access = Access(
        destroy=tuple(destroy),
        over=tuple(over),
        create=create,
        overwrite=overwrite,
        buffered=buffered,
        engine=engine,
        threads=threads,
        slots=slots,
        connections=connections,
        zoned=zoned,
        open_zones=open_zones,
    )
    verifying = Verifying(verify, None if ledger is None else os.fspath(ledger), resume)
    return measure_target(os.fspath(target), workload, access, options, progress, verifying, luns)


def verify(
    target: str | os.PathLike[str],
    *,
    ledger: str | os.PathLike[str] | None = None,
    buffered: bool = False,
    engine: str = "auto",
    progress: Progress | None = None,
) -> Results:
    """Reads the data that a run with verification wrote to a target, and checks them; this also works after a crash.

    ``ledger`` is the ledger file of the run. Without a ledger only the stamps are checked, which detects damaged and
    misplaced data, but not lost updates. ``integrity`` of the results has the findings. An interruption (Ctrl-C) ends
    the check and keeps the findings so far.

    >>> writing = hs.Workload.uniform(read="0")
    >>> _ = hs.measure("data.bin", writing, create="1MiB", buffered=True, requests=50, verify="stamp")
    >>> hs.verify("data.bin", buffered=True).integrity(0)["damaged"]
    0
    """
    spec: TargetSpec = {"path": os.fspath(target), "direct": not buffered, "write": False}
    targets = _native.Targets([spec])
    chosen_engine = choice("engine", engine, ENGINES)
    return Results(targets.verify(chosen_engine, None if ledger is None else os.fspath(ledger), progress))


def measure_curve(
    target: str | os.PathLike[str],
    workload: Demand | Iterable[Demand] | None,
    access: Access,
    options: Mapping[str, Any],
    progress: Progress | None = None,
) -> Results:
    """Measures like ``measure`` at queue depths of 1 to 256 unless depths or rates are given."""
    loads = dict(options)
    if "depth" not in loads and "rate" not in loads:
        loads["depth"] = CURVE_DEPTHS
    return measure_target(os.fspath(target), workload, access, loads, progress)


def measure_target(
    path: str,
    workload: Demand | Iterable[Demand] | None,
    access: Access,
    options: Mapping[str, Any],
    progress: Progress | None,
    verifying: Verifying = NOTHING,
    luns: Mapping[str, str] = MappingProxyType({}),
) -> Results:
    """Opens a target and measures it; ``luns`` as in ``measure``."""
    scenario = scenario_of(several(workload))
    if scenario is not None:
        if verifying != NOTHING:
            raise InputError(f"{scenario.name} is a scenario; name a workload", key="verify")
        return scenario_measured(path, scenario, luns, access, options, progress)
    if luns:
        raise InputError("only scenarios name LUNs; remove the option", key="lun")
    opened, steps = prepared(path, workload, access, options, verifying)
    return opened.measure(steps, progress, swept(options))


def scenario_measured(
    path: str,
    scenario: Scenario,
    luns: Mapping[str, str],
    access: Access,
    options: Mapping[str, Any],
    progress: Progress | None,
) -> Results:
    """Runs a scenario; other arguments are as in ``measure``."""
    values = {name: texts(options[name]) for name in options}
    check(values, [scenario])
    return measure_scenario(path, scenario, luns, access, values, progress)


def prepared(
    path: str,
    workload: Demand | Iterable[Demand] | None,
    access: Access,
    options: Mapping[str, Any],
    verifying: Verifying = NOTHING,
) -> tuple[Opened, list[Step]]:
    """Opens a target, and returns the target and the steps to measure."""
    values = {name: texts(options[name]) for name in options}
    demands = workloads_of(workload)
    refuse_others(values, demands)
    writing = any(writes(demand or one_size_of(values)) for demand in demands)
    opened = Opened([path], access, writing, verifying.checked(writing))
    ordered = [option for option in MEASURED_OPTIONS if option.name in values]
    steps = []
    for demand in demands:
        for point in itertools.product(*(values[option.name] for option in ordered)):
            chosen = {option.name: text for option, text in zip(ordered, point, strict=True)}
            steps.append(_step(path, opened.described[0], demand or one_size(chosen), chosen))
    return opened, steps


def scenario_of(demands: Iterable[Demand | None]) -> Scenario | None:
    """Returns the scenario, if any; a scenario must be the only load."""
    loads = [load_demand(demand) if isinstance(demand, str | os.PathLike) else demand for demand in demands]
    scenarios = [load for load in loads if isinstance(load, Scenario)]
    if scenarios and len(loads) > 1:
        raise InputError(f"{scenarios[0].name}: a scenario must be the only load; remove the other workloads")
    return scenarios[0] if scenarios else None


def workloads_of(workload: Demand | Iterable[Demand] | None) -> list[Workload | None]:
    """Returns the workloads; ``None`` stands for the workload that the options define."""
    workloads: list[Workload | None] = []
    for demand in several(workload):
        load = load_demand(demand) if isinstance(demand, str | os.PathLike) else demand
        if isinstance(load, Scenario):
            raise InputError(f"{load.name} is a scenario; name a workload")
        workloads.append(load)
    return workloads


def refuse_others(values: Mapping[str, list[str]], demands: list[Workload | None]) -> None:
    """Rejects options that contradict each other, or that only apply to simulations."""
    check(values, demands)
    measured = {option.name for option in MEASURED_OPTIONS}
    for name in values:
        if name not in measured:
            raise InputError("does not apply to real targets; remove the option", key=name)


def one_size_of(values: Mapping[str, list[str]]) -> Workload:
    """Returns a workload with the first value of each option, to determine whether it writes; considers all values of
    ``read``."""
    reads = values.get("read", ["100"])
    least = min(
        reads, key=lambda text: float(text.rstrip("%")) if text.rstrip("%").replace(".", "", 1).isdigit() else 0
    )
    return Workload.uniform(read=least)


def writes(workload: Workload) -> bool:
    """Whether the workload has requests other than reads."""
    return any(float(line["read_percent"]) < 100 for line in workload.description["lines"])


def _step(path: str, described: TargetDescription, demand: Workload, chosen: Mapping[str, str]) -> Step:
    """Returns one measurement with the chosen options."""
    spec: Spec = {
        "system_name": path,
        "target": {"capacity_bytes": described["capacity_bytes"], "block_bytes": described["block_bytes"]},
        **demand.demand,
        "span": None,
        "seed": 1,
        "interval_ns": None,
    }
    if not {"requests", "time", "confidence"} & chosen.keys():
        spec["workload"]["run_length"] = {"time": TIME}
    spec = applied(spec, chosen)
    return Step(
        spec["workload"],
        spec["span"],
        labels={name: text for name, text in chosen.items() if name not in IN_RESULTS},
        seed=spec["seed"],
        interval_ns=spec["interval_ns"],
        name=spec["system_name"],
    )


def _number_runs(progress: Progress, run: int, runs: int) -> Progress:
    """Returns the progress of one run among several."""

    def report(now: ProgressReport) -> object:
        return progress(now | {"run": run, "runs": runs})

    return report


@dataclass(frozen=True)
class Step:
    """One measurement on an open target."""

    workload: Mapping[str, Any]
    """The description of a ``Workload``."""
    span: tuple[int, int] | None = None
    """First byte and length in bytes of the used part; ``None`` for the whole target."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """End conditions ``requests``, ``bytes`` and ``time_ns``; the first condition reached ends the run. Without a
    condition, the workload's run length applies. """
    labels: Mapping[str, str] = field(default_factory=dict)
    """Additional columns in the table of results."""
    seed: int = 1
    interval_ns: int | None = None
    name: str | None = None
    """The name of the system in results; the target's path if ``None``."""
    target: int = 0
    """The number of the target."""
    threads: int | None = None
    """Number of threads; ``None`` for the number in ``Access``."""


class Opened:
    """Targets opened with the given permissions, for several measurements one after the other."""

    def __init__(self, paths: Sequence[str], access: Access, writing: bool, verifying: Verifying = NOTHING) -> None:
        """Opens the targets. Raises ``InputError`` if a target cannot be opened, or if ``access`` does not permit
        it."""
        self.paths, self.access, self.writing, self._verifying = list(paths), access, writing, verifying
        self._engines = [access.engine_of(path) for path in paths]
        permitted = replace(access, write=writing)
        self._targets = _native.Targets([permitted.target_spec(path) for path in paths])
        self.described: list[TargetDescription] = self._targets.described()
        self.ended: str | None = None
        """Reason why a measurement ended early; if set, the remaining work should be skipped."""

    def measure(
        self,
        steps: Sequence[Step],
        progress: Progress | None = None,
        swept: Sequence[str] = (),
        log: _native.RequestLog | None = None,
    ) -> Results:
        """Runs the steps one after the other; ``log`` records individual requests."""
        return self._measure_runs([self._run([step]) for step in steps], progress, swept, log)

    def each(self, steps: Sequence[Step], progress: Progress | None = None) -> Iterator[Results]:
        """Runs steps like ``measure``, and yields the results of each step as soon as it ends."""
        for number, step in enumerate(steps):
            report = None if progress is None else _number_runs(progress, number, len(steps))
            yield self._measure_runs([self._run([step])], report, (), None)
            if self.ended is not None:
                return

    def measure_together(
        self, steps: Sequence[Step], progress: Progress | None = None, log: _native.RequestLog | None = None
    ) -> Results:
        """Runs all steps at the same time as one run, with a stream for each name of a workload.

        The jobs of ``log`` are the steps if each has one thread.
        """
        return self._measure_runs([self._run(steps)], progress, (), log)

    def stream(self, spec: PassSpec, keep: Callable[[Stretch], object], progress: Callable[[int], object]) -> PassEnd:
        """Makes one pass over all targets as one striped stream; ``keep`` is called with each interval, ``progress``
        with the position.

        An exception of ``keep`` or ``progress`` ends the pass, and is raised after all results are kept.
        """
        end: PassEnd = self._targets.stream({**spec, "engines": self._engines}, keep, progress)
        return end

    def discard(self, target: int = 0) -> None:
        """Discards the contents of a block device. Raises ``InputError`` if this is not possible."""
        self._targets.discard(target)

    def pause(self, seconds: float) -> None:
        """Waits; an interruption sets ``ended``."""
        try:
            with signals.raising():
                time.sleep(seconds)
        except KeyboardInterrupt:
            self.ended = BY_HAND

    def _measure_runs(
        self,
        runs: list[RunSpec],
        progress: Progress | None,
        swept: Sequence[str],
        log: _native.RequestLog | None,
    ) -> Results:
        ledger, resume = self._verifying.ledger, self._verifying.resume
        results = Results(self._targets.measure(runs, progress, log, ledger, resume), swept)
        # Later measurements resume this ledger.
        self._verifying = replace(self._verifying, resume=ledger is not None)
        failed = results.failed_checks()
        if failed:
            raise RunError(f"a measurement failed an internal check, so its figures are not reliable: {failed[0]}")
        self.ended = next((row["ended_early"] for row in results if row["ended_early"] is not None), self.ended)
        return results

    def _run(self, steps: Sequence[Step]) -> RunSpec:
        first = steps[0]
        return {
            "system_name": first.name or self.paths[first.target],
            "workload": first.workload,
            "jobs": [self._job(step) for step in steps],
            "seed": first.seed,
            "interval_ns": first.interval_ns,
            "labels": list(first.labels.items()),
        }

    def _job(self, step: Step) -> JobSpec:
        """Returns the job of a step; the threads of the job share the load."""
        limits: Limits = {
            "requests": step.limits.get("requests"),
            "bytes": step.limits.get("bytes"),
            "time_ns": step.limits.get("time_ns"),
        }
        return {
            "name": step.workload["name"],
            "targets": [step.target],
            "span": step.span,
            "workload": step.workload,
            "threads": self.access.threads if step.threads is None else step.threads,
            "limits": limits,
            "engine": self._engines[step.target],
            "slots": whole("slots", str(self.access.slots)),
            "start_delay_ns": 0,
            "seed": step.seed,
            "verify": self._verifying.kind,
            "zones": self.access.zones(),
        }
