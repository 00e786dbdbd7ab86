"""``Tables``: the tables of a study, and queries over them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.drive import Drive
from headstack.catalogue.price_list import shipped_prices
from headstack.io.tables import sql_type
from headstack.results.results import Results
from headstack.results.table import Row
from headstack.studies.choice_tables import TABLES as CHOSEN
from headstack.studies.study import Study

PERCENTS = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
"""Percentiles of response times in the table of percentiles."""

NO_FIGURES = frozenset(("run", "system", "workload", "environment", "load", "depth", "rate_per_s", "seed", "version"))
"""Columns that identify runs."""
ECHOED = frozenset(("capacity_gb", "description_hash", "percent", "component", "stream", "start_s", "duration_s"))
"""Columns that repeat inputs, or identify a part of a run."""
FACTOR = 4.0
"""Maximum factor by which results are perturbed to determine what depends on them: no drives of the studies differ as
much under the same load, so conclusions that survive do not depend on a simulation."""


@dataclass(frozen=True)
class QueryResult:
    """The result of a query."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    def dicts(self) -> Iterator[Row]:
        """Yields the rows as dictionaries."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


class Tables:
    """An in-memory database with one thread, so that sums are computed in one order and rows keep theirs."""

    def __init__(self, study: Study) -> None:
        import duckdb  # start-up time

        self._study, self._wrong = study, duckdb.Error
        self._base: dict[str, frozenset[str] | None] = {}
        """Tables not made by queries, with the columns that are no results; ``None`` if there are none."""
        self._derived: list[tuple[str, str, str]] = []
        self._database = duckdb.connect(config={"threads": 1})
        for name, path in study.table_names().items():
            try:
                self._read_csv(name, str(path))
                self._base[name] = None
            except duckdb.Error as error:
                raise InputError(f"{path}: {_one_line(error)}") from None
        if "drives" in _words(study):
            self.add_rows("drives", _drives())
            self._base["drives"] = None
        if "prices" in _words(study) - {*self._base}:
            self.add_rows("prices", list(_prices()))
            self._base["prices"] = None

    def _read_csv(self, name: str, path: str) -> None:
        """Adds a table from a CSV file, whose columns have the type that holds all of their cells."""
        read = self._database.read_csv(path, header=True, all_varchar=True)
        cells = dict(zip(read.columns, zip(*read.fetchall(), strict=True), strict=False))
        kinds = {
            column: sql_type(cell for cell in cells.get(column, ()) if cell is not None) for column in read.columns
        }
        columns = ", ".join(f'cast("{column}" as {kind}) as "{column}"' for column, kind in kinds.items())
        read.project(columns).create(name)

    def add_results(self, grid: Mapping[str, Any], results: Results, keys: Sequence[Row] = ()) -> None:
        """Adds the table of a grid's runs, and further tables that it keeps. ``keys`` replace the columns of the same
        names: for replays, those of the recorded run."""
        name = grid["name"]
        columns = results.column_names
        with self._registered(results._native.table()):
            self._database.execute(f"create table {name} as select row_number() over () as run, * from given")
        for run, row in enumerate(keys, 1):
            changes = ", ".join(f'"{key}" = ?' for key in row)
            self._database.execute(f"update {name} set {changes} where run = ?", [*row.values(), run])
        labels = columns[columns.index("version") + 1 :]
        own = _quoted(["run", "system", "workload", "depth", "rate_per_s", *labels])
        self._base[name] = NO_FIGURES | ECHOED | {*labels}
        natives = {"intervals": results.intervals, "streams": results.streams, "facts": results.facts}
        for kind in grid["keep"]:
            self._base[f"{name}_{kind}"] = self._base[name]
            joined = f"create table {name}_{kind} as select * from (select {own} from {name}) join"
            if kind in natives:
                with self._registered(natives[kind]()):
                    ours = "select * exclude (run, system), run + 1 as run from given"
                    self._database.execute(f"{joined} ({ours}) using (run)")
            else:
                self.add_rows("kept", list(_percentiles(results) if kind == "percentiles" else _components(results)))
                self._database.execute(f"{joined} kept using (run)")
                self._database.execute("drop table kept")
        if any(len({row[load] for row in results}) > 1 for load in ("depth", "rate_per_s")):
            self.add_rows(f"{name}_curves", list(_curves(results, grid["within"], keys)))
            self._base[f"{name}_curves"] = self._base[name]

    def add_rows(self, name: str, rows: Sequence[Row], labels: Set[str] = frozenset()) -> None:
        """Adds a table of these rows with equal columns, which are results except for ``labels`` and columns that
        identify runs."""
        if not rows:
            raise InputError("a table without rows", key=name)
        kinds = {key: _kind(row[key] for row in rows) for key in rows[0]}
        columns = ", ".join(f'"{key}" {kind}' for key, kind in kinds.items())
        self._database.execute(f"create table {name} ({columns})")
        marks = ", ".join("?" * len(kinds))
        self._database.executemany(f"insert into {name} values ({marks})", [list(row.values()) for row in rows])
        if name != "kept":
            self._base[name] = NO_FIGURES | ECHOED | labels

    @contextmanager
    def other_results(self, seed: int, needed: Set[str]) -> Iterator[None]:
        """Provides the tables ``needed`` with perturbed results: each figure is multiplied by a factor of its own,
        between 1/4 and 4, and all by 1/4, 1 or 4; derived tables are made from these."""
        schema, common = f"other_{seed}", FACTOR ** (seed % 3 - 1)
        self._database.execute(f"create schema {schema}")
        for name, kept in self._base.items():
            if name not in needed:
                continue
            columns = self._database.execute(f"describe main.{name}").fetchall()
            replaced = [
                _other(column, kind, f"{seed}, {place}", common)
                for place, (column, kind, *_) in enumerate(columns)
                if kept is not None and column not in kept
            ]
            changes = f" replace ({', '.join(filter(None, replaced))})" if any(replaced) else ""
            self._database.execute(f"create table {schema}.{name} as select *{changes} from main.{name}")
        self._database.execute(f"set schema = '{schema}'")
        try:
            for path, name, sql in self._derived:
                if self.sources(sql) <= needed:
                    self._create(path, name, sql)
            yield
        finally:
            self._database.execute("set schema = 'main'")
            self._database.execute(f"drop schema {schema} cascade")

    def derive(self, path: str, name: str, sql: str) -> None:
        """Adds a table made by a query; ``path`` is the key of the query."""
        self._derived.append((path, name, sql))
        self._create(path, name, sql)

    def _create(self, path: str, name: str, sql: str) -> None:
        try:
            self._database.execute(f"create table {name} as {_with_current_columns(sql)}")
        except self._wrong as error:
            raise self._study.error(path, _one_line(error)) from None

    def sources(self, sql: str) -> set[str]:
        """Returns the tables that a query names, and those that these were made from."""
        queries = {name: query for _, name, query in self._derived}
        names: set[str] = set()
        left = [sql]
        while left:
            for name in _named_in(left.pop()) - names:
                names.add(name)
                if name in queries:
                    left.append(queries[name])
        return names & {*self._base}

    def grids_of(self, number: int) -> list[Mapping[str, Any]]:
        """Returns the grids whose runs a claim may read."""
        sources = self.sources(self._study.claims[number]["sql"] or "")
        return [grid for grid in self._study.grids if sources & {*names_of(grid)}]

    @property
    def made_here(self) -> set[str]:
        """The tables of runs and of descriptions, which no document contains."""
        return {*self._base} - {*self._study.table_names()}

    def query(self, path: str, sql: str) -> QueryResult:
        """Returns the result of a query; ``path`` is its key. Raises ``InputError`` with its line."""
        try:
            return self._run_query(_with_current_columns(sql))
        except self._wrong as error:
            raise self._study.error(path, _one_line(error)) from None

    def data(self) -> dict[str, QueryResult]:
        """Returns the tables of the grids and the derived ones, by name."""
        names = [name for grid in self._study.grids for name in names_of(grid)]
        names += [*(CHOSEN if self._study.choices else ()), *(table["name"] for table in self._study.tables)]
        there = {row[0] for row in self._database.execute("show tables").fetchall()}
        return {name: self._run_query(f"from {name}") for name in names if name in there}

    def match(self, number: int, published: Mapping[str, Any]) -> None:
        """Rejects a published row without a run of its grid."""
        path, grid = self._study.folder / published["file"], published["grid"]
        name = path.stem.replace("-", "_")
        there = {column[0] for column in self._database.execute(f"describe {grid}").fetchall()}
        for place, column in enumerate(published["by"]):
            if column not in there:
                raise self._study.error(f"published[{number}].by[{place}]", f"the grid {grid} has no column {column!r}")
        by = _quoted(published["by"])
        same = " and ".join(f'cast(p."{c}" as varchar) = cast(g."{c}" as varchar)' for c in published["by"])
        alone = self._database.execute(
            f"select line, {by} from (select row_number() over () + 1 as line, * from {name}) as p "
            f"where not exists (select 1 from {grid} as g where {same}) order by line limit 1"
        ).fetchone()
        if alone is not None:
            cells = ", ".join(f"{c} {value}" for c, value in zip(published["by"], alone[1:], strict=True))
            raise InputError(f"{path}:{alone[0]}: no run of the grid {grid} has {cells}")

    @contextmanager
    def _registered(self, table: _native.Table) -> Iterator[None]:
        """Registers the table under the name ``given``."""
        self._database.register("given", table)
        yield
        self._database.unregister("given")

    def _run_query(self, sql: str) -> QueryResult:
        self._database.execute(sql)
        columns = [column[0] for column in self._database.description or []]
        return QueryResult(columns, [tuple(_plain(value) for value in row) for row in self._database.fetchall()])


def _with_current_columns(sql: str) -> str:
    """Returns a query with the current names of columns of runs and of ``GRID_components``.

    >>> _with_current_columns("select max(busy_percent) from runs_components")
    'select max(utilization_percent) from runs_components'
    >>> _with_current_columns("select utilisation_percent from runs")
    'select utilization_percent from runs'
    """
    return re.sub(r"\b(busy|utilisation)_percent\b", lambda match: _native.current_column(match[0]), sql)


def _named_in(sql: str) -> set[str]:
    """Returns the sources of a query: its tables, and names of its own subqueries. (DuckDB's own list fails for many
    valid queries.)"""
    names: set[str] = set()
    outer: list[str] = []
    # The role of the next words: the name of a table, its alias, or something else.
    state = ""
    for token in re.findall(r"\w+|[(),]", re.sub(r"'(?:[^']|'')*'|--.*", " ", sql)):
        match token.lower():
            case "(":
                outer.append(state)
                state = ""
            case ")":
                state = outer.pop() and "after" if outer else ""
            case "from" | "join":
                state = "table"
            case ",":
                state = "table" if state == "after" else state
            case "select" | "where" | "on" | "using" | "group" | "order" | "window" | "union" | "limit" | "qualify":
                state = ""
            case _ if state == "table":
                names.add(token)
                state = "after"
    return names


def names_of(grid: Mapping[str, Any]) -> list[str]:
    """Returns the tables that a grid may have: of its runs, and additional ones."""
    return [grid["name"], *(f"{grid['name']}_{kind}" for kind in ("curves", "recorded", *grid["keep"]))]


def _one_line(error: Exception) -> str:
    """Returns the message without the excerpt of the query."""
    return " ".join(str(error).partition("\n\nLINE")[0].split())


def _words(study: Study) -> set[str]:
    """Returns the words of all queries: completing the catalogue's drives takes half a second, so studies without them
    skip it.
    """
    queries = [item["sql"] or "" for item in (*study.tables, *study.claims, *study.pictures)]
    return set(re.findall(r"\w+", " ".join(queries)))


def _quoted(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in dict.fromkeys(columns))


def _kind(values: Iterable[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "bigint"
    return "double" if kinds and kinds <= {int, float} else "varchar"


def _plain(value: Any) -> Any:
    """Converts decimals to numbers; NaN becomes ``None``."""
    plain = value if value is None or isinstance(value, bool | int | float | str) else float(value)
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def _percentiles(results: Results) -> Iterator[Row]:
    for index in range(len(results)):
        for percent in PERCENTS:
            yield {"run": index + 1, "percent": percent, "ms": results.percentile_ms(index, percent)}


def _components(results: Results) -> Iterator[Row]:
    for index in range(len(results)):
        whole = results.whole(index)
        for component in whole["components"]:
            utilization = 100 * component["busy_ns"] / max(1, component["servers"] * whole["duration_ns"])
            yield {"run": index + 1, "component": component["name"], "utilization_percent": utilization}


def _curves(results: Results, within: Sequence[str], keys: Sequence[Row]) -> Iterator[Row]:
    """Yields a row for each curve: the common values of its runs, its knee, and its throughput at response times."""
    knees = {knee.curve: knee for knee in results.knees()}
    limits = {limit: results.iops_at(limit) for limit in within}

    def most(name: str, limit: str) -> float | None:
        operating_point = limits[limit][name]
        return None if operating_point is None else operating_point.iops

    own = results.column_names
    labels = own[own.index("version") + 1 :]
    for name, runs in results.curves().items():
        knee, first = knees.get(name), results[runs[0]] | (keys[runs[0]] if keys else {})
        yield {
            **{key: first[key] for key in ("system", "workload", *labels)},
            "knee_iops": None if knee is None else knee.iops,
            "knee_ms": None if knee is None else knee.mean_ms,
            "knee_load": None if knee is None else knee.load,
            "most_iops": max(results[run]["iops"] for run in runs),
            **{f"iops_at_{limit}".replace(".", "_"): most(name, limit) for limit in within},
        }


@cache
def _drives() -> tuple[Row, ...]:
    """Returns the HDDs of the catalogue, also for tables of alternative choices."""
    drives = map(Drive.load, _native.drive_ids())
    return tuple(drive_row(drive) for drive in drives if drive.kind == "disk")


def _prices() -> Iterator[Row]:
    """Yields the prices of the catalogue's drives."""
    drives = {*_native.drive_ids()}
    for price in shipped_prices():
        if price.item in drives:
            columns = {"usd": price.usd, "date": price.date, "confidence": price.confidence, "source": price.source}
            capacity = Drive.load(price.item).capacity_bytes
            per_gb = price.usd_per_gb(capacity)
            yield {"drive": price.item, **columns, "capacity_gb": capacity / 1e9, "usd_per_gb": per_gb}


