"""``Kind``: kinds of monitoring data, recognised by content, and their observations in parts that fit into memory."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headstack._native import InputError
from headstack.diagnosis.judging.observations import Observations, observed
from headstack.diagnosis.judging.sources import ceph, collectl, diskstats, prometheus, sysstat, table, zpool
from headstack.diagnosis.judging.sources.files import How, Row, head
from headstack.diagnosis.judging.sources.table import PART_ROWS, STRETCH_S

Reader = Callable[[list[Path], How], Iterator[Row]]


@dataclass(frozen=True)
class Kind:
    """A kind of source."""

    name: str
    title: str
    matches: Callable[[str], object]
    """Whether the beginning of a file is of this kind."""
    rows: Reader
    is_series: bool = False
    """Whether the files of a folder are consecutive in time; otherwise each is of a separate host."""
    is_split: bool = False
    """Whether all files are parts of one: Prometheus has one for each query."""
    caveats: tuple[str, ...] = ()


def _has(*words: str) -> Callable[[str], bool]:
    return lambda begin: begin.lstrip()[:1] in ("{", "[") and all(f'"{word}"' in begin for word in words)


KINDS = (
    Kind("iostat", "iostat -x -o JSON", _has("sysstat", "disk_device"), sysstat.iostat_json),
    Kind("sadf", "sadf -j -- -d", _has("sysstat", "statistics"), sysstat.sadf),
    Kind(
        "prometheus",
        "range queries of Prometheus",
        _has("resultType"),
        prometheus.ranges,
        is_series=True,
        is_split=True,
    ),
    Kind(
        "ceph",
        "periodic ceph osd perf, as JSON or as a table",
        lambda begin: '"osd_perf_infos"' in begin or ceph.TABLE.search(begin),
        ceph.rows,
        is_series=True,
        caveats=ceph.CAVEATS,
    ),
    Kind(
        "node_exporter",
        "scrapes of a node_exporter",
        lambda begin: "node_disk_reads_completed_total{" in begin,
        prometheus.scrapes,
        is_series=True,
    ),
    Kind(
        "diskstats",
        "dumps of /proc/diskstats",
        diskstats.LINE.search,
        diskstats.rows,
        is_series=True,
        caveats=diskstats.CAVEATS,
    ),
    Kind("collectl", "collectl -sD, as shown or with -P", collectl.HEADER.search, collectl.rows),
    Kind("zpool", "zpool iostat -lpH -v", zpool.LINE.search, zpool.rows, is_series=True),
    Kind("iostat-text", "iostat -x as text", sysstat.TEXT.search, sysstat.iostat_text),
)
"""The most specific kinds come first."""


def parts(inputs: Iterable[str], how: How, columns: Mapping[str, str] | None = None) -> Iterator[Observations]:
    """Yields observations from files and folders, in order of time. Raises ``InputError`` for unknown or mixed
    kinds."""
    groups: list[tuple[Kind | None, list[Path]]] = []
    for name in inputs:
        groups += _groups(Path(name), is_table=columns is not None)
    kinds = {None if kind is None else kind.name for kind, _ in groups}
    if len(kinds) > 1:
        named = ", ".join(sorted(name or "table" for name in kinds))
        raise InputError(f"inputs of several kinds ({named}); pass one kind per run, and continue with --state")
    if None in kinds:
        yield from table.parts([path for _, paths in groups for path in paths], columns, how)
        return
    kind = groups[0][0]
    assert kind is not None
    if kind.is_split:
        groups = [(kind, [path for _, paths in groups for path in paths])]
    merged = heapq.merge(*(kind.rows(paths, how) for _, paths in groups), key=lambda row: row.start_s)
    yield from in_parts(merged, kind.name, how, kind.caveats)


def in_parts(rows: Iterable[Row], source: str, how: How, caveats: tuple[str, ...] = ()) -> Iterator[Observations]:
    """Yields observations from rows in order of time, in batches that end with a period of time."""
    part: list[dict[str, str | float | None]] = []
    stretch = 0.0
    for row in rows:
        at = row.start_s // STRETCH_S
        if len(part) >= PART_ROWS // 10 and at > stretch:
            yield observed(part, source, (*caveats, *how.caveats()))
            part = []
        stretch = max(stretch, at)
        part.append(row.cells())
    if part:
        yield observed(part, source, (*caveats, *how.caveats()))


def _groups(path: Path, is_table: bool) -> Iterator[tuple[Kind | None, list[Path]]]:
    """Yields groups of files that are read together, each with its kind; ``None`` is a table."""
    if not path.is_dir():
        yield _kind(path, is_table), [path]
        return
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    if not files:
        raise InputError(f"{path}: an empty folder")
    of_kind: dict[str, tuple[Kind | None, list[Path]]] = {}
    for file in files:
        kind = _kind(file, is_table)
        of_kind.setdefault("table" if kind is None else kind.name, (kind, []))[1].append(file)
    for kind, files_of_kind in of_kind.values():
        if kind is None or kind.is_series:
            yield kind, files_of_kind
        else:
            yield from ((kind, [file]) for file in files_of_kind)


def kind_of(path: Path) -> Kind | None:
    """Returns the kind of a file; ``None`` for a table. Raises ``InputError`` for a file of an unknown kind."""
    return _kind(path, is_table=False)


def _kind(path: Path, is_table: bool) -> Kind | None:
    begin = head(path)
    if is_table or begin == "PAR1":
        return None
    for kind in KINDS:
        if kind.matches(begin):
            return kind
    if "," in begin.partition("\n")[0]:
        return None
    titles = "; ".join(kind.title for kind in KINDS)
    raise InputError(f"{path}: unknown kind of file; allowed: {titles}; CSV or Parquet with --columns")
