"""What came of an inverse study: what is left of each unknown, and each figure beside its band."""

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
"""Settings are a table of their own, and what people say of it stands in its file."""


class Fitted(FitData):
    """An inverse study that was carried out. Equal inputs, seeds and versions give equal ones, byte for byte."""

    def to_json(self) -> str:
        """Everything that ``read`` reads again."""
        told = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in NOT_STORED}
        told |= {"tolerance": str(self.tolerance), "finding": finding(self)}
        return json.dumps(STORED.head | told, indent=1, default=asdict) + "\n"

    def to_csv(self) -> str:
        """The settings that were tried, a row each."""
        return to_csv(list(self.each[0]), self.each)

    def report(self) -> Report:
        """What came of it as a report."""
        return shown.report(self)

    def _repr_html_(self) -> str:
        return f"<b>{escape(self.title)}</b>: {escape(finding(self))}"
