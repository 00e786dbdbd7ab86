"""The scenarios of the catalogue."""

from headstack import _native
from headstack.scenario import Scenario


def list() -> tuple[str, ...]:
    """Their ids."""
    return tuple(_native.scenario_ids())


def show(name: str) -> Scenario:
    """The scenario of that id or file."""
    return Scenario.load(name)
