"""The figures of sweeps: `python benches/sweep.py COMMAND ...`, a line of JSON each.

configurations N REQUESTS       seconds, processor seconds and peak memory of N drives under so many requests each
cluster N REQUESTS PAIRS        the same N here and on a Dask cluster of one worker with as many cores, and the extra
                                time; exits with 77 if dask.distributed is not installed
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import headstack as hs

VARY = {
    "seek.read_average": "3ms..5ms",
    "spindle.speed": "7200rpm..15000rpm",
    "queue.depth": "1..64:log",
    "buffer.size": "1MiB..16MiB",
    "depth": "16",
}

LACKING = 77

SCHEDULER = """
import asyncio, os
from distributed import Scheduler, Worker
async def serve():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        async with Worker(scheduler.address, nthreads=os.cpu_count() + 1):
            print(scheduler.address, flush=True)
            await scheduler.finished()
asyncio.run(serve())
"""


def carried_out(points: int, requests: int, executor: str = "local") -> dict[str, Any]:
    """Runs a sweep with an empty store, and returns its duration."""
    with tempfile.TemporaryDirectory() as folder:
        started, before = time.monotonic(), processor_s()
        swept = hs.sweep(
            "cheetah-x15-36lp",
            "file-server",
            vary=VARY | {"requests": str(requests)},
            sample="sobol",
            points=points,
            store=Path(folder, "store"),
            executor=executor,
        )
        swept.to_parquet(Path(folder, "out.parquet"))
        wall_s = time.monotonic() - started
        if swept.impossible or swept.failed:
            raise SystemExit(f"{swept.impossible} configurations are impossible: {swept.reasons()}")
        answer = hashlib.sha256(Path(folder, "out.parquet").read_bytes()).hexdigest()[:16]
        processor = processor_s() - before
        return {"configurations": len(swept), "seconds": wall_s, "processor_s": processor, "answer": answer}


def processor_s(process: int | str = "self") -> float:
    """Returns the processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def configurations(points: int, requests: int) -> dict[str, Any]:
    """Returns the figures of one local sweep."""
    found = carried_out(points, requests)
    return found | {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def cluster(points: int, requests: int, pairs: int) -> dict[str, Any]:
    """Alternates local sweeps and those on a cluster: the overhead is the median over the pairs, since the machine's
    speed drifts.
    """
    if importlib.util.find_spec("distributed") is None:
        print("dask.distributed is not installed", file=sys.stderr)
        sys.exit(LACKING)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    scheduler = subprocess.Popen(
        [sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        assert scheduler.stdout is not None
        name = scheduler.stdout.readline().strip().replace("tcp://", "dask://")
        here, there = [], []
        for _ in range(pairs):
            here.append(carried_out(points, requests))
            before_s = processor_s(scheduler.pid)
            told = carried_out(points, requests, name)
            there.append(told | {"processor_s": told["processor_s"] + processor_s(scheduler.pid) - before_s})
            if told["answer"] != here[-1]["answer"]:
                raise SystemExit("the cluster gives another answer")
    finally:
        scheduler.kill()
        scheduler.wait()
    price = {
        name: 100 * (median(c[figure] / h[figure] for h, c in zip(here, there, strict=True)) - 1)
        for name, figure in (("price_percent", "seconds"), ("price_processor_percent", "processor_s"))
    }
    return {"configurations": points, "here_seconds": median(told["seconds"] for told in here)} | price


if __name__ == "__main__":
    command, *numbers = sys.argv[1:]
    print(json.dumps({"configurations": configurations, "cluster": cluster}[command](*map(int, numbers))))
