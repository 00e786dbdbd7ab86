"""The workloads of the catalogue."""

from headstack import _native
from headstack.catalogue import listings
from headstack.catalogue.workload import Workload


def list() -> tuple[str, ...]:
    """Returns the ids of all workloads."""
    return listings.Listing.of(_native.workload_ids(), listings.workloads)


def show(name: str) -> Workload:
    """Loads the workload of that id, name or file."""
    return Workload.load(name)
