"""``Crystal``: the tests of CrystalDiskMark under their names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from headstack._native import Field, InputError, format_bytes
from headstack.io.values import choice, duration_ns, percent, size_bytes
from headstack.measurement.access import Access, Progress
from headstack.measurement.measurement import Opened, Step
from headstack.measurement.tests.classic.outcome import (
    NOTHING_ALLOWED,
    Outcome,
    at_least,
    join_results,
    own_file,
    part_of,
    reason_not_to_write,
    requests,
)
from headstack.results.results import Results
from headstack.results.words import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from headstack.measurement.tests.classic.figures import Score, ScoreFigures, Test

RUNS, TIME, PAUSE, SIZE = 5, "5s", "5s", "1GiB"

MIX_READ = "70%"
"""Default share of reads in CrystalDiskMark's mixed tests."""

KIB = 1 << 10

SEQ1M_Q8T1 = Test("SEQ1M Q8T1", 1024 * KIB, False, 8, 1)

SEQ1M_Q1T1 = Test("SEQ1M Q1T1", 1024 * KIB, False, 1, 1)

SEQ128K_Q32T1 = Test("SEQ128K Q32T1", 128 * KIB, False, 32, 1)

RND4K_Q32T16 = Test("RND4K Q32T16", 4 * KIB, True, 32, 16)

RND4K_Q32T1 = Test("RND4K Q32T1", 4 * KIB, True, 32, 1)

RND4K_Q1T1 = Test("RND4K Q1T1", 4 * KIB, True, 1, 1)

PROFILES = {
    "default": (SEQ1M_Q8T1, SEQ1M_Q1T1, RND4K_Q32T1, RND4K_Q1T1),
    "nvme": (SEQ1M_Q8T1, SEQ128K_Q32T1, RND4K_Q32T16, RND4K_Q1T1),
}
"""The profiles of version 8."""


@dataclass(frozen=True)
class Crystal(Outcome):
    """The scores of a target."""

    fields = (
        Field("test", "text", "", "the test of the profile"),
        Field("kind", "text", "", "read, write or mix"),
        Field("mb_per_s", "figure", "10^6 bytes/s", "throughput of the best run"),
        Field("iops", "figure", "1/s", "IOPS of the best run"),
        Field("latency_us", "figure", "us", "lowest mean latency of a run"),
        Field("runs", "count", "", "number of runs"),
        Field("worst_mb_per_s", "figure", "10^6 bytes/s", "throughput of the worst run"),
    )

    target: str
    profile: str
    used_bytes: int
    scores: list[Score]
    left_out: str | None
    """The reason why there are no write tests."""

    @property
    def test(self) -> str:
        """The name of the test."""
        return "crystal"

    def figures(self) -> Mapping[str, object]:
        """``target``, ``profile``, ``used_bytes``, ``left_out``, and the ``scores``, with all runs in MB/s."""
        return {
            "target": self.target,
            "profile": self.profile,
            "used_bytes": self.used_bytes,
            "left_out": self.left_out,
            "scores": [{**score.figures(), "all_mb_per_s": score.mb_per_s} for score in self.scores],
        }

    def rows(self) -> list[ScoreFigures]:
        """Returns a row for each test and kind."""
        return [score.figures() for score in self.scores]

    def answer(self) -> str:
        """Returns a sentence with the fastest and the slowest test."""
        scores = sorted(self.scores, key=lambda score: -score.best_mb_per_s)
        ends = scores if len(scores) < 2 else (scores[0], scores[-1])
        results = [f"{score.test.name} {score.kind} {number(score.best_mb_per_s)} MB/s" for score in ends]
        return f"{self.target}: {' down to '.join(results)}." if results else f"{self.target}: no test was run."

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plots the scores as bars."""
        from headstack.measurement.tests.classic import pictures  # start-up time

        return pictures.drawn(
            pictures.crystal(self.target, self.used_bytes, self.scores, self.results[0]["seed"]), path
        )


def crystal(
    target: str | os.PathLike[str],
    access: Access = NOTHING_ALLOWED,
    *,
    profile: str = "default",
    size: str = SIZE,
    runs: int = RUNS,
    time: str = TIME,
    pause: str = PAUSE,
    mix: str | None = None,
    progress: Progress | None = None,
) -> Crystal:
    """Runs the four tests of CrystalDiskMark 8, with reads and, if ``access`` permits it, with writes.

    The tests use the first ``size`` of the target; in a folder, a file of this size is created and removed afterwards.
    Each test has a warm-up run, then ``runs`` of ``time``, the best of which counts; tests are separated by ``pause``.
    ``mix`` adds tests with this percentage of reads. Raises ``InputError`` if the target is too small.

    >>> permission = hs.Access(create="4MiB", buffered=True)
    >>> hs.crystal("c.bin", permission, size="4MiB", runs=1, time="5ms", pause="0s").profile
    'default'
    """
    path = os.fspath(target)
    tests = PROFILES[choice("profile", profile, tuple(PROFILES))]
    at_least("runs", runs, 1)
    time_ns, pause_ns = duration_ns("time", time), duration_ns("pause", pause)
    if time_ns <= 0 or pause_ns < 0:
        raise InputError(f"time, pause: {time} and {pause} are out of range; time must be above 0s, pause 0s or longer")
    with own_file(path, access, size) as (file, allowed):
        left_out = reason_not_to_write(file, allowed)
        if mix is not None and left_out is not None:
            raise InputError(f"{left_out}", key="mix")
        opened = Opened([file], allowed, writing=left_out is None)
        span = _first_part(opened, size)
        kinds = {"read": 100.0}
        if left_out is None:
            kinds["write"] = 0.0
        if mix is not None:
            kinds["mix"] = percent("mix", mix)
        scores: list[Score] = []
        made: list[Results] = []
        for kind, test in product(kinds, tests):
            if made and opened.ended is None:
                opened.pause(pause_ns / 1e9)
            if opened.ended is None:
                made.append(opened.measure(_steps(test, kind, kinds[kind], span, runs, time_ns), progress))
                scores.append(_score(test, kind, made[-1]))
        return Crystal(join_results(made), opened.ended, path, profile, span[1], scores, left_out)


def _first_part(opened: Opened, size: str) -> tuple[int, int]:
    """Returns the part that the tests use, a multiple of the largest request size. On a small target it is smaller than
    requested.
    """
    largest = max(test.size_bytes for tests in PROFILES.values() for test in tests)
    _, length = part_of(opened, None)
    used = min(length, size_bytes("size", size)) // largest * largest
    if not used:
        raise InputError(f"{opened.paths[0]}: the target and --size must have at least {format_bytes(largest)}")
    return 0, used


def _steps(
    test: Test, kind: str, read_percent: float, span: tuple[int, int], runs: int, time_ns: int
) -> Sequence[Step]:
    """Returns the runs of a test, preceded by a warm-up run."""
    described = requests(
        f"{test.name} {kind}",
        test.size_bytes,
        read_percent=read_percent,
        random_percent=100 if test.is_random else 0,
        depth=test.queue * test.threads,
    )
    prepared = {**described, "warm_up": {"requests": 0, "time": f"{time_ns}ns"}}
    return [
        Step(
            described if run else prepared,
            span,
            {"time_ns": time_ns},
            {"test": test.name, "kind": kind, "run": str(run + 1)},
            seed=run + 1,
            threads=test.threads,
        )
        for run in range(runs)
    ]


def _score(test: Test, kind: str, results: Results) -> Score:
    rows = [row for row in results if row["requests"]]
    return Score(test, kind, [row["mb_per_s"] for row in rows], [row["mean_ms"] for row in rows])
