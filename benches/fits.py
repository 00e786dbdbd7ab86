"""The inverse studies that ship with headstack, carried out again: what is stored beside each is what comes of it.

    python benches/fits.py                                         all of them, as `make validate` does
    python benches/fits.py --smoke                                 tries two settings of one study, and compares nothing
    python benches/fits.py --write compaq/neds --settings 800      stores what comes of one, and renews the page

Exits with 1 where something else comes of one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import headstack as hs
from headstack.io.atomic_files import write_text
from headstack.studies.fits import Fitted, finding
from headstack.studies.fits.files import RESULT_FILE, listed, load
from headstack.studies.fits.page import page, stored

PAGE = Path(__file__).resolve().parent.parent / "docs" / "inverse-findings.md"


def main() -> int:
    """Runs them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="STUDY/NAME", help="store what comes of one, and renew the page")
    parser.add_argument("--smoke", action="store_true", help="try two settings of one study")
    parser.add_argument("--settings", type=int, default=hs.studies.fits.SETTINGS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store")
    given = parser.parse_args()
    if given.write:
        found = hs.studies.fit(given.write, settings=given.settings, seed=given.seed, store=given.store)
        write_text(load(given.write).folder / RESULT_FILE, found.to_json())
        write_text(PAGE, page(stored()))
        print(f"{found.fit}: {finding(found)}")
        return 0
    if given.smoke:
        with tempfile.TemporaryDirectory() as store:
            found = hs.studies.fit(listed()[0], settings=2, seed=given.seed, store=store)
        print(f"{found.fit}: {finding(found)}")
        return 0
    others = 0
    for name in listed():
        if not (load(name).folder / RESULT_FILE).is_file():
            print(f"{name}: nothing is stored of it: python benches/fits.py --write {name}")
            others += 1
            continue
        before = Fitted.read(load(name).folder / RESULT_FILE)
        found = hs.studies.fit(name, settings=before.settings, seed=before.seed, store=given.store)
        print(f"{name}: {finding(found)}", flush=True)
        for row in rows(found):
            print(f"row: {json.dumps(row)}", flush=True)
        if told(found) != told(before):
            print(f"{name}: something else came of it than is stored beside it: {finding(before)}")
            others += 1
    return 1 if others else 0


def told(found: Fitted) -> dict[str, object]:
    """Returns the values that must be equal in all versions with equal simulations."""
    everything: dict[str, object] = json.loads(found.to_json())
    del everything["version"]
    return everything


def rows(found: Fitted) -> list[dict[str, object]]:
    """Returns rows of target/validate.json."""
    held = [row for row in found.rows if row.held_out]
    counts = [
        ("settings tried", found.tried),
        ("settings that reproduce all fitted figures", found.reproducing),
        ("held-out figures", len(held)),
        ("held-out figures within the tolerance", sum(row.is_within for row in held) if found.reproducing else 0),
    ]
    bars = {"bar": None, "bar_is": None, "bar_met": None}
    return [{"name": f"{found.fit}: {name}", "value": value, "unit": ""} | bars for name, value in counts]


if __name__ == "__main__":
    sys.exit(main())
