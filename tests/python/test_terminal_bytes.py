"""Control characters of names, files and other programs never reach a terminal, nor do they format a ticket."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from headstack.io.columns import Names, drawn
from headstack.io.terminal import Guarded, rewrite, send, visible
from headstack.report.figures import Claim, Provenance, Report
from headstack.report.markdown import to_markdown
from terminals import ESCAPES

EVIL = "sda\x1b]0;title\x07\x1b[2J\x9b31m\u202e"


def shown(arguments: list[str], folder: Path) -> str:
    """What a command shows on a terminal, on both of its streams."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from headstack.cli.start import main; main()", *arguments],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "200"},
    )  # fmt: skip
    os.close(theirs)
    found = b""
    try:
        while more := _read(ours):
            found += more
        process.wait(timeout=100)
    finally:
        os.close(ours)
        process.kill()
    return found.decode(errors="surrogateescape")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def test_only_our_own_control_characters_are_sent(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    stream = Guarded(os.fdopen(theirs, "wb"), encoding="utf-8", line_buffering=True)
    stream.write(f"{EVIL}\ttab\n")
    send(stream, "\x1b[1m")
    rewrite(stream, f"at {EVIL}", True)
    stream.flush()
    wanted = f"{visible(EVIL)}\ttab\n\x1b[1m\r\x1b[Kat {visible(EVIL)}"
    found = ""
    while len(found.replace("\r\n", "\n")) < len(wanted):
        found += os.read(ours, 1 << 16).decode()
    assert found.replace("\r\n", "\n") == wanted
    assert "\x1b" not in visible(EVIL)
    assert "\x07" not in visible(EVIL)
    assert "\x9b" not in visible(EVIL)
    path = tmp_path / "file"
    with Guarded(path.open("wb"), encoding="utf-8") as file:
        file.write(EVIL)
    assert path.read_text() == EVIL
    stream.close()
    os.close(ours)


def test_tables_have_none_wherever_they_go() -> None:
    table, _ = drawn([Names("disk")], [[EVIL]], None, False)
    assert "\x1b" not in table
    assert visible(EVIL) in table


def evil_iostat(folder: Path) -> list[str]:
    blocks = [
        {
            "timestamp": f"2023-11-14T22:13:{20 + 10 * n}+0000",
            "disk": [{"disk_device": EVIL, "r/s": 5.0, "r_await": 2.0}],
        }
        for n in range(3)
    ]
    document = {"sysstat": {"hosts": [{"nodename": EVIL, "date": "2023-11-14", "statistics": blocks}]}}
    (folder / "a.json").write_text(json.dumps(document))
    return ["judge", "a.json"]


def evil_job(folder: Path) -> list[str]:
    (folder / "a.fio").write_text("[job\x1bc\x07]\nrw=read\nsize=1m\nbs=4k\nnumber_ios=10\n")
    return ["run", "--fio", "a.fio", "cheetah-x15-36lp"]


def evil_trace(folder: Path) -> list[str]:
    (folder / "t.csv").write_text(f'dev,ts,off,len\n"{EVIL}",1,0,512\n"{EVIL}",2,0,512\n', encoding="utf-8")
    return ["trace", "info", "t.csv", "--columns", "device=dev,time=ts:s,offset=off,length=len"]


def evil_name(folder: Path) -> list[str]:
    return ["measure", f"/dev/{EVIL}", "-w", "file-server"]


def evil_ssh(folder: Path) -> list[str]:
    ssh = folder / "ssh"
    ssh.write_text("#!/bin/sh\nprintf 'refused \\033]0;title\\007\\033[2J' >&2\nexit 255\n")
    ssh.chmod(0o755)
    return ["measure", "/tmp/x", "--hosts", "far", "-w", "file-server", "--ssh-command", str(ssh)]


@pytest.mark.parametrize("command", [evil_iostat, evil_job, evil_trace, evil_name, evil_ssh])
def test_no_command_passes_them_on(command: object, tmp_path: Path) -> None:
    arguments = command(tmp_path)  # type: ignore[operator]
    found = shown(arguments, tmp_path)
    # What is left without our own sequences, that go by the letter at their end.
    own = ESCAPES.sub("", found.replace("\x1b[2J", "EVIL"))
    assert not set(own) & set("\x1b\x07\x9b\u202e"), found
    assert "\x1b[2J" not in found
    assert "\\x1b" in found or "job" in found, found


def test_a_ticket_is_text_to_its_last_line() -> None:
    name = "a*b_[x](y)|`c`<i>&\x1b[2J"
    runs = [Provenance(name, name, 1, "1", "0123456789abcdef", "")]
    report = Report("R", name, f"{name}\n\n# no heading\n\n1. no item\n\n- none", [], runs=runs, version=name,
                    claims=[Claim("A", name, name, "")], remarks="> no quotation\n\n+ no list")  # fmt: skip
    text = to_markdown(report)
    assert "\x1b" not in text
    lines = text.splitlines()
    plain = "a\\*b\\_\\[x\\](y)\\|\\`c\\`&lt;i>&amp;\\\\x1b\\[2J"
    assert lines[0] == f"**{plain}**"
    assert lines[-1] == f"headstack {plain}: {plain} `0123456789ab` seed 1"
    assert {"\\# no heading", "1\\. no item", "\\- none", "- \\> no quotation", "- \\+ no list"} <= set(lines)
    assert f"Question: {plain}" in lines
    assert f"| A | {plain} | {plain} |" in lines
