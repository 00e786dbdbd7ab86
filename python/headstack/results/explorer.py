"""`explore` writes the explorer as one HTML file that needs no network: the page (web/src/explore.ts) and the
simulator."""

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
from headstack.catalogue.system import load_blueprint
from headstack.io.atomic_files import write_text
from headstack.report.figures import Report
from headstack.report.pages import FOLDER, SIMULATOR_POLICY, as_json, built, page_of
from headstack.results.explorer_queries import add_to_figures, stated, variable_curves

ENGINE = FOLDER / "engine.wasm.lzma"
"""The simulator for pages (crates/web), which `make web` builds."""
USUAL = ("cheetah-x15-36lp", "file-server")
"""The drive and the workload that the page shows by default."""
CHOICES = ("policy", "level", "write_cache", "read_ahead", "state", "host")
"""Options of which the page offers a choice of single values."""

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
    """Writes one HTML file in which the reader varies the values of these systems and this workload, and sees the
    results.

    The page contains the files of systems and workloads given here, and offers all others of the catalogue. With
    ``prices`` it shows dollars per IOPS, at the prices of the day ``on``. Raises ``InputError`` for unknown names, or
    if the page or its engine is not built.

    >>> hs.explore("page.html", ["cheetah-x15-36lp", "man3735"], "web-server")
    """
    named = [systems] if isinstance(systems, str | os.PathLike) else list(systems)
    write_text(
        path, page([os.fspath(name) for name in named], None if workload is None else os.fspath(workload), prices, on)
    )


def check_built() -> None:
    """Raises ``InputError`` if the page or its engine is not built."""
    built("explore.js")
    if not ENGINE.is_file():
        raise InputError(
            "the explorer needs the simulator for pages; build it with `make web`, which needs Node 20 or newer and "
            "Rust's target wasm32-unknown-unknown (rustup target add wasm32-unknown-unknown)"
        )


def page(
    systems: Sequence[str], workload: str | None, prices: Named | Sequence[Named] = (), on: str | None = None
) -> str:
    """Returns the page of `explore` as text; equal arguments give equal text."""
    check_built()
    demand = workload or USUAL[1]
    shown = list(systems) or [USUAL[0]]
    blueprints = {name: load_blueprint(name) for name in shown}
    blueprints[demand] = _native.demand_blueprint(demand)
    paths = [prices] if isinstance(prices, str | os.PathLike) else list(prices)
    data = _page_data(
        [{"system": name, "demand": demand} for name in shown],
        {name: stated(text) for name, text in blueprints.items() if name.endswith(".toml")},
        _prices(PriceBook.load(paths, on), shown) if paths else {},
    )
    return page_of("Explore storage", "explore", as_json(data), UNSEEN, SIMULATOR_POLICY, engine())


def engine() -> str:
    """Returns the simulator as a script element: WebAssembly compressed by LZMA, in base64."""
    packed = base64.b64encode(ENGINE.read_bytes()).decode()
    return f'<script type="application/octet-stream" id="engine">{packed}</script>'


def simulator(report: Report, sections: Sequence[dict[str, Any]]) -> str:
    """Returns the scripts that let readers of a report vary its curves: the explorer's data and the simulator. Adds to
    each figure of ``sections``, as the page reads them, the curves that can be varied."""
    check_built()
    curves = variable_curves(report)
    add_to_figures(sections, curves)
    data = as_json(_page_data([], curves.files, {}))
    return f'<script type="application/json" id="explore">{data}</script>{engine()}'


def _page_data(
    entries: Sequence[dict[str, str]], files: Mapping[str, dict[str, Any]], prices: Mapping[str, float]
) -> dict[str, Any]:
    """Returns the data that the explorer reads: see ``Given`` in web/src/explore.ts."""
    words = {option.name: list(option.values()) for option in OPTIONS if option.name in CHOICES}
    return {"version": _native.version(), "entries": entries, "files": files, "words": words, "prices": prices}


def _prices(book: PriceBook, shown: Sequence[str]) -> dict[str, float]:
    """Returns the known prices in dollars of drives, and of the hosts of arrays without their drives."""
    items = dict.fromkeys(map(_item, (*_native.drive_ids(), *_native.array_ids(), *shown)))
    prices = {item: book.price(item) for item in items}
    return {item: price.usd for item, price in prices.items() if price is not None}


def _item(name: str) -> str:
    """Returns the name of a system in price lists, which for a file is its name without folder and suffix."""
    return Path(name).stem if name.endswith(".toml") else name
