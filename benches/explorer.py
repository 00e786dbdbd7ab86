"""How large the explorer is, and how quickly it answers in headless Chromium: ``python benches/explorer.py``.

The speed in the browser is that of the engine in Node against the program, both by processor time of one thread. Needs
``make build``, Node and Chromium.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import headstack as hs
from headstack import _native
from headstack.results.explorer import ENGINE

WEB = Path(__file__).parents[1] / "web"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "chromium")
SYSTEMS = (("cheetah-x15-36lp", "spindle speed", 12), ("nearline-24-raid6", "drives", 12))
"""The parameter that is dragged for each system, and the number of steps."""
REQUESTS, DEPTHS, RUNS = 30_000, ("1", "4", "16", "64"), 6


def main() -> None:
    """Prints a line for each figure."""
    print(f"load {' '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        engine = Path(folder) / "engine.wasm"
        engine.write_bytes(lzma.decompress(ENGINE.read_bytes()))
        for system, slider, drags in SYSTEMS:
            page = Path(folder) / f"{system}.html"
            hs.explore(page, system, "file-server")
            text = page.read_bytes()
            print(f"{system}: {len(text) / 1e6:.2f} MB, compressed {len(gzip.compress(text)) / 1e6:.2f} MB")
            told = in_node("speed.mjs", CHROMIUM, page, slider, drags)
            print(f"  first paint {told['first_paint_ms']:.0f} ms, first curve {told['first_curve_ms']:.0f} ms")
            for which in ("coarse", "fine"):
                times = told[f"{which}_ms"]
                print(f"  drag to a {which} curve {statistics.median(times):.0f} ms, at most {max(times):.0f} ms")
            blocked = (told["blocked_starting_ms"], told["blocked_dragging_ms"])
            print("  blocked for {:.0f} ms at the start, {:.0f} ms while dragging (0: never over 50)".format(*blocked))
            chunk = asked(system)
            native = min(native_ms(chunk) for _ in range(RUNS))
            first, *warm = in_node("cost.mjs", engine, RUNS, json.dumps({"ask": "run", "points": chunk}))
            share = 100 * native / min(warm)
            print(f"  of the program's speed {share:.0f} %, {100 * native / first:.0f} % in its first run")


def asked(system: str) -> dict[str, Any]:
    """Returns a curve's request, as the page makes it."""
    fields = ["depth", "requests"]
    return {
        "system": {"name": system, "part": None, "blueprint": _native.system_blueprint(system, [])},
        "demand": {"blueprint": _native.demand_blueprint("file-server")},
        "fields": fields,
        "kinds": ["option"] * len(fields),
        "columns": fields,
        "units": [None] * len(fields),
        "points": [[depth, str(REQUESTS)] for depth in DEPTHS],
    }


def native_ms(chunk: dict[str, Any]) -> float:
    """Returns the processor time of the same request in the program."""
    began = time.process_time()
    _native.run_chunks([json.dumps(chunk)])
    return 1e3 * (time.process_time() - began)


def in_node(script: str, *arguments: object) -> Any:
    """Returns the output of a script in web/test."""
    command = ["node", str(WEB / "test" / script), *map(str, arguments)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
