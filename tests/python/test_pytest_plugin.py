"""The plugin of pytest: the fixture and marker `disk`, and what becomes of tests that use them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from conftest import REPOSITORY, is_privileged, lacks, needs_program

pytest_plugins = "pytester"


def needs_fuse() -> None:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        lacks("kernel", "no /dev/fuse")


def needs_loop() -> None:
    needs_fuse()
    if not is_privileged():
        lacks("root", "loop devices and mounts need root")
    if not os.path.exists("/dev/loop-control"):
        lacks("loop", "no loop devices")


def test_a_disk_is_a_file_and_an_address(pytester: pytest.Pytester) -> None:
    needs_fuse()
    needs_program("nbdinfo")
    pytester.makepyfile("""
        import os, subprocess

        def test_default(disk):
            with open(disk.path, "r+b") as file:
                file.write(b"here" * 128)
                file.flush()
                os.fsync(file.fileno())
            assert os.path.getsize(disk.path) == 64 << 20
            read = subprocess.run(["nbdcopy", disk.uri, "-"], capture_output=True, check=True).stdout
            assert read[:4] == b"here"
            assert disk.verdict.startswith("valid") or "valid" in disk.verdict
    """)
    pytester.runpytest("--strict-markers").assert_outcomes(passed=1)


def test_a_marker_says_which_system_and_what_goes_wrong(pytester: pytest.Pytester) -> None:
    needs_fuse()
    pytester.path.joinpath("broken.toml").write_text(
        '[[fault]]\nat = "0s"\nwhat = "media-error"\nranges = [{ offset = "4KiB", length = "4KiB" }]\ntime = "1ms"\n'
    )
    pytester.makepyfile("""
        import os, pytest

        @pytest.mark.disk("wd1200bb@0..64MiB", faults="broken.toml")
        def test_of_a_drive(disk):
            file = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
            import mmap
            page = mmap.mmap(-1, 4096)
            assert os.preadv(file, [page], 0) == 4096
            with pytest.raises(OSError):
                os.preadv(file, [page], 4096)
            os.close(file)

        @pytest.mark.disk("constant:1ms", size="1MiB")
        def test_of_no_drive(disk):
            assert os.path.getsize(disk.path) == 1 << 20
            assert disk.inject("hang", lasting="1ms")["at_ns"] > 0

        @pytest.mark.disk("wd1200bb", colour="red")
        def test_of_nothing(disk):
            pass
    """)
    done = pytester.runpytest("--strict-markers")
    done.assert_outcomes(passed=2, errors=1)
    done.stdout.fnmatch_lines(["*disk: 'colour' is unknown; allowed: system, faults, crash, size, require*"])


def test_power_is_cut_and_comes_back(pytester: pytest.Pytester) -> None:
    needs_fuse()
    pytester.makepyfile("""
        import os, pytest

        @pytest.mark.disk("970-evo-1tb@0..64MiB")
        def test_cut(disk):
            file = os.open(disk.path, os.O_RDWR)
            os.pwrite(file, b"kept" * 1024, 0)
            os.fsync(file)
            os.close(file)
            disk.cut_power()
            with pytest.raises(OSError):
                file = os.open(disk.path, os.O_RDWR)
                os.pread(file, 4096, 1 << 20)
            os.close(file)
            disk.restore_power()
            with open(disk.path, "rb") as file:
                assert file.read(4096) == b"kept" * 1024
    """)
    pytester.runpytest().assert_outcomes(passed=1)


IMPATIENT = """
    import os, pytest

    @pytest.mark.disk("constant:1ms", require="valid:1ns")
    def test_times(disk):
        file = os.open(disk.path, os.O_RDWR)
        for _ in range(20):
            os.fsync(file)
        os.close(file)
"""


def test_times_that_cannot_be_true_are_inconclusive(pytester: pytest.Pytester) -> None:
    needs_fuse()
    pytester.makepyfile(IMPATIENT)
    done = pytester.runpytest("-v", "--junit-xml", "junit.xml")
    assert done.ret == 0
    assert done.parseoutcomes() == {"inconclusive": 1}
    done.stdout.fnmatch_lines(["*test_times INCONCLUSIVE*", "*inconclusive: neither passed nor failed*", "*valid*"])
    report = pytester.path.joinpath("junit.xml").read_text()
    assert "skipped" in report
    assert "inconclusive: " in report
    pytester.runpytest("--disk-strict").assert_outcomes(failed=1)
    assert pytester.runpytest("-n", "1").parseoutcomes() == {"inconclusive": 1}


def test_a_test_that_explores_nothing_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.disk(crash="explore")
        def test_forgets(disk):
            disk.mark(1)

        @pytest.mark.disk("constant:0s", crash="explore")
        def test_loses_nothing(disk):
            pass

        @pytest.mark.disk("constant:0s")
        def test_has_no_journal(disk):
            disk.explore(lambda path, marks: None)
    """)
    done = pytester.runpytest()
    done.assert_outcomes(failed=2, errors=1)
    done.stdout.fnmatch_lines(["*constant:0s has no volatile cache*"])
    done.stdout.fnmatch_lines(["*but did not call disk.explore(check)*", "*disk.explore: needs a journal*"])


