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
    changed: Spec = _native.with_options(draft, list(chosen.items()))
    return spec | changed


_POLICIES = ", ".join(_native.POLICIES)

# Size, read and random define the workload before anything is applied to it.
ACCESS = ("size", "read", "random")


# Options that a scenario states for each of its streams.
STATED = (*ACCESS, "streams", "rate", "arrivals", "think", "confidence")


# These define the system, likewise.
CHANGES = ("drives", "drive", "level", "usable")


OPTIONS: tuple[Option, ...] = (
    Option("size", "SIZE", "Size of every request, such as 4KiB.", "Workload"),
    Option("read", "PERCENT", "Reads; the rest are writes.", "Workload"),
    Option(
        "random",
        "PERCENT",
        "Requests to a random place; the rest are sequential.",
        "Workload",
    ),
    Option("streams", "N", "Sequential streams, used in turn.", "Workload"),
    Option(
        "range",
        "RANGE",
        "Part of the system that is used: 36.7GB, 10GB..20GB or 0%..50%.",
        "Workload",
    ),
    Option("drives", "N", "Drives of the array (of its first kind).", "Array"),
    Option(
        "drive", "NAME|FILE.toml", "Which drives they are: of the catalogue, or a file.", "Array", _native.drive_ids
    ),
    Option(
        "level",
        "LEVEL",
        f"RAID level of its groups: {', '.join(_native.LEVELS)}.",
        "Array",
        # Forms with letters for their counts, such as K+M, cannot be completed.
        lambda: [level for level in _native.LEVELS if level.islower()],
    ),
    Option(
        "usable",
        "SIZE",
        "Usable capacity, in place of --drives: as few drives as export so much, such as 9TB.",
        "Array",
    ),
    Option("lun", "NAME", "The LUN that is used; all of them otherwise, one after the other.", "Array"),
    Option("fail", "DRIVE@TIME", "A drive that fails, such as d3@10s; d3@10s+d5@20s are two.", "Array"),
    Option(
        "policy",
        "POLICY",
        f"Order in which the drive serves its queue: {_POLICIES}.",
        "Drive",
        lambda: _native.POLICIES,
    ),
    Option("queue_depth", "N", "Commands that the drive holds at once.", "Drive"),
    Option(
        "reordering",
        "0..1",
        "How much of its queue the policy may choose from; 1 is the ideal policy.",
        "Drive",
    ),
    Option("ageing", "TIME", "Commands older than this go first; or off.", "Drive", lambda: ("off",)),
    Option(
        "host",
        "HOST",
        f"What a drive alone hangs on: {', '.join(_native.HOSTS)}; direct takes no time.",
        "Drive",
        lambda: _native.HOSTS,
    ),
    Option("host_tags", "N", "Commands that the host keeps in the drive.", "Drive"),
    Option(
        "elevator",
        "POLICY",
        "Order in which the host hands over what exceeds its tags (as --policy).",
        "Drive",
        lambda: _native.POLICIES,
    ),
    Option(
        "write_cache",
        "|".join(_native.WRITE_CACHES),
        "When a write is complete: on the media, in the buffer, or there if it appends to the last one.",
        "Drive",
        lambda: _native.WRITE_CACHES,
    ),
    Option(
        "read_ahead",
        "KIND",
        f"How far reads go on after the request: {', '.join(_native.READ_AHEADS)}.",
        "Drive",
        lambda: _native.READ_AHEADS,
    ),
    Option(
        "preconditioned",
        "yes|no",
        "Solid-state drives start in the steady state of random overwrites; 1 TB takes two minutes.",
        "Drive",
        lambda: ("yes", "no"),
    ),
    Option("depth", "N", "Closed loop: requests outstanding; of a scenario, clients.", "Load"),
    Option("rate", "N|RATE", "Open loop: arrivals a second (4000/s), or what they carry: 200MB/s, 2050Mb/s.", "Load"),
    Option(
        "arrivals",
        "PROCESS",
        "Open loop: fixed, poisson or bursty[:ON/OFF], such as bursty:100ms/1s.  [default: poisson]",
        "Load",
        lambda: ("fixed", "poisson", "bursty"),
    ),
    Option(
        "think",
        "[exponential:]TIME",
        "Closed loop: time from a completion to the next issue.",
        "Load",
        lambda: ("exponential:",),
    ),
    Option("requests", "N", "Measure this many requests.", "Length"),
    Option("time", "TIME", "Measure for this (virtual) time.", "Length"),
    Option(
        "confidence",
        "PERCENT",
        "Measure until the sampling error of the mean is at most this, at 95 %.",
        "Length",
    ),
    Option("warm_up", "N|TIME", "Leave out the first requests or time.", "Length"),
    Option("interval", "TIME", "Record figures over time, too.", "Length"),
    Option("preload", "N", "Begin with caches as so many requests leave them.", "Length"),
    Option("seed", "N", "Seed of all randomness.  [default: 1]", "Length"),
    Option("faults", "FILE", "What goes wrong, and when, from the start of the warm-up; or none.", "Faults"),
)

IN_RESULTS = ("depth", "rate", "seed", "requests")
"""Options with their own column in the table of results; any other option that is given adds a column."""

EXCLUSIVE = (("depth", "rate"), ("requests", "time", "confidence"), ("range", "lun"), ("drives", "usable"))
"""Groups of options of which at most one may be given."""

KEYS = {
    "arrivals.closed.outstanding": "depth",
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
