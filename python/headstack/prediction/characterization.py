"""What a system is like: the tables of its low-level tests, as a file."""

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
from headstack.io.atomic_files import write_text
from headstack.io.json_text import key_of, read_json
from headstack.io.stored import Fields, Stored
from headstack.prediction.calibration import (
    COVERAGE,
    Residuals,
    drawn,
    quantile,
    residuals,
    response_residuals,
    with_loads,
)
from headstack.prediction.composed import ENVIRONMENTS, Layout, composed
from headstack.prediction.grid import OPEN, Axes, Axis, Bench, Progress, Ran, StoppedError, Table, characterized
from headstack.prediction.kept import KeptTests, resumed
from headstack.prediction.model import Model
from headstack.results.intervals.conformal import devices_needed


def _without_percentiles(told: Fields) -> Fields:
    raise InputError(f"{told['system']}: was tested before percentiles were kept; characterize it again")


STORED = Stored("characterization", steps=(_without_percentiles,))
ENOUGH = devices_needed(COVERAGE)
"""Environments of a kind below which nothing is said of how far off predictions are, and none is made."""
COMPOSED_SHARE = 0.6
GRID_SHARE = 0.9
"""Of the progress, until the environments drawn at random begin."""


class StoredTable(TypedDict):
    """A table of tests in a file."""

    axes: list[tuple[str, tuple[float, ...]]]
    """Names and knots."""
    time_ns: list[float]
    half_width: list[float]
    shape: list[list[float]]
    """Percentiles over the mean."""
    components: list[str]
    """Names that ``bottleneck`` numbers."""
    bottleneck: list[int]


