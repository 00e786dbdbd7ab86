"""The command line as users meet it: exit codes, one line for an error, files that appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import headstack as hs
from conftest import ATLAS, CHEETAH, REPOSITORY, SHORT, Headstack, interrupt
from headstack.catalogue.options import OPTIONS
from headstack.cli.formats import FORMATS
from headstack.cli.main import main
from headstack.results.results import Results


def test_help_is_quick_and_states_the_exit_codes(headstack: Headstack) -> None:
    # What is slow to load is not loaded for it.
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    for arguments in (["--help"], ["run", "--help"]):
        command = [sys.executable, "-c", f"{code}; from headstack.cli.main import main; main({arguments})"]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        loaded = set(told.stderr.split())
        assert "click" in loaded
        assert not loaded & {"distributed", "duckdb", "matplotlib", "numpy", "polars"}
    assert "Exit codes" in headstack("--help").stdout


def test_help_imports_nothing_heavy() -> None:
    code = "import sys, headstack.cli.main; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"duckdb", "matplotlib", "numpy", "rich.console"} & set(modules)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("runn",), "No such command 'runn'. Did you mean 'run'?"),
        (("catalog", "foo"), "No such command 'foo'; commands: arrays, drives, prices, scenarios, stacks, workloads"),
        (("catalog", "prices", "foo"), "No such command 'foo'; commands: check, list"),
        (("crash", "foo"), "No such command 'foo'; commands: convert, explore, replay, show"),
    ],
)
def test_an_unknown_command_is_refused_with_the_closest_or_all(
    words: tuple[str, ...], message: str, headstack: Headstack
) -> None:
    done = headstack(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"headstack: {message}")
    top = headstack("foo").stderr
    assert "catalog, choose, compare" in top
    assert "identify" not in top, "hidden commands are not listed"


def test_every_option_is_in_the_help_in_the_order_of_sweeping(headstack: Headstack) -> None:
    text = headstack("run", "--help", "--all").stdout
    places = [text.index(f"\n  --{option.name.replace('_', '-')} ") for option in OPTIONS]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nosuch"], "no drive"),
        (["run", "nosuch.toml"], "nosuch.toml: cannot be read"),
        (["run", ATLAS, "-w", "nosuch"], "no workload"),
        (["run", ATLAS, "--depth", "0"], "queue_depth: 0 is out of range"),
        (["run", ATLAS, "--depth", "1,x"], "--depth: 'x'"),
        (["run", ATLAS, "--depth", "-1"], "--depth: '-1'"),
        (["run", ATLAS, "--rate", "0"], "rate_per_s: 0 is out of range"),
        (["run", ATLAS, "--depth", "1", "--rate", "5"], "only one of them"),
        (["run", ATLAS, "--requests", "5", "--time", "5s"], "only one of them"),
        (["run", ATLAS, "--size", "4G"], "--size: "),
        (["run", ATLAS, "--size", "0B"], "size: 0 is not allowed"),
        (["run", ATLAS, "--size", "1000B"], "multiple"),
        (["run", ATLAS, "--size", "4KiB", "-w", "file-server"], "--size: the workload has its own"),
        (["run", ATLAS, "--read", "101"], "101 is not a percentage"),
        (["run", ATLAS, "--think", "5"], "--think: "),
        (["run", ATLAS, "--rate", "5", "--think", "5ms"], "--think: an open loop"),
        (["run", ATLAS, "--arrivals", "fixed"], "--arrivals: a closed loop"),
        (["run", ATLAS, "--rate", "5", "--arrivals", "sometimes"], "allowed: fixed, poisson, bursty"),
        (["run", ATLAS, "--interval", "0s"], "--interval: 0s is too short"),
        (["run", ATLAS, "--rate", "nan"], "--rate: 'nan'"),
        (["run", ATLAS, "--seed", "99999999999999999999"], "seed: "),
        (["run", ATLAS, "--policy", "elevator"], "allowed: fcfs, sstf"),
        (["run", ATLAS, "--queue-depth", "0"], "depth: 0"),
        (["run", ATLAS, "--reordering", "2"], "queue.reordering_strength"),
        (["run", f"{ATLAS}@99TB"], "ends after the system's capacity"),
        (["run", f"{ATLAS}@20GB..10GB"], "the range is empty"),
        (["run", f"{ATLAS}@36GB", "--range", "1GB"], "--range: "),
        (["run", ATLAS, "--nosuch", "1"], "--nosuch"),
        (["run"], "SYSTEM"),
        (["curve", ATLAS, "--limit", "25"], "--limit: "),
        (["run", ATLAS, "--plot", "curve.xyz"], "allowed: png, svg, pdf"),
        (["catalog", "drives", "show", "nosuch"], "no drive"),
        (["catalog", "drives", "import", "nosuch.parv"], "nosuch.parv"),
        (["catalog", "workloads", "show", "nosuch"], "no workload"),
        (["lab", "validate", "nosuch"], "no such folder"),
        (["lab", "validate", "."], "no file NAME.trace"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs = ["--json", "a.json", "--csv", "b.csv"] if arguments[0] in ("run", "curve") else []
    shown = CliRunner().invoke(main, [*arguments, *outputs])
    assert shown.exit_code == 2
    assert shown.stderr.count("\n") == 1
    assert shown.stderr.startswith("headstack: ")
    assert message in shown.stderr
    assert shown.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_file_names_line_and_key(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "w.toml").write_text('name = "w"\n\n[[lines]]\nsize = "4KiB"\nread_percnt = 100\n')
    shown = headstack("run", ATLAS, "-w", "w.toml")
    assert shown.returncode == 2
    assert shown.stderr.startswith("headstack: w.toml:5: ")
    assert "read_percent" in shown.stderr


@pytest.mark.parametrize("option", ["--json", "--csv", "--parquet", "--plot"])
@pytest.mark.parametrize("path", ["nosuch/file.png", "."])
def test_outputs_are_checked_before_anything_runs(option: str, path: str, headstack: Headstack) -> None:
    # It would run for hours.
    shown = headstack("run", ATLAS, "--requests", "10000000000", option, path)
    assert shown.returncode == 2
    assert shown.stderr.count("\n") == 1


def without_matplotlib(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.modules['matplotlib'] = None; from headstack.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_missing_extra_is_one_sentence(tmp_path: Path) -> None:
    shown = without_matplotlib(tmp_path, "run", ATLAS, "--plot", "p.png")
    assert shown.returncode == 2
    assert shown.stderr == "headstack: plots need matplotlib: pip install 'headstack[plot]'\n"
    assert list(tmp_path.iterdir()) == []


def test_outputs(tmp_path: Path, headstack: Headstack) -> None:
    files = ("--json", "r.json", "--csv", "r.csv", "--parquet", "r.parquet", "--plot", "r.png")
    shown = headstack("run", CHEETAH, ATLAS, "--depth", "1,4", *SHORT, *files)
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    runs = json.loads((tmp_path / "r.json").read_text())
    assert [run["system"]["name"] for run in runs] == [CHEETAH, CHEETAH, ATLAS, ATLAS]
    with open(tmp_path / "r.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["system"], row["depth"]) for row in rows] == [
        (CHEETAH, "1"),
        (CHEETAH, "4"),
        (ATLAS, "1"),
        (ATLAS, "4"),
    ]
    png = (tmp_path / "r.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert 20_000 < len(png) < 500_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "r.json", "r.parquet", "r.png"]


def test_stdout_belongs_to_an_export(headstack: Headstack) -> None:
    shown = headstack("run", ATLAS, *SHORT, "--json", "-")
    assert len(json.loads(shown.stdout)) == 1
    shown = headstack("run", ATLAS, *SHORT, "--csv", "-", "--policy", "fcfs,sptf")
    assert [row["policy"] for row in csv.DictReader(io.StringIO(shown.stdout))] == ["fcfs", "sptf"]
    assert headstack("run", ATLAS, *SHORT, "--csv", "-", "--json", "-").returncode == 2


def test_table_says_what_matters(headstack: Headstack) -> None:
    shown = headstack("run", ATLAS, *SHORT, "--rate", "20,5000")
    assert "IOPS" in shown.stdout
    assert "mechanism" in shown.stdout
    assert shown.stdout.count("saturated: 1 of 2 runs") == 1
    assert shown.stdout.count("error of the model") == 0


def test_curve_states_knee_and_limit(headstack: Headstack) -> None:
    shown = headstack("run", ATLAS, *SHORT, "--curve", "--limit", "25ms")
    assert [line.split()[1] for line in shown.stdout.splitlines()[5:14]] == [
        str(depth) for depth in (1, 2, 4, 8, 16, 32, 64, 128, 256)
    ]
    assert "knee" in shown.stdout
    assert "IOPS at 25ms" in shown.stdout


def test_catalogue_commands(headstack: Headstack) -> None:
    drives = json.loads(headstack("catalog", "drives", "list", "--json").stdout)
    assert {CHEETAH, ATLAS} <= {drive["id"] for drive in drives}
    shown = headstack("catalog", "drives", "show", ATLAS).stdout
    assert "derived: " in shown
    assert "73.56GB" in shown
    workloads = json.loads(headstack("catalog", "workloads", "list", "--json").stdout)
    assert "file-server" in {workload["name"] for workload in workloads}
    assert "File Server" in headstack("catalog", "workloads", "show", "file-server").stdout


def test_version_names_the_catalogue(headstack: Headstack) -> None:
    text = bytearray()
    for folder in ("arrays", "drives", "scenarios", "stacks", "volumes", "workloads"):
        for file in sorted((REPOSITORY / "catalogue" / folder).glob("*.toml"), key=lambda file: file.stem):
            text += f"{folder}/{file.name}\0{file.read_text(encoding='utf-8')}\0".encode()
    rates = (REPOSITORY / "catalogue/instances/rates.toml").read_text(encoding="utf-8")
    text += f"instances/rates.toml\0{rates}\0".encode()
    # 128-bit FNV-1a.
    hash = 0x6C62272E07BB014262B821756295C58D
    for byte in text:
        hash = (hash ^ byte) * 0x1000000000000000000013B % 2**128
    assert headstack("--version").stdout == f"headstack, version {hs.__version__}\ncatalogue {hash:032x}\n"


def test_demo_writes_its_files(tmp_path: Path, headstack: Headstack) -> None:
    shown = headstack("demo")
    assert shown.returncode == 0, shown.stderr
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert written == {"curves.html", "curves.png", "results.json", "results.parquet"}
    assert shown.stdout.startswith("level raid10 is fastest: ")
    assert shown.stdout.count("\n") <= 15
    assert "could not write" not in shown.stdout


def test_demo_says_which_picture_it_cannot_draw(tmp_path: Path) -> None:
    shown = without_matplotlib(tmp_path, "demo")
    assert shown.returncode == 0, shown.stderr
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert written == {"curves.html", "results.json", "results.parquet"}
    why = "plots need matplotlib: pip install 'headstack[plot]'"
    assert shown.stdout.endswith(f"\ncould not write demo/curves.png: {why}\n")


def test_a_failed_check_is_exit_code_3_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Results, "failed_checks", lambda _: ["run 1 (x): Little's law: 1, not 2", "another"])
    shown = CliRunner().invoke(main, ["run", ATLAS, *SHORT, "--json", "r.json"])
    assert shown.exit_code == 3
    assert "Little's law: 1, not 2 (and 1 more)" in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_files_appear_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text("old")

    def full(_results: Results, _path: Path) -> None:
        raise OSError(28, "No space left on device", "r.parquet")

    monkeypatch.setitem(FORMATS, "parquet", replace(FORMATS["parquet"], write=full))
    shown = CliRunner().invoke(main, ["run", ATLAS, *SHORT, "--csv", "r.csv", "--parquet", "r.parquet"])
    assert shown.exit_code == 3
    assert shown.stderr == "headstack: r.parquet: cannot be written: No space left on device\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]
    assert (tmp_path / "r.csv").read_text() == "old"


def test_interrupt_stops_a_long_run_and_writes_nothing(tmp_path: Path) -> None:
    command = "from headstack.cli.main import main; main()"
    arguments = ["run", ATLAS, CHEETAH, "--requests", "1000000000", "--json", "r.json"]
    process = subprocess.Popen([sys.executable, "-c", command, *arguments], cwd=tmp_path, stderr=subprocess.PIPE)
    interrupt(process)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    # After the terminal's own ^C, the line stands by itself.
    assert stderr.strip() == b"headstack: interrupted; nothing is written"
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -c 'from headstack.cli.main import main; main()' catalog drives show {ATLAS} | head -1"
    shown = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.count("\n") == 1


@pytest.mark.parametrize(("group", "name"), [("drives", "cheetah-x15-36lp"), ("workloads", "file-server")])
def test_a_catalogue_file_is_the_start_of_ones_own(group: str, name: str, tmp_path: Path, headstack: Headstack) -> None:
    shown = headstack("catalog", group, "show", name, "--toml")
    own = tmp_path / "own.toml"
    own.write_text(shown.stdout, encoding="utf-8")
    whole = headstack("catalog", group, "show", name, "--json").stdout
    assert json.loads(headstack("catalog", group, "show", str(own), "--json").stdout) == json.loads(whole)
    unknown = headstack("catalog", group, "show", "nothing", "--toml")
    assert unknown.returncode == 2
    assert "nothing" in unknown.stderr
