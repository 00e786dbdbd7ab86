"""Every command that can write, on something precious: refused in one line, and not a byte is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest import REPOSITORY, Attach, Headstack, needs_program


class Way(NamedTuple):
    """A command, with DISK for a device that carries ext4, NAME for its name and FILE for a file that exists."""

    command: str
    refused: str


BY_NAME, CARRIES, BY_WORD = "to allow it, add --destroy NAME", "carries ext4", "to allow it, add --overwrite"
WAYS = [
    Way("measure DISK --read 0 --time 1s", BY_NAME),
    Way("measure DISK --read 0 --time 1s --overwrite", BY_NAME),
    Way("measure DISK --read 0 --time 1s --destroy NAME", CARRIES),
    Way("measure FILE --read 0 --time 1s", BY_WORD),
    Way("measure FILE --read 0 --time 1s --create 1MiB", BY_WORD),
    Way("measure BACKING --read 0 --time 1s --overwrite --buffered", "it is behind NAME"),
    Way("measure FILE --read 0 --time 1s --verify", BY_WORD),
    Way("measure DISK --read 0 --time 1s --verify-after --destroy NAME", CARRIES),
    Way("measure DISK --workload two.toml --lun log=FILE --overwrite", BY_NAME),
    Way("measure DISK --workload two.toml --lun log=FILE --destroy NAME --signature ext4", BY_WORD),
    Way("measure prefill DISK --destroy NAME", CARRIES),
    Way("measure fsync DISK --destroy NAME", CARRIES),
    Way("measure fsync FILE", BY_WORD),
    Way("measure crystal DISK --destroy NAME", CARRIES),
    Way("measure pts DISK --destroy NAME", CARRIES),
    Way("measure settings DISK --for ceph --destroy NAME", CARRIES),
    Way("measure condition DISK --destroy NAME", CARRIES),
    Way("measure condition FILE", BY_WORD),
    Way("measure --fio job.fio --overwrite", BY_NAME),
    Way("measure --fio job.fio DISK --destroy NAME", CARRIES),
    Way("measure --fio file.fio", BY_WORD),
    Way("measure --fio -- --name=x --rw=write --bs=4k --filename=DISK", BY_NAME),
    Way("measure --vdbench job.vdb", BY_NAME),
    Way("trace replay trace.csv DISK --destroy NAME", CARRIES),
    Way("trace replay trace.csv FILE", "--overwrite for a file"),
    Way("serve constant:1ms --nbd unix:s --data DISK", "is a block device"),
    Way("serve constant:1ms --nbd unix:s --data /tmp/../dev/sdzz", "write output files outside /dev"),
]
FILES = {
    "job.fio": "[x]\nfilename=DISK\nrw=randwrite\nbs=4k\nnumber_ios=10\n",
    "file.fio": "[x]\nfilename=FILE\nrw=randwrite\nbs=4k\nnumber_ios=10\n",
    "job.vdb": "sd=sd1,lun=DISK\nwd=wd1,sd=sd1,rdpct=0\nrd=rd1,wd=wd1,iorate=max,elapsed=2,interval=1\n",
    "trace.csv": "0,0,4096,W,0.0\n0,8,4096,W,0.1\n",
    "two.toml": """name = "two"
source = "a test"
run_length = { requests = 4 }
[[streams]]
name = "journal"
lun = "log"
[streams.access]
arrivals = { closed = { queue_depth = 1 } }
lines = [{ size = "4KiB", read_percent = 0, random_percent = 0 }]
[[streams]]
name = "tables"
lun = "data"
[streams.access]
arrivals = { closed = { queue_depth = 1 } }
lines = [{ size = "4KiB", read_percent = 50, random_percent = 100 }]
""",
}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.command)
def test_what_is_precious_is_not_overwritten(way: Way, tmp_path: Path, attach: Attach, headstack: Headstack) -> None:
    needs_program("mkfs.ext4")
    backing, file = tmp_path / "backing", tmp_path / "precious"
    with open(backing, "wb") as image:
        image.truncate(4 << 20)
    subprocess.run(["mkfs.ext4", "-q", backing], check=True)
    file.write_bytes(os.urandom(1 << 16))
    disk = attach(backing)

    def filled(text: str) -> str:
        places = {"DISK": disk, "NAME": disk.removeprefix("/dev/"), "FILE": str(file), "BACKING": str(backing)}
        for word, place in places.items():
            text = text.replace(word, place)
        return text

    for name, text in FILES.items():
        (tmp_path / name).write_text(filled(text))
    before, listed = (backing.read_bytes(), file.read_bytes()), sorted(os.listdir(tmp_path))
    done = headstack(*(filled(word) for word in way.command.split()))
    assert done.returncode == 2, done.stdout + done.stderr
    assert filled(way.refused) in done.stderr
    # Remarks on a job file come before.
    assert sum("headstack: " in line for line in done.stderr.splitlines()) >= 1
    assert (backing.read_bytes(), file.read_bytes()) == before
    assert sorted(os.listdir(tmp_path)) == listed


def test_a_run_ends_with_code_1_when_a_loop_device_is_made_of_its_file(tmp_path: Path, attach: Attach) -> None:
    target = tmp_path / "target"
    words = [
        "measure",
        str(target),
        "--create",
        "1MiB",
        "--buffered",
        "--read",
        "0",
        "--time",
        "90s",
        "--json",
        "r.json",
    ]
    code = "from headstack.cli.main import main; main()"
    run = subprocess.Popen([sys.executable, "-c", code, *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        # It is there under its name when it is whole, and written from then on.
        while not target.exists():
            assert run.poll() is None, run.communicate()
            time.sleep(0.02)
        device = attach(target)
        said = run.communicate(timeout=80)[1]
    finally:
        run.kill()
        run.wait()
    ended = f"{target}: is now in use; writing stops: it is behind {device.removeprefix('/dev/')}"
    if run.returncode == 2:
        # It came between the creation and the first look.
        assert f"it is behind {device.removeprefix('/dev/')}" in said
        return
    assert run.returncode == 1, said
    assert f"headstack: ended early; results up to then are kept: {ended}" in said
    [result] = json.loads((tmp_path / "r.json").read_text())
    assert result["ended_early"] == ended


def test_the_commands_in_the_documentation_are_current() -> None:
    """``HEADSTACK_WRITE_DOCS=1`` renews them."""
    messages = dict.fromkeys(way.refused for way in WAYS)
    groups = {message: [f"`headstack {way.command}`" for way in WAYS if way.refused == message] for message in messages}
    table = "".join(f"- {message}: {', '.join(commands)}\n" for message, commands in groups.items())
    path = REPOSITORY / "docs" / "safety.md"
    begin, end = "<!-- commands: begin -->\n", "<!-- commands: end -->"
    head, rest = path.read_text().split(begin)
    old, tail = rest.split(end)
    if "HEADSTACK_WRITE_DOCS" in os.environ:
        path.write_text(f"{head}{begin}{table}{end}{tail}")
        return
    assert old == table, "HEADSTACK_WRITE_DOCS=1 pytest tests/python/test_guard.py renews docs/safety.md"
