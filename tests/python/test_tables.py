"""Tables keep the kinds that their columns declare, and docs/columns.md tells of every column."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import duckdb
import pytest

import headstack as hs
from headstack import _native
from headstack._native import Field
from headstack.cli.documented_tables import tables
from headstack.io.tables import sql_type, table_to_parquet
from headstack.measurement.access import Access
from headstack.measurement.tests.classic.outcome import Outcome
from headstack.prediction.prediction import Prediction
from headstack.prediction.predictions import Predictions
from headstack.simulation.swept import Plan

DOCUMENT = Path(__file__).parents[2] / "docs" / "columns.md"
SQL = {"text": "VARCHAR", "count": "UBIGINT", "figure": "DOUBLE", "flag": "BOOLEAN"}

FIELDS = [
    Field("serial", "text", "", "a serial number"),
    Field("bytes", "count", "bytes", "a size"),
    Field("ms", "figure", "ms", "a time"),
    Field("kept", "flag", "", "a verdict"),
]


def written(path: Path, fields: list[Field], rows: list[dict[str, Any]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    table_to_parquet(_native.Table(fields, rows), path)
    with duckdb.connect() as connection:
        table = connection.read_parquet(str(path))
        return [str(kind) for kind in table.types], table.fetchall()


def test_parquet_keeps_what_only_looks_like_a_number(tmp_path: Path) -> None:
    rows = [
        ("12E45678", (1 << 64) - 1, 0.1, True),
        ("nan", (1 << 53) + 1, math.inf, False),
        ("", 0, -0.5, None),
        ("0012", None, None, True),
        (None, 7, 3, False),
    ]
    given = [dict(zip(("serial", "bytes", "ms", "kept"), row, strict=True)) for row in rows]
    kinds, read = written(tmp_path / "t.parquet", FIELDS, given)
    assert kinds == ["VARCHAR", "UBIGINT", "DOUBLE", "BOOLEAN"]
    assert read == rows


def test_a_table_without_rows_or_values_has_its_columns(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("serial", "bytes", "ms", "kept"))
    for rows in ([], [nothing]):
        kinds, read = written(tmp_path / "t.parquet", FIELDS, rows)
        assert (kinds, len(read)) == (["VARCHAR", "UBIGINT", "DOUBLE", "BOOLEAN"], len(rows))


@pytest.mark.parametrize(
    ("column", "value", "error"),
    [("serial", 12, TypeError), ("bytes", -1, OverflowError), ("bytes", 0.5, TypeError), ("ms", "1", TypeError)],
)
def test_a_value_of_another_kind_is_refused(column: str, value: object, error: type[Exception]) -> None:
    row = {"serial": "x", "bytes": 1, "ms": 1.0, "kept": True}
    with pytest.raises(error):
        _native.Table(FIELDS, [row | {column: value}])
    with pytest.raises(KeyError):
        _native.Table(FIELDS, [{"serial": "x"}])


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["12E45678"], "varchar"),
        (["nan"], "varchar"),
        (["inf", "1"], "varchar"),
        (["007", "8"], "varchar"),
        ([], "varchar"),
        (["1", "-9223372036854775808"], "bigint"),
        (["18446744073709551615"], "ubigint"),
        (["-1", "18446744073709551615"], "varchar"),
        (["18446744073709551616"], "varchar"),
        (["1", "0.25"], "double"),
        (["1e3"], "double"),
        (["true", "false"], "boolean"),
        (["true", "1"], "varchar"),
    ],
)
def test_text_becomes_numbers_only_without_loss(texts: list[str], kind: str) -> None:
    assert sql_type(texts) == kind


def test_what_is_swept_keeps_its_digits(tmp_path: Path) -> None:
    seeds = [(1 << 53) + 1, (1 << 64) - 1]
    swept = hs.sweep("cheetah-x15-36lp", "file-server", vary={"seed": seeds, "requests": [40], "warm_up": [0]})
    swept.to_parquet(tmp_path / "s.parquet")
    kinds, rows = _read(tmp_path / "s.parquet", "seed")
    assert (kinds, rows) == (["UBIGINT"], [(seed,) for seed in seeds])
    assert Plan("cheetah-x15-36lp", None, {"name": "12E45678,13"}).types == ["varchar"]
    assert Plan("cheetah-x15-36lp", None, {"depth": "1..16:3"}).types == ["bigint"]
    assert Plan("cheetah-x15-36lp", None, {"seek.read_average": "3ms,4.5ms"}).types == ["double"]


def _read(path: Path, columns: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    with duckdb.connect() as connection:
        table = connection.sql(f"select {columns} from read_parquet('{path}')")
        return [str(kind) for kind in table.types], table.fetchall()


# The columns of every table.


def documented(name: str) -> tuple[Field, ...]:
    (fields,) = (table.fields for table in tables() if table.name == name)
    return fields


def test_tables_of_results_are_as_documented(tmp_path: Path) -> None:
    results = hs.run("cheetah-x15-36lp", "neds-record", time="2s", interval="1s")
    natives = {name: getattr(results, name)() for name in ("intervals", "streams", "facts", "histograms")}
    for name, table in (natives | {"results": results._native.table()}).items():
        fields = documented(name)
        with duckdb.connect() as connection:
            connection.register("given", table)
            found = connection.table("given")
            assert found.columns[: len(fields)] == [field.name for field in fields], name
            assert [str(kind) for kind in found.types[: len(fields)]] == [SQL[field.kind] for field in fields], name
            assert len(found.columns) == len(fields) or name == "results"
    names = [field.name for field in documented("results")]
    assert results.to_csv().splitlines()[0].split(",")[: len(names)] == names
    results.to_parquet(tmp_path / "r.parquet")
    with duckdb.connect() as connection:
        assert connection.read_parquet(str(tmp_path / "r.parquet")).columns == results.column_names


def test_tables_of_sweeps_and_predictions_are_as_documented() -> None:
    plan = Plan("demartek-512n-raid10-24", None, {"usable": "9TB"})
    columns = [field.name for name in ("sweep", "results") for field in documented(name)]
    names = [name for name in columns if "model_" not in name]
    assert sorted(plan.column_names) == sorted(["usable_TB", *names])
    one = Prediction("a", "b", "depth 1", 1, 1, 1, 1, 1, 1, None, None, None, None, None, None, None, "arm", False)
    header, row = Predictions([one]).to_csv().splitlines()
    assert header.split(",") == [field.name for field in documented("predict")]
    assert row.split(",")[-1] == ""
    _native.Table(documented("predict"), Predictions([one]).rows())


@pytest.mark.parametrize("test", ["crystal", "fsync", "latency", "prefill", "zones"])
def test_tables_of_the_short_tests_are_as_documented(test: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(16 << 20))
    permitted = Access(overwrite=True, buffered=True)
    tests: dict[str, Callable[[], Outcome]] = {
        "crystal": lambda: hs.crystal(tmp_path, Access(buffered=True), size="4MiB", runs=1, time="5ms", pause="0s"),
        "fsync": lambda: hs.fsync(file, permitted, sizes=["4KiB"], count=5),
        "latency": lambda: hs.latency(file, Access(buffered=True), count=3, interval="0s"),
        "prefill": lambda: hs.prefill(file, permitted),
        "zones": lambda: hs.zones([file], Access(buffered=True), positions=4, accesses=4),
    }
    found = tests[test]()
    rows = found.rows()
    assert rows
    assert all(list(row) == [field.name for field in found.fields] for row in rows)
    assert len(_native.Table(found.fields, rows)) == len(rows)
    assert found.fields is documented(test)


def interval_ends(fields: Sequence[Field]) -> dict[str, str]:
    """Returns the column of the upper bound for each column of the lower bound of an interval."""
    names = {field.name for field in fields}
    pairs = {name: name.replace("low", "high") for name in names if "low" in name.split("_")}
    return {low: high for low, high in pairs.items() if high in names}


def table_rows(fields: Sequence[Field]) -> Iterator[str]:
    """Yields the rows of a table of columns; both ends of an interval are one row."""
    ends = interval_ends(fields)
    for field in fields:
        kind = f"{field.kind}, {field.unit}" if field.unit else field.kind
        if field.name in ends:
            meaning, changed = re.subn(r"\blower bound\b", "bounds", field.meaning)
            assert changed == 1, field.name
            yield f"| `{field.name}`, `{ends[field.name]}` | {kind} | {meaning} |"
        elif field.name not in ends.values():
            yield f"| `{field.name}` | {kind} | {field.meaning} |"


def page() -> str:
    """docs/columns.md, made from the fields."""
    text = [
        "# Columns of tables",
        "",
        fill(
            "Look up the columns of a table that headstack writes. Read an empty cell as unknown, never as 0. In "
            "Parquet, a `text` is a string, a `count` an unsigned integer of 64 bits, a `figure` a double, a `flag` a "
            "boolean. Use, for example, `headstack run 990-pro-2tb --csv run.csv` to write the table `results`.",
            128,
        ),
        "",
    ]
    for table in tables():
        text += [
            f"## {table.name}",
            "",
            fill(table.text, 128),
            "",
            "| column | kind, unit | meaning |",
            "| --- | --- | --- |",
            *table_rows(table.fields),
            "",
        ]
    return "\n".join(text)


def test_the_page_tells_of_every_column() -> None:
    if os.environ.get("HEADSTACK_WRITE_DOCS"):
        DOCUMENT.write_text(page())
    assert DOCUMENT.read_text() == page(), "renew it: HEADSTACK_WRITE_DOCS=1 pytest tests/python/test_tables.py"


def test_units_are_part_of_names_and_told() -> None:
    units = {"_ms": "ms", "_s": "s", "_us": "us", "_bytes": "bytes", "_percent": "%", "_mb_per_s": "10^6 bytes/s"}
    for table in tables():
        assert len({field.name for field in table.fields}) == len(table.fields)
        for field in table.fields:
            assert field.meaning, field.name
            for suffix, unit in units.items():
                if field.name.endswith(suffix) and not field.name.endswith(("_per_s", "_hash")):
                    assert field.unit == unit, (table.name, field)
