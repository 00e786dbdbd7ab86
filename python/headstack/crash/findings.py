"""``Exploration``: the results of explorations, with findings and the share of all states that was tried."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

from headstack._native import format_bytes
from headstack.io.counts import agreed, counted

if TYPE_CHECKING:
    from headstack.crash.states import CrashState, KeptFinding, KeptWrite

NO_TIME_NS = 1_000_000
"""Smallest real time in nanoseconds: logs of dm-log-writes have event numbers instead of times."""


@dataclass(frozen=True)
class Write:
    """A write, or a trim, that a crash has lost."""

    number: int
    """Number of the change in the recording."""
    what: str
    """``write``, ``zeros`` or ``trim``."""
    offset_bytes: int
    length_bytes: int
    submitted_ns: int
    is_metadata: bool
    files: tuple[str, ...] = ()
    """The files of an ext4 file system at this position, if debugfs finds them."""
    kept: tuple[tuple[int, int], ...] | None = None
    """Stored atoms, if the write is torn."""

    @classmethod
    def from_kept(cls, kept: KeptWrite) -> Self:
        """Returns the write from the file of an exploration."""
        atoms = kept["kept"]
        return cls(
            number=kept["number"],
            what=kept["what"],
            offset_bytes=kept["offset_bytes"],
            length_bytes=kept["length_bytes"],
            submitted_ns=kept["submitted_ns"],
            is_metadata=kept["is_metadata"],
            files=tuple(kept["files"]),
            kept=None if atoms is None else tuple((begin, end) for begin, end in atoms),
        )

    def describe(self) -> str:
        """Returns the write's kind, number, size, position and files as text."""
        part = "" if self.kept is None else f", only atoms {', '.join(f'{a}..{b}' for a, b in self.kept)} are present"
        place = f" ({'; '.join(self.files)})" if self.files else ""
        size, at = format_bytes(self.length_bytes), self.offset_bytes
        return f"{self.what} {self.number} of {size} at byte {at:,}{place}{part}"


