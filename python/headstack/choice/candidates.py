"""``Candidates``: all systems of a space that satisfy the stated requirements of a job, each with its price."""

from __future__ import annotations

import difflib
import fnmatch
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from headstack import _native
from headstack._native import InputError, Level, format_bytes
from headstack.catalogue.drive import Drive
from headstack.catalogue.prices import PriceBook, kind_of_drive
from headstack.catalogue.unmodelled import unmodelled
from headstack.choice.answer import Part
from headstack.choice.clouds import Offer, offers
from headstack.choice.durability import CLASSES, afr_percent
from headstack.choice.job import Job
from headstack.choice.space import (
    ASSUMED_W,
    BAYS,
    HOURS_A_YEAR,
    Candidate,
    Family,
    Host,
    Model,
    Space,
    classes_of,
    host_of,
)
from headstack.io.values import size_bytes


@dataclass
class Candidates:
    """The candidates of a space for a job: families, each sorted by cost, and the reasons for exclusions."""

    families: list[tuple[Family, list[Candidate]]]
    """The candidates of each family, sorted by cost."""
    left_out: Counter[str]
    total: int
    no_price: list[str]
    job: Job
    book: PriceBook

    def parts(self, candidate: Candidate) -> tuple[Part, ...]:
        """Returns the items of its price."""
        return tuple(_parts(candidate.family, candidate.drives, candidate.watts, self.job, self.book))


def cost_of(candidate: Candidate, job: Job) -> float:
    """Returns the value of the objective; if the objective is the latency, which needs a simulation, returns the
    price."""
    match job.objectives[0]:
        case "watts":
            return candidate.watts
        case "bays":
            return float(candidate.bays)
        case _:
            return candidate.usd


def candidates(space: Space, job: Job, book: PriceBook, estimate: bool = False) -> Candidates:
    """Returns all systems of a space that satisfy the stated requirements of a job.

    Raises ``InputError`` if the space itself is empty.
    """
    models, no_price = _models(space, book, estimate)
    files = [model.drive.path for model in models if model.drive.path.endswith(".toml")]
    every = [host_of(name, files, book) for name in space.hosts]
    hosts = [host for host in every if not _is_out(space, host.name)]
    _check(space, every)
    result = Candidates([], Counter(), 0, no_price, job, book)
    for family in _families(space, job, models, hosts):
        _add(result, family, space)
    for offer in _offers(space, job):
        _add_offer(result, offer)
    if not result.total:
        raise InputError(f"no candidates: {_empty(space, job, models, hosts, no_price)}")
    result.families.sort(
        key=lambda family_candidates: (cost_of(family_candidates[1][0], job), family_candidates[0].name)
    )
    return result


@cache
def loaded(name: str) -> Drive:
    """Returns a drive from a cache, because the space is evaluated again for each secondary question."""
    return Drive.load(name)


def _check(space: Space, hosts: Sequence[Host]) -> None:
    """Raises ``InputError`` if the space has unknown names, or values that no host supports."""
    names = ", ".join(host.name for host in hosts)
    if not hosts and not space.volumes:
        raise InputError("no candidates: name hosts or cloud volumes", key="hosts")
    for level in space.levels:
        chosen = Level.for_choice(level)
        if hosts and all(host.has_records != chosen.has_records for host in hosts):
            which = "OpenZFS's raidz and draid" if hosts[0].has_records else "all but raidz and draid"
            raise InputError(f"{level}: no host supports it ({names}); allowed: {which}", key="levels")
    for name, values, are_had in (
        ("chunk-sizes", space.chunk_sizes, any(not host.has_records for host in hosts)),
        ("caches", space.caches, any(host.cache_bytes for host in hosts)),
    ):
        for value in values:
            size_bytes(name, value)
        if values and not are_had:
            raise InputError(f"no host has one that can be set ({names or 'there are no hosts'})", key=name)
    drives = _native.drive_ids()
    levels = {*_listed_levels(), *space.levels}
    own = [_called(name) for name in space.among if name.endswith(".toml")]
    classes = _classes() if space.without else frozenset[str]()
    names_known = [*drives, *own, *levels, *classes, *(host.name for host in hosts), *_native.array_ids()]
    for pattern in space.without:
        if not fnmatch.filter(names_known, pattern):
            raise InputError(
                f"{pattern!r} is not a drive, class, level or host; {_closest(pattern, names_known)}", key="not"
            )
    rated = [*CLASSES, *drives, *own]
    for name, _ in space.afr:
        if name not in rated:
            allowed = f"allowed: {', '.join(CLASSES)}, names of drives"
            raise InputError(f"{name!r} is neither a class nor a drive; {allowed}; {_closest(name, rated)}", key="afr")


