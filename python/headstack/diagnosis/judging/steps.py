"""``Step``: aggregates intervals over quarters of an hour, so that intervals with few requests matter little.

A step is judged when an interval of a later step arrives; until then its rows wait, so that a log in two halves gives
the same steps as in one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from headstack.diagnosis.judging.observations import SCHEMA

STEP_S = 900.0
"""Length of a step in seconds: long enough that response times of consecutive steps are nearly independent, short
enough that eight of them are the two hours in which a disk at half its speed is to be detected."""
REQUESTS_MIN = 30.0
"""Minimum requests of a kind in a step; the mean of fewer says little."""
TOO_SHORT = "no 15-minute interval has 30 completed requests of a kind"
"""The reason why a disk without steps is undecided. The last quarter of an hour is judged when later data arrive."""
STREAMS = ("read", "write", "all")
"""Streams judged separately: reads and writes, if a source separates them, or all requests."""
FEATURES = ("rate", "size", "share", "depth")
"""Variables that determine latency: the logarithms of requests per second (or bytes if requests are not counted), of
the mean size and of the queue depth while the disk is busy, and the share of reads. 0 if unknown."""

Array = npt.NDArray[np.float64]


class Step(NamedTuple):
    """A step of all disks. Arrays are over disks and ``STREAMS``; missing values are NaN."""

    number: int
    """Steps since 1970."""
    log_latency: Array
    """The mean of its intervals' logarithms, weighted by their requests: a single interval with 1000 times the latency
    has little weight.
    """
    spread: Array
    """Its distance from the fastest 10 % of intervals; NaN with less than ten."""
    features: Array
    """Over disks, streams and ``FEATURES``."""

    @property
    def start_s(self) -> float:
        return self.number * STEP_S


def split(frame: pl.DataFrame, waiting: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Splits rows into complete steps, and the last one, which may continue."""
    rows = pl.concat([waiting, frame]).sort("start_s", "host", "disk", maintain_order=True)
    if rows.is_empty():
        return rows, rows
    last = (pl.col("start_s") / STEP_S).floor() == math.floor(rows["start_s"][-1] / STEP_S)
    return rows.filter(~last), rows.filter(last)


def steps_of(rows: pl.DataFrame, places: dict[tuple[str, str], int]) -> list[Step]:
    """Returns the steps of rows in order of time; ``places`` maps disks to indexes. A step in which all disks were idle
    counts as well: silence is not health."""
    if rows.is_empty():
        return []
    of = pl.col
    keyed = rows.with_columns(step=(of("start_s") / STEP_S).floor().cast(pl.Int64))
    tables = [_of_stream(keyed, number, stream) for number, stream in enumerate(STREAMS)]
    shape = (len(places), len(STREAMS))
    steps = {
        step: Step(step, np.full(shape, math.nan), np.full(shape, math.nan), np.full((*shape, len(FEATURES)), math.nan))
        for step in keyed["step"].unique().sort().to_list()
    }
    for number, table in enumerate(tables):
        for (step,), part in table.partition_by("step", as_dict=True, maintain_order=True).items():
            disks = [places[key] for key in zip(part["host"], part["disk"], strict=True)]
            steps[step].log_latency[disks, number] = part["log_latency"].to_numpy()
            steps[step].spread[disks, number] = part["spread"].to_numpy()
            steps[step].features[disks, number] = part.select(FEATURES).to_numpy()
    return list(steps.values())


def _of_stream(rows: pl.DataFrame, number: int, stream: str) -> pl.DataFrame:
    of = pl.col
    count, size, latency = (
        (of("requests"), of("bytes"), of("latency_s"))
        if stream == "all"
        else (of(f"{stream}s"), of(f"{stream}_bytes"), of(f"{stream}_latency_s"))
    )
    load = pl.coalesce(of("requests"), of("bytes"))
    per_disk = (
        rows.filter(latency > 0)
        .with_columns(weight=pl.coalesce(count, pl.lit(1.0)), logarithm=latency.log())
        .filter(of("weight") > 0)
        .group_by("step", "host", "disk", maintain_order=True)
        .agg(
            log_latency=(of("weight") * of("logarithm")).sum() / of("weight").sum(),
            best=of("logarithm").quantile(0.1),
            intervals=pl.len(),
            counted=count.sum(),
            is_counted=count.is_not_null().all(),
            rate=(load.sum() / of("length_s").sum()).log(),
            size=(size.sum() / count.sum()).log(),
            share=of("reads").sum() / of("requests").sum(),
            depth=((of("in_flight") / of("busy")).log() * of("weight")).sum() / of("weight").sum(),
        )
        .filter(~of("is_counted") | (of("counted") >= REQUESTS_MIN))
        .with_columns(
            spread=pl.when(of("intervals") >= 10).then(of("log_latency") - of("best")).otherwise(math.nan),
        )
    )
    features = [pl.when(of(name).is_finite()).then(of(name)).otherwise(0.0).fill_null(0.0) for name in FEATURES]
    return per_disk.with_columns(features).select("step", "host", "disk", "log_latency", "spread", *FEATURES)


def plain_rows(rows: pl.DataFrame) -> dict[str, list[Any]]:
    """Returns waiting rows as plain data."""
    return rows.to_dict(as_series=False)


def rows_of(plain: dict[str, list[Any]] | None) -> pl.DataFrame:
    """Returns rows from plain data."""
    return pl.DataFrame(plain, schema=SCHEMA) if plain else pl.DataFrame(schema=SCHEMA)
