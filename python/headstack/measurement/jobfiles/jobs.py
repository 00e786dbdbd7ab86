"""``measure_jobs`` and ``run_jobs``: job files of fio, Iometer and vdbench on real targets or in simulation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Unpack

from headstack import _native
from headstack._native import InputError, RunError
from headstack.catalogue.options import OPTIONS, Spec, applied
from headstack.io.atomic_files import write_text
from headstack.io.json_text import page_of
from headstack.measurement.access import Access
from headstack.measurement.access import Progress as ProgressCallback
from headstack.measurement.jobfiles import fio_json as documents
from headstack.measurement.jobfiles.fio_logs import Logs
from headstack.measurement.jobfiles.fio_status import Status
from headstack.measurement.jobfiles.job_file import JobFile, remark_line
from headstack.measurement.jobfiles.outcome import Outcome
from headstack.measurement.jobfiles.phase_results import PhaseResults
from headstack.measurement.jobfiles.phases import JobPhase, PhaseDemand, PhaseSpec
from headstack.measurement.jobfiles.targets import Disks, TargetFiles, label_targets, names_of, replace_targets
from headstack.measurement.measurement import BY_HAND
from headstack.measurement.specs import ProgressReport, TargetDescription
from headstack.results.results import Results
from headstack.simulation.runs import Options, Progress, System, changed, check, first_spec, labels_of, loaded, texts

SIMULATED = ("Workload", "Load", "Length")
"""Groups of options that a job file sets itself."""


@contextmanager
def name_file_in_errors(file: JobFile) -> Iterator[None]:
    """Prefixes errors of a phase with the name of the file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file.source}: {error}") from None


class JobResults(PhaseResults):
    """Results of job files: a run for each phase, with its jobs, or their groups, as streams."""

    def fio_json(self, plus: bool = False) -> documents.Fields:
        """Returns the document that ``fio --output-format=json`` prints; with ``plus`` that of ``json+``.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=64M\\nnumber_ios=100\\n")
        >>> results = hs.run_jobs("job.fio", "cheetah-x15-36lp")
        >>> results.fio_json()["jobs"][0]["jobname"]
        'reads'
        """
        return documents.fio_json(self, plus)

    def to_fio_json(self, path: str | os.PathLike[str] | None = None, plus: bool = False) -> str:
        """Returns the results as text of ``fio --output-format=json``; with ``plus`` with the histograms of ``json+``.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=64M\\nnumber_ios=100\\n")
        >>> results = hs.run_jobs("job.fio", "cheetah-x15-36lp")
        >>> results.to_fio_json("fio.json").startswith("{")
        True
        """
        text = page_of(self.fio_json(plus))
        if path is not None:
            write_text(path, text)
        return text


def measure_jobs(
    file: str | os.PathLike[str] | JobFile,
    targets: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    *,
    destroy: Iterable[str] = (),
    over: Iterable[str] = (),
    create: str | None = None,
    overwrite: bool = False,
    seed: int = 1,
    interval: str | None = None,
    progress: ProgressCallback | None = None,
) -> JobResults:
    """Runs a job file on files and block devices, phase after phase.

    ``targets``, if given, replace the targets in the file, in the order in which the file names them. Missing files are
    created with the size in the file (otherwise ``create``), and are written completely before the measurement; jobs
    may write them. Existing targets may always be read; to write them, the rules of ``measure`` apply: ``overwrite``
    for files, ``destroy`` for devices.

    An interruption, or an error during a run, keeps the results so far: ``stopped`` and ``ended_early``.

    >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=1M\\nnumber_ios=50\\n")
    >>> hs.measure_jobs("job.fio", "null:100us")[0]["requests"]
    50
    """
    jobs = file if isinstance(file, JobFile) else JobFile.load(file)
    if jobs.tree_phases:
        raise InputError(f"{jobs.source}: its loads use files in folders; use measure_files")
    access = Access(destroy=tuple(destroy), over=tuple(over), create=create, overwrite=overwrite)
    paths = [targets] if isinstance(targets, str | os.PathLike) else list(targets)
    options = {"seed": str(seed)} | ({} if interval is None else {"interval": interval})
    return measure_file(jobs, [os.fspath(target) for target in paths], access, options, progress)


