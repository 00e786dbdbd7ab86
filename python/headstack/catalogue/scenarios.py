"""The scenarios of the catalogue."""

from headstack import _native
from headstack.catalogue import listings
from headstack.catalogue.scenario import Scenario


def list() -> tuple[str, ...]:
    """Returns the ids of all scenarios."""
    return listings.Listing.of(_native.scenario_ids(), listings.scenarios)


def show(name: str) -> Scenario:
    """Loads the scenario with this id or from this file."""
    return Scenario.load(name)
