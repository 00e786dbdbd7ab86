"""``Fitted``: the result of an inverse study, with the posterior of each unknown, and each figure with its band."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from html import escape
from typing import TYPE_CHECKING, Any

from headstack.io.tables import to_csv
from headstack.studies.fits import render
from headstack.studies.fits.render import finding

if TYPE_CHECKING:
    from headstack.report.figures import Report
from headstack.studies.fits.fit_data import STORED, STORED_NAMES, FitData

NOT_STORED = ("each", "summary")
"""Fields not stored: settings are a table of their own, and the summary is in the study's file."""


class Fitted(FitData):
    """A completed inverse study. Equal inputs, seeds and versions give identical results."""

    def to_json(self) -> str:
        """Returns everything that ``read`` restores."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in NOT_STORED}
        values |= {"tolerance": str(self.tolerance), "finding": finding(self)}
        return json.dumps(STORED.head | values, indent=1, default=_stored_dict) + "\n"

    def to_csv(self) -> str:
        """Returns the tried settings, one per row."""
        return to_csv(list(self.each[0]), self.each)

    def report(self) -> Report:
        """Returns the result as a report."""
        return render.report(self)

    def _repr_html_(self) -> str:
        return f"<b>{escape(self.title)}</b>: {escape(finding(self))}"


def _stored_dict(value: Any) -> dict[str, Any]:
    """Converts a part of the result for JSON, with the stored names of its fields."""
    return {STORED_NAMES.get(name, name): part for name, part in asdict(value).items()}