def _empty(space: Space, job: Job, models: Sequence[Model], hosts: Sequence[Host], no_price: Sequence[str]) -> str:
    """Returns the reason why a space is empty."""
    if not models:
        among = f"no drive with a price matches {', '.join(space.among)}" if space.among else "no drive has a price"
        left = f" and is not excluded by {', '.join(space.without)}" if space.without else ""
        return among + left + (f"; without a price: {', '.join(no_price[:5])}" if no_price else "")
    if not hosts:
        return f"every host is excluded by {', '.join(space.without)}"
    taken = sorted({interface for host in hosts for interface in host.takes})
    offered = sorted({model.interface for model in models})
    if not set(taken).intersection(offered):
        return f"the hosts take {', '.join(taken)} drives, but these drives are {', '.join(offered)}"
    least, most = space.drives
    bays = f"{job.bays} bays" if job.bays is not None else f"{BAYS} bays, the default (set --bays)"
    return f"no RAID level fits {least} to {most} drives in {bays}"


def _closest(name: str, candidates_known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name, sorted(set(candidates_known)), 1, 0.0)
    return f"the closest is {matches[0]}" if matches else "there is none"


def _called(name: str) -> str:
    return os.path.basename(name).removesuffix(".toml")


@cache
def _listed_levels() -> frozenset[str]:
    """Returns names of levels that can be excluded: without counts of their own, and RAID 50 and 60."""
    named = (level for level in _native.levels() if level.form == level.name)
    listed = (level for level in named if level.choice in ("default", "named") or level.name_in_files != level.name)
    return frozenset(level.name for level in listed)


@cache
def _default_levels(has_records: bool, survives: bool) -> tuple[str, ...]:
    """Returns the default levels: those that store records or those that do not; if a failure must be survived, only
    redundant ones."""
    every = (level for level in _native.levels() if level.choice == "default" and level.has_records == has_records)
    return tuple(level.name for level in every if not survives or level.redundancy(level.members_min).survives)


@cache
def _classes() -> frozenset[str]:
    """Returns the class names of the catalogue's drives."""
    return frozenset().union(*(classes_of(loaded(name)) for name in _native.drive_ids()))


def _is_out(space: Space, name: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in space.without)


