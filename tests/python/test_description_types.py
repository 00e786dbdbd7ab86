"""The types that are stated for descriptions of drives, compared with every drive and volume of the catalogue."""

from __future__ import annotations

import pytest

from headstack import _native
from headstack.catalogue.system import load_system
from headstack.twin.disk_types import Disk
from headstack.twin.ssd_types import Ssd
from headstack.twin.volume_types import Volume
from shapes import differences


@pytest.mark.parametrize("kind", ["disk", "ssd", "volume"])
def test_drives_have_the_stated_types(kind: str) -> None:
    expected = {"disk": Disk, "ssd": Ssd, "volume": Volume}[kind]
    systems = [load_system(name) for name in (*_native.drive_ids(), *_native.volume_ids())]
    drives = [system.system["drive"] for system in systems]
    found = [drive[kind] for drive in drives if kind in drive]
    assert len(found) > 5
    assert {drive["name"]: told for drive in found if (told := list(differences(drive, expected)))} == {}
