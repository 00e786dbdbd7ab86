"""``Explorer``: checks crash states until the budget is spent, and reduces failing ones to minimal ones. See
docs/design/crash.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headstack import _native
from headstack._native import InputError
from headstack.crash.checks import Function, check_of
from headstack.crash.files import files_of, repair
from headstack.crash.findings import Coverage, Exploration, Finding, Write
from headstack.crash.minimizing import minimize, needed
from headstack.crash.workers import Bench, Workers
from headstack.io import signals
from headstack.io.atomic_files import write_text
from headstack.io.json_text import key_of, read_json
from headstack.io.values import duration_ns

if TYPE_CHECKING:
    from headstack.crash.recorded import ProgressCallback, Recorded
    from headstack.crash.states import (
        CoverageCounts,
        CrashState,
        ExplorationIdentity,
        KeptExploration,
        Reproduced,
        SearchRequest,
        SentChange,
    )

NEEDED_MAX = 64
"""Maximum number of surviving writes of a finding for which the function determines which are needed."""


def explore(
    recording: Recorded,
    check: str | Function,
    *,
    budget: str | int | None,
    request: SearchRequest,
    over: str,
    jobs: int | None,
    findings_max: int,
    kept: Path | None,
    reproducers: Path | None,
    patience_s: float,
    progress: ProgressCallback | None,
) -> Exploration:
    """Explores states; see ``Recording.explore``."""
    # Most callers load this only for its names.
    count = jobs if jobs is not None else len(os.sched_getaffinity(0))
    if count < 1:
        raise InputError(f"{count} is out of range; must be 1 or more", key="jobs")
    parsed = check_of(check, over)
    # Findings are written to a file, however they were presented.
    images = count + 1 if over == "file" else 1
    folder = _native.crash_folder(recording.native, recording.base, images)
    with tempfile.TemporaryDirectory(prefix="headstack-crash-", dir=folder) as name:
        bench = Bench(recording, request["rules"], parsed, over, Path(name), patience_s)
        explorer = Explorer(recording, bench, request, Budget.parse(budget), findings_max, kept, reproducers)
        with closing(Workers(bench, count)) as workers:
            return explorer.explore(workers, progress)


class SpentError(Exception):
    """Raised when the budget is spent during a reduction."""


@dataclass(frozen=True)
class Budget:
    """The end condition of an exploration."""

    seconds: float = float("inf")
    states: float = float("inf")

    @staticmethod
    def parse(stated: str | int | None) -> Budget:
        """Parses a time, or a number of states. Raises ``InputError``."""
        if stated is None:
            return Budget()
        text = str(stated).replace(",", "")
        if text.isdigit():
            if int(text) < 1:
                raise InputError("0 states are too few; use 1 or more, or a time such as 60s", key="budget")
            return Budget(states=int(text))
        return Budget(seconds=duration_ns("budget", text) / 1e9)

    def share(self, seconds: float, states: int) -> float:
        """Returns the share of the budget that is spent."""
        return max(seconds / self.seconds, states / self.states)


class Explorer:
    """A running exploration."""

    def __init__(
        self,
        recording: Recorded,
        bench: Bench,
        request: SearchRequest,
        budget: Budget,
        findings_max: int,
        kept: Path | None,
        reproducers: Path | None,
    ) -> None:
        self._recording = recording
        self._bench = bench
        self._request = request
        self._budget = budget
        self._findings_max = findings_max
        self._kept = kept
        self._reproducers = reproducers
        self._search = _native.CrashSearch(recording.native, recording.base, request)
        self._done = 0
        """Number of states checked so far, in search order."""
        self._began_s = time.monotonic()
        self._cut_after: int | None = None
        """Number of states checked by completed reductions."""
        self._covered: CoverageCounts = self._search.coverage()
        self._before_s = 0.0
        self._result = Exploration([], Coverage(**self._covered), 0, seed=request["seed"])

    def explore(self, workers: Workers, progress: ProgressCallback | None) -> Exploration:
        """Checks states until the budget is spent. Raises ``InputError`` if the check fails without a crash."""
        self._began_s = began_s = time.monotonic()
        self._resume()
        try:
            # Finished work is kept and reported, however the exploration ends.
            with signals.raising():
                self._begin(workers)
                for _ in self._check_states(workers):
                    self._result.seconds = self._before_s + time.monotonic() - began_s
                    if progress is not None:
                        progress(self._done, min(self._spent(self._done), 1.0), len(self._result.findings))
        except KeyboardInterrupt:
            self._result.ended_by = "interrupted"
        self._result.seconds = self._before_s + time.monotonic() - began_s
        self._result.coverage = Coverage(**self._covered)
        self._keep()
        return self._result

    def _begin(self, workers: Workers) -> None:
        """Runs the check on the end of the recording, where a failure is not due to a crash."""
        events = self._recording.described["events"]
        message = workers.check({"events": events, "missing": [], "torn": []})
        if message is not None:
            raise InputError(f"fails at the end of the recording, where nothing is missing: {message}", key="check")

    def _spent(self, states: int) -> float:
        """Returns the share of the budget that this many states of the search and all reductions have spent."""
        return self._budget.share(time.monotonic() - self._began_s, states + self._result.reduction_states)

    def _check_states(self, workers: Workers) -> Iterator[None]:
        """Yields each checked state in the order of the search, independent of the order of completion."""
        waiting: dict[int, tuple[CrashState, CoverageCounts]] = {}
        answers: dict[int, str | None] = {}
        number = self._done
        is_complete = False
        while True:
            spent = self._spent(number)
            while workers.free() and not is_complete and spent < 1:
                state: CrashState | None = self._search.next_state()
                if state is None:
                    is_complete = True
                    break
                waiting[number] = state, self._search.coverage()
                workers.assign(number, state)
                number += 1
                spent = self._spent(number)
            if not waiting:
                self._result.ended_by = "complete" if is_complete else "budget"
                return
            answers.update(workers.answers())
            while self._done in answers:
                state, covered = waiting[self._done]
                message = answers.pop(self._done)
                if message is not None:
                    # No new states are assigned meanwhile, but running ones complete.
                    self._settle(workers, answers)
                    self._handle_failure(workers, state, message)
                # An earlier interruption left the reduction unfinished.
                del waiting[self._done]
                self._covered = covered
                self._done += 1
                yield None
                # Further answers are ignored: their number depends on the number of processes.
                if self._result.reduction_states and self._spent(self._done) >= 1:
                    self._result.ended_by = "budget"
                    return

    def _settle(self, workers: Workers, answers: dict[int, str | None]) -> None:
        while workers.busy():
            answers.update(workers.answers())

    def _handle_failure(self, workers: Workers, state: CrashState, message: str) -> None:
        """Handles a failing state: it matches a known finding, or is reduced."""
        result, kind = self._result, kind_of(message)
        for finding in result.findings:
            if explains(finding.state, state) or (finding.is_of_no_write and kind_of(finding.message) == kind):
                finding.count += 1
                result.violations += 1
                return
        if len(result.findings) >= self._findings_max:
            result.others[kind] = result.others.get(kind, 0) + 1
            result.violations += 1
            return
        messages: dict[str, str] = {}

        failing, reductions_before = [state], result.reduction_states

        def fails(tried: CrashState) -> bool:
            if self._spent(self._done + 1) >= 1:
                raise SpentError
            self._result.reduction_states += 1
            fault = workers.check(tried)
            if fault is not None:
                messages[key_of(tried)] = fault
                failing.append(tried)
            return fault is not None

        try:
            if not fails(state):
                result.unsteady += 1
                return
        except SpentError:
            self._cut_after, messages[key_of(state)] = reductions_before, message
        native = self._recording.native

        def event_of(change: int) -> int:
            sent: list[SentChange] = native.changes([change])
            return sent[0]["event"]

        present = None
        is_least = True
        try:
            least = minimize(state, native.open_after, event_of, fails)
        except SpentError:
            # Each failing state is a step of the reduction.
            least, is_least, self._cut_after = failing[-1], False, reductions_before
        surviving = len(native.open_after(least["events"])) - len(least["missing"]) - len(least["torn"])
        if is_least and surviving <= NEEDED_MAX:
            try:
                present = needed(least, native.open_after, fails)
            except SpentError:
                self._cut_after = reductions_before
        finding = self._finding(least, messages.get(key_of(least), message), present)
        finding.is_least = is_least
        result.findings.append(finding)
        result.violations += 1

    def _finding(self, state: CrashState, message: str, present: list[int] | None) -> Finding:
        native = self._recording.native
        marks = native.marks_before(state["events"])
        image = _native.CrashImage(str(self._own_folder()), native, self._recording.base, self._request["rules"])
        image.take({"events": state["events"], "missing": [], "torn": []})
        # Then debugfs also finds what was only in the journal.
        repair(str(image.path))
        torn = {write["change"]: tuple((begin, end) for begin, end in write["kept"]) for write in state["torn"]}

        def writes(numbers: list[int]) -> list[Write]:
            sent: list[SentChange] = native.changes(numbers)
            return [
                Write(
                    number=change["number"],
                    what=change["what"],
                    offset_bytes=change["offset_bytes"],
                    length_bytes=change["length_bytes"],
                    submitted_ns=change["submitted_ns"],
                    is_metadata=change["is_metadata"],
                    files=files_of(str(image.path), change["offset_bytes"], change["length_bytes"]),
                    kept=torn.get(change["number"]),
                )
                for change in sent
            ]

        finding = Finding(
            message=message,
            state=state,
            missing=writes(state["missing"]),
            torn=writes(list(torn)),
            needed=None if present is None else writes(present),
            marks=len(marks),
            last_mark=marks[-1] if marks else None,
            at_ns=native.time_of(state["events"]),
        )
        if self._reproducers is not None:
            self._reproducers.mkdir(parents=True, exist_ok=True)
            path = self._reproducers / f"crash-{identity(state)}.journal"
            reproducer: Reproduced = {
                "state": state,
                "rules": self._request["rules"],
                "check": self._bench.check.name,
                "over": self._bench.over,
                "message": message,
            }
            image.reproduce(reproducer, str(path))
            finding.reproducer = str(path)
            finding.is_replayable = self._bench.check.is_named
        return finding

    def _own_folder(self) -> Path:
        folder = self._bench.folder / "finding"
        folder.mkdir(exist_ok=True)
        return folder

    def _identity(self) -> ExplorationIdentity:
        """Returns the properties that this exploration shares with the one that it continues."""
        described = self._recording.described
        return {"recording": described, "asked": self._request, "check": self._bench.check.name}

    def _resume(self) -> None:
        if self._kept is None or not self._kept.exists():
            return
        try:
            before: KeptExploration = read_json(self._kept)
            is_the_same = before["of"] == self._identity()
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{self._kept}: not a progress file of crash explore") from None
        if not is_the_same:
            raise InputError(f"{self._kept}: belongs to another recording, check, seed or device; name another file")
        for _ in range(before["done"]):
            self._search.next_state()
        self._done = before["done"]
        self._covered = self._search.coverage()
        self._before_s = before["seconds"]
        result = self._result
        result.findings = [Finding.from_kept(finding) for finding in before["findings"]]
        result.violations, result.others, result.unsteady = before["violations"], before["others"], before["unsteady"]
        result.reduction_states = before.get("reduction_states", 0)

    def _keep(self) -> None:
        if self._kept is None:
            return
        result, reductions = self._result, self._result.reduction_states
        # A continued exploration repeats the reduction that the budget interrupted.
        undone = 0 if self._cut_after is None else 1
        progress = {
            "of": self._identity(),
            "done": self._done - undone,
            "seconds": result.seconds,
            "violations": result.violations - undone,
            "others": result.others,
            "unsteady": result.unsteady,
            "reduction_states": reductions if self._cut_after is None else self._cut_after,
            "findings": [asdict(finding) for finding in result.findings[: len(result.findings) - undone]],
        }
        write_text(self._kept, json.dumps(progress, indent=1) + "\n")


def kind_of(message: str) -> str:
    """Returns the message of a check with its numbers replaced, which is equal for findings of one kind."""
    return re.sub(r"\d+", "N", message)


def explains(reduced: CrashState, state: CrashState) -> bool:
    """Whether a state misses all writes that the reduced state of a finding misses."""
    has_missing = set(reduced["missing"]) <= set(state["missing"])
    return (
        has_missing
        and all(torn in state["torn"] for torn in reduced["torn"])
        and bool(reduced["missing"] or reduced["torn"])
    )


def identity(state: CrashState) -> str:
    """Returns a short name of a state."""
    return hashlib.sha256(key_of(state).encode()).hexdigest()[:8]
