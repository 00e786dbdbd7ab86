"""``Session``: continuous judging, part after part, and from one run of the command to the next."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NotRequired, TypeAlias, TypedDict

import polars as pl

from headstack._native import InputError
from headstack.diagnosis.judging.false_alarms import FALSE_ALARMS, FalseAlarms
from headstack.diagnosis.judging.maintenance import Maintenance
from headstack.diagnosis.judging.observations import Observations
from headstack.diagnosis.judging.predicting import unused_twins
from headstack.diagnosis.judging.sources.files import How
from headstack.diagnosis.judging.state import State
from headstack.diagnosis.judging.verdict import (
    FALSE_SHARE,
    FINE,
    KINDS,
    OLD_KINDS,
    SLOW,
    UNDECIDED,
    Cause,
    Judgement,
    Kind,
    Predicted,
    Slower,
    Verdict,
    Weighed,
)
from headstack.io.atomic_files import write_text
from headstack.io.counts import agreed, counted
from headstack.io.json_text import read_json

Judge: TypeAlias = Callable[..., Judgement]

MARK = "headstack_judge"
"""Key that identifies our state files; its value is the version."""
VERSION = 1

EXIT_CODES: dict[Kind, int] = {SLOW: 1, "limit": 5, "host": 6, "neighbour": 7, "queue": 8, FINE: 0, UNDECIDED: 4}
"""Exit code of each kind of verdict; that of the first kind in this order which any disk has is the command's."""


class Document(TypedDict):
    """All verdicts, as ``--json`` writes them."""

    headstack_verdicts: int
    """The version."""
    sources: list[str]
    from_s: float | None
    """Seconds since 1970."""
    to_s: float | None
    intervals: int
    """Number of judged rows of observations."""
    maintenance_intervals: int
    """Number of rows that maintenance windows left out, also in the earlier runs of a state file."""
    false_alarms: Mapping[str, float]
    """Expected number of healthy disks called slow: ``a_month`` of watching these disks, ``in_this_run`` among those
    called slow now."""
    caveats: list[str]
    disks: list[Mapping[str, object]]
    """A ``Verdict`` of each disk."""


class StoredSession(TypedDict):
    """A state file."""

    headstack_judge: int
    """The version."""
    state: State | None
    judged_s: dict[str, float]
    """The end of the last judged interval, in seconds since 1970, by host and disk joined by a tab."""
    readings: dict[str, list[Any]]
    """The last time and counts of each disk, by host and disk joined by a tab."""
    verdicts: list[Mapping[str, object]]
    """A ``Verdict`` of each disk."""
    maintenance_intervals: NotRequired[int]
    """Missing in states of November 2026 and before."""


