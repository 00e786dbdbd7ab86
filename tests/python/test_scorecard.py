"""The studies that ship: every claim has its verdict, and the scorecard says what the studies give."""

from __future__ import annotations

import subprocess
import sys

import pytest

import headstack as hs
from conftest import REPOSITORY

CLAIMS = 134
"""Of the five documents, numbered through: S0.1, S0.2 and so on."""


def test_every_claim_of_the_five_documents_is_in_one_study() -> None:
    found = [claim["id"] for name in hs.studies.listed() for claim in hs.studies.load(name).claims]
    numbered = sorted((id for id in found if id.startswith("S0.")), key=lambda id: int(id.removeprefix("S0.")))
    assert numbered == [f"S0.{number}" for number in range(1, CLAIMS + 1)]


PUBLISHED = [
    name for name in hs.studies.listed() if any(claim["id"].startswith("S0.") for claim in hs.studies.load(name).claims)
]
"""The studies of the documents. That of the predictor takes minutes, and is carried out by ``make validate``."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_study_that_ships_is_carried_out(name: str) -> None:
    """The longest tests there are, unless their runs are kept from before, as they are for the scorecard then."""
    outcome = hs.studies.run(name)
    assert len(outcome.claims) == len(hs.studies.load(name).claims) > 0


def test_the_scorecard_is_what_the_studies_give() -> None:
    command = [sys.executable, "-c", "from headstack.cli import main; main()", "study", "scorecard"]
    written = str(REPOSITORY / "docs" / "scorecard.md")
    done = subprocess.run([*command, "--check", written, "-q"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
