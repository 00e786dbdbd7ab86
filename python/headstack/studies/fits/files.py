"""``Fit``: finds, reads and checks files of inverse studies, and fills them with a setting of the unknowns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.simulation.designs import Axis, Listed, Range
from headstack.studies.files import FILE as STUDY_FILE
from headstack.studies.files import SHIPPED, check, stated_in, text_of
from headstack.studies.power import Tolerance
from headstack.studies.study import Study, table_name, wrong
from headstack.studies.study_types import DerivedTable, Grid

FILE = "fit.toml"
RESULT_FILE = "found.json"
"""File next to it with the result, written by ``benches/fits.py``."""
FOLDER = "fits"
"""Subfolder of a study, with a folder for each of its inverse studies."""

UNKNOWNS_MAX = 21
"""Maximum number of dimensions of Sobol points."""

_BLANK = re.compile(r"\{([A-Za-z_]\w*)\}")
"""A single word in braces occurs neither in inline tables of TOML nor in SQL."""


@dataclass(frozen=True)
class Unknown:
    """A value that a document does not state."""

    name: str
    description: str
    why: str
    """Reason for the range of values."""
    axis: Axis
    """Values by share: equal shares (of 0 to 1) are equally likely."""

    @property
    def prior(self) -> str:
        """Describes its prior."""
        if isinstance(self.axis, Listed):
            return ", ".join(self.axis.values)
        low, high = self.axis.at(0.0), self.axis.at(1.0 - 1e-12)
        return f"{low} to {high}{', by ratios' if self.axis.log else ''}"


@dataclass(frozen=True)
class Fit:
    """An inverse study as its file states it: a study with blanks."""

    name: str
    """``STUDY/NAME``, or the name of a standalone folder."""
    file: Path
    folder: Path
    study: Path | None
    """The folder of its study."""
    title: str
    question: str
    summary: str
    unknowns: tuple[Unknown, ...]
    grids: tuple[Grid, ...]
    tables: tuple[DerivedTable, ...]
    sql: str
    tolerance: Tolerance
    held_out: tuple[str, ...]
    lines: Mapping[str, int]

    def error(self, path: str, message: str) -> InputError:
        """Returns an error at the key ``path``, with its line."""
        return wrong(self.file, self.lines, path, message)

    def filled(self, setting: Mapping[str, str], folder: Path) -> Study:
        """Returns the study with a setting in its blanks, and its files in ``folder``, replacing another setting's."""
        texts = {
            folder / path.name: _filled(text_of(path), setting) if has_blanks else text_of(path)
            for path, has_blanks in self._files()
        }
        for place, text in texts.items():
            if not place.is_file() or place.read_text(encoding="utf-8") != text:
                # Settings replace files that were already read: the folder is ours, and contains no user input.
                place.write_text(text, encoding="utf-8")
        claim = dict.fromkeys(("contradicted", "missing")) | {"id": "figures", "sql": self.sql}
        parts = {"grids": self.grids, "tables": self.tables, "claims": (claim,)}
        return Study(
            name=self.name,
            file=self.file,
            folder=folder,
            csv=self._csv(),
            title=self.title,
            question=self.question,
            sources=(),
            summary=self.summary,
            published=(),
            chosen=(),
            open=(),
            tolerances={},
            pictures=(),
            lines=self.lines,
            **{key: tuple(_filled_in(part, setting) for part in items) for key, items in parts.items()},
        )

    def _files(self) -> Iterator[tuple[Path, bool]]:
        """Yields the descriptions next to it, and whether they may have blanks: those of its study have none."""
        own = {path.name: path for path in sorted(self.folder.glob("*.toml")) if path.name != FILE}
        for path in sorted(self.study.glob("*.toml")) if self.study is not None else ():
            if path.name not in own and path.name != STUDY_FILE:
                yield path, False
        for path in own.values():
            yield path, True

    def _csv(self) -> tuple[Path, ...]:
        """Returns the CSV files of its own and its study that queries name; the others need not be read for each
        setting.
        """
        words = set(re.findall(r"\w+", " ".join([self.sql, *(table["sql"] for table in self.tables)])))
        folders = (*((self.study,) if self.study is not None else ()), self.folder)
        paths = (path for folder in folders for path in sorted(folder.glob("*.csv")))
        return tuple({table_name(path): path for path in paths if table_name(path) in words}.values())

    def blanks(self) -> Iterator[tuple[str, str]]:
        """Yields each blank, and its position: the path of a key, or a file with its line."""
        for key, value in (("grids", self.grids), ("tables", self.tables), ("sql", self.sql)):
            for path, text in _texts(key, value):
                for name in _BLANK.findall(text):
                    yield name, path
        for file, has_blanks in self._files():
            for number, line in enumerate(text_of(file).splitlines() if has_blanks else (), 1):
                for name in _BLANK.findall(line):
                    yield name, f"{file}:{number}"


def _filled(text: str, setting: Mapping[str, str]) -> str:
    return _BLANK.sub(lambda blank: setting[blank[1]], text)


