"""Tables on terminals: they fit, names are whole, and what is left out is told; in a pipe nothing is."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import click
import pytest

import headstack as hs
from conftest import ATLAS, CHEETAH, Headstack
from headstack.cli.loading import every
from headstack.cli.main import main
from headstack.cli.predict.prediction import print_predictions
from headstack.prediction.prediction import Prediction
from headstack.prediction.predictions import Predictions
from terminals import ESCAPES, on_terminal

SNAPSHOTS = Path(__file__).parent / "samples" / "terminal.txt"
"""What tables are headed by at each width, and what they leave out: HEADSTACK_WRITE_SAMPLES=1 renews it."""

DRIVE = Path(__file__).parent / "samples" / "inspect" / "disk.smartctl.txt"
WIDTHS = (80, 100, 200)
SHORT = ("--requests", "500", "--warm-up", "50", "-q")
LAYOUT = ("--columns", "time=1:us,offset=2,length=3,op=4,response=5:us", "-q")

COMMANDS = {
    "run": ["run", ATLAS, CHEETAH, "--depth", "1,16", "--write-cache", "on,off", *SHORT],
    "run of a scenario": ["run", CHEETAH, "-w", "emerald-hot-band", "--time", "1s", "-q"],
    "curve": ["curve", ATLAS, *SHORT, "--depth", "1,2,4", "--limit", "p99=20ms"],
    "sweep": ["sweep", ATLAS, "--vary", "spindle.speed=7200rpm,10000rpm", "--store", "s", *SHORT],
    "measure zones": ["measure", "zones", ATLAS, CHEETAH, "--positions", "4", "--accesses", "20", "-q"],
    "compare": ["compare", "one.json", "other.json", "-q"],
    "replay": ["trace", "replay", "t.csv", ATLAS, CHEETAH, *LAYOUT],
    "drives list": ["catalog", "drives", "list"],
    "drives show": ["catalog", "drives", "show", ATLAS],
    "arrays list": ["catalog", "arrays", "list"],
    "arrays show": ["catalog", "arrays", "show", "compaq-raid5-7"],
    "workloads list": ["catalog", "workloads", "list"],
    "workloads show": ["catalog", "workloads", "show", "file-server"],
    "scenarios list": ["catalog", "scenarios", "list"],
    "study list": ["lab", "study", "list"],
    "study show": ["lab", "study", "show", "small"],
    "study show a claim": ["lab", "study", "show", "small", "--claim", "it-is-so"],
    "trace info": ["trace", "info", "t.csv", *LAYOUT],
    "trace analyze": ["trace", "analyze", "t.csv", *LAYOUT],
    "trace formats": ["trace", "formats"],
    "trace steps": ["trace", "steps"],
    "inspect": ["inspect", DRIVE.name],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read."""
    path = tmp_path_factory.mktemp("terminal")
    shutil.copy(DRIVE, path)
    lines = (f"{n * 9000},{n * n % 977 * 65536},{4096 << n % 3},{'RW'[n % 4 == 0]},{200 + n % 7}" for n in range(200))
    (path / "t.csv").write_text("\n".join(lines) + "\n")
    for name, system in (("one", ATLAS), ("other", CHEETAH)):
        hs.run(system, depth=[1, 4], requests=500).to_json(path / f"{name}.json")
    claim: dict[str, Any] = {
        "id": "it-is-so",
        "says": "The drive is as fast as its makers say " * 3,
        "verdict": "predicted",
    }
    claim |= {"evidence": "0.5 % off in the worst of all rows", "columns": ["system", "IOPS", "published"]}
    claim |= {"rows": [[ATLAS, 126.25, 127], [CHEETAH, 171.5, 172]], "within": [True, True], "backing": []}
    (path / "studies-out" / "small").mkdir(parents=True)
    outcome = {"title": "Small", "question": "Is it so?", "claims": [claim], "summary": ""}
    (path / "studies-out" / "small" / "outcome.json").write_text(json.dumps(outcome))
    return path


def heads(shown: str) -> str:
    """The headings of tables, which are bold, and what is not shown. How wide figures are is no matter."""
    told = []
    for heading in re.findall(r"(?:^\x1b\[1m.*\x1b\[0m\n)+", shown, re.MULTILINE):
        lines = ESCAPES.sub("", heading).splitlines()
        told.append(" / ".join(re.sub(" {2,}", "  ", line.strip()) for line in lines))
    left_out = re.findall(
        r"not shown: .*? \((?:add --wide.*?|.*? shows? them)\)", " ".join(ESCAPES.sub("", shown).split())
    )
    return "\n".join([*told, *left_out])


@pytest.mark.parametrize("name", COMMANDS)
def test_tables_fit(name: str, folder: Path) -> None:
    shown = {width: on_terminal(COMMANDS[name], width, folder) for width in WIDTHS}
    for width, text in shown.items():
        lines = ESCAPES.sub("", text).splitlines()
        assert [line for line in lines if len(line) > width] == []
    section = "".join(f"\n{name}, {width} columns:\n{heads(text)}\n" for width, text in shown.items())
    assert section.count("\n") > 2 * len(WIDTHS)
    if "HEADSTACK_WRITE_SAMPLES" in os.environ:
        kept = SNAPSHOTS.read_text(encoding="utf-8") if SNAPSHOTS.exists() else ""
        without = re.sub(rf"\n{re.escape(name)}, \d+ columns:\n(.+\n)*", "", kept)
        SNAPSHOTS.write_text(without + section, encoding="utf-8")
    # Whole sections, so that nothing is left out of them either.
    known = "".join(re.findall(rf"\n{re.escape(name)}, \d+ columns:\n(?:.+\n)*", SNAPSHOTS.read_text(encoding="utf-8")))
    assert known == section, "HEADSTACK_WRITE_SAMPLES=1 pytest tests/python/test_terminal.py renews the samples"


