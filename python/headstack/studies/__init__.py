"""Studies: reproducible questions, each with its runs, the published figures and the errors between them.

    import headstack as hs

    outcome = hs.studies.run("storagereview")
    outcome.verdicts()
    outcome.report()

    result = hs.studies.fit("compaq/neds")
    result.report()

``shipped/README.md`` describes the format of ``study.toml``.
"""

from headstack.studies.execution import run
from headstack.studies.files import listed, load
from headstack.studies.fits import Fitted, fit
from headstack.studies.outcome import Outcome
from headstack.studies.study import Study

__all__ = ["Fitted", "Outcome", "Study", "fit", "listed", "load", "run"]
