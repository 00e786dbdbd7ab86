"""Files are written only where files belong: whole, at the place that links lead to, and never over a device or what is
measured. Every command that has an output is tried, the moment it exists."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import headstack as hs
from conftest import CHEETAH, SHORT, Attach, Headstack, is_privileged, lacks
from headstack.cli.completing import Among, Folder, Socket
from headstack.cli.files import KeptFile, OutputFile, OutputFolder, Source
from headstack.cli.loading import every
from headstack.cli.main import main
from headstack.io.atomic_files import WriteError, write_all, write_text

COMMAND = [sys.executable, "-c", "from headstack.cli.main import main; main()"]
MSR = Path(__file__).parents[2] / "crates/trace/samples/msr.csv"

Words = tuple[str, ...]

ALL = [(words, command) for words, command in every(main) if not isinstance(command, click.Group)]
WRITTEN = [
    pytest.param(words, option, id=f"{' '.join(words)} {option.opts[-1]}")
    for words, command in ALL
    for option in command.params
    if isinstance(option.type, OutputFile | KeptFile)
]
PAIRS = [
    pytest.param(words, source, output, id=f"{' '.join(words)} {source.opts[-1]} {output.opts[-1]}")
    for words, command in ALL
    for source in command.params
    if isinstance(source.type, Source)
    for output in command.params
    if isinstance(output.type, OutputFile | KeptFile | OutputFolder)
]
"""Every input of every command with every output of it."""
NO_FILE = frozenset(
    (
        "10x|10min|N",
        "2x",
        "4x",
        "CLASS=PERCENT",
        "COLUMN",
        "COMMAND",
        "CONDITION",
        "CONFIG",
        "DATE",
        "DAYS",
        "ENDPOINT",
        "FIELD=VALUES",
        "FIGURE=PERCENT",
        "FIGURE=VALUE",
        "HOST",
        "HOST=PATH",
        "I/N",
        "ID",
        "LIST",
        "MATCHERS",
        "MODE",
        "N",
        "N,...",
        "N..M",
        "NAME",
        "NAME,...",
        "NAME|SERIAL",
        "OFFSET",
        "ORDER...",
        "PERCENT",
        "PROBABILITY",
        "RANGE",
        "RATE",
        "[SERIAL]",
        "SHARE",
        "SIZE",
        "SUFFIX",
        "T",
        "TEXT",
        "TIME",
        "TYPE",
        "UNIT",
        "URL",
        "YEAR",
        "[HOST:]PORT",
        "valid:TIME",
    )
)
"""Metavars of values that name no file of this machine."""


def tried(*arguments: str) -> str:
    """Reads a command line, as far as its files; why it is refused."""
    with pytest.raises(hs.InputError) as refused, main.make_context("headstack", list(arguments)) as context:
        main.invoke(context)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_every_parameter_says_by_its_type_whether_it_names_a_file() -> None:
    """An input or output of another type would pass the guard of files unseen."""
    of_files = OutputFile | KeptFile | OutputFolder | Source | Socket | Folder
    plain = Among | click.Choice | click.types.IntParamType | click.types.FloatParamType  # type: ignore[type-arg]
    unknown = set()
    for words, command in ALL:
        for option in command.params:
            is_flag = isinstance(option, click.Option) and (option.is_flag or option.flag_value is not None)
            if isinstance(option.type, of_files | plain) or (is_flag and not isinstance(option.type, Source)):
                continue
            metavar = option.make_metavar(click.Context(command)) or ""
            if metavar not in NO_FILE:
                unknown.add((words, option.opts[-1], metavar))
    assert unknown == set()


@pytest.mark.parametrize(("words", "option"), WRITTEN)
def test_no_output_goes_where_no_file_belongs(words: Words, option: click.Option, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name, why in (
            ("folder", "is a directory"),
            ("folder/", "is a directory"),
            ("none/file.json", "does not exist"),
            ("socket", "is a socket"),
            ("circle", "form a loop"),
        ):
            path = f"{tmp_path}/{name}"
            message = tried(*words, option.opts[-1], path)
            assert message.startswith(f"{path}: ")
            assert why in message
    assert "write output files outside /dev" in tried(*words, option.opts[-1], "/dev/headstack-none")


@pytest.mark.parametrize(("words", "option"), WRITTEN)
def test_no_output_replaces_a_block_device(words: Words, option: click.Option, tmp_path: Path, loop: str) -> None:
    (tmp_path / "near").symlink_to(loop)
    (tmp_path / "far").symlink_to("near")
    os.mknod(tmp_path / "node", 0o600 | stat.S_IFBLK, os.stat(loop).st_rdev)
    for path in (loop, str(tmp_path / "far"), str(tmp_path / "node")):
        message = tried(*words, option.opts[-1], path)
        assert message.startswith(path)
        assert "is a block device" in message or "is not a regular file" in message
    assert stat.S_ISBLK(os.stat(loop, follow_symlinks=False).st_mode)
    assert Path(loop).read_bytes() == b"\xa5" * (1 << 20)


def named(parameter: click.Parameter, value: str) -> list[str]:
    """The words that give a parameter its value."""
    return [value] if isinstance(parameter, click.Argument) else [parameter.opts[-1], value]


@pytest.mark.parametrize(("words", "source", "output"), PAIRS)
def test_no_output_replaces_an_input(
    words: Words, source: click.Parameter, output: click.Parameter, tmp_path: Path
) -> None:
    folder, target, new = tmp_path / "folder", tmp_path / "folder/target.json", tmp_path / "new.json"
    folder.mkdir()
    target.write_bytes(b"data")
    os.link(target, tmp_path / "hard.json")
    (tmp_path / "soft.json").symlink_to(target)
    (tmp_path / "near").symlink_to("folder")
    if isinstance(output.type, OutputFolder):
        cases = [(folder, folder), (folder, tmp_path / "near"), (tmp_path / "near", folder)]
    else:
        soft, hard = tmp_path / "soft.json", tmp_path / "hard.json"
        cases = [(target, target), (target, hard), (soft, target), (target, soft), (new, new)]
        cases += [(tmp_path / "near/target.json", target)]
    for read, written in cases:
        refused(words, named(source, str(read)), named(output, str(written)), "input or target of this command")
    if isinstance(output.type, OutputFile):
        refused(words, named(source, str(folder)), named(output, str(folder)), "is a directory")
        if getattr(source.type, "searches", False):
            for written in (target, tmp_path / "near/target.json"):
                refused(words, named(source, str(folder)), named(output, str(written)), "whose files this command")
    assert target.read_bytes() == b"data"
    assert sorted(os.listdir(tmp_path)) == ["folder", "hard.json", "near", "soft.json"]


def refused(words: Words, source: list[str], output: list[str], why: str) -> None:
    """A command line is refused with its input and its output in either order."""
    for order in ([*source, *output], [*output, *source]):
        assert why in tried(*words, *order)


@pytest.mark.parametrize("text", ["{},other.toml", "{}@0%..50%", "{}@0..1GB,x", "name={}", "@{}", "a,name={}"])
def test_no_output_replaces_a_file_in_a_list_of_inputs(text: str, tmp_path: Path) -> None:
    target = tmp_path / "target.toml"
    target.write_text("data")
    words = ("run", text.format(target), "--json", str(target))
    assert "input or target of this command" in tried(*words)


@pytest.fixture
def loop(attach: Attach, tmp_path: Path) -> str:
    """A loop device of 1 MiB."""
    (tmp_path / "backing").write_bytes(b"\xa5" * (1 << 20))
    return attach(tmp_path / "backing")


def test_no_output_replaces_the_file_behind_what_is_measured(loop: str, tmp_path: Path, headstack: Headstack) -> None:
    refused = headstack("measure", loop, "--size", "4KiB", "--requests", "10", "--json", "backing")
    assert (refused.returncode, refused.stderr) == (
        2, f"headstack: backing: leads to {loop}, an input or target of this command\n",
    )  # fmt: skip
    assert (tmp_path / "backing").read_bytes() == b"\xa5" * (1 << 20)


def test_no_output_replaces_the_target_of_a_job_file(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "job.fio").write_text("[job]\nfilename=data.json\nrw=randread\nsize=1m\n")
    refused = headstack("measure", "--fio", "job.fio", "--json", "data.json")
    assert refused.returncode == 2
    assert "data.json: is an input or target of this command" in refused.stderr
    refused = headstack("measure", "--fio", "--", "--name=x", "--filename=d", "--output-format=json", "--output=d")
    assert refused.returncode == 2
    assert "d: is an input or target of this command" in refused.stderr
    assert sorted(os.listdir(tmp_path)) == ["job.fio"]


def test_stdout_that_is_measured_is_refused(tmp_path: Path) -> None:
    """``>>`` leaves a file's contents, and the tables would follow them."""
    (tmp_path / "target").write_bytes(bytes(1 << 20))
    with open(tmp_path / "target", "ab") as file:
        done = subprocess.run(
            [*COMMAND, "measure", "./target", "--requests", "10"], cwd=tmp_path, stdout=file, stderr=-1, text=True
        )
    assert done.returncode == 2
    assert done.stderr == "headstack: stdout: leads to ./target, an input or target of this command\n"
    assert (tmp_path / "target").stat().st_size == 1 << 20


