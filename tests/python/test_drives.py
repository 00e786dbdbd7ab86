"""The drives of the catalogue, chosen by what tells them apart."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import REPOSITORY, Headstack


def test_drives_are_chosen_by_what_tells_them_apart(headstack: Headstack) -> None:
    told = {name: hs.drives.show(name).summary for name in hs.drives.list()}
    cases: tuple[tuple[dict[str, Any], Callable[[dict[str, Any]], bool]], ...] = (
        ({"kind": "ssd"}, lambda one: one["kind"] == "ssd"),
        ({"year": "2010..2013"}, lambda one: 2010 <= one["year"] <= 2013),
        ({"year": 2001}, lambda one: one["year"] == 2001),
        ({"rpm": "10000..14999"}, lambda one: 10_000 <= one.get("rpm", 0) <= 14_999),
        ({"rpm": "10000"}, lambda one: 9_900 <= one.get("rpm", 0) <= 10_100),
        ({"rpm": "..7200rpm"}, lambda one: one.get("rpm", 9e9) <= 7200),
        ({"capacity": "1..4TB"}, lambda one: 1e12 <= one["capacity_bytes"] <= 4e12),
        ({"capacity": "1TB"}, lambda one: abs(one["capacity_bytes"] - 1e12) <= 1e10),
        ({"capacity": "..10GB", "interface": "SCSI,fc"}, lambda one: one["capacity_bytes"] <= 1e10),
        ({"interface": "sata, nvme", "kind": "ssd"}, lambda one: one["kind"] == "ssd" and one["interface"] != "sas"),
        ({"kind": "hdd"}, lambda one: one["kind"] == "disk"),
        ({"since": 2018}, lambda one: one["year"] >= 2018),
        ({"since": "2010", "until": "2013"}, lambda one: 2010 <= one["year"] <= 2013),
        ({"min_capacity": "4TB"}, lambda one: one["capacity_bytes"] >= 4e12),
        ({"max_capacity": "500GB", "kind": "ssd"}, lambda one: one["capacity_bytes"] <= 5e11 and "dies" in one),
        ({"vendor": "seagate, WD"}, lambda one: one["vendor"] in ("Seagate", "Western Digital")),
        ({"price": "100-to-300,under-100"}, lambda one: (one["price_usd"] or 9e9) < 300),
    )
    for wanted, fits in cases:
        found = hs.drives.list(**wanted)
        assert found == tuple(name for name, one in told.items() if fits(one)), wanted
        assert 0 < len(found) < len(told), wanted
        options = [text for name, value in wanted.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        listed = json.loads(headstack("catalog", "drives", "list", *options, "--json").stdout)
        assert listed == [told[name] for name in found]
    assert "dc-s3700-400gb  " in headstack("catalog", "drives", "list", "--kind", "ssd").stdout
    none = headstack("catalog", "drives", "list", "--kind", "ssd", "--rpm", "5..")
    assert (none.returncode, none.stdout) == (0, f"no drive matches ({len(told)} searched)\n")


def test_a_drive_that_was_loaded_does_not_change_the_next(tmp_path: Path) -> None:
    first = hs.Drive.load("cheetah-x15-36lp")
    name = first.description["name"]
    first.description["name"] = "changed"
    assert hs.Drive.load("cheetah-x15-36lp").description["name"] == name
    file = tmp_path / "own.toml"
    text = (REPOSITORY / "catalogue" / "drives" / "man3735.toml").read_text()
    names = []
    for own in ("one", "two"):
        file.write_text(re.sub(r'^name *= ".*"', f'name = "{own}"', text, count=1, flags=re.MULTILINE))
        names.append(hs.Drive.load(file).description["name"])
    assert names == ["one", "two"], "a file is read again"


@pytest.mark.parametrize("key", hs.drives.SORTS)
def test_drives_are_sorted_and_what_is_not_known_comes_last(headstack: Headstack, key: str) -> None:
    told = {name: hs.drives.show(name).summary for name in hs.drives.list()}
    for options, reverse in ((["--sort", key], False), (["--sort", key, "--reverse"], True)):
        listed = json.loads(headstack("catalog", "drives", "list", *options, "--json").stdout)
        assert len(listed) == len(told)
        found = [one.get(hs.drives.SORTS[key]) for one in listed]
        known = [value for value in found if value is not None]
        assert found == [*known, *[None] * (len(found) - len(known))]
        assert known == sorted(known, reverse=reverse)
        assert len(set(known)) > 2


def test_a_price_names_its_day_and_class() -> None:
    told = hs.drives.show("exos-x16-16tb").summary
    assert (told["price_usd"], told["price_date"], told["price_class"]) == (417.0, "2019", "300-to-1000")
    unknown = hs.drives.show("dec-rz26").summary
    keys = ("price_usd", "price_date", "price_class", "usd_per_gb")
    assert [unknown[key] for key in keys] == [None] * 4
    assert [hs.prices.price_class(usd) for usd in (99.99, 100, 299, 300, 999, 1000)] == [
        "under-100", "100-to-300", "100-to-300", "300-to-1000", "300-to-1000", "over-1000"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "tape"], "kind: 'tape' is unknown; allowed: disk, ssd"),
        (["--year", "2020..2010"], "year: the range 2020..2010 is empty"),
        (["--year", ".."], "year: the range .. is empty"),
        (["--year", "2001.5"], "year: '2001.5' is not a whole number"),
        (["--capacity", ">=1TB"], "write a range as LOW..HIGH, LOW.. or ..HIGH"),
        (["--capacity", "1TB..much"], 'capacity: "much" is not a size'),
        (["--capacity", "4..1TB"], "capacity: the range 4..1TB is empty"),
        (["--capacity", "4.."], "capacity: '4' is not a capacity; add a unit, for example 4TB"),
        (["--rpm", "fast"], "rpm: 'fast' is not a number"),
        (["--interface", "scsi,usb"], "interface: 'usb' is unknown; allowed: ata, sata"),
        (["--size", "1TB"], "No such option '--size'"),
        (["--since", "lately"], "since: 'lately' is not a whole number"),
        (["--min-capacity", "4"], "--min-capacity: '4' is not a capacity; add a unit, for example 4TB"),
        (["--vendor", "acme"], "vendor: 'acme' is unknown; allowed: Compaq, "),
        (["--price", "cheap"], "price: 'cheap' is unknown; allowed: under-100, 100-to-300, 300-to-1000, over-1000"),
        (["--sort", "colour"], "sort: 'colour' is unknown; allowed: name, year, capacity, price, usd-per-gb, rpm, "),
    ],
)
def test_wishes_that_are_none(headstack: Headstack, arguments: list[str], message: str) -> None:
    done = headstack("catalog", "drives", "list", *arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
