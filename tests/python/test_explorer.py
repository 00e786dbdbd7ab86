"""The explorer: what `headstack explore` writes, and what a reader does with it in Chromium."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import CHEETAH, REPOSITORY, Headstack
from headstack.report.explorer import ENGINE, page

WEB = REPOSITORY / "web"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SIZE_MAX, COMPRESSED_MAX = 3_000_000, 1_200_000
BLOCKED_MAX_MS, FIRST_CURVE_MAX_MS, COARSE_MAX_MS = 800, 8_000, 2_000
"""Many times what a quiet machine takes, which benches/explorer.py tells: tests meet others on the same cores."""

pytestmark = pytest.mark.skipif(not ENGINE.is_file(), reason="not built: make web, with Rust for WebAssembly")

FIO = {
    "jobs": [
        {
            "jobname": "rand-read",
            "read": {"iops": 180.5, "total_ios": 1000, "lat_ns": {"mean": 22_000_000.0}},
            "write": {"iops": 0, "total_ios": 0},
            "trim": {"iops": 0, "total_ios": 0},
        }
    ]
}


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a reader finds in Chromium."""
    if shutil.which("node") is None or CHROMIUM is None or not (WEB / "node_modules").is_dir():
        pytest.skip("the page is looked at by Chromium and Node with web/node_modules (npm ci)")
    folder = tmp_path_factory.mktemp("explorer")
    file = folder / "page.html"
    hs.explore(file, CHEETAH, "file-server")
    dropped = [folder / name for name in ("mine.toml", "results.json", "fio.json", "wrong.txt")]
    dropped[0].write_text((REPOSITORY / "catalogue" / "drives" / "man3735.toml").read_text())
    hs.run(CHEETAH, "file-server", depth=[1, 4], requests=500).to_json(dropped[1])
    dropped[2].write_text(json.dumps(FIO))
    dropped[3].write_text("nothing")
    done = subprocess.run(
        ["node", WEB / "test" / "explore.mjs", CHROMIUM, file, *dropped],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def swept(command: str) -> list[dict[str, Any]]:
    """The rows of a command that the page shows."""
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:2] == ["headstack", "sweep"]
    values = dict(word.split("=", 1) for at, word in enumerate(words) if words[at - 1] == "--vary")
    demand = words[words.index("-w") + 1] if "-w" in words else None
    return hs.sweep(words[2], demand, vary=values).rows()


def test_the_page_is_silent_and_asks_the_network_for_nothing(looked: dict[str, Any]) -> None:
    assert looked["errors"] == []
    assert looked["requests"] == []


def test_dragging_computes_anew_and_says_what_came_of_it(looked: dict[str, Any]) -> None:
    dragged = looked["dragged"]
    before, after, keyed = (dragged[when]["answer"] for when in ("before", "after", "keyed"))
    assert before.startswith(f"{CHEETAH} with 16 requests outstanding: 274.3 IO/s")
    assert len({before, after, keyed}) == 3
    slower = [float(re.findall(r"([\d.]+) IO/s", text)[0]) for text in (after, keyed, before)]
    assert slower == sorted(slower), "a slower spindle takes longer"


@pytest.mark.parametrize("state", ["dragged", "pinned", "addressed"])
def test_the_command_of_a_state_gives_its_numbers(looked: dict[str, Any], state: str) -> None:
    shown = looked[state]["after"] if state == "dragged" else looked[state]
    depth = int(re.findall(r"with (\d+) requests", shown["answer"])[0])
    (row,) = [row for row in swept(shown["command"]) if row["depth"] == depth]
    iops, mb_per_s = re.findall(r"([\d.,]+) IO/s, ([\d.,]+) MB/s", shown["answer"])[0]
    assert float(iops.replace(",", "")) == pytest.approx(row["iops"], rel=6e-4)
    assert float(mb_per_s.replace(",", "")) == pytest.approx(row["mb_per_s"], rel=6e-3)
    assert f"The {row['bottleneck']} is busy {row['utilisation_percent']:.3g} %" in shown["answer"]


