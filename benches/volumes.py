"""A trace of many volumes: split in one pass, compared with polars' partitioned write, and analysed in parts, compared
with one pass.

`python benches/volumes.py [REQUESTS [DEVICES]]` makes the trace in a temporary folder and prints for each step seconds
of processor time (all threads and the kernel), which are comparable on a loaded machine, and seconds of wall-clock
time. polars is part of the extra `dev`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

import headstack as hs

COLUMNS = ["device", "op", "offset", "length", "at"]


def made(path: Path, requests: int, devices: int) -> None:
    """Makes requests to devices of which some are busy and many are not, each with 4 MiB that it revisits."""
    row = pl.int_range(requests, eager=False, dtype=pl.UInt64)

    def draw(seed: int) -> pl.Expr:
        return row.hash(seed).cast(pl.Float64) / 2.0**64

    frame = pl.select(
        (devices * draw(1) ** 2).cast(pl.Int64).alias("device"),
        pl.when(draw(2) < 0.3).then(pl.lit("R")).otherwise(pl.lit("W")).alias("op"),
        ((1 << 10) * draw(3) ** 4).cast(pl.Int64).mul(4096).alias("offset"),
        pl.lit(4096).mul(2 ** (draw(4) * 4).cast(pl.Int64)).alias("length"),
        (1_577_808_000_000_000 + row * 100).alias("at"),
    )
    frame.write_csv(path, include_header=False)


def timed(what: str, work: Callable[[], object]) -> float:
    """Prints the time of a step, and returns its processor time."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    took = time.process_time() - processor
    print(f"{what:50} {took:8.2f} s of the processor {time.perf_counter() - clock:8.2f} s", flush=True)
    return took


def main(requests: int = 1_000_000, devices: int = 2_000) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        csv, stored = folder / "t.csv", folder / "t.parquet"
        made(csv, requests, devices)
        trace = hs.Trace(csv)

        def partitioned() -> None:
            shutil.rmtree(folder / "polars", ignore_errors=True)
            frame = pl.scan_csv(csv, has_header=False, new_columns=COLUMNS)
            place = pl.PartitionBy(folder / "polars", key="device")
            frame.sink_parquet(place, mkdir=True, compression="zstd", compression_level=1)

        print(f"{requests:,} requests to {devices:,} devices")
        one_pass = timed("one pass that reads (info)", trace.info)
        written = timed("one pass that reads and writes (import)", lambda: trace.to_parquet(stored))
        split = timed("split", lambda: trace.split(folder / "split"))
        peer = timed("polars, partitioned by device", partitioned)
        print(
            f"split over info {split / one_pass:.2f}, over import {split / written:.2f}, over polars {split / peer:.2f}"
        )
        again = hs.Trace(stored)
        whole = timed("analysis in one pass", lambda: again.analyze().to_json(folder / "one.json"))
        parts = timed("analysis in parts", lambda: again.analyze(store=folder / "store").to_json(folder / "parts.json"))
        same = (folder / "one.json").read_bytes() == (folder / "parts.json").read_bytes()
        print(f"parts over one pass {parts / whole:.2f}; the same bytes: {same}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
