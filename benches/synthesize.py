"""Similarity of synthetic traces to their originals: `synthesize.py FOLDER`, a table; FOLDER contains the sample
traces.

For each real trace with enough requests: a synthetic trace of the same length; the difference between its halves; a
synthetic trace ten times as long with twice the footprint, learned from the first half, and compared with both halves;
and a scenario.
"""

import sys
import tempfile
from pathlib import Path

import headstack as hs
from headstack.traces.synthesis import compare_traces, dispersion_of, misses_of, replays_of

TRACES = (
    "cloudphysics/cloudPhysicsIO.vscsi",
    "disksim/ascii.trace",
    "mqsim/wsrch-small.trace",
    "mqsim/tpcc-small.trace",
    "blktrace/loop0_poisson1500_8s.blktrace.bin",
    "blktrace/loop0_220k_zipf.blktrace.bin.xz",
)
OPEN = {"learnt_clients": None, "clients": None}
HEADS = ("trace", "requests", "misses, worst", "dispersion, worst", "mean, worst", "p99, worst")


def show(name: str, requests: int, card: dict) -> None:
    """Prints a line of the table."""
    misses = card["misses"]["max_error"]
    dispersion = max((abs(row["twin"] / row["trace"] - 1) for row in card["dispersion"]), default=0.0)
    worst = [
        max((abs(row[f"twin_{figure}_ms"] / row[f"trace_{figure}_ms"] - 1) for row in card["replays"]), default=0.0)
        for figure in ("mean", "p99")
    ]
    shares = "".join(f"{share:>18.1%}" for share in (dispersion, *worst))
    print(f"{name:<34}{requests:>18,}{misses:>18.4f}{shares}", flush=True)
    every = [
        f"{row['system']} mean {row['trace_mean_ms']:.4g} {row['twin_mean_ms']:.4g}, "
        f"p99 {row['trace_p99_ms']:.4g} {row['twin_p99_ms']:.4g}"
        for row in card["replays"]
    ]
    print("    " + "; ".join(every))
    print(
        "    "
        + ", ".join(f"{row['bin_ns'] / 1e9:g} s {row['twin'] / row['trace'] - 1:+.1%}" for row in card["dispersion"])
    )


def second_of(whole: Path, first: Path) -> hs.Trace:
    """Returns the requests after the first half."""
    ended_ns = hs.Trace(first).analyze(reuse=None).report["duration_ns"]
    return hs.Trace(whole, steps=[f"time={ended_ns + 1}ns-"])


def main(folder: Path, chosen: list[str]) -> None:
    """Prints the table."""
    print("".join(f"{head:>18}" if place else f"{head:<34}" for place, head in enumerate(HEADS)))
    with tempfile.TemporaryDirectory() as room:
        for name in TRACES:
            if chosen and not any(part in name for part in chosen):
                continue
            whole, path = Path(room) / "trace.parquet", Path(room) / "twin.parquet"
            requests = hs.Trace(folder / name).to_parquet(whole)["requests"]
            found = hs.synthesize(whole, path)
            show(Path(name).name, requests, found.scorecard)
            first = Path(room) / "first.parquet"
            half = hs.Trace(whole).with_steps(f"first={requests // 2}")
            learnt = half.to_parquet(first)["requests"]
            show("  its halves", learnt, compare_traces(hs.Trace(first), second_of(whole, first), OPEN, 1.0))
            made = hs.synthesize(first, path, length="10x", footprint="2x", scorecard=False).made
            second = second_of(whole, first)
            show("  10x on 2x, own half", learnt, compare_traces(hs.Trace(first), hs.Trace(path), made, 2.0))
            rest, like = second.analyze(), hs.Trace(path).analyze()
            card = {
                "misses": misses_of(rest, like, 2.0),
                "dispersion": dispersion_of(rest, like),
                "replays": replays_of(second, hs.Trace(path), rest, made),
            }
            show("  10x on 2x, other half", rest.report["requests"], card)
            endless = hs.synthesize_scenario(whole, Path(room) / "scenario.toml")
            show("  as a scenario", endless.made["requests"], endless.scorecard)


main(Path(sys.argv[1]), sys.argv[2:])