def test_a_state_is_in_the_address(looked: dict[str, Any]) -> None:
    shown = looked["addressed"]
    assert "nearline-24-raid6|file-server|groups[0].stripe_unit=64KiB" in shown["hash"]
    assert "at=32&requests=1000&shows=p99" in shown["hash"]
    assert shown["answer"].startswith("nearline-24-raid6 with 32 requests outstanding")
    assert "spindle.speed=7" in looked["dragged"]["after"]["hash"]


def test_a_pinned_curve_stays_beside_what_is_changed(looked: dict[str, Any]) -> None:
    pinned = looked["pinned"]
    assert [name.split(",")[-1].strip() for name in pinned["chips"]] == ["6 changes", "pinned"]
    mean = [cells[3] for cells in pinned["cells"]]
    assert len(set(mean)) == 2, "longer seeks take longer"
    assert pinned["added"][-1] == "man3735"


def test_files_that_are_dropped_are_read_in_the_page(looked: dict[str, Any]) -> None:
    toml, results, fio, wrong = looked["dropped"]
    assert toml["chips"] == [CHEETAH, "mine.toml"]
    assert toml["answer"].startswith("mine.toml with 16")
    assert [results["marks"] - toml["marks"], fio["marks"] - results["marks"]] == [2, 1]
    assert wrong["answer"] == "wrong.txt: a description (TOML), or results of headstack or of fio (JSON) can be read"


def test_dragging_leaves_no_memory_behind(looked: dict[str, Any]) -> None:
    (before_mb, before), (after_mb, after) = looked["remembered"]["before"], looked["remembered"]["after"]
    assert after_mb < 1.5 * before_mb + 5
    assert abs(after - before) < 100, "elements of the page"


def test_it_is_read_on_a_phone_in_the_dark_and_on_paper(looked: dict[str, Any]) -> None:
    narrow = looked["narrow"]
    assert narrow["wide"] <= 390
    assert narrow["ground"] == "rgb(21, 24, 28)"
    assert narrow["violations"] == []
    assert narrow["printed"]["panel"] == "none"
    assert narrow["printed"]["lines"] > 0


def test_nobody_waits_for_the_page(looked: dict[str, Any]) -> None:
    dragged = looked["dragged"]
    assert dragged["blocked_ms"] < BLOCKED_MAX_MS
    assert dragged["first_curve_ms"] < FIRST_CURVE_MAX_MS
    assert dragged["coarse_ms"] < COARSE_MAX_MS


def test_a_page_is_small() -> None:
    text = page([CHEETAH], "file-server").encode()
    assert len(text) < SIZE_MAX
    assert len(gzip.compress(text)) < COMPRESSED_MAX


def test_files_and_prices_are_in_the_page(headstack: Headstack, tmp_path: Path) -> None:
    mine = (REPOSITORY / "catalogue" / "drives" / "man3735.toml").read_text().replace("10025rpm", "9000rpm")
    (tmp_path / "mine.toml").write_text(mine)
    rows = [
        "item,price,currency,date,confidence,source",
        "mine,150,USD,2003,S,a quote",
        f"{CHEETAH},400,USD,2001,S,a quote",
    ]
    (tmp_path / "prices.csv").write_text("\n".join(rows))
    done = headstack("explore", "mine.toml", CHEETAH, "-o", "page.html", "--prices", "prices.csv", "--no-open")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.html").read_text()
    told = json.loads(re.findall(r'<script type="application/json" id="explore">(.*?)</script>', text)[0])
    assert told["files"]["mine.toml"]["stated"]["spindle"]["speed"] == "9000rpm"
    assert told["prices"]["mine.toml"] == 150
    assert told["prices"][CHEETAH] == 400
    assert [entry["system"] for entry in told["entries"]] == ["mine.toml", CHEETAH]


def test_what_is_unknown_is_refused_in_one_line(headstack: Headstack, tmp_path: Path) -> None:
    done = headstack("explore", "cheetah-x15", "-o", "page.html")
    assert done.returncode == 2
    assert "no drive or array" in done.stderr
    assert not (tmp_path / "page.html").exists()