@dataclass
class Session:
    """Verdicts so far, and the state for the next observations."""

    judge: Judge
    how: How
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``judge`` in addition to observations and state."""
    state: State | None = None
    judged_s: dict[str, float] = field(default_factory=dict)
    """The end of judged data for each disk, host and disk joined by a tab, so that repeated data count once."""
    verdicts: tuple[Verdict, ...] = ()
    sources: list[str] = field(default_factory=list)
    unsaid: set[str] | None = None
    """Columns without values in any part."""
    span_s: tuple[float, float] | None = None
    """Start and end of the observations of this run."""
    rows: int = 0
    maintenance: Maintenance = field(default_factory=Maintenance)
    """Windows whose intervals are left out."""
    left_out: int = 0
    """Number of intervals that windows left out, also in the earlier runs of a state file."""

    def take(self, observed: Observations) -> bool:
        """Judges new observations; returns whether there were any."""
        fresh = self._fresh(observed.frame)
        if fresh.is_empty() and not self.how.statements:
            return False
        inside = self.maintenance.is_inside(fresh["start_s"], fresh["length_s"])
        self.left_out += int(inside.sum())
        judged = fresh.filter(~inside)
        if not judged.is_empty() or self.how.statements:
            judgement = self.judge(
                replace(observed, frame=judged), state=self.state, statements=self.how.statements, **self.settings
            )
            self.state, self.verdicts = judgement.state, in_order(judgement.verdicts)
        if observed.source not in self.sources:
            self.sources.append(observed.source)
        if fresh.is_empty():
            return True
        frame = fresh.select("host", "disk", "start_s", end_s=pl.col("start_s") + pl.col("length_s"))
        for host, disk, end_s in frame.group_by("host", "disk").agg(pl.col("end_s").max()).iter_rows():
            self.judged_s[f"{host}\t{disk}"] = end_s
        (begin_s, end_s) = frame.select(pl.col("start_s").min(), pl.col("end_s").max()).row(0)
        self.span_s = (self.span_s[0] if self.span_s else begin_s, end_s)
        self.rows += judged.height
        unsaid = set(observed.unsaid)
        self.unsaid = unsaid if self.unsaid is None else self.unsaid & unsaid
        return True

    def _fresh(self, frame: pl.DataFrame) -> pl.DataFrame:
        if not self.judged_s:
            return frame
        keys = [key.split("\t") for key in self.judged_s]
        judged = pl.DataFrame(
            {"host": [key[0] for key in keys], "disk": [key[1] for key in keys], "judged_s": [*self.judged_s.values()]}
        )
        # Ends are sums of floats: allow a millisecond.
        is_new = pl.col("judged_s").is_null() | (pl.col("start_s") >= pl.col("judged_s") - 1e-3)
        fresh = frame.join(judged, on=["host", "disk"], how="left", maintain_order="left").filter(is_new)
        if fresh.height < frame.height:
            self.how.remarks["intervals skipped, because they were judged before"] += frame.height - fresh.height
        return fresh.drop("judged_s")

    @property
    def caveats(self) -> list[str]:
        """The limitations of the sources."""
        unsaid = {"reads", "writes", "requests"} & (self.unsaid or set())
        missing = ["requests are not counted: load is measured in bytes only"] if "requests" in unsaid else []
        disks = {(verdict.disk, verdict.model) for verdict in self.verdicts}
        windows = [self.maintenance.sentence(self.left_out)] if self.maintenance.windows else []
        expected = self.false_alarms.sentence()
        return [
            *windows,
            *([expected] if expected else []),
            *missing,
            *unused_twins(self.settings.get("twin") or {}, disks),
            *self.how.caveats(),
        ]

    @property
    def false_alarms(self) -> FalseAlarms:
        """The false alarms to expect."""
        return FalseAlarms.of(self.verdicts, self.settings.get("false_alarms_per_drive_year", FALSE_ALARMS))

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        kinds = {verdict.kind for verdict in self.verdicts}
        return next((code for kind, code in EXIT_CODES.items() if kind in kinds), EXIT_CODES[UNDECIDED])

    def document(self) -> Document:
        """Returns all results in JSON's form."""
        return {
            "headstack_verdicts": VERSION,
            "sources": self.sources,
            "from_s": self.span_s[0] if self.span_s else None,
            "to_s": self.span_s[1] if self.span_s else None,
            "intervals": self.rows,
            "maintenance_intervals": self.left_out,
            "false_alarms": self.false_alarms.plain(),
            "caveats": self.caveats,
            "disks": [asdict(verdict) for verdict in self.verdicts],
        }

    def stored(self) -> StoredSession:
        """Returns the state file from which the next run continues."""
        return {
            "headstack_judge": VERSION,
            "state": self.state,
            "judged_s": self.judged_s,
            "readings": self.how.readings,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "maintenance_intervals": self.left_out,
        }

    def store(self, path: Path) -> None:
        """Writes the state file atomically."""
        write_text(path, json.dumps(self.stored(), allow_nan=False) + "\n")

    def resume(self, path: Path) -> None:
        """Continues from a state file, if it exists. Raises ``InputError`` if it is not ours."""
        if not path.exists():
            return
        try:
            document = read_json(path)
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: not a readable state of judge: {error}") from None
        self.resume_from(document, str(path))

    def resume_from(self, document: Any, where: str) -> None:
        """Continues from the output of ``stored``; messages call it ``where``."""
        if not isinstance(document, dict) or MARK not in document:
            raise InputError(
                f"{where}: not a state of judge; allowed: the state of an earlier judgement, or a new name"
            )
        if document[MARK] != VERSION:
            raise InputError(f"{where}: version {document[MARK]} of the state; allowed: {VERSION}")
        self.state, self.judged_s = document["state"], dict(document["judged_s"])
        self.left_out = document.get("maintenance_intervals", 0)
        self.how.readings.update(document["readings"])
        self.verdicts = tuple(verdict_of(entry) for entry in document["verdicts"])


