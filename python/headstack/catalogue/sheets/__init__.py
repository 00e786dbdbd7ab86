"""Data sheets as text, and the drive files generated from them."""

from headstack.catalogue.sheets.lines import Line, lines_of
from headstack.catalogue.sheets.sheet import Sheet

__all__ = ["Line", "Sheet", "lines_of"]
