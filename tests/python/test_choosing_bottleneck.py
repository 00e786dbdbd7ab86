"""The bottleneck of a choice: the part whose relief shortens the response most, and not the busiest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY
from headstack.choice.bottleneck import CONTROLLER, Bottleneck, bottlenecks, with_eased_controller
from headstack.choice.candidates import candidates
from headstack.choice.question_parser import parse_question
from headstack.choice.simulations import Simulations

HOST = (REPOSITORY / "catalogue" / "arrays" / "md-raid6-12x16tb.toml").read_text()


def bottleneck(folder: Path, request: str, demand: str = "random-read-4k", **load: Any) -> Bottleneck:
    """Of four SSDs in RAID 10 behind a controller that takes so long for a request."""
    host = folder / "host.toml"
    host.write_text(HOST.replace('request     = "8us"', f'request     = "{request}"'))
    options: dict[str, Any] = {"limits": ["mean=1h"], "capacity": "1TB", "on": "2026-01", "estimate_prices": True}
    options |= {"among": ["pm893-3840gb"], "hosts": [str(host)], "levels": ["raid10"], "drives": (4, 4)}
    question = parse_question([demand], **load, **options)
    [(_, [one])] = candidates(question.space, question.job, question.book, question.estimate).families
    [found] = bottlenecks(Simulations(question.job), question.job, [one])
    return found


def test_drives_that_take_longest_are_it_though_the_controller_is_busier(tmp_path: Path) -> None:
    """One processor that takes 10 us for a request is busier than four drives that take several times as long."""
    found = bottleneck(tmp_path, "10us", rates=[15_000])
    assert found.name != CONTROLLER
    assert found.utilization_percent is None, "what is named is not the busiest"
    assert found.saves_percent is not None
    assert 5 < found.saves_percent < 15


@pytest.mark.parametrize("load", [{"rates": [2_300]}, {"depth": 8}])
def test_a_controller_that_is_in_the_way_is_it(tmp_path: Path, load: dict[str, Any]) -> None:
    found = bottleneck(tmp_path, "400us", **load)
    assert found.name == CONTROLLER
    assert found.utilization_percent is not None
    assert found.utilization_percent > 85
    assert found.saves_percent is not None
    assert found.saves_percent > 8


def test_of_clients_who_think_the_busiest_is_told(tmp_path: Path) -> None:
    found = bottleneck(tmp_path, "8us", "serverbench", depth=2)
    assert found.name
    assert found.saves_percent is None


def test_all_times_of_the_controller_are_eased(tmp_path: Path) -> None:
    question = parse_question(
        ["random-read-4k"], depth=4, limits=["mean=1h"], on="2019-07", among=["exos-x16-16tb"],
        hosts=["md-raid6-12x16tb"], levels=["raid6"], drives=(6, 6),
    )  # fmt: skip
    [(_, [one])] = candidates(question.space, question.job, question.book).families
    eased = with_eased_controller(one)
    assert eased is not None
    assert eased.family.fields[-3:] == (
        ("controller.request", "7200ns"),
        ("controller.command", "3600ns"),
        ("controller.parity_rate", "8888888889B/s"),
    )