@pytest.mark.parametrize(
    "other", ["r.json", "./r.json", "link", "hard"], ids=["the same", "another way", "a link", "a hard link"]
)
def test_two_outputs_have_two_files(other: str, tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "link").symlink_to("r.json")
    if other == "hard":
        (tmp_path / "r.json").touch()
        os.link(tmp_path / "r.json", tmp_path / "hard")
    refused = headstack("run", CHEETAH, "-w", "file-server", *SHORT, "--json", "r.json", "--csv", other)
    assert refused.returncode == 2
    assert "each output needs its own file" in refused.stderr
    assert (tmp_path / "r.json").read_text() == "" if other == "hard" else not (tmp_path / "r.json").exists()


def test_the_api_replaces_no_trace_that_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trace = hs.Trace(MSR)
    trace.to_parquet("t.parquet")
    before = Path("t.parquet").read_bytes()
    Path("soft.parquet").symlink_to("t.parquet")
    os.link("t.parquet", "hard.parquet")
    stored = hs.Trace("t.parquet")
    for name in ("t.parquet", "soft.parquet", "hard.parquet"):
        with pytest.raises(hs.InputError, match="input or target of this command"):
            stored.to_parquet(name)
        with pytest.raises(hs.InputError, match="input or target of this command"):
            stored.export(name, "msr")
        with pytest.raises(hs.InputError, match="input or target of this command"):
            hs.synthesize(stored, name)
    pieces = stored.split("parts")
    with pytest.raises(hs.InputError, match="input or target of this command"):
        hs.Trace("parts").split("parts")
    assert Path("t.parquet").read_bytes() == before
    assert sorted(os.listdir("parts")) == sorted(piece.name for piece in pieces.values())
    # Once nothing reads it any more, it may be replaced.
    trace.to_parquet("t.parquet")


