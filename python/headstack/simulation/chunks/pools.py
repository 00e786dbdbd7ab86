"""Creates executors by name: threads of this process, or a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from headstack._native import InputError
from headstack.simulation.chunks import cluster
from headstack.simulation.chunks.executors import Pool, _Local


@contextmanager
def opened(executor: str) -> Iterator[Pool]:
    """Opens the executor ``local``, or ``dask://HOST:PORT``, the scheduler of a cluster.

    Raises ``InputError`` if there is none, or its workers run another build than this process.
    """
    if executor == "local":
        width = (os.cpu_count() or 1) + 1
        with ThreadPoolExecutor(width) as threads:
            yield _Local(threads, width)
    elif executor.startswith("dask://"):
        with cluster.connected(executor) as pool:
            yield pool
    else:
        raise InputError(f"{executor!r} is unknown; allowed: local, dask://HOST:PORT", key="executor")
