"""Points of fio's JSON for comparison with predictions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from headstack._native import InputError
from headstack.catalogue.system import load_system
from headstack.comparison.points import FIGURES, SidePoint
from headstack.comparison.shapes import Shape, shape_of_fio
from headstack.io.encodings import decoded
from headstack.measurement.fio.loads import SUFFIXES, Load, loads_of
from headstack.results.results import Results
from headstack.simulation.runs import Progress, System, run

MARKS = ('"fio version"', '"jobs"', '"client_stats"')
"""Keys of fio's documents."""


def is_fio(path: str | os.PathLike[str]) -> bool:
    """Whether a file contains JSON of fio, even between other lines."""
    if not os.fspath(path).endswith(SUFFIXES):
        return False
    try:
        with open(path, "rb") as file:
            text = decoded(file.read())
    except OSError:
        return False
    return text.lstrip()[:1] != "[" and '"headstack' not in text[:200] and any(mark in text for mark in MARKS)


def points_of_fio(path: str | os.PathLike[str]) -> list[SidePoint]:
    """Returns the loads of a file that have one size, pattern and depth. Raises ``InputError`` if there is no such
    load."""
    points = [_seen(load, shape, path) for load in loads_of(path) if (shape := shape_of_fio(load.row)) is not None]
    if not points:
        raise InputError("has no load with one block size, pattern and queue depth", file=os.fspath(path))
    return points


def _seen(load: Load, shape: Shape, path: str | os.PathLike[str]) -> SidePoint:
    return SidePoint(
        system=Path(path).name,
        part=None,
        workload=load.name.partition(", depth ")[0],
        mode=None,
        load=f"depth {shape.depth}",
        seed=1,
        requests=load.row["requests"],
        figures={name: load.row[name] for name in FIGURES},
        half_width_ms=None,
        is_open=False,
        intervals=[],
        kind="measured",
        shape=shape,
    )


def simulate_points(points: Sequence[SidePoint], system: System, progress: Progress | None) -> Results:
    """Simulates the loads of fio's results on a system."""
    loaded = load_system(system) if isinstance(system, str | os.PathLike) else system
    results: Results | None = None
    for shape in dict.fromkeys(point.shape for point in points if point.shape is not None):
        options = {
            "size": f"{shape.size_bytes}B",
            "read": str(shape.read_percent),
            "random": str(shape.random_percent),
            "depth": shape.depth,
        }
        simulated = run(loaded, progress=progress, **options)  # type: ignore[arg-type]
        results = simulated if results is None else results.and_others(simulated)
    assert results is not None
    return results
