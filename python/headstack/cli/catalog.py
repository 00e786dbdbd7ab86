"""``headstack catalog``: drives, arrays, stacks, workloads, scenarios and prices that ship with headstack."""

from __future__ import annotations

import click

from headstack.cli.loading import Late


@click.group(
    cls=Late,
    late={
        "drives": "catalogue.catalogue",
        "arrays": "catalogue.arrays",
        "stacks": "catalogue.stacks",
        "workloads": "catalogue.catalogue",
        "scenarios": "catalogue.scenarios",
        "prices": "catalogue.prices",
    },
)
def catalog() -> None:
    """List and show drives, arrays, stacks, workloads, scenarios and prices.

    \b
    headstack catalog drives list --kind ssd --year 2022..
    headstack catalog drives show 990-pro-2tb --toml > mine.toml
    headstack catalog arrays show zfs-raidz2-8-nas
    headstack catalog workloads list
    """
