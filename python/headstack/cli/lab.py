"""``headstack lab``: commands for those who check or extend the models."""

from __future__ import annotations

import click

from headstack.cli.loading import Late


@click.group(
    cls=Late,
    late={
        "study": "studies.studies",
        "fit": "studies.fits",
        "validate": "compare.validation",
        "characterize": "predict.prediction",
        "predict": "predict.prediction",
    },
)
def lab() -> None:
    """Check models: published studies, fits, validation, and predictions from low-level tests."""
