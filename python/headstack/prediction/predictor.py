"""The predictor: characterizes systems once by low-level tests, then predicts any environment on them without a
simulation.

tested = characterize("cheetah-x15-36lp")
predict("file-server", ["cheetah-9lp", tested], depth=[1, 4, 16])
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from headstack._native import InputError
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.catalogue.options import CHANGEABLE, applied
from headstack.catalogue.scenario import Scenario
from headstack.catalogue.stack import Stack
from headstack.catalogue.system import load_system
from headstack.catalogue.workload import Workload
from headstack.io.atomic_files import write_all
from headstack.io.values import number
from headstack.measurement.access import Access
from headstack.measurement.measurement import is_target
from headstack.prediction import characterization
from headstack.prediction.characterization import Characterization, hash_of
from headstack.prediction.composition import Layout, member_of
from headstack.prediction.device_tests import MEASURED, TIME, measure_device
from headstack.prediction.devices import with_devices
from headstack.prediction.environment import Environment, Open
from headstack.prediction.grid import FULL, Axes, Progress
from headstack.prediction.loading import load_environment
from headstack.prediction.prediction import Prediction
from headstack.prediction.predictions import Cell, Predictions, predict_all
from headstack.prediction.stored_tests import folder_of, open_stored_tests
from headstack.simulation.runs import Swept, changed, first_spec, loaded, several, texts
from headstack.traces.traces import Trace

__all__ = [
    "Axes",
    "Characterization",
    "Environment",
    "Prediction",
    "Predictions",
    "characterize",
    "load_environment",
    "predict",
    "predicted_rows",
]

Demand: TypeAlias = str | os.PathLike[str] | Environment | Workload | Scenario | Trace
Store: TypeAlias = str | os.PathLike[str] | None
Characterized: TypeAlias = str | os.PathLike[str] | Drive | Array | Stack | Characterization


def characterize(
    system: str | os.PathLike[str] | Drive | Array | Stack,
    *,
    axes: Axes = FULL,
    direct: bool = False,
    access: Access | None = None,
    time: str | None = None,
    progress: Progress | None = None,
    **options: Swept,
) -> Characterization:
    """Runs the low-level tests of a system on all cores. ``options`` change it as in a run (``write_cache="off"``,
    ``drives=4``), one value each. An array of identical drives is composed from the tests of its member, which are
    stored, and a few of its own, unless ``direct`` requests all. Tests are stored in the user's cache, and interrupted
    ones resume.

    A file or block device is measured instead, with fewer tests that take ``time`` (5 minutes) in total. Reading needs
    no permission; tests write if ``access`` permits it, which destroys the contents.

    Raises ``InputError`` for an invalid system or option.

    >>> hs.characterize("no-such-drive")
    Traceback (most recent call last):
    headstack.InputError: ...
    """
    if not is_target(system):
        if access is not None or time is not None:
            raise InputError(f"{system}: a simulated system; access and time apply only to real files and devices")
        return _load_or_make(_with_options(system, options), axes, direct, None, progress)
    for name in options:
        raise InputError("does not apply to real targets; remove the option", key=name)
    if direct:
        raise InputError("applies only to simulated arrays; remove the option", key="direct")
    tests = MEASURED if axes == FULL else axes
    return measure_device(os.fspath(system), access or Access(), time or TIME, tests, progress)  # type: ignore[arg-type]


def _load_or_make(
    system: Drive | Array | Stack, axes: Axes, direct: bool, store: Store, progress: Progress | None
) -> Characterization:
    """Returns the stored characterization, or makes and stores it."""
    path = folder_of(store) / f"{hash_of(system, axes, direct)}.json"
    if path.is_file():
        return replace(Characterization.load(path), system=system.name)
    make = partial(characterization.characterize, system)
    layout = Layout.of(system) if isinstance(system, Array) and not direct else None
    if isinstance(system, Array) and layout is not None:
        make = partial(
            characterization.compose, system, layout, _load_or_make(member_of(system), axes, False, store, None)
        )
    with open_stored_tests(path.with_suffix("")) as tests:
        made = make(axes, tests, progress)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_all([(path, made.to_json)])
        tests.remove()
    return made


def _with_options(
    system: str | os.PathLike[str] | Drive | Array | Stack, options: Mapping[str, Swept]
) -> Drive | Array | Stack:
    """Returns the system with changed values, which its name includes."""
    allowed = {option.name: option for option in CHANGEABLE}
    chosen: dict[str, str] = {}
    for name, value in options.items():
        if name not in allowed:
            raise InputError(f"not an option of a system; allowed: {', '.join(sorted(allowed))}", key=name)
        if len(texts(value)) != 1:
            raise InputError("has several values; a characterization describes one system", key=name)
        chosen[name] = texts(value)[0]
    changed_system = changed(loaded(system, {name: [text] for name, text in chosen.items()})[0], chosen)
    if not chosen:
        return changed_system
    spec = first_spec(changed_system, None)
    spec = applied(spec, chosen)
    called = ",".join([changed_system.name, *(f"{name}={text}" for name, text in chosen.items())])
    if isinstance(changed_system, Drive):
        return Drive(
            called, spec["system"]["drive"][changed_system.kind], span=changed_system.span, kind=changed_system.kind
        )
    if isinstance(changed_system, Stack):
        return replace(changed_system, name=called, description=spec["system"])
    return Array(called, spec["system"]["array"], span=changed_system.span)


def predict(
    environments: Demand | Iterable[Demand],
    systems: Characterized | Iterable[Characterized],
    *,
    depth: float | Iterable[float] | None = None,
    rate: float | Iterable[float] | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """Predicts throughput, mean, median and 99th percentile of the response time of every environment on every system,
    with 90 % intervals.

    Environments are workloads and scenarios of the catalogue or of TOML files, traces, or ``Environment``; systems are
    characterizations, their files, or systems, which are characterized first if necessary. ``depth`` replaces the queue
    depth, or the number of clients, ``rate`` the arrivals per second.

    Raises ``InputError`` outside the range of the tests, with the value that is outside.

    >>> hs.predict("file-server", "missing.json")
    Traceback (most recent call last):
    ...
    FileNotFoundError: ...
    """
    named_systems = _each(systems, Characterization)
    tested = [characterization_of(system, progress) for system in named_systems]
    loaded = at_loads(
        [load_environment(environment) for environment in _each(environments, Environment, Trace)], depth, rate
    )
    return with_devices(loaded, named_systems, predict_all(loaded, tested))


def at_loads(
    environments: Sequence[Environment],
    depth: float | Iterable[float] | None,
    rate: float | Iterable[float] | None,
) -> list[Environment]:
    """Returns the environments at each load, or with the load they state."""
    if depth is not None and rate is not None:
        raise InputError("depth, rate: give only one of them")
    if depth is not None:
        return [environment.at_depth(value) for environment in environments for value in _numbers(depth)]
    if rate is not None:
        return [environment.at_rate(value) for environment in environments for value in _numbers(rate)]
    return list(environments)


def _numbers(values: float | Iterable[float]) -> list[float]:
    return [float(values)] if isinstance(values, int | float) else [float(value) for value in values]


def _each(values: Any, *single: type) -> list[Any]:
    return [values] if isinstance(values, single) else several(values)


def characterization_of(
    system: Characterized, progress: Progress | None = None, axes: Axes = FULL, store: Store = None
) -> Characterization:
    """Returns the characterization of a system: itself, from a file, from ``store``, or made now and stored."""
    if isinstance(system, Characterization):
        return system
    if isinstance(system, str | os.PathLike) and Path(system).suffix == ".json":
        return Characterization.load(system)
    if is_target(system):
        raise InputError(f"{system}: a real file or device; first run headstack lab characterize {system}")
    loaded_system = system if isinstance(system, Drive | Array | Stack) else load_system(system)
    return _load_or_make(loaded_system, axes, False, store, progress)


def predicted_rows(
    environments: Iterable[Demand],
    systems: Iterable[Characterized],
    settings: Mapping[str, Any] | None = None,
    store: Store = None,
    progress: Progress | None = None,
) -> list[dict[str, Cell]]:
    """Returns the rows of a grid of predictions: for each environment, load and system the columns of ``Prediction``,
    and ``workload``, ``depth`` and ``rate_per_s`` as in the results of runs. ``settings`` are ``depth`` or ``rate``,
    with one value or several. Characterizations are kept in ``store``."""
    swept = dict(settings or {})
    for name in swept:
        if name not in ("depth", "rate"):
            raise InputError(f"settings.{name}: not a setting of predictions; allowed: depth, rate")
    loads = {name: [number(name, text) for text in texts(value)] for name, value in swept.items()}
    named = list(systems)
    tested = []
    for place, system in enumerate(named):
        report = None if progress is None else partial(_report_share, progress, place, len(named))
        tested.append(characterization_of(system, report, store=store))
    environments_at_loads = at_loads(
        [load_environment(environment) for environment in environments], loads.get("depth"), loads.get("rate")
    )
    rows = []
    for environment in environments_at_loads:
        load = environment.load
        keys: dict[str, Cell] = {
            "workload": environment.name,
            "depth": None if isinstance(load, Open) else load.queue_depth,
            "rate_per_s": load.rate_per_s if isinstance(load, Open) else None,
        }
        rows += [keys | row for row in predict_all([environment], tested).rows()]
    return rows


def _report_share(progress: Progress, place: int, total: int, share: float) -> None:
    progress((place + share) / total)
