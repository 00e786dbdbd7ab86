"""``Shard``: a part of a sweep that runs on its own machine, and the merge of all parts.

A shard is a contiguous share of the configurations: the rows of all shards in order are those of the sweep. Its table
is a Parquet file that states its sweep and its number, so that only matching shards are merged.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headstack._native import InputError
from headstack.io.atomic_files import write_all
from headstack.io.tables import CSV, PARQUET, copy_to

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEY = "headstack_shard"
"""Key of the metadata that identifies a shard."""


@dataclass(frozen=True)
class Shard:
    """A part of a sweep: ``number`` of ``count``, from 1."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parses a shard such as ``2/8``. Raises ``InputError``."""
        match = re.fullmatch(r"([0-9]+)/([0-9]+)", text.strip())
        shard = cls(int(match[1]), int(match[2])) if match else None
        if shard is None or not 1 <= shard.number <= shard.count:
            raise InputError(f"{text!r}: write NUMBER/COUNT, from 1/8 to 8/8", key="shard")
        return shard

    def part(self, configurations: int) -> range:
        """Returns the range of its configurations. Raises ``InputError`` if there are fewer configurations than
        shards."""
        if configurations < self.count:
            raise InputError(
                f"{self}: the sweep has {configurations} configurations; at most as many shards", key="shard"
            )
        return range(configurations * (self.number - 1) // self.count, configurations * self.number // self.count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def copy_shard(
    connection: DuckDBPyConnection, table: str, path: str | os.PathLike[str], sweep: str, shard: Shard
) -> None:
    """Writes a table as a shard of the sweep with that hash."""
    identity = json.dumps({"sweep": sweep, "shard": str(shard)})
    copy_to(connection, table, path, f"{PARQUET}, kv_metadata {{{KEY}: '{identity}'}}")


def merge(paths: Iterable[str | os.PathLike[str]], output: str | os.PathLike[str]) -> int:
    """Merges the tables of all shards, in any order, into the table of the sweep: CSV if ``output`` ends in ``.csv``,
    else Parquet, with the same bytes as from one machine. Returns the number of configurations.

    Raises ``InputError`` with the shards that are missing, duplicate or from another sweep."""
    import duckdb  # start-up time

    with duckdb.connect(config={"threads": 1}) as connection:
        ordered = _in_order(connection, [os.fspath(path) for path in paths])
        connection.execute(f"create temp table whole as select * from read_parquet([{', '.join(map(_text, ordered))}])")
        how = CSV if os.fspath(output).endswith(".csv") else PARQUET
        write_all([(output, lambda draft: copy_to(connection, "whole", draft, how))])
        (count,) = connection.sql("select count(*) from whole").fetchall()[0]
    return int(count)


def _in_order(connection: DuckDBPyConnection, paths: Sequence[str]) -> list[str]:
    """Returns the files of all shards of one sweep, in order."""
    if not paths:
        raise InputError("no shard: name the files of all shards")
    identities = {path: _read_identity(connection, path) for path in paths}
    first = identities[paths[0]]
    paths_by_number: dict[int, str] = {}
    for path, (sweep, shard) in identities.items():
        if sweep != first[0]:
            raise InputError(f"{path}: belongs to another sweep than {paths[0]}, or to another build of headstack")
        if shard.count != first[1].count:
            raise InputError(f"{path}: shard {shard} overlaps {paths[0]}, which is shard {first[1]}")
        if shard.number in paths_by_number:
            raise InputError(f"{path}: shard {shard} is duplicate; it is also in {paths_by_number[shard.number]}")
        paths_by_number[shard.number] = path
    missing = [
        str(Shard(number, first[1].count)) for number in range(1, first[1].count + 1) if number not in paths_by_number
    ]
    if missing:
        raise InputError(f"shards are missing: {', '.join(missing)}")
    return [paths_by_number[number] for number in sorted(paths_by_number)]


def _read_identity(connection: DuckDBPyConnection, path: str) -> tuple[str, Shard]:
    """Reads the sweep's hash and the shard from a file."""
    import duckdb  # start-up time

    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    query = f"select value from parquet_kv_metadata({_text(path)}) where key = '{KEY}'"
    try:
        rows: list[Any] = connection.sql(query).fetchall()
    except duckdb.Error:
        rows = []
    if not rows:
        raise InputError(f"{path}: not a shard of a sweep; headstack sweep --shard 1/8 -o FILE.parquet writes one")
    identity = json.loads(bytes(rows[0][0]).decode())
    return identity["sweep"], Shard.parse(identity["shard"])


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