@dataclass(frozen=True)
class Characterization:
    """The low-level tests of one system, and how far off predictions from them are."""

    system: str
    description_hash: str
    """Of the resolved description, the part of the system that is used, and the tests."""
    version: str
    """Of headstack, that ran them."""
    how: str
    """``simulated`` tests of the system itself, ``composed`` from those of an array's member, or ``measured`` on a file
    or device."""
    capacity_bytes: int
    held_bytes: int
    """What its buffers and caches hold."""
    tables: dict[str, Table]
    errors: dict[str, dict[str, float]]
    """Of the mean and each percentile, by kind of environment, the distance that 90 % of logarithms of response times
    keep, which of the mean are those of throughput; of open loops, times what is left of the load, and of percentiles,
    over how unsure they are."""
    residuals: Residuals
    """Where these come from: of environments drawn at random, the logarithm of the time simulated over that
    predicted."""

    @cached_property
    def model(self) -> Model:
        """What predictions are made from."""
        return Model(self.tables, self.capacity_bytes, self.held_bytes)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """All of it as JSON text; written to ``path`` if one is given.

        >>> known = hs.Characterization("my-disk", "0" * 32, "0.2.0", "simulated", 10**9, 0, {}, {}, {})
        >>> known.to_json().startswith('{"format":"headstack characterization"')
        True
        """
        told = {
            **STORED.head,
            **{
                name: getattr(self, name)
                for name in ("system", "description_hash", "version", "how", "capacity_bytes", "held_bytes")
            },
            "errors": self.errors,
            "residuals": self.residuals,
            "tables": {name: _told(table) for name, table in self.tables.items()},
        }
        text = json.dumps(told, separators=(",", ":")) + "\n"
        if path is not None:
            write_text(path, text)
        return text

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Characterization:
        """What ``to_json`` wrote. Raises ``InputError`` when it is something else.

        >>> known = hs.Characterization("my-disk", "0" * 32, "0.2.0", "simulated", 10**9, 0, {}, {}, {})
        >>> _ = known.to_json("my-disk.json")
        >>> hs.Characterization.load("my-disk.json").system
        'my-disk'
        """
        name = os.fspath(path)
        try:
            told = read_json(Path(path))
        except ValueError as error:
            raise InputError(f"is not a characterization: {error}", file=name) from None
        if not isinstance(told, dict) or told.get("format") != STORED.head["format"]:
            raise InputError("is not a characterization; headstack characterize writes them", file=name)
        told = STORED.upgraded(name, told)
        try:
            return cls(
                told["system"],
                told["description_hash"],
                told["version"],
                told["how"],
                told["capacity_bytes"],
                told["held_bytes"],
                {table: _table(columns) for table, columns in told["tables"].items()},
                told["errors"],
                told["residuals"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"is a damaged characterization: {error!r}", file=name) from None


def _told(table: Table) -> StoredTable:
    names = sorted(set(table.bottleneck))
    return {
        "axes": [(axis.name, axis.knots) for axis in table.axes],
        "time_ns": [round(time, 1) for time in table.time_ns],
        "half_width": [round(half, 5) for half in table.half_width],
        "shape": [[round(time, 4) for time in times] for times in table.shape],
        "components": names,
        "bottleneck": [names.index(name) for name in table.bottleneck],
    }


def _table(told: StoredTable) -> Table:
    axes = tuple(Axis(name, tuple(knots)) for name, knots in told["axes"])
    points = 1
    for axis in axes:
        points *= len(axis.knots)
    columns = (told["time_ns"], told["half_width"], told["bottleneck"], told["shape"])
    if any(len(column) != points for column in columns):
        raise ValueError(f"a table of {points} tests has columns of another length")
    names = told["components"]
    bottleneck = [names[index] for index in told["bottleneck"]]
    return Table(axes, told["time_ns"], told["half_width"], bottleneck, told["shape"])


def hash_of(system: Drive | Array, axes: Axes, direct: bool) -> str:
    """Of all that the tests depend on, headstack's version apart."""
    told = key_of([system.system, system.span, asdict(axes), direct])
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


def characterize(
    system: Drive | Array, axes: Axes, tests: KeptTests, progress: Progress | None = None
) -> Characterization:
    """Runs the low-level tests of a system but for those that are kept, and finds how far off predictions from them
    are, on all cores.

    Raises ``InputError`` for a system that cannot be run, ``RunError`` when a run fails.
    """
    told = progress or (lambda share: None)
    bench = resumed(Bench.of(system), tests)
    tables = characterized(bench, axes, lambda share: told(GRID_SHARE * share))
    key = hash_of(system, axes, direct=True)
    return calibrated(bench, axes, tables, "simulated", key, lambda share: told(GRID_SHARE + (1 - GRID_SHARE) * share))


def compose(
    system: Array,
    layout: Layout,
    member: Characterization,
    axes: Axes,
    tests: KeptTests,
    progress: Progress | None = None,
) -> Characterization:
    """As ``characterize``, from the tests of the array's member and few of its own."""
    told = progress or (lambda share: None)
    bench = resumed(Bench.of(system), tests)
    tables = composed(bench, layout, member.model, axes, lambda share: told(COMPOSED_SHARE * share))
    few = replace(axes, environments=min(axes.environments, ENVIRONMENTS))
    key = hash_of(system, axes, direct=False)
    return calibrated(
        bench,
        few,
        tables,
        "composed",
        key,
        lambda share: told(COMPOSED_SHARE + (1 - COMPOSED_SHARE) * share),
    )


def _as_far(specs: list[Spec], bench: Bench, progress: Progress | None) -> tuple[list[Ran], bool]:
    """What environments come to until somebody ends it: what is predicted from is whole, and few say how far off it is
    as well as many, or nothing."""
    try:
        return bench.run(specs, progress), False
    except StoppedError as stopped:
        return stopped.found, True


def calibrated(
    bench: Bench, axes: Axes, tables: dict[str, Table], how: str, key: str, progress: Progress | None
) -> Characterization:
    """The characterization of these tables, with what predictions from it are off by on environments of chance."""
    # What is stored is what is predicted from: the file must not differ from what made it.
    tables = {name: _table(_told(table)) for name, table in tables.items()}
    model = Model(tables, bench.capacity_bytes, bench.held_bytes)
    environments = drawn(bench, axes)
    ran, ended = _as_far([spec for _, spec in environments], bench, progress)
    found = residuals(model, [(environment, one) for (environment, _), one in zip(environments, ran, strict=False)])
    loaded = with_loads(model, environments, axes)
    responses, _ = ([], True) if ended else _as_far([spec for _, spec, _ in loaded], bench, None)
    for figure, of in response_residuals(model, loaded, responses).items():
        found[figure][OPEN] = of
    found = {
        figure: {kind: [round(error, 6) for error in of] for kind, of in kinds.items()}
        for figure, kinds in found.items()
    }
    errors = {
        figure: {kind: round(quantile(of), 6) for kind, of in kinds.items() if len(of) >= ENOUGH}
        for figure, kinds in found.items()
    }
    return Characterization(
        bench.name, key, version(), how, bench.capacity_bytes, bench.held_bytes, tables, errors, found
    )