def test_no_output_replaces_a_file_that_another_file_names(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "reads.inc").write_text("rw=randread\n")
    (tmp_path / "job.fio").write_text("[job]\nfilename=data\nsize=1m\nnumber_ios=10\ninclude reads.inc\n")
    refused = headstack("measure", "--fio", "job.fio", "null", "--json", "reads.inc")
    assert refused.returncode == 2
    assert '"reads.inc": is an input or target of this command' in refused.stderr
    (tmp_path / "disk.toml").write_text(headstack("catalog", "drives", "show", CHEETAH, "--toml").stdout)
    (tmp_path / "array.toml").write_text(headstack("catalog", "arrays", "show", "va-7100", "--toml").stdout)
    refused = headstack("run", "va-7100", "--drive", "disk.toml", "-w", "file-server", *SHORT, "--json", "disk.toml")
    assert "disk.toml: is an input or target of this command" in refused.stderr


KINDS = {
    "text": b"password: hunter2",
    "lines": b"one\ntwo\n",
    "JSON": b'{"precious": true}',
    "binary": bytes(range(256)),
}
FAILING = Path(__file__).parent / "samples/inspect/failing/2023-06.json"


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_file_of_another_kind_is_refused_and_stays(kind: str, tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "target").write_bytes(os.urandom(1 << 20))
    done = headstack("serve", "constant:1ms", "--size", "1MiB", "--journal", "j", "--run", "true", "-q")
    assert done.returncode == 0, done.stderr
    rows = {
        ("judge", "--state"): ["judge", "target"],
        ("judge", "--history"): ["judge", "target"],
        ("measure", "--ledger"): [
            "measure",
            "target",
            "--overwrite",
            "--read",
            "0",
            "--verify",
            "--time",
            "1s",
            "--buffered",
        ],
        ("measure verify", "--ledger"): ["measure", "verify", "target", "--buffered"],
        ("measure condition", "--log"): ["measure", "condition", "target", "--overwrite"],
        ("serve", "--journal"): ["serve", "constant:1ms", "--size", "1MiB", "--run", "true"],
        ("serve", "--data"): ["serve", "constant:1ms", "--size", "1MiB", "--run", "true"],
        ("crash explore", "--state"): ["crash", "explore", "j", "--check", "test -e {device}"],
        ("inspect", "--record"): ["inspect", str(FAILING)],
        ("measure twin", "--answers"): ["measure", "twin", "wd1200bb", "-o", "twin.toml"],
    }
    kept = {(" ".join(w), o.opts[-1]) for w, command in ALL for o in command.params if isinstance(o.type, KeptFile)}
    assert set(rows) == kept
    for (_, option), words in rows.items():
        (tmp_path / "kept").write_bytes(KINDS[kind])
        value = ["--record=kept"] if option == "--record" else [option, "kept"]
        done = headstack(*words, *value)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        assert "kept" in done.stderr.splitlines()[-1]
        assert (tmp_path / "kept").read_bytes() == KINDS[kind], words


