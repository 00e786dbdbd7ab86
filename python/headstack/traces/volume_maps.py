"""Placement of a trace's volumes on a system: on LUNs, or on a whole drive."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstack._native import InputError, format_bytes
from headstack.io.values import size_bytes
from headstack.traces.replay_types import Extent

WAYS = ("stacked", "round-robin", "hashed")
"""Placement rules: ``stacked`` concatenates all volumes over all LUNs, ``round-robin`` assigns volumes to LUNs in turn,
and ``hashed`` selects the LUN by a hash of the volume's name, independent of its position in the trace."""

ALIGNMENT = 1 << 20
"""Alignment of volumes in bytes, at least the chunk or page size of all systems for which it matters."""


@dataclass(frozen=True)
class Lun:
    """A range of a system that holds volumes."""

    name: str
    start: int
    length: int

    @property
    def end(self) -> int:
        return self.start + self.length


def luns_of(system: Mapping[str, Any], capacity: int) -> list[Lun]:
    """Returns the LUNs of an array, in the order in which a replay concatenates them. A drive is a single LUN,
    ``drive``."""
    if "array" not in system:
        return [Lun("drive", 0, capacity)]
    luns: list[Lun] = []
    for lun in system["array"]["luns"]:
        luns.append(Lun(lun["name"], luns[-1].end if luns else 0, lun["length_bytes"]))
    return luns


def extents(text: str, ends: Mapping[str, int], luns: list[Lun], fold: bool) -> list[Extent]:
    """Returns the place of each volume. ``text`` is one of ``WAYS``, assignments (``hm.0=lun0,hm.1=lun1@100GB``), or a
    file of such lines. ``ends`` are the bytes that each volume needs; with ``fold`` volumes may get less.

    Raises ``InputError`` if a name is unknown, or if a volume has no place or does not fit.
    """
    if not luns:
        raise InputError("the system has no LUN", key="map")
    is_rule = text in WAYS
    places = (
        place_by_rule(text, ends, luns, fold) if is_rule else place_by_assignments(parse_assignments(text), ends, luns)
    )
    return [{"volume": name, "start_bytes": start, "length_bytes": length} for name, start, length in places]


def place_by_rule(way: str, ends: Mapping[str, int], luns: list[Lun], fold: bool) -> Iterable[tuple[str, int, int]]:
    """Yields volumes placed by a rule, each at a multiple of ``ALIGNMENT``."""
    places = [Lun("all", 0, luns[-1].end)] if way == "stacked" else luns
    groups: list[list[str]] = [[] for _ in places]
    for number, name in enumerate(ends):
        hashed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        groups[{"stacked": 0, "round-robin": number, "hashed": hashed}[way] % len(places)].append(name)
    for lun, names in zip(places, groups, strict=True):
        needed = {name: max(1, -(-ends[name] // ALIGNMENT)) * ALIGNMENT for name in names}
        total = sum(needed.values())
        if total > lun.length and not fold:
            where = "the system" if way == "stacked" else f"LUN {lun.name!r}"
            raise InputError(
                f"{where} has {format_bytes(lun.length)}, and {len(names)} volumes need {format_bytes(total)}; "
                "--outside fold gives each volume a part of the space that it needs",
                key="map",
            )
        at = lun.start
        for name, length in needed.items():
            if total > lun.length:
                length = lun.length * length // total // ALIGNMENT * ALIGNMENT
                if not length:
                    raise InputError(f"{len(names)} volumes are too many for {format_bytes(lun.length)}", key="map")
            yield name, at, length
            at += length


def parse_assignments(text: str) -> dict[str, str]:
    """Parses the assignments of volumes. Names may contain equals signs, and in a file also commas."""
    if "=" in text and not Path(text).is_file():
        lines, source = text.split(","), "map"
    else:
        try:
            lines, source = Path(text).read_text(encoding="utf-8").splitlines(), text
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not text"
            raise InputError(
                f"{text}: {reason}; allowed: {', '.join(WAYS)}, VOLUME=LUN@SIZE,..., or a file", key="map"
            ) from None
    places: dict[str, str] = {}
    for line in lines:
        volume, equals, place = (part.strip() for part in line.rpartition("="))
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals or not volume:
            raise InputError(f"{source}: must be VOLUME=LUN or VOLUME=LUN@SIZE, not {line.strip()!r}")
        if volume in places:
            raise InputError(f"{source}: {volume!r} is assigned twice")
        places[volume] = place
    return places


def place_by_assignments(
    places: Mapping[str, str], ends: Mapping[str, int], luns: list[Lun]
) -> Iterable[tuple[str, int, int]]:
    """Yields volumes placed by assignments. Each has the size that it needs, but ends at the next volume or the end of
    the LUN."""
    by_name = {lun.name: lun for lun in luns}
    unknown = [name for name in places if name not in ends]
    if unknown:
        raise InputError(f"the trace has no volume {unknown[0]!r}; it has {listed(ends)}", key="map")
    missing = [name for name in ends if name not in places]
    if missing:
        raise InputError(f"no LUN for {listed(missing)}; leave volumes out with --select or --step device=", key="map")
    starts: dict[str, tuple[int, Lun]] = {}
    for volume, place in places.items():
        name, _, offset = place.partition("@")
        lun = by_name.get(name)
        if lun is None:
            raise InputError(f"{volume}: LUN {name!r} is unknown; the system has {listed(by_name)}", key="map")
        at = size_bytes("map", offset) if offset else 0
        if at >= lun.length:
            raise InputError(f"{volume}: {name} ends at {format_bytes(lun.length)}, before {offset}", key="map")
        starts[volume] = (lun.start + at, lun)
    every = sorted(start for start, _ in starts.values())
    for volume, (start, lun) in starts.items():
        next_start = next((other for other in every if other > start), lun.end)
        if every.count(start) > 1:
            raise InputError(f"{volume} and another volume begin at the same position", key="map")
        yield volume, start, min(next_start, lun.end) - start


def listed(names: Iterable[str], most: int = 5) -> str:
    """Lists the first names in words."""
    every = list(names)
    more = f" and {len(every) - most} others" if len(every) > most else ""
    return ", ".join(every[:most]) + more
