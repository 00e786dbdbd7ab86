"""The explorer as one HTML file, which needs no network: the page (web/src/explore.ts) with the simulator in it."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.options import OPTIONS
from headstack.catalogue.prices import PriceBook
from headstack.io.atomic_files import write_text
from headstack.report.figures import Report
from headstack.report.pages import FOLDER, SIMULATOR_POLICY, as_json, built, page_of
from headstack.results.explorer_queries import put_into, stated, taken

ENGINE = FOLDER / "engine.wasm.lzma"
"""The simulator for pages (crates/web), which `make web` builds."""
USUAL = ("cheetah-x15-36lp", "file-server")
"""What is shown where nothing is asked for: a drive and a workload."""
CHOICES = ("policy", "level", "write_cache", "read_ahead", "preconditioned", "host")
"""Options of which the page lets one value be chosen."""

UNSEEN = "<noscript>This page needs JavaScript to run the simulator.</noscript>"

Named = str | os.PathLike[str]


def explore(
    path: Named,
    systems: Named | Iterable[Named] = (),
    workload: Named | None = None,
    *,
    prices: Named | Sequence[Named] = (),
    on: str | None = None,
) -> None:
    """Writes a page that simulates these systems under a workload while their values are dragged, as one HTML file.

    Files of systems and workloads are in the page, and what else the catalogue has can be picked there. Where there are
    ``prices``, it tells dollars per IO/s, ``on`` a day. Raises ``InputError`` for what is unknown, and when the page or
    its engine were not built.

    >>> hs.explore("page.html", ["cheetah-x15-36lp", "man3735"], "web-server")
    """
    named = [systems] if isinstance(systems, str | os.PathLike) else list(systems)
    write_text(
        path, page([os.fspath(one) for one in named], None if workload is None else os.fspath(workload), prices, on)
    )


def check_built() -> None:
    """Raises ``InputError`` when the page or its engine were not built."""
    built("explore.js")
    if not ENGINE.is_file():
        raise InputError(
            "the explorer needs the simulator for pages; build it with: make web, with Node 20 or newer and "
            "Rust's target wasm32-unknown-unknown (rustup target add wasm32-unknown-unknown)"
        )


def page(
    systems: Sequence[str], workload: str | None, prices: Named | Sequence[Named] = (), on: str | None = None
) -> str:
    """The page as text: see `explore`. Equal questions give equal text."""
    check_built()
    demand = workload or USUAL[1]
    shown = list(systems) or [USUAL[0]]
    blueprints = {name: _native.system_blueprint(name, []) for name in shown}
    blueprints[demand] = _native.demand_blueprint(demand)
    paths = [prices] if isinstance(prices, str | os.PathLike) else list(prices)
    told = _given(
        [{"system": name, "demand": demand} for name in shown],
        {name: stated(text) for name, text in blueprints.items() if name.endswith(".toml")},
        _prices(PriceBook.load(paths, on), shown) if paths else {},
    )
    return page_of("Explore storage", "explore", as_json(told), UNSEEN, SIMULATOR_POLICY, engine())


def engine() -> str:
    """The simulator as pages carry it: WebAssembly, packed by LZMA, in base64."""
    packed = base64.b64encode(ENGINE.read_bytes()).decode()
    return f'<script type="application/octet-stream" id="engine">{packed}</script>'


def simulator(report: Report, sections: Sequence[dict[str, Any]]) -> str:
    """The scripts with which the curves of a report can be varied in its page: what the explorer is given, and the
    simulator. Tells each figure of ``sections``, as the page reads them, what of it can be varied."""
    check_built()
    found = taken(report)
    put_into(sections, found)
    return f'<script type="application/json" id="explore">{as_json(_given([], found.files, {}))}</script>{engine()}'


def _given(
    entries: Sequence[dict[str, str]], files: Mapping[str, dict[str, Any]], prices: Mapping[str, float]
) -> dict[str, Any]:
    """What the explorer is given: see ``Given`` in web/src/explore.ts."""
    words = {option.name: list(option.values()) for option in OPTIONS if option.name in CHOICES}
    return {"version": _native.version(), "entries": entries, "files": files, "words": words, "prices": prices}


def _prices(book: PriceBook, shown: Sequence[str]) -> dict[str, float]:
    """Dollars for each drive, and each array's host without its drives, that has a price."""
    items = dict.fromkeys(map(_item, (*_native.drive_ids(), *_native.array_ids(), *shown)))
    prices = {item: book.price(item) for item in items}
    return {item: price.usd for item, price in prices.items() if price is not None}


def _item(name: str) -> str:
    """What a price list calls a system: the name of a file is that without its folder and ending."""
    return Path(name).stem if name.endswith(".toml") else name
