"""All tables that headstack writes, with their columns: the source of docs/columns.md."""

from __future__ import annotations

from dataclasses import dataclass

from headstack import _native
from headstack._native import Field
from headstack.comparison import compared as comparison
from headstack.comparison.differences import estimated as differences
from headstack.comparison.scoreboard import scored_devices
from headstack.measurement.fio import loads
from headstack.measurement.tests.classic.crystal import Crystal
from headstack.measurement.tests.classic.fsync import Fsync
from headstack.measurement.tests.classic.latency import Latency
from headstack.measurement.tests.classic.prefill import Prefill
from headstack.measurement.tests.classic.zones import Zones
from headstack.measurement.tests.conditioning import logged as conditioning
from headstack.measurement.tests.pts import outcomes as pts
from headstack.measurement.tests.settings.outcome import DeviceSettings
from headstack.prediction import predictions
from headstack.simulation import sweeps
from headstack.traces import cache_runs, replays, volumes

RESULT_TABLES = {
    "results": "A row per run: `--csv` and `--parquet` of runs, curves, replays and measurements. Columns of the "
    "options that were varied follow. Times and rates are those of all kinds of request together, in the measured "
    "time; intervals are those of 95 %.",
    "intervals": "A row per run and interval: `Results.intervals`.",
    "streams": "A row per run and stream of a scenario: `Results.streams`.",
    "operations": "A row per run and kind of operation on files and folders: `Results.operations`.",
    "facts": "A row per figure that streams keep of their own, such as frames dropped: `Results.facts`.",
    "histograms": "A row per run, kind of request, figure and bin in use: `Results.histograms`.",
}


@dataclass(frozen=True)
class Documented:
    """A table and its columns."""

    name: str
    text: str
    """Meaning of a row, and the options that write the table."""
    fields: tuple[Field, ...]


def tables() -> list[Documented]:
    """Returns all tables.

    >>> [field.unit for table in tables() for field in table.fields if field.name == "iops_low"]
    ['1/s']
    """
    return [
        *(Documented(name, RESULT_TABLES[name], tuple(fields)) for name, fields in _native.result_fields()),
        Documented(
            "sweep",
            "A row per configuration: first the varied parameters, each column named after its field and unit; then "
            "the columns of results, except those of the model's error (only printed configurations have them); then "
            "these.",
            sweeps.FIELDS,
        ),
        Documented("volumes", "A row per device of a trace: `headstack trace volumes --csv`.", volumes.FIELDS),
        Documented(
            "mapped",
            "A row per replay and volume: `Results.volumes`, `headstack trace replay --volumes`.",
            replays.FIELDS,
        ),
        Documented("predict", "A row per environment and system: `headstack lab predict --csv`.", predictions.FIELDS),
        Documented("caches", "A row per policy and size: `headstack trace cache --csv`.", cache_runs.FIELDS),
        Documented("compare", "A row per point: `headstack compare --csv`.", comparison.FIELDS),
        Documented(
            "scoreboard",
            "A row per device, load and figure: `headstack lab scoreboard --csv`.",
            scored_devices.FIELDS,
        ),
        Documented(
            "difference",
            "A row per figure and load: `headstack compare --csv` of sets of runs.",
            differences.FIELDS,
        ),
        Documented("plot", "A row per result of fio: `headstack compare plot --csv`.", loads.FIELDS),
        Documented("crystal", "A row per test and kind: `headstack measure crystal --csv`.", Crystal.fields),
        Documented("fsync", "A row per size: `headstack measure fsync --csv`.", Fsync.fields),
        Documented("latency", "A row per request that is kept: `headstack measure latency --csv`.", Latency.fields),
        Documented("prefill", "A row per hundredth of a LUN: `headstack measure prefill --csv`.", Prefill.fields),
        Documented("zones", "A row per position: `headstack measure zones --csv`.", Zones.fields),
        Documented("pts", "A row per measurement of each round: `headstack measure pts --csv`.", pts.FIELDS),
        Documented("settings", "A row per setting: `headstack measure settings --csv`.", DeviceSettings.fields),
        Documented(
            "condition",
            "A row per interval and device: `headstack measure condition --csv`. Columns that count the blocks of "
            "each class of times, `blocks <1.125ms` and so on, follow.",
            conditioning.FIELDS,
        ),
    ]