def _models(space: Space, book: PriceBook, estimate: bool) -> tuple[list[Model], list[str]]:
    """Returns the drives of the space, and the names of those without a price."""
    catalogue_ids = dict.fromkeys(_native.drive_ids())
    files = [name for name in space.among if name.endswith(".toml")]
    patterns = [name for name in space.among if name not in files]
    for pattern in patterns:
        names_allowed = [*catalogue_ids, *_classes()]
        if not fnmatch.filter(names_allowed, pattern):
            if fnmatch.filter(_native.instance_ids(), pattern):
                raise InputError(
                    f"{pattern!r} has no price: local disks are sold only with their cloud instance; compare them with "
                    f"headstack run",
                    key="among",
                )
            closest = unmodelled(pattern) or _closest(pattern, names_allowed)
            raise InputError(f"{pattern!r} is neither a drive nor a class of drives; {closest}", key="among")
    models, without_price = [], []
    for name in [*catalogue_ids, *files]:
        model_name = _called(name)
        if _is_out(space, model_name):
            continue
        is_named = name in files or any(fnmatch.fnmatch(model_name, pattern) for pattern in patterns)
        price = book.price(model_name)
        if not is_named and patterns == [] and files:
            continue
        if price is None and not is_named and not estimate and not patterns:
            without_price.append(model_name)
            continue
        drive = loaded(name)
        classes = classes_of(drive)
        if not is_named and patterns and not classes.intersection(patterns):
            continue
        if drive.kind == "volume" or classes.intersection(space.without):
            continue
        if price is None and estimate:
            price = book.estimate(kind_of_drive(drive), drive.capacity_bytes, model_name)
        if price is None:
            without_price.append(model_name)
            continue
        failing, source = afr_percent(drive, dict(space.afr))
        interface = drive.summary["interface"]
        stated = _active_w(drive)
        watts = ASSUMED_W.get(interface, max(ASSUMED_W.values())) if stated is None else stated
        models.append(
            Model(
                model_name,
                drive,
                drive.capacity_bytes,
                interface,
                classes,
                watts,
                stated is None,
                price,
                failing,
                source,
            )
        )
    return models, without_price


def _active_w(drive: Drive) -> float | None:
    """Returns the active power of a drive, stated or derived from its file."""
    values = (*drive.stated, *drive.derived)
    return next((float(fact["value"]) for fact in values if fact["key"] == "power.active_w"), None)


def _families(space: Space, job: Job, models: list[Model], hosts: list[Host]) -> Iterator[Family]:
    for host in hosts:
        levels = space.levels or _default_levels(host.has_records, job.survive > 0)
        for model in models:
            if model.interface not in host.takes:
                continue
            for level in levels:
                if _is_out(space, level) or host.has_records != Level(level).has_records:
                    continue
                for settings, fields in _settings(space, host):
                    yield Family(host, model, level, settings, fields)


def _settings(space: Space, host: Host) -> Iterator[tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]]:
    """Yields further varied values of a host, in words and as keys of its file."""
    units: Sequence[str] = ("",) if host.has_records or not space.chunk_sizes else space.chunk_sizes
    caches: Sequence[str] = ("",) if not host.cache_bytes or not space.caches else space.caches
    for unit in units:
        for memory in caches:
            settings, fields = [], []
            if unit:
                settings.append(("chunk size", unit))
                fields.append(("groups[0].chunk_size", unit))
            if memory:
                settings.append(("cache", memory))
                data = _native.parse_bytes(memory) * 7 // 8 // 4096 * 4096
                fields += [("controller.cache.memory", memory), ("controller.cache.data", f"{data}B")]
            yield tuple(settings), tuple(fields)


def _add(result: Candidates, family: Family, space: Space) -> None:
    """Adds the members of a family that satisfy the stated requirements."""
    job, model, host = result.job, family.model, family.host
    assert model is not None
    assert host is not None
    least, most = space.drives
    others = sum(count for _, count in host.others)
    most = min(most, (job.bays or BAYS + others + job.spares) - job.spares - others)
    members = []
    for drives, level, spans in Level.for_choice(family.level).usual_layouts(most):
        if drives < least or _is_out(space, level):
            continue
        result.total += 1
        laid_out = Level(level)
        survives = laid_out.redundancy(drives, spans).survives
        if survives < job.survive:
            result.left_out["survives too few failures"] += 1
            continue
        usable = laid_out.usable_bytes(drives, spans, model.capacity_bytes)
        if usable < job.usable_bytes:
            result.left_out["too small"] += 1
            continue
        bays = drives + job.spares + others
        watts = (drives + job.spares) * model.active_w
        usd = sum(part.quantity * part.usd for part in _parts(family, drives, watts, job, result.book))
        if job.watts is not None and watts > job.watts:
            result.left_out["draws too much"] += 1
            continue
        if job.usd is not None and usd > job.usd:
            result.left_out["costs too much"] += 1
            continue
        members.append(Candidate(family, drives, level, spans, usable, bays, watts, usd, survives))
    if members:
        members.sort(key=lambda candidate: (cost_of(candidate, job), candidate.drives))
        result.families.append((family, members))


