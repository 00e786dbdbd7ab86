"""How often the cause of a slow disk is identified: `judging_causes.py [--chosen] [--keep FOLDER] [DRIVE…]`.

`--healthy` only makes the tables of healthy disks for `judging_fleet.py`, which takes a minute per drive.

Hosts have five simulated disks of one model, of which one has a known fault from the fourth hour on; it is compared
with the other four. The method was tuned on the drives of `CHOSEN` (`--chosen` shows them); the drives of `HELD` and
their seeds were not used before.
"""

from __future__ import annotations

import random
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import polars as pl
from judging_runs import ILLS, Runs, load

from headstack.diagnosis.judging.judge import judge
from headstack.diagnosis.judging.observations import Observations
from headstack.diagnosis.judging.steps import STEP_S

CHOSEN = ("exos-x16-16tb", "pm883-480gb", "exos-7e8-8tb", "wd1200bb", "dc-s4500-960gb")
HELD = ("exos-10e2400", "spinpoint-f1-1tb")
HEALTHY, SLOW = 13, 48
PEERS = 4


def table(drive: str, kept: Path | None, is_healthy: bool) -> pl.DataFrame:
    """Returns hosts of a drive, one for each fault: `host` is the fault, disk `x` has it."""
    path = kept / f"{'healthy' if is_healthy else 'causes'}-{drive}.parquet" if kept else None
    if path and path.is_file():
        return pl.read_parquet(path)
    runs, draw = Runs(drive), random.Random(f"causes {drive}")
    loads = [load(draw) for _ in range(HEALTHY + SLOW)]
    of_peers = [
        runs.quarter("", str(disk), step, at, "healthy", 1000 * disk + step + 1)
        for step, at in enumerate(loads)
        for disk in range(PEERS)
    ]
    before = [runs.quarter("", "x", step, at, "healthy", 9000 + step) for step, at in enumerate(loads[:HEALTHY])]
    found = []
    for name, ill in ILLS.items():
        if ill.spinning not in (None, runs.spinning) or (is_healthy and name != "healthy"):
            continue
        sick = [runs.quarter("", "x", step, at, name, 9000 + step) for step, at in enumerate(loads) if step >= HEALTHY]
        found.append(pl.concat(of_peers + before + sick).with_columns(host=pl.lit(name)))
    whole = pl.concat(found)
    if path:
        whole.write_parquet(path)
    return whole


def main() -> int:
    asked = sys.argv[1:]
    kept = Path(asked.pop(asked.index("--keep") + 1)) if "--keep" in asked else None
    named = tuple(name for name in asked if not name.startswith("--"))
    drives = named or (CHOSEN if "--chosen" in asked else HELD)
    is_healthy = "--healthy" in asked
    if is_healthy and kept is None:
        raise SystemExit("--healthy: needs --keep FOLDER")
    with ProcessPoolExecutor(1) as pool:
        tables = list(pool.map(table, drives, [kept] * len(drives), [is_healthy] * len(drives)))
    right = told = faults = 0
    for drive, frame in zip(drives, tables, strict=True):
        # Repeat the half day in which it is slow, so that intermittent slowness has time to show.
        begin_s = HEALTHY * STEP_S
        again = frame.filter(pl.col("start_s") >= begin_s).with_columns(pl.col("start_s") + SLOW * STEP_S)
        verdicts = judge(Observations(pl.concat([frame, again]), "simulated"), peers="host").verdicts
        for verdict in verdicts:
            if verdict.disk != "x":
                if verdict.kind == "slow":
                    print(f"{drive:18} {verdict.host:20} FALSE ALARM of a healthy peer: {verdict.why}")
                continue
            cause = ILLS[verdict.host].cause
            if cause == "healthy":
                if verdict.kind == "slow":
                    print(f"{drive:18} {verdict.host:20} FALSE ALARM: {verdict.why}")
                continue
            faults += 1
            named = verdict.cause.name if verdict.cause else "-"
            shown = "" if verdict.slower is None else f"{verdict.slower.factor:5.2f}"
            told += verdict.kind == "slow"
            right += verdict.kind == "slow" and named == cause
            runner_up = verdict.cause.runner_up if verdict.cause else "-"
            print(f"{drive:18} {verdict.host:20} {verdict.kind:12} {shown:6} {named:20} (or {runner_up})")
    print(f"\n{faults} faults, {told} found, cause right in {right} of {told} found: {right / max(told, 1):.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