def test_whoever_does_not_use_it_does_not_wait_for_it() -> None:
    """Nothing that takes time is loaded; the package alone, and what pytest has loaded."""
    code = """if True:
        import pytest, sys
        old = set(sys.modules)
        import headstack.crash.pytest_plugin
        print(*set(sys.modules) - old)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {
        "headstack",
        "headstack.crash",
        "headstack.crash.inconclusive",
        "headstack.crash.pytest_plugin",
    }


POINTER = """
    import os, pytest

    @pytest.mark.disk("970-evo-1tb@0..1MiB", crash="explore")
    def test_pointer(disk):
        def write(number, place):
            os.pwrite(file, number.to_bytes(512, "little"), place)

        def check(path, marks):
            with open(path, "rb") as image:
                pointer = int.from_bytes(image.read(512), "little")
                image.seek(pointer * 4096)
                there = int.from_bytes(image.read(512), "little")
            assert pointer >= len(marks) - 1, f"{pointer} is there of {marks}"
            assert there == pointer, f"the pointer {pointer} leads nowhere"

        file = os.open(disk.path, os.O_RDWR)
        disk.mark("begin")
        for number in range(1, 6):
            write(number, number * 4096)
            FIRST
            write(number, 0)
            os.fsync(file)
            disk.mark(number)
        os.close(file)
        explored = disk.explore(check, budget="5s")
        assert explored is None or explored.ended_by == "complete"
"""


def test_a_promise_that_is_kept_passes(pytester: pytest.Pytester) -> None:
    needs_fuse()
    pytester.makepyfile(POINTER.replace("FIRST", "os.fsync(file)"))
    pytester.runpytest("--junit-xml", "junit.xml").assert_outcomes(passed=1)
    assert "crash_coverage" in pytester.path.joinpath("junit.xml").read_text()


def test_a_finding_is_one_failure_that_says_what_is_missing(pytester: pytest.Pytester) -> None:
    needs_fuse()
    pytester.makepyfile(POINTER.replace("FIRST", "pass"))
    done = pytester.runpytest("--junit-xml", "junit.xml", "--disk-findings", "found")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*the check fails after a power loss*",
            "*the pointer 1 leads nowhere*",
            "*missing: write * at byte 4,096*",
            "*reproducer: *.journal",
            "*to reproduce: *--disk-replay *",
        ]
    )
    kept = list(pytester.path.joinpath("found").rglob("*.journal"))
    assert kept
    assert kept[0].name in pytester.path.joinpath("junit.xml").read_text()
    assert "test_pointer" in str(kept[0])
    again = pytester.runpytest("--disk-replay", str(kept[0]))
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*the check fails after a power loss: the pointer * leads nowhere*"])


def test_the_printed_command_repeats_a_finding(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed, from the folder in which pytest was started, which is not that of the tests."""
    needs_fuse()
    pytester.makeini("[pytest]")
    pytester.mkdir("tests").joinpath("test_promise.py").write_text(textwrap.dedent(POINTER.replace("FIRST", "pass")))
    pytester.mkdir("elsewhere")
    monkeypatch.chdir(pytester.path / "elsewhere")
    done = pytester.runpytest_subprocess("../tests", "--disk-findings", "found")
    done.assert_outcomes(failed=1)
    [command] = {line.partition("to reproduce: ")[2] for line in done.outlines if "to reproduce: " in line}
    assert "headstack crash replay" not in done.stdout.str(), "the check is a function, which no command finds"
    again = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=pytester.path / "elsewhere")
    assert (again.returncode, "the check fails after a power loss: the pointer" in again.stdout) == (1, True), (
        again.stdout
    )


