"""``Characterization``: the low-level tests of a system as tables in a file."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypedDict

from headstack._native import InputError, version
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.catalogue.options import Spec
from headstack.catalogue.stack import Stack
from headstack.io.atomic_files import write_text
from headstack.io.json_text import key_of, read_json
from headstack.io.stored import Fields, Stored
from headstack.prediction.calibration import (
    COVERAGE,
    Residuals,
    draw_environments,
    quantile,
    residuals,
    response_residuals,
    with_loads,
)
from headstack.prediction.composition import ENVIRONMENTS, Layout, compose_tables
from headstack.prediction.grid import OPEN, Axes, Axis, Bench, Progress, RunSummary, StoppedError, Table, run_grid
from headstack.prediction.model import Model
from headstack.prediction.stored_tests import StoredTests, skip_finished
from headstack.results.intervals.conformal import devices_needed


def _without_percentiles(stored: Fields) -> Fields:
    raise InputError(f"{stored['system']}: has no percentiles; run headstack lab characterize again")


STORED = Stored("characterization", steps=(_without_percentiles,))
ENOUGH = devices_needed(COVERAGE)
"""Minimum number of environments of a kind; with fewer the error is unknown, and no prediction is made."""
COMPOSED_SHARE = 0.6
GRID_SHARE = 0.9
"""Share of the progress before the random environments begin."""


class StoredTable(TypedDict):
    """A table of tests in a file."""

    axes: list[tuple[str, tuple[float, ...]]]
    """Names and knots."""
    time_ns: list[float]
    half_width: list[float]
    shape: list[list[float]]
    """Percentiles over the mean."""
    components: list[str]
    """Names of components, to which ``bottleneck`` holds indices."""
    bottleneck: list[int]


@dataclass(frozen=True)
class Characterization:
    """The low-level tests of one system, and the errors of predictions from them."""

    system: str
    description_hash: str
    """Hash of the resolved description, the part of the system that is used, and the tests."""
    version: str
    """Version of headstack that ran them."""
    how: str
    """``simulated`` for tests of the system itself, ``composed`` from those of an array's member, or ``measured`` on a
    file or device."""
    capacity_bytes: int
    held_bytes: int
    """Capacity of its buffers and caches in bytes."""
    tables: dict[str, Table]
    errors: dict[str, dict[str, float]]
    """Error bounds of the mean and each percentile, by kind of environment: 90 % of the logarithmic errors of response
    times, which for the mean are those of throughput; for open loops multiplied by the unused share of the load, and
    for percentiles divided by their uncertainty."""
    residuals: Residuals
    """The errors behind these bounds: for random environments, the logarithm of simulated over predicted time."""

    @cached_property
    def model(self) -> Model:
        """The model for predictions."""
        return Model(self.tables, self.capacity_bytes, self.held_bytes)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns all data as JSON text and, if ``path`` is given, writes it there.

        >>> tested = hs.Characterization("my-disk", "0" * 32, "0.2.0", "simulated", 10**9, 0, {}, {}, {})
        >>> tested.to_json().startswith('{"format":"headstack characterization"')
        True
        """
        content = {
            **STORED.head,
            **{
                name: getattr(self, name)
                for name in ("system", "description_hash", "version", "how", "capacity_bytes", "held_bytes")
            },
            "errors": self.errors,
            "residuals": self.residuals,
            "tables": {name: _stored_table(table) for name, table in self.tables.items()},
        }
        text = json.dumps(content, separators=(",", ":")) + "\n"
        if path is not None:
            write_text(path, text)
        return text

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Characterization:
        """Loads the output of ``to_json``. Raises ``InputError`` if it is anything else.

        >>> tested = hs.Characterization("my-disk", "0" * 32, "0.2.0", "simulated", 10**9, 0, {}, {}, {})
        >>> _ = tested.to_json("my-disk.json")
        >>> hs.Characterization.load("my-disk.json").system
        'my-disk'
        """
        name = os.fspath(path)
        try:
            stored = read_json(Path(path))
        except ValueError as error:
            raise InputError(f"not a characterization: {error}", file=name) from None
        if not isinstance(stored, dict) or stored.get("format") != STORED.head["format"]:
            raise InputError("not a characterization; create one with headstack lab characterize", file=name)
        stored = STORED.upgraded(name, stored)
        try:
            return cls(
                stored["system"],
                stored["description_hash"],
                stored["version"],
                stored["how"],
                stored["capacity_bytes"],
                stored["held_bytes"],
                {table: _table(columns) for table, columns in stored["tables"].items()},
                stored["errors"],
                stored["residuals"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"damaged characterization: {error!r}", file=name) from None


def _stored_table(table: Table) -> StoredTable:
    names = sorted(set(table.bottleneck))
    return {
        "axes": [(axis.name, axis.knots) for axis in table.axes],
        "time_ns": [round(time, 1) for time in table.time_ns],
        "half_width": [round(half, 5) for half in table.half_width],
        "shape": [[round(time, 4) for time in times] for times in table.shape],
        "components": names,
        "bottleneck": [names.index(name) for name in table.bottleneck],
    }


def _table(stored: StoredTable) -> Table:
    axes = tuple(Axis(name, tuple(knots)) for name, knots in stored["axes"])
    points = 1
    for axis in axes:
        points *= len(axis.knots)
    columns = (stored["time_ns"], stored["half_width"], stored["bottleneck"], stored["shape"])
    if any(len(column) != points for column in columns):
        raise ValueError(f"a table of {points} tests has columns of another length")
    names = stored["components"]
    bottleneck = [names[index] for index in stored["bottleneck"]]
    return Table(axes, stored["time_ns"], stored["half_width"], bottleneck, stored["shape"])


def hash_of(system: Drive | Array | Stack, axes: Axes, direct: bool) -> str:
    """Returns a hash of everything that the tests depend on, except for headstack's version."""
    key = key_of([system.system, system.span, asdict(axes), direct])
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


def characterize(
    system: Drive | Array | Stack, axes: Axes, tests: StoredTests, progress: Progress | None = None
) -> Characterization:
    """Runs the low-level tests of a system that are not stored yet, and determines the errors of predictions from them,
    on all cores.

    Raises ``InputError`` for an invalid system, and ``RunError`` if a run fails.
    """
    report = progress or (lambda share: None)
    bench = skip_finished(Bench.of(system), tests)
    tables = run_grid(bench, axes, lambda share: report(GRID_SHARE * share))
    key = hash_of(system, axes, direct=True)
    return calibrate(bench, axes, tables, "simulated", key, lambda share: report(GRID_SHARE + (1 - GRID_SHARE) * share))


def compose(
    system: Array,
    layout: Layout,
    member: Characterization,
    axes: Axes,
    tests: StoredTests,
    progress: Progress | None = None,
) -> Characterization:
    """Characterizes an array from the tests of its member and a few of its own."""
    report = progress or (lambda share: None)
    bench = skip_finished(Bench.of(system), tests)
    tables = compose_tables(bench, layout, member.model, axes, lambda share: report(COMPOSED_SHARE * share))
    few = replace(axes, environments=min(axes.environments, ENVIRONMENTS))
    key = hash_of(system, axes, direct=False)
    return calibrate(
        bench,
        few,
        tables,
        "composed",
        key,
        lambda share: report(COMPOSED_SHARE + (1 - COMPOSED_SHARE) * share),
    )


def _run_until_interrupted(specs: list[Spec], bench: Bench, progress: Progress | None) -> tuple[list[RunSummary], bool]:
    """Runs environments until an interruption. The tables are complete by then, and fewer environments still give an
    error bound, or none."""
    try:
        return bench.run(specs, progress), False
    except StoppedError as stopped:
        return stopped.results, True


def calibrate(
    bench: Bench, axes: Axes, tables: dict[str, Table], how: str, key: str, progress: Progress | None
) -> Characterization:
    """Returns the characterization of these tables, with the errors of predictions on random environments."""
    # Use the stored form for predictions, so that a loaded file gives the same ones.
    tables = {name: _table(_stored_table(table)) for name, table in tables.items()}
    model = Model(tables, bench.capacity_bytes, bench.held_bytes)
    environments = draw_environments(bench, axes)
    summaries, is_interrupted = _run_until_interrupted([spec for _, spec in environments], bench, progress)
    errors_by_kind = residuals(
        model, [(environment, summary) for (environment, _), summary in zip(environments, summaries, strict=False)]
    )
    loaded = with_loads(model, environments, axes)
    responses, _ = (
        ([], True) if is_interrupted else _run_until_interrupted([spec for _, spec, _ in loaded], bench, None)
    )
    for figure, figure_errors in response_residuals(model, loaded, responses).items():
        errors_by_kind[figure][OPEN] = figure_errors
    errors_by_kind = {
        figure: {kind: [round(error, 6) for error in kind_errors] for kind, kind_errors in kinds.items()}
        for figure, kinds in errors_by_kind.items()
    }
    errors = {
        figure: {
            kind: round(quantile(kind_errors), 6) for kind, kind_errors in kinds.items() if len(kind_errors) >= ENOUGH
        }
        for figure, kinds in errors_by_kind.items()
    }
    return Characterization(
        bench.name, key, version(), how, bench.capacity_bytes, bench.held_bytes, tables, errors, errors_by_kind
    )
