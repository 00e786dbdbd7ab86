"""The workloads of the catalogue."""

from headstack import _native
from headstack.workload import Workload


def list() -> tuple[str, ...]:
    """Their ids."""
    return tuple(_native.workload_ids())


def show(name: str) -> Workload:
    """The workload of that id, name or file."""
    return Workload.load(name)