@dataclass
class Finding:
    """A crash state on which the check fails, reduced to the fewest missing writes."""

    message: str
    """The message of the check."""
    state: CrashState
    """The state in the explorer's form."""
    missing: list[Write]
    torn: list[Write]
    needed: list[Write] | None
    """Open writes that must be present for the failure; ``None`` if not determined."""
    marks: int
    last_mark: str | None
    at_ns: int
    """Time of the power loss, by the recording's clock."""
    count: int = 1
    """Number of failing states that miss the same writes, including this one."""
    reproducer: str | None = None
    is_replayable: bool = False
    """Whether ``headstack crash replay`` finds the check by its name; a function has none."""
    is_least: bool = True
    """Whether the finding was reduced completely before the budget was spent."""

    @classmethod
    def from_kept(cls, kept: KeptFinding) -> Self:
        """Returns the finding from the file of an exploration."""
        needed = kept["needed"]
        return cls(
            message=kept["message"],
            state=kept["state"],
            missing=[Write.from_kept(write) for write in kept["missing"]],
            torn=[Write.from_kept(write) for write in kept["torn"]],
            needed=None if needed is None else [Write.from_kept(write) for write in needed],
            marks=kept["marks"],
            last_mark=kept["last_mark"],
            at_ns=kept["at_ns"],
            count=kept["count"],
            reproducer=kept["reproducer"],
            is_replayable=kept["is_replayable"],
            is_least=kept.get("is_least", True),
        )

    @property
    def is_of_no_write(self) -> bool:
        """Whether the check fails even with no write missing, regardless of what a crash loses."""
        return not self.missing and not self.torn

    def describe(self) -> str:
        """Returns the message, the moment of the power loss, and the missing writes as lines of text."""
        lines = [self.message]
        after = "before any mark" if self.last_mark is None else f"after mark {self.marks} ({self.last_mark})"
        # A log has no times.
        moment = f", {self.at_ns / 1e9:.6f} s into the recording" if self.at_ns >= NO_TIME_NS else ""
        lines.append(f"  power loss after event {self.state['events']:,}{moment}, {after}")
        lines += [f"  missing: {write.describe()}" for write in self.missing]
        lines += [f"  torn: {write.describe()}" for write in self.torn]
        if self.is_of_no_write:
            lines.append("  nothing is missing: all writes are present")
        if self.needed:
            lines.append(f"  only if present: {', '.join(write.describe() for write in self.needed)}")
        if self.count > 1:
            lines.append(f"  {self.count:,} failing states miss these writes")
        if not self.is_least:
            lines.append("  not fully reduced, because the budget was used up: fewer missing writes may suffice")
        if self.reproducer is not None and self.is_replayable:
            lines.append(f"  headstack crash replay {shlex.quote(self.reproducer)}")
        elif self.reproducer is not None:
            lines.append(f"  reproducer: {self.reproducer}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Coverage:
    """The share of all states that was checked."""

    states: int
    """Number of checked states with distinct contents or marks."""
    duplicates: int
    """Number of subsets skipped since their contents had been checked."""
    subsets: int
    """Number of tried subsets of open writes, including duplicates."""
    possible: float
    """Total number of subsets of open writes."""
    windows: int
    """Number of moments at which crashes were tried."""
    whole_windows: int
    """Number of moments at which all subsets were tried."""
    largest_window: int
    """Maximum number of writes open at once."""

    SCHEDULE: ClassVar[str] = "one recorded schedule of the kernel's writeback"
    """The scope of the coverage: another run of the same program, or other timing of the kernel, sends other writes
    between other flushes."""

    def describe(self) -> str:
        """Returns the numbers of checked states, windows and subsets as text."""
        possible = f"{self.possible:,.0f}" if self.possible < 1e7 else f"{self.possible:.2g}"
        share = self.subsets / self.possible if self.possible else 1.0
        exact = f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
        return (
            f"{self.states:,} states in {self.windows:,} windows of up to {self.largest_window:,} open writes; "
            f"{self.subsets:,} of {possible} subsets of {self.SCHEDULE} ({exact}), "
            f"complete in {self.whole_windows:,} windows"
        )


@dataclass
class Exploration:
    """The result of an exploration."""

    findings: list[Finding]
    coverage: Coverage
    violations: int
    """Number of failing states."""
    others: dict[str, int] = field(default_factory=dict)
    """Numbers of failing states that were not reduced, by the check's message."""
    unsteady: int = 0
    """Number of states that failed once and not again."""
    reduction_states: int = 0
    """Number of states checked by reductions, which are part of the budget."""
    seconds: float = 0.0
    ended_by: str = "budget"
    """``budget``, ``complete`` (there are no new states), or ``interrupted``."""
    seed: int = 0

    def __bool__(self) -> bool:
        """Whether there are findings."""
        return bool(self.violations)

    def __str__(self) -> str:
        lines = [f"{number}. {finding.describe()}" for number, finding in enumerate(self.findings, 1)]
        lines += [f"and {counted(count, 'state')}: {message}" for message, count in self.others.items()]
        if self.unsteady:
            lines.append(f"{counted(self.unsteady, 'state')} failed once, then passed: the check is not deterministic")
        if not self.violations:
            lines.append("nothing found")
        else:
            lines.append(f"{counted(self.violations, 'state')} {agreed(self.violations, 'fails', 'fail')}")
        rate = self.coverage.states / self.seconds if self.seconds else 0.0
        complete = "; no more states in this schedule"
        ends = {"budget": "", "complete": complete, "interrupted": "; interrupted"}[self.ended_by]
        lines.append(f"{self.coverage.describe()};")
        lines.append(f"{self.seconds:.1f} s, {rate:,.0f} states/s, seed {self.seed}{ends}")
        return "\n".join(lines)
