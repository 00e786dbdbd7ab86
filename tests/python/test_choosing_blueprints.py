"""Blueprints that a choice takes from the compiled module have the keys that their type states."""

from __future__ import annotations

from pathlib import Path

import pytest

from headstack import _native
from headstack.choice.blueprint import Blueprint, demand_blueprint, system_blueprint
from shapes import differences


@pytest.mark.parametrize("name", ["cheetah-x15-36lp", "md-raid6-12x16tb", "6500-ion-30tb"])
def test_blueprints_of_systems_have_their_type(name: str) -> None:
    found = _native.system_blueprint(name, [])
    assert list(differences(found, Blueprint)) == []
    assert system_blueprint(name) == found


@pytest.mark.parametrize("name", ["file-server", _native.scenario_ids()[0]])
def test_blueprints_of_demands_have_their_type(name: str) -> None:
    found = _native.demand_blueprint(name)
    assert list(differences(found, Blueprint)) == []
    assert demand_blueprint(name) == found


def test_a_blueprint_has_the_drives_that_its_array_names_by_path(tmp_path: Path) -> None:
    path = f"{tmp_path}/own.toml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(_native.drive_toml("cheetah-x15-36lp"))
    found = system_blueprint("md-raid6-12x16tb", [path])
    assert list(differences(found, Blueprint)) == []
    assert list(found["drives"]) == [path]