def measure_file(
    file: JobFile,
    targets: Sequence[str],
    access: Access,
    options: dict[str, str],
    progress: ProgressCallback | None,
    status: Status | None = None,
    keep: Callable[[Results], object] | None = None,
) -> JobResults:
    """Runs a parsed file like ``measure_jobs``. ``status`` is called with the results so far, and ``keep`` with each
    phase as soon as it ends."""
    for option in OPTIONS:
        if option.name in options and option.name not in ("seed", "interval"):
            raise InputError(f"{option.name}: already set by {file.source}; remove the option")
    varied = applied({"seed": 1, "interval_ns": None}, options)
    files = TargetFiles(replace_targets(file, targets), access)
    opened = _native.Targets(files.specs)
    described: list[TargetDescription] = opened.described()
    specs: list[PhaseSpec] = [
        {
            "system_name": label_targets(names_of([phase])),
            "phase": phase,
            "targets": files.numbers_of(phase),
            "null_service_ns": files.null_service_ns,
            "seed": varied["seed"],
            "interval_ns": varied["interval_ns"],
            "times_handing_over": file.program == "fio",
            "labels": [],
        }
        for phase in files.phases
    ]
    for spec in specs:
        if spec["phase"].get("curve_point") is None:
            with name_file_in_errors(file):
                opened.check_phase(spec)
    disks = Disks(described)
    course = Course(file)
    logs = Logs(file, files.phases)
    log = _native.RequestLog() if logs.are_wanted or status is not None else None

    def take_rows(index: int, phase: JobPhase) -> None:
        if log is None:
            return
        rows = log.take()
        if logs.are_wanted:
            logs.take(index, rows)
        if status is not None:
            status.take(file, phase, rows, course.results() if course.native is not None else None)

    def run_phase(index: int, phase: JobPhase) -> _native.Results:
        # Jobs without a share of the rate of a curve's point are left out, together with their targets.
        spec: PhaseSpec = specs[index] | {"phase": phase, "targets": files.numbers_of(phase)}

        def report(now: ProgressReport) -> object:
            take_rows(index, phase)
            return progress(now | {"run": index, "runs": len(specs)}) if progress is not None else None

        if status is not None:
            status.begin()
        try:
            results = opened.measure_phase(spec, report, log)
        finally:
            take_rows(index, phase)
            logs.end(index)
        if keep is not None:
            keep(Results(results))
        return results

    try:
        course.follow(files.phases, run_phase)
    finally:
        files.unlink()
        logs.write()
    results = course.results()
    results.disks = disks.since(results.outcomes[-1].elapsed_s)
    failed = results.failed_checks()
    if failed:
        raise RunError(f"a measurement failed an internal check, so its figures are not reliable: {failed[0]}")
    return results


@dataclass
class Course:
    """Runs phases one after another."""

    file: JobFile
    native: _native.Results | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    stopped: str | None = None
    reached: dict[int, list[float]] = field(default_factory=dict)
    """The rate of each job of a phase, in requests per second, by the phase's index in the file."""

    def follow(self, phases: Sequence[JobPhase], run_phase: Callable[[int, JobPhase], _native.Results]) -> None:
        """Runs phases; completed phases are kept after an error or an interruption."""
        began_s = time.monotonic()
        for index, phase in enumerate(phases):
            try:
                phase = self._with_rates(phase)
                if not phase["jobs"]:
                    continue
                results = run_phase(index, phase)
            except KeyboardInterrupt:
                if self.native is None:
                    raise
                self.stopped = BY_HAND
                return
            except (InputError, RunError) as error:
                if self.native is None:
                    raise
                self.stopped = str(error)
                return
            self.native = results if self.native is None else self.native.and_(results)
            self.outcomes.append(Outcome(phase, time.monotonic() - began_s))
            self.reached[index] = _rates(phase, results)
            row = results[0]
            if row["ended_early"] is not None:
                return
            point = phases[index].get("curve_point")
            limit_ns = None if point is None else point["stop_response_ns"]
            if limit_ns is not None and row["mean_ms"] > limit_ns / 1e6:
                return

    def _with_rates(self, phase: JobPhase) -> JobPhase:
        """Returns a point of a curve, with rates derived from the phase without a rate limit."""
        point = phase.get("curve_point")
        if point is None:
            return phase
        reached = self.reached.get(point["max_phase"], [])
        with_rates: JobPhase = _native.phase_at_observed(phase, reached)
        return with_rates

    def results(self) -> JobResults:
        """Returns the results of the phases that were run."""
        if self.native is None:
            raise InputError(f"{self.file.source}: contains nothing to run")
        results = JobResults(self.native, (), self.file, self.outcomes)
        results.stopped = self.stopped
        return results


