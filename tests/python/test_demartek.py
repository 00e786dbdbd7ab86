"""Files of the study of Demartek's drives that stand for others of the catalogue, and of its inverse studies."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from headstack.studies import fits

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "python/headstack/studies/shipped/demartek"
TOLD = ("name", "notes", "sources")


def drive(path: Path) -> dict[str, Any]:
    """What the model knows of it."""
    return {key: value for key, value in tomllib.loads(path.read_text()).items() if key not in TOLD}


def quantity(text: str, unit: str) -> float:
    assert text.endswith(unit)
    return float(text.removesuffix(unit))


def test_the_sixtieth_is_the_drive_of_the_catalogue_with_a_sixtieth_of_its_flash() -> None:
    whole, part = drive(ROOT / "catalogue/drives/st900mp0146.toml"), drive(STUDY / "oltp-512e-sixtieth-drive.toml")
    sizes = whole["flash_cache"].pop("size"), part["flash_cache"].pop("size")
    assert quantity(whole["media_cache"].pop("size"), "MB") > quantity(part["media_cache"].pop("size"), "MB")
    assert whole == part
    assert quantity(sizes[0], "GB") * 1000 / 60 == pytest.approx(quantity(sizes[1], "MB"), rel=0.01)
    volumes = tomllib.loads((ROOT / "catalogue/arrays/demartek-512n-raid5-20-log-raid10-4.toml").read_text())["luns"]
    parts = tomllib.loads((STUDY / "oltp-512e-sixtieth.toml").read_text())["luns"]
    for volume, one in zip(volumes[:3], parts[:3], strict=True):
        assert quantity(volume["size"], "GB") / 60 == quantity(one["size"], "GB")
    assert volumes[3] == parts[3]


@pytest.mark.parametrize("name", ["hot-band", "oltp", "write-cache"])
def test_drives_of_the_inverse_studies_are_those_of_the_catalogue_but_for_what_is_unknown(name: str) -> None:
    fit = fits.load(f"demartek/{name}")
    first = {unknown.name: unknown.axis.at(0.0) for unknown in fit.unknowns}
    known = {"512e": "st900mp0146", "awc": "st900mp0006-awc", "512n": "st900mp0006", "plain": "st900mp0006"}
    for path in sorted(fit.folder.glob("*.toml")):
        if path.stem not in known:
            continue
        text = path.read_text()
        for blank, value in first.items():
            text = text.replace(f"{{{blank}}}", value)
        ours, theirs = tomllib.loads(text), drive(ROOT / f"catalogue/drives/{known[path.stem]}.toml")
        for table in ("capacity", "geometry", "media", "spindle", "seek", "queue", "overheads", "interface"):
            assert ours[table] == theirs[table], (path, table)
