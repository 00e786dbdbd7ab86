"""Predictions compared with full simulations, on traces that the method was not fitted to: `predictor.py [SYSTEM...]`.

Traces recorded on a Cheetah 9LP, and real ones if there are any in $HEADSTACK_SHARED/traces, are predicted from their
environments and replayed at queue depths of 1 to 64. Prints, for each trace, system and depth, the mean absolute error
of the throughput (that of response times is its counterpart: their product is the depth), and the share of simulations
within the 90 % intervals; then the speedups over the first system.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import headstack as hs
from headstack.prediction.predictions import predict_all
from headstack.prediction.predictor import (
    Characterization,
    Environment,
    Prediction,
    characterization_of,
    load_environment,
)

SYSTEMS = (
    "cheetah-9lp",
    "cheetah-x15-36lp",
    "atlas-10k-iii-73",
    "savvio-10k4-600",
    "wd1200bb",
    "re4-2tb",
    "ultrastar-15k450",
    "compaq-raid0-7",
    "compaq-raid5-7",
    "md-raid5-8x2tb",
    "dc-s3700-400gb",
)
DEPTHS = (1, 4, 16, 64)
REQUESTS = 20_000
RECORDED = {
    **{
        name: {"depth": 4, "requests": 8000}
        for name in (
            "file-server",
            "web-server",
            "workstation",
            "oltp-8k",
            "database",
            "compaq-figure-2",
            "streaming-reads",
            "streaming-writes",
        )
    },
    "serverbench": {"time": "40s"},
    "neds-play": {"time": "8s"},
    "neds-record": {"time": "8s"},
    "neds-effects": {"time": "10s"},
    "neds-dual-stream": {"time": "10s"},
}
# Addresses at terabytes are folded, for the prediction as for the replay; other traces go to systems that are large
# enough.
REAL = {
    "cloudphysics": ("cloudphysics/cloudPhysicsIO.vscsi", []),
    "msr": ("msr/msr-cambridge1-sample.csv", []),
    "systor": ("systor17/systor17-traces-sample.csv", ["fold=8GiB"]),
    "loop-poisson": ("blktrace/loop0_poisson1500_8s.blktrace.bin", []),
    "disksim-ascii": ("disksim/ascii.trace", ["device=0"]),
    "mqsim-wsrch": ("mqsim/wsrch-small.trace", ["device=0", "fold=8GiB"]),
}
Held = tuple[str, str, int, float, Prediction]
"""Trace, system, depth, IOPS simulated, prediction."""


def traces(folder: Path) -> dict[str, hs.Trace]:
    """Returns recorded traces, and real ones if available."""
    found = {}
    for name, options in RECORDED.items():
        path = folder / f"{name}.parquet"
        hs.run(SYSTEMS[0], name, record=path, **options)
        found[name] = hs.Trace(path)
    shared = Path(os.environ.get("HEADSTACK_SHARED", "../shared")) / "traces"
    for name, (file, steps) in REAL.items():
        if (shared / file).is_file():
            found[name] = hs.Trace(shared / file, steps=steps)
        else:
            print(f"skipped: no {shared / file}")
    return found


def held(name: str, trace: hs.Trace, environment: Environment, systems: list[Characterization]) -> list[Held]:
    """Compares one trace on all systems."""
    rows = []
    span_bytes = trace.info()["summary"]["total"]["highest_end_byte"]
    for system in systems:
        if span_bytes > system.capacity_bytes:
            print(f"{system.system} does not hold {name}")
            continue
        replays = hs.replay(trace, system.system, "asap", depth=DEPTHS, requests=REQUESTS)
        for row in replays:
            try:
                prediction = predict_all([environment.at_depth(row["depth"])], [system])[0]
            except hs.InputError as refused:
                print(f"refused: {refused}")
                break
            rows.append((name, system.system, row["depth"], row["iops"], prediction))
    return rows


def show(title: str, groups: dict[object, list[Held]]) -> None:
    """Prints a line for each group: mean absolute error, bias, coverage."""
    print(f"\n{title:22}   runs   MAE %  bias %  within %")
    for name, rows in groups.items():
        errors = [prediction.iops / iops - 1 for *_, iops, prediction in rows]
        within = [prediction.iops_low <= iops <= prediction.iops_high for *_, iops, prediction in rows]
        mean = 100 * sum(map(abs, errors)) / len(rows)
        bias = 100 * sum(errors) / len(rows)
        print(f"{name!s:22} {len(rows):6} {mean:7.1f} {bias:+7.1f} {100 * sum(within) / len(rows):9.0f}")


def by(rows: list[Held], column: int) -> dict[object, list[Held]]:
    """Returns the rows in groups."""
    groups = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups


def show_gains(rows: list[Held]) -> None:
    """Prints speedups over the first system: how many have the right sign, and their errors, as logarithms."""
    first = {(name, depth): (iops, p.iops) for name, system, depth, iops, p in rows if system == rows[0][1]}
    gains = [
        (math.log(iops / first[name, depth][0]), math.log(p.iops / first[name, depth][1]))
        for name, system, depth, iops, p in rows
        if system != rows[0][1] and (name, depth) in first
    ]
    clear = [(there, told) for there, told in gains if abs(there) > 0.05]
    right = sum(there * told > 0 for there, told in clear)
    off = sum(abs(there - told) for there, told in gains) / len(gains)
    print(
        f"\ngains: {right} of {len(clear)} above 5 % have the right sign; ratios are {100 * off:.1f} % off in the mean"
    )


def main() -> None:
    names = sys.argv[1:] or SYSTEMS
    systems = [characterization_of(name) for name in names]
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            row
            for name, trace in traces(Path(folder)).items()
            for row in held(name, trace, load_environment(trace), systems)
        ]
    show("trace", by(rows, 0))
    show("system", by(rows, 1))
    show("depth", by(rows, 2))
    show("all", {"": rows})
    show_gains(rows)


if __name__ == "__main__":
    main()
