"""What can be varied between runs: one table for the Python API and the command line.

Each option knows how to apply a value, given as text, to the specification of a run. A list of values is swept: the
runs are the product of all lists, systems outermost, then the options in the order of ``OPTIONS``; the last varies
fastest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.array import disks, lun_span, shortened, span_of, ssds
from headstack.scenario import Scenario
from headstack.values import choice, duration, duration_ns, number, percent, rate_bytes_per_s, size_bytes, whole

Spec = dict[str, Any]
"""One run: ``system_name``, ``system``, ``workload`` or ``scenario``, ``span``, ``seed``, and what is optional."""

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
    values: Callable[[], Sequence[str]] = tuple
    """What a shell completes it by, where it is one of a list, or begins so."""


def _range(spec: Spec, text: str) -> None:
    if spec["span"] is not None:
        raise InputError(f"range: {spec['system_name']} states a range of its own")
    spec["span"] = span_of(spec["system"], text)
    spec["system_name"] += f"@{text}"


def _streams(spec: Spec, text: str) -> None:
    spec["workload"]["streams"] = whole("streams", text)


def _demand(spec: Spec) -> dict[str, Any]:
    """The workload or the scenario; warm-up and run length are alike in both."""
    demand: dict[str, Any] = spec["scenario"] if "scenario" in spec else spec["workload"]
    return demand


def _clients(spec: Spec, text: str) -> None:
    spec["clients"] = whole("depth", text)
    try:
        spec["scenario"] = Scenario(spec["scenario"]).with_clients(spec["clients"]).description
    except InputError as error:
        raise InputError(f"depth: {error}") from None


def _depth(spec: Spec, text: str) -> None:
    if "scenario" in spec:
        return _clients(spec, text)
    arrivals = spec["workload"]["arrivals"]
    think = arrivals.get("closed", {}).get("think", "none")
    spec["workload"]["arrivals"] = {"closed": {"outstanding": whole("depth", text), "think": think}}


def _rate(spec: Spec, text: str) -> None:
    arrivals = spec["workload"]["arrivals"]
    process = arrivals.get("open", {}).get("process", "poisson")
    # Whoever thinks in MB/s offers as many requests as carry so much; 4000/s are requests.
    amount = text.strip().removesuffix("/s")
    in_bytes = amount != text.strip() and not amount[-1:].isdigit()
    per_s = rate_bytes_per_s("rate", text) / _mean_bytes(spec["workload"]) if in_bytes else _per_s(text, amount)
    spec["workload"]["arrivals"] = {"open": {"rate_per_s": per_s, "process": process}}


def _per_s(text: str, amount: str) -> float:
    try:
        return number("rate", amount)
    except InputError:
        raise InputError(f"rate: {text!r} is not a rate; write 4000/s, 200MB/s or 2050Mb/s") from None


def _mean_bytes(workload: Spec) -> float:
    """The mean length of its requests."""
    lines = workload["lines"]
    sizes = [line["size"] if isinstance(line["size"], int) else size_bytes("size", line["size"]) for line in lines]
    return max(sum(size * float(line["share_percent"]) / 100 for size, line in zip(sizes, lines, strict=True)), 1.0)


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
    _demand(spec)["run_length"] = {"requests": whole("requests", text)}


def _time(spec: Spec, text: str) -> None:
    _demand(spec)["run_length"] = {"time": duration("time", text)}


def _confidence(spec: Spec, text: str) -> None:
    spec["workload"]["run_length"] = {
        "confidence": {"percent": percent("confidence", text), "max_requests": MAX_REQUESTS}
    }


def _warm_up(spec: Spec, text: str) -> None:
    if text.isdecimal():
        _demand(spec)["warm_up"] = {"requests": int(text)}
    else:
        _demand(spec)["warm_up"] = {"time": duration("warm_up", text)}


def interval_ns(text: str) -> int:
    """The length of an interval that results are kept for."""
    length_ns = duration_ns("interval", text)
    if length_ns < MIN_INTERVAL_NS:
        raise InputError(f"interval: {text} is too short; 100ms or longer is allowed")
    return length_ns


def _interval(spec: Spec, text: str) -> None:
    spec["interval_ns"] = interval_ns(text)


def _preload(spec: Spec, text: str) -> None:
    spec["preload"] = whole("preload", text)


def _seed(spec: Spec, text: str) -> None:
    spec["seed"] = whole("seed", text)


def _faults(spec: Spec, text: str) -> None:
    if text != "none":
        spec["faults"] = json.loads(_native.load_faults(text, json.dumps(spec["system"])))


def _array(spec: Spec, option: str) -> dict[str, Any]:
    if "array" not in spec["system"]:
        raise InputError(f"{option}: {spec['system_name']} is a single drive; only arrays have this")
    array: dict[str, Any] = spec["system"]["array"]
    return array


def _lun(spec: Spec, text: str) -> None:
    array = _array(spec, "lun")
    if spec["span"] is not None:
        raise InputError(f"lun: {spec['system_name']} states a range of its own")
    spec["span"] = lun_span(array, text)
    spec["system_name"] += f"@{text}"


def _fail(spec: Spec, text: str) -> None:
    array = _array(spec, "fail")
    members = [member["name"] for member in array["members"]]
    for failure in text.split("+"):
        name, separator, at = failure.partition("@")
        if not separator:
            raise InputError(f"fail: {failure!r} is no failure; write DRIVE@TIME, such as {members[0]}@10s")
        if name not in members:
            raise InputError(f"fail: no drive {name!r} in {spec['system_name']}; there are {shortened(members)}")
        at_ns = duration_ns("fail", at)
        if at_ns < 0:
            raise InputError(f"fail: {at} is negative; 0s or later is allowed")
        what = {"member-fails": {"member": members.index(name)}}
        if what in [incident["what"] for incident in array["incidents"]]:
            raise InputError(f"fail: {name} fails more than once; once is allowed")
        array["incidents"].append({"at_ns": at_ns, "what": what})
    array["incidents"].sort(key=lambda incident: incident["at_ns"])


def _disks(spec: Spec, option: str) -> list[dict[str, Any]]:
    """Every kind of disk drive in the system: an option of drives holds for all of them."""
    found = disks(spec["system"])
    if not found:
        raise InputError(f"{option}: {spec['system_name']} has no disk drive")
    return found


def _queue_depth(spec: Spec, text: str) -> None:
    for disk in _disks(spec, "queue_depth"):
        disk["queue"]["depth"] = whole("queue_depth", text)


def _policy(spec: Spec, text: str) -> None:
    for disk in _disks(spec, "policy"):
        disk["queue"]["policy"] = choice("policy", text, _native.POLICIES)


def _reordering(spec: Spec, text: str) -> None:
    for disk in _disks(spec, "reordering"):
        disk["queue"]["reordering_strength"] = number("reordering", text)


def _ageing(spec: Spec, text: str) -> None:
    ageing_ns = None if text == "off" else duration_ns("ageing", text)
    if ageing_ns is not None and ageing_ns < 0:
        raise InputError(f"ageing: {text} is negative; a time or off is allowed")
    for disk in _disks(spec, "ageing"):
        disk["queue"]["ageing_ns"] = ageing_ns


def _host_tags(spec: Spec, text: str) -> None:
    for disk in _disks(spec, "host_tags"):
        disk["interface"]["host_tags"] = whole("host_tags", text)


def _elevator(spec: Spec, text: str) -> None:
    for disk in _disks(spec, "elevator"):
        disk["interface"]["host_elevator"] = choice("elevator", text, _native.POLICIES)


def _write_cache(spec: Spec, text: str) -> None:
    for disk in _disks(spec, "write_cache"):
        disk["buffer"]["write_cache"] = choice("write_cache", text, _native.WRITE_CACHES)


def _read_ahead(spec: Spec, text: str) -> None:
    for disk in _disks(spec, "read_ahead"):
        disk["buffer"]["read_ahead"] = choice("read_ahead", text, _native.READ_AHEADS)


def _preconditioned(spec: Spec, text: str) -> None:
    found = ssds(spec["system"])
    if not found:
        raise InputError(f"preconditioned: {spec['system_name']} has no solid-state drive")
    for ssd in found:
        ssd["preconditioned"] = choice("preconditioned", text, ("yes", "no")) == "yes"


_POLICIES = ", ".join(_native.POLICIES)

# Size, read and random make the workload, before anything is applied to it.
ACCESS = ("size", "read", "random")


# What a scenario states for each of its streams.
STATED = (*ACCESS, "streams", "rate", "arrivals", "think", "confidence")


# These make the system, likewise.
CHANGES = ("drives", "drive", "level", "usable")


def _made_before(_spec: Spec, _text: str) -> None:
    pass


OPTIONS: tuple[Option, ...] = (
    Option("size", "SIZE", "Size of every request, such as 4KiB.", _made_before, "Workload"),
    Option("read", "PERCENT", "Reads; the rest are writes.", _made_before, "Workload"),
    Option(
        "random",
        "PERCENT",
        "Requests to a random place; the rest are sequential.",
        _made_before,
        "Workload",
    ),
    Option("streams", "N", "Sequential streams, used in turn.", _streams, "Workload"),
    Option(
        "range",
        "RANGE",
        "Part of the system that is used: 36.7GB, 10GB..20GB or 0%..50%.",
        _range,
        "Workload",
    ),
    Option("drives", "N", "Drives of the array (of its first kind).", _made_before, "Array"),
    Option(
        "drive", "NAME", "Which drives they are: of the catalogue, or a file.", _made_before, "Array", _native.drive_ids
    ),
    Option(
        "level",
        "LEVEL",
        f"RAID level of its groups: {', '.join(_native.LEVELS)}.",
        _made_before,
        "Array",
        # Forms with letters for their counts, such as K+M, are nothing to complete.
        lambda: [level for level in _native.LEVELS if level.islower()],
    ),
    Option(
        "usable",
        "SIZE",
        "Usable capacity, in place of --drives: as few drives as export so much, such as 9TB.",
        _made_before,
        "Array",
    ),
    Option("lun", "NAME", "The LUN that is used; all of them otherwise, one after the other.", _lun, "Array"),
    Option("fail", "DRIVE@TIME", "A drive that fails, such as d3@10s; d3@10s+d5@20s are two.", _fail, "Array"),
    Option(
        "policy",
        "POLICY",
        f"Order in which the drive serves its queue: {_POLICIES}.",
        _policy,
        "Drive",
        lambda: _native.POLICIES,
    ),
    Option("queue_depth", "N", "Commands that the drive holds at once.", _queue_depth, "Drive"),
    Option(
        "reordering",
        "0..1",
        "How much of its queue the policy may choose from; 1 is the ideal policy.",
        _reordering,
        "Drive",
    ),
    Option("ageing", "TIME", "Commands older than this go first; or off.", _ageing, "Drive", lambda: ("off",)),
    Option("host_tags", "N", "Commands that the host keeps in the drive.", _host_tags, "Drive"),
    Option(
        "elevator",
        "POLICY",
        "Order in which the host hands over what exceeds its tags (as --policy).",
        _elevator,
        "Drive",
        lambda: _native.POLICIES,
    ),
    Option(
        "write_cache",
        "|".join(_native.WRITE_CACHES),
        "When a write is complete: on the media, in the buffer, or there if it appends to the last one.",
        _write_cache,
        "Drive",
        lambda: _native.WRITE_CACHES,
    ),
    Option(
        "read_ahead",
        "KIND",
        f"How far reads go on after the request: {', '.join(_native.READ_AHEADS)}.",
        _read_ahead,
        "Drive",
        lambda: _native.READ_AHEADS,
    ),
    Option(
        "preconditioned",
        "yes|no",
        "Solid-state drives start in the steady state of random overwrites; 1 TB takes two minutes.",
        _preconditioned,
        "Drive",
        lambda: ("yes", "no"),
    ),
    Option("depth", "N", "Closed loop: requests outstanding; of a scenario, clients.", _depth, "Load"),
    Option(
        "rate", "N|RATE", "Open loop: arrivals a second (4000/s), or what they carry: 200MB/s, 2050Mb/s.", _rate, "Load"
    ),
    Option(
        "arrivals",
        "PROCESS",
        "Open loop: fixed, poisson or bursty[:ON/OFF], such as bursty:100ms/1s.  [default: poisson]",
        _arrivals,
        "Load",
        lambda: ("fixed", "poisson", "bursty"),
    ),
    Option(
        "think",
        "[exponential:]TIME",
        "Closed loop: time from a completion to the next issue.",
        _think,
        "Load",
        lambda: ("exponential:",),
    ),
    Option("requests", "N", "Measure this many requests.", _requests, "Length"),
    Option("time", "TIME", "Measure for this (virtual) time.", _time, "Length"),
    Option(
        "confidence",
        "PERCENT",
        "Measure until the sampling error of the mean is at most this, at 95 %.",
        _confidence,
        "Length",
    ),
    Option("warm_up", "N|TIME", "Leave out the first requests or time.", _warm_up, "Length"),
    Option("interval", "TIME", "Record figures over time, too.", _interval, "Length"),
    Option("preload", "N", "Requests that caches have seen before the run, in no time.", _preload, "Length"),
    Option("seed", "N", "Seed of all randomness.  [default: 1]", _seed, "Length"),
    Option("faults", "FILE", "What goes wrong, and when, from the start of the warm-up; or none.", _faults, "Faults"),
)

IN_RESULTS = ("depth", "rate", "seed", "requests")
"""These have a column of their own in the table of results; any other that is given becomes one."""

EXCLUSIVE = (("depth", "rate"), ("requests", "time", "confidence"), ("range", "lun"), ("drives", "usable"))
"""Of each of these at most one may be given."""

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
"""The keys of descriptions that options set, with their options: who typed the option is told of it."""

CHANGEABLE = tuple(
    option for option in OPTIONS if option.group in ("Array", "Drive") and option.name not in ("lun", "fail")
)
"""What can be changed in a system before it is tested, as in a run."""