def drive_row(drive: Drive) -> Row:
    """Returns the data sheet's values of an HDD, with those that the model derives.

    Rates are those of the media: a track's sectors per revolution, at the outer and the inner edge. Average seek times
    are those stated.
    """
    geometry, rpm = drive.description["geometry"], drive.description["mechanics"]["rpm"]
    stated = {value["key"]: value["value"] for value in drive.stated}
    zones = geometry["zones"]

    def ms(key: str) -> float | None:
        return _native.parse_duration_ns(stated[key]) / 1e6 if key in stated else None

    def rate(zone: Mapping[str, float]) -> float:
        return float(zone["sectors_per_track"] * geometry["physical_sector_bytes"] * rpm / 60 / 1e6)

    return {
        "drive": drive.name,
        "name": drive.description["name"],
        "year": int(stated["year"]) if "year" in stated else None,
        "capacity_gb": drive.capacity_bytes / 1e9,
        "sectors": geometry["logical_blocks"],
        "heads": geometry["heads"],
        "rpm": float(rpm),
        "latency_ms": 30_000 / rpm,
        "seek_read_ms": ms("seek.read_average"),
        "seek_write_ms": ms("seek.write_average"),
        "outer_mb_per_s": rate(zones[0]),
        "inner_mb_per_s": rate(zones[-1]),
    }


def _other(column: str, kind: str, salt: str, common: float) -> str:
    """Returns an SQL expression with perturbed values of a column."""
    share = f"(hash(rowid, {salt}) % 1000003 / 1000002.0)"
    if kind == "BOOLEAN":
        return f'("{column}" <> ({share} < 0.5)) as "{column}"'
    if kind == "VARCHAR":
        return f'(\'other \' || "{column}") as "{column}"'
    factor = f"{common} * exp(ln({FACTOR}) * (2 * {share} - 1))"
    return f'cast("{column}" * {factor} as {kind}) as "{column}"'
