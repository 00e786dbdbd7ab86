"""What can be varied between runs: one table for the Python API and the command line.

Each option knows how to apply a value, given as text, to the specification of a run. A list of values is swept: the
runs are the product of all lists, systems outermost, then the options in the order of ``OPTIONS``; the last varies
fastest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.drive import parse_range
from headstack.values import choice, duration, duration_ns, number, percent, whole

Spec = dict[str, Any]
"""One run: ``system_name``, ``system``, ``workload``, ``span``, ``seed``, ``interval_ns``."""

MAX_REQUESTS = 10_000_000
"""A run until a confidence ends here in any case."""


MIN_INTERVAL_NS = 100_000_000
"""Each interval holds a histogram of its own, about 100 KB."""


@dataclass(frozen=True)
class Option:
    """Something that can be varied."""

    name: str
    """The keyword in Python; on the command line with dashes."""
    metavar: str
    help: str
    apply: Callable[[Spec, str], None]
    group: str
    """Heading in the command line's help."""


def _range(spec: Spec, text: str) -> None:
    if spec["span"] is not None:
        raise InputError(f"range: {spec['system_name']} states a range of its own")
    geometry = spec["system"]["drive"]["disk"]["geometry"]
    capacity_bytes = geometry["logical_blocks"] * geometry["logical_block_bytes"]
    spec["span"] = parse_range(text, capacity_bytes, geometry["physical_sector_bytes"])
    spec["system_name"] += f"@{text}"


def _streams(spec: Spec, text: str) -> None:
    spec["workload"]["streams"] = whole("streams", text)


def _depth(spec: Spec, text: str) -> None:
    arrivals = spec["workload"]["arrivals"]
    think = arrivals.get("closed", {}).get("think", "none")
    spec["workload"]["arrivals"] = {"closed": {"outstanding": whole("depth", text), "think": think}}


def _rate(spec: Spec, text: str) -> None:
    arrivals = spec["workload"]["arrivals"]
    process = arrivals.get("open", {}).get("process", "poisson")
    spec["workload"]["arrivals"] = {"open": {"rate_per_s": number("rate", text), "process": process}}


def _arrivals(spec: Spec, text: str) -> None:
    arrivals = spec["workload"]["arrivals"]
    if "open" not in arrivals:
        raise InputError("arrivals: a closed loop has none; give --rate as well")
    process, _, lengths = text.partition(":")
    choice("arrivals", process, ("fixed", "poisson", "bursty"))
    if process == "bursty":
        on, _, off = (lengths or "100ms/100ms").partition("/")
        on, off = duration("arrivals", on), duration("arrivals", off or on)
        arrivals["open"]["process"] = {"bursty": {"on": on, "off": off}}
    else:
        arrivals["open"]["process"] = process


def _think(spec: Spec, text: str) -> None:
    arrivals = spec["workload"]["arrivals"]
    if "closed" not in arrivals:
        raise InputError("think: an open loop does not wait; think time needs --depth")
    kind, separator, mean = text.partition(":")
    if separator:
        kind = choice("think", kind, ("exponential",))
        arrivals["closed"]["think"] = {kind: duration("think", mean)}
    else:
        arrivals["closed"]["think"] = {"fixed": duration("think", text)}


def _requests(spec: Spec, text: str) -> None:
    spec["workload"]["run_length"] = {"requests": whole("requests", text)}


def _time(spec: Spec, text: str) -> None:
    spec["workload"]["run_length"] = {"time": duration("time", text)}


def _confidence(spec: Spec, text: str) -> None:
    spec["workload"]["run_length"] = {
        "confidence": {"percent": percent("confidence", text), "max_requests": MAX_REQUESTS}
    }


def _warm_up(spec: Spec, text: str) -> None:
    if text.isdecimal():
        spec["workload"]["warm_up"] = {"requests": int(text)}
    else:
        spec["workload"]["warm_up"] = {"time": duration("warm_up", text)}


def _interval(spec: Spec, text: str) -> None:
    interval_ns = duration_ns("interval", text)
    if interval_ns < MIN_INTERVAL_NS:
        raise InputError(f"interval: {text} is too short; 100ms or longer is allowed")
    spec["interval_ns"] = interval_ns


def _seed(spec: Spec, text: str) -> None:
    spec["seed"] = whole("seed", text)


def _queue_depth(spec: Spec, text: str) -> None:
    spec["system"]["drive"]["disk"]["queue"]["depth"] = whole("queue_depth", text)


def _policy(spec: Spec, text: str) -> None:
    spec["system"]["drive"]["disk"]["queue"]["policy"] = choice("policy", text, _native.POLICIES)


def _reordering(spec: Spec, text: str) -> None:
    spec["system"]["drive"]["disk"]["queue"]["reordering_strength"] = number("reordering", text)


