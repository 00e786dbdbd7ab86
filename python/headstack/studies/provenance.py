"""``chosen_on``: values that were tuned on a claim, and are in the runs of its figures.

Descriptions and the rules that complete them state what their values were tuned on: the source of a value names claims,
as in "fitted to 4,591 random writes a second (S0.99)". Choices of a study are stated in its file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from headstack.catalogue.array import Array
from headstack.catalogue.system import load_system
from headstack.studies.files import resolve_name
from headstack.studies.study import Study
from headstack.studies.tables import Tables

Source: TypeAlias = tuple[str, str, str]
"""The owner of a value, its key, and its source or rule."""

CLAIM = re.compile(r"\b[A-Za-z]\w*\.\w+\b")
"""Pattern of claims' ids; only those that the study has are used."""


def chosen_on(study: Study, tables: Tables) -> dict[str, list[str]]:
    """Returns for each claim with evidence, in words, the values in its runs that were tuned on it."""
    sources_by_system: dict[tuple[str, str | None], list[Source]] = {}
    chosen_by_claim = {}
    for number, claim in enumerate(study.claims):
        grids = tables.grids_of(number) if claim["sql"] is not None else []
        values: dict[str, set[str]] = defaultdict(set)
        for system in {system for grid in grids for system in _systems(study, grid)}:
            for owner, key, source in _cached_sources(sources_by_system, system):
                if claim["id"] in CLAIM.findall(source):
                    values[key].add(owner)
        chosen_by_claim[claim["id"]] = [
            chosen["what"] for chosen in study.chosen if claim["id"] in chosen["on"] and _is_in(chosen, grids)
        ]
        chosen_by_claim[claim["id"]] += [
            f"{key} of {', '.join(sorted(owners))}" for key, owners in sorted(values.items())
        ]
    return chosen_by_claim


def _is_in(chosen: Mapping[str, Any], grids: Sequence[Mapping[str, Any]]) -> bool:
    systems = {*chosen["systems"]}
    return not systems or any(systems & _named(grid) for grid in grids)


def _named(grid: Mapping[str, Any]) -> set[str]:
    return {*grid["systems"]} | ({grid["record"]["system"]} if grid["record"] else set())


def _systems(study: Study, grid: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yields the systems of a grid's runs, each with the drive from its settings."""
    drives = grid["settings"].get("drive")
    for system in sorted(_named(grid)):
        for drive in drives if isinstance(drives, list) else [drives]:
            yield resolve_name(study, system), drive


def _cached_sources(
    sources_by_system: dict[tuple[str, str | None], list[Source]], system: tuple[str, str | None]
) -> list[Source]:
    if system not in sources_by_system:
        sources_by_system[system] = list(_sources(*system))
    return sources_by_system[system]


def _sources(system: str, drive: str | None) -> Iterator[Source]:
    """Yields the sources of the values of a system and its drives."""
    loaded = load_system(system, {} if drive is None else {"drive": drive})
    owner = loaded.name.partition("@")[0]
    yield from ((owner, value["key"], value["source"] or "") for value in loaded.stated)
    yield from ((owner, value["key"], value["rule"]) for value in loaded.derived)
    if isinstance(loaded, Array):
        members = {value["value"] for value in loaded.stated if re.fullmatch(r"drives\[\d+\]\.drive", value["key"])}
        for member in sorted(members) if drive is None else [drive]:
            yield from _sources(_beside_array(system, member), None)


def _beside_array(array: str, member: str) -> str:
    """Resolves the file of a drive relative to that of its array."""
    return str(Path(array).parent / member) if member.endswith(".toml") else member
