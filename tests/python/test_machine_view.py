"""The view into the machine of the explorer, as a reader finds it in Chromium, and what the engine tells it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

import headstack as hs
from conftest import CHEETAH, chromium, needs_quiet_machine
from headstack.results.explorer import ENGINE
from test_explorer import WEB

pytestmark = pytest.mark.skipif(not ENGINE.is_file(), reason="not built: make web, with Rust for WebAssembly")

SCENES = {
    "why SPTF wins": 2,
    "why depth 64 has a tail": 1,
    "what a small write does to RAID 5": 1,
    "full-stripe writes": 1,
    "a rebuild": 1,
    "why reads wait in an SSD": 1,
}


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a reader finds in Chromium."""
    browser = chromium()
    file = tmp_path_factory.mktemp("machine") / "page.html"
    hs.explore(file, CHEETAH, "file-server")
    done = subprocess.run(
        ["node", WEB / "test" / "machine.mjs", browser, file],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_page_is_silent_and_asks_the_network_for_nothing(looked: dict[str, Any]) -> None:
    assert looked["errors"] == []
    assert looked["requests"] == []


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene_is_one_click_away_and_drawn(looked: dict[str, Any], scene: str) -> None:
    found = looked["scenes"][scene]
    assert len(found["views"]) == SCENES[scene]
    for view in found["views"]:
        assert view["colours"] > 4, "something is drawn"
        assert view["summary"].startswith("The first ")
        assert view["rows"] > 10, "the table has the requests"


def test_words_and_picture_are_of_the_same_moment(looked: dict[str, Any]) -> None:
    for scene in looked["scenes"].values():
        for view in scene["views"]:
            assert view["label"] == view["doing"]
            assert view["log"], "what has happened is told"


def test_steps_go_from_event_to_event(looked: dict[str, Any]) -> None:
    stepped = looked["stepped"]
    assert len(set(stepped["forth"])) == len(stepped["forth"]), "each step is to another moment"
    assert stepped["back"] == stepped["forth"][-2], "and back again"
    assert stepped["at_end"] != stepped["at_start"]
    assert all(stepped["marked"]), "the log marks what happens now"


def test_a_request_of_the_table_is_followed_from_its_arrival(looked: dict[str, Any]) -> None:
    followed = looked["stepped"]["followed"]
    follow, at = followed["inside"].split(";")
    assert follow == f"follow:{followed['request']}"
    assert float(at.removeprefix("at:")) == pytest.approx(followed["came_ms"], abs=1e-3)


def test_it_plays_and_pauses_and_blocks_nobody(looked: dict[str, Any]) -> None:
    played = looked["played"]
    assert played["while"][0] != played["while"][1]
    assert played["paused"][0] == played["paused"][1]


def test_a_link_is_followed_though_an_answer_rewrites_the_address(looked: dict[str, Any]) -> None:
    assert looked["overtaken"]


def test_a_frame_is_drawn_in_time(looked: dict[str, Any]) -> None:
    needs_quiet_machine()
    assert looked["played"]["frame_ms"] < 50, "median of the frames that were drawn"


def test_who_wants_little_motion_gets_none_unasked(looked: dict[str, Any]) -> None:
    assert looked["stepped"]["played_by_itself"] is False
    assert looked["played"]["played_by_itself"] is True


def test_the_shortest_positioning_time_beats_the_order_of_arrival(looked: dict[str, Any]) -> None:
    sptf, fcfs = (view["mean_ms"] for view in looked["scenes"]["why SPTF wins"]["views"])
    assert sptf < 0.7 * fcfs
    asked = {"depth": "16", "policy": "fcfs", "size": "4KiB", "requests": "300", "warm_up": "0s"}
    (run,) = hs.sweep(CHEETAH, vary=asked).rows()
    assert fcfs == pytest.approx(run["mean_ms"], rel=2e-3), "the figure is the program's"


def test_a_small_write_of_raid_5_is_told_as_two_reads_and_two_writes(looked: dict[str, Any]) -> None:
    told = looked["scenes"]["what a small write does to RAID 5"]["first_request"]
    assert sorted(text.split(": command")[1].split(", ", 1)[1] for text in told) == [
        "read old data for request 0.",
        "read parity for request 0.",
        "write data for request 0.",
        "write parity for request 0.",
    ]


def test_the_address_holds_the_moment(looked: dict[str, Any]) -> None:
    assert looked["addressed"]["moment"] == looked["addressed"]["again"]


def test_it_is_read_on_a_phone_in_the_dark(looked: dict[str, Any]) -> None:
    assert looked["narrow"]["wide"] <= 390
    assert looked["narrow"]["violations"] == []
