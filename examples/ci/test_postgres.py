"""PostgreSQL keeps each row that it committed. As root: its programs run as the user postgres."""

import glob
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

BIN = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
SETTINGS = ("shared_buffers=1MB", "listen_addresses=", "autovacuum=off", "log_min_messages=fatal")
SMALL = [word for setting in SETTINGS for word in ("-c", setting)]
USER = {"user": "postgres", "group": "postgres", "extra_groups": [], "cwd": "/"}


@pytest.mark.skipif(not BIN, reason="PostgreSQL is not installed")
@pytest.mark.disk("970-evo-1tb@0..256MiB", crash="explore")
def test_commits_survive(disk, tmp_path_factory):
    programs = Path(BIN[-1])
    with disk.mounted("ext4") as folder:
        shutil.chown(folder, "postgres")
        made = [programs / "initdb", "-k", "--wal-segsize=1", "-N", "-A", "trust", "-D", folder / "base"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, **USER)
        subprocess.run(["sync", "-f", folder], check=True)
        server = subprocess.Popen([programs / "postgres", "-D", folder / "base", "-k", folder, *SMALL], **USER)
        ask = [programs / "psql", "-h", folder, "-XAtq", "postgres"]
        while subprocess.run([programs / "pg_isready", "-q", "-h", folder], cwd="/").returncode != 0:
            time.sleep(0.05)
        try:
            subprocess.run([*ask, "-c", "CREATE TABLE entries (number int PRIMARY KEY)"], check=True, **USER)
            for number in range(20):
                subprocess.run([*ask, "-c", f"INSERT INTO entries VALUES ({number})"], check=True, **USER)
                disk.mark(number)
        finally:
            server.terminate()
            server.wait()

    def check(folder, marks):
        (folder / "base" / "postmaster.pid").unlink(missing_ok=True)
        # A server of one process: it recovers, answers one question, and ends.
        single = [programs / "postgres", "--single", "-D", folder / "base", *SMALL, "postgres"]
        question = "SELECT count(*) AS there FROM entries\n"
        done = subprocess.run(single, input=question, capture_output=True, text=True, **USER)
        there = re.search(r'there = "(\d+)"', done.stdout)
        assert there, done.stderr
        assert int(there[1]) >= len(marks)

    disk.explore(check, budget="30s")
