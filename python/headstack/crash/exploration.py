"""Exploring: states are looked at until the budget is spent, and what fails is reduced to the least that does."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstack import _native
from headstack._native import InputError, format_bytes
from headstack.atomic_files import write_text
from headstack.crash.checks import Check, Function, check_of
from headstack.crash.files import files_of, repair
from headstack.crash.minimizing import minimized, needed
from headstack.crash.workers import Bench, State, Workers
from headstack.values import duration_ns

if TYPE_CHECKING:
    from headstack.crash.recording import Recording, Told

NEEDED_MAX = 64
"""Of a finding with more surviving writes than this, nobody looks which of them it takes."""


@dataclass(frozen=True)
class Write:
    """A write, or a trim, that a crash has taken."""

    number: int
    """Among the changes of the recording."""
    what: str
    """``write``, ``zeros`` or ``trim``."""
    offset_bytes: int
    length_bytes: int
    submitted_ns: int
    is_metadata: bool
    files: tuple[str, ...] = ()
    """What of an ext4 file system lies there, where debugfs can tell."""
    kept: tuple[tuple[int, int], ...] | None = None
    """The atoms that are there, where it is torn."""

    def told(self) -> str:
        """In words."""
        part = "" if self.kept is None else f", of which atoms {', '.join(f'{a}..{b}' for a, b in self.kept)} are there"
        place = f" ({'; '.join(self.files)})" if self.files else ""
        size, at = format_bytes(self.length_bytes), self.offset_bytes
        return f"{self.what} {self.number} of {size} at byte {at:,}{place}{part}"


@dataclass
class Finding:
    """What fails, reduced to the least."""

    message: str
    """What the check says of it."""
    state: State
    """As the explorer knows it."""
    missing: list[Write]
    torn: list[Write]
    needed: list[Write] | None
    """Writes that were open and have to be there for it; None where this was not looked for."""
    marks: int
    last_mark: str | None
    at_ns: int
    """When power fails, by the recording's clock."""
    count: int = 1
    """States that failed and miss the same writes, this one among them."""
    reproducer: str | None = None

    @property
    def is_of_no_write(self) -> bool:
        """Whether it fails without anything missing: at that moment, whatever a crash takes."""
        return not self.missing and not self.torn

    def told(self) -> str:
        """In words."""
        lines = [self.message]
        after = "before any mark" if self.last_mark is None else f"after mark {self.marks} ({self.last_mark})"
        lines.append(f"  power fails {self.at_ns / 1e9:.6f} s into the recording, {after}")
        lines += [f"  missing: {write.told()}" for write in self.missing]
        lines += [f"  torn: {write.told()}" for write in self.torn]
        if self.is_of_no_write:
            lines.append("  nothing is missing: all that was sent is there")
        if self.needed:
            lines.append(f"  while there: {', '.join(write.told() for write in self.needed)}")
        if self.count > 1:
            lines.append(f"  {self.count:,} states fail that miss this")
        if self.reproducer is not None:
            lines.append(f"  headstack crash replay {shlex.quote(self.reproducer)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Coverage:
    """How much of what there is was looked at."""

    states: int
    """States that were looked at, of different contents or marks."""
    duplicates: int
    """Subsets that were left out since their contents had been there."""
    subsets: int
    """Subsets of open writes that were tried, duplicates among them."""
    possible: float
    """Subsets that there are."""
    windows: int
    """Moments at which crashes were tried."""
    whole_windows: int
    """Those of which all subsets were tried."""
    largest_window: int
    """Writes that were open at once."""

    def told(self) -> str:
        """In words."""
        possible = f"{self.possible:,.0f}" if self.possible < 1e7 else f"{self.possible:.2g}"
        share = self.subsets / self.possible if self.possible else 1.0
        exact = f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
        return (
            f"{self.states:,} states in {self.windows:,} windows of up to {self.largest_window:,} open writes; "
            f"{self.subsets:,} of {possible} subsets ({exact}), all of {self.whole_windows:,} windows"
        )


@dataclass
class Exploration:
    """What an exploration came to."""

    findings: list[Finding]
    coverage: Coverage
    violations: int
    """States that failed."""
    others: dict[str, int] = field(default_factory=dict)
    """States that failed and were not reduced, by what the check says of them."""
    unsteady: int = 0
    """States that failed once and not again."""
    seconds: float = 0.0
    ended_by: str = "budget"
    """``budget``, ``complete`` (there is nothing new), or ``interrupted``."""
    seed: int = 0

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return bool(self.violations)

    def __str__(self) -> str:
        lines = [f"{number}. {finding.told()}" for number, finding in enumerate(self.findings, 1)]
        lines += [f"and {count:,} states: {message}" for message, count in self.others.items()]
        if self.unsteady:
            lines.append(f"{self.unsteady:,} states failed once and not again: the check does not repeat itself")
        if not self.violations:
            lines.append("nothing found")
        else:
            lines.append(f"{self.violations:,} states fail")
        rate = self.coverage.states / self.seconds if self.seconds else 0.0
        ends = {"budget": "", "complete": "; there is nothing more", "interrupted": "; interrupted"}[self.ended_by]
        lines.append(
            f"{self.coverage.told()}; {self.seconds:.1f} s, {rate:,.0f} states a second, seed {self.seed}{ends}"
        )
        return "\n".join(lines)


def explore(
    recording: Recording,
    check: str | Function,
    *,
    budget: str | int | None,
    asked: dict[str, Any],
    jobs: int | None,
    findings_max: int,
    kept: Path | None,
    reproducers: Path | None,
    progress: Told | None,
) -> Exploration:
    """Looks at states; see ``Recording.explore``."""
    # Most who load this want to know what there is.
    import tempfile

    count = jobs if jobs is not None else len(os.sched_getaffinity(0))
    if count < 1:
        raise InputError(f"jobs: {count} is out of range; allowed: 1 or more")
    found = check_of(check)
    folder = _native.crash_folder(recording.native, recording.base, count + 1)
    with tempfile.TemporaryDirectory(prefix="headstack-crash-", dir=folder) as name:
        bench = Bench(recording.native, recording.base, asked["rules"], found, Path(name))
        explorer = Explorer(recording, bench, asked, Budget.of(budget), findings_max, kept, reproducers)
        with closing(Workers(bench, count)) as workers:
            return explorer.carried_out(workers, progress)


@dataclass(frozen=True)
class Budget:
    """When it is enough."""

    seconds: float = float("inf")
    states: float = float("inf")

    @staticmethod
    def of(given: str | int | None) -> Budget:
        """A time, or a number of states. Raises ``InputError``."""
        if given is None:
            return Budget()
        text = str(given).replace(",", "")
        if text.isdigit():
            if int(text) < 1:
                raise InputError("budget: 0 states are too few; allowed: 1 or more, or a time such as 60s")
            return Budget(states=int(text))
        return Budget(seconds=duration_ns("budget", text) / 1e9)

    def share(self, seconds: float, states: int) -> float:
        """What of it is spent."""
        return max(seconds / self.seconds, states / self.states)


class Explorer:
    """An exploration under way."""

    def __init__(
        self,
        recording: Recording,
        bench: Bench,
        asked: dict[str, Any],
        budget: Budget,
        findings_max: int,
        kept: Path | None,
        reproducers: Path | None,
    ) -> None:
        self._recording = recording
        self._bench = bench
        self._asked = asked
        self._budget = budget
        self._findings_max = findings_max
        self._kept = kept
        self._reproducers = reproducers
        self._search = _native.CrashSearch(recording.native, recording.base, json.dumps(asked))
        self._done = 0
        """States that were looked at, in order."""
        self._covered = json.loads(self._search.coverage())
        self._before_s = 0.0
        self._result = Exploration([], Coverage(**self._covered), 0, seed=asked["seed"])

    def carried_out(self, workers: Workers, progress: Told | None) -> Exploration:
        """Looks at states until the budget is spent. Raises ``InputError`` where the check fails without a crash."""
        began_s = time.monotonic()
        self._resume()
        self._begin(workers)
        try:
            for _ in self._answered(workers, began_s):
                self._result.seconds = self._before_s + time.monotonic() - began_s
                if progress is not None:
                    spent = self._budget.share(time.monotonic() - began_s, self._done)
                    progress(self._done, min(spent, 1.0), len(self._result.findings))
        except KeyboardInterrupt:
            self._result.ended_by = "interrupted"
        self._result.seconds = self._before_s + time.monotonic() - began_s
        self._result.coverage = Coverage(**self._covered)
        self._keep()
        return self._result

    def _begin(self, workers: Workers) -> None:
        """A check that fails on the end of the recording finds what no crash has done."""
        events = self._recording.described["events"]
        message = workers.look({"events": events, "missing": [], "torn": []})
        if message is not None:
            raise InputError(f"check: fails on the end of the recording, from which nothing is missing: {message}")

    def _answered(self, workers: Workers, began_s: float) -> Iterator[None]:
        """Each state that was looked at, in the order of the search, whoever is done first."""
        waiting: dict[int, tuple[State, dict[str, Any]]] = {}
        answers: dict[int, str | None] = {}
        number = self._done
        is_complete = False
        while True:
            spent = self._budget.share(time.monotonic() - began_s, number)
            while workers.free() and not is_complete and spent < 1:
                text = self._search.next_state()
                if text is None:
                    is_complete = True
                    break
                state: State = json.loads(text)
                waiting[number] = state, json.loads(self._search.coverage())
                workers.give(number, state)
                number += 1
                spent = self._budget.share(time.monotonic() - began_s, number)
            if not waiting:
                self._result.ended_by = "complete" if is_complete else "budget"
                return
            answers.update(workers.answers())
            while self._done in answers:
                state, self._covered = waiting.pop(self._done)
                message = answers.pop(self._done)
                self._done += 1
                if message is not None:
                    # Nobody is given another state meanwhile, but those who have one answer.
                    self._settle(workers, answers)
                    self._failed(workers, state, message)
                yield None

    def _settle(self, workers: Workers, answers: dict[int, str | None]) -> None:
        while workers.busy():
            answers.update(workers.answers())

    def _failed(self, workers: Workers, state: State, message: str) -> None:
        """A state fails: it is one of those that are known, or reduced."""
        self._result.violations += 1
        kind = kind_of(message)
        for finding in self._result.findings:
            if explains(finding.state, state) or (finding.is_of_no_write and kind_of(finding.message) == kind):
                finding.count += 1
                return
        if len(self._result.findings) >= self._findings_max:
            self._result.others[kind] = self._result.others.get(kind, 0) + 1
            return
        messages: dict[str, str] = {}

        def fails(tried: State) -> bool:
            said = workers.look(tried)
            if said is not None:
                messages[json.dumps(tried)] = said
            return said is not None

        if not fails(state):
            self._result.violations -= 1
            self._result.unsteady += 1
            return
        native = self._recording.native

        def event_of(change: int) -> int:
            event: int = json.loads(native.told([change]))[0]["event"]
            return event

        least = minimized(state, native.open_after, event_of, fails)
        surviving = len(native.open_after(least["events"])) - len(least["missing"]) - len(least["torn"])
        there = needed(least, native.open_after, fails) if surviving <= NEEDED_MAX else None
        self._result.findings.append(self._finding(least, messages.get(json.dumps(least), message), there))

    def _finding(self, state: State, message: str, there: list[int] | None) -> Finding:
        native = self._recording.native
        marks = native.marks_before(state["events"])
        image = _native.CrashImage(
            str(self._own_folder()), native, self._recording.base, json.dumps(self._asked["rules"])
        )
        image.take(json.dumps({"events": state["events"], "missing": [], "torn": []}))
        # What the journal still holds is where debugfs looks for it, then.
        repair(str(image.path))
        torn = {one["change"]: tuple((begin, end) for begin, end in one["kept"]) for one in state["torn"]}

        def writes(numbers: list[int]) -> list[Write]:
            return [
                Write(
                    number=one["number"],
                    what=one["what"],
                    offset_bytes=one["offset_bytes"],
                    length_bytes=one["length_bytes"],
                    submitted_ns=one["submitted_ns"],
                    is_metadata=one["is_metadata"],
                    files=files_of(str(image.path), one["offset_bytes"], one["length_bytes"]),
                    kept=torn.get(one["number"]),
                )
                for one in json.loads(native.told(numbers))
            ]

        finding = Finding(
            message=message,
            state=state,
            missing=writes(state["missing"]),
            torn=writes(list(torn)),
            needed=None if there is None else writes(there),
            marks=len(marks),
            last_mark=marks[-1] if marks else None,
            at_ns=native.time_of(state["events"]),
        )
        if self._reproducers is not None:
            self._reproducers.mkdir(parents=True, exist_ok=True)
            path = self._reproducers / f"crash-{identity(state)}.journal"
            found = {"state": state, "rules": self._asked["rules"], "check": self._bench.check.name, "message": message}
            image.reproduce(json.dumps(found), str(path))
            finding.reproducer = str(path)
        return finding

    def _own_folder(self) -> Path:
        folder = self._bench.folder / "finding"
        folder.mkdir(exist_ok=True)
        return folder

    def _identity(self) -> dict[str, Any]:
        """What an exploration has to have in common with the one that it goes on from."""
        described = self._recording.described
        return {"recording": described, "asked": self._asked, "check": self._bench.check.name}

    def _resume(self) -> None:
        if self._kept is None or not self._kept.exists():
            return
        try:
            before = json.loads(self._kept.read_text(encoding="utf-8"))
            is_the_same = before["of"] == self._identity()
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{self._kept}: is no state of an exploration") from None
        if not is_the_same:
            raise InputError(f"{self._kept}: is of another recording, check, seed or device; name another file")
        for _ in range(before["done"]):
            self._search.next_state()
        self._done = before["done"]
        self._covered = json.loads(self._search.coverage())
        self._before_s = before["seconds"]
        result = self._result
        result.findings = [finding_of(one) for one in before["findings"]]
        result.violations, result.others, result.unsteady = before["violations"], before["others"], before["unsteady"]

    def _keep(self) -> None:
        if self._kept is None:
            return
        result = self._result
        what = {
            "of": self._identity(),
            "done": self._done,
            "seconds": result.seconds,
            "violations": result.violations,
            "others": result.others,
            "unsteady": result.unsteady,
            "findings": [as_data(finding) for finding in result.findings],
        }
        write_text(self._kept, json.dumps(what, indent=1) + "\n")


def kind_of(message: str) -> str:
    """What a check says, whatever the numbers in it are."""
    return re.sub(r"\d+", "N", message)


def explains(known: State, state: State) -> bool:
    """Whether a state misses all that a finding does."""
    has_missing = set(known["missing"]) <= set(state["missing"])
    return (
        has_missing and all(torn in state["torn"] for torn in known["torn"]) and bool(known["missing"] or known["torn"])
    )


def identity(state: State) -> str:
    """A short name of a state."""
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()[:8]


def as_data(finding: Finding) -> dict[str, Any]:
    """A finding as JSON has it."""
    from dataclasses import asdict

    return asdict(finding)


def finding_of(data: dict[str, Any]) -> Finding:
    """A finding from JSON."""

    def writes(given: list[dict[str, Any]]) -> list[Write]:
        return [
            Write(
                **(
                    one
                    | {
                        "files": tuple(one["files"]),
                        "kept": None if one["kept"] is None else tuple(tuple(run) for run in one["kept"]),
                    }
                )
            )
            for one in given
        ]

    there = data["needed"]
    return Finding(
        **(
            data
            | {
                "missing": writes(data["missing"]),
                "torn": writes(data["torn"]),
                "needed": None if there is None else writes(there),
            }
        )
    )


__all__ = ["Check", "Coverage", "Exploration", "Finding", "Write", "explore"]
