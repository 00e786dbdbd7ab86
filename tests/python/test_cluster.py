"""Chunks on a Dask cluster: the same bytes, whatever dies meanwhile."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import slow
from headstack.simulation.chunks import chunk as chunk_module
from headstack.simulation.chunks.chunked import run_chunks
from headstack.simulation.runs import specify
from headstack.traces import analyzing

distributed: Any = pytest.importorskip("distributed", reason="needs the extra headstack[cluster]")

# A worker as `dask worker` is one, but that what it carries out can be replaced.
WORKER = """
import asyncio, json, os, signal, sys
from distributed import Worker
from headstack.simulation.chunks import chunk, work
{patch}
async def serve():
    async with Worker(sys.argv[1], nthreads=1, death_timeout=60) as worker:
        await worker.finished()
asyncio.run(serve())
"""

SCHEDULER = """
import asyncio
from distributed import Scheduler
async def serve():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(serve())
"""

# Dies of every chunk that holds a run with the seed 13.
POISONED = """
clean = work.answer
def answer(contents, progress=None):
    if any(run["seed"] == 13 for content in contents for run in json.loads(content)["runs"]):
        os.kill(os.getpid(), signal.SIGKILL)
    return clean(contents, progress)
work.answer = answer
"""


class Processes:
    """A scheduler and workers that end with the test."""

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[str]] = []
        scheduler = self._start(SCHEDULER, stdout=subprocess.PIPE)
        assert scheduler.stdout is not None
        self.address = scheduler.stdout.readline().strip()
        self.executor = self.address.replace("tcp://", "dask://")

    def worker(self, patch: str = "") -> subprocess.Popen[str]:
        return self._start(WORKER.replace("{patch}", patch), self.address)

    def _start(self, program: str, *arguments: str, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        environment = os.environ | {"RAYON_NUM_THREADS": "1", "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._all.append(process)
        return process

    def until_there_are(self, workers: int) -> None:
        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=100)

    def end(self) -> None:
        for process in reversed(self._all):
            process.kill()
            process.wait()


@pytest.fixture
def processes() -> Iterator[Processes]:
    started = Processes()
    yield started
    started.end()


def files(store: Path) -> dict[str, bytes]:
    """What is finished: a worker that was killed may leave a draft, whose name begins with a dot."""
    return {path.name: path.read_bytes() for path in store.rglob("*.parquet") if not path.name.startswith(".")}


@slow("starts a cluster of its own; test_sweeps_are_the_same_bytes represents it")
def test_the_same_bytes_though_a_worker_is_killed(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_module, "CHUNK_S", 0.05)
    specs = specify("cheetah-x15-36lp", "file-server", {"depth": [4, 16], "requests": 40_000, "seed": list(range(30))})
    local = run_chunks(specs, store=tmp_path / "local")
    victim = processes.worker()
    processes.worker()
    processes.until_there_are(2)
    at_death: dict[str, bytes] = {}

    def kill() -> None:
        while len(files(tmp_path / "dask")) < 3:
            time.sleep(0.01)
        at_death.update(files(tmp_path / "dask"))
        victim.send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    remote = run_chunks(specs, store=tmp_path / "dask", executor=processes.executor)
    killer.join()
    assert len(at_death) < len(files(tmp_path / "dask")), "it was killed too late"
    assert at_death.items() <= files(tmp_path / "dask").items()
    assert files(tmp_path / "dask") == files(tmp_path / "local")
    assert remote.to_json() == local.to_json()


def test_sweeps_are_the_same_bytes(tmp_path: Path, processes: Processes) -> None:
    processes.worker()
    processes.until_there_are(1)
    (tmp_path / "mine.toml").write_text('base = "compaq-raid5-7"\nname = "mine"\n')
    vary = {"drives[0].count": "3..7", "depth": "1,8", "requests": "300"}
    written = []
    for executor in ("local", processes.executor):
        found = hs.sweep(
            tmp_path / "mine.toml",
            "file-server",
            vary=vary,
            sample="random",
            points=20,
            store=tmp_path / executor.partition(":")[0],
            executor=executor,
        )
        found.to_parquet(tmp_path / "out.parquet")
        written.append((tmp_path / "out.parquet").read_bytes())
    assert written[0] == written[1]


@slow("starts a cluster of its own; test_sweeps_are_the_same_bytes represents it")
def test_a_run_that_kills_workers_is_named(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_module, "CHUNK_S", 0.01)
    specs = specify(
        "cheetah-x15-36lp", "file-server", {"requests": 2000, "seed": list(range(10, 20)), "policy": "look"}
    )
    running = True

    def nurse() -> None:
        workers = [processes.worker(POISONED) for _ in range(2)]
        while running:
            workers = [worker if worker.poll() is None else processes.worker(POISONED) for worker in workers]
            time.sleep(0.05)

    nanny = threading.Thread(target=nurse)
    nanny.start()
    try:
        processes.until_there_are(2)
        with pytest.raises(hs.RunError, match=r"^run 4 \(cheetah-x15-36lp, policy look\): killed every worker"):
            run_chunks(specs, store=tmp_path, executor=processes.executor)
    finally:
        running = False
        nanny.join()
    # All but the chunk of that run: what was on a worker that died of it is done again.
    assert len(files(tmp_path)) == len(list(chunk_module.chunks_of_runs(specs))) - 1


@slow("starts a cluster of its own; test_sweeps_are_the_same_bytes represents it")
def test_workers_of_another_build_are_refused(tmp_path: Path, processes: Processes) -> None:
    processes.worker(
        'chunk.engine = lambda: "0.0.0-old"\nimport headstack.simulation.chunks.cluster as c\nc.engine = chunk.engine'
    )
    processes.until_there_are(1)
    refused(tmp_path, processes.executor, r"^executor: worker tcp://\S+ has headstack \S+, where \S+ is needed$")


def test_a_cluster_that_is_not_there_is_refused(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(tmp_path, processes.executor, rf"^executor: {re.escape(processes.executor)} has no workers; start one")
    monkeypatch.setattr("headstack.simulation.chunks.cluster.CONNECT_S", 1)
    refused(tmp_path, "dask://127.0.0.1:9", r"^executor: no scheduler answers at dask://127\.0\.0\.1:9$")


@slow("starts a cluster of its own; test_sweeps_are_the_same_bytes represents it")
def test_an_analysis_in_parts_gives_the_same_bytes(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyzing, "PART_REQUESTS", 1)
    for number in range(3):
        path = tmp_path / f"{number}.parquet"
        hs.run("cheetah-x15-36lp", "file-server", requests=900, warm_up=0, seed=number, record=path)
    trace = hs.Trace(*(tmp_path / f"{number}.parquet" for number in range(3)))
    for _ in range(2):
        processes.worker()
    processes.until_there_are(2)
    parted = trace.analyze(store=tmp_path / "dask", executor=processes.executor)
    assert parted.to_json() == trace.analyze().to_json()
    assert parted.to_json() == trace.analyze(store=tmp_path / "local").to_json()


def refused(store: Path, executor: str, message: str) -> None:
    specs = specify("cheetah-x15-36lp", None, {"requests": 10})
    with pytest.raises(hs.InputError, match=message):
        run_chunks(specs, store=store, executor=executor)


@slow("starts a cluster of its own; test_sweeps_are_the_same_bytes represents it")
def test_choices_are_the_same(tmp_path: Path, processes: Processes) -> None:
    processes.worker()
    processes.until_there_are(1)
    job = {"rates": [100], "limits": ["p99=80ms"], "capacity": "10TB", "survive": 1, "requests": 4000, "drives": (3, 4)}
    space = {"among": ["exos-x16-16tb"], "hosts": ["md-raid6-12x16tb"], "on": "2019-07"}
    found = [
        hs.choose("file-server", **job, **space, store=tmp_path / executor.partition(":")[0], executor=executor)
        for executor in ("local", processes.executor)
    ]
    assert found[0].best is not None
    assert found[0] == found[1]
    assert files(tmp_path / "local") == files(tmp_path / "dask")
