"""`scoreboard`: scores measured devices, or shows the shipped errors. See docs/scoreboard.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headstack.comparison.scoreboard.measured_device import read_folder
from headstack.comparison.scoreboard.scored_devices import ScoredDevices
from headstack.comparison.scoreboard.scoring import score
from headstack.comparison.scoreboard.tables import report_of
from headstack.results.intervals import calibration
from headstack.results.intervals.calibration import ClassScores

if TYPE_CHECKING:
    from headstack.report.figures import Report


class Scoreboard(ScoredDevices):
    """Scored devices by class, with a report."""

    @classmethod
    def shipped(cls) -> Self:
        """Returns the scoreboard of the devices whose errors ship with headstack.

        >>> "disk" in hs.Scoreboard.shipped().classes
        True
        """
        return cls(calibration.catalogue_scores())

    def report(self) -> Report:
        """Returns the scoreboard as a report.

        >>> hs.Scoreboard.shipped().report().title
        'Scoreboard'
        """
        return report_of(self)


def scoreboard(
    folders: Iterable[str | os.PathLike[str]] = (),
    *,
    alone: bool = False,
    progress: Callable[[float], object] | None = None,
) -> Scoreboard:
    """Scores the devices of these folders, each a TOML and a CSV file (docs/scoreboard.md); without folders, returns
    the shipped scoreboard.

    Intervals are learned from the shipped devices and those of the folders, never from the model that they are compared
    with. ``alone`` leaves the shipped devices out. A shipped model that a folder has too is replaced by the folder's.

    >>> hs.scoreboard(["no-such-folder"])
    Traceback (most recent call last):
    headstack.InputError: no-such-folder: no such folder
    """
    read = [device for folder in folders for device in read_folder(Path(folder))]
    if not read:
        return Scoreboard.shipped()
    entries: dict[str, list[dict[str, Any]]] = {}
    for of_class, entry in score(read, progress):
        entries.setdefault(of_class, []).append(entry)
    scored = {name: calibration.class_scores(name, own, {}) for name, own in entries.items()}
    names = frozenset(device.device for device in read)
    if alone:
        return Scoreboard(scored, names)
    return Scoreboard({**calibration.catalogue_scores(), **_joined(scored, names)}, names)


def _joined(scored: Mapping[str, ClassScores], names: frozenset[str]) -> dict[str, ClassScores]:
    """Returns scored classes with the shipped devices of other models."""
    shipped = calibration.catalogue_scores()
    joined = {}
    for name, scores in scored.items():
        others = shipped.get(name, ClassScores(name)).devices
        kept = tuple(device for device in others if device.name not in names)
        joined[name] = scores._replace(devices=(*scores.devices, *kept))
    return joined
