"""``Validation``: compares the simulator with measured traces of real drives, request by request."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from headstack import _native
from headstack._native import InputError
from headstack.io.atomic_files import write_text

PARAMETER_SUFFIXES = (".parv", ".diskspecs")
"""Suffixes of DiskSim's parameter files; the first that exists next to a trace is used."""


@dataclass(frozen=True)
class Validation:
    """One trace compared with the simulation of its drive; times in ms."""

    name: str
    """The trace's file name without suffix."""
    requests: int
    mean_measured_ms: float
    mean_simulated_ms: float
    demerit_ms: float
    """Root mean square horizontal distance of the two response-time distributions."""
    demerit_relative: float
    """The demerit divided by the measured mean."""
    demerit_disksim_ms: float
    """The demerit as DiskSim's own program computes it, from binned times."""
    paired_rms_ms: float
    """Root mean square error request by request."""
    pearson_r: float | None
    worst_percentile: float
    worst_percentile_error_ms: float
    """Simulated minus measured time at the worst percentile."""
    published_ms: float | None
    """The published demerit of DiskSim 4.0, if the folder states one."""
    unmapped: list[str]
    """DiskSim parameters without a counterpart in the model."""
    simulated_ms: list[float] = field(repr=False)
    """Response times in the order of the trace."""

    def figures(self) -> dict[str, object]:
        """Returns all values except the response times.

        >>> score = hs.Validation("t", 1, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, None, 50.0, 0.0, None, [], [1.0])
        >>> score.figures()["requests"]
        1
        """
        return {name: value for name, value in asdict(self).items() if name != "simulated_ms"}

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Writes the simulated response times, one per line.

        >>> score = hs.Validation("t", 1, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, None, 50.0, 0.0, None, [], [1.0])
        >>> score.dump("simulated.txt")
        >>> Path("simulated.txt").read_text()
        '1.000000\\n'
        """
        write_text(path, "".join(f"{value_ms:.6f}\n" for value_ms in self.simulated_ms))


def validate(
    folder: str | os.PathLike[str],
    *,
    progress: Callable[[float], object] | None = None,
    failed: Callable[[InputError], object] | None = None,
) -> list[Validation]:
    """Replays each ``X.trace`` of ``folder`` on the drive of ``X.parv`` or ``X.diskspecs``.

    All parameters come from these files; the queue depth is 1, as in the measurement. ``failed`` is called for each
    drive whose files cannot be read. Without ``failed``, the first such drive raises ``InputError``. A folder without
    traces always raises ``InputError``.

    >>> hs.validate("no-such-folder")
    Traceback (most recent call last):
    headstack.InputError: no-such-folder: no such folder
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    traces = sorted(folder.glob("*.trace"))
    if not traces:
        raise InputError(f"{folder}: contains no file NAME.trace")
    published = published_demerits(folder)
    scores: list[Validation] = []
    for done, trace in enumerate(traces, start=1):
        try:
            figures = _native.validate(os.fspath(trace), os.fspath(parameters_of(trace)))
        except InputError as error:
            if failed is None:
                raise
            failed(error)
        else:
            scores.append(Validation(trace.stem, published_ms=published.get(trace.stem), **figures))
        if progress is not None:
            progress(done / len(traces))
    return scores


def parameters_of(trace: Path) -> Path:
    """Returns the parameter file next to a trace."""
    candidates = [trace.with_suffix(suffix) for suffix in PARAMETER_SUFFIXES]
    parameters = next((path for path in candidates if path.is_file()), None)
    if parameters is None:
        raise InputError(f"{trace}: its folder has no parameter file; add {candidates[0].name} or {candidates[1].name}")
    return parameters


# For example: | Quantum Atlas 10K (`atlas10k`) | 10,000 | 3.89 | 0.2675 | 6.87 % |
_ROW = re.compile(r"^\|[^|]*\(`(?P<name>[^`]+)`\)\s*\|[^|]*\|[^|]*\|\s*(?P<demerit_ms>[\d.]+)\s*\|", re.MULTILINE)


def published_demerits(folder: Path) -> dict[str, float]:
    """Returns published demerits in ms by trace, from ``published.csv`` (``name,demerit_ms``), or from a table in the
    README of the folder or its parent."""
    table = folder / "published.csv"
    if table.is_file():
        with open(table, newline="", encoding="utf-8") as file:
            return {row["name"]: float(row["demerit_ms"]) for row in csv.DictReader(file)}
    for readme in (folder / "README.md", folder.resolve().parent / "README.md"):
        if readme.is_file():
            rows = list(_ROW.finditer(readme.read_text(encoding="utf-8")))
            if rows:
                return {row["name"]: float(row["demerit_ms"]) for row in rows}
    return {}
