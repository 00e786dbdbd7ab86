"""Devices of no family: none takes them for its own."""

from typing import Any

import pytest

pytest.importorskip("numpy", reason="twins need numpy")

from headstack.cli.main import main
from headstack.twin.strangers import Stranger, strangers


@pytest.mark.parametrize(("number", "what"), [(6, "a disk"), (11, "another volume")])
def test_a_stranger_fits_nothing_that_it_is_not(number: Any, what: Any) -> None:
    (found,) = strangers(1, seed=3, first=number)
    assert found.description == what
    assert found.off == {}
    assert found.is_predicted_well
    assert len(found.refused) >= 3
    assert all(found.refused.values()), "each family says what speaks against it"


def test_a_device_that_is_predicted_well_is_no_mistake() -> None:
    assert Stranger("one", "a disk", off={"flash": 0.02}).is_predicted_well
    assert not Stranger("one", "a disk", off={"flash": 0.02, "array": 0.2}).is_predicted_well


def test_validate_counts_strangers(capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["measure", "twin", "validate", "--family", "strangers", "--devices", "1", "-q"])
    assert ended.value.code == 0
    assert "1 devices: 1 fit no wrong kind" in capsys.readouterr().out


def test_strangers_teach_no_interval(capsys: Any, tmp_path: Any) -> None:
    with pytest.raises(SystemExit):
        main(["measure", "twin", "validate", "--family", "strangers", "--calibration", str(tmp_path / "one.json")])
    assert "not available for strangers" in capsys.readouterr().err
