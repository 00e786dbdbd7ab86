"""Short excerpts: public ones with a known cause, and that no disk in order is called slow because of one."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

import headstack as hs
from conftest import REPOSITORY
from headstack.cli.recognition import recognize

LOGS = REPOSITORY.parent / "shared/validation/logs"
NAMES = {"none": "healthy"}
"""The name of a suspect in cases.csv, if it differs."""
RIGHT_MIN = 0.85


class Case(NamedTuple):
    """An excerpt with its cause."""

    file: str
    suspect: str
    others: tuple[str, ...]
    """Suspects that are no error either."""
    may_be_undecided: bool


def cases() -> list[Case]:
    if not LOGS.exists():
        return []
    with open(LOGS / "cases.csv", encoding="utf-8") as file:
        return [
            Case(row["file"], row["suspect"], tuple(filter(None, row["alternatives"].split(","))),
                 row["undecided_ok"] == "yes")
            for row in csv.DictReader(file)
        ]  # fmt: skip


def answer(path: Path) -> tuple[str, str]:
    """Returns the verdict on the disk in question as a suspect of cases.csv, and its likeliest suspect: of several
    disks, those with a verdict come first, and then the clearest."""
    verdicts = hs.judge(str(path)).verdicts
    named = [verdict for verdict in verdicts if verdict.kind != "undecided"]
    verdict = max(named or verdicts, key=lambda of: of.suspects[0].likelihood if of.suspects else 0.0)
    kind = {"slow": "device", "fine": "healthy"}.get(verdict.kind, verdict.kind)
    likeliest = verdict.suspects[0].suspect if verdict.suspects else "undecided"
    return kind, NAMES.get(likeliest, likeliest)


def test_public_excerpts_are_read_and_no_disk_in_order_is_called_slow() -> None:
    if not cases():
        pytest.skip("needs ../shared/validation/logs, which is not part of the repository")
    table: Counter[str] = Counter()
    likeliest_right = 0
    for case in cases():
        kind, likeliest = answer(LOGS / case.file)
        is_right = kind in (case.suspect, *case.others)
        outcome = "right" if is_right else "undecided" if kind == "undecided" and case.may_be_undecided else "wrong"
        table[outcome] += 1
        likeliest_right += likeliest in (case.suspect, *case.others)
        print(f"{case.file:45} {case.suspect:10} {kind:10} {outcome:10} likeliest {likeliest}")
        assert kind != "device" or case.suspect == "device", case.file
    print(dict(table), f"likeliest suspect right or an alternative: {likeliest_right} of {len(cases())}")
    assert table["right"] + table["undecided"] >= RIGHT_MIN * len(cases()), table
    assert table["right"] >= 5


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.file)
def test_public_excerpts_are_recognized(case: Case) -> None:
    recognized = recognize(str(LOGS / case.file))
    assert recognized is not None
    # inspect takes logs of NVMe devices too, and shows more of them.
    assert recognized.command.startswith(("headstack judge", "headstack inspect")) or recognized.kind == "fio text"
