"""Offers of clouds: each can be described, none that is needed is missing, and they bill what price files have."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from headstack import _native
from headstack.catalogue import price_checks
from headstack.choice import clouds
from headstack.choice.clouds import GIB, TYPES, Offer, offers
from headstack.choice.durability import afr_percent

CAPACITIES = (1, 5 * GIB, 33 * GIB, 100 * GIB, 10**12, 3 * 2**40, 7 * 10**12, 20 * 10**12, 60 * 10**12)


def described(found: list[Offer]) -> list[tuple[str, Any]]:
    answers = []
    for offer in found:
        blueprint = _native.system_blueprint(offer.base, [])
        answers += _native.describe_points(blueprint, [list(offer.values.items())])
    return answers


@pytest.mark.parametrize("name", TYPES)
def test_every_offer_can_be_had_and_holds_what_was_asked_for(name: str) -> None:
    for capacity_bytes in CAPACITIES:
        found = offers(capacity_bytes, [name])
        assert len({tuple(offer.values.items()) for offer in found}) == len(found)
        for offer, (kind, text) in zip(found, described(found), strict=True):
            assert kind == "described", f"{dict(offer.values)}: {text}"
            assert text["drive"]["volume"]["capacity_bytes"] >= capacity_bytes
            assert all(quantity > 0 for _, quantity in offer.items)
        largest = TYPES[name].gib[1]
        assert bool(found) == (capacity_bytes <= largest * GIB)


@pytest.mark.parametrize("name", TYPES)
def test_the_smallest_and_the_fastest_are_among_them(name: str) -> None:
    """The limits of the type are reached, by what the catalogue says of its largest volume."""

    def limits(values: list[tuple[str, str]]) -> list[int]:
        blueprint = _native.system_blueprint(TYPES[name].base, [])
        ((kind, text),) = _native.describe_points(blueprint, [values])
        assert kind == "described", text
        return [limit["per_s"] for limit in text["drive"]["volume"]["limits"]]

    sold = TYPES[name]
    largest = [("volume.type", name), ("capacity.size", f"{sold.gib[1]}GiB")]
    if sold.iops:
        largest.append(("volume.iops", str(sold.iops[1])))
    if sold.throughput:
        largest.append(("volume.throughput", f"{sold.throughput[1]}{sold.rate_unit}"))
    most = limits(largest)
    found = [limits(list(offer.values.items())) for offer in offers(200 * GIB, [name])]
    assert most in found, f"{most} of {found[-1]}"
    if not sold.iops:
        # No larger size follows one that is as fast as any.
        assert [each for each in found if each == most] == [most]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("gp3", {"capacity.size": "10GiB", "volume.iops": "6000"}, "3000 to 5000"),
        ("ultra-disk", {"capacity.size": "4GiB", "volume.iops": "5000"}, "100 to 4000"),
    ],
)
def test_what_is_not_sold_is_impossible(name: str, values: dict[str, str], message: str) -> None:
    """So that the test of the offers can fail."""
    blueprint = _native.system_blueprint(TYPES[name].base, [])
    ((kind, text),) = _native.describe_points(blueprint, [[("volume.type", name), *values.items()]])
    assert (kind, message in text) == ("impossible", True), text


def test_every_type_of_the_module_is_served() -> None:
    """Each type that the catalogue reads has offers, a base of its type, and prices by names that are known."""
    sold = {kind.name: kind for kind in _native.volume_types()}
    of_catalogue = {
        value["value"]
        for volume in _native.volume_ids()
        for value in hs.Drive.load(volume).stated
        if value["key"] == "volume.type"
    }
    assert of_catalogue == set(sold) == {offer.type for offer in offers(200 * GIB)}
    for kind in sold.values():
        base = hs.Drive.load(kind.base)
        assert kind.name in [value["value"] for value in base.stated if value["key"] == "volume.type"]
        percent, source = afr_percent(base)
        published = kind.afr_percent
        assert (percent, source) == (published or (0.2, source))
        assert {offer.type for offer in offers(200 * GIB, [kind.cloud]) if offer.provider == kind.provider} >= {
            kind.name
        }
        for item in {item for offer in offers(200 * GIB, [kind.name]) for item, _ in offer.items}:
            assert unknown(item) is None, item


def unknown(item: str) -> str | None:
    """What a check of a file of prices says of an item."""
    return price_checks._unknown(item, [], Path())


def test_what_is_sold_grows_with_the_size() -> None:
    """By the published rules: 500 IOPS for each GiB of gp3, a quarter of a MiB/s for each of them."""
    gp3 = _native.VolumeType("gp3")
    assert [gp3.iops_range(gib) for gib in (1, 10, 1_000)] == [(3_000, 3_000), (3_000, 5_000), (3_000, 80_000)]
    assert [gp3.throughput_max(iops) for iops in (3_000, 80_000)] == [750, 2_000]
    assert (_native.VolumeType("gp2").iops_range(100), _native.VolumeType("io2").throughput_max(1_000)) == (None, None)
    with pytest.raises(hs.InputError, match=r"volume\.type: 'gp4' is unknown; allowed: gp2, gp3, io1"):
        _native.VolumeType("gp4")


def test_bills_are_those_of_the_published_formula() -> None:
    """0.08 GiB + 0.005 (IOPS - 3,000) + 0.04 (MiB/s - 125): 80,000 requests and 2,000 MiB/s cost $460 on top."""
    usd = {"gp3:GiB-month": 0.08, "gp3:IOPS-month": 0.005, "gp3:MiB/s-month": 0.04}
    fastest = offers(500 * GIB, ["gp3"])[-1]
    assert fastest.values["volume.iops"] == "80000"
    assert dict(fastest.items) == {"gp3:GiB-month": 500, "gp3:IOPS-month": 77_000, "gp3:MiB/s-month": 1_875}
    assert sum(usd[item] * quantity for item, quantity in fastest.items) == pytest.approx(40 + 385 + 75)
    base = offers(500 * GIB, ["gp3"])[0]
    assert base.items == (("gp3:GiB-month", 500),)
    (tiers,) = [offer for offer in offers(500 * GIB, ["io2"]) if offer.values["volume.iops"] == "80000"]
    assert tiers.items[1:] == (
        ("io2:IOPS-month", 32_000),
        ("io2:IOPS-month-over-32000", 32_000),
        ("io2:IOPS-month-over-64000", 16_000),
    )
    # 2,048 GiB, 4,000 requests and 20 MB/s come to $450.74 (list prices of 2024-07).
    (ultra,) = [
        offer
        for offer in offers(2_000 * GIB, ["ultra-disk"], iops=[4_000], throughput=[20])
        if offer.values["volume.throughput"] == "20MB/s"
    ]
    assert ultra.values["capacity.size"] == "2048GiB"
    assert ultra.items[0] == ("ultra-disk:GiB-month", 2_048)
    each = {"ultra-disk:GiB-month": 0.11972, "ultra-disk:IOPS-month": 0.04964, "ultra-disk:MB/s-month": 0.3495}
    assert sum(each[item] * quantity for item, quantity in ultra.items) == pytest.approx(450.74, abs=0.01)


def test_items_are_called_as_in_files_of_prices() -> None:
    priced = {price.item for price in hs.prices.shipped_prices()}
    sizes = (*CAPACITIES, 32 * GIB, 128 * GIB, 512 * GIB)
    billed = {item for name in TYPES for size in sizes for offer in offers(size, [name]) for item, _ in offer.items}
    by_size = {item for item in billed if item.endswith(":month")}
    # Few sizes of Azure have a price that was read; every other item has one.
    assert billed - by_size <= priced
    assert {"premium-ssd-p10:month", "premium-ssd-p4:month", "standard-hdd-s20:month"} <= by_size & priced


def test_a_small_volume_grows_with_the_requests_it_needs() -> None:
    found = {offer.values["volume.iops"]: offer.values["capacity.size"] for offer in offers(10 * GIB, ["io1"])}
    assert found["500"] == "10GiB"
    assert found["16000"] == "320GiB"
    assert {offer.values["capacity.size"] for offer in offers(3_000 * GIB, ["premium-ssd"])} == {
        *("4096GiB", "8192GiB", "16384GiB", "32767GiB")
    }
    assert "4096GiB" not in {offer.values["capacity.size"] for offer in offers(2_000 * GIB, ["premium-ssd"])}


def test_a_provider_stands_for_its_types() -> None:
    asked = offers(10**12, ["azure", "gp3"])
    assert {offer.provider for offer in asked} == {"Microsoft", "Amazon"}
    assert {offer.type for offer in asked if offer.provider == "Amazon"} == {"gp3"}
    assert {offer.type for offer in offers(10**12)} == set(TYPES)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((0, ["gp3"]), "capacity: 0 bytes; must be 1 or more"),
        ((1, ["gp4"]), "volumes: 'gp4' is unknown; allowed: aws, gcp,"),
    ],
)
def test_what_cannot_be_is_refused(asked: tuple[int, list[str]], message: str) -> None:
    with pytest.raises(hs.InputError, match=message):
        offers(*asked)


def test_examples_run() -> None:
    assert doctest.testmod(clouds).failed == 0
    assert doctest.testmod(clouds).attempted >= 3
