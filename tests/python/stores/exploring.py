"""``tried``: runs a case from its recording to its verdict."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import headstack as hs
from headstack.crash.findings import Finding
from headstack.live.filesystems import MEMORY, PATH, file_system
from stores.cases import Case
from stores.programs import command
from stores.recording import BEGIN, recorded
from stores.verdicts import BrokenError, Kind, kind_of


@dataclass(frozen=True)
class Outcome:
    """The result of a case. `kinds` counts faults of states, including those by which findings were reduced."""

    case: Case
    states: int
    possible: float | None
    largest_window: int
    findings: list[Finding]
    kinds: Counter[Kind]
    recording_s: float
    seconds: float
    recordings: int = 1

    @property
    def verdict(self) -> str:
        return self.case.verdict(set(self.kinds))

    @property
    def least(self) -> int | None:
        """The minimum number of missing and torn writes of an expected fault."""
        found = [one for one in self.findings if kind_of(one.message) in self.case.must]
        return min((len(one.missing) + len(one.torn) for one in found), default=None)

    @property
    def is_as_expected(self) -> bool:
        return self.verdict in ("found", "none")


def lacks_of(case: Case) -> str | None:
    """Returns a requirement of a case that this machine lacks."""
    if os.geteuid() != 0:
        return "loop devices and mounts need root"
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not os.access(device, os.R_OK | os.W_OK):
            return f"no {device}"
    maker = file_system(case.file_system).make[0]
    if shutil.which(maker, path=PATH) is None:
        return f"{maker} is not installed"
    try:
        command(case.store, Path("/"), case.settings)
    except hs.RunError as error:
        return str(error)
    return None


def tried(case: Case, budget: str, seed: int, until_seen: bool = False) -> Outcome:
    """Records a case, and tries the states that power losses may leave.

    With `until_seen` it ends when all expected faults were seen, and one of them was reduced.
    """
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headstack-case-", dir=MEMORY) as name:
        folder = Path(name)
        recorded(case, folder / "journal", folder)
        recorded_s = time.monotonic()
        kinds = folder / "kinds"
        kinds.touch()

        def check(path: str, marks: Sequence[str]) -> None:
            try:
                case.check(Path(path), marks)
            except BrokenError as broken:
                # Findings are merged by missing writes, which would hide rarer kinds.
                with kinds.open("a", encoding="utf-8") as file:
                    file.write(f"{broken.kind}\n")
                raise

        def seen() -> list[Kind]:
            return [Kind(line) for line in kinds.read_text(encoding="utf-8").splitlines()]

        def look(states: int, spent: float, findings: int) -> None:
            if until_seen and findings and case.must and case.must <= set(seen()):
                raise KeyboardInterrupt

        # btrfs identifies devices by their contents: two images of one file system would be the same.
        jobs = 1 if case.file_system == "btrfs" else None
        exploration = hs.crash.open(folder / "journal").explore(
            check,
            budget=budget,
            tear="any" if case.torn else "none",
            atom=str(case.torn) if case.torn else None,
            start=BEGIN,
            jobs=jobs,
            seed=seed,
            progress=look,
        )
        coverage = exploration.coverage
        return Outcome(
            case,
            coverage.states,
            coverage.possible,
            coverage.largest_window,
            exploration.findings,
            Counter(seen()),
            recorded_s - started_s,
            time.monotonic() - started_s,
        )


def tried_for(case: Case, states: int, seed: int) -> Outcome:
    """Tries as many recordings as this number of states requires."""
    whole = tried(case, str(states), seed)
    while whole.states < states:
        seed += 1
        more = tried(case, str(states - whole.states), seed)
        whole = replace(
            whole,
            states=whole.states + more.states,
            findings=whole.findings + more.findings,
            kinds=whole.kinds + more.kinds,
            largest_window=max(whole.largest_window, more.largest_window),
            recording_s=whole.recording_s + more.recording_s,
            seconds=whole.seconds + more.seconds,
            recordings=whole.recordings + 1,
        )
    return whole
