"""``Stack``, layers of software and network over a drive or an array."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.parts import span_of_part


@dataclass(frozen=True)
class Stack:
    """A stack with all defaults filled in, or a part of one."""

    name: str
    """The name in results: the catalogue's id or the file's name, with the range if there is one."""
    description: dict[str, Any]
    """The upper layer, and the systems below it; times are in nanoseconds."""
    derived: list[dict[str, Any]] = field(default_factory=list)
    """Derived values: ``key``, ``value`` and the ``rule`` that computes them."""
    stated: list[dict[str, Any]] = field(default_factory=list)
    """Values stated in the file: ``key``, ``value`` (as text) and ``source`` (confidence and origin)."""
    span: tuple[int, int] | None = None
    """First byte and length in bytes of the used part; ``None`` for the whole stack."""
    path: str = ""
    """Source of the description: a file, or an id in the catalogue."""

    @classmethod
    def load(cls, name: str | os.PathLike[str]) -> Stack:
        """Loads the stack ``ID`` or ``FILE.toml``.

        Raises ``InputError`` if there is no such name, or it is a drive or an array.

        >>> hs.stacks.show("ext4-nvme").summary["layers"]
        ['ext4']
        """
        path = os.fspath(name)
        resolved = _native.load_system(path)
        if "stack" not in resolved:
            (kind,) = resolved
            raise InputError(f"{path}: this is of the kind {kind}; a stack is required")
        return cls(os.path.basename(path).removesuffix(".toml"), path=path, **resolved["stack"])

    @property
    def system(self) -> dict[str, Any]:
        """The system description for a run."""
        return self.description

    @cached_property
    def size(self) -> _native.SystemSize:
        """The sizes of the stack."""
        return _native.system_size(self.system)

    @property
    def capacity_bytes(self) -> int:
        """Bytes exported to the application."""
        return self.size.capacity_bytes

    @property
    def summary(self) -> dict[str, Any]:
        """The main properties, which distinguish stacks in a list."""
        layers = list(layers_of(self.system))
        return {
            "id": self.name,
            "name": layers[0]["name"],
            "layers": [layer_name(layer["layer"]) for layer in layers],
            "over": next(value["value"] for value in self.stated if value["key"] == "stack.over"),
            "capacity_bytes": self.capacity_bytes,
        }

    def part(self, text: str) -> Stack:
        """Returns the part ``text`` of the stack: ``500GB`` (the first), ``1TB..2TB`` or ``0%..50%``.

        >>> hs.stacks.show("ext4-nvme").part("0%..50%").name
        'ext4-nvme@0%..50%'
        """
        span = span_of_part(self.name, self.span, self.size, text)
        return replace(self, name=f"{self.name}@{text}", span=span)


def layers_of(system: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the layers of a system's description, from the application down to the first drive or array."""
    while "stack" in system:
        yield system["stack"]
        system = system["stack"]["below"][0]


def layer_name(layer: dict[str, Any]) -> str:
    """Returns the name of a layer as in files.

    >>> from headstack.catalogue.stack import layer_name
    >>> layer_name({"journal": {"kind": "xfs"}}), layer_name({"page-cache": {}}), layer_name({"instance-limit": {}})
    ('xfs', 'page_cache', 'instance')
    >>> layer_name({"block-cache": {"software": {"dm-cache": {}}}})
    'dm_cache'
    """
    ((kind, values),) = layer.items()
    if kind == "journal":
        return str(values["kind"])
    if kind == "block-cache":
        (kind,) = values["software"]
    return {"instance-limit": "instance"}.get(kind, kind.replace("-", "_"))


def base_of(system: dict[str, Any]) -> dict[str, Any]:
    """Returns the description of the drive or array that holds the data below all layers."""
    for layer in layers_of(system):
        system = layer["below"][0]
    return system
