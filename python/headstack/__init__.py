"""headstack: a storage performance laboratory.

    import headstack as hs

    results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4, 16, 64])
    results.plot("curve.png")
    hs.curve(["atlas-10k-iii-73", "atlas-10k-iii-73@36.7GB"], "file-server").knees()

A *system* is a drive or an array of the catalogue or of a TOML file, as the whole or a part of it (``NAME@RANGE``).
A *workload* is one of the catalogue, a TOML file, or given by ``size``, ``read`` and ``random``; a *scenario*, of the
catalogue or a TOML file, may stand in its place. Quantities are text with their unit (``"64KiB"``, ``"8.5ms"``); a list
in place of a value is swept.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headstack import arrays, drives, scenarios, workloads
from headstack._native import InputError, RunError, version
from headstack.array import Array
from headstack.comparison import Comparison, compare
from headstack.drive import Drive, import_disksim
from headstack.inspection import inspect
from headstack.jobfiles import JobFile, JobResults, measure_jobs, run_jobs
from headstack.measurement import Access, measure, verify
from headstack.replays import replay
from headstack.results import Knee, Results
from headstack.runs import Options, curve, run
from headstack.scenario import Scenario
from headstack.traces import Trace, capture
from headstack.validation import Validation, validate
from headstack.workload import Workload

if TYPE_CHECKING:
    from headstack import studies
    from headstack.classic.crystal import crystal
    from headstack.classic.fsync import fsync
    from headstack.classic.latency import latency
    from headstack.classic.prefill import prefill
    from headstack.classic.zones import zones
    from headstack.live import Live, Serving, serve
    from headstack.predictor import Characterization, Environment, characterize, load_environment, predict
    from headstack.sweeps import Sweep, sweep

__version__ = version()

# Loaded by those who name them: nobody else waits for them.
_LATE = {
    **{name: f"headstack.classic.{name}" for name in ("crystal", "fsync", "latency", "prefill", "zones")},
    **dict.fromkeys(
        ("Characterization", "Environment", "characterize", "load_environment", "predict"), "headstack.predictor"
    ),
    **dict.fromkeys(("Live", "Serving", "serve"), "headstack.live"),
    **dict.fromkeys(("Sweep", "sweep"), "headstack.sweeps"),
}


def __getattr__(name: str) -> Any:
    if name == "studies":
        return import_module("headstack.studies")
    if name not in _LATE:
        raise AttributeError(f"module 'headstack' has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


__all__ = [
    "Access",
    "Array",
    "Characterization",
    "Comparison",
    "Drive",
    "Environment",
    "InputError",
    "JobFile",
    "JobResults",
    "Knee",
    "Live",
    "Options",
    "Results",
    "RunError",
    "Scenario",
    "Serving",
    "Sweep",
    "Trace",
    "Validation",
    "Workload",
    "arrays",
    "capture",
    "characterize",
    "compare",
    "crystal",
    "curve",
    "drives",
    "fsync",
    "import_disksim",
    "inspect",
    "latency",
    "load_environment",
    "measure",
    "measure_jobs",
    "predict",
    "prefill",
    "replay",
    "run",
    "run_jobs",
    "scenarios",
    "serve",
    "studies",
    "sweep",
    "validate",
    "verify",
    "workloads",
    "zones",
]
