"""The load of a run, as far as the errors of models depend on it."""

from __future__ import annotations

from collections.abc import Mapping

from headstack import _native
from headstack.catalogue.options import Spec
from headstack.results.intervals.calibration import Load, Refusal

MOSTLY = 80.0
"""Percent of the requests, from which on they are taken for all of a kind: a file server's reads are 80 %, and disks of
the catalogue were measured under such."""
NEARLY_ALL = 95.0
"""The same where what was measured were reads or writes alone, as with twins."""


def load_of(spec: Spec, row: Mapping[str, float | None], mostly: float = MOSTLY) -> Load | Refusal:
    """The load of a run, from its specification and the row of its result; a refusal of what no device was measured
    under. From ``mostly`` percent on, reads or writes are taken for all.

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
    closed = workload.get("arrivals", {"closed": {"outstanding": 1}}).get("closed")
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
    return Load(kind, closed["outstanding"], size_bytes)


def kind_of(read_percent: float, random_percent: float, mostly: float = MOSTLY) -> str | Refusal:
    """The kind of requests of which so many read and go to a random place.

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
