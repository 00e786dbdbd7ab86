"""headstack: a storage performance laboratory.

::

    import headstack as hs

    results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4, 16, 64])
    results.plot("curve.png")
    hs.curve(["atlas-10k-iii-73", "atlas-10k-iii-73@36.7GB"], "file-server").knees()

A *system* is a drive or an array of the catalogue or of a TOML file, or a part of it (``NAME@RANGE``).
A *workload* is one of the catalogue, a TOML file, or set by ``size``, ``read`` and ``random``; you can use a *scenario*
of the catalogue or a TOML file instead. Write quantities as text with their unit (``"64KiB"``, ``"8.5ms"``); a list of
values is swept.
"""

# Loading ``typing`` takes as long as starting Python.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from headstack import crash, studies
    from headstack._native import InputError, RunError, catalogue_hash
    from headstack.catalogue import arrays, drives, prices, scenarios, stacks, workloads
    from headstack.catalogue.array import Array
    from headstack.catalogue.drive import Drive, import_disksim
    from headstack.catalogue.scenario import Scenario
    from headstack.catalogue.workload import Workload
    from headstack.choice.question_parser import choose
    from headstack.comparison.comparison import Comparison, compare
    from headstack.comparison.differences.difference import Difference, difference
    from headstack.comparison.scoreboard.board import Scoreboard, scoreboard
    from headstack.comparison.validation import Validation, validate
    from headstack.diagnosis.doctor.diagnosis import Diagnosis, doctor
    from headstack.diagnosis.inspection.inspect import inspect
    from headstack.diagnosis.judging.asking import Judged, judge
    from headstack.live.serving import Live, Serving, serve
    from headstack.measurement.access import Access
    from headstack.measurement.fio.collected import fio_results
    from headstack.measurement.hosts.joined import HostResults, SeenHost
    from headstack.measurement.hosts.measuring import measure_hosts
    from headstack.measurement.jobfiles.job_file import JobFile
    from headstack.measurement.jobfiles.jobs import JobResults, measure_jobs, run_jobs
    from headstack.measurement.jobfiles.trees import measure_files, verify_files
    from headstack.measurement.measurement import measure, verify
    from headstack.measurement.replays import replay
    from headstack.measurement.tests.classic.crystal import crystal
    from headstack.measurement.tests.classic.fsync import fsync
    from headstack.measurement.tests.classic.latency import latency
    from headstack.measurement.tests.classic.prefill import prefill
    from headstack.measurement.tests.classic.zones import zones
    from headstack.measurement.tests.settings.outcome import DeviceSettings
    from headstack.measurement.tests.settings.settings import settings
    from headstack.prediction.predictor import Characterization, Environment, characterize, load_environment, predict
    from headstack.results.explorer import explore
    from headstack.results.results import Results
    from headstack.results.table import Knee
    from headstack.simulation.runs import Options, curve, run
    from headstack.simulation.sweeps import Sweep, sweep
    from headstack.traces.cache_lab import CacheLab, caches
    from headstack.traces.synthesis import Synthesis, synthesize, synthesize_scenario
    from headstack.traces.traces import Trace, capture

    __version__: str

# Modules are imported when a name of theirs is first used, which keeps startup fast.
_NAMES_BY_MODULE = {
    "_native": ("InputError", "RunError", "catalogue_hash"),
    "catalogue.array": ("Array",),
    "catalogue.drive": ("Drive", "import_disksim"),
    "catalogue.scenario": ("Scenario",),
    "catalogue.workload": ("Workload",),
    "choice.question_parser": ("choose",),
    "comparison.comparison": ("Comparison", "compare"),
    "comparison.differences.difference": ("Difference", "difference"),
    "comparison.scoreboard.board": ("Scoreboard", "scoreboard"),
    "comparison.validation": ("Validation", "validate"),
    "diagnosis.doctor.diagnosis": ("Diagnosis", "doctor"),
    "diagnosis.inspection.inspect": ("inspect",),
    "diagnosis.judging.asking": ("Judged", "judge"),
    "live.serving": ("Live", "Serving", "serve"),
    "measurement.access": ("Access",),
    "measurement.fio.collected": ("fio_results",),
    "measurement.hosts.joined": ("HostResults", "SeenHost"),
    "measurement.hosts.measuring": ("measure_hosts",),
    "measurement.jobfiles.job_file": ("JobFile",),
    "measurement.jobfiles.jobs": ("JobResults", "measure_jobs", "run_jobs"),
    "measurement.jobfiles.trees": ("measure_files", "verify_files"),
    "measurement.measurement": ("measure", "verify"),
    "measurement.replays": ("replay",),
    "measurement.tests.classic.crystal": ("crystal",),
    "measurement.tests.classic.fsync": ("fsync",),
    "measurement.tests.classic.latency": ("latency",),
    "measurement.tests.classic.prefill": ("prefill",),
    "measurement.tests.classic.zones": ("zones",),
    "measurement.tests.settings.outcome": ("DeviceSettings",),
    "measurement.tests.settings.settings": ("settings",),
    "prediction.predictor": ("Characterization", "Environment", "characterize", "load_environment", "predict"),
    "results.explorer": ("explore",),
    "results.results": ("Results",),
    "results.table": ("Knee",),
    "simulation.runs": ("Options", "curve", "run"),
    "simulation.sweeps": ("Sweep", "sweep"),
    "traces.cache_lab": ("CacheLab", "caches"),
    "traces.synthesis": ("Synthesis", "synthesize", "synthesize_scenario"),
    "traces.traces": ("Trace", "capture"),
}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}
_MODULES = {
    **{name: f"catalogue.{name}" for name in ("arrays", "drives", "prices", "scenarios", "stacks", "workloads")},
    **{name: name for name in ("crash", "studies")},
}


def __getattr__(name: str) -> object:
    from importlib import import_module  # start-up time

    if name == "__version__":
        return import_module("headstack._native").version()
    if name in _MODULES:
        return import_module(f"headstack.{_MODULES[name]}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'headstack' has no attribute {name!r}")
    attribute = globals()[name] = getattr(import_module(f"headstack.{_MODULE_OF[name]}"), name)
    return attribute


__all__ = [
    "Access",
    "Array",
    "CacheLab",
    "Characterization",
    "Comparison",
    "DeviceSettings",
    "Diagnosis",
    "Difference",
    "Drive",
    "Environment",
    "HostResults",
    "InputError",
    "JobFile",
    "JobResults",
    "Judged",
    "Knee",
    "Live",
    "Options",
    "Results",
    "RunError",
    "Scenario",
    "Scoreboard",
    "SeenHost",
    "Serving",
    "Sweep",
    "Synthesis",
    "Trace",
    "Validation",
    "Workload",
    "arrays",
    "caches",
    "capture",
    "catalogue_hash",
    "characterize",
    "choose",
    "compare",
    "crash",
    "crystal",
    "curve",
    "difference",
    "doctor",
    "drives",
    "explore",
    "fio_results",
    "fsync",
    "import_disksim",
    "inspect",
    "judge",
    "latency",
    "load_environment",
    "measure",
    "measure_files",
    "measure_hosts",
    "measure_jobs",
    "predict",
    "prefill",
    "prices",
    "replay",
    "run",
    "run_jobs",
    "scenarios",
    "scoreboard",
    "serve",
    "settings",
    "stacks",
    "studies",
    "sweep",
    "synthesize",
    "synthesize_scenario",
    "validate",
    "verify",
    "verify_files",
    "workloads",
    "zones",
]