@pytest.mark.parametrize(
    "words",
    [
        ("measure", "--fio", "two.fio"),
        ("measure", "new", "--create", "1MiB", "--read", "0", "--size", "8MiB", "--requests", "10"),
        ("measure", "new", "--create", "1MiB", "--range", "2MiB..4MiB", "--requests", "10"),
        ("measure", "new", "--create", "1MiB", "--verify", "--ledger", "l", "--size", "8MiB", "--requests", "10"),
        ("measure", "--vdbench", "trees.vdbench"),
        ("measure", "--vdbench", "devices.vdbench"),
    ],
)
def test_a_refused_job_leaves_no_file_behind(words: Words, tmp_path: Path, headstack: Headstack) -> None:
    job = "[{}]\nfilename={}\nsize={}\nrw=randwrite\nnumber_ios=10\n"
    (tmp_path / "two.fio").write_text(job.format("a", "new", "1m") + job.format("b", "none/new", "1m"))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/thesis.txt").write_text("years of work")
    tree = "fsd={},anchor={},depth=1,width=1,files=2,size=4k\n"
    load = "fwd=w,fsd={},operation=read\nrd=r,fwd=w,fwdrate=max,format=yes,elapsed=1,interval=1\n"
    trees = tree.format("one", tmp_path / "new") + tree.format("two", tmp_path / "taken") + load.format("(one,two)")
    (tmp_path / "trees.vdbench").write_text(trees)
    (tmp_path / "devices.vdbench").write_text(tree.format("one", "/dev/headstack-none") + load.format("one"))
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    done = headstack(*words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    assert not os.path.lexists("/dev/headstack-none")


# What is written, and where it is found.


def test_nothing_is_written_but_by_the_module_that_knows_how() -> None:
    """A new place that writes a file by itself is found here."""
    # The last writes in a temporary folder of its own.
    own = {
        "io/atomic_files.py",
        "io/signals.py",
        "measurement/tests/conditioning/log.py",
        "cli/main.py",
        "simulation/chunks/work.py",
    }
    # Into the drafts of write_all.
    own.update(("measurement/jobfiles/fio_logs.py", "comparison/scoreboard/measured_device.py"))
    own.update(("crash/checks.py", "crash/ext4.py", "crash/postgres.py"))  # In the folder of a check, gone with it.
    own.add("diagnosis/judging/history.py")  # Appends, as the log of conditioning does.
    own.add("studies/fits/files.py")  # In the temporary folder of a search.
    own.add("cli/files.py")  # Keeps standard input in a temporary folder of its own.
    package = Path(hs.__file__).parent
    for source in package.rglob("*.py"):
        name = str(source.relative_to(package))
        calls = [node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call)]
        for call in calls:
            called = ast.unparse(call.func)
            words = [ast.unparse(argument).strip("'\"") for argument in [*call.args, *(k.value for k in call.keywords)]]
            is_opened = called in ("open", "io.open") and any(
                word in ("w", "a", "x", "wb", "ab", "xb", "r+b") for word in words
            )
            is_written = called.rpartition(".")[2] in (
                "write_text",
                "write_bytes",
                "write_parquet",
                "write_csv",
                "touch",
            )
            is_opened |= called == "os.open" and words[1:] != ["os.O_RDONLY"]
            is_moved = called in ("os.replace", "os.rename", "shutil.copy", "shutil.move")
            is_atomic = called in ("write_text", "formatter.write_text")  # The second prints help.
            assert name in own or is_atomic or not (is_opened or is_written or is_moved), f"{name}:{call.lineno}"


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder of links that lead to another, one to the next; the first of them is relative."""
    (tmp_path / "far").mkdir()
    (tmp_path / "links").mkdir()
    return tmp_path / "links"


def test_every_output_is_at_the_place_that_a_link_leads_to(linked: Path, tmp_path: Path, headstack: Headstack) -> None:
    outputs = {"json": "json", "csv": "csv", "parquet": "parquet", "plot": "png"}
    arguments = []
    for option, suffix in outputs.items():
        # A chain, whose end dangles.
        (linked / f"r.{suffix}").symlink_to(f"../links/second.{suffix}")
        (linked / f"second.{suffix}").symlink_to(tmp_path / "far" / f"r.{suffix}")
        arguments += [f"--{option}", f"links/r.{suffix}"]
    (tmp_path / "far" / "r.json").write_text("old")
    (tmp_path / "far" / "r.json").chmod(0o640)
    (linked / "r").symlink_to("../far/trace.parquet")
    done = headstack("run", CHEETAH, "-w", "file-server", *SHORT, *arguments, "--record", "links/r")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path / "far")) == ["r.csv", "r.json", "r.parquet", "r.png", "trace.parquet"]
    assert all(path.is_symlink() for path in linked.iterdir())
    assert stat.S_IMODE((tmp_path / "far" / "r.json").stat().st_mode) == 0o640
    assert len(json.loads((linked / "r.json").read_text())) == 1
    assert hs.Trace(linked / "r").info()["summary"]["total"]["requests"]


@pytest.mark.parametrize("place", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("option", ["json", "csv"])
def test_stdout_has_what_it_is_given_and_nothing_else(place: str, option: str, headstack: Headstack) -> None:
    done = headstack("measure", "null", "--size", "4KiB", "--requests", "100", f"--{option}", place)
    assert (done.returncode, done.stderr) == (0, "")
    if option == "json":
        assert json.loads(done.stdout)[0]["schema"]
    else:
        assert done.stdout.startswith("system,")
        assert done.stdout.count("\n") == 2


def test_stdout_that_is_a_file_is_written_where_it_stands(tmp_path: Path) -> None:
    with open(tmp_path / "out", "w", encoding="ascii") as file:
        file.write("before\n")
        file.flush()
        command = [*COMMAND, "trace", "export", str(MSR), "--to", "msr", "-q", "-o", "/dev/stdout"]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, check=True)
        os.write(file.fileno(), b"behind\n")
    lines = (tmp_path / "out").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "behind")
    assert len(lines) == 2 + len(MSR.read_text().splitlines())
    # What is said of it goes elsewhere.
    assert "requests" in done.stderr


@pytest.mark.parametrize("to", ["parquet", "msr"])
def test_a_descriptor_is_written_through(to: str, tmp_path: Path) -> None:
    """As ``>(program)`` gives one; a socket too, which cannot be opened by its name."""
    here, there = socket.socketpair()
    number = there.fileno()
    how = ["import"] if to == "parquet" else ["export", "--to", to]
    command = [*COMMAND, "trace", *how, str(MSR), "-o", f"/dev/fd/{number}"]
    subprocess.run(command, pass_fds=[number], check=True, capture_output=True, cwd=tmp_path)
    there.close()
    with here, here.makefile("rb") as file:
        (tmp_path / "read").write_bytes(file.read())
    assert hs.Trace(tmp_path / "read").info()["summary"] == hs.Trace(MSR).info()["summary"]


@pytest.mark.parametrize("command", ["record", "json", "import"])
def test_a_named_pipe_is_written_through(command: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    run = ["run", CHEETAH, "-w", "file-server", *SHORT]
    arguments = {
        "record": [*run, "--record", "link"],
        "json": [*run, "--json", "link"],
        "import": ["trace", "import", str(MSR), "-o", "link"],
    }[command]
    with subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        # Which waits no longer than a test may take.
        read = subprocess.run(["timeout", "60", "cat", "pipe"], cwd=tmp_path, capture_output=True, check=True)
        (tmp_path / "read").write_bytes(read.stdout)
    assert process.returncode == 0
    if command == "json":
        assert len(json.loads((tmp_path / "read").read_text())) == 1
    else:
        assert hs.Trace(tmp_path / "read").info()["summary"]["total"]["requests"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("option", ["--json", "--record"])
def test_who_waits_for_a_reader_can_be_ended(option: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "target").write_bytes(bytes(1 << 16))
    (tmp_path / "trace.csv").write_bytes(MSR.read_bytes())
    command = (
        ["measure", "null", "--requests", "10"] if option == "--json" else ["run", CHEETAH, *SHORT, "--size", "4KiB"]
    )
    process = subprocess.Popen([*COMMAND, *command, option, "pipe"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    waits_in(process, "openat", "fifo_open", "wait_for_partner")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err.strip()) == (143, "headstack: interrupted; nothing is written")


def waits_in(process: subprocess.Popen[str], *calls: str) -> None:
    """Waits until it sleeps in one of these calls, or, where the kernel does not tell, a while."""
    for _ in range(200):
        assert process.poll() is None
        place = Path(f"/proc/{process.pid}/wchan").read_text(encoding="ascii")
        if place in calls:
            return
        time.sleep(0.02)


def test_a_character_device_is_written_through_and_stays(tmp_path: Path, headstack: Headstack) -> None:
    if not is_privileged():
        lacks("root", "nodes of devices need root")
    null = tmp_path / "null"
    os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    outputs = ("--json", "null", "--csv", "null", "--parquet", "/dev/null", "--plot", "plot.png", "--record", "null")
    (tmp_path / "plot.png").symlink_to("/dev/null")
    done = headstack("run", CHEETAH, "-w", "file-server", *SHORT, *outputs)
    assert done.returncode == 0, done.stderr
    assert stat.S_ISCHR(null.stat().st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert headstack("trace", "import", str(MSR), "-o", "null").returncode == 0
    assert stat.S_ISCHR(null.stat().st_mode)


def test_the_owner_and_the_permissions_of_what_is_replaced_are_kept(tmp_path: Path) -> None:
    if not is_privileged():
        lacks("root", "only root gives files away")
    path = tmp_path / "r.json"
    path.write_text("old")
    os.chown(path, 1234, 5678)
    path.chmod(0o604)
    hs.run(CHEETAH, "file-server", requests=500).to_json(path)
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 5678, 0o604)
    os.umask(before := os.umask(0o027))
    write_text(tmp_path / "new", "")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~before


def test_nobody_reads_a_draft_who_might_not_read_the_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("old")
    (tmp_path / "secret").chmod(0o600)
    seen: list[int] = []

    def look(draft: Path) -> None:
        seen.append(stat.S_IMODE(draft.stat().st_mode))

    write_all([(tmp_path / "secret", look)])
    assert seen == [0o600]


# A disk that is full.


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system without room for a byte more, in which files can still be made."""
    if not is_privileged():
        lacks("root", "file systems are mounted by root")
    place = tmp_path / "full"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", place], capture_output=True, text=True)
    if made.returncode != 0:
        lacks("kernel", f"no file system in memory: {made.stderr.strip()}")
    try:
        (place / "ballast").write_bytes(bytes(128 << 10))
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("option", ["json", "csv", "parquet", "plot", "record", "html"])
def test_a_full_disk_is_said_to_be_full_and_where(option: str, full: Path, headstack: Headstack) -> None:
    path = f"full/r.{'png' if option == 'plot' else option}"
    done = headstack("run", CHEETAH, "-w", "file-server", *SHORT, "-q", f"--{option}", path)
    if option == "html" and "need the page, which is not built" in done.stderr:
        lacks("programs", "the page of reports is not built")
    assert (done.returncode, done.stderr) == (3, f"headstack: {path}: cannot be written: No space left on device\n")
    assert os.listdir(full) == ["ballast"]
    # What was found is not lost with the file.
    assert option == "record" or "IOPS" in done.stdout


