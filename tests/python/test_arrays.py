"""Arrays: the catalogue's and one's own, what is impossible in them, and runs of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import headstack as hs
from conftest import ATLAS, REPOSITORY, Headstack
from headstack.cli.main import main
from headstack.simulation.runs import specify

CHAIN, MD = "compaq-wide-ultra", "md-raid5-8x2tb"

# Line numbers of the errors below count in it.
GOOD = """\
name = "Test"

[[drives]]
drive = "re4-2tb"
count = 6
links = ["cable"]

[[links]]
name = "cable"
kind = "ata-133"
count = 3
up = ["bus"]

[[links]]
name = "bus"
kind = "pci-32-33"

[[groups]]
name = "data"
level = "raid5"
drives = ["d0..d4"]
chunk_size = "64KiB"
spares = ["d5"]

[[luns]]
name = "small"
size = "1TB"

[[luns]]
name = "rest"

[controller]
request = "50us"

[controller.cache]
memory = "1GiB"
page = "64KiB"

[[incidents]]
at = "10s"
fails = "d1"
"""


def called(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def refused(shown: Result, start: str, words: str) -> None:
    assert shown.exit_code == 2, shown.output
    assert shown.stderr.count("\n") == 1
    assert shown.stderr.startswith(f"headstack: {start}"), shown.stderr
    assert words in shown.stderr
    assert shown.stdout == ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.toml").write_text(GOOD)
    return tmp_path


def test_the_good_file_is_good(folder: Path) -> None:
    array = hs.Array.load("good.toml")
    assert array.name == "good"
    assert [lun["name"] for lun in array.description["luns"]] == ["small", "rest"]
    assert array.description["members"][5]["ways"] == [[2, 3]]
    assert array.lun("rest").span == (10**12, array.capacity_bytes - 10**12)
    assert called("catalog", "arrays", "show", "good.toml").exit_code == 0


IMPOSSIBLE = [
    # What stands in the good file, what replaces it, where the error is, and what it says.
    ('drive = "re4-2tb"', 'drive = "re4-2t"', "bad.toml:4: drives[0].drive: ", "closest: re4-2tb"),
    ('drive = "re4-2tb"', 'drive = "other.toml"', "bad.toml:4: drives[0].drive: ", "other.toml: cannot be read"),
    ('links = ["cable"]', 'links = ["cabel"]', "bad.toml:6: drives[0].links: ", 'no link "cabel"; closest: cable'),
    ('links = ["cable"]', 'links = ["bus"]\nmultipath = true', "bad.toml:7: drives[0].multipath: ", "two or more"),
    ("count = 6", "count = 0", "bad.toml:5: drives[0].count: ", "1 to 4096"),
    ("count = 6", "count = 7", "bad.toml:8: links[0]: ", "3 drives on link"),
    ("count = 6", "count = 6\nqueue_depth = 0", "bad.toml:4: drives[0].drive: ", "queue.depth"),
    ("count = 6", "cuont = 6", "bad.toml:5: drives[0].cuont: ", "did you mean `count`?"),
    ('kind = "ata-133"', 'kind = "ata-13"', "bad.toml:10: links[0].kind: ", "did you mean `ata-133`?"),
    ('kind = "ata-133"', 'kind = "ata-133"\nrate = "0B/s"', "bad.toml:11: links[0].rate: ", "must be above 0"),
    ('kind = "ata-133"', 'kind = "ata-133"\nlanes = 4', "bad.toml:11: links[0].lanes: ", "not supported"),
    ('kind = "ata-133"', 'kind = "sas-12"\nlanes = 0', "bad.toml:11: links[0].lanes: ", "1 to 64"),
    ('kind = "ata-133"', 'kind = "sas-12"\noverlapped = true', "bad.toml:11: links[0].overlapped: ", "only ata"),
    ('kind = "ata-133"', 'kind = "pcie"', "bad.toml:8: links[0].generation: ", "1 to 5"),
    ('kind = "ata-133"', 'kind = "mirror"', "bad.toml:8: links[0].rate: ", "this key is missing"),
    ('kind = "ata-133"', 'kind = "ata-133"\ncommand = "-1us"', "bad.toml:11: links[0].command: ", "negative"),
    ('up = ["bus"]', 'up = ["cable1"]', "bad.toml:12: links[0].up: ", "is part of a loop"),
    ('name = "bus"', 'name = "cable1"', "bad.toml:12: links[0].up: ", 'no link "bus"'),
    ('level = "raid5"', 'level = "raid7"', "bad.toml:20: groups[0].level: ", "did you mean"),
    ('"d0..d4"', '"d0..d1"', "bad.toml:21: groups[0].drives: ", "2 drives are too few for raid5; the minimum is 3"),
    ('"d0..d4"', '"d4..d0"', "bad.toml:21: groups[0].drives: ", "is a descending range"),
    ('"d0..d4"', '"d0..d9"', "bad.toml:21: groups[0].drives: ", 'no drive "d9"'),
    ('"d0..d4"', '"d0..d4", "d2"', "bad.toml:21: groups[0].drives: ", "already used by group"),
    ('spares = ["d5"]', 'spares = ["d4"]', "bad.toml:23: groups[0].spares: ", "already used by group"),
    ('"64KiB"\nspares', '"0B"\nspares', "bad.toml:22: groups[0].chunk_size: ", "multiple"),
    ('"64KiB"\nspares', '"1000B"\nspares', "bad.toml:22: groups[0].chunk_size: ", "multiple"),
    ("spares =", "spans = 2\nspares =", "bad.toml:23: groups[0].spans: ", "2 spans do not divide 5 drives"),
    ("spares =", 'drive_size = "3TB"\nspares =', "bad.toml:23: groups[0].drive_size: ", "holds 2000398934016"),
    (
        "spares =",
        'rebuild.step = "0B"\nspares =',
        "bad.toml:23: groups[0].rebuild.step: ",
        "multiple of the chunk size",
    ),
    (
        "spares =",
        'rebuild.step = "96KiB"\nspares =',
        "bad.toml:23: groups[0].rebuild.step: ",
        "multiple of the chunk size",
    ),
    ("spares =", 'rebuild.rate_limit = "0B/s"\nspares =', "bad.toml:23: groups[0].rebuild.rate_limit: ", "above 0"),
    ("spares =", 'pool.segment = "96KiB"\nspares =', "bad.toml:23: groups[0].pool.segment: ", "a power of two"),
    ("spares =", 'pool.segment = "0B"\nspares =', "bad.toml:23: groups[0].pool.segment: ", "a power of two"),
    ("spares =", 'pool.spare = "99TB"\nspares =', "bad.toml:23: groups[0].pool.spare: ", "the maximum is"),
    ("spares =", "pool.parity_width = 5\nspares =", "bad.toml:23: groups[0].pool: ", "set all of parity_width"),
    ('size = "1TB"', 'prefill = "serial"\nsize = "1TB"', "bad.toml:27: luns[0].prefill: ", "has no pool"),
    ('size = "1TB"', 'size = "9TB"', "bad.toml:29: luns[1].size: ", "has no space left"),
    ('size = "1TB"', 'size = "0B"', "bad.toml:27: luns[0].size: ", "above 0"),
    ('size = "1TB"', 'group = "date"', "bad.toml:27: luns[0].group: ", 'no group "date"; closest: data'),
    ('name = "rest"', 'name = "small"', "bad.toml:30: luns[1].name: ", "a unique name"),
    ('name = "rest"', 'name = "rest"\nstart = "1GB"', "bad.toml:31: luns[1].start: ", "overlaps"),
    ('name = "rest"', 'name = "rest"\nsize = "8TB"', "bad.toml:31: luns[1].size: ", "holds"),
    ('request = "50us"', "processors = 0", "bad.toml:33: controller.processors: ", "1 to 65536"),
    ('request = "50us"', "drive_tags = 0", "bad.toml:33: controller.drive_tags: ", "1 to 65536"),
    ('request = "50us"', 'parity_rate = "0B/s"', "bad.toml:33: controller.parity_rate: ", "must be above 0"),
    ('page = "64KiB"', 'data = "2GiB"', "bad.toml:37: controller.cache.data: ", "the maximum is 1073741824"),
    (
        'page = "64KiB"',
        'data = "1MiB"\ndirty = "2MiB"',
        "bad.toml:38: controller.cache.dirty: ",
        "the maximum is 1048576",
    ),
    ('page = "64KiB"', 'page = "96KiB"', "bad.toml:37: controller.cache.page: ", "power of two"),
    ('page = "64KiB"', 'page = "256B"', "bad.toml:37: controller.cache.page: ", "from 512 (the block size)"),
    ('page = "64KiB"', "low_water = 0.9", "bad.toml:37: controller.cache.low_water: ", "0 to 0.8"),
    ('page = "64KiB"', "high_water = 1.5", "bad.toml:37: controller.cache.high_water: ", "0 to 1"),
    ('page = "64KiB"', "destages = 0", "bad.toml:37: controller.cache.destages: ", "1 to 65536"),
    ('page = "64KiB"', 'mirror = "bos"', "bad.toml:37: controller.cache.mirror: ", 'no link "bos"; closest: bus'),
    (
        'page = "64KiB"',
        'flash_drives = ["d0"]',
        "bad.toml:37: controller.cache.flash_drives: ",
        "already used by group",
    ),
    ('page = "64KiB"', "prefetch.streams = 0", "bad.toml:37: controller.cache.prefetch.streams: ", "1 to 65536"),
    ('fails = "d1"', 'fails = "d9"', "bad.toml:41: incidents[0].fails: ", 'no drive "d9"'),
    ('fails = "d1"', "", "bad.toml:39: incidents[0].fails: ", "exactly one of fails and battery"),
    ('fails = "d1"', 'battery = "explodes"', "bad.toml:41: incidents[0].battery: ", "fails, returns"),
    ('at = "10s"', 'at = "-1s"', "bad.toml:40: incidents[0].at: ", "negative"),
    ('fails = "d1"', 'fails = "d1"\n[[incidents]]\nat = "5s"\nfails = "d2"', "bad.toml:43: ", "ascending"),
    ('fails = "d1"', 'fails = "d1"\n[[incidents]]\nat = "50s"\nfails = "d1"', "bad.toml:44: ", "already failed"),
    ('name = "Test"', 'name = "Test"\nbase = "va-710"', "bad.toml:2: base: ", "closest: va-7100"),
    ('name = "Test"', 'name = "Test"\nbase = "bad.toml"', "bad.toml:2: base: ", "levels of base files"),
    ('name = "Test"', "", "bad.toml: name: ", "this key is missing"),
    ('name = "Test"', 'name = "Test"\nsources.default = "perhaps"', "bad.toml:2: sources.default: ", "a code (A, S"),
]


@pytest.mark.parametrize(("good", "bad", "start", "words"), IMPOSSIBLE)
def test_what_is_impossible_is_one_line(good: str, bad: str, start: str, words: str, folder: Path) -> None:
    assert GOOD.count(good) >= 1
    (folder / "bad.toml").write_text(GOOD.replace(good, bad, 1))
    refused(called("run", "bad.toml", "--json", "r.json"), start, words)
    assert not (folder / "r.json").exists()


def test_an_earlier_name_of_a_key_is_read_with_one_note(folder: Path) -> None:
    old = folder / "old.toml"
    old.write_text(GOOD.replace("chunk_size", "stripe_unit") + '[sources]\n"groups[0].stripe_unit" = "C default"\n')
    (folder / "new.toml").write_text(GOOD)
    shown = {name: called("catalog", "arrays", "show", str(folder / f"{name}.toml")) for name in ("old", "new")}
    assert shown["old"].exit_code == shown["new"].exit_code == 0, shown["old"].output
    assert shown["old"].stderr == f"headstack: {old}:22: `stripe_unit` is now `chunk_size`\n"
    assert shown["new"].stderr == ""
    assert hs.Array.load(str(old)).description == hs.Array.load(str(folder / "new.toml")).description
    # An option may have the earlier name, too.
    for key, stderr in (("chunk_size", ""), ("stripe_unit", "headstack: `stripe_unit` is now `chunk_size`\n")):
        swept = folder / f"{key}.csv"
        done = called(
            *("sweep", str(folder / "new.toml"), "-w", "file-server", "--requests", "200", "-q"),
            *("--vary", f"groups[0].{key}=16KiB,64KiB", "-o", str(swept)),
        )
        assert (done.exit_code, done.stderr) == (0, stderr), done.output
        assert swept.read_text().count("\n") == 3


def test_levels_need_their_drives(folder: Path) -> None:
    new = (("4+2", 6), ("8+8", 16), ("raidz1", 2), ("raidz3", 4), ("draid2:4d:1s", 7))
    for level, fewest in (("raid1", 2), ("raid10", 2), ("raid5", 3), ("raid6", 4), *new):
        for count in (fewest - 1, fewest):
            text = (
                f'name = "few"\ndrives = [{{ drive = "re4-2tb", count = {count} }}]\ngroups = [{{ level = "{level}" }}]'
            )
            (folder / "few.toml").write_text(text)
            shown = called("catalog", "arrays", "show", "few.toml")
            if count == fewest:
                assert shown.exit_code == 0, shown.stderr
            else:
                refused(
                    shown,
                    "few.toml:3: groups[0].drives: ",
                    f"{count} drives are too few for {level}; the minimum is {fewest}",
                )


def test_drives_of_a_group_have_blocks_of_one_size(folder: Path) -> None:
    own = called("catalog", "drives", "show", "exos-x24-24tb", "--toml").stdout
    assert 'logical_block   = "512B"' in own
    (folder / "4kn.toml").write_text(own.replace('logical_block   = "512B"', 'logical_block   = "4096B"'))
    text = GOOD.replace("count = 6", 'count = 5\n[[drives]]\ndrive = "4kn.toml"\ncount = 1', 1)
    (folder / "mixed.toml").write_text(text.replace('links = ["cable"]', "", 1))
    refused(called("run", "mixed.toml"), "mixed.toml:24: groups[0].drives: ", "blocks of 4096 bytes, others of 512")


def test_a_base_may_lie_in_a_file_and_errors_name_the_file_that_states_the_key(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "own.toml").write_text('base = "../good.toml"\n[controller]\nrequest = "1ms"\n')
    array = hs.Array.load("sub/own.toml")
    assert array.description["name"] == "Test"
    assert array.description["controller"]["request_ns"] == 1_000_000
    assert array.description["controller"]["cache"] is None
    (folder / "good.toml").write_text(GOOD.replace("count = 6", "count = 0"))
    refused(called("run", "sub/own.toml"), "sub/../good.toml:5: drives[0].count: ", "1 to 4096")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "va-710"], "no drive, array or stack"),
        (["catalog", "arrays", "show", "va-710"], "no array"),
        (["catalog", "arrays", "show", "va-710", "--toml"], "no array"),
        (["catalog", "arrays", "show", ATLAS], "no array"),
        (["catalog", "drives", "show", "va-7100"], "no drive"),
        (["run", MD, "--fail", "d3"], "--fail: 'd3' is not a failure; use DRIVE@TIME, for example d0@10s"),
        (["run", MD, "--fail", "d9@10s"], "--fail: there is no drive 'd9' in md-raid5-8x2tb; allowed: d0..d7"),
        (["run", MD, "--fail", "d3@10"], "--fail: "),
        (["run", MD, "--fail", "d3@-1s"], "--fail: -1s is negative"),
        (["run", MD, "--fail", "d3@1s+d3@2s"], "--fail: d3 fails more than once"),
        (["run", MD, "--lun", "nosuch"], "--lun: 'nosuch' is unknown; allowed: raid5"),
        (["run", f"{MD}@1GB", "--lun", "raid5"], "--lun: "),
        (["run", MD, "--lun", "raid5", "--range", "1GB"], "only one of them"),
        (["run", ATLAS, "--lun", "raid5"], "--lun: atlas-10k-iii-73 is a single drive"),
        (["run", ATLAS, "--fail", "d0@1s"], "--fail: atlas-10k-iii-73 is a single drive"),
        (["run", ATLAS, "--drives", "2"], "--drives: atlas-10k-iii-73 is a single drive"),
        (["run", ATLAS, "--level", "raid6"], "--level: atlas-10k-iii-73 is a single drive"),
        (["run", ATLAS, "--usable", "1GB"], "--usable: atlas-10k-iii-73 is a single drive"),
        (["sweep", ATLAS, "--level", "raid6", "--depth", "1"], "level: the system is a single drive"),
        (["run", MD, "--drives", "2"], "2 drives are too few for raid5; the minimum is 3"),
        (["run", MD, "--drives", "x"], '--drives: "x" is not a number of drives; must be 1 to 4096'),
        (["run", CHAIN, "--drives", "16"], "the maximum is 15"),
        (["run", MD, "--drive", "nosuch"], "drives[0].drive: no drive"),
        (["run", f"{MD}@99TB"], "ends after the system's capacity"),
        (["run", MD, "--write-cache", "perhaps"], "--write-cache: "),
        (["run", MD, "--queue-depth", "0"], "depth: 0"),
    ],
)
def test_bad_options_are_one_line(arguments: list[str], message: str) -> None:
    refused(called(*arguments), "", message)


def test_list_and_show(headstack: Headstack) -> None:
    listed = {entry["id"]: entry for entry in json.loads(headstack("catalog", "arrays", "list", "--json").stdout)}
    assert set(listed) == set(hs.arrays.list())
    assert listed["va-7100"]["drives"] == 15
    shown = headstack("catalog", "arrays", "show", "mark5c-module").stdout
    assert "bridge6 > cable3" in shown
    assert "held by each command" in shown
    assert "derived: pata-sata-bridge" in shown
    shown = headstack("catalog", "arrays", "show", "demartek-512n-raid5-20-log-raid10-4").stdout
    assert "channel0 or channel1" in shown
    assert "225GB" in shown
    assert "cache: write-back, 768MiB of 1GiB" in headstack("catalog", "arrays", "show", "va-7100").stdout


def test_a_catalogue_file_is_the_start_of_ones_own(folder: Path) -> None:
    for name in hs.arrays.list():
        (folder / "own.toml").write_text(called("catalog", "arrays", "show", name, "--toml").stdout)
        assert hs.Array.load("own.toml").description == hs.Array.load(name).description


def test_options_of_drives_hold_for_every_kind_of_disk(folder: Path) -> None:
    (folder / "two.toml").write_text(
        'name = "two"\ndrives = [{ drive = "re4-2tb", count = 2 }, { drive = "wd400bb", id = "old", count = 2 }]\n'
        'groups = [{ level = "raid10" }]'
    )
    (spec,) = specify("two.toml", None, {"policy": "look", "write_cache": "off", "queue_depth": 3})
    disks = [device["disk"] for device in spec["system"]["array"]["devices"]]
    assert len(disks) == 2
    for disk in disks:
        assert disk["queue"]["policy"] == "look"
        assert disk["queue"]["depth"] == 3
        assert disk["buffer"]["write_cache"] == "off"


def test_drives_luns_and_failures_reach_the_specification() -> None:
    specs = specify(CHAIN, None, {"drives": [2, 3], "drive": "barracuda-9lp-9", "lun": "d1", "fail": "d1@2s+d0@1s"})
    assert [len(spec["system"]["array"]["members"]) for spec in specs] == [2, 3]
    array = specs[0]["system"]["array"]
    assert "Barracuda" in array["devices"][0]["disk"]["name"]
    assert [(i["at_ns"], i["what"]["member-fails"]["member"]) for i in array["incidents"]] == [
        (10**9, 0),
        (2 * 10**9, 1),
    ]
    assert tuple(specs[0]["span"]) == (array["luns"][0]["length_bytes"], array["luns"][1]["length_bytes"])
    assert specs[0]["system_name"] == f"{CHAIN}@d1"
    assert hs.arrays.show(CHAIN).description["incidents"] == []
    with pytest.raises(hs.InputError, match="is already loaded"):
        specify(hs.Array.load(CHAIN), None, {"drives": 2})


@pytest.mark.parametrize("page", ["docs/simulating.md", "catalogue/arrays/README.md"])
def test_the_arrays_of_the_documentation_are_whole(page: str, folder: Path) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", (REPOSITORY / page).read_text(), re.MULTILINE | re.DOTALL)
    (text,) = (block for block in blocks if "[[drives]]" in block)
    (folder / "own.toml").write_text(text)
    assert len(hs.Array.load("own.toml").description["members"]) == 8


# Runs.


def test_every_array_of_the_catalogue_runs() -> None:
    results = hs.run(hs.arrays.list(), "file-server", depth=8, requests=300, warm_up=10)
    assert results.failed_checks() == []
    assert all(row["iops"] > 0 and row["data_loss"] is None and row["bottleneck"] for row in results)


def test_more_drives_do_more() -> None:
    rows = hs.run(CHAIN, size="2KiB", depth=[64], drives=[1, 2, 4, 7], requests=3000)
    iops = [row["iops"] for row in rows]
    assert iops == sorted(iops)
    assert iops[3] > 4 * iops[0]
    assert [row["drives"] for row in rows] == ["1", "2", "4", "7"]


def test_a_shared_bus_is_the_limit_of_large_requests() -> None:
    (row,) = hs.run(CHAIN, size="64KiB", depth=112, requests=3000)
    assert "bus" in row["bottleneck"]
    assert 33 < row["mb_per_s"] < 38


def test_a_lun_is_a_part(headstack: Headstack) -> None:
    whole, part = hs.run([CHAIN, hs.Array.load(CHAIN).lun("d0")], depth=7, requests=3000)
    assert part["iops"] < 0.5 * whole["iops"]
    (by_option,) = hs.run(CHAIN, lun="d0", depth=7, requests=3000)
    assert (by_option["system"], by_option["iops"]) == (part["system"], part["iops"])


def test_a_failure_costs_and_two_lose_data(headstack: Headstack) -> None:
    (healthy,) = hs.run(MD, depth=16, requests=3000)
    (degraded,) = hs.run(MD, depth=16, requests=3000, fail="d3@0s")
    assert degraded["iops"] < healthy["iops"]
    shown = headstack("run", MD, "--depth", "4", "--time", "5s", "--fail", "d3@1s+d4@2s")
    assert shown.returncode == 0, shown.stderr
    assert f"data loss in run 1 ({MD}): " in shown.stdout


def test_levels_and_capacities_are_swept_and_told(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"level": ["raid6", "raid10"], "usable": "9TB", "depth": 4, "requests": 500}
    results = hs.run("demartek-512n-raid10-24", "oltp-8k", **asked)
    assert [(row["level"], row["drives"]) for row in results] == [("raid6", "12"), ("raid10", "20")]
    assert [round(row["capacity_gb"]) for row in results] == [9002, 9002]
    headings = [column.heading for column in results.shown()[0]]
    assert {"level", "drives"} < set(headings)
    assert "capacity: 9.002TB is usable in every run" in results.notes
    alone = hs.run("demartek-512n-raid10-24", "oltp-8k", level="raid6", drives=12, depth=4, requests=500)
    assert alone[0]["iops"] == results[0]["iops"]
    # As of a sweep.
    swept = hs.sweep("demartek-512n-raid10-24", "oltp-8k", vary=asked, store=tmp_path)
    assert [row["iops"] for row in swept.rows(where="drives > 0")] == [row["iops"] for row in results]
    assert (swept.varied, [row["drives"] for row in swept.rows()]) == (["level", "drives"], [12, 20])
    partly = hs.sweep([ATLAS, "demartek-512n-raid10-24"], vary=asked | {"usable": "9TB,9PB"}, store=tmp_path)
    assert [row["drives"] for row in partly.rows()] == [None] * 4 + [12, None, 20, None]
    halved = hs.run(f"{ATLAS}@0%..50%", requests=100)
    assert round(halved[0]["capacity_gb"], 1) == 36.8


def test_codes_and_levels_with_records_are_run_and_lose_a_drive() -> None:
    asked: dict[str, Any] = {"level": ["4+2", "raidz2", "draid2:4d:1s"], "drives": 12, "depth": 8, "requests": 400}
    healthy = hs.run(MD, "oltp-8k", **asked)
    degraded = hs.run(MD, "oltp-8k", **asked, fail="d3@0s")
    assert [row["level"] for row in healthy] == ["4+2", "raidz2", "draid2:4d:1s"]
    # A record of RAIDZ lies on all drives, which do the same: the last completion may not move without one of them.
    assert all(one["mean_ms"] != other["mean_ms"] for one, other in zip(degraded, healthy, strict=True))


def test_luns_find_a_group_that_was_called_by_its_former_level(folder: Path) -> None:
    (folder / "own.toml").write_text(
        'name = "own"\ndrives = [{ drive = "re4-2tb", count = 8 }]\n'
        'groups = [{ level = "raid5", spans = 2 }]\nluns = [{ name = "a", group = "raid5" }]\n'
    )
    # 32 of 45 sectors of RAIDZ2, 32 of 33 in three of four columns of dRAID1 less a spare.
    new = (("4+4", 8), ("raidz2", 11), ("draid1:3d:1s", 10))
    for level, terabytes in (("raid5", 12), ("raid6", 8), ("raid10", 8), ("raid0", 16), *new):
        assert round(hs.Array.load("own.toml", level=level).capacity_bytes / 1e12) == terabytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--level", "raid7"], '--level: "raid7" is unknown; allowed: jbod, concat'),
        (["--level", "raid5,,"], "level: an empty value"),
        (["--usable", "much"], "--usable: "),
        (["--usable", "9"], '--usable: "9" is not a capacity; add the unit, for example 9TB'),
        (["--rate", "4000/m"], "--rate: '4000/m' is not a rate; write 4000/s, 200MB/s or 2050Mb/s"),
        (["--rate", "-5/s"], "-5 is out of range; must be above 0"),
        (["--usable", "9PB"], "--usable: 9PB is too large for any number of drives"),
        (["--usable", "9TB", "--drives", "4"], "drives, usable: give only one of them"),
        (["--drives", "4..24"], "drives: a grid needs steps; write 4..24:5"),
        (["--drives", "24..4:3"], "drives: the range 24..4:3 is empty"),
        (["--drives", "5000"], '--drives: "5000" is not a number of drives; must be 1 to 4096'),
    ],
)
def test_changes_that_are_refused(arguments: list[str], message: str) -> None:
    refused(called("run", MD, *arguments), "", message)


def test_drives_in_a_range_and_rates_a_second() -> None:
    shown = called("run", CHAIN, "--drives", "3..9:3", "--requests", "200", "--csv", "-")
    assert [line.split(",")[-1] for line in shown.stdout.splitlines()] == ["drives", "3", "6", "9"]
    rates = [hs.run(ATLAS, rate=rate, requests=200)[0]["rate_per_s"] for rate in ("50", "50/s", "204.8kB/s")]
    assert rates == [50, 50, 50]
