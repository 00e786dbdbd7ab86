"""The explorer: what `headstack explore` writes, and what a reader does with it in Chromium and in Firefox."""

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
from conftest import CHEETAH, REPOSITORY, Headstack, chromium, lacks, needs_quiet_machine, slow
from headstack.results.explorer import ENGINE, page

WEB = REPOSITORY / "web"
SIZE_MAX, COMPRESSED_MAX = 3_000_000, 1_200_000
BLOCKED_MAX_MS, FIRST_CURVE_MAX_MS, COARSE_MAX_MS = 800, 8_000, 2_000
"""Many times what a quiet machine takes, which benches/explorer.py tells: tests meet others on the same cores."""
FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
ARRAY = "nearline-24-raid6"
DRIVES_OF_IT = "ultrastar-hc560-20tb"

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
SCHEDULE = """[[fault]]
at = "0s"
what = "latency-spike"
time = "3ms"
"""
PRICES = f"""item,price,currency,date,confidence,source
mine,150,USD,2003,S,a quote
{CHEETAH},400,USD,2001,S,a quote
{ARRAY},2400,USD,2022,S,a quote
{DRIVES_OF_IT},300,USD,2022,S,a quote
"""
STATES = {
    "changed": f"#at=32&requests=1000&shows=p99&of={ARRAY}|file-server|groups[0].chunk_size=64KiB",
    "rebuilt": f"#at=16&requests=500&of={ARRAY}|file-server|faults=member-rebuilt.toml",
    "errors": f"#at=4&requests=500&of={CHEETAH}|file-server|faults=media-errors-1GiB.toml",
    "clients": f"#at=16&requests=500&of={CHEETAH}|serverbench",
    "fixed": f"#at=16&requests=500&of={CHEETAH}|neds-play",
    "fewer": f"#at=4&requests=300&of={ARRAY}|file-server|drives=12",
    "others": f"#at=4&requests=300&of={ARRAY}|file-server|drive={CHEETAH}|drives=12",
    "unpriced": f"#at=4&requests=300&of={ARRAY}|file-server|drive=man3735",
    "dropping": "#at=4&requests=300&of=990-pro-2tb|file-server|flash.channels=2",
    "cached": f"#at=4&requests=300&of={ARRAY}|file-server|controller.cache.data=3GiB",
}
KINDS = (ARRAY, "va-7100", "jbod-24-raid60", "md-raid10-8-nvme", "970-evo-plus-1tb", "aws-gp3-1000-16k", CHEETAH)
"""A system of each kind, of arrays some."""
Told = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, and what is dropped on it."""
    folder = tmp_path_factory.mktemp("explorer")
    (folder / "prices.csv").write_text(PRICES)
    hs.explore(folder / "page.html", CHEETAH, "file-server", prices=folder / "prices.csv")
    (folder / "mine.toml").write_text((REPOSITORY / "catalogue" / "drives" / "man3735.toml").read_text())
    hs.run(CHEETAH, "file-server", depth=[1, 4], requests=500).to_json(folder / "results.json")
    (folder / "fio.json").write_text(json.dumps(FIO))
    (folder / "wrong.txt").write_text("nothing")
    (folder / "late.toml").write_text(SCHEDULE)
    (folder / "recorded.csv").write_text("".join(recorded()))
    (folder / "states").write_text("\n".join(STATES.values()))
    return folder


def recorded() -> list[str]:
    """Requests of one server to two of its disks, as MSR Cambridge recorded them."""
    return [
        f"{128166372003146519 + 80_000 * n},web,{n % 2},{'Write' if n % 3 else 'Read'},"
        f"{4096 * (7919 * n % 1_000_000)},{4096 * (1 + n % 4)},{10_000 + n}\n"
        for n in range(600)
    ]


def seen(folder: Path, part: str, *arguments: str) -> Any:
    """What comes of a part of web/test/explore.mjs."""
    browser = chromium()
    script = WEB / "test" / "explore.mjs"
    command: list[str | Path] = ["node", script, browser, folder / "page.html", part, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    found: Told = json.loads(done.stdout)
    # Whatever a reader does, the page complains of nothing and asks the network for nothing.
    assert found["errors"] == []
    assert found["requests"] == []
    return found["told"]


@pytest.fixture(scope="module")
def dragged(folder: Path) -> Told:
    told: Told = seen(folder, "dragged")
    return told


@pytest.fixture(scope="module")
def pinned(folder: Path) -> Told:
    told: Told = seen(folder, "pinned")
    return told


@pytest.fixture(scope="module")
def faulty(folder: Path) -> Told:
    told: Told = seen(folder, "faulty", *KINDS)
    return told


@pytest.fixture(scope="module")
def addressed(folder: Path) -> Told:
    return dict(zip(STATES, seen(folder, "addressed", str(folder / "states")), strict=True))


@pytest.fixture(scope="module")
def dropped(folder: Path) -> Told:
    names = ("mine.toml", "results.json", "fio.json", "wrong.txt", "late.toml", "recorded.csv")
    told = seen(folder, "dropped", *(str(folder / name) for name in names))
    return {shown["name"]: shown for shown in told}


def computed(shown: Told, folder: Path) -> list[dict[str, Any]]:
    """The rows of the command that the page shows, with the files that it offers."""
    for name, text in shown["files"]:
        (folder / name).write_text(text)
    words = shlex.split(shown["command"].replace("\\\n", " "))
    assert words[0] == "headstack"
    if words[1] == "sweep":
        values = dict(word.split("=", 1) for at, word in enumerate(words) if words[at - 1] == "--vary")
        demand = words[words.index("-w") + 1] if "-w" in words else None
        return hs.sweep(words[2], demand, vary=values).rows()
    assert words[1:3] == ["trace", "replay"]
    options = dict(zip(words[5::2], words[6::2], strict=True))
    trace = hs.Trace(words[3], steps=(options["--step"],))
    depths = options["--depth"].split(",") if "--depth" in options else None
    faults = options.get("--faults", "none")
    requests = int(options["--requests"])
    return list(hs.replay(trace, words[4], options["--mode"], depth=depths, requests=requests, faults=faults))


def check(shown: Told, folder: Path) -> None:
    """What the page says is what the command that it shows gives."""
    loads = re.findall(r"(?:at queue depth|with) (\d+)\b", shown["answer"])
    rows = [row for row in computed(shown, folder) if not loads or row["depth"] == int(loads[0])]
    (row,) = rows
    iops, mb_per_s = re.findall(r"([\d.,]+) IOPS, ([\d.,]+) MB/s", shown["answer"])[0]
    assert float(iops.replace(",", "")) == pytest.approx(row["iops"], rel=6e-4)
    assert float(mb_per_s.replace(",", "")) == pytest.approx(row["mb_per_s"], rel=6e-3)
    assert f"Busiest: {row['bottleneck']}, {row['utilization_percent']:.3g} %" in shown["answer"]
    if row["errors"]:
        assert f" {row['errors']} requests failed" in shown["answer"]


def iops(shown: Told) -> float:
    return float(re.findall(r"([\d.,]+) IOPS", shown["answer"])[0].replace(",", ""))


def test_dragging_computes_anew_and_says_what_came_of_it(dragged: Told) -> None:
    before, after, keyed, typed = (dragged[when] for when in ("before", "after", "keyed", "typed"))
    assert before["answer"].startswith(f"{CHEETAH} at queue depth 16: 274.3 IOPS")
    assert len({before["answer"], after["answer"], keyed["answer"]}) == 3
    assert iops(after) < iops(keyed) < iops(typed) < iops(before), "a slower spindle takes longer"


def test_what_is_typed_has_the_unit_of_what_it_was_and_is_refused_with_a_reason(dragged: Told) -> None:
    assert "spindle.speed=9000rpm" in dragged["typed"]["hash"]
    assert dragged["refused"]["answer"].startswith(f"{CHEETAH}: not possible: ")
    assert "spindle.speed" in dragged["refused"]["answer"]


def test_a_value_and_its_interval_have_one_unit(dragged: Told) -> None:
    """As in reports: see ``with_error`` of words.py."""
    from headstack.results import words

    assert "mean 58.4 ± 0.6 ms" in dragged["before"]["answer"]
    assert words.with_error(58.41, 0.638) == "58.4 ± 0.6"


@pytest.mark.parametrize("state", ["after", "keyed"])
def test_the_command_of_a_drag_gives_its_numbers(
    dragged: Told, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(dragged[state], tmp_path)


@pytest.mark.parametrize("state", STATES)
def test_the_command_of_an_address_gives_its_numbers(
    addressed: Told, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check(addressed[state], tmp_path)


def test_a_state_is_in_the_address(addressed: Told, dragged: Told) -> None:
    shown = addressed["changed"]
    assert f"{ARRAY}|file-server|groups[0].chunk_size=64KiB" in shown["hash"]
    assert "at=32&requests=1000&shows=p99" in shown["hash"]
    assert shown["answer"].startswith(f"{ARRAY} at queue depth 32")
    assert "spindle.speed=7" in dragged["after"]["hash"]


def test_a_pinned_curve_stays_beside_what_is_changed(pinned: Told, tmp_path: Path) -> None:
    assert [name.split(",")[-1].strip() for name in pinned["chips"]] == ["6 changes", "pinned"]
    mean = [cells[3] for cells in pinned["cells"]]
    assert len(set(mean)) == 2, "longer seeks take longer"
    assert pinned["added"][-1] == "man3735"
    check(pinned, tmp_path)


def test_faults_are_picked_and_how_much_of_one_is_dragged(faulty: Told, dragged: Told) -> None:
    assert "faults=fail-slow-20ms.toml" in faulty["slow"]["command"]
    assert "faults=fail-slow-1ms.toml" in faulty["less"]["command"]
    assert iops(faulty["slow"]) < iops(faulty["less"]) < iops(dragged["before"])
    assert 'time = "20ms"' in dict(faulty["slow"]["files"])["fail-slow-20ms.toml"]


def test_each_fault_strikes_each_kind_of_system(faulty: Told) -> None:
    labels = {system: [one["label"] for one in faulty["each"] if one["system"] == system] for system in KINDS}
    assert "the cache has lost its battery" in labels[ARRAY]
    assert "a drive is being rebuilt" in labels["md-raid10-8-nvme"]
    assert "a drive has failed" not in labels[CHEETAH]
    assert min(map(len, labels.values())) >= 5
    for one in faulty["each"]:
        assert "IOPS" in one["answer"], one


def test_a_scenario_grows_by_its_clients_or_says_why_not(addressed: Told) -> None:
    assert f"{CHEETAH} with 16 clients" in addressed["clients"]["answer"]
    assert f"{CHEETAH} under this scenario" in addressed["fixed"]["answer"]
    assert "no stream of neds-play has a number of clients to set" in addressed["fixed"]["notes"][0]


def test_stated_figures_that_a_change_drops_are_named_as_a_sweep_names_them(addressed: Told) -> None:
    (note,) = hs.sweep("990-pro-2tb", "file-server", vary={"flash.channels": ["2"]}).notes
    assert "invalidates the stated figures stated.after_slc, stated.random_read" in note
    assert note in addressed["dropping"]["notes"]
    others = (shown for name, shown in addressed.items() if name != "dropping")
    assert not any("the stated figures" in one for shown in others for one in shown["notes"])


def test_what_is_changed_is_priced_by_what_is_bought(addressed: Told) -> None:
    def price(state: str) -> str:
        text: str = addressed[state]["cells"][0][-2]
        return text

    assert price("changed") == f"{2400 + 24 * 300:,}"
    assert price("fewer") == f"{2400 + 12 * 300:,}"
    assert price("others") == f"{2400 + 12 * 400:,}"
    assert price("unpriced") == "no price for man3735"
    assert price("cached") == f"no price for {ARRAY} with a changed controller.cache.data"
    assert addressed["fewer"]["cells"][0][-1] == f"{6000 / iops(addressed['fewer']):.3g}"


def test_files_that_are_dropped_are_read_in_the_page(dropped: Told) -> None:
    toml, results, fio, wrong = (dropped[name] for name in ("mine.toml", "results.json", "fio.json", "wrong.txt"))
    assert toml["chips"] == [CHEETAH, "mine.toml"]
    assert toml["answer"].startswith("mine.toml at queue depth 16:")
    assert [results["marks"] - toml["marks"], fio["marks"] - results["marks"]] == [2, 1]
    assert "is in no known format" in wrong["answer"]


def test_faults_that_are_dropped_strike(dropped: Told, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert "faults=late.toml" in dropped["late.toml"]["command"]
    check(dropped["late.toml"], folder)


def test_a_recording_that_is_dropped_is_replayed(dropped: Told, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    shown = dropped["recorded.csv"]
    assert shown["notes"][0].startswith("600 requests in 4.79 s (msr).")
    assert "--step device=web.0" in shown["command"]
    check(shown, folder)


@slow("a thousand simulations, with the engine as it ships")
def test_a_thousand_drags_leave_no_memory_behind(folder: Path) -> None:
    told = seen(folder, "remembered")
    before, after = told["before"], told["after"]
    assert abs(after["heap"] - before["heap"]) < 2, "MB of the page's own"
    assert abs(after["elements"] - before["elements"]) < 100
    # Chromium keeps some of what it has drawn: that is there without a simulation, too.
    assert after["all"] - before["all"] < 70, "MB of its process, workers and their engines in it"


def test_it_is_read_on_a_phone_in_the_dark_and_on_paper(folder: Path) -> None:
    narrow = seen(folder, "narrow")
    assert narrow["wide"] <= 390
    assert narrow["ground"] == "rgb(21, 24, 28)"
    assert narrow["violations"] == []
    assert narrow["printed"]["panel"] == "none"
    assert narrow["printed"]["lines"] > 0


def test_nobody_waits_for_the_page(dragged: Told) -> None:
    needs_quiet_machine()
    assert dragged["blocked_ms"] < BLOCKED_MAX_MS
    assert dragged["first_curve_ms"] < FIRST_CURVE_MAX_MS
    assert dragged["coarse_ms"] < COARSE_MAX_MS


@slow("a second browser")
def test_firefox_gives_the_same(folder: Path, dragged: Told) -> None:
    if FIREFOX is None:
        lacks("programs", "firefox-esr is not installed")
    script = WEB / "test" / "firefox.mjs"
    command: list[str | Path] = ["node", "--experimental-websocket", script, FIREFOX, folder / "page.html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    found: Told = json.loads(done.stdout)
    assert found["errors"] == []
    assert "Firefox" in found["version"]
    assert found["lines"] > 0
    assert [found["before"], found["after"]] == [dragged["before"]["answer"], dragged["after"]["answer"]]


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 8), *(pytest.param(first, 60, marks=slow("a minute for each sixty")) for first in range(0, 360, 60))],
)
def test_every_system_and_workload_of_the_catalogue_is_shown_and_dragged(folder: Path, first: int, count: int) -> None:
    told = seen(folder, "every", str(first), str(count))
    assert told["systems"] <= 360
    for shown in told["told"]:
        # A scenario may be for an array that has its LUNs.
        is_possible = "IOPS" in shown["answer"] or "streams[0].lun" in shown["answer"]
        assert is_possible, shown["answer"]
        assert "faults" in shown["labels"]
        assert shown["moved"] is False or re.search(r"IOPS|not possible: \w", shown["moved"]), shown["moved"]


@slow("of the engine as it ships, which `make test` does not build")
def test_a_page_is_small() -> None:
    text = page([CHEETAH], "file-server").encode()
    assert len(text) < SIZE_MAX
    assert len(gzip.compress(text)) < COMPRESSED_MAX


def test_files_and_prices_are_in_the_page(headstack: Headstack, tmp_path: Path) -> None:
    mine = (REPOSITORY / "catalogue" / "drives" / "man3735.toml").read_text().replace("10025rpm", "9000rpm")
    (tmp_path / "mine.toml").write_text(mine)
    (tmp_path / "prices.csv").write_text(PRICES)
    done = headstack("explore", "mine.toml", CHEETAH, "-o", "page.html", "--prices", "prices.csv", "--no-open")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.html").read_text()
    told = json.loads(re.findall(r'<script type="application/json" id="explore">(.*?)</script>', text)[0])
    assert told["files"]["mine.toml"]["stated"]["spindle"]["speed"] == "9000rpm"
    expected = {"mine": 150, CHEETAH: 400, ARRAY: 2400, DRIVES_OF_IT: 300}
    assert {item: told["prices"][item] for item in expected} == expected
    assert [entry["system"] for entry in told["entries"]] == ["mine.toml", CHEETAH]


def test_what_is_unknown_is_refused_in_one_line(headstack: Headstack, tmp_path: Path) -> None:
    done = headstack("explore", "cheetah-x15", "-o", "page.html")
    assert done.returncode == 2
    assert "no drive, array or stack" in done.stderr
    assert not (tmp_path / "page.html").exists()
