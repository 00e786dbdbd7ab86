"""Every candidate of a choice can be simulated: one whose run is impossible counts as too slow, and is never chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headstack.choice.candidates import candidates
from headstack.choice.question_parser import parse_question
from headstack.choice.simulations import Simulations, Trial


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize(
    ("drive", "host", "level", "drives"),
    [
        ("pm893-3840gb", "md-raid6-12x16tb", "raid10", 4),
        ("exos-x16-16tb", "md-raid6-12x16tb", "raid5", 18),
        ("exos-x16-16tb", "server-12-raid6-cache", "raid6", 18),
        ("exos-x16-16tb", "zfs-raidz2-12", "raidz2", 11),
        ("dc-p4510-4tb", "md-raid10-8-nvme", "raid6", 6),
    ],
)
def test_flash_spans_and_full_systems_run(drive: str, host: str, level: str, drives: int, share: float) -> None:
    among: dict[str, Any] = {
        "among": [drive],
        "hosts": [host],
        "levels": [level],
        "drives": (drives, drives),
        "estimate_prices": True,
    }
    question = parse_question(["random-read-4k"], rates=[10], limits=["mean=1h"], on="2026-01", **among)
    ((_, (one,)),) = candidates(question.space, question.job, question.book, True).families
    job = replace(question.job, capacity_bytes=int(share * one.usable_bytes))
    (row,) = Simulations(job).rows([Trial(one, 200)])
    assert row.impossible is None
    assert row.requests == 200
