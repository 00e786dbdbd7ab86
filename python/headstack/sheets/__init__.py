"""Data sheets as text, and the drive files that follow from them."""

from headstack.sheets.lines import Line, lines_of
from headstack.sheets.sheet import Sheet

__all__ = ["Line", "Sheet", "lines_of"]