def _rates(phase: JobPhase, results: _native.Results) -> list[float]:
    """Returns the rate of each job of a phase, in requests per second; jobs of one stream share it evenly."""
    names = _native.phase_stream_names(phase)
    streams = {stream["stream"]: stream["iops"] or 0.0 for stream in results.streams_of(0)}
    if not streams:
        return [results[0]["iops"]]
    bearers = [name for copies in names for name in copies]
    return [sum(streams.get(name, 0.0) / bearers.count(name) for name in copies) for copies in names]


def run_jobs(
    file: str | os.PathLike[str] | JobFile,
    systems: System | Iterable[System],
    *,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> JobResults:
    """Simulates a job file on systems, phase after phase. Options are the ``seed``, the ``interval`` and those options
    of ``run`` that change the system, with one value each.

    The file's targets are concatenated on the system. ``remarks`` lists differences between the simulation and a
    measurement.

    >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=64M\\nnumber_ios=100\\n")
    >>> results = hs.run_jobs("job.fio", "cheetah-x15-36lp")
    >>> results[0]["requests"]
    100
    """
    jobs = file if isinstance(file, JobFile) else JobFile.load(file)
    return run_file(jobs, systems, options, progress)


def run_file(
    file: JobFile, systems: System | Iterable[System], options: Any, progress: Progress | None = None
) -> JobResults:
    """Simulates a parsed file like ``run_jobs``."""
    if file.tree_phases:
        raise InputError(f"{file.source}: loads on files in folders are measured, not simulated; use headstack measure")
    values = {name: texts(options[name]) for name in options}
    check(values, [])
    refuse(values, file)
    chosen = {name: value for name, [value] in values.items()}
    joined: JobResults | None = None
    for system in loaded(systems, values):
        results = _simulated(file, changed(system, chosen), chosen, progress)
        if joined is None:
            joined = results
        else:
            remarks = list(dict.fromkeys([*joined.remarks, *results.remarks]))
            joined = JobResults(joined._native.and_(results._native), (), file, [*joined.outcomes, *results.outcomes])
            joined.remarks = remarks
    if joined is None:
        raise InputError("no system is named")
    failed = joined.failed_checks()
    if failed:
        raise RunError(f"a run failed an internal check, so its figures are not reliable: {failed[0]}")
    return joined


def _simulated(file: JobFile, system: Any, chosen: dict[str, str], progress: Progress | None) -> JobResults:
    """Simulates the phases on one system, all in parallel unless a phase depends on the results of another."""
    remarks: list[str] = []

    def specify(phase: JobPhase) -> Spec:
        spec = first_spec(system, None)
        spec = applied(spec, chosen)
        capacity_bytes = spec["span"][1] if spec["span"] else system.capacity_bytes
        with name_file_in_errors(file):
            demand: PhaseDemand = _native.phase_demand(phase, capacity_bytes)
        remarks.extend(remark_line(file.source, remark) for remark in demand["remarks"])
        spec["stream_names"] = demand["streams"]
        spec["labels"] = labels_of(spec["system"], chosen)
        if "workload" in demand:
            return {**spec, "workload": demand["workload"]}
        return {**spec, "scenario": demand["scenario"]}

    if any(phase.get("curve_point") for phase in file.phases):
        course = Course(file)
        course.follow(file.phases, lambda _, phase: _native.run([specify(phase)], progress))
        results = course.results()
        if results.stopped is not None:
            raise RunError(results.stopped)
    else:
        native = _native.run([specify(phase) for phase in file.phases], progress)
        results = JobResults(native, (), file, [Outcome(phase, 0.0) for phase in file.phases])
    results.remarks += dict.fromkeys(remarks)
    return results


def refuse(values: dict[str, list[str]], file: JobFile) -> None:
    """Rejects options that a job file sets itself, and lists of values."""
    groups = {option.name: option.group for option in OPTIONS}
    for name, values_of in values.items():
        if groups[name] in SIMULATED and name not in ("seed", "interval", "range", "lun"):
            raise InputError(f"already set by {file.source}; remove the option", key=name)
        if len(values_of) > 1:
            raise InputError(f"{len(values_of)} values; a simulation of a job file takes only one", key=name)
