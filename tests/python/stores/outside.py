"""Stores in other languages: bbolt in Go, redb and sled in Rust, in programs that `make crash-stores` builds."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import headstack as hs
from stores.model import Rows
from stores.verdicts import BrokenError, Kind

HERE = Path(__file__).parent
PATIENCE_S = 20
"""Seconds after which a store that reads a few rows is considered to hang."""
BUILT = HERE.parents[2] / "target" / "stores"
PATH = os.pathsep.join([os.environ["PATH"], "/usr/local/go/bin"])


def program(store: str) -> list[str]:
    """Returns the program of a store with its first arguments. Raises ``RunError`` if it is not built."""
    file = BUILT / "bolt" if store == "bolt" else BUILT / "rust" / "release" / "stores"
    if not file.exists():
        raise hs.RunError(f"{store} is not built; make crash-stores does that")
    return [str(file)] if store == "bolt" else [str(file), store]


def build(store: str) -> None:
    """Builds the program of a store. Raises ``RunError`` with the reason if that fails."""
    if store == "bolt":
        words = ["go", "build", "-mod=readonly", "-o", str(BUILT / "bolt"), "."]
    else:
        words = ["cargo", "build", "--release", "--quiet", "--locked", "--target-dir", str(BUILT / "rust")]
    found = shutil.which(words[0], path=PATH)
    if found is None:
        raise hs.RunError(f"{words[0]} is not installed")
    folder = HERE / ("go" if store == "bolt" else "rust")
    done = subprocess.run([found, *words[1:]], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise hs.RunError(f"{words[0]}: {done.stderr.strip().splitlines()[-1]}")


def read(store: str, folder: Path, settings: dict[str, object]) -> Rows:
    command = [*program(store), "read", str(folder), json.dumps(settings)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise BrokenError(Kind.CORRUPT, f"it hangs for {PATIENCE_S} s") from None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode < 0:
        raise BrokenError(Kind.DIED, f"signal {-done.returncode}")
    if done.returncode != 0:
        # A panic starts with its cause; an error is one line, which may begin with its transaction.
        what = " ".join(said[:2])[:200]
        of = re.match(r"transaction (\d+): ", what)
        raise BrokenError(Kind.CORRUPT, what, int(of[1]) if of else 1)
    rows, place = [], 0
    while place < len(done.stdout):
        (length,) = struct.unpack_from("<I", done.stdout, place)
        rows.append(done.stdout[place + 4 : place + 4 + length])
        place += 4 + length
    return dict(zip(rows[::2], rows[1::2], strict=True))
