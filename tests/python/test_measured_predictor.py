"""The low-level tests of real files and of null targets, and what is predicted from them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.measurement.access import Access
from headstack.measurement.measurement import BY_HAND, Opened
from headstack.prediction.device_tests import Device
from headstack.prediction.environment import Closed
from headstack.prediction.predictions import predict_all
from headstack.prediction.predictor import Axes, Characterization, Environment, characterize
from headstack.prediction.request_class import RequestClass

KIB = 1024
TINY = Axes(
    depths=(1, 4),
    sizes_bytes=(4 * KIB, 64 * KIB),
    range_steps=(8,),
    streams=(2,),
    switches=(0.0, 1.0),
    random_shares=(0.5, 1.0),
    read_shares=(0.0, 1.0),
    mixed_sizes_bytes=(4 * KIB,),
    mixed_ranges=(0,),
    open_shares=(1,),
    loads=(0.5,),
    warm_up=1,
    environments=50,
)
READS = Environment("reads", (RequestClass(1.0, 4 * KIB, True, True),), Closed(4), align_bytes=4 * KIB)
WRITES = replace(READS, name="writes", classes=(RequestClass(1.0, 4 * KIB, False, True),))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test ends is kept, and would be gone on with when it is run again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(1 << 20) * 16)
    return path


def test_a_test_that_nothing_answered_is_made_again_and_longer() -> None:
    def tested(target: str) -> float:
        opened = Opened([target], Access(), False)
        device = Device(opened, test_ns=20_000_000, planned=1)
        spec = device.spec(hs.Workload.uniform())
        (found,) = device.run([spec], lambda share: None)
        return found.mean_ns

    # 20, 40 and 80 ms see no answer.
    assert tested("null:100ms") == pytest.approx(1e8, rel=0.3)
    with pytest.raises(hs.RunError, match=r"null:2s: no request completed within 0\.64 s; use a longer --time"):
        tested("null:2s")


def test_a_constant_service_time_is_predicted() -> None:
    heard: list[float] = []
    found = characterize("null:1ms", axes=TINY, time="12s", progress=heard.append)
    assert (found.how, found.system) == ("measured", "null:1ms")
    assert heard == sorted(heard)
    assert heard[-1] == pytest.approx(1, abs=0.05)
    one = predict_all([READS], [found])[0]
    # Where others have the processor, a test of some milliseconds loses much of its rate; a median loses little.
    assert 0.4 * 4000 < one.iops < 1.1 * 4000
    assert one.p50_ms == pytest.approx(1, rel=0.3)
    assert one.iops_low < one.iops < one.iops_high


def test_reading_asks_for_nothing_and_writes_are_refused(data: Path, tmp_path: Path) -> None:
    before = data.read_bytes()
    found = characterize(data, axes=TINY, time="4s", access=Access(buffered=True))
    assert data.read_bytes() == before
    assert found.capacity_bytes == 16 << 20
    assert all(table.knots("read") == (1.0,) for table in found.tables.values())
    found.to_json(tmp_path / "c.json")
    read = Characterization.load(tmp_path / "c.json")
    assert read == found
    assert predict_all([READS], [read])[0].iops > 0
    with pytest.raises(hs.InputError, match=r"^writes: contains writes, but only reads were tested$"):
        predict_all([WRITES], [read])


def test_who_permits_it_has_writes_tested(data: Path) -> None:
    before = data.read_bytes()
    found = characterize(data, axes=TINY, time="6s", access=Access(overwrite=True, buffered=True))
    assert data.read_bytes() != before
    assert predict_all([WRITES], [found])[0].iops > 0


def test_what_is_whole_is_kept_when_somebody_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    measure, left = Opened.measure, [0]

    def ending(opened: Opened, *arguments: object) -> hs.Results:
        left[0] -= 1
        results = measure(opened, *arguments)  # type: ignore[arg-type]
        if left[0] < 0:
            opened.ended = BY_HAND
        return results

    monkeypatch.setattr(Opened, "measure", ending)
    left[0] = 3
    with pytest.raises(hs.RunError, match=r"^stopped by hand after 3 of \d+ tests; a characterization needs all"):
        characterize("null", axes=TINY, time="6s")
    # In the midst of the environments drawn at random, of which too few are left of some kinds.
    left[0] = 10**6
    whole = characterize("null", axes=TINY, time="6s")
    left[0] = 10**6 - left[0] - 65
    found = characterize("null", axes=TINY, time="6s")
    assert found.tables.keys() == whole.tables.keys()
    assert found.errors["mean"].keys() < whole.errors["mean"].keys()
    with pytest.raises(
        hs.InputError, match=r"reads: \d environments of this kind \(random\) .* a 90 % interval needs 9"
    ):
        predict_all([READS], [found])


BAD = {
    ("lab", "characterize", "null", "--time", "10ms"): "time: 10ms is too short for",
    ("lab", "characterize", "null", "--write-cache", "off"): "--write-cache: does not apply to real targets",
    ("lab", "characterize", "null", "--direct"): "direct: applies only to simulated arrays",
    (
        "lab",
        "characterize",
        "cheetah-9lp",
        "--overwrite",
    ): "cheetah-9lp: a simulated system; access and time apply only to real files",
    (
        "lab",
        "characterize",
        "cheetah-9lp",
        "--time",
        "1s",
    ): "cheetah-9lp: a simulated system; access and time apply only to real files",
    ("lab", "characterize", "./nothing.bin"): "nothing.bin",
    (
        "lab",
        "predict",
        "oltp-8k",
        "/dev/null0",
    ): "/dev/null0: a real file or device; first run headstack lab characterize /dev/null0",
}


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_what_cannot_be_is_told_in_one_line(headstack: Headstack, arguments: tuple[str, ...]) -> None:
    done = headstack(*arguments)
    assert done.returncode == 2, done.stderr
    assert BAD[arguments] in done.stderr
    assert done.stderr.count("\n") == 1
