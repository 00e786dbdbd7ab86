"""Finds, reads and checks study files before anything runs."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.io.values import duration_ns
from headstack.studies.choice_tables import KEY, TABLES, choices_in
from headstack.studies.choices import check_choices
from headstack.studies.study import Study

FILE = "study.toml"

SHIPPED = Path(__file__).parent / "shipped"
"""The folder with a subfolder for each study shipped with headstack."""

NAME = "letters, digits, _"

TAKEN = ("drives",)
"""Names of tables that always exist."""


def listed() -> list[str]:
    """Returns the names of the studies shipped with headstack."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{FILE}"))


def load(name: str | os.PathLike[str]) -> Study:
    """Loads the study of that name, or in that folder.

    Raises ``InputError`` with file, line and key if there is none, or it is invalid.
    """
    folder = _folder(os.fspath(name))
    file = folder / FILE
    rest, choices, choice_lines = choices_in(file, text_of(file))
    read, lines = _native.read_study(str(file), rest)
    stated = stated_in(read)
    study = Study(
        name=folder.name,
        file=file,
        folder=folder,
        csv=tuple(sorted(folder.glob("*.csv"))),
        lines=lines | choice_lines,
        choices=tuple(choices),
        **stated,
    )
    check(study)
    return study


def text_of(file: Path) -> str:
    """Reads a text file. Raises ``InputError`` if it is not text."""
    _native.note_input(os.fspath(file))
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: {error}") from None


