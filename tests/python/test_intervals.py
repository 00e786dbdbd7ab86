"""Intervals of the model's error: they hold for devices that were never seen, or are refused."""

from __future__ import annotations

from random import Random

import pytest

from headstack.intervals import conformal

CELLS = 24


def device(random: Random) -> list[float]:
    """Scores of a device: what its model lacks is in all its cells alike, and each cell has a little of its own. Some
    have few cells."""
    common = random.gauss(0, 0.05)
    return [abs(common + random.gauss(0, 0.01)) for _ in range(random.choice((2, 6, CELLS)))]


def pooled(scores: list[list[float]], level: float) -> float:
    """As if each cell were a device of its own."""
    found = conformal.quantile([[score] for of_device in scores for score in of_device], level)
    assert found is not None
    return found


def shares(devices: int, count: int, seed: int) -> dict[str, float]:
    """How often intervals hold for a new device, where each is learnt anew from so many others."""
    random = Random(seed)
    held = {"hierarchical": 0.0, "pooled": 0.0, "whole curves": 0.0, "whole curves by the pool": 0.0}
    for _ in range(count):
        known, new = [device(random) for _ in range(devices)], device(random)
        one = conformal.quantile(known)
        curve = conformal.quantile(conformal.of_whole_curves(known))
        assert one is not None
        assert curve is not None
        # A cell of a device, drawn at random: each device counts once.
        held["hierarchical"] += random.choice(new) <= one
        held["pooled"] += random.choice(new) <= pooled(known, 0.9)
        held["whole curves"] += max(new) <= curve
        held["whole curves by the pool"] += max(new) <= pooled(known, 0.9)
    return {name: share / count for name, share in held.items()}


def test_intervals_hold_for_new_devices_as_often_as_they_say() -> None:
    low, high = conformal.coverage_bounds(1000, certainty=0.999)
    for devices in (9, 19, 60):
        held = shares(devices, 1000, seed=devices)
        # No more than 1/(K + 1) above what it says, where no two scores are equal.
        assert low <= held["whole curves"] <= high + 1 / (devices + 1), held
        # Several cells of few devices take more: those that hold for whole curves at most.
        assert low <= held["hierarchical"] <= 1, held


def test_cells_of_one_device_count_as_one() -> None:
    """What is learnt from pooled cells says 90 % of devices, and holds for far fewer."""
    held = shares(9, 1000, seed=1)
    low, _ = conformal.coverage_bounds(1000, certainty=0.999)
    assert held["hierarchical"] >= low
    assert held["pooled"] < low, held
    assert held["whole curves by the pool"] < 0.85, held


def test_too_few_devices_teach_nothing() -> None:
    assert conformal.quantile([[0.1] * 1000] * 8) is None
    assert conformal.quantile([[0.1] * 1000] * 9) == 0.1
    assert conformal.quantile([[0.1], [], *([[0.1]] * 7)]) is None
    assert conformal.quantile([[0.1]] * 18, 0.95) is None
    assert conformal.quantile([[0.1]] * 19, 0.95) == 0.1


def test_the_weight_of_a_device_is_shared_by_its_cells() -> None:
    # Ten devices: 0.9 of eleven parts is 9.9 of them, so that a tenth of one device may lie beyond.
    wild = [1.0] * 9 + [5.0]
    assert conformal.quantile([[1.0]] * 9 + [wild]) == 1.0
    assert conformal.quantile([[1.0]] * 9 + [wild[1:]]) == 5.0
    # The same of one score each: the k-th least of K, k = ceil(0.9 (K + 1)).
    assert conformal.quantile([[n / 100] for n in range(1, 100)]) == pytest.approx(0.9)


def test_leaving_one_out_covers_as_often() -> None:
    random = Random(7)
    scores = {str(number): device(random) for number in range(100)}
    held = conformal.left_out(scores)
    assert 0.85 <= sum(held.values()) / len(held) <= 0.95
    assert min(held.values()) < 0.5
    whole = {name: [max(own)] for name, own in scores.items()}
    low, high = conformal.coverage_bounds(100)
    assert low <= sum(conformal.left_out(whole).values()) / 100 <= high
    with pytest.raises(ValueError, match="10 are needed to leave one out"):
        conformal.left_out(dict(list(scores.items())[:9]))


def test_what_so_many_devices_may_show() -> None:
    assert conformal.coverage_bounds(200) == (0.855, 0.94)
    assert conformal.coverage_bounds(20) == (0.75, 1.0)
    assert [conformal.devices_needed(level) for level in (0.8, 0.9, 0.95, 0.99)] == [4, 9, 19, 99]
