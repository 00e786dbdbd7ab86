"""Writes drive files from the values of a data sheet, each with the words of its line."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from headstack.catalogue.sheets.estimates import Estimate
from headstack.catalogue.sheets.hints import Hint
from headstack.catalogue.sheets.lines import Line
from headstack.io.json_text import quoted

TABLES = {
    "disk": (
        "capacity",
        "geometry",
        "media",
        "spindle",
        "seek",
        "queue",
        "stated",
        "buffer",
        "overheads",
        "interface",
        "power",
        "reliability",
        "price",
    ),
    "ssd": (
        "capacity",
        "flash",
        "slc_cache",
        "stated",
        "buffer",
        "controller",
        "interface",
        "power",
        "endurance",
        "reliability",
        "price",
    ),
}
GENERATIONS = {
    "mlc": ((0, "mlc"), (40, "mlc-64")),
    "tlc": (
        (0, "tlc-32"),
        (60, "tlc-64"),
        (90, "tlc-96"),
        (105, "tlc-128"),
        (150, "tlc-176"),
        (200, "tlc-232"),
        (250, "tlc-276"),
    ),
    "qlc": ((0, "qlc-64"), (90, "qlc-96"), (105, "qlc-144"), (170, "qlc-192"), (200, "qlc-232")),
}
"""Generations of flash by bits per cell, each with the minimum number of layers."""


def toml(
    kind: str,
    values: Mapping[str, Any],
    said: Mapping[str, Line],
    guessed: Mapping[str, Estimate],
    source: str,
    hints: Mapping[str, Hint],
) -> str:
    """Returns the drive file as TOML, with the hints as comments."""
    stated = {key: value for key, value in values.items() if not key.startswith("?")}
    stated |= _generation(values)
    rows = stated | {key: estimate.value for key, estimate in guessed.items()}
    lines = [
        f"{key:<6} = {str(rows[key]) if key == 'year' else _value(rows[key])}{_quoted(said.get(key))}"
        for key in ("name", "vendor", "model", "year")
        if key in rows
    ]
    if "name" not in rows:
        lines.insert(0, 'name   = "Drive from a data sheet"')
    if notes := _notes(values):
        lines.append(f'notes  = """\n{notes}"""')
    for table in TABLES[kind]:
        keys = [key for key in rows if key.startswith(f"{table}.")]
        helpful = {key: hint for key, hint in hints.items() if key.startswith(f"{table}.") and key not in rows}
        if not keys and not helpful:
            continue
        lines += ["", f"[{table}]" if keys else f"# [{table}]"]
        width = max((len(key) for key in keys), default=0) - len(table) - 1
        for key in keys:
            comment = "  # estimate, not on the sheet" if key in guessed else _quoted(said.get(key))
            lines.append(f"{key.removeprefix(f'{table}.'):<{width}} = {_value(rows[key])}{comment}")
        for key, hint in helpful.items():
            example = f"# {key.removeprefix(f'{table}.')} = {_value(hint.value)}"
            lines.append(f"{example}  # {hint.comment}, not on the sheet; set it if you know the value")
    lines += [
        "",
        "# A read in the named source, S stated by a study's document, B and C general knowledge of high and medium",
        "# confidence, D estimate, I inferred.",
        "[sources]",
        f"default = {_value(source)}",
    ]
    lines += [f'"{key}" = {_value(estimate.source)}' for key, estimate in guessed.items()]
    if "flash.generation" in rows:
        lines.append('"flash.generation" = "I number of layers on the sheet"')
    return "\n".join(lines) + "\n"


def _generation(values: Mapping[str, Any]) -> dict[str, Any]:
    layers, generations = values.get("?layers"), GENERATIONS.get(values.get("flash.cells", ""), ())
    if layers is None or not generations:
        return {}
    return {"flash.generation": [name for least, name in generations if least <= layers][-1]}


def _notes(values: Mapping[str, Any]) -> str:
    """Returns a note on values that have no key in the file."""
    sentences = []
    if "?dram" in values and "buffer.size" not in values:
        sentences.append(f"DRAM: {values['?dram']}.")
    for key, name in (("?active_w", "Active"), ("?idle_w", "Idle")):
        if key in values:
            sentences.append(f"{name} power: {values[key]:g} W.")
    return textwrap.fill(" ".join(sentences), 100).replace("\\", "/").replace('"', "'")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}"
    return f"{value:.1e}".replace("e+", "e") if abs(value) >= 1e9 else repr(float(value))


def _quoted(line: Line | None) -> str:
    """Quotes a line of the sheet as a comment."""
    return "" if line is None else "  # " + " ".join(line.quoted.split())
