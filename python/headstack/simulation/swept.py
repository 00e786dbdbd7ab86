"""``Plan`` and ``SweptRuns``: the points of a sweep, and its rows in files that DuckDB reads."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.demand import load_demand
from headstack.catalogue.options import CHANGES, OPTIONS, SYNCS
from headstack.catalogue.system import load_blueprint, load_system
from headstack.io.atomic_files import write_all
from headstack.io.json_text import key_of
from headstack.io.tables import CSV, PARQUET, copy_to
from headstack.report.figures import RunInputs
from headstack.results.explorer_queries import described_of, figures_of
from headstack.results.intervals.described import described
from headstack.results.intervals.model_errors import DESCRIBED, columns_of, model_errors
from headstack.simulation.chunks.chunk import POINTS_MAX, Chunk, cost_s, cut, engine
from headstack.simulation.designs import Axis, Design, Listed, axis
from headstack.simulation.runs import changing, check, several
from headstack.simulation.shards import Shard, copy_shard

if TYPE_CHECKING:
    from headstack.report.figures import RunInputs

SYSTEM, DEMAND, OPTION = "system", "demand", "option"
"""Kinds of fields."""

DRIVES = "drives"
"""The column with the number of drives for arrays chosen by capacity."""

FAULTS = "faults"
"""The option whose files are sent with the chunk, since the worker may not have them."""

MARK = "="
"""Prefix of columns of varied parameters, some of which share a name with a result."""

DESCRIBING_S = 2e-4
"""Approximate time to complete a description, in seconds."""

JUST_BELOW_ONE = 1 - 2**-20
"""The share of an axis that selects its last value."""

VARIABLE_RUNS_MAX = 1000
"""Maximum number of configurations whose curves can be varied in a report."""

Named: TypeAlias = str | os.PathLike[str]


class Plan:
    """A valid sweep: the systems, the varied parameters and the points."""

    def __init__(
        self,
        systems: Named | Iterable[Named],
        workload: Named | None,
        vary: Mapping[str, str],
        sample: str = "grid",
        points: int | None = None,
        shard: Shard | None = None,
    ) -> None:
        """``vary`` gives each field its values, as ``designs.axis`` parses them; ``shard`` selects the part to run.
        Raises ``InputError``."""
        self.systems = [os.fspath(system) for system in several(systems)]
        """Systems, each run at all points of the design, one system after the other."""
        fields = {field: axis(field, text) for field, text in vary.items()}
        values = [value for each in fields.values() if isinstance(each, Listed) for value in each.values]
        files = [value for value in values if value.endswith(".toml")]
        self.workload = None if workload is None else os.fspath(workload)
        """The load; ``None`` if options define it."""
        demand = {} if workload is None else {DEMAND: _native.demand_blueprint(os.fspath(workload))}
        _check_options(fields, workload)
        units = [each.unit for each in fields.values()]
        faults = fields.get(FAULTS)
        schedules = {
            value: _native.load_faults(value)
            for value in (faults.values if isinstance(faults, Listed) else ())
            if value != "none"
        }
        seeds = fields.get("seed")
        seed = int(seeds.values[0]) if isinstance(seeds, Listed) and seeds.values[0].isdecimal() else None
        self.design = Design(tuple(fields), tuple(fields.values()), sample, points, seed)
        self.shard = shard
        self.part = (shard or Shard()).part(len(self.design) * len(self.systems))
        """The indices of the shard's configurations among those of the sweep."""
        self.columns = [
            f"{field}_{unit.replace('/', '_per_').replace('%', 'percent')}" if unit else field
            for field, unit in zip(fields, units, strict=True)
        ]
        """Table columns of the varied parameters; quantities of one unit are numbers, and the column names the unit."""
        self.types = [each.sql_type for each in fields.values()]
        """SQL types of these columns."""
        self.is_counted = "usable" in fields
        """Whether the number of drives follows from a capacity."""
        self._requests: list[dict[str, Any]] = []
        for system in self.systems:
            name, separator, part = system.partition("@")
            if separator and "range" in fields:
                raise InputError(f"{system} states a range of its own", key="range")
            blueprints = {SYSTEM: load_blueprint(name, files), **demand}
            self._requests.append(
                {
                    "system": {
                        "name": os.path.basename(name).removesuffix(".toml"),
                        "part": part if separator else None,
                        "blueprint": blueprints[SYSTEM],
                    },
                    "demand": {"blueprint": blueprints[DEMAND]} if demand else None,
                    "fields": list(fields),
                    "kinds": self._kinds(system, fields, blueprints),
                    "columns": self.columns,
                    "units": units,
                    "whole": False,
                    **({FAULTS: schedules} if schedules else {}),
                }
            )

    def _kinds(self, system: str, fields: Mapping[str, Axis], blueprints: Mapping[str, Mapping[str, Any]]) -> list[str]:
        try:
            return [_kind(field, each.at(0.0), blueprints) for field, each in fields.items()]
        except InputError as error:
            raise InputError(f"{system}: {error}" if len(self.systems) > 1 else str(error)) from None

    def __len__(self) -> int:
        return len(self.part)

    @property
    def hash(self) -> str:
        """A hash of the whole sweep, independent of shards, and of the build that runs it."""
        digest = hashlib.sha256(key_of([engine(), self._requests]).encode())
        for point in self.design:
            digest.update(json.dumps(point).encode())
        return digest.hexdigest()[:32]

    @property
    def column_names(self) -> list[str]:
        """Table columns: the varied parameters, the results, and the reason for a missing result."""
        results = [name for name in _result_columns() if name not in self.columns]
        return [*self.columns, *([DRIVES] if self.is_counted else []), *results, "impossible", "failed"]

    def check_column(self, column: str) -> None:
        """Raises ``InputError`` if the table will have no such column."""
        if column not in self.column_names:
            close = difflib.get_close_matches(column, self.column_names, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise InputError(f"{column}: there is no such column{meant}")

    def chunks(self) -> Iterator[Chunk]:
        """Yields the configurations in chunks, whose boundaries depend only on the first point of each system."""
        for number, request in enumerate(self._requests):
            first = number * len(self.design)
            begin, end = (min(max(at - first, 0), len(self.design)) for at in (self.part.start, self.part.stop))
            each_s = _cost_s(request, next(iter(self.design)))
            for points in cut(islice(self.design, begin, end), partial(_same, each_s), POINTS_MAX):
                yield Chunk.of(request | {"points": points}, first + begin)
                begin += len(points)

    def request_of(self, place: int) -> tuple[dict[str, Any], dict[str, str]]:
        """Returns the request and the values of a configuration, counted from 0."""
        number, index = divmod(self.part.start + place, len(self.design))
        (point,) = islice(self.design, index, index + 1)
        return self._requests[number], dict(zip(self.design.fields, point, strict=True))

    def specified(self, place: int) -> dict[str, Any]:
        """Returns the run of a configuration, counted from 0, with the origin of its system's description."""
        request, values = self.request_of(place)
        (spec,) = _native.specifications(request | {"points": [list(values.values())]})
        number = (self.part.start + place) // len(self.design)
        how = described(load_system(self.systems[number]), changing(spec, values))
        if SYSTEM in request["kinds"]:
            # The values change the system, so the sample of the calibrated model does not apply.
            how = how._replace(sample=())
        return spec | {DESCRIBED: how}

    @property
    def notes(self) -> list[str]:
        """Messages about stated figures that varied keys override, one line per system."""
        notes = []
        for request in self._requests:
            blueprint = request["system"]["blueprint"]
            figures: dict[str, None] = {}
            varied = []
            fields = zip(self.design.fields, self.design.axes, request["kinds"], strict=True)
            for field, axis_of, kind in fields:
                if kind != SYSTEM:
                    continue
                ends = [axis_of.at(share) for share in (0.0, JUST_BELOW_ONE)]
                values = axis_of.values if isinstance(axis_of, Listed) else ends
                dropped = [_dropped(blueprint, field, value) for value in values]
                if any(dropped):
                    varied.append(field)
                    figures |= dict.fromkeys(figure for some in dropped for figure in some)
            if varied:
                notes.append(_native.note_of_dropped(request["system"]["name"], varied, list(figures)))
        return notes

    def check_where(self, condition: str) -> None:
        """Raises ``InputError`` if the condition does not fit the table."""
        import duckdb  # start-up time

        with duckdb.connect() as connection:
            connection.register("results", _native.results_of_kept([], []).table())
            varied = [
                f"cast(null as {kind}) as {_quoted(column)}"
                for column, kind in zip(self.columns, self.types, strict=True)
            ]
            others = [_quoted(name) for name in connection.table("results").columns if name not in self.columns]
            reasons = ["cast(null as varchar) as impossible", "cast(null as varchar) as failed"]
            reasons += ["cast(null as bigint) as drives"] if self.is_counted else []
            empty = connection.sql(f"select {', '.join([*varied, *others, *reasons])} from results")
            try:
                kind = str(empty.project(f"({condition}) as kept").types[0])
            except duckdb.Error as error:
                unknown = re.search(r'column "([^"]*)" not found', str(error))
                if unknown:
                    self.check_column(unknown[1].rpartition(".")[2] or unknown[1])
                raise _no_condition(condition, _reason(error)) from None
            if kind != "BOOLEAN":
                raise _no_condition(condition, "this is not a condition")


def _dropped(blueprint: Mapping[str, Any], field: str, value: str) -> list[str]:
    """Returns the stated figures that a value overrides; empty for an impossible value, whose row has the reason."""
    try:
        return _native.dropped_figures(blueprint, [(field, value)])
    except InputError:
        return []


def _no_condition(condition: str, why: str) -> InputError:
    example = "write a condition on columns, such as p99_ms < 20 and mean_ms < 5"
    return InputError(f"{condition}: {why}; {example}", key="where")


def _reason(error: Exception) -> str:
    """Returns DuckDB's message without its kind and position."""
    return str(error).partition("\n")[0].partition(": ")[2]


def _same(cost_s: float, _point: object) -> float:
    return cost_s


def _cost_s(request: dict[str, Any], point: Sequence[str]) -> float:
    (spec,) = _native.specifications(request | {"points": [list(point)]})
    return DESCRIBING_S + (cost_s(spec) if "system" in spec else 0.0)


def _result_columns() -> list[str]:
    """Returns the columns of results, except for the model's error, which is only computed for selected
    configurations."""
    return [name for name in _native.results_of_kept([], []).table().column_names if "model_" not in name]


def _check_options(fields: Mapping[str, Axis], workload: str | os.PathLike[str] | None) -> None:
    names = {option.name for option in OPTIONS}
    values_by_option = {
        field: list(each.values) if isinstance(each, Listed) else [""] for field, each in fields.items()
    }
    check(
        {name: values for name, values in values_by_option.items() if name in names},
        [None if workload is None else load_demand(workload)],
    )


def _kind(field: str, value: str, blueprints: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the kind of a field. Raises ``InputError`` with the closest name if it is unknown."""
    names = [option.name for option in OPTIONS]
    if field in SYNCS:
        raise InputError("not available in sweeps; use headstack run with several values", key=field)
    if field in CHANGES:
        return SYSTEM
    if field in names:
        return OPTION
    top = field.replace("[", ".").partition(".")[0]
    # Prefer the file that has the field's table, even if it does not state the key itself.
    stating = [kind for kind, blueprint in blueprints.items() if top in tomllib.loads(blueprint["text"])]
    kinds_to_try = stating or list(blueprints)
    answers = {kind: _native.describe_points(blueprints[kind], [[(field, value)]])[0] for kind in kinds_to_try}
    for answer in ("described", "impossible"):
        for kind in kinds_to_try:
            if answers[kind][0] == answer:
                return kind
    close = difflib.get_close_matches(field, names, 1)
    if close:
        raise InputError(f"unknown field; did you mean the option {close[0]}?", key=field)
    complaints = [text for _, text in answers.values()]
    raise InputError(next((text for text in complaints if "did you mean" in text), complaints[0]))


class SweptRuns:
    """The rows of a sweep, in files that are read as needed. ``Sweep`` plots and writes them."""

    def __init__(self, plan: Plan, paths: Sequence[Path]) -> None:
        self._plan, self._paths = plan, [str(path) for path in paths]
        with self._opened() as connection:
            counts = "count(*), count(impossible), count(failed), any_value(impossible)"
            (figures,) = connection.sql(f"select {counts} from swept").fetchall()
        self.configurations, self.impossible, self.failed, reason = figures
        """Numbers of all configurations, of impossible ones, and of runs that failed or did not pass their own
        check."""
        if self.impossible == self.configurations and plan.shard is None:
            raise InputError(f"no configuration of the sweep is possible: {reason}")

    def _opened(self) -> Any:
        import duckdb  # start-up time

        # One thread keeps the order of rows, and thus the bytes of the output.
        connection = duckdb.connect(config={"threads": 1})
        varied = [
            f"cast({_quoted(MARK + column)} as {kind}) as {_quoted(column)}"
            for column, kind in zip(self._plan.columns, self._plan.types, strict=True)
        ]
        files = "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in self._paths) + "]"
        # Without a result, use the name of the requested system.
        system = f"coalesce(system, {_quoted(MARK + SYSTEM)}) as system"
        expressions = {SYSTEM: system}
        if self._plan.is_counted:
            expressions[DRIVES] = f"cast(nullif({_quoted(MARK + DRIVES)}, '') as bigint) as drives"
        others = [
            expressions.get(name, _quoted(name)) for name in self._plan.column_names if name not in self._plan.columns
        ]
        connection.execute(
            f"create view placed as select row_number() over () as place, {', '.join([*varied, *others])} "
            f"from read_parquet({files})"
        )
        connection.execute("create view swept as select * exclude (place) from placed order by place")
        return connection

    @property
    def notes(self) -> list[str]:
        """Messages about stated figures that varied keys override, one line per system.

        >>> swept = hs.sweep("cheetah-x15-36lp", vary={"depth": [1, 4], "requests": [100], "warm_up": [0]})
        >>> swept.notes
        []
        """
        return self._plan.notes

    @property
    def systems(self) -> list[str]:
        """The systems of the sweep."""
        return self._plan.systems

    @property
    def varied(self) -> list[str]:
        """Columns with several values: the system, the fields of the sweep, the drives of a capacity."""
        axes = zip(self._plan.columns, self._plan.design.axes, strict=True)
        several = [column for column, axis in axes if not isinstance(axis, Listed) or len(axis.values) > 1]
        named = [SYSTEM, *several] if len(self.systems) > 1 else several
        return [*named, DRIVES] if self._plan.is_counted else named

    @property
    def is_grid(self) -> bool:
        """Whether the points form a grid, not a sample."""
        return self._plan.design.sample == "grid"

    @property
    def column_names(self) -> list[str]:
        """Columns: the varied parameters, the results, and the reason for an ``impossible`` or ``failed``
        configuration.
        """
        return self._plan.column_names

    def rows(
        self, order: str | None = None, descending: bool = False, limit: int | None = None, where: str | None = None
    ) -> list[dict[str, Any]]:
        """Returns rows as dicts in the order of the design or sorted by a column, which leaves out rows without a
        value.

        ``where`` is a condition on columns in DuckDB's SQL: ``"p99_ms < 20 and bottleneck != 'bus'"``. Quote names with
        dots or brackets. Raises ``InputError`` for an invalid condition.

        >>> swept = hs.sweep("cheetah-x15-36lp", vary={"depth": [1, 4], "requests": [100], "warm_up": [0]})
        >>> [row["depth"] for row in swept.rows(order="iops", descending=True)]
        [4, 1]
        """
        return self._query_rows(order, descending, limit, where, "* exclude (place)")

    def _query_rows(
        self, order: str | None, descending: bool, limit: int | None, where: str | None, columns: str
    ) -> list[dict[str, Any]]:
        import duckdb  # start-up time

        conditions, order_by = [], "place"
        if where is not None:
            self._plan.check_where(where)
            conditions.append(f"({where})")
        if order is not None:
            self._plan.check_column(order)
            conditions.append(f"{_quoted(order)} is not null")
            # Rows with equal values keep the order of the design.
            order_by = f"{_quoted(order)} {'desc' if descending else ''}, place"
        query = f"select {columns} from placed where {' and '.join(conditions or ['true'])} order by {order_by}"
        with self._opened() as connection:
            relation = connection.sql(query + (f" limit {limit}" if limit is not None else ""))
            try:
                return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
            except duckdb.ConversionException as error:
                # Only found when values are compared, such as text with numbers.
                raise _no_condition(str(where), _reason(error)) from None

    def inputs_of_runs(self, where: str | None = None) -> list[RunInputs]:
        """Returns the inputs of the first configurations, as many as a report lists, so that they can be recomputed.

        >>> swept = hs.sweep("cheetah-x15-36lp", vary={"depth": [1, 4], "requests": [100], "warm_up": [0]})
        >>> [inputs.values["depth"] for inputs in swept.inputs_of_runs()]
        ['1', '4']
        """
        inputs = []
        for row in self._query_rows(None, False, VARIABLE_RUNS_MAX, where, "*"):
            request, values = self._plan.request_of(row["place"] - 1)
            (spec,) = _native.specifications(request | {"points": [list(values.values())]})
            if "system" not in spec:
                continue
            described = described_of(spec)
            name, part = request["system"]["name"], request["system"]["part"]
            of_system, of_demand = (request[of]["blueprint"] if request[of] else None for of in (SYSTEM, DEMAND))
            system = f"{name}@{part}" if part else name
            why = "the page does not have its schedule of faults" if values.get(FAULTS, "none") != "none" else ""
            figures = figures_of(row)
            demand = self._plan.workload or ""
            inputs.append(RunInputs(system, demand, values, figures, described, of_system, of_demand, why))
        return inputs

    def rows_with_model_errors(
        self, order: str, descending: bool, limit: int, where: str | None = None
    ) -> list[dict[str, Any]]:
        """Returns rows as ``rows`` does, each with the model's error as in results. For a calibrated model this runs
        some of its sample, each for at most 10,000 requests.

        >>> swept = hs.sweep("cheetah-x15-36lp", vary={"depth": [1, 4], "requests": [100], "warm_up": [0]})
        >>> [row["iops_model_low"] < row["iops"] for row in swept.rows_with_model_errors("iops", True, 1)]
        [True]
        """
        places = self._query_rows(order, descending, limit, where, "place")
        rows = self.rows(order, descending, limit, where)
        specs = [self._plan.specified(place["place"] - 1) for place in places]
        errors = model_errors(specs, rows, lambda sampled: _native.run(sampled))
        return [row | columns_of(error) for row, error in zip(rows, errors, strict=True) if error is not None]

    def reasons(self, of: str = "impossible", limit: int = 3) -> list[tuple[str, int]]:
        """Returns the reasons for ``impossible`` or ``failed`` configurations with their counts, the most frequent
        first.

        >>> swept = hs.sweep("cheetah-x15-36lp", vary={"depth": [1, 4], "requests": [100], "warm_up": [0]})
        >>> swept.reasons()
        []
        """
        with self._opened() as connection:
            column = _quoted(of)
            query = f"select {column}, count(*) from swept where {column} is not null group by 1 order by 2 desc, 1"
            return [(why, count) for why, count in connection.sql(f"{query} limit {limit}").fetchall()]

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as Parquet. Equal sweeps give equal bytes, however they were run.

        >>> swept = hs.sweep("cheetah-x15-36lp", vary={"depth": [1, 4], "requests": [100], "warm_up": [0]})
        >>> swept.to_parquet("sweep.parquet")
        """
        self._copy(path, PARQUET)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as CSV.

        >>> swept = hs.sweep("cheetah-x15-36lp", vary={"depth": [1, 4], "requests": [100], "warm_up": [0]})
        >>> swept.to_csv("sweep.csv")
        """
        self._copy(path, CSV)

    def _copy(self, path: str | os.PathLike[str], how: str) -> None:
        with self._opened() as connection:
            # Copied into one table first, since the row groups of Parquet depend on how rows arrive.
            connection.execute("create temp table whole as select * from swept")
            write_all([(path, lambda draft: copy_to(connection, "whole", draft, how))])

    def to_shard(self, path: str | os.PathLike[str]) -> None:
        """Writes the table of a shard with its identification; ``shards.merge`` merges all shards.

        >>> vary = {"depth": [1, 4], "requests": [100], "warm_up": [0]}
        >>> hs.sweep("cheetah-x15-36lp", vary=vary, shard="2/2").to_shard("second.parquet")
        """
        shard = self._plan.shard or Shard()
        with self._opened() as connection:
            connection.execute("create temp table whole as select * from swept")
            write_all([(path, lambda draft: copy_shard(connection, "whole", draft, self._plan.hash, shard))])

    def __len__(self) -> int:
        return int(self.configurations)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
