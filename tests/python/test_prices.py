"""Prices with their day, currency and source: files, books of several, and estimates."""

from __future__ import annotations

import doctest
import inspect
import tomllib
from pathlib import Path

import duckdb
import pytest

import headstack as hs
from conftest import Headstack
from headstack.catalogue import prices as prices_module
from headstack.catalogue.price_checks import check
from headstack.catalogue.price_list import (
    CONFIDENCES,
    SHIPPED,
    Price,
    last_day,
    newest,
    read,
    read_rows,
    shipped_prices,
)
from headstack.catalogue.prices import EXTRAPOLATION_MAX, SAMPLES, PriceBook, kind_of_drive, samples

HEAD = "item,price,currency,date,confidence,source"
OURS = f"""{HEAD}
exos-x16-16tb,250,USD,2024-05-02,I,a quote
exos-x16-16tb,300,USD,2023,I,a quote
mine,99.5,USD,2024-05,I,a quote
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
CLOUD = {"GiB-month", "IOPS-month", "MiB/s-month", "MB/s-month", "month"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, in which the test is."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(path: Path, *rows: str, head: str = HEAD) -> Path:
    """A file of prices."""
    path.write_text("\n".join((head, *rows)) + "\n", encoding="utf-8")
    return path


def is_item(item: str) -> bool:
    """Whether it is one of those that headstack has prices of."""
    if ":" in item:
        return item.partition(":")[2].partition("-over-")[0] in CLOUD
    return item in {*hs.drives.list(), *hs.arrays.list(), "bay", "kWh", "cache-GiB"} or item.isupper()


def test_the_examples_run() -> None:
    names = {"hs": hs, "check": check} | vars(prices_module)
    public = [one for name, one in vars(prices_module).items() if name in prices_module.__all__]
    functions: list[object] = [one for one in public if inspect.isfunction(one) and not one.__name__.startswith("_")]
    functions += [
        member.__func__ if isinstance(member, classmethod) else member
        for one in (Price, PriceBook)
        for name, member in vars(one).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, classmethod))
    ]
    functions.append(check)
    assert len(functions) > 15
    for function in functions:
        name, text = str(function), inspect.getdoc(function) or ""
        example = doctest.DocTestParser().get_doctest(text, dict(names), name, None, None)
        assert example.examples, f"{name} has no example"
        told: list[str] = []
        assert doctest.DocTestRunner().run(example, out=told.append).failed == 0, "".join(told)


def test_prices_that_ship_are_of_known_items_dated_and_sourced() -> None:
    assert len(shipped_prices()) >= 50
    for price in (*shipped_prices(), *samples()):
        assert len(price.source) > 10, price
        assert price.date >= "1998", price
        assert price.confidence != "L", price
    assert [price.item for price in shipped_prices() if not is_item(price.item)] == []
    assert len({(price.item, price.date) for price in shipped_prices()}) == len(shipped_prices())
    assert [(price.item, price.until) for price in shipped_prices()] == sorted(
        (price.item, price.until) for price in shipped_prices()
    )
    rates = {"EUR", "JPY"}
    assert all(price.is_sample or price.item in rates for price in samples())


@pytest.mark.parametrize(
    ("on", "drives"),
    [
        (
            "2001",
            "cheetah-x15-36lp atlas-10k-iii-73 cheetah-73lp man3735 mam3367 ultrastar-36z15 wd1200bb wd400bb",
        ),
        ("2012-05-08", "re4-2tb deskstar-7k3000-3tb barracuda-xt-2tb"),
        ("2013", "cheetah-15k7-600 savvio-10k4-600 constellation2-1tb dc-s3700-400gb ultrastar-ssd800mm-400gb"),
        ("2014-12", "ultrastar-c15k600-600 ultrastar-c10k1800-1800 dc-p3700-800gb dc-s3700-400gb"),
        (
            "2016",
            "st900mp0006 st900mp0006-awc st900mp0146 ultrastar-c15k600-600 exos-7e8-8tb ultrastar-he10-10tb "
            "9100-max-2400gb dc-p3700-800gb dc-s3700-400gb 850-evo-1tb 960-pro-1tb 960-evo-1tb",
        ),
        ("2018-06", "ultrastar-he12-12tb exos-x10-10tb"),
        ("2020", "exos-x16-16tb mg08-16tb"),
        ("2022", "exos-x18-18tb exos-x20-20tb ultrastar-hc550-18tb"),
        ("2024-06", "exos-x24-24tb mg11-24tb 990-pro-2tb d5-p5336-61tb p41-plus-1tb pm893-3840gb dc600m-960gb"),
        ("2026-11-23", "exos-x24-24tb exos-m-30tb 990-pro-2tb 870-evo-1tb d7-p5520-7680gb 9400-pro-30tb dc600m-960gb"),
    ],
)
def test_what_the_documents_chose_among_has_a_price_then(on: str, drives: str) -> None:
    book = PriceBook.load(on=on)
    for name in drives.split():
        drive = hs.Drive.load(name)
        found = book.price(name) or book.estimate(kind_of_drive(drive), drive.capacity_bytes, name)
        assert found is not None, name
        assert 50 < found.usd < 25_000, found


def test_the_newest_price_is_taken_or_that_of_a_day() -> None:
    prices = read(SHIPPED)
    day = {"2018": None, "2019-05-31": 417.0, "2019-06": 610.0, "2019-12-30": 610.0, "2019": 417.0, "2025-01-01": 417.0}
    for on, usd in day.items():
        found = newest("exos-x16-16tb", prices, on)
        assert (found and found.usd) == usd, on
        assert (PriceBook.load(on=on).price("exos-x16-16tb") or Price("", 0, "", "", "")).usd == (usd or 0), on
    latest = newest("exos-x16-16tb", prices)
    assert latest is not None
    assert (latest.usd, latest.date, latest.until) == (417.0, "2019", "2019-12-31")
    assert newest("dec-rz26", prices) is None
    assert Price("a", 745, "2001", "S", "a shop").usd_per_gb(73_500_000_000) == pytest.approx(10.136, abs=1e-3)
    with pytest.raises(hs.InputError, match="on: 'soon' is not a date; use a year, a month or a day"):
        newest("exos-x16-16tb", prices, "soon")
    assert [last_day(date) for date in ("2024", "2024-02", "2023-02", "2024-02-03")] == [
        "2024-12-31", "2024-02-29", "2023-02-28", "2024-02-03"
    ]  # fmt: skip
    for date, message in {"2023-02-29": "the month has 28 days", "0000": "a year", "2023-1": "a year"}.items():
        with pytest.raises(hs.InputError, match=message):
            last_day(date)


def test_prices_of_ones_own_go_first(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "ours.csv").write_text(OURS)
    (tmp_path / "mine.toml").write_text(DRIVE)
    (tmp_path / "priced.toml").write_text(f'{DRIVE}[price]\nusd = 80\ndate = "2020"\n')
    ours = read(tmp_path / "ours.csv")
    sixteen = hs.Drive.load("exos-x16-16tb")
    assert sixteen.summary_with(ours)["price_usd"] == 250
    assert sixteen.summary_with(ours)["usd_per_gb"] == round(250 * 1e9 / sixteen.capacity_bytes, 4)
    assert sixteen.summary["price_usd"] == 417
    assert hs.Drive.load(tmp_path / "mine.toml").summary_with(ours)["price_usd"] == 99.5
    assert hs.Drive.load(tmp_path / "mine.toml").summary["usd_per_gb"] is None
    assert hs.Drive.load(tmp_path / "priced.toml").summary_with(ours)["price_date"] == "2020"
    listed = ("catalog", "drives", "list", "--prices", "ours.csv", "--price", "100-to-300", "--sort", "usd-per-gb")
    table = headstack(*listed).stdout.splitlines()
    assert table[0].split()[-2:] == ["$", "$/GB"]
    assert table[2].split()[0] == "exos-x16-16tb"
    assert table[2].split()[-2:] == ["250", "0.0156"]
    assert any(line.startswith("870-evo-1tb") and line.split()[-2:] == ["140", "0.14"] for line in table)
    shown = headstack("catalog", "drives", "show", "exos-x16-16tb").stdout
    assert shown.index("$417 in 2019, $0.0261 per GB") < shown.index("$610 in 2019-06, $0.0381 per GB")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drive,usd\n", f"p.csv:1: has the columns drive,usd; required: {HEAD}; optional: notes,kind,capacity"),
        (f"{HEAD},colour\n", f"p.csv:1: has the columns {HEAD},colour;"),
        (f"{HEAD},notes,notes\n", f"p.csv:1: has the columns {HEAD},notes,notes;"),
        (f"{HEAD}\na,0,USD,2019,A,shop\n", "p.csv:2: price: '0' is not a number above 0"),
        (f"{HEAD}\na,dear,USD,2019,A,shop\n", "p.csv:2: price: 'dear' is not a number above 0"),
        (f"{HEAD}\na,inf,USD,2019,A,shop\n", "p.csv:2: price: 'inf' is not a number above 0"),
        (
            f"{HEAD}\na,1,USD,2019,A,shop\na,1,USD,2019-13,A,shop\n",
            "p.csv:3: date: '2019-13' is not a date; use a",
        ),
        (f"{HEAD}\na,1,USD,2019-02-30,A,shop\n", "p.csv:2: date: '2019-02-30' is not a date; the month has 28 days"),
        (f"{HEAD}\na,1,USD,2019,X,shop\n", "p.csv:2: confidence: 'X'; allowed: A, S, M, B"),
        (f"{HEAD}\na,1,USD,2019,A\n", "p.csv:2: source is missing"),
        (f"{HEAD}\n,1,USD,2019,A,shop\n", "p.csv:2: item is missing"),
        (
            f"{HEAD}\na,1,USD,2019,A,a shop, in Bonn\n",
            "p.csv:2: 7 cells for 6 columns; quote text that contains a comma",
        ),
        (f"{HEAD}\na,1,dollars,2019,A,shop\n", "p.csv:2: currency: 'dollars' is not a currency code"),
        (
            f"{HEAD}\nUSD,1,USD,2019,A,bank\n",
            "p.csv:2: currency: an exchange rate is the price of another currency in USD",
        ),
        (
            f"{HEAD}\nEUR,1,GBP,2019,A,bank\n",
            "p.csv:2: currency: an exchange rate is the price of another currency in USD",
        ),
        (
            f"{HEAD}\na,1,EUR,2019,A,shop\n",
            "p.csv:2: currency: 'EUR' has no exchange rate within a year of 2019; add a row",
        ),
        (
            f"{HEAD}\nEUR,1.1,USD,2015,A,bank\na,1,EUR,2019,A,shop\n",
            "p.csv:3: currency: 'EUR' has no exchange rate within a",
        ),
        (f"{HEAD},kind,capacity\na,1,USD,2019,A,shop,nearline,much\n", 'p.csv:2: capacity: "much" is not a size'),
        (f"{HEAD},kind,capacity\na,1,USD,2019,A,shop,,4TB\n", "p.csv:2: capacity: must be above 0, and needs a kind"),
        (f"{HEAD},kind,capacity\na,1,USD,2019,A,shop,nearline,0B\n", "p.csv:2: capacity: "),
        (f'{HEAD}\na,1,USD,2019,A,"shop\n', "p.csv: not a CSV file: "),
        ("", f"p.csv:1: has the columns ; required: {HEAD}"),
    ],
)
def test_what_is_no_price_is_refused_with_its_line(folder: Path, text: str, message: str) -> None:
    (folder / "p.csv").write_text(text)
    with pytest.raises(hs.InputError) as refused:
        read("p.csv")
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_columns_come_in_any_order_and_spreadsheets_begin_with_a_mark(folder: Path) -> None:
    head = "notes,source,confidence,date,currency,price,item,kind,capacity"
    (folder / "p.csv").write_bytes(
        f"\ufeff{head}\r\nfast, a shop ,A,2024,USD,90,mine,ssd-nvme-tlc,1TB\r\n\r\n".encode()
    )
    (price,) = read("p.csv")
    assert price == Price(
        "mine", 90, "2024", "A", "a shop", notes="fast", kind="ssd-nvme-tlc", capacity_bytes=1_000_000_000_000
    )
    assert price.is_sample
    assert not price.is_estimate


def test_other_currencies_are_dollars_by_the_rate_that_is_nearest(folder: Path) -> None:
    rows = ["a,100,EUR,2024-01-10,A,shop", "b,100,EUR,2025-06,A,shop", "c,20000,JPY,2012-12,A,shop"]
    rates = [
        "EUR,1.09,USD,2024-01-02,A,bank",
        "EUR,2,USD,2024-07,A,bank",
        "EUR,1.15,USD,2025-06-30,A,bank",
        "JPY,0.0121,USD,2012-12-02,A,bank",
    ]
    written(folder / "p.csv", *rows, *rates)
    by_item = {price.item: price for price in read("p.csv")}
    assert {item: round(by_item[item].usd, 6) for item in "abc"} == {"a": 109, "b": 115, "c": 242}
    assert (by_item["a"].stated, by_item["a"].currency) == (100, "EUR")
    written(folder / "p.csv", "a,100,EUR,2024-01-10,A,shop", "b,1,USD,2024,A,shop")
    rows_read = read_rows("p.csv")
    assert rows_read.unrated == ((2, "EUR", "2024-01-10"),)
    assert [price.item for price in rows_read.prices] == ["b"]
    assert rows_read.lines == (3,)


def test_a_book_takes_the_newest_of_a_day_and_ours_before_what_ships(folder: Path) -> None:
    first = written(folder / "first.csv", "mine,10,USD,2024-05,A,shop", "mine,12,USD,2024-06-01,A,shop")
    second = written(folder / "second.csv", "mine,11,USD,2024-05-31,A,shop", "kWh,0.12,USD,2020,A,a bill")
    book = PriceBook.load([first, second])
    assert book.usd("mine") == 12
    # Of equal days the later file's.
    assert book.at("2024-05-31").usd("mine") == 11
    assert PriceBook.load([second, first], on="2024-05-31").usd("mine") == 10
    assert book.at("2024-04").price("mine") is None
    # While May is not over its price counts as one of the first.
    assert [book.at(f"2024-05-{day}").usd("mine") for day in ("01", "30")] == [10, 10]
    # One's own price counts, though headstack knows a newer one; before its day what ships does.
    assert book.at("2026").usd("kWh") == 0.12
    assert book.usd("bay") == 99
    alone = PriceBook.load(first, shipped=False)
    assert alone.price("bay") is None
    assert alone.price("mine") == book.price("mine")
    assert [price.item for price in alone] == ["mine"]
    with pytest.raises(hs.InputError, match=r"^prices: bay: no price$"):
        alone.usd("bay")
    with pytest.raises(hs.InputError, match=r"^prices: mine: no price on or before 2023; the first is from 2024-05$"):
        alone.at("2023").usd("mine")
    with pytest.raises(hs.InputError, match="needs a file"):
        PriceBook.load(shipped=False)
    with pytest.raises(hs.InputError, match="on: 'now'"):
        PriceBook.load(on="now")


def test_samples_count_for_estimates_alone() -> None:
    named = {price.item for price in samples()} - {"EUR"}
    assert not named & {price.item for price in PriceBook.load()}
    assert read(SAMPLES) == samples()


def test_what_is_old_estimated_or_later_is_said(folder: Path) -> None:
    rows = [
        "disk,100,USD,2024-01-01,A,shop,nearline",
        "flash,100,USD,2024-01-01,A,shop,ssd-nvme-tlc",
        "guess,100,USD,2024-12-31,D,a guess,nearline",
        "inferred,100,USD,2024-12-31,I,by another,nearline",
        "later,100,USD,2025-06,A,shop,nearline",
    ]
    book = PriceBook.load(written(folder / "p.csv", *rows, head=f"{HEAD},kind"), shipped=False)
    items = ["disk", "flash", "guess", "inferred", "later", "nothing", "disk"]
    assert book.warnings(items, "2024-12-31") == [
        "flash: the price is from 2024-01-01, at least 365 days old on 2024-12-31",
        "guess: the price is an estimate (D): a guess",
        "inferred: the price is an estimate (I): by another",
        "later: no price on or before 2024-12-31; the first is from 2025-06",
        "nothing: no price",
    ]
    assert book.warnings(["disk"], "2025-01-01") == [
        "disk: the price is from 2024-01-01, at least 366 days old on 2025-01-01"
    ]
    assert book.warnings(["flash"], "2024-06-29") == []
    assert len(book.warnings(["flash"], "2024-06-30")) == 1
    assert book.warnings(["disk"], "2024-03-01", old_days=30) != []
    assert book.at("2025").warnings(["later"]) == []
    vague = PriceBook.load(
        written(folder / "v.csv", "year,1,USD,2024,A,shop", "month,1,USD,2024-05,A,shop"), shipped=False
    )
    assert vague.warnings(["year", "month"], "2024-05-02") == [
        "year: the price is from 2024, which may be after 2024-05-02"
    ]
    assert vague.age_days("month", "2024-05-02") == 0
    # In the catalogue it is flash, whether the file says so or not.
    assert len(PriceBook.load(on="2026-10").warnings(["870-evo-1tb"])) == 1
    assert book.age_days("disk", "2024-01-31") == 30
    with pytest.raises(hs.InputError, match="on: needs a day"):
        book.warnings(["disk"])
    with pytest.raises(hs.InputError, match="nothing: no price"):
        book.age_days("nothing", "2024")


def test_prices_are_changed_by_item_kind_and_group(folder: Path) -> None:
    path = written(
        folder / "p.csv",
        "mine,100,USD,2024,A,shop,ssd-nvme-tlc",
        "jbod-24-raid60,900,USD,2024,A,shop,",
        head=f"{HEAD},kind",
    )
    book = PriceBook.load(path, on="2026-06")
    items = ["mine", "870-evo-1tb", "re4-2tb", "cheetah-15k7-600", "jbod-24-raid60", "gp3:GiB-month", "kWh"]
    twice: dict[str | tuple[str, ...], set[str]] = {
        "drives": {"mine", "870-evo-1tb", "re4-2tb", "cheetah-15k7-600"},
        "flash": {"mine", "870-evo-1tb"},
        "disks": {"re4-2tb", "cheetah-15k7-600"},
        "nearline": {"re4-2tb"},
        "ssd-nvme": {"mine"},
        "hosts": {"jbod-24-raid60"},
        "cloud": {"gp3:GiB-month"},
        "kWh": {"kWh"},
        "re4-2tb": {"re4-2tb"},
        ("mine", "kWh"): {"mine", "kWh"},
    }
    for name, changed in twice.items():
        other = book.changed(name, 2)
        assert {item for item in items if other.usd(item) == 2 * book.usd(item)} == changed, name
        assert all(other.usd(item) == book.usd(item) for item in items if item not in changed)
    assert "times 2" in str(book.changed("mine", 2).price("mine"))
    # Estimates follow.
    before, after = (one.estimate("nearline", 20 * 10**12) for one in (book, book.changed("nearline", 1.1)))
    assert before is not None
    assert after is not None
    assert after.usd == pytest.approx(1.1 * before.usd)
    with pytest.raises(hs.InputError, match="no price matches 'tape'; allowed: an item, a kind, drives, fla"):
        book.changed("tape", 2)
    for factor in (0, -1, float("nan")):
        with pytest.raises(hs.InputError, match="must be above 0"):
            book.changed("drives", factor)


def sampled(folder: Path, *rows: str) -> Path:
    """Samples of one kind: date, capacity, price."""
    lines = (
        f"s{n},{row.split()[2]},USD,{row.split()[0]},A,shop,nearline,{row.split()[1]}" for n, row in enumerate(rows)
    )
    return written(folder / "s.csv", *lines, head=f"{HEAD},kind,capacity")


def test_estimates_are_interpolated_among_the_nearest_samples(folder: Path) -> None:
    path = sampled(folder, "2020-01-01 1TB 100", "2020-01-01 4TB 200", "2020-05-01 4TB 180", "2021-06-01 16TB 400")
    book = PriceBook.load(path, on="2020-01-01", shipped=False)

    def usd(capacity: float, on: str = "2020-01-01") -> float | None:
        found = book.at(on).estimate("nearline", int(capacity * 1e12))
        return None if found is None else round(found.usd, 4)

    # $100 and $50 a TB: $75 in the middle of their logarithms.
    assert [usd(tb) for tb in (1, 2, 4)] == [100, 150, 200]
    # Beyond the ends a byte costs the same, within reach.
    assert [usd(tb) for tb in (0.5, 8, 32, 129, 0.1)] == [50, 400, 1600, None, None]
    # The nearest by day of each capacity; what is much farther than the nearest is left out.
    assert usd(4, "2020-04-30") == 180
    assert usd(16, "2021-06-01") == 400
    assert usd(4, "2021-06-01") == 100
    # A year and a half, and not a day more.
    assert usd(16, "2022-12-01") == 400
    assert usd(16, "2022-12-02") is None
    # On the day itself nobody can know the later of two that are equally near.
    two = PriceBook.load(sampled(folder, "2020-01-01 1TB 100", "2020-03-01 1TB 90"), on="2020-01-31", shipped=False)
    found = two.estimate("nearline", 10**12, "mine")
    assert found is not None
    assert (found.usd, found.item, found.date, found.confidence) == (100, "mine", "2020-01-31", "D")
    assert found.is_estimate
    # Two makers' on one day: their geometric mean.
    alike = PriceBook.load(sampled(folder, "2020 1TB 100", "2020 1TB 400"), on="2020", shipped=False)
    found = alike.estimate("nearline", 10**12)
    assert found is not None
    assert found.usd == pytest.approx(200)
    assert book.estimate("hdd-15k", 10**12) is None
    spanning = book.estimate("nearline", 2 * 10**12)
    beyond = book.estimate("nearline", 8 * 10**12)
    assert spanning is not None
    assert beyond is not None
    assert spanning.source == "estimated from 2 samples of nearline, 2020-01-01, 1TB to 4TB"
    assert beyond.source == f"{spanning.source}, extrapolated at a constant price per byte"
    assert EXTRAPOLATION_MAX == 8
    with pytest.raises(hs.InputError, match="above 0"):
        book.estimate("nearline", 0)
    with pytest.raises(hs.InputError, match="needs a day"):
        PriceBook.load().estimate("nearline", 1)


def test_an_estimate_by_another_kind_says_so() -> None:
    found = PriceBook.load(on="2026-03").estimate("ssd-sas-tlc-ent", 15_360_000_000_000)
    assert found is not None
    assert "of ssd-nvme-tlc-ent (ssd-sas-tlc-ent has no sample of similar size)" in found.source
    kinds = {price.kind for price in samples()}
    assert [name for names in prices_module.RELATED.values() for name in names if name not in kinds] == []


def test_drives_are_of_the_kind_that_prices_are_of() -> None:
    kinds = {
        "wd400bb": "hdd-7k2-desktop",
        "man3735": "hdd-10k",
        "mam3367": "hdd-15k",
        "re4-2tb": "nearline",
        "ultrastar-hc310-6tb": "nearline",
        "n300-8tb": "hdd-7k2-nas",
        "barracuda-8tb-smr": "hdd-5k4-desktop",
        "atlas-iii-9": "hdd-7k2-scsi",
        "dc-s3700-400gb": "ssd-sata-mlc-ent",
        "pm893-3840gb": "ssd-sata-tlc-ent",
        "990-pro-2tb": "ssd-nvme-tlc",
        "aws-gp3-500": "",
    }
    assert {name: kind_of_drive(hs.Drive.load(name)) for name in kinds} == kinds
    assert PriceBook.load().kind_of("bay") == ""


def test_confidences_are_documented() -> None:
    assert prices_module.__doc__ is not None
    assert set(CONFIDENCES) <= {*prices_module.__doc__.replace("(", " ").split()}


def test_a_file_of_prices_that_is_none_ends_the_command(headstack: Headstack) -> None:
    done = headstack("catalog", "drives", "list", "--prices", "missing.csv")
    assert (done.returncode, done.stderr) == (2, "headstack: missing.csv: cannot be read: No such file or directory\n")


CHECKED = f"""{HEAD},kind
exos-x18-18t,250,EUR,2026-10,A,a quote,
exos-x18-18tb,250,EUR,2026-10,A,a quote,
exos-x18-18tb,255,EUR,2026-10,A,another quote,
870-evo-1tb,90,USD,2024,D,a guess,
made,80,USD,2026-10,A,a quote,ssd-nvme-tlc
described,80,USD,2026-10,A,a quote,
gp4:GiB-month,0.08,USD,2026-10,A,a bill,
gp3:GB-month,0.08,USD,2026-10,A,a bill,
io2:IOPS-month-over-32000,0.04,USD,2026-10,A,a bill,
standard-ssd-e10:month,0.04,USD,2026-10,A,a bill,
kWh,0.2,USD,2027,A,a contract,
bay,60,USD,2026,A,a contract,
jbod-24-raid60,60,USD,2026-01,A,a contract,
EUR,1.1,USD,2026-10-02,A,bank,
"""


def test_a_file_is_checked_line_by_line(folder: Path) -> None:
    (folder / "p.csv").write_text(CHECKED)
    (folder / "described.toml").write_text(DRIVE)
    (found,) = check(["p.csv"], "2026-11-23")
    assert (found.rows, found.items, found.first, found.last) == (14, 13, "2024", "2027")
    assert found.currencies == ("EUR", "USD")
    assert [(one.line, one.item, one.about) for one in found.findings] == [
        (2, "exos-x18-18t", "unknown"),
        (4, "exos-x18-18tb", "twice"),
        (5, "870-evo-1tb", "old"),
        (5, "870-evo-1tb", "estimate"),
        (8, "gp4:GiB-month", "unknown"),
        (9, "gp3:GB-month", "unknown"),
        (12, "kWh", "later"),
        (13, "bay", "later"),
    ]
    text = {one.item: one.text for one in found.findings}
    assert text["exos-x18-18t"].endswith("no file exos-x18-18t.toml; did you mean exos-x18-18tb?")
    assert text["exos-x18-18tb"] == "line 3 has $275 for 2026-10; this row, $280.5, is used"
    assert text["gp4:GiB-month"] == "unknown volume type gp4; did you mean gp3?"
    assert text["gp3:GB-month"].startswith("unknown billing unit 'GB-month'; allowed: GiB-month, ")
    assert text["kWh"] == "no price on or before 2026-11-23; the first is from 2027"
    assert text["bay"] == "the price is from 2026, which may be after 2026-11-23"
    (folder / "described.toml").unlink()
    assert "described" in {one.item for one in check(["p.csv"], "2026-11-23")[0].findings}
    ages = {one.line for one in check(["p.csv"], "2026-11-23", old_days=20)[0].findings if one.about == "old"}
    assert ages == {2, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15}
    # Across files the later one counts, and says so; a price that agrees is no finding.
    written(folder / "q.csv", "jbod-24-raid60,61,USD,2026-01,A,a quote", "exos-x18-18tb,280.5,USD,2026-10,A,the same")
    (again,) = check(["p.csv", "q.csv"], "2026-11-23")[1:]
    assert [(one.about, one.text) for one in again.findings] == [
        ("twice", "p.csv:14 has $60 for 2026-01; this row, $61, is used")
    ]


def test_what_ships_has_names_and_no_contradictions() -> None:
    for one in check([SHIPPED, SAMPLES], "2026-11-23"):
        assert {finding.about for finding in one.findings} <= {"old", "estimate"}, one
        # Samples are of their days: they are never old.
        assert one.path == str(SHIPPED) or {finding.item for finding in one.findings} == {"EUR", "JPY"}
        assert one.rows > 50


def test_the_command_tells_and_ends_by_what_was_found(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "p.csv").write_text(CHECKED)
    (tmp_path / "good.csv").write_text(f"{HEAD}\nkWh,0.2,USD,2026-10,A,a contract\n")
    (tmp_path / "empty.csv").write_text(f"{HEAD}\n")
    on = ("--on", "2026-11-23")
    done = headstack("catalog", "prices", "check", "p.csv", "good.csv", "empty.csv", *on)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "p.csv: 14 rows, 13 items, of 2024 to 2027, in EUR, USD; 9 findings",
        "good.csv: 1 row, 1 item, of 2026-10, in USD; 0 findings",
        "empty.csv: no rows",
    ]
    assert any(line.split()[:3] == ["p.csv:4", "exos-x18-18tb", "twice"] for line in lines)
    assert headstack("catalog", "prices", "check", "p.csv", "--strict", *on).returncode == 1
    assert headstack("catalog", "prices", "check", "good.csv", "--strict", *on).returncode == 0
    assert headstack("catalog", "prices", "check", "good.csv", "--strict", "--max-age", "22d", *on).returncode == 1
    (tmp_path / "rate.csv").write_text(f"{HEAD}\nkWh,0.2,CHF,2026-10,A,a contract\n")
    done = headstack("catalog", "prices", "check", "rate.csv", *on)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "headstack: rate.csv:2: currency: 'CHF' has no exchange rate within a year of 2026-10; "
    )
    assert "rate.csv: 1 row, 0 items, in CHF; 1 finding" in done.stdout
    for arguments, message in {
        ("check", "none.csv"): "none.csv: cannot be read: No such file or directory",
        (
            "check",
            "good.csv",
            "--on",
            "soon",
        ): "--on: 'soon' is not a date; use a year, a month or a day, for example \"2019-06\"",
        ("check", "good.csv", "--max-age", "1y"): "--max-age: '1y' is not a number of days; write for example 365d",
        ("list", "tape"): "tape: no known price; allowed: an item, a kind, drives, flash, disks, hosts, cloud",
    }.items():
        done = headstack("catalog", "prices", *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"headstack: {message}\n"), arguments


def test_what_is_known_is_listed_and_written_as_it_is_read(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "p.csv").write_text(CHECKED)
    day = headstack("catalog", "prices", "list", "--on", "2012").stdout.splitlines()
    assert [line.split()[:3] for line in day[2:]] == [
        [price.item, f"{price.usd:g}", price.date] for price in PriceBook.load(on="2012")
    ]
    assert len(day) == 12
    history = headstack("catalog", "prices", "list", "exos-x16-16tb", "--on", "2019").stdout.splitlines()[2:]
    assert [line.split()[1:3] for line in history] == [["610", "2019-06"], ["417", "2019"]]
    some = headstack(
        "catalog", "prices", "list", "nearline", "kWh", "--prices", "p.csv", "--on", "2026-10", "--csv", "out.csv"
    )
    assert some.returncode == 0
    rows = read(tmp_path / "out.csv")
    assert {"Seagate Exos X18", "exos-x18-18tb", "kWh", "re4-2tb"} <= {price.item for price in rows}
    eighteen = [price for price in rows if price.item == "exos-x18-18tb"]
    assert [(price.usd, price.notes) for price in eighteen] == [(275, "250 EUR"), (280.5, "255 EUR")]
    sampled_rows = [price for price in rows if price.is_sample]
    assert {(price.item, price.date, price.capacity_bytes) for price in sampled_rows} == {
        (price.item, price.date, price.capacity_bytes) for price in samples() if price.kind == "nearline"
    }
    assert headstack("catalog", "prices", "list", "kWh", "--on", "1990").stdout == "no price on or before 1990\n"
    printed = headstack("catalog", "prices", "list", "kWh", "--on", "2025-06", "--csv", "-").stdout
    assert printed.splitlines()[0] == f"{HEAD},notes,kind,capacity"
    assert printed.splitlines()[1].startswith("kWh,0.1747,USD,2025-05,M,")


STUDY = Path(hs.__file__).parent / "studies" / "shipped" / "storagereview"


def test_storagereviews_prices_and_drivemarks_follow_from_its_figures() -> None:
    paid = {price.item: price.usd for price in shipped_prices() if price.date == "2001"}
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