@pytest.mark.parametrize("how", ["import", "export"])
def test_a_full_disk_under_a_trace(how: str, full: Path, tmp_path: Path, headstack: Headstack) -> None:
    hs.run(CHEETAH, "file-server", requests=500, record=tmp_path / "t.parquet")
    to = [] if how == "import" else ["--to", "msr"]
    done = headstack("trace", how, "t.parquet", "-o", "full/t", *to)
    assert (done.returncode, done.stderr) == (3, "headstack: full/t: cannot be written: No space left on device\n")
    assert os.listdir(full) == ["ballast"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("catalog", "drives", "list"), ("run", CHEETAH, "-w", "file-server", *SHORT),
        ("catalog", "drives", "show", CHEETAH, "--json"),
        ("run", CHEETAH, "-w", "file-server", *SHORT, "--json", "-"),
        ("trace", "export", str(MSR), "--to", "msr", "-o", "-"),
        ("run", CHEETAH, "-w", "file-server", *SHORT, "--csv", "/dev/stdout"),
    ],
)  # fmt: skip
def test_a_full_standard_output_is_an_error(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as file:
        done = subprocess.run([*COMMAND, *arguments], stdout=file, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3
    place = arguments[-1] if arguments[-2] in ("-o", "--csv") else "stdout"
    assert done.stderr == f"headstack: {place}: cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    "arguments",
    [("trace", "export", "long.parquet", "--to", "msr", "-o", "-"), ("catalog", "drives", "show", CHEETAH, "--json")],
)
def test_a_reader_that_has_seen_enough_is_no_error(arguments: tuple[str, ...], tmp_path: Path) -> None:
    hs.run(CHEETAH, "file-server", requests=50_000, record=tmp_path / "long.parquet")
    process = subprocess.Popen([*COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert (process.stderr.read(), process.wait(timeout=60)) == (b"", 0)


def test_what_cannot_be_written_names_the_file_and_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("old")

    def fail(draft: Path) -> None:
        draft.write_text("half")
        raise OSError(5, "Input/output error")

    with pytest.raises(WriteError, match="two") as refused:
        write_all([(tmp_path / "one", lambda draft: draft.write_text("new")), (tmp_path / "two", fail)])
    assert refused.value.filename == str(tmp_path / "two")
    assert (tmp_path / "one").read_text() == "old"
    assert os.listdir(tmp_path) == ["one"]


def test_what_became_a_device_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def swap(draft: Path) -> None:
        draft.write_text("new")
        (tmp_path / "r").unlink()
        os.mkfifo(tmp_path / "r")

    (tmp_path / "r").touch()
    with pytest.raises(hs.InputError, match="was replaced while"):
        write_all([(tmp_path / "r", swap)])
    assert (tmp_path / "r").is_fifo()
    assert os.listdir(tmp_path) == ["r"]
