"""`load_of`: the load of a run, reduced to the properties on which the errors of models depend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headstack import _native
from headstack.catalogue.options import Spec
from headstack.results.intervals.calibration import Load, Refusal

MOSTLY = 80.0
"""Minimum percentage of requests at which a workload counts as all reads, all writes or all random. A file server has
80 % reads, and disks of the catalogue were measured with such workloads."""
NEARLY_ALL = 95.0
"""Minimum percentage for twins, which were measured with only reads or only writes."""


def load_of(spec: Spec, row: Mapping[str, float | None], mostly: float = MOSTLY) -> Load | Refusal:
    """Returns the load of a run, from its specification and the row of its result, or a refusal if no device was
    measured with such a load. A workload with at least ``mostly`` percent reads (or writes) counts as all reads (or all
    writes).

    >>> from headstack.results.intervals.workloads import load_of
    >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=4, requests=300)
    >>> load = load_of(results.whole(0), results[0])
    >>> load.kind, load.depth
    ('read', 4)
    """
    if "replay" in spec:
        iops, mb_per_s = row["iops"], row["mb_per_s"]
        size_bytes = mb_per_s * 1e6 / iops if iops and mb_per_s is not None else 0.0
        return Load("replay", max(1, round(row["mean_depth"] or 0.0)), size_bytes)
    workload = spec.get("workload", {})
    if "lines" not in workload:
        return Refusal("measured devices ran single workloads, not scenarios or job files")
    closed = workload.get("arrivals", {"closed": {"queue_depth": 1}}).get("closed")
    if closed is None:
        return Refusal("devices were measured at a queue depth (closed loop), not at a rate")
    if closed.get("think", "none") != "none":
        return Refusal("devices were measured without think time")
    if workload.get("addresses", "uniform") != "uniform":
        return Refusal("devices were measured with uniform addresses, not skewed ones")
    lines = workload["lines"]

    def mean(values: list[float]) -> float:
        shares: list[float] = [line.get("share_percent", 100.0) for line in lines]
        return sum(share * value for share, value in zip(shares, values, strict=True)) / sum(shares)

    reads, at_random = mean([line["read_percent"] for line in lines]), mean([line["random_percent"] for line in lines])
    kind = kind_of(reads, at_random, mostly)
    if isinstance(kind, Refusal):
        return kind
    size_bytes = mean([float(_native.parse_bytes(line["size"])) for line in lines])
    return Load(kind, closed["queue_depth"], size_bytes)


def flash_state(load: Load, spec: Spec) -> str:
    """Returns the state of the SSD of a specification, if errors under a load depend on it (see ``Load.state``).

    >>> from headstack.results.intervals.calibration import Load
    >>> from headstack.results.intervals.workloads import flash_state
    >>> ssd = {"system": {"drive": {"ssd": {"state": "steady"}}}}
    >>> flash_state(Load("write", 8, 4096), ssd), flash_state(Load("read", 8, 4096), ssd)
    ('steady', '')
    """
    return state_of(load.kind, spec.get("system", {}).get("drive", {}))


def state_of(kind: str, drive: Mapping[str, Any]) -> str:
    """Returns the state of a described SSD, if errors under requests of a kind depend on it; empty for other drives."""
    state: str = drive.get("ssd", {}).get("state", "")
    return "" if kind in ("read", "sequential read") and state != "fresh" else state


def kind_of(read_percent: float, random_percent: float, mostly: float = MOSTLY) -> str | Refusal:
    """Returns the kind of a workload with these percentages of reads and of random requests.

    >>> from headstack.results.intervals.workloads import kind_of
    >>> kind_of(80, 100), kind_of(0, 0), kind_of(67, 100), kind_of(80, 100, mostly=95)
    ('read', 'sequential write', 'mix', 'mix')
    """
    if 100 - MOSTLY < random_percent < MOSTLY:
        return Refusal(
            f"devices were measured with random or sequential requests, not with {random_percent:.0f} % random"
        )
    kind = "read" if read_percent >= mostly else "write" if read_percent <= 100 - mostly else "mix"
    return kind if random_percent >= MOSTLY else f"sequential {kind}"
