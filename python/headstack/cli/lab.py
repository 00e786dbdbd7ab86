"""``headstack lab``: commands to check and extend the models."""

from __future__ import annotations

import click

from headstack.cli.loading import Late


@click.group(
    cls=Late,
    late={
        "study": "studies.studies",
        "fit": "studies.fits",
        "scoreboard": "compare.scoreboard",
        "validate": "compare.validation",
        "characterize": "predict.prediction",
        "predict": "predict.prediction",
    },
)
def lab() -> None:
    """Check and extend the models: studies, fits and validation.

    \b
    headstack lab study list
    headstack lab characterize exos-x24-24tb -o exos.json
    headstack lab predict oltp-8k exos.json
    """