def test_what_is_measured_fits(folder: Path) -> None:
    # How wide its figures are, and so which columns are shown, the machine decides.
    shown = on_terminal(["measure", "null:2ms", "-w", "file-server", "--requests", "100", "-q"], 80, folder)
    assert max(map(len, ESCAPES.sub("", shown).splitlines())) <= 80
    assert "system  depth  IOPS" in heads(shown)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["catalog", "drives", "list"], hs.drives.list()),
        (["catalog", "arrays", "list"], hs.arrays.list()),
        (["catalog", "workloads", "list"], hs.workloads.list()),
        (["catalog", "scenarios", "list"], hs.scenarios.list()),
    ],
)
def test_names_are_whole(arguments: list[str], names: tuple[str, ...], tmp_path: Path) -> None:
    shown = on_terminal(arguments, 80, tmp_path)
    first = {line.split()[0] for line in ESCAPES.sub("", shown).splitlines() if line.strip()}
    assert set(names) <= first


def test_wide_shows_everything_and_so_does_a_pipe(tmp_path: Path, headstack: Headstack) -> None:
    narrow, wide = (on_terminal(["catalog", "drives", "list", *more], 80, tmp_path) for more in ([], ["--wide"]))
    assert re.search(r"not shown: drive.* \(add --wide\)", narrow)
    piped = headstack("catalog", "drives", "list", COLUMNS="80", TERM="xterm-256color").stdout
    assert "Maxtor Atlas 10K III 73 GB" in piped
    assert ESCAPES.search(piped) is None
    assert ESCAPES.sub("", wide) == piped


def test_csv_is_named_where_there_is_one(folder: Path) -> None:
    assert "(add --wide or --csv)" in " ".join(on_terminal(COMMANDS["curve"], 60, folder).split())


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_escapes_where_they_are_not_wanted(environment: dict[str, str], tmp_path: Path) -> None:
    coloured = on_terminal(["catalog", "workloads", "list"], 80, tmp_path)
    plain = on_terminal(["catalog", "workloads", "list"], 80, tmp_path, **environment)
    assert ESCAPES.search(coloured) is not None
    assert plain == ESCAPES.sub("", coloured)


def test_columns_of_the_environment_are_taken_for_those_of_the_terminal(tmp_path: Path) -> None:
    narrow, wide = (on_terminal(["catalog", "workloads", "list"], columns, tmp_path) for columns in (60, 200))
    assert narrow != wide
    assert on_terminal(["catalog", "workloads", "list"], 200, tmp_path, COLUMNS="60") == narrow


def test_every_command_that_prints_a_table_can_be_asked_for_all_of_it() -> None:
    def has_wide(words: tuple[str, ...]) -> bool:
        return any("--wide" in parameter.opts for command in tree[words] for parameter in command.params)

    tree: dict[tuple[str, ...], list[click.Command]] = {}
    for words, command in every(main):
        tree.setdefault(words, []).append(command)
    lists = [
        words for words in tree if words[-1:] in (("list",), ("show",)) and words != ("catalog", "scenarios", "show")
    ]
    asked = [tuple(name.split()) for name in COMMANDS if tuple(name.split()) in tree]
    exports = [words for words, same in tree.items() if any("--csv" in p.opts for c in same for p in c.params)]
    assert len(lists) > 6
    assert len(exports) > 10
    assert [words for words in (*lists, *asked, *exports) if not has_wide(words)] == []


def test_predictions_fit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"iops": 1234.5, "iops_low": 1200.0, "iops_high": 1300.0, "mb_per_s": 10.1, "mean_ms": 8.1}
    figures |= {"mean_ms_low": 7.9, "mean_ms_high": 8.5, "saturated": False}
    figures |= {"p50_ms": 7.7, "p50_ms_low": 7.0, "p50_ms_high": 8.2, "p99_ms": 19.5, "p99_ms_low": 18.0}
    figures |= {"p99_ms_high": 22.0}
    gains = {"speedup_percent": 12.0, "speedup_percent_low": 10.0, "speedup_percent_high": 14.0}
    named = {"system": ATLAS, "environment": "file-server", "load": "depth 4", "bottleneck": "mechanism"}
    one = Prediction(**named, **figures, **gains)  # type: ignore[arg-type]
    assert repr(Predictions([one])).endswith("\npredictions: 1")
    assert f"\n{ATLAS}  depth 4  " in repr(Predictions([one]))
    for width in (60, *WIDTHS):
        monkeypatch.setattr("headstack.cli.output.width_of", lambda _, width=width: width)
        print_predictions(Predictions([one]))
        table = capsys.readouterr().out.partition("\n\n")[0]
        assert max(map(len, table.splitlines())) <= width
        assert {ATLAS, "1,234", "8.10", "+12"} <= set(table.split())
        assert ("not shown" in table) == (width < 200)
