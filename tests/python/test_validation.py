"""Replaying measured traces: the figures, the dump, and what stands beside them."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack.comparison.validation import published_demerits


def test_scores_are_those_of_the_dumped_times(validation_folder: Path, tmp_path: Path) -> None:
    for score in hs.validate(validation_folder):
        lines = (validation_folder / f"{score.name}.trace").read_text().split("\n")
        measured_ms = [float(line.split()[4]) / 1000 for line in lines if line.strip()]
        score.dump(tmp_path / "times.txt")
        simulated_ms = [float(line) for line in (tmp_path / "times.txt").read_text().split()]
        assert len(simulated_ms) == len(measured_ms) == score.requests
        assert score.mean_measured_ms == pytest.approx(statistics.fmean(measured_ms))
        assert score.mean_simulated_ms == pytest.approx(statistics.fmean(simulated_ms), abs=1e-5)
        # Of samples of one size the demerit is the rms distance of the ordered times.
        pairs = zip(sorted(simulated_ms), sorted(measured_ms), strict=True)
        demerit_ms = statistics.fmean((s - m) ** 2 for s, m in pairs) ** 0.5
        assert score.demerit_ms == pytest.approx(demerit_ms, rel=1e-4)
        assert score.demerit_relative == pytest.approx(demerit_ms / score.mean_measured_ms, rel=1e-4)


def test_command(validation_folder: Path, tmp_path: Path, headstack: Headstack) -> None:
    shown = headstack("lab", "validate", str(validation_folder), "--dump", "times")
    assert shown.returncode == 0, shown.stderr
    traces = sorted(path.stem for path in validation_folder.glob("*.trace"))
    assert sorted(path.stem for path in (tmp_path / "times").iterdir()) == traces
    for name in traces:
        assert name in shown.stdout
    figures = json.loads(headstack("lab", "validate", str(validation_folder), "--json").stdout)
    assert [score["name"] for score in figures] == traces
    assert all(score["published_ms"] is not None for score in figures)


def test_limit_decides_the_exit_code(validation_folder: Path, headstack: Headstack) -> None:
    assert headstack("lab", "validate", str(validation_folder), "--limit", "1000%").returncode == 0
    shown = headstack("lab", "validate", str(validation_folder), "--limit", "0.001%")
    assert shown.returncode == 1
    assert "exceeds 0.001%" in shown.stderr


def test_import_prints_a_drive_that_loads(validation_folder: Path, tmp_path: Path, headstack: Headstack) -> None:
    source = validation_folder / "atlas10k.parv"
    shown = headstack("catalog", "drives", "import", str(source), "-o", "atlas.toml")
    assert shown.returncode == 0, shown.stderr
    assert " parameters have no counterpart (list them with --unmapped)" in shown.stderr
    listed = headstack("catalog", "drives", "import", str(source), "--unmapped")
    assert f"headstack: {listed.stderr.count(': no counterpart: ')} parameters" in shown.stderr
    assert headstack("catalog", "drives", "import", str(source)).stdout == (tmp_path / "atlas.toml").read_text()
    (imported,) = hs.import_disksim(source).drives
    assert hs.Drive.load(tmp_path / "atlas.toml").description == imported.description
    (row,) = hs.run(tmp_path / "atlas.toml", requests=1000)
    assert row["system"] == "atlas"
    assert row["checks_passed"]


def test_published_figures_come_from_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    assert published_demerits(folder) == {}
    (tmp_path / "README.md").write_text("| drive | n |\n|--|--|\n| A B (`ab`) | 10,000 | 3.89 | 0.2675 | 6.87 % |\n")
    assert published_demerits(folder) == {"ab": 0.2675}
    (folder / "published.csv").write_text("name,demerit_ms\nab,0.5\n")
    assert published_demerits(folder) == {"ab": 0.5}


def test_a_trace_without_parameters_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.trace").write_text("R Hit 0 1 1.0 1.0\n")
    with pytest.raises(hs.InputError, match=r"add x\.parv or x\.diskspecs"):
        hs.validate(tmp_path)


def test_a_drive_that_fails_hides_no_other(validation_folder: Path, tmp_path: Path, headstack: Headstack) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    for name in ("atlas10k", "barracuda"):
        for suffix in ("diskspecs", "model", "seek", "trace"):
            (folder / f"{name}.{suffix}").write_bytes((validation_folder / f"{name}.{suffix}").read_bytes())
    specs = (folder / "atlas10k.diskspecs").read_text()
    (folder / "atlas10k.diskspecs").write_text(specs.replace("Max queue length", "Length of queue"))
    (folder / "zulu.trace").write_text("R Hit 0 1 1.0 1.0\n")
    shown = headstack("lab", "validate", str(folder))
    assert shown.returncode == 2
    assert "barracuda" in shown.stdout
    errors = [line for line in shown.stderr.splitlines() if line.startswith("headstack: ")]
    assert len(errors) == 2
    assert "atlas10k.diskspecs" in errors[0]
    assert "Max queue length" in errors[0]
    assert "zulu.trace: its folder has no parameter file; add zulu.parv or zulu.diskspecs" in errors[1]
    with pytest.raises(hs.InputError, match="Max queue length"):
        hs.validate(folder)
    # Two drives in a file, of which one cannot be read.
    both = (folder / "atlas10k.diskspecs").read_text() + (folder / "barracuda.diskspecs").read_text()
    (folder / "both.diskspecs").write_text(both)
    (imported,) = hs.import_disksim(folder / "both.diskspecs").drives
    (refused,) = hs.import_disksim(folder / "both.diskspecs").refused.values()
    assert "Max queue length" in refused
    shown = headstack("catalog", "drives", "import", str(folder / "both.diskspecs"))
    assert shown.returncode == 0, shown.stderr
    assert "headstack: warning: " in shown.stderr
    assert imported.name in shown.stdout