HEADLINES: dict[Kind, str] = {
    "limit": "it is at a limit",
    "host": "its host sends fewer requests",
    "neighbour": "other work uses it",
    "queue": "more requests are in flight than before",
}


def headline(session: Session) -> str:
    """Returns the answer in a sentence."""
    disks = len(session.verdicts)
    if not disks:
        return "not enough data for a verdict: no disk was seen for a whole interval"
    slow = [verdict for verdict in session.verdicts if verdict.kind == SLOW]
    undecided = sum(verdict.kind == UNDECIDED for verdict in session.verdicts)
    rest = f"; not enough data for a verdict on {undecided:,}" if undecided and undecided < disks else ""
    waiting = [verdict for verdict in session.verdicts if verdict.kind not in (SLOW, UNDECIDED, FINE)]
    if slow:
        rest = (f"; {counted(len(waiting), 'disk')} {agreed(len(waiting), 'waits', 'wait')}" if waiting else "") + rest
        first = max(slow, key=lambda verdict: verdict.slower.factor if verdict.slower else 0.0)
        others = sum(verdict.stands for verdict in slow)
        is_compared = disks > 1 and any(verdict.method is not None for verdict in slow)
        share = f"; {others:,} at a false-discovery rate of {100 * FALSE_SHARE:.0f} %" if is_compared else ""
        verb = agreed(len(slow), "is", "are")
        return f"{len(slow):,} of {counted(disks, 'disk')} {verb} slow: {_slowdown(first)}{share}{rest}"
    if waiting:
        first = waiting[0]
        more = f", and {counted(len(waiting) - 1, 'more disk')} wait" if len(waiting) > 1 else ""
        name = f"disk {first.disk}" + (f" of {first.host}" if first.host else "")
        return f"no slow disk, but {name} waits: {HEADLINES[first.kind]}{more}{rest}"
    if undecided == disks:
        clearest = max(session.verdicts, key=lambda of: of.suspects[0].likelihood if of.suspects else 0.0)
        return f"not enough data for a verdict on {counted(disks, 'disk')}: {clearest.why}"
    return f"no slow disk among {disks - undecided:,}{rest}"


def _slowdown(verdict: Verdict) -> str:
    """Describes the slowdown of a disk with its interval."""
    name = f"disk {verdict.disk}" + (f" of {verdict.host}" if verdict.host else "")
    slower = verdict.slower
    if slower is None:
        return name
    if slower.is_lower_bound:
        return f"{name} by a factor of at least {slower.low:.3g}"
    return f"{name} by a factor of {slower.factor:.3g} (90 % interval {slower.low:.3g} to {slower.high:.3g})"


def in_order(verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
    """Returns the slow disks first, starting with the slowest; then the undecided ones."""

    def place(verdict: Verdict) -> tuple[int, float, list[tuple[int, str]]]:
        numbered = re.findall(r"(\d{1,9})|(\D+|\d+)", f"{verdict.host}\t{verdict.disk}")
        name = [(int(number or 0), word) for number, word in numbered]
        return KINDS.index(verdict.kind), -(verdict.slower.factor if verdict.slower else 0.0), name

    return tuple(sorted(verdicts, key=place))


def verdict_of(data: Mapping[str, Any]) -> Verdict:
    """Returns a verdict from its JSON form."""
    slower, cause, predicted = data["slower"], data["cause"], data.get("predicted")
    course = tuple((at_s, factor) for at_s, factor in data["course"])
    return Verdict(
        **dict(data)
        | {
            "kind": OLD_KINDS.get(data["kind"], data["kind"]),
            "slower": None if slower is None else Slower(**slower),
            "cause": None if cause is None else Cause(**cause),
            "course": course,
            "suspects": tuple(Weighed(**weighed) for weighed in data.get("suspects", ())),
            "predicted": None if predicted is None else Predicted(**predicted),
        }
    )
