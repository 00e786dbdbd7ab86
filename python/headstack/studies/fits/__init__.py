"""Inverse studies: which settings of what a document leaves unsaid give all of its figures at once?

found = hs.studies.fit("compaq/neds")
print(hs.studies.fits.finding(found))
"""

from headstack.studies.fits.execution import SETTINGS, fit
from headstack.studies.fits.files import Fit, Unknown, listed, load, of_study
from headstack.studies.fits.fit_result import Fitted
from headstack.studies.fits.render import finding

__all__ = ["SETTINGS", "Fit", "Fitted", "Unknown", "finding", "fit", "listed", "load", "of_study"]
