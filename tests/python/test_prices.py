"""Prices with their day and source, and what a gigabyte costs by them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import duckdb
import pytest

import headstack as hs
from conftest import Headstack
from headstack.prices import COLUMNS, SHIPPED, Price, known, newest, read

HEAD = ",".join(COLUMNS)
OURS = f"""{HEAD}
exos-x16-16tb,250,2024-05-02,I,a quote
exos-x16-16tb,300,2023,I,a quote
mine,99.5,2024-05,I,a quote
"""
DRIVE = """name = "One of ours"

[capacity]
size = "960GB"

[flash]
cells = "tlc"
over_provisioning = 0.15

[interface]
kind = "nvme"
generation = 3
"""


def test_prices_that_ship_are_of_the_catalogue_dated_and_sourced() -> None:
    drives = set(hs.drives.list())
    assert len(known()) >= 15
    for price in known():
        assert price.drive in drives, price
        assert len(price.source) > 10, price
        assert price.date >= "1998", price
    assert len({(price.drive, price.date) for price in known()}) == len(known())
    assert [(price.drive, price.date) for price in known()] == sorted(
        ((price.drive, price.date) for price in known()), key=lambda pair: (pair[0], -len(pair[1]), pair[1])
    )


def test_the_newest_price_is_taken_or_that_of_a_day() -> None:
    prices = read(SHIPPED)
    day = {"2019-05-31": None, "2019-06": 610.0, "2019-12-30": 610.0, "2019": 417.0, "2025-01-01": 417.0}
    for on, usd in day.items():
        found = newest("exos-x16-16tb", prices, on)
        assert (found and found.usd) == usd, on
    latest = newest("exos-x16-16tb", prices)
    assert latest is not None
    assert (latest.usd, latest.date, latest.until) == (417.0, "2019", "2019-12-31")
    assert newest("dec-rz26", prices) is None
    assert Price("a", 745, "2001", "S", "a shop").usd_per_gb(73_500_000_000) == pytest.approx(10.136, abs=1e-3)
    with pytest.raises(hs.InputError, match="on: 'soon'; a year, a month or a day"):
        newest("exos-x16-16tb", prices, "soon")


def test_prices_of_ones_own_go_first(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "ours.csv").write_text(OURS)
    (tmp_path / "mine.toml").write_text(DRIVE)
    (tmp_path / "priced.toml").write_text(f'{DRIVE}[price]\nusd = 80\ndate = "2020"\n')
    ours = read(tmp_path / "ours.csv")
    sixteen = hs.Drive.load("exos-x16-16tb")
    assert sixteen.told(ours)["price_usd"] == 250
    assert sixteen.told(ours)["usd_per_gb"] == round(250 * 1e9 / sixteen.capacity_bytes, 4)
    assert sixteen.summary["price_usd"] == 417
    assert hs.Drive.load(tmp_path / "mine.toml").told(ours)["price_usd"] == 99.5
    assert hs.Drive.load(tmp_path / "mine.toml").summary["usd_per_gb"] is None
    assert hs.Drive.load(tmp_path / "priced.toml").told(ours)["price_date"] == "2020"
    listed = ("drives", "list", "--prices", "ours.csv", "--price", "100-to-300", "--sort", "usd-per-gb")
    table = headstack(*listed).stdout.splitlines()
    assert table[0].split()[-2:] == ["$", "$/GB"]
    assert table[2].split()[0] == "exos-x16-16tb"
    assert table[2].split()[-2:] == ["250", "0.0156"]
    assert any(line.startswith("870-evo-1tb") and line.split()[-2:] == ["140", "0.14"] for line in table)
    shown = headstack("drives", "show", "exos-x16-16tb").stdout
    assert shown.index("$417 in 2019, $0.0261 a GB") < shown.index("$610 in 2019-06, $0.0381 a GB")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drive,usd\n", f"p.csv:1: the columns are drive,usd; {HEAD} are needed"),
        (f"{HEAD}\na,0,2019,A,shop\n", "p.csv:2: usd: '0'; a figure above 0"),
        (f"{HEAD}\na,dear,2019,A,shop\n", "p.csv:2: usd: 'dear'; a figure above 0"),
        (f"{HEAD}\na,1,2019,A,shop\na,1,2019-13,A,shop\n", "p.csv:3: date: '2019-13'; a year, a month or a day"),
        (f"{HEAD}\na,1,2019,X,shop\n", "p.csv:2: confidence: 'X'; allowed: A, S, B"),
        (f"{HEAD}\na,1,2019,A\n", "p.csv:2: source: is missing"),
        (f"{HEAD}\n,1,2019,A,shop\n", "p.csv:2: drive: is missing"),
    ],
)
def test_what_is_no_price_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    (tmp_path / "p.csv").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hs.InputError) as refused:
        read("p.csv")
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_a_file_of_prices_that_is_none_ends_the_command(headstack: Headstack) -> None:
    done = headstack("drives", "list", "--prices", "missing.csv")
    assert (done.returncode, done.stderr) == (2, "headstack: missing.csv: cannot be read: No such file or directory\n")


STUDY = Path(hs.prices.__file__).parent / "studies" / "shipped" / "storagereview"


def test_storagereviews_prices_and_drivemarks_follow_from_its_figures() -> None:
    paid = {price.drive: price.usd for price in known() if price.date == "2001"}
    assert paid == {"atlas-10k-iii-73": 745, "cheetah-x15-36lp": 549}
    study = tomllib.loads((STUDY / "study.toml").read_text(encoding="utf-8"))
    database = duckdb.connect()
    database.execute(f"create table published as select * from read_csv('{STUDY / 'published.csv'}')")
    # Every simulated score is a tenth too large: so are the averages.
    larger = "1.1 * iometer_iops as iometer_found, 1.1 * ipeak_iops as ipeak_found"
    database.execute(f"create table cells as select *, {larger} from published")
    (sql,) = [table["sql"] for table in study["tables"] if table["name"] == "drivemarks"]
    cursor = database.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    assert len(rows) == 14
    assert all(row["iometer_error"] == row["ipeak_error"] == 10 for row in rows)
    score = {(row["system"], row["workload"]): row["iometer"] for row in rows}
    # The reference drive's average is its score at 64 outstanding, and MAN3735's is that times its mean percentage.
    assert (score["cheetah-x15-36lp", "file-server"], score["cheetah-x15-36lp", "web-server"]) == (347, 338)
    percent = database.execute(
        "select avg(iometer_percent) from published where system = 'man3735' and workload = 'file-server'"
    ).fetchone()
    assert percent is not None
    assert score["man3735", "file-server"] == pytest.approx(347 * percent[0] / 100, rel=2e-3)
