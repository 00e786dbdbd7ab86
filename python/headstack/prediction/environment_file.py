"""Environments from TOML files with a table ``[environment]``.

[environment]
depth   = 8                # or rate = 200, arrivals per second; with depth also think = "10ms"
range   = "20GB"           # range of random requests; by default the whole system
streams = 2                # number of concurrent sequential streams
switch_percent = 25        # share of sequential requests that follow a request elsewhere
align   = "4KiB"
hot_percent = 80           # share of random requests that go to a hot part
hot_part_percent = 10      # size of the hot part as a share of the range

[[environment.lines]]      # like those of a workload
size = "8KiB"
share_percent = 100
read_percent = 67
random_percent = 80
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from headstack._native import InputError
from headstack.io.values import duration_ns, size_bytes
from headstack.prediction.environment import Closed, Environment, Hot, Open, Spread, classes_of

KEYS = (
    "depth",
    "rate",
    "think",
    "range",
    "streams",
    "switch_percent",
    "align",
    "hot_percent",
    "hot_part_percent",
    "lines",
)
LINE_KEYS = ("size", "share_percent", "read_percent", "random_percent")


def load_environment_file(path: Path) -> Environment | None:
    """Returns the environment of a file with such a table; ``None`` for other TOML. Raises ``InputError`` with file and
    key.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("environment")
    except ValueError:
        return None  # The workload reader reports the error with its position.
    if table is None:
        return None
    file = str(path)
    if not isinstance(table, dict):
        raise InputError(f"{file}: environment: not a table; use [environment]")
    _check_keys(f"{file}: environment", table, KEYS)
    lines = table.get("lines")
    if not isinstance(lines, list) or not lines or not all(isinstance(line, dict) for line in lines):
        raise InputError(f"{file}: environment.lines: needs at least one [[environment.lines]]")
    for number, line in enumerate(lines):
        where = f"{file}: environment.lines[{number}]"
        _check_keys(where, line, LINE_KEYS)
        _text(where, line, "size", None)
        for key, default in (("share_percent", 100.0), ("read_percent", None), ("random_percent", None)):
            line[key] = _number(where, line, key, default, 0, 100)
    shares = sum(line["share_percent"] for line in lines)
    if abs(shares - 100) > 1e-6:
        raise InputError(f"{file}: environment.lines: share_percent sums to {shares:g}; it must sum to 100")
    where = f"{file}: environment"
    range_ = _text(where, table, "range", "")
    return Environment(
        path.stem,
        classes_of(file, lines),
        _load(where, table),
        spread=(Spread(1.0, size_bytes(f"{where}.range", range_)),) if range_ else (),
        streams=int(_number(where, table, "streams", 1, 1, 65_536)),
        switch_share=_number(where, table, "switch_percent", 0, 0, 100) / 100,
        hot=_hot(where, table),
        align_bytes=size_bytes(f"{where}.align", _text(where, table, "align", "512B")),
    )


def _hot(where: str, table: Mapping[str, object]) -> Hot | None:
    if "hot_percent" not in table:
        return None
    share = _number(where, table, "hot_percent", None, 0, 100) / 100
    return Hot(share, _number(where, table, "hot_part_percent", None, 1e-6, 100) / 100)


def _load(where: str, table: Mapping[str, object]) -> Closed | Open:
    if ("depth" in table) == ("rate" in table):
        raise InputError(f"{where}: needs exactly one of depth and rate")
    if "rate" in table:
        if "think" in table:
            raise InputError(f"{where}.think: needs depth, because an open loop has no think time")
        return Open(_number(where, table, "rate", None, 1e-9, 1e9))
    think = _text(where, table, "think", "0ns")
    return Closed(_number(where, table, "depth", None, 1e-9, 65_536), float(duration_ns(f"{where}.think", think)))


def _check_keys(where: str, table: Mapping[str, object], allowed: tuple[str, ...]) -> None:
    for key in table:
        if key not in allowed:
            raise InputError(f"{where}.{key}: unknown key; allowed: {', '.join(allowed)}")


def _number(where: str, table: Mapping[str, object], key: str, default: float | None, low: float, high: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InputError(f"{where}.{key}: {value!r} is not allowed; use a number from {low:g} to {high:g}")
    return float(value)


def _text(where: str, table: Mapping[str, object], key: str, default: str | None) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise InputError(f"{where}.{key}: {value!r} is not allowed; use text with a unit")
    return value
