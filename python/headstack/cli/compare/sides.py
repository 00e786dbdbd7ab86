"""The two sides of a comparison, from the kinds of the files that are named."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from headstack._native import InputError
from headstack.cli.recognition import BASELINE, COMPARABLE, FIO, RESULTS, Recognized, recognize
from headstack.comparison.differences.runs import read as runs_of
from headstack.results.results import Results

Form: TypeAlias = Literal["points", "runs"]
"""Points of one run each, or sets of runs."""

SYSTEM_KINDS = ("drive", "array", "volume")
SUFFIXES = (".json", ".csv", ".parquet")
"""File kinds whose readers report errors in the file."""
ALLOWED = "compare takes results (--json, --csv, --parquet of run, measure and sweep), fio JSON, and folders of them"


class Sides(NamedTuple):
    """Two sides of a comparison: the baseline first."""

    theirs: tuple[str, ...]
    ours: tuple[str, ...]

    @property
    def names(self) -> tuple[str, str]:
        """Short names of the sides: base names, unless these are equal."""
        theirs, ours = (name_of(side) for side in self)
        return (theirs, ours) if theirs != ours else (full_name_of(self.theirs), full_name_of(self.ours))


def name_of(sources: Sequence[str]) -> str:
    """Returns a short name of a set of files: a base name, a folder, or the common part of several names."""
    if len(sources) == 1:
        return os.path.basename(os.path.normpath(sources[0]))
    stems = {stem_of(source) for source in sources}
    if len(stems) == 1:
        return f"{stems.pop()}*"
    folders = {os.path.dirname(source) for source in sources}
    if len(folders) == 1 and (folder := os.path.basename(folders.pop())):
        return folder
    return f"{os.path.basename(sources[0])} and {len(sources) - 1} more"


def full_name_of(sources: Sequence[str]) -> str:
    """Returns the name of a set of files with its folder."""
    return sources[0] if len(sources) == 1 else f"{os.path.dirname(sources[0])}/{name_of(sources)}"


def stem_of(source: str) -> str:
    """Returns the name of a file without its suffix and the number of its repeat.

    >>> stem_of("runs/before-03.json"), stem_of("a2.json"), stem_of("fio.4k.7.json")
    ('before', 'a', 'fio.4k')
    """
    stem = os.path.basename(source)
    stem = stem.removesuffix(os.path.splitext(stem)[1])
    return re.sub(r"[-_.]?\d+$", "", stem) or stem


def is_system(source: str) -> bool:
    """Whether a source names a system of the catalogue, or describes one."""
    if not os.path.exists(source):
        return not source.endswith(SUFFIXES) and not glob.glob(source, recursive=True)
    recognized = recognize(source) if source.endswith(".toml") else None
    return recognized is not None and recognized.kind in SYSTEM_KINDS


def check(sources: Sequence[str]) -> dict[str, str]:
    """Returns the kind of each source. Raises ``InputError`` for a file that compare does not take; the message has
    the kind of the file, and the command that takes it."""
    return {source: _kind_of(source) for source in sources}


def _kind_of(source: str) -> str:
    if not os.path.exists(source):
        if glob.glob(source, recursive=True):
            return RESULTS
        raise InputError(f"{source}: no such file or folder; {ALLOWED}")
    recognized = recognize(source)
    if recognized is not None and recognized.kind in COMPARABLE:
        return recognized.kind
    if recognized is not None and recognized.kind not in ("image", "table"):
        raise InputError(f"{source}: {recognized.title}, which compare does not take; use: {_command(recognized)}")
    if source.endswith(SUFFIXES) or os.path.isdir(source):
        # The reader reports the error.
        return RESULTS
    raise InputError(f"{source}: not recognized; {ALLOWED}")


def _command(recognized: Recognized) -> str:
    return recognized.command


def form_of(kinds: Mapping[str, str], first: str, second: str) -> Form:
    """Returns the form of comparison: points if both sources have one result for each load, otherwise runs."""
    if BASELINE in (kinds[first], kinds[second]) or any(not os.path.isfile(source) for source in (first, second)):
        return "runs"
    if any(source.endswith((".csv", ".parquet")) for source in (first, second)):
        return "points"
    modes = {source: modes_of(source) for source in (first, second) if kinds[source] == RESULTS}
    if FIO in (kinds[first], kinds[second]):
        return "points" if any(mode == {"simulated"} for mode in modes.values()) else "runs"
    if modes[first] != modes[second]:
        return "points"
    return "runs" if any(len(runs_of(source)) > 1 for source in (first, second)) else "points"


def modes_of(source: str) -> set[str]:
    """Returns the origins of the results in a file: ``measured``, ``simulated`` or ``live``."""
    results = Results.read(source)
    return {results.whole(index)["mode"] for index in range(len(results))}


def grouped(sources: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns groups of repeats, in the order of their first files: by folder, if there are two, otherwise by names
    without numbers.

    >>> grouped(["a1.json", "b1.json", "a2.json", "b2.json"])
    [('a1.json', 'a2.json'), ('b1.json', 'b2.json')]
    """
    folders = {os.path.dirname(source) for source in sources}
    groups: dict[str, list[str]] = {}
    for source in sources:
        key = os.path.dirname(source) if len(folders) == 2 else stem_of(source)
        groups.setdefault(key, []).append(source)
    return [tuple(group) for group in groups.values()]
