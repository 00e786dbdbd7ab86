"""No test hangs: what takes two minutes is ended, with its name and the stacks of its threads."""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from conftest import REPOSITORY

WATCH = REPOSITORY / "tests" / "watch.py"

HANGS = """
mod inner {
    #[test]
    fn it_passes() {}

    #[test]
    #[ignore]
    fn it_fails() { panic!("on purpose") }

    #[test]
    #[ignore]
    fn it_waits_for_ever() { waits_for_a_word() }

    #[test]
    #[ignore]
    fn it_computes_for_a_second() {
        let begun = processor_ns();
        while processor_ns() < begun + 1_000_000_000 {}
    }

    fn processor_ns() -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }

    #[inline(never)]
    fn waits_for_a_word() {
        let (_say, heard) = std::sync::mpsc::channel::<()>();
        heard.recv().unwrap();
    }
}
"""


def watched(program: Path, *arguments: str, limit_s: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WATCH, program, *arguments],
        env=os.environ | {"HEADSTACK_TEST_LIMIT_S": str(limit_s), "RUST_TEST_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests of Rust where cargo would put them."""
    folder = tmp_path_factory.mktemp("target") / "deps"
    folder.mkdir()
    source = folder / "hangs.rs"
    source.write_text(HANGS)
    subprocess.run(["rustc", "--test", "-o", folder / "hangs", source], check=True, timeout=100)
    return folder / "hangs"


def test_what_does_not_hang_is_passed_on(binary: Path) -> None:
    done = watched(binary)
    assert done.returncode == 0
    assert "test inner::it_passes ... ok" in done.stdout
    assert "3 ignored" in done.stdout
    done = watched(binary, "--quiet", "--include-ignored", "--skip", "for_ever", "--skip", "computes")
    assert done.returncode == 101
    assert "it_passes" not in done.stdout
    assert "test inner::it_fails ... FAILED" in done.stdout
    assert "on purpose" in done.stdout
    assert "inner::it_waits_for_ever: test" in watched(binary, "--list").stdout


def test_a_test_of_rust_that_hangs_is_ended_with_its_name_and_stacks(binary: Path) -> None:
    done = watched(binary, "--quiet", "--include-ignored", "--skip", "fails", "--skip", "computes", limit_s=1)
    assert done.returncode == 1
    assert "test inner::it_waits_for_ever hangs: it has run for 1 s" in done.stdout
    assert "inner::it_waits: waits in " in done.stdout
    if shutil.which("eu-stack") or shutil.which("gdb"):
        assert "waits_for_a_word" in done.stdout


def test_a_loaded_machine_ends_no_test(binary: Path) -> None:
    """A second of processor time takes four beside a busy loop on the same processor, and the limit is two."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        begun_s = time.monotonic()
        done = subprocess.run(
            ["nice", "-n", "5", WATCH, binary, "--include-ignored", "computes"],
            env=os.environ | {"HEADSTACK_TEST_LIMIT_S": "2"},
            capture_output=True,
            text=True,
            check=False,
        )
        took_s = time.monotonic() - begun_s
    finally:
        os.sched_setaffinity(0, allowed)
        busy.kill()
        busy.wait()
    assert "test inner::it_computes_for_a_second ... ok" in done.stdout, done.stdout
    assert took_s > 2


def test_one_that_hangs_is_ended_when_others_have_ended(tmp_path: Path) -> None:
    """As the harness says it, which warns after a minute."""
    (tmp_path / "deps").mkdir()
    harness = tmp_path / "deps" / "harness"
    harness.write_text(
        "#!/bin/sh\necho $$ > $0.pid\n"
        "echo 'test a::slow has been running for over 60 seconds'\necho 'test a::slow ... ok'\n"
        "echo 'test a::hung has been running for over 60 seconds'\n"
        "for turn in 1 2 3; do sleep 0.3; echo 'test b ... ok'; done\nsleep 1000\n"
    )
    harness.chmod(0o755)
    done = watched(harness, limit_s=2)
    assert done.returncode == 1
    assert "test a::hung hangs" in done.stdout
    assert "test a::slow hangs" not in done.stdout
    assert done.stdout.count("test b ... ok") == 3, "nobody is ended while others end"
    assert not Path("/proc", (tmp_path / "deps" / "harness.pid").read_text().strip()).exists()


def test_other_programs_run_as_they_are(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho $PPID $@\n")
    program.chmod(0o755)
    assert watched(program, "--quiet").stdout == f"{os.getpid()} --quiet\n"


def test_cargo_runs_tests_under_the_watch() -> None:
    configured = tomllib.loads((REPOSITORY / ".cargo" / "config.toml").read_text())
    [target] = configured["target"].values()
    assert REPOSITORY / target["runner"] == WATCH


def test_a_test_of_python_that_hangs_is_ended_with_its_name_and_stacks(tmp_path: Path) -> None:
    options = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert (options["faulthandler_timeout"], options["faulthandler_exit_on_timeout"]) == (600, True)
    (tmp_path / "test_hangs.py").write_text(
        "import threading\ndef test_it_waits_for_ever():\n    threading.Event().wait()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "--max-worker-restart", "0", "-c", "/dev/null", "--rootdir", ".",
         "-o", "faulthandler_timeout=1", "-o", "faulthandler_exit_on_timeout=true", "test_hangs.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "crashed while running 'test_hangs.py::test_it_waits_for_ever'" in done.stdout
    assert "in test_it_waits_for_ever" in done.stderr


def test_nothing_allows_a_test_more() -> None:
    """A program that a test starts is given up before the test is, or nobody hears which of them hung."""
    for file in Path(__file__).parent.glob("*.py"):
        for allowed in re.findall(r"(?:\btimeout=|PATIENCE_S = )(\d+)", file.read_text()):
            assert int(allowed) <= 500, file.name
