"""``Campaign``: runs two commands alternately in the order ABBA, so that a drift affects both equally."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from headstack._native import InputError, RunError
from headstack.comparison.differences.difference import Difference
from headstack.comparison.differences.runs import Outcome, Run, Side, runs_of

PLACE = "{}"
"""Placeholder in a command for its results file."""
PAIRS_LEAST = 3
"""Minimum number of pairs; with fewer pairs the variation between runs is unknown."""
WARM_UP = "warm-up.json"
SAID_MAX = 300
"""Maximum number of characters quoted from a failed command's output."""


@dataclass(frozen=True)
class Campaign:
    """Two commands to compare, and the number of runs of each."""

    commands: tuple[str, str]
    pairs: int
    stop_early: bool
    """Whether to stop as soon as every cell has a verdict, with intervals that are valid at any stopping time."""
    warm_ups: int
    keep: str | None
    """The folder in which the results of each run are kept."""

    def __post_init__(self) -> None:
        if self.pairs < PAIRS_LEAST:
            raise InputError(
                f"--pairs: {self.pairs} is too few to estimate the variation between runs; use {PAIRS_LEAST} or more"
            )
        if (PLACE in self.commands[0]) != (PLACE in self.commands[1]):
            raise InputError(f"--run: only one command contains {PLACE}; put it into both commands or into neither")

    def run(self, judge: Callable[[Side, Side], Difference], progress: Callable[[float], object] | None) -> Difference:
        """Runs the commands pair by pair, and returns the result of ``judge``. If a signal ends the runs, complete
        pairs are kept. Raises ``RunError`` if a command fails."""
        sides: list[Side] = []
        with ExitStack() as open_folder:
            folder = Path(self.keep or open_folder.enter_context(TemporaryDirectory(prefix="headstack-")))
            folder.mkdir(parents=True, exist_ok=True)
            try:
                for pair, runs in enumerate(self._pairs(folder), 1):
                    sides = [Side(name, tuple(own)) for name, own in zip(("first", "second"), runs, strict=True)]
                    if progress is not None:
                        progress(pair / self.pairs)
                    if self.stop_early and pair >= PAIRS_LEAST and judge(*sides).is_decided:
                        break
            except KeyboardInterrupt:
                if not sides or len(sides[0].runs) < PAIRS_LEAST:
                    raise
        return judge(*sides)

    def _pairs(self, folder: Path) -> Iterator[tuple[list[Run], list[Run]]]:
        """Yields all runs of both sides so far after each pair; pairs run alternately as A, B and B, A."""
        for command in self.commands * self.warm_ups:
            _run(command, folder / WARM_UP)
        (folder / WARM_UP).unlink(missing_ok=True)
        runs: tuple[list[Run], list[Run]] = ([], [])
        for pair in range(self.pairs):
            for side in (0, 1) if pair % 2 == 0 else (1, 0):
                runs[side].append(_run(self.commands[side], folder / f"{pair + 1:03}-{'ab'[side]}.json"))
            yield runs


def _run(command: str, place: Path) -> Run:
    """Runs a command once. Returns its results, or its duration if it has no results file."""
    has_results = PLACE in command
    if has_results:
        # A measurement does not append to an existing file.
        place.unlink(missing_ok=True)
    began = time.monotonic()
    done = subprocess.run(
        command.replace(PLACE, str(place)), shell=True, capture_output=True, text=True, errors="replace", check=False
    )
    elapsed_s, at_s = time.monotonic() - began, time.time()
    if done.returncode != 0:
        output = " ".join((done.stderr or done.stdout).split())[-SAID_MAX:]
        raise RunError(f"{command}: exit code {done.returncode}: {output or 'no output'}")
    if not has_results:
        return Run(place.stem, at_s, 0.0, {"": Outcome({"elapsed_s": elapsed_s})})
    try:
        text = place.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise RunError(f"{command}: wrote no results to {place}: {os.strerror(error.errno or 0)}") from None
    runs: Sequence[Run] = runs_of(text, place.name, at_s)
    if len(runs) != 1:
        raise RunError(f"{command}: its file must contain one run, not {len(runs)}")
    return Run(runs[0].source, at_s, runs[0].resolution, runs[0].outcomes)