def stated_in(read: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the compiled part's keys; lists are copied unchanged."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in read.items()}


def _folder(name: str) -> Path:
    """Returns the folder of a study: a path takes precedence over a name."""
    for folder in (Path(name), SHIPPED / name):
        if (folder / FILE).is_file():
            return folder
    if Path(name).is_dir():
        raise InputError(f"not a study: the folder has no {FILE}", file=name)
    raise InputError(f"study {name!r} is unknown; allowed: {', '.join(listed())}, or a folder with a {FILE}")


def check(study: Study) -> None:
    """Rejects contradictions; systems and workloads are resolved when runs are specified."""
    names: dict[str, str] = dict.fromkeys(TAKEN, "a built-in table")
    if study.choices:
        names |= dict.fromkeys(TABLES, f"a table of [[{KEY}]]")
    names |= {name: f"the table {path.name}" for name, path in study.table_names().items()}
    for kind in ("grids", "tables"):
        for number, named in enumerate(getattr(study, kind)):
            path = f"{kind}[{number}].name"
            if not named["name"].replace("_", "a").isidentifier() or not named["name"].isascii():
                raise study.error(path, f"{named['name']!r} cannot name a table; use {NAME}")
            if named["name"] in names:
                raise study.error(path, f"{named['name']!r} is also the name of {names[named['name']]}")
            names[named["name"]] = f"{kind}[{number}]"
    check_choices(study)
    for number, grid in enumerate(study.grids):
        _check_grid(study, number, grid)
    for number, claim in enumerate(study.claims):
        _check_claim(study, number, claim)
    _check_unique(study, "claims", "id", set())
    _check_unique(
        study, "pictures", "name", {shown_name(table) for table in study.tables if table["title"] is not None}
    )
    ids = {claim["id"] for claim in study.claims}
    named = {system for grid in study.grids for system in grid["systems"]}
    for number, chosen in enumerate(study.chosen):
        for key, chosen_names, names_allowed, complaint in (
            ("on", chosen["on"], ids, "no claim has the id"),
            ("systems", chosen["systems"], named, "no grid has the system"),
        ):
            for place, chosen_name in enumerate(chosen_names):
                if chosen_name not in names_allowed:
                    raise study.error(f"chosen[{number}].{key}[{place}]", f"{complaint} {chosen_name!r}")
    for number, open_choice in enumerate(study.open):
        _check_open(study, f"open[{number}]", open_choice, ids)
    for tolerance in study.tolerances:
        if tolerance not in {claim["tolerance"] for claim in study.claims}:
            raise study.error(f"tolerances.{tolerance}", "no claim has this tolerance")
    for number, picture in enumerate(study.pictures):
        if picture["log"] not in ("", "x", "y", "xy"):
            raise study.error(f"pictures[{number}].log", f"{picture['log']!r} is not an axis; allowed: x, y, xy")
    for number, published in enumerate(study.published):
        _check_published(study, number, published)


def shown_name(table: Mapping[str, Any]) -> str:
    """Returns the name of a derived table among the figures."""
    return str(table["name"]).replace("_", "-")


def _check_unique(study: Study, kind: str, key: str, seen: set[str]) -> None:
    for number, item in enumerate(getattr(study, kind)):
        if item[key] in seen:
            raise study.error(f"{kind}[{number}].{key}", f"{item[key]!r} is used twice")
        seen.add(item[key])


def _check_grid(study: Study, number: int, grid: Mapping[str, Any]) -> None:
    if (grid["record"] is not None) != (grid["kind"] == "replay"):
        needed = (
            "a replay needs this key" if grid["kind"] == "replay" else 'only grids of kind = "replay" have this key'
        )
        raise study.error(f"grids[{number}].record", needed)
    if grid["kind"] == "replay" and grid["workloads"]:
        raise study.error(f"grids[{number}].workloads", "a replay takes its workload from record")
    for place, limit in enumerate(grid["within"]):
        try:
            duration_ns(limit, limit)
        except InputError as error:
            raise study.error(f"grids[{number}].within[{place}]", str(error)) from None
    if grid["kind"] == "predict" and (grid["keep"] or grid["within"]):
        raise study.error(f"grids[{number}]", "predictions have no further tables; remove keep and within")


def _check_claim(study: Study, number: int, claim: Mapping[str, Any]) -> None:
    path = f"claims[{number}]"
    if claim["contradicted"] is not None and claim["missing"] is not None:
        raise study.error(f"{path}.missing", "a claim is contradicted or missed, not both")
    if claim["sql"] is None and claim["missing"] is None:
        raise study.error(f"{path}.sql", "this key is missing; set evidence, or missing")


def _check_open(study: Study, path: str, open_choice: Mapping[str, Any], ids: set[str]) -> None:
    grids = {grid["name"]: grid for grid in study.grids}
    for place, claim in enumerate(open_choice["on"]):
        if claim not in ids:
            raise study.error(f"{path}.on[{place}]", f"no claim has the id {claim!r}")
    for place, name in enumerate(open_choice["grids"]):
        if name not in grids or grids[name]["kind"] == "predict":
            raise study.error(f"{path}.grids[{place}]", f"no grid of runs or replays has the name {name!r}")
    for number, other in enumerate(open_choice["others"]):
        if not other["names"] and not other["settings"]:
            raise study.error(f"{path}.others[{number}]", "a placebo without a change; add names or settings")
        for key, value in other["settings"].items():
            if isinstance(value, list):
                raise study.error(
                    f"{path}.others[{number}].settings.{key}", "must be one value, because the grid has runs"
                )


def _check_published(study: Study, number: int, published: Mapping[str, Any]) -> None:
    path = study.folder / published["file"]
    if not path.is_file():
        raise study.error(f"published[{number}].file", f"{path} does not exist")
    if published["grid"] not in {grid["name"] for grid in study.grids}:
        raise study.error(f"published[{number}].grid", f"no grid has the name {published['grid']!r}")
    columns = headings(path)
    for place, name in enumerate(published["by"]):
        if name not in columns:
            raise study.error(f"published[{number}].by[{place}]", f"{path.name} has no column {name!r}")


def headings(path: Path) -> list[str]:
    """Returns the column names of a CSV file."""
    _native.note_input(os.fspath(path))
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file), [])


def resolve_name(study: Study, name: str) -> str:
    """Resolves the name of a system or workload; a file is relative to the study's folder."""
    return str(study.folder / name) if name.partition("@")[0].endswith(".toml") else name
