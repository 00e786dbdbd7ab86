"""Pages as one HTML file: a built script and style (web/) with the data they read."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headstack._native import InputError

FOLDER = Path(__file__).parent

SIMULATOR_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:; "
    "connect-src data:; style-src 'unsafe-inline'; img-src data:"
)
"""The policy of a page with a simulator: it may load its own scripts, the engine, its workers, and dropped files."""


def built(name: str) -> str:
    """Returns a part of a page by its name. Raises ``InputError`` if it was not built."""
    try:
        return (FOLDER / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            "HTML reports need the page, which is not built; run make web (needs Node 20 or newer)"
        ) from None


def page_of(title: str, name: str, data: str, plain: str, policy: str, more: str = "") -> str:
    """Returns a page: the script and the style of a name, the JSON that the script reads, the HTML shown without
    scripts, and ``more`` that the script needs."""
    part = "explore" if name == "explore" else "report"
    # A script ends at the first ``</script``, even inside a string.
    script, style = built(f"{name}.js").replace("</script", r"<\/script"), built(f"{name}.css")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>{style.strip()}</style>
</head>
<body>
<div id="plain">{plain}</div>
<script type="application/json" id="{part}">{data}</script>{more}
<script>{script.strip()}</script>
</body>
</html>
"""


def as_json(content: Mapping[str, object]) -> str:
    """Returns JSON that is safe inside a script element: without ``</`` and ``<!--``."""
    text = json.dumps(_shorten_numbers(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _shorten_numbers(value: Any) -> Any:
    """Writes whole numbers without ``.0``, as JavaScript does: maps have a hundred thousand of them."""
    if isinstance(value, dict):
        return {key: _shorten_numbers(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_shorten_numbers(element) for element in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
