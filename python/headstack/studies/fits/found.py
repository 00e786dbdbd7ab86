"""``Fitted``: the result of an inverse study, with the posterior of each unknown, and each figure with its band."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from html import escape
from typing import TYPE_CHECKING

from headstack.io.tables import to_csv
from headstack.studies.fits import shown
from headstack.studies.fits.shown import finding

if TYPE_CHECKING:
    from headstack.report.figures import Report
from headstack.studies.fits.fitted import STORED, FitData

NOT_STORED = ("each", "summary")
"""Fields not stored: settings are a table of their own, and the summary is in the study's file."""


class Fitted(FitData):
    """A completed inverse study. Equal inputs, seeds and versions give identical results."""

    def to_json(self) -> str:
        """Returns everything that ``read`` restores."""
        told = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in NOT_STORED}
        told |= {"tolerance": str(self.tolerance), "finding": finding(self)}
        return json.dumps(STORED.head | told, indent=1, default=asdict) + "\n"

    def to_csv(self) -> str:
        """Returns the tried settings, one per row."""
        return to_csv(list(self.each[0]), self.each)

    def report(self) -> Report:
        """Returns the result as a report."""
        return shown.report(self)

    def _repr_html_(self) -> str:
        return f"<b>{escape(self.title)}</b>: {escape(finding(self))}"
