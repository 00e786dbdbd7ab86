"""The arrays of the catalogue."""

from headstack import _native
from headstack.array import Array


def list() -> tuple[str, ...]:
    """Their ids."""
    return tuple(_native.array_ids())


def show(name: str) -> Array:
    """The array of that id or file, with the sources of its values."""
    return Array.load(name)
