"""`write_catalogue`: the shipped errors, from which the intervals of all commands are learned."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from headstack.comparison.scoreboard.scoring import Scored
from headstack.io.atomic_files import write_text
from headstack.results.intervals import calibration


def write_catalogue(scored: Iterable[Scored], path: Path = calibration.CATALOGUE) -> None:
    """Writes the errors by class, one device per line: logarithms of ratios only."""
    classes: dict[str, list[str]] = {}
    for of_class, entry in scored:
        classes.setdefault(of_class, []).append(json.dumps(entry, separators=(",", ":")))
    lines = ['"' + name + '": {"devices": [\n' + ",\n".join(own) + "\n]}" for name, own in sorted(classes.items())]
    write_text(path, '{"version": 1, "classes": {\n' + ",\n".join(lines) + "\n}}\n")
