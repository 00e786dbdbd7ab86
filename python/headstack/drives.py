"""The drives of the catalogue."""

from headstack import _native
from headstack.drive import Drive


def list() -> tuple[str, ...]:
    """Their ids."""
    return tuple(_native.drive_ids())


def show(name: str) -> Drive:
    """The drive of that id or file, with the sources of its values."""
    return Drive.load(name)
