"""``Control``: sends orders to a running export through its control socket."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from typing import Any

from headstack._native import InputError, RunError
from headstack.io.json_text import line_of

TRIGGERS = ("at", "after", "touching", "containing", "while", "state", "every", "once")
"""Keys of a fault that select the requests that trigger it, or are affected by it."""

PATIENCE_S = 30.0
"""Time limit of an answer in seconds; the server answers between two events of the model."""


class Control:
    """A connection to the control socket of ``headstack serve``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE_S)
        try:
            self._socket.connect(os.fspath(path))
        except OSError as error:
            raise InputError(
                f"{os.fspath(path)}: no export listens on this control socket: {error.strerror or error}"
            ) from None
        self._lines = self._socket.makefile("r", encoding="utf-8")

    def order(self, order: Mapping[str, Any]) -> Any:
        """Sends an order and returns its answer. Raises ``InputError`` if it is refused."""
        self._socket.sendall(line_of(order))
        line = self._lines.readline()
        if not line:
            raise RunError("the server closed the connection")
        answer = json.loads(line)
        if "error" in answer:
            raise InputError(answer["error"])
        return answer["ok"]

    def close(self) -> None:
        """Closes the connection."""
        self._lines.close()
        self._socket.close()

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def order_of(words: tuple[str, ...]) -> Mapping[str, object]:
    """Parses an order: ``status``, ``inject latency-spike percent=1 time=50ms for=10s``, ``inject power-cut
    after=writes:1000``, or its JSON."""
    if len(words) == 1 and words[0].startswith("{"):
        try:
            order = json.loads(words[0])
        except ValueError as error:
            raise InputError(f"not valid JSON: {error}", key="order") from None
        if not isinstance(order, dict):
            raise InputError("not a JSON object", key="order")
        return order
    name, *rest = words
    if name == "inject":
        if not rest:
            raise InputError(
                'inject needs a fault, for example "inject latency-spike percent=1 time=50ms for=10s"', key="order"
            )
        keys = dict(_pair(word) for word in rest[1:])
        lasts = {"for": keys.pop("for")} if "for" in keys else {}
        # For link resets, `every` is a time.
        chosen = {key: _counted(value) for key, value in keys.items() if key in TRIGGERS and not _is_period(key, value)}
        when = {"when": chosen} if chosen else {}
        fault = {key: value for key, value in keys.items() if key not in chosen}
        return {"do": "inject", "fault": {"what": rest[0], **fault}, **lasts, **when}
    if name == "mark":
        return {"do": "mark", "text": " ".join(rest)}
    return {"do": name, **dict(_pair(word) for word in rest)}


def _is_period(key: str, value: Any) -> bool:
    return key == "every" and isinstance(value, str) and ":" not in value


def _counted(value: Any) -> Any:
    """Parses ``flush:7`` as the seventh flush."""
    kind, separator, number = value.partition(":") if isinstance(value, str) else ("", "", "")
    return {kind: int(number)} if separator and kind.isalpha() and number.isdecimal() else value


def _pair(word: str) -> tuple[str, Any]:
    if word == "once":
        return word, True
    key, separator, value = word.partition("=")
    if not separator:
        raise InputError(f"{word!r} is not KEY=VALUE", key="order")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
