"""Sweeps: one system under one workload, with any values of their files and any options of runs varied."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.atomic_files import write_all
from headstack.chunks import finish
from headstack.chunks.chunk import Chunk, cost_s, cut
from headstack.chunks.points import DEMAND, MARK, OPTION, SYSTEM, specifications_of_points
from headstack.demand import load_demand
from headstack.designs import Axis, Design, Listed, axis
from headstack.options import CHANGES, OPTIONS
from headstack.runs import Progress, check, texts
from headstack.tables import CSV, PARQUET, copy_to

DESCRIBING_S = 2e-3
"""What it takes to complete a description, roughly."""


class Plan:
    """A sweep that is possible: what is varied in what, and the points."""

    def __init__(
        self,
        system: str | os.PathLike[str],
        workload: str | os.PathLike[str] | None,
        vary: Mapping[str, str],
        sample: str = "grid",
        points: int | None = None,
    ) -> None:
        """``vary`` gives each field its values, as ``designs.axis`` reads them. Raises ``InputError``."""
        name, separator, part = os.fspath(system).partition("@")
        fields = {field: axis(field, text) for field, text in vary.items()}
        values = [value for each in fields.values() if isinstance(each, Listed) for value in each.values]
        files = [value for value in values if value.endswith(".toml")]
        blueprints = {SYSTEM: _native.system_blueprint(name, files)}
        if workload is not None:
            blueprints[DEMAND] = _native.demand_blueprint(os.fspath(workload))
        _check_options(fields, workload)
        if separator and "range" in fields:
            raise InputError(f"range: {os.fspath(system)} states a range of its own")
        kinds = [_kind(field, each.at(0.0), blueprints) for field, each in fields.items()]
        units = [each.unit for each in fields.values()]
        seeds = fields.get("seed")
        seed = int(seeds.values[0]) if isinstance(seeds, Listed) and seeds.values[0].isdecimal() else None
        self.design = Design(tuple(fields), tuple(fields.values()), sample, points, seed)
        self.columns = [
            f"{field}_{unit.replace('/', '_per_').replace('%', 'percent')}" if unit else field
            for field, unit in zip(fields, units, strict=True)
        ]
        """What was varied, as columns of the table; quantities of one unit are numbers, whose unit the column names."""
        self.numeric = [unit is not None for unit in units]
        self._asked: dict[str, Any] = {
            "system": {
                "name": os.path.basename(name).removesuffix(".toml"),
                "part": part if separator else None,
                "blueprint": json.loads(blueprints[SYSTEM]),
            },
            "demand": {"blueprint": json.loads(blueprints[DEMAND])} if DEMAND in blueprints else None,
            "fields": list(fields),
            "kinds": kinds,
            "columns": self.columns,
            "units": units,
            "whole": False,
        }

    def __len__(self) -> int:
        return len(self.design)

    @property
    def column_names(self) -> list[str]:
        """Those of the table: what was varied, the columns of results, and why there is none."""
        results = [name for name in _result_columns() if name not in self.columns]
        return [*self.columns, *results, "impossible", "failed"]

    def check_column(self, column: str) -> None:
        """Raises ``InputError`` where the table will have no such column."""
        if column not in self.column_names:
            close = difflib.get_close_matches(column, self.column_names, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise InputError(f"{column}: there is no such column{meant}")

    def chunks(self) -> Iterator[Chunk]:
        """The configurations, in portions whose ends follow from the first point alone."""
        each_s = self._cost_s(next(iter(self.design)))
        first = 0
        for points in cut(self.design, lambda _: each_s):
            yield Chunk.of(self._asked | {"points": points}, first)
            first += len(points)

    def _cost_s(self, point: Sequence[str]) -> float:
        (text,) = specifications_of_points(self._asked | {"points": [list(point)]})
        spec = json.loads(text)
        return DESCRIBING_S + (cost_s(spec) if "system" in spec else 0.0)


def _result_columns() -> list[str]:
    return _native.results_of_kept([], []).table().column_names


def _check_options(fields: Mapping[str, Axis], workload: str | os.PathLike[str] | None) -> None:
    names = {option.name for option in OPTIONS}
    given = {field: list(each.values) if isinstance(each, Listed) else [""] for field, each in fields.items()}
    check(
        {name: values for name, values in given.items() if name in names},
        [None if workload is None else load_demand(workload)],
    )


def _kind(field: str, value: str, blueprints: Mapping[str, str]) -> str:
    """What a field is one of. Raises ``InputError`` naming what was probably meant where it is nothing."""
    names = [option.name for option in OPTIONS]
    if field in CHANGES:
        return SYSTEM
    if field in names:
        return OPTION
    top = field.replace("[", ".").partition(".")[0]
    # The file that has its table, where one has; it need not state the key itself.
    stating = [kind for kind, text in blueprints.items() if top in tomllib.loads(json.loads(text)["text"])]
    asked = stating or list(blueprints)
    found = {kind: _native.describe_points(blueprints[kind], [[(field, value)]])[0] for kind in asked}
    for answer in ("described", "impossible"):
        for kind in asked:
            if found[kind][0] == answer:
                return kind
    close = difflib.get_close_matches(field, names, 1)
    if close:
        raise InputError(f"{field}: unknown field; did you mean the option {close[0]}?")
    complaints = [text for _, text in found.values()]
    raise InputError(next((text for text in complaints if "did you mean" in text), complaints[0]))


class Sweep:
    """What came of a sweep: a row for each configuration, in files that are read as they are needed."""

    def __init__(self, plan: Plan, paths: Sequence[Path]) -> None:
        self._plan, self._paths = plan, [str(path) for path in paths]
        with self._opened() as connection:
            counts = "count(*), count(impossible), count(failed), any_value(impossible)"
            (figures,) = connection.sql(f"select {counts} from swept").fetchall()
        self.configurations, self.impossible, self.failed, reason = figures
        """How many there are; of these, how many cannot be, and how many runs failed or failed their own check."""
        if self.impossible == self.configurations:
            raise InputError(f"no configuration of the sweep is possible: {reason}")

    def _opened(self) -> Any:
        import duckdb

        # One thread keeps the order of rows, and with it the bytes of what is written.
        connection = duckdb.connect(config={"threads": 1})
        varied = [
            f"cast({_quoted(MARK + column)} as double) as {_quoted(column)}"
            if is_number
            else f"{_quoted(MARK + column)} as {_quoted(column)}"
            for column, is_number in zip(self._plan.columns, self._plan.numeric, strict=True)
        ]
        files = "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in self._paths) + "]"
        others = [_quoted(name) for name in self._plan.column_names if name not in self._plan.columns]
        connection.execute(
            f"create view placed as select row_number() over () as place, {', '.join([*varied, *others])} "
            f"from read_parquet({files})"
        )
        connection.execute("create view swept as select * exclude (place) from placed order by place")
        return connection

    @property
    def column_names(self) -> list[str]:
        """What was varied, then the columns of results, then why a configuration is ``impossible`` or ``failed``."""
        return self._plan.column_names

    def rows(
        self, order: str | None = None, descending: bool = False, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """Rows as dicts, in the order of the design, or by a column; those without a value in it are left out."""
        query = "select * from swept"
        if order is not None:
            self._plan.check_column(order)
            by = f"{_quoted(order)} {'desc' if descending else ''}"
            # Equals stay in the order of the design.
            query = f"select * exclude (place) from placed where {_quoted(order)} is not null order by {by}, place"
        with self._opened() as connection:
            found = connection.sql(query + (f" limit {limit}" if limit is not None else ""))
            return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    def reasons(self, of: str = "impossible", limit: int = 3) -> list[tuple[str, int]]:
        """Why configurations are ``impossible`` or ``failed``, and how many for each reason, the commonest first."""
        with self._opened() as connection:
            column = _quoted(of)
            query = f"select {column}, count(*) from swept where {column} is not null group by 1 order by 2 desc, 1"
            return [(why, count) for why, count in connection.sql(f"{query} limit {limit}").fetchall()]

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """The table as Parquet: the same bytes for the same sweep, however it was carried out."""
        self._copy(path, PARQUET)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """The table as CSV."""
        self._copy(path, CSV)

    def _copy(self, path: str | os.PathLike[str], how: str) -> None:
        with self._opened() as connection:
            # A table of its own, since what Parquet looks like shows how the rows came to its writer.
            connection.execute("create temp table whole as select * from swept")
            write_all([(path, lambda draft: copy_to(connection, "whole", draft, how))])

    def __len__(self) -> int:
        return int(self.configurations)

    def __repr__(self) -> str:
        return f"<headstack.Sweep: {self.configurations} configurations, {self.impossible} impossible>"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def carried_out(
    plan: Plan,
    store: str | os.PathLike[str] | None = None,
    executor: str = "local",
    progress: Progress | None = None,
) -> Sweep:
    """Runs the points of a plan, but for those that are stored."""
    return Sweep(plan, finish(plan.chunks(), len(plan), store=store, executor=executor, progress=progress))


def sweep(
    system: str | os.PathLike[str],
    workload: str | os.PathLike[str] | None = None,
    *,
    vary: Mapping[str, str | int | float | bool | Iterable[str | int | float | bool]],
    sample: str = "grid",
    points: int | None = None,
    store: str | os.PathLike[str] | None = None,
    executor: str = "local",
    progress: Progress | None = None,
) -> Sweep:
    """Runs a system under a workload at many points of a space of parameters.

    ``vary`` names fields of the system's file or the workload's by their paths (``seek.read_average``,
    ``lines[0].size``), or options of ``run`` by their names. Values are a list, or text as on the command line:
    ``"fcfs,sptf"``, ``"3ms..12ms"``, with steps ``"3ms..12ms:4"``, by ratios ``"1..256:9:log"``. A ``grid`` takes all
    combinations; ``random`` and ``sobol`` take ``points`` of them. All runs have the seed 1 unless ``seed`` is varied.

    A configuration that is impossible is a row that says why. What is finished is kept in ``store`` and not computed
    again. Raises ``InputError`` for fields that do not exist and when nothing is possible.
    """
    spelt = {name: text if isinstance(text, str) else ",".join(texts(text)) for name, text in vary.items()}
    return carried_out(Plan(system, workload, spelt, sample, points), store, executor, progress)
