"""Loads on files in folders, on the command line and from Python."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack

MAIL = """fsd=mail,anchor=ANCHOR,depth=1,width=2,files=10,sizes=(4k,50,8k,50)
fwd=default,fsd=mail,fileselect=random,threads=2
fwd=look,operation=getattr
fwd=fetch,operation=read,xfersize=4k
rd=day,fwd=*,fwdrate=RATE,format=yes,elapsed=1,interval=1
"""


def parameters(folder: Path, text: str = MAIL, rate: str = "max") -> Path:
    path = folder / "mail.vdbench"
    path.write_text(text.replace("ANCHOR", str(folder / "mail")).replace("RATE", rate))
    return path


def test_each_kind_of_operation_has_a_line(tmp_path: Path, headstack: Headstack) -> None:
    file = str(parameters(tmp_path, rate="400"))
    whole = str(tmp_path / "out.json")
    code, out, err = headstack("measure", "-q", "--vdbench", file, "--json", whole)
    assert (code, err) == (0, "")
    for operation in ("getattr", "read", "open", "close"):
        assert operation in out, out
    [result] = json.loads(Path(whole).read_text())
    by_name = {one["name"]: one for one in result["operations"]}
    assert 100 < by_name["getattr"]["count"] < 260, "half of 400 a second"
    assert result["kinds"]["read"]["count"] == by_name["read"]["count"]
    read = hs.Results.read(whole)
    rows = {row["operation"]: row for row in read.operations_of(0)}
    assert rows["getattr"]["count"] == by_name["getattr"]["count"]
    assert rows["getattr"]["p99_ms"] > 0
    assert len(read.operations()) == len(by_name)


def test_a_folder_on_the_command_line_replaces_that_of_the_file(tmp_path: Path, headstack: Headstack) -> None:
    file = str(parameters(tmp_path))
    code, _, err = headstack("measure", "-q", "--vdbench", file, str(tmp_path / "other"))
    assert (code, err) == (0, "")
    assert not (tmp_path / "mail").exists()
    assert len(list((tmp_path / "other/vdb.1_2.dir").iterdir())) == 10
    code, _, err = headstack("measure", "-q", "--vdbench", file, "one", "two")
    assert (code, err) == (2, f"headstack: 2 folders for 1 trees of {file}: mail\n")


def test_damage_behind_its_back_is_told_by_file_and_byte(tmp_path: Path, headstack: Headstack) -> None:
    text = "validate=yes\n" + MAIL
    file = str(parameters(tmp_path, text))
    assert headstack("measure", "-q", "--vdbench", file)[0] == 0
    damaged = tmp_path / "mail/vdb.1_1.dir/vdb_f0003.file"
    contents = bytearray(damaged.read_bytes())
    contents[1_000] ^= 0x10
    damaged.write_bytes(contents)
    missing = tmp_path / "mail/vdb.1_2.dir/vdb_f0007.file"
    again = parameters(tmp_path, text.replace("format=yes", "format=no"))
    code, _, err = headstack("measure", "-q", "--vdbench", str(again))
    assert code == 1
    assert "damaged or lost" in err
    assert f"{damaged.relative_to(tmp_path / 'mail')}, byte 512: 1 bits differ" in err
    assert str(missing) not in err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("operation=getattr", "operation=move"), "move needs a destination tree; add target=FSD"),
        (("operation=read", "operation=fly"), "'fly' is not an operation; allowed: mkdir, rmdir, create"),
        (("fwdrate=RATE,", ""), "has no fwdrate; add fwdrate=max or a number"),
        (("fwd=*", "fwd=none"), "there is no fwd=none; allowed: look, fetch"),
        (("anchor=ANCHOR,", ""), "has no anchor; add anchor=DIRECTORY"),
        (("fwdrate=RATE", "iorate=5"), "for operations on files, use fwdrate="),
        (("rd=day", "wd=x"), "storage (sd, wd) and trees of files (fsd, fwd) must be in separate job files"),
    ],
)
def test_what_cannot_be_done_is_refused_by_line(
    tmp_path: Path, headstack: Headstack, change: tuple[str, str], told: str
) -> None:
    file = parameters(tmp_path, MAIL.replace(*change))
    code, _, err = headstack("measure", "-q", "--vdbench", str(file))
    assert code == 2
    assert err.startswith(f"headstack: {file}:")
    assert told.replace("'", '"') in err, err


def test_trees_are_measured_and_not_simulated(tmp_path: Path, headstack: Headstack) -> None:
    file = str(parameters(tmp_path))
    code, _, err = headstack("run", "cheetah9lp", "--vdbench", file)
    assert code == 2
    assert "are measured, not simulated" in err
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail/thesis.txt").write_text("years of work")
    code, _, err = headstack("measure", "-q", "--vdbench", file)
    assert code == 2
    assert '"thesis.txt", which headstack did not create' in err
    assert (tmp_path / "mail/thesis.txt").read_text() == "years of work"


def test_what_a_killed_run_has_left_is_judged_by_its_ledger(tmp_path: Path, headstack: Headstack) -> None:
    text = "validate=yes\n" + MAIL.replace("fetch,operation=read", "fetch,operation=write,openflags=fsync")
    text = text.replace("fwd=look,operation=getattr", "fwd=look,operation=delete\nfwd=make,operation=create")
    file = parameters(tmp_path, text.replace("elapsed=1", "elapsed=60"))
    ledger, mail = str(tmp_path / "kept.ledger"), tmp_path / "mail"
    command = [sys.executable, "-m", "headstack", "measure", "-q", "--vdbench", str(file), "--ledger", ledger]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 30
        # Deleted and made again for a while.
        while not (mail / "vdb.1_2.dir").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        process.kill()
    for power_loss in ([], ["--power-loss"]):
        code, out, err = headstack("measure", "verify", "-q", str(mail), "--ledger", ledger, *power_loss)
        assert (code, err) == (0, ""), out
        assert "no block is at fault" in out
    again = text.replace("fwdrate=RATE", "fwdrate=max,operations=write").replace("random", "once")
    parameters(tmp_path, again.replace("fwd=*", "fwd=fetch"))
    Path(ledger).unlink()
    assert headstack("measure", "-q", "--vdbench", str(file), "--ledger", ledger)[0] == 0
    gone = mail / "vdb.1_2.dir/vdb_f0007.file"
    gone.unlink()
    for power_loss in ([], ["--power-loss"]):
        code, out, err = headstack("measure", "verify", "-q", str(mail), "--ledger", ledger, *power_loss)
        assert code == 1
        assert f"{gone}: is missing" in out
    code, _, err = headstack("measure", "verify", "-q", str(mail))
    assert code == 2
    assert "add --ledger FILE" in err
    code, _, err = headstack("measure", "verify", "-q", str(tmp_path), "--ledger", ledger)
    assert code == 2
    assert "has no tree of headstack" in err
