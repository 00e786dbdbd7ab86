"""``Kind``: kinds of monitoring data, recognised by content, and their observations in parts that fit into memory."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headstack._native import InputError
from headstack.diagnosis.judging.observations import Observations, observed
from headstack.diagnosis.judging.sources import (
    background,
    benchmarks,
    ceph,
    cloud,
    collectl,
    columns,
    device_logs,
    diskstats,
    histogram,
    named,
    pressure,
    processors,
    prometheus,
    summary,
    sysstat,
    table,
    zpool,
    zpool_histogram,
)
from headstack.diagnosis.judging.sources.files import How, Row, head, opened, stem
from headstack.diagnosis.judging.sources.table import PART_ROWS, STRETCH_S
from headstack.diagnosis.judging.suspects.statements import Statement

Reader = Callable[[list[Path], How], Iterator[Row]]
STATED_MAX = 1 << 22
"""Maximum number of characters that are read of a layout without rates of disks."""


@dataclass(frozen=True)
class Kind:
    """A kind of source."""

    name: str
    title: str
    matches: Callable[[str], object]
    """Whether the beginning of a file is of this kind."""
    rows: Reader | None = None
    """Reads rates of disks; ``None`` for a layout without them."""
    statements: Callable[[str, str], list[Statement]] | None = None
    """Reads the other facts of a text, called by the name of its file."""
    is_series: bool = False
    """Whether the files of a folder are consecutive in time; otherwise each is of a separate host."""
    is_split: bool = False
    """Whether all files are parts of one: Prometheus has one for each query."""
    caveats: tuple[str, ...] = ()
    command: str = "headstack judge {}"
    """The command that shows most of such a file."""


def _has(*words: str) -> Callable[[str], bool]:
    return lambda begin: begin.lstrip()[:1] in ("{", "[") and all(f'"{word}"' in begin for word in words)


def _is_cloud(begin: str) -> bool:
    """Whether a text has metrics of cloud volumes: JSON of a provider, or a table with names of metrics."""
    if begin.lstrip()[:1] in ("{", "["):
        answers = ('"MetricDataResults"', '"Datapoints"', '"timeseries"', '"timeSeries"')
        return any(answer in begin for answer in answers) and cloud.NAMES.search(begin) is not None
    return cloud.NAMES.search("\n".join(begin.splitlines()[:12])) is not None and "," in begin


RATES = (
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
    Kind("iostat-text", "iostat, sar -d, gstat or mc support top disk as text", columns.HEADER.search, columns.rows),
    Kind(
        "ceph",
        "ceph osd perf, as JSON or as a table",
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
    Kind(
        "zpool",
        "zpool iostat -vl",
        lambda begin: zpool.HEADER.search(begin) or zpool.LINE.search(begin),
        zpool.rows,
        is_series=True,
    ),
    Kind("cloud", "metrics of CloudWatch, Azure Monitor or Google Cloud", _is_cloud, cloud.rows),
)
"""Kinds with rates of disks."""
STATED = (
    Kind("vmstat", "vmstat", processors.VMSTAT.search, statements=processors.vmstat),
    Kind("top", "top", processors.TOP.search, statements=processors.top),
    Kind("processors", "sar -u or mpstat", processors.TABLE.search, statements=processors.table),
    Kind(
        "cgroup",
        "io.stat and io.max of a control group",
        lambda begin: pressure.IO_STAT.search(begin) or pressure.IO_MAX.search(begin),
        statements=pressure.control_group,
    ),
    Kind("pressure", "pressure stall information", pressure.PRESSURES.search, statements=pressure.pressures),
    Kind("mdstat", "/proc/mdstat", background.MDSTAT.search, statements=background.mdstat),
    Kind("zpool-status", "zpool status", background.ZPOOL_STATUS.search, statements=background.zpool_status),
    Kind(
        "zpool-histogram",
        "zpool iostat -w or -r",
        zpool_histogram.is_histogram,
        statements=zpool_histogram.histograms,
    ),
    Kind("ceph-status", "ceph -s", background.CEPH_STATUS.search, statements=background.ceph_status),
    Kind("amazon", "nvme amzn stats -o json", _has(device_logs.AMZN), statements=device_logs.amazon),
    Kind(
        "smart-log",
        "nvme smart-log",
        lambda begin: (
            device_logs.SMART_TEXT.search(begin)
            or _has("critical_warning", "temperature")(begin)
            or _has("avail_spare")(begin)
        ),
        statements=device_logs.smart_log,
    ),
    Kind(
        "fio text",
        "fio output as text; repeat it as JSON",
        lambda begin: (
            benchmarks.FIO_GROUP.search(begin) or (benchmarks.FIO.search(begin) and benchmarks.FIO_KIND.search(begin))
        ),
        statements=benchmarks.fio,
        command="fio --output-format=json --output=results.json JOBFILE",
    ),
    Kind(
        "ceph-bench",
        "rbd bench or rados bench",
        lambda begin: benchmarks.RBD_BENCH.search(begin) or benchmarks.RADOS_BENCH.search(begin),
        statements=benchmarks.ceph_bench,
    ),
    Kind("dd", "dd", benchmarks.DD.search, statements=benchmarks.dd),
    Kind("ioping", "ioping", benchmarks.IOPING.search, statements=benchmarks.ioping),
    Kind("hdparm", "hdparm -tT", benchmarks.HDPARM.search, statements=benchmarks.hdparm),
    Kind("pg_test_fsync", "pg_test_fsync", benchmarks.PG.search, statements=benchmarks.pg_test_fsync),
    Kind("sysbench", "sysbench fileio", benchmarks.SYSBENCH.search, statements=benchmarks.sysbench),
    Kind(
        "histogram", "histograms of a latency for Prometheus", histogram.BUCKET.search, statements=histogram.histograms
    ),
    Kind("dmesg", "dmesg", device_logs.DMESG.search, statements=device_logs.dmesg),
    *(Kind(layout.name, layout.title, layout.pattern.search, statements=layout.statements) for layout in named.LAYOUTS),
    Kind("summary", "a small table of summaries", summary.table_of, statements=summary.summary),
    Kind("columns", "a table of words and figures", named.heading, statements=named.columns),
)
"""Kinds without rates of disks."""
KINDS = RATES + STATED
"""The most specific kinds come first."""


class _Group(NamedTuple):
    """Files that are read together."""

    kind: Kind | None
    """``None`` for a table."""
    paths: list[Path]


def parts(inputs: Iterable[str], how: How, columns: Mapping[str, str] | None = None) -> Iterator[Observations]:
    """Yields observations from files and folders, in order of time. One kind may have rates of disks; files of others
    add their facts. Raises ``InputError`` for unknown kinds, and for several with rates."""
    groups: list[_Group] = []
    for name in inputs:
        groups += _groups(Path(name), is_table=columns is not None)
    for _, paths in groups:
        for path in paths:
            how.statements += () if columns is not None else _statements(path)
    rated = [group for group in groups if group.kind is None or group.kind.rows is not None]
    kinds = {"table" if group.kind is None else group.kind.name for group in rated}
    if len(kinds) > 1:
        raise InputError(
            f"inputs of several kinds ({', '.join(sorted(kinds))}); pass one kind with rates of disks per run, and "
            "continue with --state"
        )
    if not rated:
        yield observed([], groups[0].kind.name if groups[0].kind else "", how.caveats())
        return
    kind = rated[0].kind
    if kind is None:
        yield from table.parts([path for group in rated for path in group.paths], columns, how)
        return
    if kind.is_split:
        rated = [_Group(kind, [path for group in rated for path in group.paths])]
    reader = kind.rows
    assert reader is not None
    merged = heapq.merge(*(reader(group.paths, how) for group in rated), key=lambda row: row.start_s)
    yield from in_parts(merged, kind.name, how, kind.caveats)


def _statements(path: Path) -> list[Statement]:
    """Returns the facts beside rates of disks in a file; a pasted text may have several layouts."""
    text = head(path)
    first = None if text == "PAR1" else _kind_of_text(text)
    if first is None:
        return []
    if first.rows is None:
        with opened(path) as stream:
            text = stream.read(STATED_MAX)
    stated: list[Statement] = []
    for kind in STATED:
        if kind.statements is not None and (kind is first or kind.name in PASTED) and kind.matches(text):
            stated += kind.statements(text, stem(path))
    return stated


PASTED = ("vmstat", "pressure", "mdstat", "zpool-status", "ceph-status", "smart-log", "dmesg")
"""Layouts of the host that are read beside others in one text."""


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
    how.statements += how.stack.statements()
    if part or how.statements:
        yield observed(part, source, (*caveats, *how.caveats()))


def _groups(path: Path, is_table: bool) -> Iterator[_Group]:
    """Yields groups of files that are read together."""
    if not path.is_dir():
        yield _Group(_kind(path, is_table), [path])
        return
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    if not files:
        raise InputError(f"{path}: an empty folder")
    of_kind: dict[str, _Group] = {}
    for file in files:
        kind = _kind(file, is_table)
        of_kind.setdefault("table" if kind is None else kind.name, _Group(kind, [])).paths.append(file)
    for group in of_kind.values():
        if group.kind is None or group.kind.is_series:
            yield group
        else:
            yield from (_Group(group.kind, [file]) for file in group.paths)


def kind_of(path: Path) -> Kind | None:
    """Returns the kind of a file; ``None`` for a table. Raises ``InputError`` for a file of an unknown kind."""
    return _kind(path, is_table=False)


def _kind_of_text(begin: str) -> Kind | None:
    return next((kind for kind in KINDS if kind.matches(begin)), None)


def _kind(path: Path, is_table: bool) -> Kind | None:
    begin = head(path)
    if is_table or begin == "PAR1":
        return None
    if (kind := _kind_of_text(begin)) is not None:
        return kind
    if "," in begin.partition("\n")[0]:
        return None
    titles = "; ".join(kind.title for kind in RATES)
    raise InputError(
        f"{path}: unknown kind of file; allowed: {titles}; vmstat, fio and others of docs/judge.md; CSV or Parquet "
        "with --columns"
    )
