"""The arrays of the catalogue."""

from headstack import _native
from headstack.catalogue import listings
from headstack.catalogue.array import Array


def list() -> tuple[str, ...]:
    """Returns the ids of all arrays."""
    return listings.Listing.of(_native.array_ids(), listings.arrays)


def show(name: str) -> Array:
    """Loads the array with this id or from this file, with the sources of its values."""
    return Array.load(name)
