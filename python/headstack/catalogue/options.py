"""Parameters that can be varied between runs: one table of ``Option`` for the Python API and the command line.

A value is text; the compiled part applies it to a completed description (``applied``). A list of values is swept: the
runs are the product of all lists, systems outermost, then the options in the order of ``OPTIONS``; the last varies
fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstack import _native
from headstack._native import InputError

Spec = dict[str, Any]
"""One run: ``system_name``, ``system``, ``workload`` or ``scenario``, ``span``, ``seed``, and optional keys."""


@dataclass(frozen=True)
class Option:
    """A parameter that can be varied."""

    name: str
    """The keyword in Python; on the command line with dashes."""
    metavar: str
    help: str
    group: str
    """The heading in the command line's help."""
    values: Callable[[], Sequence[str]] = tuple
    """Words for shell completion if the value is one of a list, or starts with one."""


_DRAFT = {
    *("system_name", "system", "target", "workload", "scenario"),
    *("clients", "span", "seed", "interval_ns", "preload"),
}
"""Keys of a specification that options read and change, and that the compiled part gets."""


def applied(spec: Spec, chosen: Mapping[str, str]) -> Spec:
    """Returns the run with these options applied in order. Raises ``InputError`` with the option's name."""
    if not chosen:
        return spec
    draft = {key: spec[key] for key in _DRAFT if key in spec}
    passed = [(name, text) for name, text in chosen.items() if name not in SYNCS]
    changed: Spec = spec | _native.with_options(draft, passed)
    syncs = {key: _writes_per_sync(name, chosen[name]) for name, key in SYNCS.items() if name in chosen}
    if syncs:
        changed["workload"] = changed["workload"] | syncs
    return changed


