"""``Study``: a study as its file states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstack._native import InputError
from headstack.studies.study_types import Chosen, Claim, DerivedTable, Grid, Open, Picture, Published


@dataclass(frozen=True)
class Study:
    """A study as its file states it: see ``shipped/README.md``."""

    name: str
    """The name of its folder."""
    file: Path
    """The file that states it."""
    folder: Path
    """The folder of the files that it names."""
    csv: tuple[Path, ...]
    """CSV files that are its tables."""
    title: str
    question: str
    sources: tuple[str, ...]
    summary: str
    grids: tuple[Grid, ...]
    published: tuple[Published, ...]
    tables: tuple[DerivedTable, ...]
    chosen: tuple[Chosen, ...]
    open: tuple[Open, ...]
    tolerances: Mapping[str, str]
    claims: tuple[Claim, ...]
    pictures: tuple[Picture, ...]
    lines: Mapping[str, int]
    """The line of each key, by its path."""
    choices: tuple[Mapping[str, Any], ...] = ()
    """Questions for ``headstack choose``: its options, as the file states them."""

    def error(self, path: str, message: str) -> InputError:
        """Returns an error at the key ``path``, such as ``claims[3].tolerance``, with its line."""
        return wrong(self.file, self.lines, path, message)

    def table_names(self) -> dict[str, Path]:
        """Returns the tables next to the study, by name."""
        return {table_name(path): path for path in self.csv}


def query_of(claim: Claim) -> str:
    """Returns the query of a claim."""
    assert claim["sql"] is not None
    return claim["sql"]


def table_name(path: Path) -> str:
    """Returns the name of a CSV file in queries."""
    return path.stem.replace("-", "_")


def wrong(file: Path, lines: Mapping[str, int], path: str, message: str) -> InputError:
    """Returns an error at the key ``path`` of a file, with its line or that of its parent."""
    ancestor = path
    while ancestor and ancestor not in lines:
        ancestor = ancestor[: max(ancestor.rfind("."), ancestor.rfind("["), 0)]
    place = f"{file}:{lines[ancestor]}" if ancestor else f"{file}"
    return InputError(f"{place}: {path}: {message}")
