"""The stacks of the catalogue."""

from headstack import _native
from headstack.catalogue import listings
from headstack.catalogue.stack import Stack


def list() -> tuple[str, ...]:
    """Returns the ids of all stacks."""
    return listings.Listing.of(_native.stack_ids(), listings.stacks)


def show(name: str) -> Stack:
    """Loads the stack with this id or from this file, with the sources of its values."""
    return Stack.load(name)
