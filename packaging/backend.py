"""What pip and build call to make a wheel or a sdist: maturin, once the page of the reports is there."""

import os
import subprocess
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

# maturin is told on purpose to be called from here.
os.environ.setdefault("MATURIN_NO_MISSING_BUILD_BACKEND_WARNING", "1")

PAGE = Path("python/headstack/report/bundle.js")


def build_wheel(*asked: Any) -> str:
    build_page()
    return str(maturin.build_wheel(*asked))


def build_sdist(*asked: Any) -> str:
    build_page()
    return str(maturin.build_sdist(*asked))


def build_page() -> None:
    """Builds the pages where their source is, which is not in a sdist. Without the page of the reports, which
    HEADSTACK_WITHOUT_REPORTS=1 allows, the package writes no HTML; without the engine of the explorer (Rust for
    WebAssembly) it has all else."""
    if Path("web").is_dir():
        subprocess.run(["make", "--silent", "web"], check=True)
    if not PAGE.is_file() and "HEADSTACK_WITHOUT_REPORTS" not in os.environ:
        raise SystemExit(f"headstack: {PAGE} is missing: `make web` builds it with Node 20 or newer")
