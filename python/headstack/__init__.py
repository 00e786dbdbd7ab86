"""headstack: a storage performance laboratory.

::

    import headstack as hs

    results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4, 16, 64])
    results.plot("curve.png")
    hs.curve(["atlas-10k-iii-73", "atlas-10k-iii-73@36.7GB"], "file-server").knees()

A *system* is a drive or an array of the catalogue or of a TOML file, as the whole or a part of it (``NAME@RANGE``).
A *workload* is one of the catalogue, a TOML file, or given by ``size``, ``read`` and ``random``; a *scenario*, of the
catalogue or a TOML file, may stand in its place. Quantities are text with their unit (``"64KiB"``, ``"8.5ms"``); a list
in place of a value is swept.
"""

# Loading ``typing`` takes as long as starting Python.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from headstack import arrays, crash, drives, prices, scenarios, studies, workloads
    from headstack._native import InputError, RunError, catalogue_hash
    from headstack.array import Array
    from headstack.cache_lab import CacheLab, caches
    from headstack.choosing.asked import choose
    from headstack.classic.crystal import crystal
    from headstack.classic.fsync import fsync
    from headstack.classic.latency import latency
    from headstack.classic.prefill import prefill
    from headstack.classic.zones import zones
    from headstack.comparison import Comparison, compare
    from headstack.differences import Difference, difference
    from headstack.drive import Drive, import_disksim
    from headstack.fio.collected import fio_results
    from headstack.hosts.joined import HostResults, SeenHost
    from headstack.hosts.measuring import measure_hosts
    from headstack.inspection import inspect
    from headstack.jobfiles import JobFile, JobResults, measure_jobs, run_jobs
    from headstack.jobfiles.trees import measure_files, verify_files
    from headstack.judging.asking import Judged, judge
    from headstack.live import Live, Serving, serve
    from headstack.measurement import Access, measure, verify
    from headstack.predictor import Characterization, Environment, characterize, load_environment, predict
    from headstack.replays import replay
    from headstack.report.explorer import explore
    from headstack.results import Knee, Results
    from headstack.runs import Options, curve, run
    from headstack.scenario import Scenario
    from headstack.sweeps import Sweep, sweep
    from headstack.synthesis import Synthesis, synthesize, synthesize_scenario
    from headstack.traces import Trace, capture
    from headstack.validation import Validation, validate
    from headstack.workload import Workload

    __version__: str

# What a module has is loaded when somebody names it: a command waits for nothing that it does not use.
_HELD = {
    "_native": ("InputError", "RunError", "catalogue_hash"),
    "array": ("Array",),
    "cache_lab": ("CacheLab", "caches"),
    "choosing.asked": ("choose",),
    "classic.crystal": ("crystal",),
    "classic.fsync": ("fsync",),
    "classic.latency": ("latency",),
    "classic.prefill": ("prefill",),
    "classic.zones": ("zones",),
    "comparison": ("Comparison", "compare"),
    "differences": ("Difference", "difference"),
    "drive": ("Drive", "import_disksim"),
    "fio.collected": ("fio_results",),
    "hosts.joined": ("HostResults", "SeenHost"),
    "hosts.measuring": ("measure_hosts",),
    "inspection": ("inspect",),
    "jobfiles": ("JobFile", "JobResults", "measure_jobs", "run_jobs"),
    "jobfiles.trees": ("measure_files", "verify_files"),
    "judging.asking": ("Judged", "judge"),
    "live": ("Live", "Serving", "serve"),
    "measurement": ("Access", "measure", "verify"),
    "predictor": ("Characterization", "Environment", "characterize", "load_environment", "predict"),
    "replays": ("replay",),
    "report.explorer": ("explore",),
    "results": ("Knee", "Results"),
    "runs": ("Options", "curve", "run"),
    "scenario": ("Scenario",),
    "sweeps": ("Sweep", "sweep"),
    "synthesis": ("Synthesis", "synthesize", "synthesize_scenario"),
    "traces": ("Trace", "capture"),
    "validation": ("Validation", "validate"),
    "workload": ("Workload",),
}
_MODULE_OF = {name: module for module, names in _HELD.items() for name in names}
_MODULES = ("arrays", "crash", "drives", "prices", "scenarios", "studies", "workloads")


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__version__":
        return import_module("headstack._native").version()
    if name in _MODULES:
        return import_module(f"headstack.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'headstack' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"headstack.{_MODULE_OF[name]}"), name)
    return found


__all__ = [
    "Access",
    "Array",
    "CacheLab",
    "Characterization",
    "Comparison",
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
    "serve",
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