def _writes_per_sync(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{text} is not a number of writes; use 1 or more, for example 1", key=name)
    return int(text)


SYNCS = {"fsync": "sync_every", "dsync": "dsync_every"}
"""The options that make writes of a workload durable, and their keys in it."""

_POLICIES = ", ".join(_native.POLICIES)

# Size, read and random define the workload before anything is applied to it.
ACCESS = ("size", "read", "random")


# Options that a scenario states for each of its streams.
STATED = (*ACCESS, *SYNCS, "streams", "rate", "arrivals", "think", "confidence")


# These options define the system before anything is applied to it.
CHANGES = ("drives", "drive", "level", "usable")


OPTIONS: tuple[Option, ...] = (
    Option("size", "SIZE", "Request size, for example 4KiB.", "Workload"),
    Option("read", "PERCENT", "Percentage of reads, 0 to 100; the rest are writes.", "Workload"),
    Option(
        "random",
        "PERCENT",
        "Percentage of random requests, 0 to 100; the rest are sequential.",
        "Workload",
    ),
    Option("fsync", "N", "Flush after every N writes, as fsync does.", "Workload"),
    Option("dsync", "N", "Make every Nth write durable, as O_DSYNC does.", "Workload"),
    Option("streams", "N", "Number of sequential streams; requests go to them in turn.", "Workload"),
    Option(
        "range",
        "RANGE",
        "Address range to use, for example 36.7GB, 10GB..20GB or 0%..50%.",
        "Workload",
    ),
    Option("drives", "N", "Number of drives in the array (of its first kind of drive), for example 12.", "Array"),
    Option(
        "drive",
        "NAME|FILE.toml",
        "Replace the array's drives with this drive of the catalogue or file.",
        "Array",
        _native.drive_ids,
    ),
    Option(
        "level",
        "LEVEL",
        f"RAID level of the array's RAID groups: {', '.join(_native.LEVELS)}.",
        "Array",
        # Forms with letters for their counts, such as K+M, cannot be completed.
        lambda: [level for level in _native.LEVELS if level.islower()],
    ),
    Option(
        "usable",
        "SIZE",
        "Usable capacity, for example 9TB: takes the fewest drives that provide it. Excludes --drives.",
        "Array",
    ),
    Option("lun", "NAME", "LUN to use, by name.  [default: all LUNs, one after the other]", "Array"),
    Option("fail", "DRIVE@TIME", "Fail a drive at a time, for example d3@10s, or d3@10s+d5@20s for two.", "Array"),
    Option(
        "policy",
        "POLICY",
        f"Scheduling policy of the drive's queue: {_POLICIES}.",
        "Drive",
        lambda: _native.POLICIES,
    ),
    Option("queue_depth", "N", "Commands that the drive queues internally, for example 32.", "Drive"),
    Option(
        "reordering",
        "0..1",
        "Share of the queue that the policy can reorder, 0 to 1; 1 is the ideal policy.",
        "Drive",
    ),
    Option(
        "ageing", "TIME", "Serve commands older than this first, for example 500ms, or off.", "Drive", lambda: ("off",)
    ),
    Option(
        "host",
        "HOST",
        f"Host adapter (HBA) of a single drive: {', '.join(_native.HOSTS)}; direct adds no time.",
        "Drive",
        lambda: _native.HOSTS,
    ),
    Option(
        "host_tags",
        "N",
        "Commands that the host adapter (HBA) keeps outstanding at the drive, for example 32.",
        "Drive",
    ),
    Option(
        "elevator",
        "POLICY",
        "Scheduling policy of the host for requests that exceed its tags; values as for --policy.",
        "Drive",
        lambda: _native.POLICIES,
    ),
    Option(
        "write_cache",
        "|".join(_native.WRITE_CACHES),
        "Write cache: off, appending (only for writes that continue the previous one), on, or protected "
        "(against power loss).",
        "Drive",
        lambda: _native.WRITE_CACHES,
    ),
    Option(
        "read_ahead",
        "KIND",
        f"Read-ahead policy: {', '.join(_native.READ_AHEADS)}.",
        "Drive",
        lambda: _native.READ_AHEADS,
    ),
    Option(
        "state",
        "|".join(_native.FLASH_STATES),
        "SSDs at the start: fresh, filled once in order, steady (overwritten randomly), or steady:zipf, pareto, zoned.",
        "Drive",
        lambda: _native.FLASH_STATES,
    ),
    Option(
        "depth",
        "N",
        "Queue depth, for example 1,8,32. For a scenario: number of clients.",
        "Load",
    ),
    Option(
        "rate",
        "N|RATE",
        "Arrival rate (open loop): requests per second, for example 4000, or bandwidth, for example "
        "200MB/s or 2050Mb/s.",
        "Load",
    ),
    Option(
        "arrivals",
        "PROCESS",
        "Arrival process for --rate: fixed, poisson or bursty[:ON/OFF], for example bursty:100ms/1s.  "
        "[default: poisson]",
        "Load",
        lambda: ("fixed", "poisson", "bursty"),
    ),
    Option(
        "think",
        "[exponential:]TIME",
        "Think time (closed loop): delay from a completion to the next request, for example 5ms.",
        "Load",
        lambda: ("exponential:",),
    ),
    Option("requests", "N", "Number of requests to measure, for example 100000.", "Length"),
    Option("time", "TIME", "Duration to measure, in virtual time for simulations, for example 30s.", "Length"),
    Option(
        "confidence",
        "PERCENT",
        "Measure until the 95 % confidence interval of the mean is within this percentage, for example 1.",
        "Length",
    ),
    Option(
        "warm_up",
        "N|TIME",
        "Exclude the first requests or the first time from the results, for example 2000 or 10s.",
        "Length",
    ),
    Option("interval", "TIME", "Also record results per interval, for example 1s.", "Length"),
    Option("preload", "N", "Warm caches with this many requests before the run.", "Length"),
    Option("seed", "N", "Random seed.  [default: 1]", "Length"),
    Option(
        "faults",
        "FILE",
        "Fault file: faults to inject, with times counted from the start of the warm-up; or none.",
        "Faults",
    ),
)

IN_RESULTS = ("depth", "rate", "seed", "requests")
"""Options with their own column in the table of results; any other option that is given adds a column."""

EXCLUSIVE = (("depth", "rate"), ("requests", "time", "confidence"), ("range", "lun"), ("drives", "usable"))
"""Groups of options of which at most one may be given."""

KEYS = {
    "arrivals.closed.queue_depth": "depth",
    "arrivals.closed.think": "think",
    "arrivals.open.rate_per_s": "rate",
    "arrivals.open.process": "arrivals",
    "run_length.requests": "requests",
    "run_length.time": "time",
    "run_length.confidence": "confidence",
    "warm_up": "warm_up",
    "streams": "streams",
    "lines[0].size": "size",
    "lines[0].align": "size",
    "lines[0].read_percent": "read",
    "lines[0].random_percent": "random",
    "queue.depth": "queue_depth",
    "queue.policy": "policy",
    "queue.reordering_strength": "reordering",
    "queue.ageing_ns": "ageing",
    "interface.host_tags": "host_tags",
    "interface.host_elevator": "elevator",
}
"""Keys of descriptions that options set, with their options, so that errors name the option that was typed."""

CHANGEABLE = tuple(
    option for option in OPTIONS if option.group in ("Array", "Drive") and option.name not in ("lun", "fail")
)
"""Options that change a system before it is tested, as in a run."""
