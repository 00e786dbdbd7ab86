"""Studies: questions answered in public, with the runs, the published figures, and how far apart they are.

    import headstack as hs

    outcome = hs.studies.run("storagereview")
    outcome.verdicts()
    outcome.report()

    found = hs.studies.fit("compaq/neds")
    found.report()

``shipped/README.md`` tells what a ``study.toml`` says.
"""

from headstack.studies.carrying_out import run
from headstack.studies.files import listed, load
from headstack.studies.fits import Fitted, fit
from headstack.studies.outcome import Outcome
from headstack.studies.study import Study

__all__ = ["Fitted", "Outcome", "Study", "fit", "listed", "load", "run"]
