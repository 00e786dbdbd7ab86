"""Other importers of a CSV in MSR's format: `peers.py duckdb|polars FROM.csv TO.parquet` prints seconds and rows.

The start of Python and the import of the library are excluded. `peers.py polars-read FILE SEPARATOR` reads a file
without header into memory, on one core if POLARS_MAX_THREADS=1, and prints seconds of processor time and rows: the
counterpart of `crates/trace/benches/reading.rs`. Exits with 77 if the library is not installed.
"""

import sys
import time


def with_duckdb(source: str, target: str) -> tuple[float, int]:
    import duckdb

    columns = (
        "{'timestamp': 'BIGINT', 'host': 'VARCHAR', 'disk': 'INTEGER', 'type': 'VARCHAR', "
        "'offset': 'BIGINT', 'size': 'INTEGER', 'response': 'BIGINT'}"
    )
    start = time.perf_counter()
    duckdb.sql(
        f"COPY (SELECT * FROM read_csv('{source}', header=false, columns={columns})) "
        f"TO '{target}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
    )
    seconds = time.perf_counter() - start
    return seconds, duckdb.sql(f"SELECT count(*) FROM '{target}'").fetchall()[0][0]


def with_polars(source: str, target: str) -> tuple[float, int]:
    import polars as pl

    columns = ["timestamp", "host", "disk", "type", "offset", "size", "response"]
    start = time.perf_counter()
    frame = pl.scan_csv(source, has_header=False, new_columns=columns)
    frame.sink_parquet(target, compression="zstd", compression_level=1)
    seconds = time.perf_counter() - start
    return seconds, pl.scan_parquet(target).select(pl.len()).collect().item()


def with_polars_read(source: str, separator: str) -> tuple[float, int]:
    import polars as pl

    start = time.process_time()
    frame = pl.read_csv(source, has_header=False, separator=separator)
    return time.process_time() - start, frame.height


peer, source, target = sys.argv[1:]
try:
    print(*{"duckdb": with_duckdb, "polars": with_polars, "polars-read": with_polars_read}[peer](source, target))
except ModuleNotFoundError as error:
    print(f"{error.name} is not installed", file=sys.stderr)
    sys.exit(77)
