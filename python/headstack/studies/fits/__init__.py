"""Inverse studies: which settings of what a document leaves unsaid give all of its figures at once?

found = hs.studies.fit("compaq/neds")
print(hs.studies.fits.finding(found))
"""

from headstack.studies.fits.carrying_out import SETTINGS, fit
from headstack.studies.fits.files import Fit, Unknown, listed, load, of_study
from headstack.studies.fits.found import Fitted
from headstack.studies.fits.shown import finding

__all__ = ["SETTINGS", "Fit", "Fitted", "Unknown", "finding", "fit", "listed", "load", "of_study"]