def _ageing(spec: Spec, text: str) -> None:
    ageing_ns = None if text == "off" else duration_ns("ageing", text)
    if ageing_ns is not None and ageing_ns < 0:
        raise InputError(f"ageing: {text} is negative; a time or off is allowed")
    spec["system"]["drive"]["disk"]["queue"]["ageing_ns"] = ageing_ns


def _host_tags(spec: Spec, text: str) -> None:
    spec["system"]["drive"]["disk"]["interface"]["host_tags"] = whole("host_tags", text)


def _elevator(spec: Spec, text: str) -> None:
    elevator = choice("elevator", text, _native.POLICIES)
    spec["system"]["drive"]["disk"]["interface"]["host_elevator"] = elevator


def _write_cache(spec: Spec, text: str) -> None:
    write_cache = choice("write_cache", text, _native.WRITE_CACHES)
    spec["system"]["drive"]["disk"]["buffer"]["write_cache"] = write_cache


def _read_ahead(spec: Spec, text: str) -> None:
    read_ahead = choice("read_ahead", text, _native.READ_AHEADS)
    spec["system"]["drive"]["disk"]["buffer"]["read_ahead"] = read_ahead


_POLICIES = ", ".join(_native.POLICIES)

# Size, read and random make the workload, before anything is applied to it.
ACCESS = ("size", "read", "random")


def _given_by_access(_spec: Spec, _text: str) -> None:
    pass


OPTIONS: tuple[Option, ...] = (
    Option("size", "SIZE", "Size of every request, such as 4KiB.", _given_by_access, "Workload"),
    Option("read", "PERCENT", "Reads; the rest are writes.", _given_by_access, "Workload"),
    Option(
        "random",
        "PERCENT",
        "Requests to a random place; the rest are sequential.",
        _given_by_access,
        "Workload",
    ),
    Option("streams", "N", "Sequential streams, used in turn.", _streams, "Workload"),
    Option(
        "range",
        "RANGE",
        "Part of the drive that is used: 36.7GB, 10GB..20GB or 0%..50%.",
        _range,
        "Workload",
    ),
    Option("policy", "POLICY", f"Order in which the drive serves its queue: {_POLICIES}.", _policy, "Drive"),
    Option("queue_depth", "N", "Commands that the drive holds at once.", _queue_depth, "Drive"),
    Option(
        "reordering",
        "0..1",
        "How much of its queue the policy may choose from; 1 is the ideal policy.",
        _reordering,
        "Drive",
    ),
    Option("ageing", "TIME", "Commands older than this go first; or off.", _ageing, "Drive"),
    Option("host_tags", "N", "Commands that the host keeps in the drive.", _host_tags, "Drive"),
    Option(
        "elevator",
        "POLICY",
        "Order in which the host hands over what exceeds its tags (as --policy).",
        _elevator,
        "Drive",
    ),
    Option(
        "write_cache",
        "|".join(_native.WRITE_CACHES),
        "When a write is complete: on the media, in the buffer, or there if it appends to the last one.",
        _write_cache,
        "Drive",
    ),
    Option(
        "read_ahead",
        "KIND",
        f"How far reads go on after the request: {', '.join(_native.READ_AHEADS)}.",
        _read_ahead,
        "Drive",
    ),
    Option("depth", "N", "Closed loop: requests outstanding.", _depth, "Load"),
    Option("rate", "N", "Open loop: arrivals a second.", _rate, "Load"),
    Option(
        "arrivals",
        "PROCESS",
        "Open loop: fixed, poisson or bursty[:ON/OFF], such as bursty:100ms/1s.  [default: poisson]",
        _arrivals,
        "Load",
    ),
    Option(
        "think",
        "[exponential:]TIME",
        "Closed loop: time from a completion to the next issue.",
        _think,
        "Load",
    ),
    Option("requests", "N", "Measure this many requests.", _requests, "Length"),
    Option("time", "TIME", "Measure for this (virtual) time.", _time, "Length"),
    Option(
        "confidence",
        "PERCENT",
        "Measure until the mean is known to this half-width, with 95 % confidence.",
        _confidence,
        "Length",
    ),
    Option("warm_up", "N|TIME", "Leave out the first requests or time.", _warm_up, "Length"),
    Option("interval", "TIME", "Record figures over time, too.", _interval, "Length"),
    Option("seed", "N", "Seed of all randomness.  [default: 1]", _seed, "Length"),
)

IN_RESULTS = ("depth", "rate", "seed", "requests")
"""These have a column of their own in the table of results; any other that is given becomes one."""

EXCLUSIVE = (("depth", "rate"), ("requests", "time", "confidence"))
"""Of each of these at most one may be given."""
