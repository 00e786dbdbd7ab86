"""The types that are stated for parts of a study, compared with every study that ships."""

from __future__ import annotations

import pytest

from headstack.studies import files
from headstack.studies.study_types import Chosen, Claim, DerivedTable, Grid, Open, Picture, Published
from shapes import differences


@pytest.mark.parametrize("name", files.listed())
def test_studies_have_the_stated_types(name: str) -> None:
    study = files.load(name)
    assert list(differences(list(study.grids), list[Grid])) == []
    assert list(differences(list(study.published), list[Published])) == []
    assert list(differences(list(study.tables), list[DerivedTable])) == []
    assert list(differences(list(study.chosen), list[Chosen])) == []
    assert list(differences(list(study.open), list[Open])) == []
    assert list(differences(list(study.claims), list[Claim])) == []
    assert list(differences(list(study.pictures), list[Picture])) == []