def _parts(family: Family, drives: int, watts: float, job: Job, book: PriceBook) -> Iterator[Part]:
    """Yields the items of a system's cost."""
    if family.offer is not None:
        for item, quantity in family.offer.items:
            price = book.price(item)
            assert price is not None
            yield Part(item, 12 * job.years, quantity * price.usd, price.date, price.source, "month")
        return
    model, host = family.model, family.host
    assert model is not None
    assert host is not None
    price = model.price
    yield Part(model.name, drives + job.spares, price.usd, price.date, price.source)
    for name, count in host.others:
        if (other := book.price(name)) is not None:
            yield Part(name, count, other.usd, other.date, other.source)
    if host.price is not None:
        yield Part(host.name, 1, host.price.usd, host.price.date, host.price.source)
    elif (bay := book.price("bay")) is not None:
        bays = drives + job.spares + sum(count for _, count in host.others)
        yield Part("bay", bays, bay.usd, bay.date, bay.source)
    cache_setting = dict(family.settings).get("cache")
    cache_bytes = host.cache_bytes if cache_setting is None else _native.parse_bytes(cache_setting)
    if cache_bytes and host.price is None and (memory := book.price("cache-GiB")) is not None:
        yield Part("cache-GiB", cache_bytes / (1 << 30), memory.usd, memory.date, memory.source)
    if job.years:
        kwh = book.price("kWh")
        if kwh is not None:
            used = watts / 1000 * HOURS_A_YEAR * job.pue * job.years
            source = f"{kwh.source}; {job.pue:g} W of facility power per watt (PUE), assumed"
            yield Part("kWh", used, kwh.usd, kwh.date, source, "kWh")
        replaced = drives * model.afr_percent / 100 * job.years
        source = f"{model.afr_percent:g} % fail per year: {model.afr_source}"
        yield Part(f"{model.name} replaced", replaced, price.usd, price.date, source)


def _offers(space: Space, job: Job) -> Iterable[Offer]:
    if not space.volumes:
        return []
    if not job.years:
        raise InputError("cloud volumes are billed monthly; add --years", key="volumes")
    return offers(job.usable_bytes, space.volumes)


def _add_offer(result: Candidates, offer: Offer) -> None:
    job = result.job
    result.total += 1
    missing = [item for item, _ in offer.items if result.book.price(item) is None]
    if missing:
        if missing[0] not in result.no_price:
            result.no_price.append(missing[0])
        result.left_out["no price"] += 1
        return
    family = Family(None, None, "", offer=offer, base=offer.base)
    usd = sum(part.quantity * part.usd for part in _parts(family, 1, 0.0, job, result.book))
    if job.usd is not None and usd > job.usd:
        result.left_out["costs too much"] += 1
        return
    usable = _native.parse_bytes(offer.values["capacity.size"])
    result.families.append((family, [Candidate(family, 1, "", 1, usable, 0, 0.0, usd, job.survive)]))


def describe_space(space: Space, candidates_found: Candidates) -> str:
    """Describes the space in a line."""
    models = {family.model.name for family, _ in candidates_found.families if family.model is not None}
    most = max((candidate.usable_bytes for _, members in candidates_found.families for candidate in members), default=0)
    hosts = {family.host.name for family, _ in candidates_found.families if family.host is not None}
    return (
        f"{candidates_found.total:,} systems of {len(models)} drives on {len(hosts)} hosts, up to {format_bytes(most)}"
    )
