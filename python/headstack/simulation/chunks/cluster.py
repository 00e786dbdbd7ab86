"""The workers of a Dask cluster, which get chunks as bytes, return tables as bytes, and need no shared folder.

A worker computes on all cores of its machine, independently of its number of threads: with one more thread than cores
(``--nthreads 3`` on two), as in the local pool, no core idles while an answer is written.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

from headstack._native import InputError, RunError
from headstack.simulation.chunks.chunk import engine
from headstack.simulation.chunks.executors import Answer, ProgressCallback
from headstack.simulation.chunks.work import answer

CONNECT_S = 10
LOOK_S = 5.0
"""Interval in seconds at which the scheduler is queried for its workers; a query costs it as much as a task."""

LONELY_S = 60.0
"""Seconds to wait for a worker after all have gone: a nanny needs some seconds to start another."""


class Cluster:
    """A scheduler and its workers."""

    def __init__(self, distributed: Any, client: Any, name: str) -> None:
        self._distributed, self._client, self._name = distributed, client, name
        # Two tasks per thread: one waits at the worker while the other is computed.
        self.width = 2 * max(1, sum(client.nthreads().values()))
        self._seen_s = self._looked_s = time.monotonic()

    def submit(self, contents: list[bytes], on_progress: ProgressCallback) -> Answer:
        """Starts a task, whose progress is unknown until it ends."""
        begun = self._client.submit(answer, contents, pure=False)
        future: Answer = Future()
        begun.add_done_callback(partial(_pass_on, future))
        # The cluster drops futures without references.
        future.begun = begun  # type: ignore[attr-defined]
        return future

    def has_died(self, error: BaseException) -> bool:
        """Whether as many workers died of the task as the scheduler allows."""
        return isinstance(error, self._distributed.KilledWorker)

    def look(self) -> None:
        """Raises ``RunError`` if there has been no worker for a minute, or no scheduler."""
        now = time.monotonic()
        if now - self._looked_s < LOOK_S:
            return
        self._looked_s = now
        if self._client.status in ("closed", "closing"):
            raise RunError(f"{self._name}: the scheduler is gone; finished chunks are kept")
        if self._client.scheduler_info(n_workers=-1)["workers"]:
            self._seen_s = now
        elif now - self._seen_s > LONELY_S:
            raise RunError(f"{self._name}: no worker is left; finished chunks are kept")


def _pass_on(future: Answer, begun: Any) -> None:
    if begun.status == "finished":
        future.set_result(begun.result())
    elif begun.status == "error":
        future.set_exception(begun.exception())
    else:
        future.set_exception(RunError("the cluster gave up a task; finished chunks are kept"))


@contextmanager
def connected(name: str) -> Iterator[Cluster]:
    """Connects to the cluster ``dask://HOST:PORT``. Raises as ``client_of``."""
    with client_of(name) as (distributed, client):
        yield Cluster(distributed, client, name)


@contextmanager
def client_of(name: str) -> Iterator[tuple[Any, Any]]:
    """Yields the module ``distributed`` and a client of the cluster ``dask://HOST:PORT``.

    Raises ``InputError`` if there is no scheduler, it has no worker, or a worker runs another build than this process.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise InputError(f"{name} needs the extra headstack[cluster]", key="executor") from None
    # Failures of workers are reported by us, in one line.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(
            f"tcp://{name.removeprefix('dask://')}", timeout=CONNECT_S, set_as_default=False, heartbeat_interval=1000
        )
    except (OSError, ValueError):
        raise InputError(f"no scheduler answers at {name}", key="executor") from None
    with client:
        try:
            builds = client.run(engine)
        except Exception as error:
            raise InputError(f"a worker of {name} has no headstack of this build: {error}", key="executor") from None
        if not builds:
            raise InputError(f"{name} has no workers; start one with `dask worker HOST:PORT`", key="executor")
        others = {worker: build for worker, build in builds.items() if build != engine()}
        for worker, build in others.items():
            more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
            raise InputError(f"worker {worker}{more} has headstack {build}, where {engine()} is needed", key="executor")
        yield distributed, client