def devices_in_use(folder: Path) -> list[str]:
    """Mounts and loop devices whose files lie in a folder."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    files = [path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    return [name for name in (*mounts, *files) if name.startswith(f"{folder}/")]


def test_a_failing_test_leaves_no_mount_and_no_loop_device(
    pytester: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_loop()
    # Other tests mount disks meanwhile, elsewhere.
    own = tmp_path_factory.mktemp("own")
    monkeypatch.setenv("TMPDIR", str(own))
    pytester.makepyfile("""
        import os, pytest, tempfile
        from pathlib import Path

        def write(folder):
            (Path(tempfile.gettempdir()) / "mounted").write_text(str(folder))
            deeper = open(folder / "deeper", "w")
            deeper.write("x" * 4096)
            raise AssertionError("on purpose")

        @pytest.mark.disk("970-evo-1tb@0..64MiB")
        def test_fails(disk):
            with disk.mounted() as folder:
                held = open(folder / "held", "w")
                os.chdir(folder)
                write(folder)

        @pytest.mark.disk("970-evo-1tb@0..64MiB")
        def test_fails_outside(disk):
            mount = disk.mounted()
            held = open(mount.__enter__() / "held", "w")
            os.chdir("/")
            raise AssertionError("on purpose")
    """)
    pytester.runpytest_subprocess().assert_outcomes(failed=2)
    assert (own / "mounted").read_text().startswith(f"{own}/")
    assert devices_in_use(own) == []


def test_what_differs_from_the_marker_is_a_warning(pytester: pytest.Pytester) -> None:
    needs_fuse()
    pytester.path.joinpath("idle.toml").write_text(
        '[[fault]]\nat = "0s"\nwhat = "media-error"\nranges = [{ offset = "1GiB", length = "4KiB" }]\n'
    )
    pytester.makepyfile("""
        import os, pytest

        @pytest.mark.disk("constant:1ms", size="1000001")
        def test_size(disk):
            assert os.path.getsize(disk.path) == 999_936

        @pytest.mark.disk("wd1200bb@0..64MiB", faults="idle.toml")
        def test_faults(disk):
            pass
    """)
    done = pytester.runpytest()
    done.assert_outcomes(passed=2, warnings=2)
    done.stdout.fnmatch_lines(["*disk: size: 1000001 is rounded down to 999,936 bytes, a multiple of 512*"])
    done.stdout.fnmatch_lines(["*fault?0?.ranges has no effect: the ranges are outside the exported range*"])


def test_an_exploration_of_next_to_nothing_is_inconclusive(pytester: pytest.Pytester) -> None:
    needs_fuse()
    slow = POINTER.replace("FIRST", "os.fsync(file)").replace('"5s"', '"1ms", least=1000')
    pytester.makepyfile(slow)
    assert pytester.runpytest().parseoutcomes() == {"inconclusive": 1}
    pytester.runpytest("--disk-strict").assert_outcomes(failed=1)
    pytester.runpytest("--disk-budget", "5s").assert_outcomes(passed=1)


@pytest.mark.parametrize("name", ["test_sqlite.py", "test_faults.py"])
def test_examples_pass(pytester: pytest.Pytester, name: str) -> None:
    needs_loop()
    pytester.makepyfile((REPOSITORY / "examples" / "ci" / name).read_text(encoding="utf-8"))
    done = pytester.runpytest("--disk-budget", "40", "--strict-markers")
    done.assert_outcomes(passed=2)


def test_a_store_that_is_asked_for_too_little_is_found_out(pytester: pytest.Pytester) -> None:
    """The check of the example for SQLite, on the configuration that the page says must fail."""
    needs_loop()
    text = (REPOSITORY / "examples" / "ci" / "test_sqlite.py").read_text(encoding="utf-8")
    pytester.makepyfile(text.replace('fill(disk, folder, "FULL")', 'fill(disk, folder, "OFF")'))
    done = pytester.runpytest("--disk-budget", "60", "-k", "test_commits_survive")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*the check fails after a power loss*", "*commits were acknowledged, * are there*"])


UNSYNCED = """
    import pytest, time
    from headstack.crash.pytest_device import JOURNAL

    @pytest.mark.disk("wd1200bb@0..64MiB", crash="explore")
    @pytest.mark.parametrize("writeback", ["4ms", "0s"])
    def test_writes(disk, writeback):
        with disk.mounted("ext4", writeback=writeback) as folder:
            disk.mark("begin")
            journal, number, synced, end_s = disk._folder / JOURNAL, 0, 0, time.monotonic() + 60
            while number < 20 or (writeback != "0s" and synced < 10 and time.monotonic() < end_s):
                before = journal.stat().st_size
                (folder / str(number)).write_bytes(bytes(4096))
                disk.mark(number)
                number += 1
                synced += journal.stat().st_size - before > 4096
        covered = disk.explore(lambda folder, marks: None, budget="100").coverage
        with open(REPORT, "a") as file:
            print(writeback, covered.windows, covered.describe(), file=file)
"""


def test_a_mounted_disk_is_synced_in_the_background(pytester: pytest.Pytester) -> None:
    """Of a program that syncs nothing, the recording has what the kernel would have written meanwhile."""
    needs_loop()
    report = pytester.path / "report"
    pytester.makepyfile(UNSYNCED.replace("REPORT", repr(str(report))))
    pytester.runpytest().assert_outcomes(passed=2)
    lines = report.read_text().splitlines()
    windows = {line.split()[0]: int(line.split()[1]) for line in lines}
    assert windows["4ms"] >= windows["0s"] + 5, lines
    assert all("subsets of one recorded schedule of the kernel's writeback" in line for line in lines)
