"""One system measured from many hosts: what is merged, what is known of clocks, what becomes of hosts that fail."""

from __future__ import annotations

import doctest
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import is_privileged, lacks, needs_program
from headstack.measurement.hosts import clock, link
from headstack.measurement.hosts import host as names_of_hosts
from headstack.measurement.hosts.agent import hello

REMOTE = f"{sys.executable} -m headstack"
FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
AHEAD_S = 1000
"""The clock of measurements of host c, which counts from its start, is so far ahead."""

# Stands for ssh, where what matters is not the way: the far side is a process of this machine.
SHELL = """#!/bin/sh
for host; do case $host in -*) ;; *) break ;; esac; done
shift $(($# - 1))
export AGENT_OF=$host
exec sh -c "$1"
"""

SSHD = """
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
"""

SSH = """
Host *
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  IdentityFile {folder}/key
  User root
Host a
  HostName 10.0.0.1
Host b
  HostName 10.0.0.2
Host c
  HostName 10.0.0.3
"""


def agents() -> dict[int, str]:
    """The processes that are agents, with the network each is in."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"measure-agent" in words and b"headstack" in words:
                found[int(folder.name)] = os.readlink(folder / "ns/net")
        except OSError:
            continue
    return found


def threads(pid: int) -> int:
    """Threads of a process; none once it has ended."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except FileNotFoundError:
        return 0


def wait_for(what: Callable[[], Any], within_s: float = 10) -> Any:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come in time")


@pytest.fixture
def none_left() -> Iterator[None]:
    """No agent outlives the session that it belongs to."""
    before = set(agents())
    yield
    wait_for(lambda: set(agents()) <= before, within_s=8)


@pytest.fixture
def shell(tmp_path: Path) -> str:
    path = tmp_path / "shell"
    path.write_text(SHELL)
    path.chmod(0o755)
    return str(path)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "headstack", "measure", *words]


@dataclass
class Network:
    """Three hosts, and a fourth from which they are measured: each a network with an ssh server of its own."""

    folder: Path
    names: dict[str, str]

    def front(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.names["front"], *words]

    def agent_of(self, host: str) -> int | None:
        inside = processes_in(self.names[host])
        return next((pid for pid in agents() if pid in inside), None)


