"""Which features divide good devices from bad ones, and what cannot be concluded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headstack as hs
from conftest import SHARED, Headstack, lacks
from headstack.diagnosis.inspection.inspect import compare
from headstack.diagnosis.inspection.model import Inspection

SAMPLES = Path(__file__).parent / "samples" / "inspect"
MEMO = SAMPLES / "memo"


def listing(name: str) -> Inspection:
    (found,) = hs.inspect(MEMO / f"{name}.hdparm.txt")
    return found


@pytest.fixture
def good() -> Inspection:
    return listing("good")


@pytest.fixture
def bad() -> list[Inspection]:
    return [listing("bad-1"), listing("bad-2")]


def test_what_divides_and_what_nearly_does(good: Inspection, bad: list[Inspection]) -> None:
    difference = compare([good], bad)
    exact, nearly = difference.dividers()
    how = {divider.key: divider.how for divider in exact}
    assert how["dipm"] == "only the bad devices have it"
    assert how["sata_gen3"] == "only the bad devices have it"
    assert how["tcq"] == "only the good devices have it"
    assert how["erase_minutes"] == "296 in the good devices, 508 in the bad ones"
    assert set(how) == {"dipm", "sata_gen3", "tcq", "erase_minutes"}
    exceptions = {divider.key: divider.exceptions for divider in nearly}
    assert exceptions["hipm"] == ("Hitachi HDS723030ALA640 MK0SAMPLE2",)
    assert exceptions["apm"] == ("ST32000641AS 9WM0SAMPLE3",)
    assert "ncq" not in how | exceptions
    assert any(caveat.startswith("one good device") for caveat in difference.caveats())


def test_sides_swapped_find_the_same_features(good: Inspection, bad: list[Inspection]) -> None:
    found = {divider.key for divider in compare(bad, [good]).dividers()[0]}
    assert found == {divider.key for divider in compare([good], bad).dividers()[0]}


def test_enabled_divides_where_all_have_it(good: Inspection, bad: list[Inspection], tmp_path: Path) -> None:
    text = (MEMO / "good.hdparm.txt").read_text()
    (tmp_path / "off.txt").write_text(
        text.replace("   *\tLook-ahead", "    \tLook-ahead").replace("SAMPLE1", "SAMPLE4")
    )
    (off,) = hs.inspect(tmp_path / "off.txt")
    (divider,) = compare([good], [off]).dividers()[0]
    assert (divider.key, divider.how) == ("read_lookahead", "only the good devices have it enabled")
    difference = compare([good], [off])
    states = [difference.state(device, "read_lookahead") for device in (good, off)]
    assert states == ["enabled", "supported"]


def test_a_device_without_a_listing_proves_no_absence(good: Inspection, bad: list[Inspection]) -> None:
    (disk,) = hs.inspect(SAMPLES / "disk.smartctl.json")
    difference = compare([disk], bad)
    assert difference.state(disk, "dipm") == "not known"
    exact, nearly = difference.dividers()
    assert "dipm" not in {divider.key for divider in (*exact, *nearly)}
    assert any("no complete listing" in caveat for caveat in difference.caveats())
    # Beside a good device that is listed, it is the one exception.
    _, nearly = compare([good, disk], bad).dividers()
    assert {d.key: d.exceptions for d in nearly}["dipm"] == ("WDC WD40EFRX-68N32N0 WD-WX00SAMPLE01",)


def test_devices_of_one_model_are_one_observation(good: Inspection, bad: list[Inspection]) -> None:
    caveats = compare([good, good], bad).caveats()
    assert "all good devices are the same model: they count as one observation, not 2" in caveats


def test_the_memo_cannot_conclude_without_the_missing_listing(headstack: Headstack) -> None:
    memo = SHARED / "seeds" / "3-mark5c-drives.txt"
    if not memo.is_file():
        lacks("data", f"no memo in {memo}")
    hitachi, seagate = hs.inspect(memo)
    difference = compare([], [hitachi, seagate])
    assert difference.dividers() == ([], [])
    one_sided = difference.one_sided()
    assert one_sided is not None
    assert one_sided.side == "bad"
    # The memo's candidate is possible, but so is much else that both have, and what both lack.
    assert {"dipm", "ncq", "sata_gen3", "write_cache"} <= set(one_sided.if_missing_elsewhere)
    assert set(one_sided.off) == {"security", "set_max_security", "dipm"}
    assert {"tcq", "trim", "aam"} <= set(one_sided.if_present_elsewhere)
    assert {"hipm", "apm", "sct", "ncq_priority", "write_read_verify"} <= set(one_sided.ruled_out)
    sides = [set(one_sided.ruled_out), set(one_sided.if_missing_elsewhere), set(one_sided.if_present_elsewhere)]
    assert sum(map(len, sides)) == len(set.union(*sides))
    said = headstack("inspect", "diff", str(memo), "--bad", "HDS723030ALA640", "--bad", "ST32000641AS")
    assert said.returncode == 0
    assert "so no feature can be shown to separate bad from good devices" in said.stdout
    assert "tcq: tagged queueing" in said.stdout
    assert "to decide: run hdparm -I on a good device, and add it with --good" in said.stdout


def test_the_command_shows_what_differs(headstack: Headstack) -> None:
    sides = ["--good", str(MEMO / "good.hdparm.txt"), "--bad", str(MEMO / "bad-1.hdparm.txt")]
    sides += ["--bad", str(MEMO / "bad-2.hdparm.txt")]
    said = headstack("inspect", "diff", *sides)
    assert said.returncode == 0
    assert "features that separate 1 good from 2 bad devices: 4" in said.stdout
    assert "\nsmart " not in said.stdout
    everything = headstack("inspect", "diff", *sides, "--all", "--json", "out.json")
    assert "\nsmart " in everything.stdout
    written = json.loads(headstack("inspect", "diff", *sides, "--json", "-").stdout)
    assert {divider["key"] for divider in written["divides"]} == {"dipm", "sata_gen3", "tcq", "erase_minutes"}
    rows = {row["key"]: row for row in written["rows"]}
    assert rows["dipm"]["states"] == ["absent", "supported", "supported"]
    assert not rows["ncq"]["differs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "0 device"),
        (["good.hdparm.txt"], "1 device; name two or more"),
        (
            ["good.hdparm.txt", "--bad", "nosuch"],
            "--bad: 'nosuch' is not a file, device, model or serial number; devices: WDC",
        ),
        (["--good", "good.hdparm.txt", "--bad", "good.hdparm.txt"], None),
        (["good.hdparm.txt", "--good", "ST1", "--bad", "WD-WMAY0SAMPLE1"], "--good: 'ST1'"),
        (["good.hdparm.txt", "--good", "WD-WMAY0SAMPLE1", "--bad", "WD-WMAY0SAMPLE1"], "named twice"),
    ],
)
def test_bad_usage(arguments: list[str], message: str | None, headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "good.hdparm.txt").write_text((MEMO / "good.hdparm.txt").read_text())
    refused = headstack("inspect", "diff", *arguments)
    assert refused.returncode == (2 if message else 0)
    if message:
        assert message in refused.stderr
        assert refused.stderr.count("\n") == 1