def _filled_in(value: Any, setting: Mapping[str, str]) -> Any:
    """Fills all texts of a value."""
    if isinstance(value, str):
        return _filled(value, setting)
    if isinstance(value, list):
        return [_filled_in(item, setting) for item in value]
    if isinstance(value, dict):
        return {key: _filled_in(item, setting) for key, item in value.items()}
    return value


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yields the texts of a value, each with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _texts(f"{path}[{place}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(f"{path}.{key}", item)


def listed() -> list[str]:
    """Returns the names of the inverse studies shipped with headstack, ``STUDY/NAME``."""
    return sorted(f"{path.parents[2].name}/{path.parent.name}" for path in SHIPPED.glob(f"*/{FOLDER}/*/{FILE}"))


def of_study(name: str) -> list[str]:
    """Returns the inverse studies of a name or folder: itself, or all of a study's.

    Raises ``InputError`` if there are none.
    """
    if name in listed() or (Path(name) / FILE).is_file():
        return [name]
    for folder in (Path(name), SHIPPED / name):
        folders = [str(path.parent) for path in sorted(folder.glob(f"{FOLDER}/*/{FILE}"))]
        if folders:
            return folders if folder == Path(name) else [f"{name}/{Path(folder_name).name}" for folder_name in folders]
    raise InputError(
        f"inverse study {name!r} is unknown; allowed: {', '.join(listed()) or 'none'}, or a folder with a {FILE}"
    )


def load(name: str | os.PathLike[str]) -> Fit:
    """Loads the inverse study ``STUDY/NAME``, or the one in a folder.

    Raises ``InputError`` with file, line and key if there is none, or it is invalid.
    """
    text = os.fspath(name)
    (name_found,) = of_study(text) if len(of_study(text)) == 1 else (None,)
    if name_found is None:
        raise InputError(f"{text}: has several inverse studies; name one of {', '.join(of_study(text))}")
    folder = SHIPPED / name_found.replace("/", f"/{FOLDER}/") if name_found in listed() else Path(name_found)
    file = folder / FILE
    read, lines = _native.read_fit(str(file), text_of(file))
    stated = stated_in(read)
    parent = folder.parent.parent
    study = parent if folder.parent.name == FOLDER and (parent / STUDY_FILE).is_file() else None
    unknowns = tuple(_unknown(file, lines, place, unknown) for place, unknown in enumerate(stated.pop("unknowns")))
    tolerance = Tolerance.parse(stated["tolerance"])
    if tolerance is None:
        raise wrong(
            file,
            lines,
            "tolerance",
            f"{stated['tolerance']!r} is not a tolerance; use a percentage such as 5%, or an amount",
        )
    stated |= {"tolerance": tolerance, "unknowns": unknowns}
    called = folder.name if study is None else f"{study.name}/{folder.name}"
    fit = Fit(name=called, file=file, folder=folder, study=study, lines=lines, **stated)
    _check(fit)
    return fit


def _unknown(file: Path, lines: Mapping[str, int], place: int, stated: Mapping[str, Any]) -> Unknown:
    """Returns an unknown with its values. Raises ``InputError`` if it is invalid."""

    def refuse(key: str, message: str) -> InputError:
        return wrong(file, lines, f"unknowns[{place}].{key}", message)

    values, low, high = stated["values"], stated["low"], stated["high"]
    if not _BLANK.fullmatch(f"{{{stated['name']}}}"):
        raise refuse("name", f"{stated['name']!r} cannot name a blank; use letters, digits and _")
    if bool(values) == (low is not None or high is not None):
        raise refuse("values" if values else "low", "needs either values, or low and high")
    if values:
        for key in ("log", "whole", "unit"):
            if stated[key]:
                raise refuse(key, "applies only to low and high, not to values")
        if len(values) < 2 or len({*values}) < len(values):
            raise refuse("values", "must be two or more different values")
        return Unknown(stated["name"], stated["what"], stated["why"], Listed(tuple(values)))
    for key, end in (("low", low), ("high", high)):
        if end is None:
            raise refuse(key, "this key is missing; a range needs low and high")
        if stated["whole"] and end != round(end):
            raise refuse(key, f"{end:g} is not a whole number")
    if not low < high:
        raise refuse("low", f"the range {low:g} to {high:g} is empty; put the lower end first")
    if stated["log"] and low <= 0:
        raise refuse("low", "a range by ratios must begin above 0")
    axis = Range(low, high, stated["unit"], None, stated["log"], stated["whole"])
    return Unknown(stated["name"], stated["what"], stated["why"], axis)


def _check(fit: Fit) -> None:
    """Rejects blanks without an unknown, and unknowns without a blank."""
    names = [unknown.name for unknown in fit.unknowns]
    if not 1 <= len(names) <= UNKNOWNS_MAX:
        raise fit.error("unknowns", f"{len(names)} unknowns; must be 1 to {UNKNOWNS_MAX}")
    for place, name in enumerate(names):
        if names.index(name) != place:
            raise fit.error(f"unknowns[{place}].name", f"{name!r} is used twice")
    stand: set[str] = set()
    for name, path in fit.blanks():
        if name not in names:
            message = f"unknown {name!r} is not defined; allowed: {', '.join(names)}"
            raise InputError(f"{path}: {message}") if path.startswith(str(fit.folder)) else fit.error(path, message)
        stand.add(name)
    for place, name in enumerate(names):
        if name not in stand:
            raise fit.error(f"unknowns[{place}].name", f"no grid, query or file contains the blank {{{name}}}")
    for place, figure in enumerate(fit.held_out):
        if figure in fit.held_out[:place]:
            raise fit.error(f"held_out[{place}]", f"{figure!r} is named twice; name each figure once")


def acceptable(study: Study) -> Study:
    """Checks the names of a filled study like those of any other."""
    check(study)
    return study