def processes_in(network: str) -> list[int]:
    done = subprocess.run(["ip", "netns", "pids", network], capture_output=True, text=True, check=False)
    return [int(pid) for pid in done.stdout.split()]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    if not is_privileged():
        lacks("root", "network namespaces need root")
    for program in ("ip", "ssh", "ssh-keygen", "unshare"):
        needs_program(program)
    sshd = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
    if sshd is None:
        lacks("programs", "sshd is not installed")
    if FAKETIME is None:
        lacks("programs", "libfaketime is not installed")
    folder = tmp_path_factory.mktemp("network")
    names = {host: f"hs-{os.getpid()}-{host}" for host in ("front", "a", "b", "c")}
    servers: list[subprocess.Popen[bytes]] = []

    def run(*words: str) -> None:
        subprocess.run(words, check=True, capture_output=True)

    made = subprocess.run(["ip", "netns", "add", names["front"]], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        lacks("kernel", f"no network namespaces: {made.stderr.strip()}")
    try:
        front = ("ip", "-n", names["front"])
        run(*front, "link", "add", "bridge", "type", "bridge")
        run(*front, "addr", "add", "10.0.0.254/24", "dev", "bridge")
        run(*front, "link", "set", "bridge", "up")
        for key in ("key", "host_key"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
        # Where sshd goes to be nobody.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        (folder / "ssh_config").write_text(SSH.format(folder=folder))
        for number, host in enumerate(("a", "b", "c"), 1):
            run("ip", "netns", "add", names[host])
            run(*front, "link", "add", f"to-{host}", "type", "veth", "peer", "name", "eth0", "netns", names[host])
            run(*front, "link", "set", f"to-{host}", "master", "bridge", "up")
            there = ("ip", "-n", names[host])
            run(*there, "addr", "add", f"10.0.0.{number}/24", "dev", "eth0")
            run(*there, "link", "set", "eth0", "up")
            run(*there, "link", "set", "lo", "up")
            config = SSHD.format(folder=folder)
            start = ["ip", "netns", "exec", names[host]]
            if host == "c":
                # Its time of day is 50 ms ahead, and its other clock counts from another moment.
                config += f"SetEnv LD_PRELOAD={FAKETIME} FAKETIME=+0.05 FAKETIME_DONT_FAKE_MONOTONIC=1\n"
                start += ["unshare", "--time", "--monotonic", str(AHEAD_S), "--fork", "--kill-child"]
            (folder / f"{host}.conf").write_text(config)
            servers.append(subprocess.Popen([*start, sshd, "-D", "-e", "-f", str(folder / f"{host}.conf")]))
        yield Network(folder, names)
    finally:
        for server in servers:
            server.kill()
            server.wait()
        for name in names.values():
            # Connections that ssh keeps for the next measurement.
            for pid in processes_in(name):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def counted(result: dict[str, Any]) -> Counter[tuple[str, str, int]]:
    """All that histograms and counts of a result hold, as whole numbers by kind, figure and bin."""
    found: Counter[tuple[str, str, int]] = Counter()
    for kind, counts in result["kinds"].items():
        for name in ("count", "bytes", "errors"):
            found[kind, name, 0] = counts[name]
        for figure in ("latency", "service"):
            histogram = counts[figure]
            found.update({(kind, figure, int(middle)): count for middle, count in histogram["bins"]})
            for name in ("sum_ns", "sum_squares_ns2", "overflow"):
                found[kind, f"{figure} {name}", 0] = int(histogram[name])
    return found


def facts_of(result: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {stream["name"]: {fact["name"]: fact["value"] for fact in stream["facts"]} for stream in result["streams"]}


def test_a_connection_is_kept_where_a_socket_can_have_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for depth, is_kept in ((0, True), (12, False)):
        folder = Path("/tmp", *["so-deep"] * depth) if depth else tmp_path.parents[-2]
        monkeypatch.setattr(Path, "is_dir", lambda path: True)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        options = link.ssh_command(names_of_hosts.Host("a", "a"), "ssh", "headstack")
        assert any("ControlPath" in option for option in options) == is_kept, folder


def test_of_three_hosts_one_is_killed_and_one_has_a_wrong_clock(
    network: Network, tmp_path: Path, none_left: None
) -> None:
    ssh = f"ssh -F {network.folder}/ssh_config"
    words = ["--hosts", "a,b,c", "--ssh-command", ssh, "--remote-command", REMOTE, "null:1ms"]
    words += ["--time", "3s", "--warm-up", "0s", "--interval", "100ms", "--json", "whole.json"]
    environment = os.environ | {"XDG_RUNTIME_DIR": str(network.folder), "HEADSTACK_PLAIN": "1"}
    session = subprocess.Popen(
        network.front(*command(*words)),
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    agent = wait_for(lambda: network.agent_of("b"), within_s=60)

    def is_measuring() -> bool:
        # A thread for the requests has come to those that wait.
        return len(os.listdir(f"/proc/{agent}/task")) > 4

    wait_for(is_measuring, within_s=60)
    time.sleep(1.2)
    os.kill(agent, signal.SIGKILL)
    shown, told = session.communicate(timeout=60)
    assert session.returncode == 3, told
    together, *each = json.loads((tmp_path / "whole.json").read_text())

    # The sum of what the others have measured, to the last request.
    assert [one["system"]["name"] for one in (together, *each)] == ["a, b, c", "a:null:1ms", "c:null:1ms"]
    union: Counter[tuple[str, str, int]] = Counter()
    for one in each:
        union.update(counted(one))
    assert counted(together) == union
    assert union["read", "count", 0] > 1000
    assert sum(one["count"] for one in together["intervals"]) == together["kinds"]["read"]["count"]

    # Who is missing, and since when, in the result and on the terminal.
    facts = facts_of(together)
    assert 0 < facts["b"]["missing_since_s"] < 3, facts
    assert facts["b"]["requests_lost"] > 0, facts
    since = f"b: missing since {facts['b']['missing_since_s']:.2f} s after the start: ssh ended with"
    assert since in told
    assert any(note.startswith(since) for note in together["notes"])
    assert since in together["ended_early"]
    assert since.removesuffix(" ssh ended with") in " ".join(shown.split())

    # What the clocks say, within what is stated; and the run began at one moment by clocks that are 1000 s apart.
    for host, truth_ms in (("a", 0.0), ("c", 50.0)):
        ahead = facts[host]
        assert abs(ahead["clock_ahead_ms"] - truth_ms) <= ahead["clock_within_us"] / 1e3, facts
        assert ahead["clock_within_us"] < 20_000, facts
        assert abs(ahead["began_after_us"]) < 500_000, facts
        assert abs(ahead["clock_drift_us"]) <= 2 * ahead["clock_within_us"], facts
    [of_clock] = [note for note in together["notes"] if "its clock is" in note]
    assert of_clock.startswith(("c: its clock is 49.", "c: its clock is 50.")), of_clock
    assert of_clock.split(":")[1].split(",")[0] in " ".join(shown.split()), shown


def measured(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_ctrl_c_ends_all_hosts_and_keeps_what_they_measured(shell: str, tmp_path: Path, none_left: None) -> None:
    before = set(agents())
    words = ["--hosts", "a,b", "--ssh-command", shell, "--remote-command", REMOTE, "null:1ms", "--depth", "1,2"]
    words += ["--time", "60s", "--warm-up", "0s", "--json", "whole.json"]
    session = subprocess.Popen(
        command(*words), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    found = wait_for(lambda: set(agents()) - before if len(set(agents()) - before) == 2 else None, within_s=60)
    wait_for(lambda: all(threads(pid) > 4 for pid in found), within_s=60)
    time.sleep(1.5)
    # As a terminal does it: to all processes of the group.
    os.killpg(session.pid, signal.SIGINT)
    shown, told = session.communicate(timeout=30)
    assert session.returncode == 130, told
    runs = json.loads((tmp_path / "whole.json").read_text())
    assert [run["system"]["name"] for run in runs] == ["a, b", "a:null:1ms", "b:null:1ms"], shown
    assert {run["ended_early"] for run in runs} == {"stopped by hand"}
    assert all(0.1e9 < run["duration_ns"] < 30e9 and run["kinds"]["read"]["count"] > 20 for run in runs)
    assert "missing" not in told


def test_an_agent_that_cannot_end_without_its_session_failed() -> None:
    """It exits with the code of a run that failed; 1 would be a verdict."""
    program = (
        "import os, threading, time\n"
        "from headstack.measurement.hosts import agent\n"
        "agent.LEAVE_S = 0.2\n"
        "source, sink = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)\n"
        "threading.Thread(target=agent.Agent(source, sink)._listen).start()\n"
        "time.sleep(60)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=50, check=False)
    assert done.returncode == 3


def test_agents_end_with_the_session_that_is_killed(shell: str, tmp_path: Path, none_left: None) -> None:
    before = set(agents())
    words = ["--hosts", "a,b", "--ssh-command", shell, "--remote-command", REMOTE, "null:1ms", "--time", "60s"]
    session = subprocess.Popen(command(*words), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = wait_for(lambda: set(agents()) - before if len(set(agents()) - before) == 2 else None, within_s=60)
    wait_for(lambda: all(len(os.listdir(f"/proc/{pid}/task")) > 4 for pid in found), within_s=60)
    session.kill()
    session.wait()


def test_a_host_that_cannot_begin_is_named_and_the_others_go_on(shell: str, tmp_path: Path, none_left: None) -> None:
    words = ["--hosts", "a,b,c,d", "--ssh-command", shell, "--ready-within", "5s"]
    # c has no headstack, and d never stands ready.
    remote = f'case $AGENT_OF in c) exit 7;; d) cat > /dev/null;; *) exec {REMOTE} "$0";; esac; true'
    words += ["--remote-command", f"sh -c '{remote}'", "--target", "b=nowhere.bin"]
    done = measured(tmp_path, *words, "null:1ms", "--time", "300ms", "--json", "whole.json")
    assert done.returncode == 3, done.stderr
    for said in ("b: missing before the start: nowhere.bin: ", "c: missing before the start: shell ended with 7"):
        assert said in done.stderr, done.stderr
    [together, alone] = json.loads((tmp_path / "whole.json").read_text())
    assert alone["system"]["name"] == "a:null:1ms"
    assert together["kinds"] == alone["kinds"]
    assert together["kinds"]["read"]["count"] > 50
    assert facts_of(together)["b"] == facts_of(together)["c"] == {"missing_since_s": 0}
    for host in "bc":
        assert any(note.startswith(f"{host}: missing from the start: ") for note in together["notes"])


def test_where_no_host_can_begin_the_reason_is_the_answer(shell: str, tmp_path: Path, none_left: None) -> None:
    words = ["--hosts", "a,b", "--ssh-command", shell, "--remote-command", REMOTE]
    done = measured(tmp_path, *words, "there.bin", "--time", "1s", "--read", "0")
    assert done.returncode == 2, done.stderr
    assert "headstack: a: there.bin: " in done.stderr
    assert done.stdout == ""


def test_another_schema_is_refused_in_a_plain_line(shell: str, tmp_path: Path) -> None:
    other = json.dumps({"hello": hello() | {"schema": 4, "version": "0.1.0"}})
    fake = tmp_path / "other"
    fake.write_text(f"#!/bin/sh\necho '{other}'\ncat > /dev/null\n")
    fake.chmod(0o755)
    done = measured(tmp_path, "--hosts", "a", "--ssh-command", shell, "--remote-command", str(fake), "null")
    assert done.returncode == 2
    assert "headstack: a: has headstack 0.1.0 with results of schema 4, this host" in done.stderr, done.stderr


def test_every_step_of_a_sweep_begins_together(shell: str, tmp_path: Path, none_left: None) -> None:
    words = ["--hosts", "a,b", "--ssh-command", shell, "--remote-command", REMOTE, "null:1ms", "--size", "4KiB,8KiB"]
    done = measured(tmp_path, *words, "--time", "300ms", "--warm-up", "0s", "--json", "whole.json", "--csv", "rows.csv")
    assert done.returncode == 0, done.stderr
    runs = json.loads((tmp_path / "whole.json").read_text())
    assert [run["system"]["name"] for run in runs] == 2 * ["a, b", "a:null:1ms", "b:null:1ms"]
    rows = (tmp_path / "rows.csv").read_text().splitlines()
    assert rows[0].endswith(",size") or ",size," in rows[0], rows[0]
    assert [run["workload"]["lines"][0]["size"] for run in runs] == 3 * ["4KiB"] + 3 * ["8KiB"]
    for together in (runs[0], runs[3]):
        facts = facts_of(together)
        assert all(facts[host]["began_after_us"] >= -facts[host]["clock_within_us"] for host in "ab"), facts
        counters = {counter["name"]: counter["value"] for counter in together["counters"]}
        assert 0 < counters["common_window_requests"] <= together["kinds"]["read"]["count"]
        assert 0 < counters["common_window_ns"] <= together["duration_ns"]


def test_names_and_clocks_are_as_their_examples_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for module in (clock, names_of_hosts, link):
        done = doctest.testmod(module, extraglobs={"Path": Path})
        assert done.attempted > 0
        assert done.failed == 0
    names = [one.name for one in names_of_hosts.hosts_of("a,a,root@b:22,b:23,[fe80::1]:22")]
    assert names == ["a", "a#2", "b:22", "b:23", "fe80::1"]


def test_job_files_of_fio_are_carried_out_by_their_clients(shell: str, tmp_path: Path, none_left: None) -> None:
    (tmp_path / "reads.fio").write_text("[reads]\nrw=randread\nbs=4k\nsize=1m\nnumber_ios=60\n")
    (tmp_path / "writes.fio").write_text("[writes]\nrw=randwrite\nbs=8k\nsize=1m\nnumber_ios=30\nfilename=unused\n")
    (tmp_path / "list").write_text("a\nroot@b:2222  # the other one\n")
    ways = ["--ssh-command", shell, "--remote-command", REMOTE]
    own = ["--target", "a=a.bin", "--target", "b=b.bin"]
    for host in "ab":
        (tmp_path / f"{host}.bin").write_bytes(bytes(1 << 20))

    def counts(name: str) -> list[tuple[str, int, int]]:
        runs = json.loads((tmp_path / name).read_text())
        return [(run["system"]["name"], *(run["kinds"][kind]["count"] for kind in ("read", "write"))) for run in runs]

    # A file a host, as fio's own command line has it.
    words = [*ways, *own, "--overwrite", "--json", "each.json", "--fio", "--"]
    done = measured(tmp_path, *words, "--client=a", "reads.fio", "--client=b", "writes.fio")
    assert done.returncode == 0, done.stderr
    assert counts("each.json") == [("a, b", 60, 30), ("a:a.bin", 60, 0), ("b:b.bin", 0, 30)]
    # One for all that a file lists.
    done = measured(tmp_path, *ways, *own, "--json", "all.json", "--hosts", "@list", "--fio", "reads.fio")
    assert done.returncode == 0, done.stderr
    assert counts("all.json") == [("a, b", 120, 0), ("a:a.bin", 60, 0), ("b:b.bin", 60, 0)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--hosts", "-oProxyCommand=x", "null"], "'-oProxyCommand=x' is not a host"),
        (["--hosts", "a,,b:0", "null"], "'b:0' is not a host"),
        (["--hosts", "a", "--target", "b=/dev/sdb"], "host 'b' is unknown; allowed: a"),
        (["--target", "b=/dev/sdb", "null"], "--target: needs --hosts"),
        (["--hosts", "a,b"], "a: 0 targets; name one TARGET"),
        (["--hosts", "a=x.fio,b", "null"], "x.fio: No such file"),
        (["--hosts", "a", "null", "--verify"], "--verify: not available with --hosts"),
        (["--fio", "--", "--client=a", "one.fio", "two.fio"], "2 job files for a; name only one"),
    ],
)
def test_hosts_that_cannot_be_meant_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    done = measured(tmp_path, *words)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr


def test_workers_of_a_cluster_are_hosts_too(tmp_path: Path, none_left: None) -> None:
    pytest.importorskip("distributed", reason="needs the extra headstack[cluster]")
    # As `dask scheduler` and `dask worker`, without a folder or a page.
    program = """
import asyncio
from distributed import Scheduler, Worker
async def serve():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        async with Worker(scheduler.address, nthreads=1), Worker(scheduler.address, nthreads=1):
            print(scheduler.address, flush=True)
            await scheduler.finished()
asyncio.run(serve())
"""
    cluster = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path
    )
    try:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip().replace("tcp://", "dask://")
        words = ["--hosts", address, "null:1ms", "--time", "300ms", "--warm-up", "0s", "--json", "whole.json"]
        done = measured(tmp_path, *words)
        assert done.returncode == 0, done.stderr
        together, *each = json.loads((tmp_path / "whole.json").read_text())
        assert len(each) == 2
        assert {one["system"]["name"].partition(":")[0] for one in each} == {"127.0.0.1"}
        assert together["kinds"]["read"]["count"] == sum(one["kinds"]["read"]["count"] for one in each) > 50
        assert all(facts["clock_within_us"] < 100_000 for facts in facts_of(together).values())
    finally:
        cluster.kill()
        cluster.wait()


def test_python_measures_from_hosts_and_names_who_fails(shell: str, tmp_path: Path, none_left: None) -> None:
    told: list[str] = []
    results = hs.measure_hosts(
        ["a", "root@b:2222"],
        "null:1ms",
        targets={"b": tmp_path / "nowhere.bin"},
        depth=[1, 2],
        time="300ms",
        warm_up="0s",
        ssh_command=shell,
        remote_command=REMOTE,
        tell=told.append,
    )
    assert [row["system"] for row in results] == 2 * ["a, b", "a:null:1ms"]
    assert [row["depth"] for row in results][1::2] == [1, 2]
    assert results.rounds == 2
    # Who is missing, in what is returned and while it happens.
    assert list(results.missing) == ["b"]
    assert "nowhere.bin" in results.missing["b"]
    assert any(line.startswith("b: missing before the start: ") for line in told), told
    for number in range(2):
        a, b = results.hosts(number)
        assert (b.host, b.missing_since_s, b.why, b.began_after_us) == ("b", 0, results.missing["b"], None)
        assert (a.missing_since_s, a.why, a.requests_lost) == (None, None, 0)
        # The same machine has the same clock.
        assert a.clock_ahead_ms is not None
        assert a.clock_within_us is not None
        assert a.clock_drift_us is not None
        assert abs(a.clock_ahead_ms) <= a.clock_within_us / 1e3
        assert a.began_after_us is not None
        assert a.began_after_us >= -a.clock_within_us
    # Where none can measure, the first one's reason is raised.
    with pytest.raises(hs.InputError, match=r"a: .*nowhere\.bin"):
        hs.measure_hosts("a", tmp_path / "nowhere.bin", ssh_command=shell, remote_command=REMOTE)
    with pytest.raises(hs.InputError, match="b has no job file"):
        hs.measure_hosts("a,b", "null", file={"a": "x.fio"}, ssh_command=shell)


FIO_CLIENTS = Path(__file__).parent / "samples" / "fio" / "3.33-clients.json"
"""What fio 3.33 printed of two servers, each with two jobs."""


def test_fio_json_of_hosts_is_that_of_fios_clients(shell: str, tmp_path: Path, none_left: None) -> None:
    (tmp_path / "reads.fio").write_text("[global]\nbs=4k\nsize=1m\n[reads]\nrw=randread\nnumber_ios=60\n")
    (tmp_path / "writes.fio").write_text("[writes]\nrw=randwrite\nbs=8k\nsize=1m\nnumber_ios=30\n")
    for host in "ab":
        (tmp_path / f"{host}.bin").write_bytes(bytes(1 << 20))
    ways = ["-q", "--ssh-command", shell, "--remote-command", REMOTE, "--target", "a=a.bin", "--target", "b=b.bin"]
    done = measured(tmp_path, *ways, "--hosts", "a,root@b:2222", "--fio", "reads.fio", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    ours = json.loads(done.stdout)
    fios = json.loads(FIO_CLIENTS.read_text())
    assert list(ours) == list(fios)
    entries = ours["client_stats"]
    assert [(one["jobname"], one["hostname"], one["port"]) for one in entries] == [
        ("reads", "a", 22),
        ("reads", "b", 2222),
        ("All clients", "b", 2222),
    ]
    # Field for field, of a client and of all.
    for own, theirs in ((entries[0], fios["client_stats"][0]), (entries[-1], fios["client_stats"][-1])):
        assert list(own) == list(theirs)
        for kind in ("read", "write", "trim", "sync", "iodepth_level", "latency_us", "latency_ms"):
            assert list(own[kind]) == list(theirs[kind])
    assert {disk["hostname"] for disk in ours["disk_util"]} <= {"a", "b"}
    each, all_of_them = entries[:-1], entries[-1]
    assert [one["read"]["total_ios"] for one in entries] == [60, 60, 120]
    assert all_of_them["read"]["runtime"] == max(one["read"]["runtime"] for one in each)
    assert all_of_them["read"]["lat_ns"]["max"] == max(one["read"]["lat_ns"]["max"] for one in each)
    mean = sum(one["read"]["lat_ns"]["mean"] for one in each) / 2
    assert abs(all_of_them["read"]["lat_ns"]["mean"] - mean) < 0.01
    # Job files of their own, as fio's command line has them; what all say stands with each client then.
    words = [*ways, "--overwrite", "--output", "own.json", "--fio", "--", "--output-format=json+"]
    done = measured(tmp_path, *words, "--client=a", "reads.fio", "--client=b", "writes.fio")
    assert done.returncode == 0, done.stderr
    own = json.loads((tmp_path / "own.json").read_text())
    assert own["global options"] == [
        {"hostname": "a", "port": 22, "bs": "4k", "size": "1m"},
        {"hostname": "b", "port": 22},
    ]
    assert sum(own["client_stats"][-1]["write"]["clat_ns"]["bins"].values()) == 30
    # What reads fio's files reads these.
    assert [load.name for load in hs.fio_results(tmp_path / "own.json")] == [
        "a: randread 4k, depth 1",
        "b: randwrite 8k, depth 1",
    ]
    refused = measured(tmp_path, *ways, "--hosts", "a,b", "--fio", "reads.fio", "--minimal")
    assert refused.returncode == 2
    assert "terse has no client results" in refused.stderr
